"""Requests to providers as conversations."""

from __future__ import annotations

import json
from typing import Any

import pytest
from chats import FILES, FIXTURES, chats, fixture, only

from sessiontree.formats import transcripts

PROVIDERS = ("openai_chat", "openai_responses", "anthropic", "bedrock", "gemini")


@pytest.mark.parametrize("format", PROVIDERS)
def test_a_request_is_a_conversation_with_its_system_prompt_first(format: str):
    (chat,), told = fixture(format)
    assert (told, len(chat.paths), chat.repairs, chat.skips) == ([], 1, [], [])
    roles = [entry.role for entry in chat.skeleton.entries[1:]]
    assert roles[:3] == ["system", "user", "assistant"]
    assert roles[3:] in (["tool"], [])


@pytest.mark.parametrize("format", PROVIDERS)
def test_messages_are_stored_as_they_are_in_the_providers_own_format(format: str):
    (chat,), _ = fixture(format)
    reader = chat.skeleton.reader
    given = json.loads((FIXTURES / FILES[format]).read_text())
    messages = next(given[key] for key in ("messages", "input", "contents") if key in given)
    stored = [
        reader.message(chat.skeleton.source.text(entry), entry)
        for entry in chat.skeleton.entries[1:]
    ]
    assert {message.format for message in stored} == {format}
    assert [json.loads(message.content) for message in stored][-len(messages) :] == messages


def test_the_other_fields_of_a_request_are_kept():
    (chat,), _ = fixture("anthropic")
    assert chat.document.opening.meta == {"model": "claude-x", "max_tokens": 10}


SAID = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]


@pytest.mark.parametrize(
    "content",
    [
        {"messages": SAID},
        [{"messages": SAID}],
        SAID,
        "\n".join(map(json.dumps, SAID)),
        json.dumps({"messages": SAID}) + "\n",
    ],
)
def test_one_or_several_or_bare_messages(content: Any):
    assert only(content, "openai_chat").paths == ["line 1 line 2"]


def test_several_requests_are_several_conversations():
    found, told = chats(
        [{"messages": SAID}, {"messages": SAID[:1]}, {"messages": 5}], "openai_chat"
    )
    assert [len(chat.plan.order) for chat in found] == [2, 1]
    assert told == ["line 3: it is no conversation: it has no list of messages"]


def test_an_input_that_is_text_is_a_users_message():
    assert only({"input": "Hi", "instructions": "x"}, "openai_responses").paths == ["system line 2"]


def test_a_message_of_another_format_is_told():
    chat = only({"messages": [*SAID, {"role": "robot", "content": "beep"}]}, "openai_chat")
    assert chat.paths == ["line 1 line 2"]
    assert "its role is 'robot'" in chat.skips[0]


def test_calls_in_a_users_message_are_a_mark():
    call = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    odd = {"role": "user", "content": [call]}
    chat = only({"system": "s", "messages": [*SAID, odd]}, "anthropic")
    assert chat.paths == ["system line 2 line 3 line 4"]
    assert chat.skeleton.entries[-1].role == "mark"
    assert "no message that anthropic writes" in chat.repairs[0]


@pytest.mark.parametrize(
    ("content", "format"),
    [
        ({"messages": SAID}, "openai_chat"),
        ({"model": "m", "system": "s", "messages": SAID}, "anthropic"),
        (SAID, "openai_chat"),
        ({"input": "Hi", "instructions": "s"}, "openai_responses"),
        ({"messages": [{"role": "user", "content": [{"text": "x"}]}]}, "bedrock"),
        ({"contents": [{"parts": [{"text": "x"}]}]}, "gemini"),
        ([{"role": "user", "parts": [{"text": "x"}]}], "gemini"),
        (
            [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]}],
            "anthropic",
        ),
    ],
)
def test_the_provider_is_told_by_the_keys(content: Any, format: str):
    assert transcripts.detect(json.dumps(content).encode(), "x.json") == format
