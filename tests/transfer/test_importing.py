"""Files into a store: whole, again, grown, cut off, damaged."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from landed import (
    ALL,
    QUIRKS,
    V1,
    V3,
    accounted,
    answer,
    is_of_the_file,
    names,
    result,
    shape,
    user,
    write,
)
from sessions import claude_code, damage, pi

import sessiontree
from sessiontree import Conversation, FormatError, Store
from sessiontree.core.message import META
from sessiontree.transfer import Import, export, import_file, importing

# --- in ---------------------------------------------------------------------------------------


async def test_a_session_is_one_conversation_with_its_title_head_and_times(store: Store):
    done = await import_file(store, QUIRKS, owner="ada")
    assert (done.format, done.entries, done.kept, done.closed) == ("claude_code", 28, 28, 1)
    assert (done.repaired, done.skipped, done.already, done.about) == (1, 0, 0, 0)
    assert (done.roots, done.branch_points) == (2, 1)
    (chat,) = done.conversations
    assert (chat.owner, chat.topic) == ("ada", "0b8f4c1e-0000-4000-8000-00000000cafe")
    assert chat.title == "Harbour page reads both tide tables"
    path = await chat.path()
    assert path[-1].id == chat.head == done.head
    assert path[-1].meta == {META: {"kind": "interrupted"}}
    assert path[-1].tool_results[0].is_error
    assert path[-1].created_at == path[-2].created_at == path[-3].created_at
    assert await store.check() == []


async def test_what_is_stored_is_the_line(store: Store):
    done = await import_file(store, QUIRKS)
    stored = [m.raw async for m in done.conversations[0].iter_messages() if is_of_the_file(m)]
    assert sorted(stored) == sorted(QUIRKS.read_text().splitlines())


@pytest.mark.parametrize("file", ALL, ids=lambda file: file.stem)
async def test_importing_again_adds_nothing(store: Store, file: Path):
    first = await import_file(store, file)
    before = await shape(first.conversations[0])
    again = await import_file(store, file)
    assert (again.kept, again.closed, again.repaired, again.repairs) == (0, 0, 0, ())
    assert again.already == first.kept
    assert accounted(first)
    assert accounted(again)
    assert [chat.id for chat in again.conversations] == [chat.id for chat in first.conversations]
    assert await shape(again.conversations[0]) == before
    assert again.head == first.head
    assert len(await again.conversations[0].history()) == 1


async def test_labels_are_checkpoints_and_compactions_speak_of_what_is_kept(store: Store):
    (chat,) = (await import_file(store, V3)).conversations
    assert chat.title == "Harbour drawing"
    (checkpoint,) = await chat.checkpoints()
    assert checkpoint.label == "first drawing"
    labelled = await chat.message(checkpoint.message_id)
    assert labelled.key == "00000005"
    compaction = next(m for m in await chat.path() if m.key == "0000000c")
    assert (compaction.role, compaction.meta[META]["kind"]) == ("mark", "compaction")
    assert compaction.row.ref_id == labelled.id
    digest = next(m for m in await chat.path() if m.key == "00000009")
    assert (digest.role, digest.meta[META]["kind"]) == ("user", "digest")
    assert digest.row.ref_id is not None


async def test_the_first_kept_entry_of_version_1_is_found_by_its_place(store: Store):
    (chat,) = (await import_file(store, V1)).conversations
    compaction = next(m for m in await chat.path() if m.meta.get(META, {}).get("kind"))
    assert compaction.meta[META]["kind"] == "interrupted"
    compaction = next(m for m in await chat.path() if m.role == "mark" and m.row.ref_id)
    assert (await chat.message(compaction.row.ref_id or 0)).text == "Once more"


async def test_a_result_of_no_call_is_a_mark_and_its_text_a_message(store: Store, tmp_path: Path):
    text = {"type": "text", "text": "go on"}
    rows = [user("u", None), result("r", "u", "c9", text), answer("a", "r")]
    done = await import_file(store, write(tmp_path / "s.jsonl", rows))
    (chat,) = done.conversations
    assert await names(chat) == "u r * a"
    _, mark, rest, _ = await chat.path()
    assert (mark.role, mark.meta) == ("mark", {META: {"kind": "orphan_result"}})
    assert (rest.role, rest.text, rest.tool_results) == ("user", "go on", ())
    assert json.loads(mark.raw) == rows[1]
    assert await store.check() == []


async def test_names_and_texts_of_any_characters_come_in(store: Store, tmp_path: Path):
    odd = "\0 \ud800 \x1b[31m \u202e é"
    rows = [
        {**user(odd, None, odd), "sessionId": odd},
        {**answer("a", odd, odd), "sessionId": odd},
        {"type": "summary", "summary": odd, "leafUuid": odd},
        {"type": "custom-title", "customTitle": odd},
    ]
    done = await import_file(store, write(tmp_path / "\udcff\u202e.jsonl", rows))
    (chat,) = done.conversations
    assert (done.kept, done.closed) == (4, 1)
    assert (await chat.path())[0].text == odd
    assert (await chat.path())[-1].tool_results[0].id == odd
    assert await store.check() == []


async def test_every_session_of_a_file_is_a_conversation(store: Store, tmp_path: Path):
    rows = [user("u", None), {**user("v", None), "sessionId": "s2"}, answer("a", "u")]
    done = await import_file(store, write(tmp_path / "s.jsonl", rows))
    assert [chat.topic for chat in done.conversations] == ["s1", "s2"]
    assert [await names(chat) for chat in done.conversations] == ["u a", "v"]


async def test_a_file_of_a_subagent_joins_the_session_and_leaves_its_head(
    store: Store, tmp_path: Path
):
    main = [user("u", None), answer("a", "u")]
    side = [{**user("s", None), "isSidechain": True, "agentId": "x"}]
    first = await import_file(store, write(tmp_path / "s1.jsonl", main))
    second = await import_file(store, write(tmp_path / "agent-x.jsonl", side))
    assert second.conversations[0].id == first.conversations[0].id
    assert (second.head, second.kept) == (first.head, 1)
    assert len((await second.conversations[0].tree()).roots) == 2


async def test_a_file_of_a_subagent_that_comes_first_has_a_head_until_the_session_comes(
    store: Store, tmp_path: Path
):
    side = [{**user("s", None), "isSidechain": True, "agentId": "x"}]
    first = await import_file(store, write(tmp_path / "agent-x.jsonl", side))
    assert await names(first.conversations[0]) == "s"
    done = await import_file(store, write(tmp_path / "s1.jsonl", [user("u", None)]))
    assert await names(done.conversations[0]) == "u"


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "it is empty"),
        (b"hello\n", "its format is not one that is known"),
        (b'{"type": "session", "id": "x"}\n', "no message of format pi in its 1 rows"),
        (b'{"type": "user", "sessionId": "s"}\n', "no message of format claude_code"),
    ],
)
async def test_a_file_of_which_nothing_can_be_imported_is_an_error_and_makes_nothing(
    store: Store, tmp_path: Path, content: bytes, what: str
):
    file = tmp_path / "s.jsonl"
    file.write_bytes(content)
    with pytest.raises(FormatError, match=what):
        await import_file(store, file)
    assert [info async for info in store.conversations()] == []


async def test_a_file_that_is_not_there_and_a_folder_are_errors(store: Store, tmp_path: Path):
    with pytest.raises(FormatError, match="it cannot be read: No such file"):
        await import_file(store, tmp_path / "gone.jsonl")
    with pytest.raises(FormatError, match="it cannot be read"):
        await import_file(store, tmp_path)


async def test_an_unknown_format_is_an_error_that_lists_those_known(store: Store):
    with pytest.raises(FormatError, match="formats: jsonl, claude_code, pi"):
        await import_file(store, QUIRKS, format="word")


async def test_a_scoped_store_imports_for_its_owner(store: Store):
    done = await import_file(store.for_owner("ada"), QUIRKS)
    assert done.conversations[0].owner == "ada"
    with pytest.raises(sessiontree.OwnerMismatch):
        await import_file(store.for_owner("ada"), QUIRKS, owner="bob")


async def test_progress_is_told_in_bytes_and_comes_to_the_end(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(importing, "BATCH", 5)
    told: list[tuple[int, int]] = []
    await import_file(store, QUIRKS, progress=lambda done, size: told.append((done, size)))
    sizes = {size for _, size in told}
    done = [part for part, _ in told]
    assert sizes == {QUIRKS.stat().st_size}
    assert done == sorted(done)
    assert done[-1] == QUIRKS.stat().st_size


# --- files that grow, imports that are cut off --------------------------------------------------


async def test_a_file_that_grew_adds_what_is_new_and_moves_the_head(store: Store, tmp_path: Path):
    rows = [user("u", None), answer("a", "u"), user("v", "a"), answer("b", "v")]
    file = write(tmp_path / "s.jsonl", rows[:2])
    await import_file(store, file)
    done = await import_file(store, write(file, rows))
    assert (done.kept, done.already) == (2, 2)
    assert await names(done.conversations[0]) == "u a v b"
    assert done.branch_points == 0


async def test_a_result_that_came_late_is_beside_the_closing_and_the_head_follows(
    store: Store, tmp_path: Path
):
    rows = [user("u", None), answer("a", "u", "c"), result("r", "a", "c"), answer("b", "r")]
    file = write(tmp_path / "s.jsonl", rows[:2])
    first = await import_file(store, file)
    assert await names(first.conversations[0]) == "u a !"
    done = await import_file(store, write(file, rows))
    (chat,) = done.conversations
    assert await names(chat) == "u a r b"
    assert [await names(chat, leaf.id) for leaf in await chat.leaves()] == ["u a !", "u a r b"]
    assert await store.check() == []


async def test_a_source_that_went_back_takes_the_head_along(store: Store, tmp_path: Path):
    rows = [user("u", None), answer("a", "u"), user("v", "a"), user("w", "a")]
    file = write(tmp_path / "s.jsonl", rows[:3])
    await import_file(store, file)
    done = await import_file(store, write(file, rows))
    assert await names(done.conversations[0]) == "u a w"


async def test_a_head_that_was_moved_in_the_store_stays(store: Store, tmp_path: Path):
    rows = [user("u", None), answer("a", "u"), user("v", "a"), answer("b", "v")]
    file = write(tmp_path / "s.jsonl", rows[:2])
    (chat,) = (await import_file(store, file)).conversations
    first = (await chat.path())[0]
    await chat.branch(first.id)
    done = await import_file(store, write(file, rows))
    assert (done.kept, done.head) == (2, first.id)
    assert await names(chat, (await chat.leaves())[0].id) == "u a v b"


async def test_what_was_said_in_the_store_stays_at_the_head(store: Store, tmp_path: Path):
    rows = [user("u", None), answer("a", "u"), user("v", "a"), answer("b", "v")]
    file = write(tmp_path / "s.jsonl", rows[:2])
    (chat,) = (await import_file(store, file)).conversations
    (mine,) = await chat.append({"role": "user", "content": "mine"})
    done = await import_file(store, write(file, rows))
    assert done.head == mine.id
    assert mine.format == "anthropic"
    assert [await names(chat, leaf.id) for leaf in await chat.leaves()] == ["u a None", "u a v b"]
    assert await store.check() == []


async def test_undoing_an_import_is_the_users_move_too(store: Store, tmp_path: Path):
    file = write(tmp_path / "s.jsonl", [user("u", None), answer("a", "u")])
    (chat,) = (await import_file(store, file)).conversations
    await chat.undo()
    done = await import_file(
        store, write(file, [user("u", None), answer("a", "u"), user("v", "a")])
    )
    assert done.head is None


async def test_an_import_that_was_cut_off_is_finished_by_importing_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    whole = await import_file(store, QUIRKS, owner="whole")
    monkeypatch.setattr(importing, "BATCH", 7)
    graft, calls = Conversation.graft, 0

    async def failing(self: Conversation, batch: Any) -> list[int]:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return await graft(self, batch)

    monkeypatch.setattr(Conversation, "graft", failing)
    with pytest.raises(KeyboardInterrupt):
        await import_file(store, QUIRKS)
    done = await import_file(store, QUIRKS)
    assert (done.already, done.kept) == (14, 14)
    (chat,) = done.conversations
    assert await shape(chat) == await shape(whole.conversations[0])
    assert await names(chat) == await names(whole.conversations[0])


@pytest.mark.parametrize("at", range(6))
async def test_an_import_that_is_cancelled_is_finished_by_importing_again(
    store: Store, monkeypatch: pytest.MonkeyPatch, at: int
):
    monkeypatch.setattr(importing, "BATCH", 7)
    told = 0

    def stop(done: int, size: int) -> None:
        nonlocal told
        told += 1
        if told > at:
            scope.cancel()

    with anyio.CancelScope() as scope:
        await import_file(store, QUIRKS, progress=stop)
    assert await store.check() == []
    done = await import_file(store, QUIRKS)
    assert done.kept + done.already == 28
    (chat,) = done.conversations
    assert [m.key for m in await chat.path()][-3] == "a-09"
    assert (await names(chat)).endswith(" !")


async def test_a_file_that_is_rewritten_while_it_is_read_is_told(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file = tmp_path / "s.jsonl"
    file.write_bytes(QUIRKS.read_bytes())

    def rewrite(done: int, size: int) -> None:
        file.write_bytes(b"{}\n" * 10)

    with pytest.raises(FormatError, match="the file was rewritten while it was read"):
        await import_file(store, file, progress=rewrite)
    assert await store.check() == []


async def test_batches_are_cut_by_size_too(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importing, "BATCH_BYTES", 1)
    done = await import_file(store, QUIRKS)
    assert (done.kept, len(await done.conversations[0].tree())) == (28, 29)


# --- whatever a file is like --------------------------------------------------------------------


@pytest.mark.parametrize(("format", "made_up"), [("claude_code", claude_code), ("pi", pi)])
@given(random=st.randoms(use_true_random=False))
@settings(max_examples=25)
async def test_a_damaged_file_that_grows_keeps_the_store_sound(
    tmp_path_factory: pytest.TempPathFactory,
    format: str,
    made_up: Callable[[Random], list[dict[str, Any]]],
    random: Random,
):
    rows = damage(made_up(random), format, random)
    file = tmp_path_factory.mktemp("grows") / "s.jsonl"
    cuts = sorted(random.randint(1, len(rows)) for _ in range(2))
    done: Import | None = None
    async with sessiontree.open_store(":memory:") as opened:
        for end in (*cuts, len(rows), len(rows)):
            write(file, rows[:end])
            try:
                done = await import_file(opened, file, format=format)
            except FormatError:
                continue
            assert accounted(done)
            assert await opened.check() == []
            for chat in done.conversations:
                head = await chat.message(chat.head or 0)
                assert head.is_boundary
                assert all(leaf.is_boundary for leaf in await chat.leaves())
        assert done is None or done.kept == done.closed == 0


# --- found by damaging files ------------------------------------------------------------------


async def test_a_compaction_that_keeps_all_from_itself_on_keeps_nothing(
    store: Store, tmp_path: Path
):
    rows: list[dict[str, Any]] = [
        {"type": "message", "message": {"role": "user", "content": "hi"}},
        {"type": "compaction", "summary": "they said hi", "firstKeptEntryIndex": 1},
    ]
    done = await import_file(store, write(tmp_path / "s.jsonl", rows), format="pi")
    assert [str(note) for note in done.repairs] == [
        "line 2: it keeps all from 1 on, which is itself"
    ]
    (mark,) = [m for m in await done.conversations[0].path() if m.role == "mark"]
    assert (mark.ref_id, mark.meta[META]["text"]) == (None, "they said hi")


async def test_a_session_of_notes_alone_has_no_head(store: Store, tmp_path: Path):
    note = {"type": "summary", "summary": "all fine", "sessionId": "s2", "uuid": "n1"}
    rows = [user("u1", None), answer("a1", "u1"), {"type": "system", **note, "parentUuid": None}]
    rows.append({**note, "uuid": "n2", "sessionId": "s3", "parentUuid": None})
    done = await import_file(store, write(tmp_path / "s.jsonl", rows))
    again = await import_file(store, tmp_path / "s.jsonl")
    assert [chat.head for chat in again.conversations] == [chat.head for chat in done.conversations]
    assert again.kept == 0
    assert await store.check() == []


async def test_a_call_whose_result_cannot_be_read_is_closed(store: Store, tmp_path: Path):
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    chat = await store.conversation("x")
    await chat.append(
        [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "done"},
        ]
    )
    file = tmp_path / "own.jsonl"
    await export(chat, "jsonl", whole_tree=True, file=file)
    file.write_text(
        file.read_text().replace(
            '"format":"openai_chat","content":"{\\"role\\":\\"tool', '"format":"none","content":"{'
        )
    )
    async with sessiontree.open_store(":memory:") as other:
        done = await import_file(other, file)
        assert (done.skipped, done.closed) == (1, 1)
        path = await done.conversations[0].path()
        assert [message.role for message in path] == ["user", "assistant", "tool"]
        assert await other.check() == []


async def test_a_message_that_holds_its_calls_with_their_results_comes_back(tmp_path: Path):
    state = {"status": "completed", "input": {}, "output": "drawn"}
    tool = {"type": "tool", "callID": "c1", "tool": "draw", "state": state}
    said = {"info": {"role": "assistant", "id": "m2"}, "parts": [tool]}
    file = tmp_path / "own.jsonl"
    async with sessiontree.open_store(":memory:") as store:
        chat = await store.conversation("x")
        await chat.append([{"role": "user", "content": "draw"}])
        await chat.append([said], format="opencode")
        await export(chat, "jsonl", whole_tree=True, file=file)
    async with sessiontree.open_store(":memory:") as store:
        done = await import_file(store, file)
        assert (done.repaired, done.closed) == (0, 0)
        path = await done.conversations[0].path()
        assert [message.role for message in path] == ["user", "assistant"]
        assert path[1].tool_calls[0].id == path[1].tool_results[0].id == "c1"


async def test_rows_without_key_or_time_are_known_again(store: Store, tmp_path: Path):
    result = {"role": "tool", "tool_call_id": "nowhere", "content": "06:12"}
    said = [("user", {"role": "user", "content": "hi"}), ("tool", result)]
    rows: list[dict[str, Any]] = [{"sessiontree": 1, "topic": "x", "owner": ""}]
    for at, (role, content) in enumerate(said, 1):
        row = {"id": at, "role": role, "format": "openai_chat", "content": json.dumps(content)}
        rows.append(row if at == 1 else row | {"parent": 1})
    file = write(tmp_path / "own.jsonl", rows)
    done = await import_file(store, file)
    assert [m.role async for m in done.conversations[0].iter_messages()] == ["user", "mark"]
    again = await import_file(store, file)
    assert (again.kept, again.already) == (0, 2)
