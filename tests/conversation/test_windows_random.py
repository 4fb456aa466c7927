"""Windows of random trees in a file: valid, within budget, the newest turn kept, the same each
time, and each the beginning of the next one's, after any reclaim."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from windowing import TARGETS, png, violations

import sessiontree
from sessiontree import BudgetTooSmall, Conversation, ReclaimRefused, Window
from sessiontree.core import planner
from sessiontree.core.reclaim import draw
from sessiontree.formats import codec

Part = dict[str, Any]

IDS = ("call_0", "call_1", "a b", "x" * 70, "é")
"""Of calls: reused from turn to turn, illegal here and there."""
WORDS = ("hello", "word " * 40, "你好世界" * 10, '{"a": 1}', " ")
OUTPUTS = ("", "ok", "line\n" * 150, '{"rows": [1, 2, 3]}')
IMAGE: Part = {
    "type": "blob", "mime_type": "image/png", "modality": "image", "content": png(600, 40)
}  # fmt: skip
BUDGETS = st.one_of(st.integers(1, 60), st.integers(60, 3_000))


def text(words: str) -> Part:
    return {"type": "text", "content": words}


@dataclass(frozen=True)
class Step:
    """A call of one tool or several; the results of some of them, in any order."""

    calls: tuple[Part, ...]
    answers: tuple[int, ...]
    output: Any
    thinks: bool


@dataclass(frozen=True)
class Turn:
    format: str
    asked: tuple[Part, ...]
    steps: tuple[Step, ...]
    answer: str | None


@dataclass(frozen=True)
class Do:
    """Another thing that happens to a tree; ``number`` picks where, or how much."""

    what: str
    number: int


@st.composite
def steps(draw: Any) -> Step:
    ids = draw(st.lists(st.sampled_from(IDS), min_size=1, max_size=3, unique=True))
    are_given = draw(st.booleans())
    calls = tuple(
        {"type": "tool_call", "name": draw(st.sampled_from(["read", "list"])), "arguments": {}}
        | ({"id": given} if are_given else {})
        for given in ids
    )
    order = draw(st.permutations(range(len(calls))))
    answers = tuple(order[: draw(st.integers(0, len(order)))] if draw(st.booleans()) else order)
    output = draw(st.one_of(st.sampled_from(OUTPUTS), st.just([text("shown"), IMAGE])))
    return Step(calls, answers, output, draw(st.booleans()))


@st.composite
def turns(draw: Any) -> Turn:
    asked = [text(draw(st.sampled_from(WORDS)))]
    asked += draw(st.lists(st.just(IMAGE), max_size=2)) if draw(st.booleans()) else []
    return Turn(
        draw(st.sampled_from(TARGETS)),
        tuple(asked),
        tuple(draw(st.lists(steps(), max_size=3))),
        draw(st.one_of(st.none(), st.sampled_from(WORDS[:4]))),
    )


RECLAIMS = ("elide", "images", "snapshot", "summarise", "extract", "cut")
HAPPENINGS = st.builds(
    Do,
    st.sampled_from(["branch", "system", "undo", "fork", *RECLAIMS]),
    st.integers(0, 1_000),
)
STORIES = st.lists(st.one_of(turns(), turns(), HAPPENINGS), min_size=1, max_size=8)


# --- Telling a story --------------------------------------------------------------------------


def native(format: str, role: Any, parts: list[Part]) -> list[dict[str, Any]]:
    return codec(format).encode(role, parts)


async def say(chat: Conversation, told: Turn) -> None:
    """One turn; calls that nobody answers are interrupted."""
    format = told.format
    async with chat.turn() as turn:
        for message in native(format, "user", list(told.asked)):
            await turn.add(message, format=format)
        for step in told.steps:
            said = [thought(format)] if step.thinks else []
            for message in native(format, "assistant", said + list(step.calls)):
                await turn.add(message, format=format)
            ids = [each.id for each in turn.open_calls]
            for at in step.answers:
                for message in native(format, "tool", [answer(step, at, ids[at])]):
                    await turn.add(message, format=format)
            if turn.open_calls:
                await turn.interrupt()
        if told.answer is not None:
            for message in native(format, "assistant", [text(told.answer)]):
                await turn.add(message, format=format)


def answer(step: Step, at: int, call_id: str) -> Part:
    name = step.calls[at]["name"]
    return {"type": "tool_call_response", "id": call_id, "response": step.output, "name": name}


def thought(format: str) -> Part:
    part: Part = {"type": "reasoning", "content": "hm", "provider": format}
    if format in ("anthropic", "bedrock"):
        part["signature"] = "sig"
    if format == "openai_responses":
        item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"}
        part["native"] = item
    return part


async def do(chat: Conversation, done: Do) -> Conversation:
    if done.what == "branch":
        places = [node.id async for node in chat.iter_messages() if node.is_boundary]
        await chat.branch(places[done.number % len(places)] if places else None)
    elif done.what == "system":
        prompt = {"role": "system", "content": f"Be {done.number}."}
        await chat.append(prompt, format="openai_chat")
    elif done.what == "undo":
        if await chat.history():
            await undo(chat)
    elif done.what == "fork":
        return await chat.fork()
    else:
        await reclaim(chat, done)
    return chat


async def undo(chat: Conversation) -> None:
    try:
        await chat.undo()
    except sessiontree.NothingToUndo:
        assert not any(move.is_current for move in await chat.history())


async def reclaim(chat: Conversation, done: Do) -> None:
    """Whatever comes of it, the window is as large as was told."""
    target = TARGETS[done.number % 5]
    before, moves = await chat.window(target=target), len(await chat.history())
    try:
        told = await chat.reclaim(
            done.what,
            target=target,
            keep=done.number if done.what != "images" else done.number % 3,
            protect=done.number,
            save=0,
            summarise=lambda ask: "what was said before",
        )
    except ReclaimRefused:
        assert len(await chat.history()) == moves
        return
    after = await chat.window(target=target)
    assert (told.before, told.after) == (before.tokens, after.tokens)
    assert after.tokens < before.tokens or not told.marks
    assert bool(told.marks) != bool(told.refused)


# --- What must hold -----------------------------------------------------------------------------


async def planned(chat: Conversation, target: str, budget: int | None) -> Window | int:
    """A window, or by how many tokens it would not fit."""
    try:
        found = await chat.window(budget, target=target)
    except BudgetTooSmall as error:
        return error.short
    assert violations(found) == []
    assert budget is None or found.tokens <= budget
    return found


async def held(chat: Conversation, target: str, budget: int | None) -> None:
    path = await chat.path()
    found = await planned(chat, target, budget)
    assert await planned(chat, target, budget) == found
    if isinstance(found, int):
        assert budget is not None
        assert found > 0
        return
    prompt = next((each for each in reversed(path) if each.role == "system"), None)
    at_hand = planner.plan(reversed(path), target, codec, budget=budget, system=prompt, draw=draw)
    assert at_hand == found
    newest = next((each.id for each in reversed(path) if each.role == "user"), None)
    assert newest is None or newest in found.ids
    assert found.complete == (not found.dropped.why)


async def goes_on(chat: Conversation, target: str) -> None:
    """The windows of the next turns begin with the bytes of this one."""
    await chat.append({"role": "user", "content": "and?"}, format="openai_chat")
    now = await chat.window(target=target)
    assert now.ready
    call = {"id": "call_0", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    step = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_0", "content": "ok"},
        {"role": "assistant", "content": "so"},
        {"role": "user", "content": "go on"},
    ]
    for batch in (step[:2], step[2:]):
        await chat.append(batch, format="openai_chat")
        later = await chat.window(target=target)
        assert later.system == now.system
        assert later.messages[: len(now.messages)] == now.messages
        assert violations(later) == []
        now = later


async def live(story: list[Turn | Do], budgets: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with sessiontree.open_store(Path(folder) / "s.db", durability="normal") as store:
            chat = await store.conversation()
            for each in story:
                if isinstance(each, Turn):
                    await say(chat, each)
                else:
                    chat = await do(chat, each)
            for leaf in [each for each in await chat.leaves() if each.is_boundary]:
                await chat.branch(leaf.id)
                for target in TARGETS:
                    for budget in (None, *budgets):
                        await held(chat, target, budget)
            await goes_on(chat, TARGETS[len(story) % 5])
            assert await store.check() == []


@settings(deadline=None)
@given(STORIES, st.lists(BUDGETS, min_size=1, max_size=2))
def test_every_window_of_a_random_tree_is_valid_and_fits(
    story: list[Turn | Do], budgets: list[int]
) -> None:
    asyncio.run(live(story, budgets))
