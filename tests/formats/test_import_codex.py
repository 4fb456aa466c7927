"""Codex's rollouts: what each row is to us, where it hangs, and the way back."""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import pytest
import zstandard
from agents import FIXTURES, brought, damaged, objects, plants, roles, sent, survives, texts
from hypothesis import given
from hypothesis import strategies as st
from planted import Planted, read

import sessiontree
from sessiontree.core.message import text_of
from sessiontree.errors import FormatError
from sessiontree.formats import codec, recognise
from sessiontree.transfer import export, foreign, import_file

ROLLOUT = FIXTURES / "codex.jsonl"
CODEC = codec("codex")
TAKEN_BACK = 25
"""The line of the fixture that takes a turn back."""


@pytest.fixture
async def store():
    async with sessiontree.open_store(":memory:") as opened:
        yield opened


def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in ROLLOUT.read_text("utf-8").splitlines()]


def row(kind: str, payload: dict[str, Any], second: int = 0) -> dict[str, Any]:
    time = f"2025-10-01T10:00:{second:02d}.000Z"
    return {"timestamp": time, "type": kind, "payload": payload}


def item(second: int = 0, **payload: Any) -> dict[str, Any]:
    return row("response_item", payload, second)


def user(text: str, second: int = 0) -> dict[str, Any]:
    content = [{"type": "input_text", "text": text}]
    return item(second, type="message", role="user", content=content)


def said(text: str, second: int = 0) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text}]
    return item(second, type="message", role="assistant", content=content)


# --- the codec --------------------------------------------------------------------------------


def test_an_item_is_looked_into_by_the_codec_of_openai_responses():
    responses = codec("openai_responses")
    for made in rows():
        payload = made["payload"]
        if made["type"] != "response_item" or payload.get("role") == "developer":
            continue
        if payload["type"] not in ("ghost_snapshot", "local_shell_call"):
            assert CODEC.decode(made) == responses.decode(payload)


def test_what_the_program_tells_the_model_by_the_way_does_not_replace_the_system_prompt():
    developer = item(type="message", role="developer", content="mind the sandbox")
    assert CODEC.decode(developer).role == "user"


def test_a_shell_call_without_a_call_id_is_paired_by_its_id():
    call = item(type="local_shell_call", id="lsh_1", call_id=None, action={"type": "exec"})
    (part,) = CODEC.decode(call).parts
    assert (part["type"], part["id"], part["name"]) == ("tool_call", "lsh_1", "local_shell")


@pytest.mark.parametrize("payload", [None, 7, [], "text", {"type": "message"}, {"type": {}}, {}])
def test_a_row_whose_item_is_broken_is_a_mark_that_keeps_it(payload: object):
    made = {"timestamp": "x", "type": "response_item", "payload": payload}
    decoded = CODEC.decode(made)
    assert decoded.role == "mark"
    assert decoded.parts[-1]["native"] == made


def test_something_without_a_type_is_no_row():
    with pytest.raises(FormatError, match="type is missing"):
        CODEC.decode({"uuid": "x"})


def test_rows_are_recognised_and_parts_are_written_as_rows():
    assert {recognise(made) for made in rows()} == {"codex"}
    (made,) = CODEC.encode("assistant", [{"type": "text", "content": "hi"}])
    role, parts = CODEC.decode(made)
    assert (role, text_of(parts)) == ("assistant", "hi")


# --- the reader -------------------------------------------------------------------------------


def test_the_first_session_names_the_conversation_and_the_parents_is_kept_beside():
    tree = Planted(ROLLOUT.read_bytes(), "codex")
    tree.check()
    assert tree.skeleton.topics == ["0199-child"]
    assert tree.links["line 2"] == "line 1"
    assert (tree.repairs, tree.skips) == ([], [])


def test_a_turn_that_was_taken_back_stays_as_a_branch():
    tree = Planted(ROLLOUT.read_bytes(), "codex")
    before = [f"line {n}" for n in range(1, 22)]
    taken_back = [*before, *(f"line {n}" for n in range(22, 26)), "!call_1"]
    assert tree.paths == [
        " ".join(taken_back),
        " ".join([*before, *(f"line {n}" for n in range(26, 31))]),
    ]
    assert tree.head == "line 30"


def test_the_head_is_before_what_was_taken_back_last():
    whole = ROLLOUT.read_text("utf-8").splitlines()
    tree = Planted("\n".join(whole[:TAKEN_BACK]), "codex")
    tree.check()
    assert tree.head == "line 21"


@pytest.mark.parametrize("turns", [2, 3, 10**9])
def test_more_turns_than_there_are_go_back_to_before_the_first(turns: int):
    back = row("event_msg", {"type": "thread_rolled_back", "num_turns": turns})
    made = [user("<environment_context>"), user("a", 1), said("b", 2), user("c", 3), back]
    tree = Planted([*made, user("d", 4)], "codex")
    tree.check()
    assert tree.links["line 6"] == "line 1"
    assert tree.head == "line 6"


def test_where_everything_is_taken_back_the_session_begins_again():
    back = row("event_msg", {"type": "thread_rolled_back", "num_turns": 1})
    tree = Planted([row("session_meta", {"id": "s"}), user("a"), back, user("b", 1)], "codex")
    tree.check()
    assert tree.paths == ["line 1 line 2 line 3", "line 1 line 4"]
    assert tree.head == "line 4"


@pytest.mark.parametrize("turns", [0, -1, None, "1", True, 1.5])
def test_a_number_of_turns_that_makes_no_sense_takes_nothing_back(turns: object):
    back = row("event_msg", {"type": "thread_rolled_back", "num_turns": turns})
    tree = Planted([user("a"), said("b", 1), back, user("c", 2)], "codex")
    tree.check()
    if turns is not True:
        assert tree.head == "line 4"
        assert len(tree.paths) == 1


def test_the_oldest_files_have_items_without_an_envelope():
    old = [
        {"id": "s-1", "timestamp": "2025-05-07T17:24:21Z", "instructions": None},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"record_type": "state"},
        {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c"},
        {"type": "function_call_output", "call_id": "c", "output": "ok"},
    ]
    tree = Planted(old, "codex")
    tree.check()
    assert tree.skeleton.topics == ["s-1"]
    assert [entry.role for entry in tree.skeleton.entries] == [
        "mark",
        "user",
        "mark",
        "assistant",
        "tool",
    ]


def test_a_broken_item_is_told():
    tree = Planted([user("a"), item(type="message", role="robot", content="x")], "codex")
    tree.check()
    assert "not one of format openai_responses" in tree.repairs[0]


# --- in a store -------------------------------------------------------------------------------


async def test_a_rollout_comes_in_whole(store: sessiontree.Store):
    done, chat = await brought(store, ROLLOUT)
    assert (done.format, done.entries, done.kept, done.closed) == ("codex", 30, 30, 1)
    assert (done.branch_points, done.roots, chat.title) == (1, 1, "Tides")
    assert chat.topic == "0199-child"


async def test_a_compaction_stands_for_all_before_it_and_the_history_stays(
    store: sessiontree.Store,
):
    _, chat = await brought(store, ROLLOUT)
    said = await sent(chat)
    assert "Summary: the table is fixed and blue." in said
    assert "You are welcome." in said
    assert "Look at the file first" not in said
    assert "It is blue." in await texts(chat)


@pytest.mark.parametrize("whole_tree", [False, True])
async def test_the_way_back_gives_every_row_byte_for_byte(
    store: sessiontree.Store, whole_tree: bool
):
    _, chat = await brought(store, ROLLOUT)
    text = await export(chat, "codex", whole_tree=whole_tree)
    lines = ROLLOUT.read_text("utf-8").splitlines()
    expected = lines if whole_tree else lines[:21] + lines[25:]
    assert text is not None
    assert text.splitlines() == expected


async def test_a_file_that_grows_adds_only_what_is_new(store: sessiontree.Store, tmp_path: Path):
    lines = ROLLOUT.read_text("utf-8").splitlines(keepends=True)
    file = tmp_path / "rollout.jsonl"
    for end in (6, 10, 14, 22, 25, 30):
        file.write_text("".join(lines[:end]), "utf-8")
        done = await import_file(store, file)
    assert done.already + done.kept == 30
    assert (await chat_texts(store))[-1] == "You are welcome."
    assert await store.check() == []


async def chat_texts(store: sessiontree.Store) -> list[str]:
    infos = [info async for info in store.conversations()]
    assert len(infos) == 1
    return await texts(await store.open(infos[0].id))


async def test_a_compressed_rollout_is_the_same(store: sessiontree.Store, tmp_path: Path):
    file = tmp_path / "rollout.jsonl.zst"
    file.write_bytes(zstandard.compress(ROLLOUT.read_bytes()))
    done, chat = await brought(store, file)
    assert (done.format, done.kept) == ("codex", 30)
    assert await export(chat, "codex", whole_tree=True) == ROLLOUT.read_text("utf-8")


async def test_without_zstandard_the_error_says_what_to_install(
    store: sessiontree.Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "zstandard":
            raise ImportError(name)
        return real(name, *rest)

    file = tmp_path / "rollout.jsonl.zst"
    file.write_bytes(zstandard.compress(ROLLOUT.read_bytes()))
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(FormatError, match=r"sessiontree\[zstd\]"):
        await import_file(store, file)


async def test_a_compressed_file_that_is_damaged_or_too_large_is_an_error(
    store: sessiontree.Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file = tmp_path / "rollout.jsonl.zst"
    packed = zstandard.compress(ROLLOUT.read_bytes())
    file.write_bytes(packed[:8] + b"\xff" * 20 + packed[28:])
    with pytest.raises(FormatError, match="cannot be unpacked"):
        await import_file(store, file)
    monkeypatch.setattr(foreign, "MAX_UNPACKED", 1 << 20)
    file.write_bytes(zstandard.compress(bytes(2 << 20)))
    with pytest.raises(FormatError, match="it holds more than"):
        await import_file(store, file)


async def test_the_file_of_the_corpus_closes_both_of_its_calls(
    store: sessiontree.Store, corpus: Path
):
    done, chat = await brought(store, corpus / "codex" / "function_calls.jsonl")
    assert (done.kept, done.closed) == (4, 2)
    assert await roles(chat) == "mua!a!"


# --- damage -----------------------------------------------------------------------------------


async def test_damaged_files_are_refused_or_mended(tmp_path: Path):
    file = tmp_path / "rollout.jsonl"
    outcomes = []
    for raw in damaged(ROLLOUT.read_bytes()):
        file.write_bytes(raw)
        outcomes.append(await survives(file, "codex"))
    assert outcomes == [True] * 9 + [False] * 2


WORDS = """type role content text call_id id name arguments output input summary message c1 payload
replacement_history num_turns message reasoning function_call function_call_output user assistant
custom_tool_call local_shell_call thread_rolled_back ghost_snapshot input_text output_text"""
KINDS = st.sampled_from(["session_meta", "response_item", "event_msg", "compacted"])


@given(st.lists(st.tuples(KINDS, objects(WORDS)), max_size=8))
def test_rows_of_any_shape_make_a_sound_tree_or_a_clear_error(
    made: list[tuple[str, dict[str, Any]]],
):
    plants([row(kind, payload) for kind, payload in made], "codex")
    plants([user("hi"), *(payload for _, payload in made)], "codex")


def test_deep_json_is_skipped_and_told():
    deep = '{"type": "response_item", "payload": ' + "[" * 100_000
    skeleton = read(json.dumps(user("a")) + "\n" + deep, "codex")
    assert len(skeleton.skipped) == 1
