"""Windows and reclaims of what nobody should write, asked for as nobody should ask."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from windowing import LOG, TARGETS, picture, user, violations

import sessiontree
from sessiontree import (
    Budget,
    CheckpointNotFound,
    Conversation,
    HeadMoved,
    MessageNotFound,
    ReclaimRefused,
    Store,
    WindowError,
)

PLENTY = 300
"""Of what usually comes in twos."""


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def calls(*ids: str) -> dict[str, Any]:
    made = [
        {"id": i, "type": "function", "function": {"name": "read", "arguments": "{}"}} for i in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


def result(call_id: str, text: str = "r") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


async def filled(chat: Conversation, turns: int = 20) -> Conversation:
    for i in range(turns):
        said = [user(f"q{i} " + "word " * 50), calls(f"c{i}"), result(f"c{i}", LOG)]
        await chat.append([*said, assistant(f"a{i} " + "word " * 50)])
    return chat


# --- Arguments --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "nonsense",
    [
        {"model": 5},
        {"model": ["gpt"]},
        {"count": 5},
        {"count": lambda message: None},
        {"count": lambda message: 1.5},
        {"count": lambda message: -1},
        {"count": lambda message: True},
        {"tools": "yes"},
        {"exact": "yes"},
        {"thinking": ["auto"]},
    ],
)
async def test_options_that_are_none_are_refused_by_name(
    chat: Conversation, nonsense: dict[str, Any]
) -> None:
    await chat.append([user("hi"), assistant("yes?")])
    with pytest.raises(WindowError, match=next(iter(nonsense))):
        await chat.window(target="anthropic", **nonsense)


@pytest.mark.parametrize("kind", ["auto", "elide", "cut"])
async def test_a_reclaim_for_a_model_without_a_name_is_refused(
    chat: Conversation, kind: Any
) -> None:
    await filled(chat, 2)
    head = chat.head
    with pytest.raises(WindowError, match="the model is 5"):
        await chat.reclaim(kind, budget=100, target="openai_chat", model=5)  # type: ignore[arg-type]
    assert chat.head == head


async def test_a_cut_that_keeps_nothing_but_the_newest_turn_says_so(chat: Conversation) -> None:
    await chat.append([user("hi"), assistant("yes?")])
    told = await chat.reclaim("cut", target="openai_chat", keep=0)
    assert [each.why for each in told.refused] == ["all that is sent fits 0 tokens, or is one turn"]


async def test_a_budget_of_tokens_is_taken_as_an_integer_is(chat: Conversation) -> None:
    await filled(chat)
    told = await chat.reclaim("auto", budget=Budget(6_000), target="openai_chat")
    assert told.marks
    assert (await chat.window(target="openai_chat")).tokens <= 4_200
    await chat.undo()
    assert (await chat.reclaim("auto", budget=6_000, target="openai_chat")).after == told.after


async def test_a_budget_of_bytes_is_climbed_for_as_well(chat: Conversation) -> None:
    for number in range(6):
        await chat.append([picture(400 + number), assistant("I see")])
    whole = (await chat.window(target="anthropic")).bytes
    told = await chat.reclaim(
        "auto", budget=Budget(tokens=10**9, bytes=whole // 2), threshold=1.0, target="anthropic"
    )
    assert told.marks
    assert (await chat.window(target="anthropic")).bytes <= whole // 2


async def test_a_budget_of_neither_tokens_nor_bytes_is_none_to_climb_for(
    chat: Conversation,
) -> None:
    with pytest.raises(WindowError, match="needs a budget"):
        await chat.reclaim("auto", budget=Budget(images=1), target="anthropic")


# --- What is stored ---------------------------------------------------------------------------

ODD_MARKS: list[dict[str, Any]] = [
    {"kind": "snapshot", "text": "what was said", "model": 5},
    {"kind": "snapshot", "text": ""},
    {"kind": "extract", "text": "what was found", "earlier": [1]},
    {"kind": "summary", "text": 5},
    {"kind": "elide", "floor": "x", "spared": 5},
    {"kind": "elide", "floor": -(10**30)},
    {"kind": "unheard of"},
]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("odd", ODD_MARKS, ids=str)
async def test_a_mark_that_says_nonsense_spoils_no_window(
    chat: Conversation, odd: dict[str, Any], target: str
) -> None:
    await filled(chat, 3)
    await chat.append({"role": "mark", **odd}, format="mark")
    await chat.append([user("and now?")])
    window = await chat.window(target=target)
    assert violations(window) == []
    assert window.ready


async def test_a_chain_of_hundreds_of_marks_is_read_to_its_end(chat: Conversation) -> None:
    await filled(chat, 6)
    first = (await chat.path())[0]
    for number in range(400):
        kind = ("elide", "images", "cut", "summary")[number % 4]
        await chat.append({"role": "mark", "kind": kind, "text": "s"}, format="mark")
    await chat.append([user("and now?")])
    for target in TARGETS:
        window = await chat.window(300, target=target, pinned=[first.id, first.id])
        assert violations(window) == []
        assert window.ids[0] == first.id


@pytest.mark.parametrize("target", TARGETS)
async def test_a_conversation_of_a_system_prompt_only_is_no_request_yet(
    store: Store, target: str
) -> None:
    chat = await store.conversation("system", system="Be kind.")
    window = await chat.window(100, target=target)
    assert (window.messages, window.ready) == ([], False)


def at_once(ids: list[str]) -> list[dict[str, Any]]:
    return [user("go"), calls(*ids), *[result(i) for i in reversed(ids)]]


def between(ids: list[str]) -> list[dict[str, Any]]:
    """The user speaks before each of the results."""
    return [user("go"), calls(*ids), *[m for i in ids for m in (user("well?"), result(i))]]


def apart(ids: list[str]) -> list[dict[str, Any]]:
    return [user("go"), *[calls(i) for i in ids], *[result(i) for i in ids]]


def again(ids: list[str]) -> list[dict[str, Any]]:
    return [user("go"), calls(*["same"] * len(ids)), *[result("same") for _ in ids]]


@pytest.mark.parametrize("made", [at_once, between, apart, again], ids=lambda made: made.__name__)
async def test_hundreds_of_parallel_calls_are_sent_and_reclaimed(
    chat: Conversation, made: Callable[[list[str]], list[dict[str, Any]]]
) -> None:
    await chat.append(made([f"c{i}" for i in range(PLENTY)]))
    for target in TARGETS:
        assert violations(await chat.window(target=target)) == []
    for kind in ("elide", "cut"):
        told = await chat.reclaim(kind, target="anthropic", protect=0, save=0, keep=10)
        assert told.refused


async def test_runs_of_one_role_are_joined_in_one_step(chat: Conversation) -> None:
    await chat.append([user("x") for _ in range(PLENTY)])
    window = await chat.window(target="bedrock")
    assert [str(step) for step in window.steps] == [f"B2: {PLENTY} user messages were joined"]
    assert len(window.messages[0]["content"]) == PLENTY


# --- Summarisers --------------------------------------------------------------------------------


def lines(ask: object) -> Any:
    yield "one line"


@pytest.mark.parametrize(
    "answer", [None, "", " \n", b"bytes", 5, {"text": "x"}, ["x"], lines(0), "long " * 50_000]
)
async def test_an_answer_that_is_no_summary_changes_nothing(
    chat: Conversation, answer: Any
) -> None:
    await filled(chat)
    head, moves = chat.head, len(await chat.history())
    with pytest.raises(ReclaimRefused):
        await chat.reclaim("summarise", target="openai_chat", summarise=lambda a: answer, keep=200)
    assert (chat.head, len(await chat.history())) == (head, moves)


async def raises(ask: object) -> str:
    raise RuntimeError("the model is down")


async def cancels(ask: object) -> str:
    raise asyncio.CancelledError


async def never(ask: object) -> str:
    await asyncio.Event().wait()
    return "never said"


@pytest.mark.parametrize(
    ("summarise", "error"),
    [(raises, RuntimeError), (cancels, asyncio.CancelledError), (never, TimeoutError)],
    ids=["raises", "cancels", "never answers"],
)
@pytest.mark.parametrize("kind", ["summarise", "auto"])
async def test_a_summariser_that_fails_changes_nothing(
    chat: Conversation,
    kind: Any,
    summarise: Callable[[object], Awaitable[str]],
    error: type[BaseException],
) -> None:
    await filled(chat)
    head, moves = chat.head, len(await chat.history())
    with pytest.raises(error):
        async with asyncio.timeout(0.3):
            await chat.reclaim(
                kind, budget=2_000, target="openai_chat", summarise=summarise, keep=200
            )
    assert (chat.head, len(await chat.history())) == (head, moves)
    assert (await chat.reclaim("cut", target="openai_chat", keep=200)).marks  # and none is locked


async def test_of_two_reclaims_at_once_the_later_is_kept_beside_and_told(
    chat: Conversation, store: Store
) -> None:
    await filled(chat)
    other, may_go_on = await store.open(chat.id), asyncio.Event()

    async def slow(ask: object) -> str:
        await may_go_on.wait()
        return "short"

    later = asyncio.create_task(
        chat.reclaim("summarise", target="openai_chat", summarise=slow, keep=200)
    )
    await asyncio.sleep(0)
    cut = await other.reclaim("cut", target="openai_chat", keep=400)
    may_go_on.set()
    with pytest.raises(HeadMoved) as told:
        await later
    assert told.value.actual == cut.marks[-1].id
    assert (await other.window(target="openai_chat")).tokens == cut.after


# --- What was pruned ----------------------------------------------------------------------------


async def test_a_checkpoint_whose_message_was_pruned_is_dropped_and_never_moved(
    tmp_path: Path,
) -> None:
    """Pruned as another program would: the moves of the head still tell of it."""
    file = tmp_path / "pruned.db"
    async with sessiontree.open_store(file, durability="normal") as store:
        chat = await store.conversation()
        first = await chat.append([user("go"), assistant("gone")])
        await chat.checkpoint("kept")
        left = await chat.append([user("left"), assistant("for good")])
        await chat.checkpoint("pruned")
        await chat.branch(first[-1].id)
        with closing(sqlite3.connect(file)) as db, db:
            db.execute("PRAGMA foreign_keys = ON")
            for message in reversed(left):
                db.execute("DELETE FROM message WHERE id = ?", (message.id,))
        resumed = await chat.resume(1_000, target="anthropic")
        assert [each.label for each in resumed.checkpoints] == ["kept"]
        assert resumed.outside == []
        with pytest.raises(CheckpointNotFound, match="kept"):
            await chat.rewind("pruned")
        assert chat.head == first[-1].id


# --- Owners and errors --------------------------------------------------------------------------


async def test_what_another_owner_said_cannot_be_pinned(store: Store) -> None:
    mine = await store.for_owner("me").conversation("t")
    await mine.append([user("secret")])
    theirs = await store.for_owner("them").conversation("t")
    with pytest.raises(MessageNotFound):
        await theirs.window(target="anthropic", pinned=[mine.head or 0])


@pytest.mark.parametrize("error", [None, 5, "", b"x", {}, [], object(), ValueError("no")])
async def test_an_error_about_something_else_is_not_recovered_from(
    chat: Conversation, error: object
) -> None:
    await filled(chat, 2)
    window = await chat.window(target="openai_chat")
    assert await chat.recover(window, error) is None


@pytest.mark.parametrize(
    "text",
    [
        "prompt is too long: 1 tokens > 0 maximum",
        "prompt is too long: 0 tokens > 0 maximum",
        "maximum context length is 100 tokens, however you requested 5000000000000000000000 tokens",
        "request_too_large " * 10_000,
    ],
)
async def test_whatever_sizes_an_error_tells_a_recovery_ends_and_is_valid(
    chat: Conversation, text: str
) -> None:
    await filled(chat, 4)
    window = await chat.window(target="openai_chat")
    told = await chat.recover(window, text)
    assert told is not None
    assert told.after <= told.before
    assert violations(await chat.window(target="openai_chat")) == []


CALLS = {
    "anthropic": {"type": "tool_use", "id": "toolu_2", "name": "read", "input": {}},
    "bedrock": {"toolUse": {"toolUseId": "toolu_2", "name": "read", "input": {}}},
    "gemini": {"functionCall": {"id": "toolu_2", "name": "read", "args": {}}},
}


@pytest.mark.parametrize("stored", CALLS)
@pytest.mark.parametrize("target", TARGETS)
async def test_a_damaged_row_in_which_the_user_calls_is_sent_as_the_assistants(
    chat: Conversation, stored: str, target: str
) -> None:
    """A call and its result, and then a call that bears the wrong role, as one finds in files."""
    field = "parts" if stored == "gemini" else "content"
    before = {"role": "assistant", "content": None, "tool_calls": [openai_call("toolu_1")]}
    await chat.append(
        [
            {"role": "user", "content": "look"},
            before,
            {"role": "tool", "tool_call_id": "toolu_1", "content": "interrupted"},
            {"role": "user", field: [CALLS[stored]]},
            {"role": "tool", "tool_call_id": "toolu_2", "content": "found"},
        ]
    )
    window = await chat.window(target=target)
    assert window.ready
    assert sessiontree.violations(window.messages, target) == []


def openai_call(call_id: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "look", "arguments": "{}"}}
