"""What a handle remembers of its last windows: the next one is the same as without, costs what
is new, and is its receiver's to change."""

from __future__ import annotations

import asyncio
import copy
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_windows_random import STORIES, Do, Turn, do, say
from windowing import TARGETS, picture, user

import sessiontree
from sessiontree import BudgetTooSmall, Conversation, ConversationNotFound, Store, Window
from sessiontree.conversation import shelf as shelves
from sessiontree.conversation.shelf import Shelf, copied
from sessiontree.core.message import Message, MessageRow
from sessiontree.formats import codec
from sessiontree.store import reads

WISHES = st.lists(
    st.tuples(st.sampled_from(TARGETS), st.one_of(st.none(), st.integers(1, 2_000))),
    min_size=1,
    max_size=3,
)


async def planned(chat: Conversation, target: str, budget: int | None) -> Window | int:
    try:
        return await chat.window(budget, target=target)
    except BudgetTooSmall as error:
        return error.needed


def spoil(value: Any) -> None:
    """Change all that can be changed in what is sent."""
    if isinstance(value, dict):
        for inner in value.values():
            spoil(inner)
        value["spoilt"] = True
    elif isinstance(value, list):
        for inner in value:
            spoil(inner)
        value.append("spoilt")


async def compared(store: Store, story: list[Turn | Do], wishes: list[Any]) -> None:
    chat = await store.conversation()
    for at, each in enumerate(story):
        if isinstance(each, Turn):
            await say(chat, each)
        else:
            chat = await do(chat, each)
        target, budget = wishes[at % len(wishes)]
        remembering = await planned(chat, target, budget)
        assert remembering == await planned(await store.open(chat.id), target, budget)
        if isinstance(remembering, Window):
            spoil(remembering.messages)
            spoil(remembering.system)


@settings(deadline=None)
@given(STORIES, WISHES)
def test_a_handle_that_remembers_plans_what_a_new_one_plans(
    story: list[Turn | Do], wishes: list[Any]
) -> None:
    async def live() -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "s.db"
            async with sessiontree.open_store(file, durability="normal") as store:
                await compared(store, story, wishes)

    asyncio.run(live())


def exchange(number: int) -> list[dict[str, Any]]:
    return [user(f"question {number}"), {"role": "assistant", "content": f"answer {number}"}]


def counting(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How many rows of paths are read, and how many messages are encoded, from now on."""
    counts = {"rows": 0, "encoded": 0}
    path = reads.path

    def counted(*args: Any) -> list[MessageRow]:
        rows = path(*args)
        counts["rows"] += len(rows)
        return rows

    encode = type(codec("anthropic")).encode

    def encoded(self: Any, role: Any, parts: Any) -> Any:
        counts["encoded"] += 1
        return encode(self, role, parts)

    monkeypatch.setattr(reads, "path", counted)
    monkeypatch.setattr(type(codec("anthropic")), "encode", encoded)
    return counts


async def test_the_next_turns_window_reads_and_renders_what_is_new(
    chat: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(200):
        await chat.append(exchange(number), format="openai_chat")
    before = await chat.window(target="anthropic")
    await chat.append(exchange(200), format="openai_chat")
    counts = counting(monkeypatch)
    after = await chat.window(target="anthropic")
    assert after.messages[: len(before.messages)] == before.messages
    assert len(after.messages) == 402
    assert counts["encoded"] == 2
    assert counts["rows"] < 20


async def test_two_models_in_turn_are_both_remembered(
    chat: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(50):
        await chat.append(exchange(number), format="openai_chat")
    for target in ("anthropic", "gemini"):
        await chat.window(target=target)
    counts = counting(monkeypatch)
    await chat.window(target="anthropic")
    assert counts["encoded"] == 0


async def test_a_branch_from_the_middle_is_not_mistaken_for_what_was_left(
    chat: Conversation, store: Store
) -> None:
    first = await chat.append(exchange(0))
    await chat.append(exchange(1))
    await chat.window(target="anthropic")
    await chat.branch(first[-1].id)
    await chat.append(exchange(2))
    window = await chat.window(target="anthropic")
    assert [m["content"] for m in window.messages] == [
        "question 0", "answer 0", "question 2", "answer 2",
    ]  # fmt: skip
    assert window == await (await store.open(chat.id)).window(target="anthropic")


async def test_what_is_in_flight_is_not_remembered_for_another(chat: Conversation) -> None:
    """Messages of a turn that goes on have no ids yet."""
    await chat.append(exchange(0))
    for words in ("one thing", "another"):
        async with chat.turn() as turn:
            call = {"id": "c", "type": "function", "function": {"name": words, "arguments": "{}"}}
            await turn.add({"role": "assistant", "content": words, "tool_calls": [call]})
            window = await chat.window(target="openai_chat", turn=turn)
            assert window.messages[-2]["content"] == words
            await turn.interrupt()


async def test_a_conversation_that_another_handle_deleted_is_missed_at_once(
    chat: Conversation, store: Store
) -> None:
    await chat.append(exchange(0))
    await chat.window(target="openai_chat")
    await store.delete(chat.id)
    with pytest.raises((ConversationNotFound, sessiontree.MessageNotFound)):
        await chat.window(target="openai_chat")


async def test_two_windows_planned_at_once_are_both_right(chat: Conversation) -> None:
    for number in range(150):
        await chat.append(exchange(number))
    alone = {target: await chat.window(target=target) for target in TARGETS}
    again = await asyncio.gather(*[chat.window(target=target) for target in TARGETS * 3])
    assert again == [alone[target] for target in TARGETS * 3]


# --- The shelf itself -------------------------------------------------------------------------


def row(id: int, content: str) -> MessageRow:
    return MessageRow(
        id, 1, id - 1 or None, "user", "openai_chat", id, 0, 1, None, None, "", None, None, None,
        None, 0, content,
    )  # fmt: skip


def wrap(row: MessageRow) -> Message:
    return Message(row, codec)


def test_no_more_characters_are_kept_than_there_is_room_for() -> None:
    shelf = Shelf(wrap, characters=100)
    for id in range(1, 20):
        shelf.take(row(id, "x" * 30))
    assert len(shelf) == 3
    assert shelf.find(1) is not None
    assert shelf.find(19) is None


def test_a_message_that_alone_is_too_large_leaves_the_room_to_others() -> None:
    shelf = Shelf(wrap, characters=100)
    shelf.take(row(1, "x" * 1000))
    shelf.take(row(2, "x"))
    assert shelf.find(1) is None
    assert shelf.find(2) is not None


def test_what_three_windows_did_not_use_is_let_go() -> None:
    shelf = Shelf(wrap)
    shelf.take(row(1, "x"))
    shelf.take(row(2, "x"))
    for _ in range(3):
        shelf.turn_over()
        assert shelf.find(2) is not None
    assert shelf.find(1) is None


def test_nothing_rendered_is_kept_of_messages_that_are_not() -> None:
    shelf = Shelf(wrap, characters=10)
    shelf.take(row(1, "x" * 20))
    shelf.put("turn", 1, "rendered")
    assert shelf.get("turn") is None


def test_a_row_that_reads_otherwise_than_before_is_believed() -> None:
    shelf = Shelf(wrap)
    shelf.take(row(1, '{"a": 1}'))
    shelf.put("turn", 1, "rendered")
    assert shelf.take(row(1, '{"a": 2}')).native == {"a": 2}
    assert shelf.get("turn") is None


def test_the_shelves_that_were_used_longest_ago_are_emptied_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shelves, "_SHELVES", shelves._Shelves())
    monkeypatch.setattr(shelves, "TOTAL", 1_000)
    many = [Shelf(wrap) for _ in range(4)]
    for shelf in many:
        shelf.take(row(1, "x" * 300))
    for shelf in (many[1], many[0], many[2], many[3]):
        shelf.turn_over()
    assert [len(shelf) for shelf in many] == [1, 0, 1, 1]


def test_a_shelf_that_nobody_holds_counts_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelves, "_SHELVES", shelves._Shelves())
    monkeypatch.setattr(shelves, "TOTAL", 1_000)
    kept = Shelf(wrap)
    kept.take(row(1, "x" * 900))
    kept.turn_over()
    for _ in range(5):
        gone = Shelf(wrap)
        gone.take(row(1, "x" * 90))
        gone.turn_over()
        del gone
    assert len(kept) == 1


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
)


@given(values)
def test_a_copy_is_equal_and_shares_nothing_that_can_be_changed(value: Any) -> None:
    before = copy.deepcopy(value)
    made = copied(value)
    assert made == value
    spoil(made)
    assert value == before


def test_a_copy_of_what_is_nested_deeply_needs_no_deep_stack() -> None:
    value: Any = []
    for _ in range(100_000):
        value = [value]
    depth, inner = 0, copied(value)
    while inner:
        depth, inner = depth + 1, inner[0]
    assert depth == 100_000


async def test_images_are_sent_from_memory_as_they_were(chat: Conversation) -> None:
    await chat.append(picture())
    first = await chat.window(target="anthropic")
    spoil(first.messages)
    again = await chat.window(target="anthropic")
    assert again.messages[0]["content"][1]["type"] == "image"
    assert "spoilt" not in again.messages[0]
