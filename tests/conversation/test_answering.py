"""Results that a turn makes itself: in the format of the call, whatever ids it bears."""

from __future__ import annotations

from typing import Any

import pytest
from talk import asks, call, result, user

from sessiontree import Conversation, OrphanToolResult, Store, ToolCall, TreeError
from sessiontree.core.rules import PROVIDERS
from sessiontree.formats import codec

IDS = [
    ("call_1", None),
    (None, "call_0"),
    ("call_1", None, "call_1"),
    (None, None),
    ("x", None, "call_2", None),
]


def made(format: str, *calls: tuple[str | None, str]) -> dict[str, Any]:
    """An assistant message that calls (id, name)."""
    parts = [
        {"type": "tool_call", "name": name, "arguments": {}}
        | ({} if given is None else {"id": given})
        for given, name in calls
    ]
    if format == "openai_chat":  # its codec gives every call an id
        return call(*(given for given, _ in calls))
    (native,) = codec(format).encode("assistant", parts)
    return native


@pytest.mark.parametrize("format", ["openai_chat", "gemini", "otel"])
@pytest.mark.parametrize("ids", IDS, ids=str)
async def test_an_interruption_closes_calls_with_and_without_ids_of_one_message(
    chat: Conversation, format: str, ids: tuple[str | None, ...]
) -> None:
    async with chat.turn() as turn:
        await turn.add(user())
        names = [(given, f"tool_{at}") for at, given in enumerate(ids)]
        await turn.add(made(format, *names), format=format)
        saved = await turn.interrupt()
        assert turn.open_calls == []
    assert sum(len(message.tool_results) for message in saved) == len(ids)
    assert saved[-1].is_boundary


async def test_an_interruption_closes_calls_of_several_messages_that_bear_the_same_made_id(
    chat: Conversation,
) -> None:
    async with chat.turn() as turn:
        await turn.add(call("call_0"))
        await turn.add(call(None))
        await turn.add(call(None, None))
        await turn.add(result("call_0"))
        await turn.interrupt()
        assert turn.open_calls == []


async def test_a_result_with_an_id_answers_the_call_that_was_given_it_before_one_that_was_not(
    chat: Conversation,
) -> None:
    async with chat.turn() as turn:
        await turn.add(made("gemini", ("call_1", "a"), (None, "b")), format="gemini")
        answer = {"functionResponse": {"id": "call_1", "name": "a", "response": {}}}
        await turn.add({"role": "user", "parts": [answer]}, format="gemini")
        assert [open_call.name for open_call in turn.open_calls] == ["b"]
        await turn.answer(turn.open_calls[0], "done")


@pytest.mark.parametrize("format", PROVIDERS)
async def test_an_answer_is_written_in_the_format_of_its_call(store: Store, format: str) -> None:
    chat = await store.conversation(format=format)
    parts = [
        {"type": "tool_call", "id": f"c{at}", "name": "f", "arguments": {"n": at}}
        for at in range(2)
    ]
    async with chat.turn() as turn:
        for native in codec(format).encode("assistant", parts):
            await turn.add(native)
        second, first = reversed(turn.open_calls), turn.open_calls[0]
        await turn.answer(next(second), {"rows": [1]})
        saved = await turn.answer(first, "it broke", is_error=True)
    assert saved.format == format
    assert saved.is_boundary
    results = [r for message in await chat.path() for r in message.tool_results]
    assert [r.id for r in results] == ["c1", "c0"]
    assert "it broke" in saved.raw
    assert "rows" in (await chat.path())[-2].raw


async def test_calls_of_one_name_without_ids_are_answered_in_order_or_not_at_all(
    chat: Conversation,
) -> None:
    async with chat.turn() as turn:
        await turn.add(made("gemini", (None, "f"), (None, "g"), (None, "f")), format="gemini")
        first, other, last = turn.open_calls
        with pytest.raises(TreeError, match=r"'f' bears no id, .*\(answer them in the order"):
            await turn.answer(last, "z")
        assert [call.id for call in turn.open_calls] == ["call_0", "call_1", "call_2"]
        for call, said in ((other, "y"), (first, "x"), (last, "z")):
            await turn.answer(call, said)
    (calls, *_) = await chat.path()
    window = await chat.window(target="gemini")
    sent = [part["functionResponse"] for part in window.messages[-1]["parts"]]
    assert [call.name for call in calls.tool_calls] == [each["name"] for each in sent]
    assert ["x" in str(sent[0]), "y" in str(sent[1]), "z" in str(sent[2])] == [True] * 3


async def test_an_answer_to_a_call_that_is_not_open_is_refused(chat: Conversation) -> None:
    async with chat.turn() as turn:
        with pytest.raises(OrphanToolResult):
            await turn.answer(ToolCall("c0", "f", {}), "x")
        (asked,) = (await turn.add(asks(("f", {})))).tool_calls
        await turn.answer(asked, "x")
        with pytest.raises(OrphanToolResult):
            await turn.answer(asked, "x")
    with pytest.raises(TreeError, match="over"):
        await turn.answer(asked, "x")
