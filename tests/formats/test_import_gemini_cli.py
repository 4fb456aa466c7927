"""Gemini CLI's sessions: messages told again, taken back, and put in the place of others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agents import (
    FIXTURES,
    brought,
    chat_of,
    damaged,
    objects,
    plants,
    roles,
    sent,
    survives,
    texts,
    write,
)
from hypothesis import given
from hypothesis import strategies as st
from planted import Planted

import sessiontree
from sessiontree.core.message import calls_of, results_of
from sessiontree.errors import FormatError
from sessiontree.formats import codec, recognise
from sessiontree.transfer import import_file

LINES = FIXTURES / "gemini_cli.jsonl"
DOCUMENT = FIXTURES / "gemini_cli.json"
CODEC = codec("gemini_cli")
HEADER = {"sessionId": "s", "projectHash": "h", "kind": "main"}


@pytest.fixture
async def store():
    async with sessiontree.open_store(":memory:") as opened:
        yield opened


def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in LINES.read_text("utf-8").splitlines()]


def said(name: str, text: str = "hi", kind: str = "user", **more: Any) -> dict[str, Any]:
    time = "2025-11-02T09:00:00.000Z"
    return {"id": name, "timestamp": time, "type": kind, "content": text, **more}


def gemini(name: str, text: str = "hi", **more: Any) -> dict[str, Any]:
    return said(name, text, "gemini", **more)


def back(name: str) -> dict[str, Any]:
    return {"$rewindTo": name}


def paths(*made: dict[str, Any]) -> tuple[list[str], str | None]:
    """Paths and head, without the session that is the root of all."""
    tree = Planted([HEADER, *made], "gemini_cli")
    tree.check()
    root = tree.skeleton.entries[0].id
    assert root is not None
    plain = [path.replace(root, "", 1).strip() for path in tree.paths]
    return plain, "" if tree.head == root else tree.head


# --- the codec --------------------------------------------------------------------------------


def test_a_message_holds_its_calls_with_their_results():
    message = rows()[5]
    role, parts = CODEC.decode(message)
    assert role == "assistant"
    assert [part["type"] for part in parts] == [
        "reasoning",
        "tool_call",
        "tool_call_response",
        "tool_call",
        "tool_call_response",
    ]
    assert [call.id for call in calls_of(parts)] == ["read-1", "sh-1"]
    assert [(r.response, r.is_error) for r in results_of(parts)] == [
        ({"output": "def tide(): ..."}, False),
        ({"error": "no rule"}, True),
    ]


def test_what_is_shown_beside_a_result_is_part_of_it():
    (response,) = results_of(CODEC.decode(rows()[-1]).parts)
    assert [part["type"] for part in response.response] == ["text", "blob"]


def test_a_content_is_a_text_a_part_or_a_list_of_these():
    for content in ("ab", {"text": "ab"}, ["ab"], ["a", {"text": "b"}]):
        parts = CODEC.decode({**said("u"), "content": content}).parts
        assert "".join(part["content"] for part in parts) == "ab"


@pytest.mark.parametrize("content", [7, [7], [[]], {"text": 7}, [{"functionCall": 1}], [{}]])
def test_a_message_of_another_shape_is_a_mark_that_keeps_it(content: object):
    made = {**said("u"), "content": content}
    decoded = CODEC.decode(made)
    assert (decoded.role, decoded.parts[-1]["native"]) == ("mark", made)


def test_messages_are_recognised():
    assert {recognise(made) for made in rows() if "id" in made} == {"gemini_cli"}
    assert not CODEC.recognises({"role": "user", "parts": [{"text": "hi"}]})


# --- updates ----------------------------------------------------------------------------------


def test_the_last_version_of_a_message_counts_and_those_it_holds_are_skipped():
    versions = [
        gemini("a", "Hel"),
        gemini("a", "Hello", tokens=None),
        gemini("a", "Hello", tokens={"total": 3}, toolCalls=[]),
    ]
    tree = Planted([HEADER, said("u"), *versions, said("u2")], "gemini_cli")
    tree.check()
    assert tree.skips == ["lines 3-4: line 5 is the same message with more in it"]
    assert tree.paths[0].split()[1:] == ["u", "a#3", "u2"]


def test_a_version_with_something_else_in_it_is_kept_beside():
    found, head = paths(said("u"), gemini("a", "one thing"), gemini("a", "another"), said("v"))
    assert (found, head) == (["u line 3 a#2 v"], "v")


def test_a_message_that_is_told_again_later_stays_where_it_was():
    found, head = paths(said("u"), gemini("a"), said("v"), gemini("a", "hi!"), gemini("b"))
    assert (found, head) == (["u a#2 v b"], "b")
    found, head = paths(said("u"), gemini("a"), said("v"), gemini("a", "hi!"))
    assert (found, head) == (["u a#2 v"], "v")


# --- rewinds ----------------------------------------------------------------------------------


def test_what_is_taken_back_stays_as_a_branch():
    found, head = paths(said("u"), gemini("a"), said("v"), gemini("b"), back("v"), said("w"))
    assert (found, head) == (["u a v b line 6", "u a w"], "w")


def test_the_head_is_before_what_was_taken_back():
    found, head = paths(said("u"), gemini("a"), said("v"), back("v"))
    assert (found, head) == (["u a v line 5"], "a")


@pytest.mark.parametrize("name", ["nobody", "u", ""])
def test_an_unknown_message_takes_everything_back_and_nothing_is_lost(name: str):
    found, head = paths(said("u"), gemini("a"), back(name), said("w"), gemini("b"))
    assert (found, head) == (["u a line 4", "w b"], "b")


def test_everything_taken_back_leaves_the_head_on_the_session():
    _, head = paths(said("u"), gemini("a"), back("nobody"))
    assert head == ""


def test_an_id_that_was_taken_back_may_come_again_as_another_message():
    found, head = paths(said("u"), gemini("a"), back("a"), gemini("a", "other"))
    assert (found, head) == (["u a line 4", "u a#2"], "a#2")


def test_rewinds_one_after_the_other():
    made = [said("u"), gemini("a"), said("v"), back("v"), said("w"), back("u"), said("x")]
    found, head = paths(*made)
    assert (found, head) == (["u a v line 5", "u a w line 7", "x"], "x")


# --- $set -------------------------------------------------------------------------------------


def test_other_messages_in_the_place_of_all_are_a_compaction():
    history = [said("sum", "So far: tides."), said("v", "go on")]
    tree = Planted(
        [HEADER, said("u"), gemini("a"), {"$set": {"messages": history}}, gemini("b")],
        "gemini_cli",
    )
    tree.check()
    mark = tree.skeleton.entries[3]
    assert mark.tells is not None
    assert (mark.tells.kind, mark.role, len(tree.paths)) == ("compaction", "mark", 1)


def test_the_same_messages_with_less_in_them_are_no_compaction():
    history = [said("u", "masked"), gemini("a")]
    tree = Planted([HEADER, said("u"), gemini("a"), {"$set": {"messages": history}}], "gemini_cli")
    tree.check()
    assert tree.skeleton.entries[3].beside
    assert len(tree.paths) == 1


# --- in a store -------------------------------------------------------------------------------


async def test_a_session_comes_in_whole(store: sessiontree.Store):
    done, chat = await brought(store, LINES)
    assert (done.format, done.entries, done.kept, done.skipped) == ("gemini_cli", 14, 12, 2)
    assert (done.branch_points, done.roots, done.closed) == (1, 1, 1)
    assert (chat.topic, chat.title) == ("5f0e-session", "Tides")
    assert await roles(chat) == "mumaammua"
    path = await chat.path()
    assert [m.key for m in path if m.role != "mark"] == ["u1", "a1#3", "a2", "u3", "a4"]
    assert path[-1].text == "It is blue."
    assert [m.raw for m in path if m.key == "a4"] == [LINES.read_text("utf-8").splitlines()[-1]]
    answer = next(m for m in path if m.key == "a1#3")
    assert (answer.model, answer.usage) == ("gemini-3-pro", {"input": 10, "output": 5, "total": 15})


async def test_a_compaction_stands_for_what_came_before(store: sessiontree.Store, tmp_path: Path):
    history = [said("sum", "So far: tides."), gemini("ok", "Understood.")]
    made = [HEADER, said("u", "secret start"), {"$set": {"messages": history}}, said("v", "on")]
    _, chat = await brought(store, write(tmp_path / "session.jsonl", made))
    said_now = await sent(chat, "gemini")
    assert "So far: tides." in said_now
    assert "secret start" not in said_now
    assert "secret start" in await texts(chat)


async def test_a_document_of_before_comes_in_too(store: sessiontree.Store):
    done, chat = await brought(store, DOCUMENT)
    assert (done.format, done.entries, done.kept) == ("gemini_cli", 6, 6)
    assert await roles(chat) == "muamua"
    assert (chat.topic, chat.title) == ("5f0e-legacy", "Old tides")
    messages = json.loads(DOCUMENT.read_text("utf-8"))["messages"]
    assert [m.native for m in (await chat.path())[1:]] == messages


async def test_a_session_that_grows_adds_what_is_new(store: sessiontree.Store, tmp_path: Path):
    lines = LINES.read_text("utf-8").splitlines(keepends=True)
    file = tmp_path / "session.jsonl"
    for end in range(2, len(lines) + 1):
        file.write_text("".join(lines[:end]), "utf-8")
        await import_file(store, file)
    chat = await chat_of(store)
    assert [m.key for m in await chat.path() if m.role != "mark"][-2:] == ["u3", "a4"]
    everything = [m.raw async for m in chat.iter_messages()]
    assert {line.rstrip("\n") for line in lines} <= set(everything)
    assert await store.check() == []


async def test_the_file_of_the_corpus(store: sessiontree.Store, corpus: Path):
    done, chat = await brought(store, corpus / "gemini-cli" / "session.jsonl")
    assert (done.entries, done.kept, await roles(chat)) == (3, 3, "mua")


# --- damage -----------------------------------------------------------------------------------


@pytest.mark.parametrize("raw", [LINES.read_bytes(), DOCUMENT.read_bytes()], ids=["lines", "one"])
async def test_damaged_files_are_refused_or_mended(tmp_path: Path, raw: bytes):
    file = tmp_path / "session"
    outcomes = set[bool]()
    for bad in damaged(raw):
        file.write_bytes(bad)
        outcomes.add(await survives(file, "gemini_cli"))
    assert outcomes == {True, False}


def test_messages_of_a_document_that_are_none_are_skipped():
    document = {**HEADER, "messages": [said("u"), 7, None, gemini("a"), {"type": 3}]}
    tree = Planted(json.dumps(document), "gemini_cli")
    tree.check()
    assert tree.paths[0].split()[1:] == ["u", "a"]
    assert len(tree.skips) == 3


def test_a_type_that_is_no_text_is_told():
    with pytest.raises(FormatError, match="its type is a number"):
        CODEC.decode({"type": 7})


WORDS = """id type content user gemini info toolCalls thoughts name args result status error $set
$rewindTo messages text functionResponse functionCall response parts timestamp sessionId
projectHash tokens a b subject description inlineData mimeType data"""


@given(st.lists(objects(WORDS) | st.builds(said, st.sampled_from("ab")), max_size=8))
def test_rows_of_any_shape_make_a_sound_tree_or_a_clear_error(made: list[dict[str, Any]]):
    plants([HEADER, said("u"), *made], "gemini_cli")
    plants(json.dumps({**HEADER, "messages": made}), "gemini_cli")


IDS = st.sampled_from("abcd")


@given(
    st.lists(
        st.builds(said, IDS, st.sampled_from(["x", "xy", "z"]))
        | st.builds(gemini, IDS, st.sampled_from(["x", "xy", "z"]))
        | st.builds(back, IDS),
        max_size=14,
    )
)
def test_the_path_of_the_head_is_what_gemini_cli_would_load(made: list[dict[str, Any]]):
    live: dict[str, dict[str, Any]] = {}
    for one in made:
        if "$rewindTo" not in one:
            live[one["id"]] = one
            continue
        names = list(live)
        cut = names.index(one["$rewindTo"]) if one["$rewindTo"] in live else 0
        live = {name: live[name] for name in names[:cut]}
    if not any("id" in one for one in made):
        return
    tree = Planted([HEADER, *made], "gemini_cli")
    tree.check()
    loaded = [json.loads(text) for text in texts_to_head(tree)]
    assert loaded == list(live.values())


def texts_to_head(tree: Planted) -> list[str]:
    """The messages on the path of the head, as text."""
    entries, parent = tree.skeleton.entries, tree.plan.parent
    at, found = tree.plan.heads[0], list[str]()
    while at != -1:
        if entries[at].role != "mark":
            found.append(tree.skeleton.source.text(entries[at]))
        at = parent[at]
    return found[::-1]


async def test_a_message_that_its_program_changed_in_place_is_what_it_was_when_it_was_stored(
    store: sessiontree.Store, tmp_path: Path
):
    """A document is written anew each time: its last message may get its calls later."""
    file = tmp_path / "session.json"
    call = {"id": "c", "name": "look", "args": {}, "result": None}
    versions = [gemini("a"), gemini("a", toolCalls=[call]), gemini("a", toolCalls=[call] * 2)]
    for last in versions:
        file.write_text(json.dumps({**HEADER, "messages": [said("u"), last]}))
        await import_file(store, file)
        assert await store.check() == []
    file.write_text(json.dumps({**HEADER, "messages": [said("u"), last, said("v")]}))
    await import_file(store, file)
    assert await roles(await chat_of(store)) == "muau"
    assert await store.check() == []
