"""Back into files of Claude Code, pi and Codex: as they came, and with what was added since."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from landed import FIXTURES, QUIRKS, V3, accounted, answer, result, user, write

import sessiontree
from sessiontree import Conversation, FormatError, Store, violations
from sessiontree.transfer import export, import_file

V1 = FIXTURES / "pi" / "v1.jsonl"
PROGRAMS = ["claude_code", "pi"]


def said(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": text}


def call(name: str = "c1") -> dict[str, Any]:
    function = {"name": "find", "arguments": '{"what": "tide"}'}
    calls = [{"id": name, "type": "function", "function": function}]
    return {"role": "assistant", "content": "I look.", "tool_calls": calls}


def found(name: str = "c1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": name, "content": "06:12"}


async def rows_of(chat: Conversation, format: str, **options: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in str(await export(chat, format, **options)).splitlines()]


async def landed(chat: Conversation, format: str, file: Path, **options: Any) -> Conversation:
    """The export of a conversation, imported into a store of its own without a repair."""
    await export(chat, format, file=file, **options)
    store = await _stores.enter_async_context(sessiontree.open_store(":memory:"))
    done = await import_file(store, file)
    assert done.format == format
    assert accounted(done)
    assert (done.skipped, done.repaired, done.closed) == (0, 0, 0), done.repairs
    assert await store.check() == []
    (copy,) = done.conversations
    return copy


@pytest.fixture(autouse=True)
async def stores():
    from contextlib import AsyncExitStack

    global _stores
    async with AsyncExitStack() as _stores:
        yield


_stores: Any = None


def words(path: list[sessiontree.Message]) -> list[tuple[str, str]]:
    """What is said on a path: what a program has no row for apart."""
    spoken = [each for each in path if each.role not in ("mark", "system")]
    return [
        (each.role, each.text or str(each.tool_results[0].response) if each.parts else "")
        for each in spoken
    ]


@pytest.mark.parametrize("format", [*PROGRAMS, "codex"])
async def test_a_conversation_of_another_program_becomes_a_session(
    store: Store, tmp_path: Path, format: str
):
    chat = await store.conversation("x", system="Be brief.")
    await chat.append([said("When?"), call(), found(), said("At 06:12.", "assistant")])
    await chat.append(said("Thanks."))
    copy = await landed(chat, format, tmp_path / "x.jsonl")
    path = await copy.path()
    spoken = [each for each in path if each.role != "mark"]
    turns = [role for role, _ in groupby(each.role for each in spoken)]  # codex: an item a row
    assert turns == ["user", "assistant", "tool", "assistant", "user"]
    assert [each.text for each in spoken if each.text] == [
        "When?",
        "I look.",
        "At 06:12.",
        "Thanks.",
    ]
    (made,) = [call for each in spoken for call in each.tool_calls]
    assert (made.id, made.name, made.arguments) == ("c1", "find", {"what": "tide"})
    (told,) = [result for each in spoken for result in each.tool_results]
    assert "06:12" in str(told.response)
    assert copy.head == path[-1].id
    window = await copy.window(target="anthropic")
    assert violations(window.messages, "anthropic") == []
    assert await export(chat, format) == await export(chat, format), "ids must stay the same"


@pytest.mark.parametrize("format", PROGRAMS)
async def test_branches_are_branches_again(store: Store, tmp_path: Path, format: str):
    chat = await store.conversation("x")
    await chat.append([said("one"), said("left", "assistant")])
    await chat.append(said("right", "assistant"), parent=1)
    copy = await landed(chat, format, tmp_path / "x.jsonl", whole_tree=True)
    leaves = await copy.leaves()
    assert [leaf.text for leaf in leaves] == ["left", "right"]
    assert leaves[0].parent_id == leaves[1].parent_id


async def test_pi_goes_on_at_the_head_of_a_tree(store: Store, tmp_path: Path):
    (chat,) = (await import_file(store, V3)).conversations
    tree = await chat.tree()
    for place in [node for node in tree.nodes if node.is_boundary and node.role == "user"]:
        await chat.branch(place.id)
        await export(chat, "pi", whole_tree=True, file=tmp_path / "x.jsonl")
        rows = (tmp_path / "x.jsonl").read_text().splitlines()
        assert sorted(rows) == sorted(V3.read_text().splitlines())
        assert json.loads(rows[-1])["id"] == (await chat.message(place.id)).native["id"]


@pytest.mark.parametrize(("file", "format"), [(QUIRKS, "claude_code"), (V3, "pi"), (V1, "pi")])
async def test_a_session_goes_on_where_it_was_taken_up(
    store: Store, tmp_path: Path, file: Path, format: str
):
    (chat,) = (await import_file(store, file)).conversations
    before = str(await export(chat, format)).splitlines()
    await chat.append([said("go on"), call(), found(), said("done", "assistant")])
    after = str(await export(chat, format)).splitlines()
    assert [line for line in after if line in before] == before
    added = [json.loads(line) for line in after if line not in before]
    assert len(added) >= 4
    (tmp_path / "x.jsonl").write_text("\n".join(after) + "\n")
    (copy,) = (await import_file(store, tmp_path / "x.jsonl", owner="another")).conversations
    path = await copy.path()
    assert [each.text for each in path[-4:]] == ["go on", "I look.", "", "done"]
    assert copy.head == path[-1].id
    assert len(path) >= len(before)
    assert await store.check() == []


async def test_what_is_added_has_the_facts_of_the_session(store: Store):
    (chat,) = (await import_file(store, QUIRKS)).conversations
    await chat.append([said("go on"), said("done", "assistant")])
    *_, before, question, reply = await rows_of(chat, "claude_code")
    assert question["parentUuid"] == before["uuid"]
    assert reply["parentUuid"] == question["uuid"]
    assert question["sessionId"] == before["sessionId"]
    assert (reply["type"], reply["message"]["type"]) == ("assistant", "message")
    assert reply["message"]["content"] == [{"type": "text", "text": "done"}]
    assert reply["timestamp"].endswith("Z")


async def test_a_result_that_an_import_added_is_left_out_until_something_follows_it(
    store: Store, tmp_path: Path
):
    file = write(tmp_path / "cut.jsonl", [user("a", None), answer("b", "a", "t1", "t2")])
    (chat,) = (await import_file(store, file)).conversations
    assert len(await rows_of(chat, "claude_code")) == 2
    await chat.append(said("go on"))
    rows = await rows_of(chat, "claude_code", whole_tree=True)
    kinds = [row["message"]["content"] for row in rows[2:]]
    assert [block["tool_use_id"] for content in kinds[:-1] for block in content] == ["t1", "t2"]
    assert kinds[-1] == "go on"
    copy = await landed(chat, "claude_code", tmp_path / "back.jsonl")
    assert words(await copy.path()) == words(await chat.path())


async def test_two_branches_behind_an_added_result_have_it_once(store: Store, tmp_path: Path):
    file = write(tmp_path / "cut.jsonl", [user("a", None), answer("b", "a", "t1")])
    (chat,) = (await import_file(store, file)).conversations
    closing = chat.head
    await chat.append(said("left"))
    await chat.append(said("right"), parent=closing)
    copy = await landed(chat, "claude_code", tmp_path / "back.jsonl", whole_tree=True)
    assert len(await copy.leaves()) == 2
    assert len(await copy.tree()) == 5


async def test_an_old_file_without_ids_is_one_chain(store: Store):
    (chat,) = (await import_file(store, V1)).conversations
    await chat.append(said("on the path"))
    assert "id" not in (await rows_of(chat, "pi"))[-1]
    tree = await chat.tree()
    boundary = next(node for node in tree.path()[3:] if node.is_boundary)
    await chat.append(said("a branch"), parent=boundary.id)
    with pytest.raises(FormatError, match="export the active path"):
        await export(chat, "pi", whole_tree=True)
    assert "a branch" in str(await export(chat, "pi"))


async def test_reasoning_and_prompts_of_others_have_no_row(store: Store, tmp_path: Path):
    chat = await store.conversation("x", system="Be brief.", format="openai_responses")
    await chat.append({"type": "message", "role": "user", "content": "hm"})
    thought = {"type": "reasoning", "id": "r1", "summary": [], "encrypted_content": "x"}
    await chat.append([thought, {"type": "message", "role": "assistant", "content": "yes"}])
    for format in PROGRAMS:
        copy = await landed(chat, format, tmp_path / f"{format}.jsonl")
        spoken = [each for each in await copy.path() if each.role != "mark"]
        assert [each.text for each in spoken] == ["hm", "yes"]


@pytest.mark.parametrize("format", PROGRAMS)
async def test_calls_without_ids_get_some(store: Store, tmp_path: Path, format: str):
    chat = await store.conversation("x", format="gemini")
    calls = [{"functionCall": {"name": name, "args": {}}} for name in ("a", "b")]
    results = [
        {"functionResponse": {"name": name, "response": {"result": name * 3}}}
        for name in ("a", "b")
    ]
    await chat.append(
        [
            {"role": "user", "parts": [{"text": "go"}]},
            {"role": "model", "parts": calls},
            {"role": "user", "parts": results},
            {"role": "model", "parts": [{"text": "done"}]},
            {"role": "user", "parts": [{"text": "thanks"}]},
        ]
    )
    copy = await landed(chat, format, tmp_path / "x.jsonl")
    window = await copy.window(target="anthropic")
    assert violations(window.messages, "anthropic") == []
    assert not any("placeholder" in step.what for step in window.steps)


CORPUS = [
    "claude-code/session-5c0375b4.jsonl",
    "claude-code/session-fe5e1c67.jsonl",
    "pi/before-compaction.jsonl",
    "pi/branch-compaction.jsonl",
]


@pytest.mark.parametrize("name", CORPUS)
@pytest.mark.parametrize("format", PROGRAMS)
async def test_real_sessions_go_over_to_the_other_program(
    store: Store, corpus: Path, tmp_path: Path, name: str, format: str
):
    done = await import_file(store, corpus / name)
    (chat,) = done.conversations
    if done.format == format:
        rows = str(await export(chat, format, whole_tree=True)).splitlines()
        assert sorted(rows) == sorted((corpus / name).read_text().split("\n")[: done.entries])
        return
    copy = await landed(chat, format, tmp_path / "x.jsonl")
    ours, theirs = await chat.path(), await copy.path()
    spoken = [each.text for each in ours if each.role in ("user", "assistant") and each.text]
    again = [each.text for each in theirs if each.role in ("user", "assistant") and each.text]
    assert again == spoken


async def test_results_that_were_there_stay_what_they_are(store: Store, tmp_path: Path):
    file = write(
        tmp_path / "x.jsonl", [user("a", None), answer("b", "a", "t1"), result("c", "b", "t1")]
    )
    (chat,) = (await import_file(store, file)).conversations
    await chat.append(said("next"))
    rows = await rows_of(chat, "claude_code")
    assert [row["uuid"] for row in rows[:3]] == ["a", "b", "c"]
    assert rows[3]["parentUuid"] == "c"


# --- Codex ------------------------------------------------------------------------------------

ROLLOUT = FIXTURES / "agents" / "codex.jsonl"


async def test_codex_goes_on_with_what_was_added(store: Store, tmp_path: Path):
    (chat,) = (await import_file(store, ROLLOUT)).conversations
    before = await chat.path()
    await chat.append([said("And now?"), call("c9"), found("c9"), said("Done.", "assistant")])
    written = str(await export(chat, "codex"))
    own = [message.raw for message in before if message.format == "codex"]
    assert written.splitlines()[: len(own)] == own
    added = [json.loads(line) for line in written.splitlines()[len(own) :]]
    assert [row["payload"]["type"] for row in added] == [
        "message",
        "user_message",
        "message",
        "agent_message",
        "function_call",
        "function_call_output",
        "message",
        "agent_message",
    ]
    assert added[0]["payload"]["content"] == [{"type": "input_text", "text": "And now?"}]
    assert json.loads(added[4]["payload"]["arguments"]) == {"what": "tide"}
    (tmp_path / "x.jsonl").write_text(written)
    async with sessiontree.open_store(":memory:") as other:
        done = await import_file(other, tmp_path / "x.jsonl")
        assert (done.repaired, done.skipped) == (0, 0)
        copy = await done.conversations[0].path()
        assert [m.text for m in copy if m.role == "assistant" and m.text][-1] == "Done."
        assert await other.check() == []


async def test_a_session_for_codex_begins_with_what_names_it(store: Store):
    chat = await store.conversation("x")
    await chat.append([said("one"), said("two", "assistant")])
    rows = await rows_of(chat, "codex")
    assert [row["type"] for row in rows] == [
        "session_meta",
        "response_item",
        "event_msg",
        "response_item",
        "event_msg",
    ]
    assert {"id", "timestamp", "cwd", "originator", "cli_version"} <= rows[0]["payload"].keys()
    assert rows == await rows_of(chat, "codex"), "ids must stay the same"


async def test_branches_of_ours_cannot_be_told_to_codex(store: Store):
    chat = await store.conversation("x")
    await chat.append([said("one"), said("left", "assistant")])
    await chat.append(said("right", "assistant"), parent=1)
    with pytest.raises(FormatError, match="without ids: it is one chain"):
        await export(chat, "codex", whole_tree=True)
    assert [row["payload"].get("message") for row in await rows_of(chat, "codex")][-1] == "right"


async def test_reasoning_that_codex_cannot_hold_makes_no_branch(store: Store):
    chat = await store.conversation("T-1")
    thought = {"type": "thinking", "thinking": "Look first.", "signature": "c2ln"}
    await chat.append(
        [
            {"role": "user", "content": "Where is it?"},
            {"role": "assistant", "content": [thought]},
            {"role": "assistant", "content": "In the van."},
        ],
        format="anthropic",
    )
    written = await export(chat, "codex")
    assert '"In the van."' in written
    assert "Look first." not in written
    await chat.branch(None)
    await chat.append([{"role": "user", "content": "And now?"}])
    with pytest.raises(FormatError, match="message 4 is on a branch"):
        await export(chat, "codex", whole_tree=True)
