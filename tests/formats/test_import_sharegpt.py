"""ShareGPT: conversations without ids."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from chats import chats, fixture

from sessiontree.core.message import calls_of, results_of, text_of
from sessiontree.formats import codec


def test_each_item_is_a_conversation_in_its_order():
    found, told = fixture("sharegpt")
    assert told == []
    assert [len(chat.paths) for chat in found] == [1, 1, 1]
    assert found[0].paths == ["system line 2 line 3 line 4 line 5"]


def test_conversations_that_begin_the_same_have_names_of_their_own():
    topics = [chat.document.opening.topic for chat in fixture("sharegpt")[0]]
    assert topics[0] == "s1"
    assert topics[2] == f"{topics[1]}#2"
    assert topics == [chat.document.opening.topic for chat in fixture("sharegpt")[0]]


def test_a_call_and_what_was_observed_are_a_pair():
    entries = fixture("sharegpt")[0][0].skeleton.entries
    assert [call.name for entry in entries for call in entry.calls] == ["tides"]
    assert [result.given for entry in entries for result in entry.results] == [False]


def test_an_observation_of_nothing_is_kept_and_said_and_a_strange_sender_is_a_mark():
    chat = fixture("sharegpt")[0][2]
    assert chat.paths == ["line 1 line 2 line 3 line 3* line 4"]
    assert [entry.role for entry in chat.skeleton.entries[1:]] == [
        "user",
        "assistant",
        "tool",
        "mark",
    ]


@pytest.mark.parametrize(
    ("value", "calls"),
    [
        ('{"name": "f", "arguments": {"a": 1}}', [("f", {"a": 1})]),
        ('[{"name": "f", "arguments": {}}, {"name": "g"}]', [("f", {}), ("g", None)]),
        ("f(1)", [("function", "f(1)")]),
        ("[]", [("function", "[]")]),
        ("[1]", [("function", "[1]")]),
        ("[" * 9_999, [("function", "[" * 9_999)]),
    ],
)
def test_calls_are_read_from_their_text(value: str, calls: list[tuple[str, object]]):
    parts = codec("sharegpt").decode({"from": "function_call", "value": value}).parts
    assert [(call.name, call.arguments) for call in calls_of(parts)] == calls


def test_the_text_may_be_one_conversation_a_line():
    lines = [{"conversations": [{"from": "human", "value": str(i)}]} for i in range(3)]
    found, told = chats("".join(json.dumps(line) + "\n" for line in lines), "sharegpt")
    assert (len(found), told) == (3, [])


def test_what_it_writes_it_reads():
    (native,) = codec("sharegpt").encode("user", [{"type": "text", "content": "Hi"}])
    decoded = codec("sharegpt").decode(native)
    assert (decoded.role, text_of(decoded.parts), results_of(decoded.parts)) == ("user", "Hi", ())


def test_a_real_data_set_imports_whole(corpus: Path):
    file = corpus / "sharegpt" / "glaive_toolcall_en_demo.json"
    found, told = chats(file.read_bytes(), "sharegpt")
    assert (len(found), told) == (300, [])
    entries = [entry for chat in found for entry in chat.skeleton.entries]
    assert sum(len(entry.calls) for entry in entries) == 211
    assert sum(len(entry.results) for entry in entries) == 211
    assert all(chat.repairs == [] and not chat.plan.ours for chat in found)
    assert len({chat.document.opening.topic for chat in found}) == 300
