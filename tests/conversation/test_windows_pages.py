"""The ladder and pages of print: only where they fit what has to be met."""

from __future__ import annotations

import pytest

from sessiontree import Conversation

MODEL = "claude-opus-5-5"


@pytest.fixture
async def talk(chat: Conversation) -> Conversation:
    """Forty prompts and answers of 300 words, and a prompt."""
    for number in range(40):
        await chat.append(
            [
                {"role": "user", "content": f"question {number} " + "about the parcel " * 100},
                {"role": "assistant", "content": "It is on its way to you. " * 50},
            ]
        )
    await chat.append({"role": "user", "content": "And now?"})
    return chat


async def test_pages_that_fit_stand_for_old_turns(talk: Conversation) -> None:
    done = await talk.reclaim("auto", budget=40_000, target="anthropic", model=MODEL)
    assert [mark.native["kind"] for mark in done.marks] == ["snapshot"]
    assert (await talk.window(40_000, target="anthropic", model=MODEL)).ready


@pytest.mark.parametrize("budget", [300, 3_000, 20_000])
async def test_pages_that_do_not_fit_bar_no_later_rung(talk: Conversation, budget: int) -> None:
    done = await talk.reclaim("auto", budget=budget, target="anthropic", model=MODEL)
    assert "snapshot" not in [mark.native["kind"] for mark in done.marks]
    assert "pages" in next(each.why for each in done.refused if each.kind == "snapshot")
    window = await talk.window(budget, target="anthropic", model=MODEL)
    assert window.ready
    assert window.tokens <= budget
