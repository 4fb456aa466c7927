"""The nine invariants of the design, each by its number, on random trees.

The machine (test_machine.py) holds them all after any operation; here each stands alone, where
it can be read beside the design.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from talk import assistant, call, examples, ids, path_ids, result, step, user

import sessiontree
from sessiontree import Conversation, Store

BRANCHES = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3)), min_size=1, max_size=14)
"""A tree: for each branch the place that it starts from, and what is said there."""
PICK = st.integers(0, 40)
few = examples(25)


def said(kind: int, number: int) -> list[dict[str, Any]]:
    """What a branch adds: talk, a step, parallel calls with talk between, the same id twice."""
    return [
        [user(f"q{number}")],
        [user(f"q{number}"), *step()],
        [call("a", "b"), result("b"), user("hurry"), result("a"), assistant("x" * 5_000)],
        [call("a"), result("a"), call("a", "a"), result("a"), result("a")],
    ][kind]


@contextlib.asynccontextmanager
async def planted(
    branches: list[tuple[int, int]], target: str | Path = ":memory:"
) -> AsyncIterator[tuple[Store, Conversation]]:
    """A store with one tree, each branch at any boundary that there was by then."""
    async with sessiontree.open_store(target, durability="normal") as store:
        chat = await store.conversation("chat")
        ends: list[int | None] = [None]
        for number, (start, kind) in enumerate(branches):
            saved = await chat.append(said(kind, number), parent=ends[start % len(ends)])
            ends += [m.id for m in saved if m.is_boundary]
        yield store, chat


async def boundaries(chat: Conversation) -> list[int]:
    return [m.id async for m in chat.iter_messages() if m.is_boundary]


@few
@given(BRANCHES)
async def test_1_every_result_answers_one_open_call_and_every_boundary_has_none_open(
    branches: list[tuple[int, int]],
) -> None:
    async with planted(branches) as (_, chat):
        for leaf in await chat.leaves():
            waiting: list[str] = []
            for message in await chat.path(leaf.id):
                waiting += [c.id for c in message.tool_calls]
                for answered in message.tool_results:
                    waiting.remove(answered.id)
                assert message.open_calls == len(waiting)
                assert message.is_boundary == (not waiting)


@few
@given(BRANCHES, st.lists(PICK, max_size=6))
async def test_2_the_head_is_null_or_a_boundary_of_its_own_conversation(
    branches: list[tuple[int, int]], picks: list[int]
) -> None:
    async with planted(branches) as (store, chat):
        for pick in picks:
            everything = [m async for m in chat.iter_messages()]
            target = everything[pick % len(everything)]
            try:
                await chat.branch(target.id)
            except sessiontree.NotABoundary:
                assert not target.is_boundary
            fresh = await store.open(chat.id)
            head = None if fresh.head is None else await chat.message(fresh.head)
            assert head is None or head.is_boundary
        other = await chat.fork()
        assert other.head is None or other.head in ids([m async for m in other.iter_messages()])


@few
@given(BRANCHES)
async def test_3_what_was_acknowledged_is_on_the_disk(
    tmp_path_factory: pytest.TempPathFactory, branches: list[tuple[int, int]]
) -> None:
    """Read by a second connection while the store is open: nothing waits to be written.
    Real kills are in test_crash.py."""
    file = tmp_path_factory.mktemp("store") / "sessions.db"
    async with planted(branches, file) as (_, chat):
        db = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
        rows = db.execute("SELECT id, parent_id FROM message ORDER BY id").fetchall()
        (head,) = db.execute("SELECT head_id FROM conversation").fetchone()
        db.close()
        assert rows == [(m.id, m.parent_id) async for m in chat.iter_messages()]
        assert head == chat.head


@few
@given(BRANCHES, st.lists(PICK, min_size=1, max_size=8))
async def test_4_branch_rewind_undo_and_redo_write_no_message(
    branches: list[tuple[int, int]], picks: list[int]
) -> None:
    async with planted(branches) as (_, chat):
        before = [m.row async for m in chat.iter_messages()]
        await chat.checkpoint("here", at=(await boundaries(chat))[0])
        for pick in picks:
            places = await boundaries(chat)
            match pick % 4:
                case 0:
                    await chat.branch(places[pick % len(places)])
                case 1:
                    await chat.rewind("here")
                case 2:
                    with contextlib.suppress(sessiontree.NothingToUndo):
                        await chat.undo()
                case _:
                    await chat.branch(None)
            assert [m.row async for m in chat.iter_messages()] == before
        await chat.rewind("here", digest="what it found")
        assert len([m async for m in chat.iter_messages()]) == len(before) + 1


class Steps:
    """Counts the steps of SQLite's machine, which do not depend on the clock."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> int:
        self.count += 1
        return 0


async def steps_of(move: str, size: int) -> int:
    """What a move costs in a conversation of ``size`` messages."""
    async with sessiontree.open_store(":memory:") as store:
        chat = await store.conversation()
        await chat.append([user(str(n)) for n in range(size)])
        first = (await chat.path(newest=2))[0]
        await chat.checkpoint("start", at=first.id)
        await chat.branch(first.id)
        if move == "redo":
            await chat.undo()
        steps, writer = Steps(), store._backend._writer_connection
        assert writer is not None
        await writer.run(lambda db: db.set_progress_handler(steps, 1))
        await getattr(chat, move)(*{"branch": [None], "rewind": ["start"]}.get(move, []))
        return steps.count


@pytest.mark.parametrize("move", ["branch", "rewind", "undo", "redo"])
async def test_4_a_move_takes_as_many_steps_in_a_large_tree_as_in_a_small_one(move: str) -> None:
    assert await steps_of(move, 10_000) <= await steps_of(move, 10) + 20


@few
@given(BRANCHES, st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=8))
async def test_5_two_writers_lose_nothing_and_the_later_is_told(
    branches: list[tuple[int, int]], turns: list[tuple[bool, int]]
) -> None:
    async with planted(branches) as (store, chat):
        handles = [chat, await store.open(chat.id)]
        count = len(await chat.tree())
        for number, (first, kind) in enumerate(turns):
            handle = handles[first]
            seen, actual = handle.head, (await store.open(chat.id)).head
            if seen == actual:
                saved = await handle.append(said(kind, number))
                assert (await store.open(chat.id)).head == saved[-1].id
            else:
                with pytest.raises(sessiontree.HeadMoved) as caught:
                    await handle.append(said(kind, number))
                moved = caught.value
                assert (moved.expected, moved.actual) == (seen, actual)
                assert moved.saved[0].parent_id == seen
                assert (await store.open(chat.id)).head == actual
                saved = list(moved.saved)
            count += len(saved)
            assert len(await chat.tree()) == count


@few
@given(BRANCHES)
async def test_6_every_walk_ends_and_parents_come_before_children(
    branches: list[tuple[int, int]],
) -> None:
    async with planted(branches) as (_, chat):
        known: set[int | None] = {None}
        async for message in chat.iter_messages():
            assert message.parent_id in known
            known.add(message.id)
            path = await path_of(chat, message.id)
            assert len(path) == message.depth + 1
            assert len(set(path)) == len(path)


async def path_of(chat: Conversation, leaf: int) -> list[int]:
    path = ids(await chat.path(leaf))
    assert path == [m.id async for m in chat.iter_path(leaf)]
    return path


@few
@given(st.lists(st.text(st.characters(exclude_categories=()), max_size=40), min_size=1, max_size=5))
async def test_7_a_message_comes_back_as_it_was_given(contents: list[str]) -> None:
    async with sessiontree.open_store(":memory:") as store:
        chat = await store.conversation()
        given_ = [user(content) for content in contents]
        try:
            await chat.append(given_)
        except sessiontree.FormatError as error:
            assert "two surrogates" in str(error)  # noqa: PT017
            return
        assert [m.native for m in await chat.path()] == given_


@few
@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True), max_size=10))
async def test_8_a_key_is_saved_once_and_its_first_message_is_what_comes_back(
    batches: list[list[int]],
) -> None:
    async with sessiontree.open_store(":memory:") as store:
        chat = await store.conversation()
        first: dict[int, int] = {}
        for number, batch in enumerate(batches):
            keys = [str(key) for key in batch]
            saved = await chat.append([user(f"{number}") for _ in batch], keys=keys)
            for key, message in zip(batch, saved, strict=True):
                assert first.setdefault(key, message.id) == message.id
            assert chat.head == (await store.open(chat.id)).head
        assert sorted(ids([m async for m in chat.iter_messages()])) == sorted(first.values())
        assert await store.check() == []


@few
@given(st.lists(st.sampled_from(["", "ada", "bob", "ADA", "ada\u200b"]), min_size=1, max_size=8))
async def test_9_a_scoped_store_sees_its_owners_conversations_and_no_other(
    owners: list[str],
) -> None:
    async with sessiontree.open_store(":memory:") as store:
        made = [await store.conversation(owner=owner) for owner in owners]
        for owner in {*owners, "nobody"}:
            scoped = store.for_owner(owner)
            mine = {chat.id for chat in made if chat.owner == owner}
            assert {info.id async for info in scoped.conversations()} == mine
            for chat in made:
                if chat.id in mine:
                    assert (await scoped.open(chat.id)).owner == owner
                else:
                    with pytest.raises(sessiontree.ConversationNotFound):
                        await scoped.open(chat.id)


@few
@given(BRANCHES, PICK)
async def test_all_of_them_hold_for_check(branches: list[tuple[int, int]], pick: int) -> None:
    async with planted(branches) as (store, chat):
        places = await boundaries(chat)
        await chat.fork(places[pick % len(places)])
        await chat.branch(places[pick % len(places)])
        assert await store.check() == []
        assert await path_ids(chat) == await path_of(chat, places[pick % len(places)])
