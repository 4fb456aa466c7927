"""Windows of so many messages, and summaries of what is too many whatever it costs."""

from __future__ import annotations

import pytest

import sessiontree
from sessiontree.conversation.handle import Conversation
from sessiontree.core.reclaim import Ask
from sessiontree.core.window import Budget
from sessiontree.errors import ReclaimRefused, WindowError

TARGET = "openai_chat"


def step(number: int) -> list[dict[str, object]]:
    """A turn of four messages: a prompt, a call, its result, an answer."""
    function = {"name": "look", "arguments": "{}"}
    call = {"id": f"c{number}", "type": "function", "function": function}
    return [
        {"role": "user", "content": f"line {number}"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": "seen"},
        {"role": "assistant", "content": f"answer {number}"},
    ]


@pytest.fixture
async def chat(store: sessiontree.Store) -> Conversation:
    """A system prompt, five turns of four messages, and a prompt."""
    chat = await store.conversation("T-80005", system="You draft replies.")
    for number in range(5):
        await chat.append(step(number))
    await chat.append({"role": "user", "content": "line 5"})
    return chat


@pytest.mark.parametrize(("most", "sent"), [(1, 1), (4, 1), (5, 5), (8, 5), (9, 9), (99, 21)])
async def test_the_newest_whole_turns_of_so_many_messages_are_sent(
    chat: Conversation, most: int, sent: int
):
    window = await chat.window(Budget(messages=most), target=TARGET)
    assert len(window.messages) == sent
    assert len(window.dropped) == 21 - sent
    assert window.system == {"role": "system", "content": "You draft replies."}
    assert sessiontree.violations(window.messages, TARGET, system=window.system) == []


async def test_the_newest_turn_is_sent_however_many_messages_it_has(chat: Conversation):
    await chat.append(step(5)[1:3])
    window = await chat.window(Budget(messages=1), target=TARGET)
    assert [message["role"] for message in window.messages] == ["user", "assistant", "tool"]


async def test_messages_and_tokens_limit_together(chat: Conversation):
    both = await chat.window(Budget(tokens=60, messages=9), target=TARGET)
    assert len(both.messages) < 9
    assert both.tokens <= 60


def test_no_message_at_all_is_no_budget():
    with pytest.raises(WindowError):
        Budget(messages=0)


async def test_a_summary_of_too_many_messages_may_be_longer_than_they_are(chat: Conversation):
    asked: list[Ask] = []

    def summarise(ask: Ask) -> str:
        asked.append(ask)
        return "They looked, and saw. " * 40 * len(asked)

    await chat.reclaim("summarise", keep=Budget(messages=5), target=TARGET, summarise=summarise)
    window = await chat.window(target=TARGET)
    assert [message["content"] for message in window.messages[1:]] == [
        "line 4", None, "seen", "answer 4", "line 5",
    ]  # fmt: skip
    assert "They looked" in window.messages[0]["content"]
    assert asked[0].turns == 4
    with pytest.raises(ReclaimRefused):
        await chat.reclaim("summarise", keep=1, target=TARGET, summarise=summarise)


async def test_nothing_is_summarised_where_all_fits(chat: Conversation):
    done = await chat.reclaim(
        "summarise", keep=Budget(messages=21), target=TARGET, summarise=lambda ask: "never"
    )
    assert done.marks == []
    assert done.refused[0].why == "all that is sent fits 21 messages, or is one turn"
