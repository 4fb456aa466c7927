"""sessiontree's own transcript: its lines, and what its reader makes of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from planted import Planted, read

from sessiontree import formats
from sessiontree.core.message import META, Message, MessageRow
from sessiontree.core.records import Checkpoint, ConversationInfo, Move
from sessiontree.errors import FormatError
from sessiontree.formats import jsonl

INFO = ConversationInfo(7, "ada", "T-1", "Tides", "anthropic", 3, None, None, {"mine": 1}, 10, 20)


def message(content: str, **more: Any) -> Message:
    row = MessageRow(
        3,
        7,
        2,
        "user",
        "openai_chat",
        1,
        0,
        4,
        None,
        None,
        "hi",
        None,
        None,
        None,
        None,
        99,
        content,
    )
    return Message(row._replace(**more), formats.codec)


def line(message_id: int, parent: int | None, role: str = "user", **more: Any) -> dict[str, Any]:
    native = {"role": role, "content": f"says {message_id}"}
    made = {"id": message_id, "role": role, "format": "openai_chat", "content": json.dumps(native)}
    return made | ({} if parent is None else {"parent": parent}) | {"created_at": 1} | more


def calls(message_id: int, parent: int, *ids: str) -> dict[str, Any]:
    function = {"name": "f", "arguments": "{}"}
    tools = [{"id": call, "type": "function", "function": function} for call in ids]
    native = {"role": "assistant", "content": None, "tool_calls": tools}
    return line(message_id, parent, "assistant", content=json.dumps(native))


def answers(message_id: int, parent: int, call: str) -> dict[str, Any]:
    native = {"role": "tool", "tool_call_id": call, "content": "ok"}
    return line(message_id, parent, "tool", content=json.dumps(native))


HEADER = {"sessiontree": 1, "owner": "ada", "topic": "T-1", "head": 2, "source": "abc"}
END = {"end": 2}


# --- writing ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        '{"role":"user","content":"é\\u0000\\ud800 🐚 \u2028 שלום"}',
        '{"b": 1e400, "a": 123456789012345678901234567890, "a": 2, "role":"user","content":""}',
        '{\n  "role": "user",\t"content": "spread"\n}',
    ],
)
def test_a_message_is_one_line_that_holds_its_content_to_the_byte(content: str):
    written = jsonl.message_line(message(content))
    assert written.endswith("\n")
    assert written.count("\n") == 1
    assert json.loads(written)["content"] == content


def test_all_that_a_message_holds_is_written_and_what_it_has_not_is_left_out():
    written = json.loads(jsonl.message_line(message('{"role":"user","content":"hi"}')))
    assert written == {
        "id": 3,
        "parent": 2,
        "role": "user",
        "format": "openai_chat",
        "content": '{"role":"user","content":"hi"}',
        "preview": "hi",
        "tokens": 4,
        "created_at": 99,
    }
    full = message("{}", usage='{"a":1}', model="m", key="k", meta='{"x":2}', ref_id=1)
    written = json.loads(jsonl.message_line(full))
    assert (written["usage"], written["model"], written["key"]) == ({"a": 1}, "m", "k")
    assert (written["meta"], written["ref"]) == ({"x": 2}, 1)


def test_the_header_names_the_conversation_and_not_where_it_came_from():
    header = json.loads(jsonl.header_line(INFO))
    assert header == {
        "sessiontree": 1,
        "owner": "ada",
        "topic": "T-1",
        "title": "Tides",
        "format": "anthropic",
        "meta": {"mine": 1},
        "created_at": 10,
        "head": 3,
        "shows": "tree",
        "source": jsonl.identity(INFO),
    }
    origin = {"source": header["source"], "created_at": 10}
    copy = INFO._replace(id=99, created_at=5000, meta=jsonl.with_origin(INFO.meta, origin))
    assert json.loads(jsonl.header_line(copy)) == header


def test_our_other_notes_stay_in_the_meta_of_a_header():
    noted = INFO._replace(meta={META: {"kind": "x", "origin": {"source": "s"}}})
    header = json.loads(jsonl.header_line(noted))
    assert (header["meta"], header["source"]) == ({META: {"kind": "x"}}, "s")


def test_checkpoints_and_moves_are_lines():
    assert json.loads(jsonl.checkpoint_line(Checkpoint("a", 3, None, 5))) == {
        "checkpoint": "a",
        "message": 3,
        "created_at": 5,
    }
    assert json.loads(jsonl.move_line(Move(1, None, 3, "append", 5, True))) == {
        "move": 1,
        "to": 3,
        "cause": "append",
        "created_at": 5,
        "current": True,
    }


# --- reading ------------------------------------------------------------------------------------


def planted(*rows: dict[str, Any]) -> Planted:
    tree = Planted(list(rows), "jsonl")
    tree.check()
    return tree


def test_a_conversation_is_read_as_it_is():
    tree = planted(HEADER, line(1, None), line(2, 1, "assistant"), END)
    assert (tree.paths, tree.head, tree.skips, tree.repairs) == (["1 2"], "2", [], [])
    assert [entry.key for entry in tree.skeleton.entries] == [None] * 4


def test_the_head_may_be_before_the_first_message():
    header = {key: value for key, value in HEADER.items() if key != "head"}
    assert planted(header, line(1, None), END).head is None


def test_a_tree_of_ours_stands_as_it_is_even_where_an_import_would_move_a_result():
    rows = [
        HEADER | {"head": 3},
        line(1, None),
        calls(2, 1, "c"),
        answers(3, 2, "c"),
        line(4, 2),
        answers(5, 4, "c"),
        line(6, None),
        line(7, None),
        {"end": 7},
    ]
    tree = planted(*rows)
    assert sorted(tree.paths) == ["1 2 3", "1 2 4 5", "6", "7"]
    assert (tree.repairs, tree.head) == ([], "3")


def test_a_mark_that_holds_a_result_answers_nothing():
    mark = {**answers(2, 1, "c"), "role": "mark"}
    tree = planted(HEADER, line(1, None), mark, END)
    assert (tree.paths, tree.plan.orphans) == (["1 2"], {})


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ({"format": "klingon"}, "there is no message format 'klingon'"),
        ({"content": "not JSON"}, "the content is not JSON"),
        ({"content": '{"role":"robot"}'}, "its role is 'robot'"),
        ({"content": 7}, "it.content is a number"),
        ({"role": "robot"}, "its role is 'robot'"),
    ],
)
def test_a_message_that_cannot_be_read_is_skipped_and_the_next_follows_its_parent(
    broken: dict[str, Any], why: str
):
    tree = planted(HEADER, line(1, None), line(2, 1) | broken, line(3, 2), END)
    assert tree.paths == ["1 3"]
    assert why in tree.skips[0]
    assert tree.skips[0].startswith("line 3: ")


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ({"id": "x", "content": "{}"}, "it has no id"),
        ({"something": "else"}, "it is neither a message nor a header"),
        ({"checkpoint": "x", "message": None}, "it is neither a message nor a header"),
        ({"move": 1, "cause": "magic"}, "it is neither a message nor a header"),
        ({"sessiontree": 2}, "it is of version 2 of this format; this reads 1"),
    ],
)
def test_a_line_that_is_nothing_is_skipped_with_the_reason(broken: dict[str, Any], why: str):
    tree = planted(HEADER, line(1, None), broken, END)
    assert (tree.paths, len(tree.skips)) == (["1"], 1)
    assert why in tree.skips[0]


def test_a_file_of_a_newer_version_says_so():
    with pytest.raises(FormatError, match="version 2 of this format"):
        read([{"sessiontree": 2}], "jsonl")


def test_a_file_without_its_end_says_so():
    tree = planted(HEADER | {"head": 1}, line(1, None))
    assert tree.repairs == ["line 2: the file is cut off after it; its end is missing"]


def test_a_key_that_is_there_twice_is_given_once():
    tree = planted(HEADER, line(1, None, key="k"), line(2, 1, key="k"), END)
    assert [entry.key for entry in tree.skeleton.entries] == [None, "k", None, None]
    assert tree.repairs == ["line 3: its key 'k' is that of another row; it is kept without"]


def test_checkpoints_are_labels_with_their_notes_and_times():
    label = {"checkpoint": "here", "message": 1, "note": "why", "created_at": 5}
    tree = planted(HEADER, line(1, None), line(2, 1), label, END)
    assert tree.plan.labels == [(0, 1, "here", "why", 5)]
