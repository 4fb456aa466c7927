"""A caller that is cancelled, at any await and at any point of the unit of work: afterwards the
operation has happened whole or not at all, the handle knows which, and the store works on.

``Gate`` stops the writer's thread inside SQLite, at the n-th step of its virtual machine, so
that a cancellation can be put at any point of a transaction and not where timing puts it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import sqlite3
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from talk import assistant, call, result, step, system, texts, user

import sessiontree
from sessiontree import Conversation, Store
from sessiontree.store import reads
from sessiontree.store.connection import Pace

PATIENCE = 20
"""Seconds after which a test says that something hangs; no test waits for it when all is well."""


# ---- what is cancelled ---------------------------------------------------------------


async def _append(chat: Conversation) -> Any:
    return await chat.append([user("new"), *step("new"), assistant("x" * 5_000)])


async def _append_elsewhere(chat: Conversation) -> Any:
    return await chat.append([user("new")], parent=None, keys=["key"])


async def _branch(chat: Conversation) -> Any:
    return await chat.branch((await chat.path())[0].id)


async def _fork(chat: Conversation) -> Any:
    return await chat.fork()


async def _rewind(chat: Conversation) -> Any:
    return await chat.rewind("start")


async def _rewind_with_digest(chat: Conversation) -> Any:
    return await chat.rewind("start", digest="403 everywhere")


async def _undo(chat: Conversation) -> Any:
    return await chat.undo()


async def _redo(chat: Conversation) -> Any:
    return await chat.redo()


async def _retry(chat: Conversation) -> Any:
    return await chat.retry()


async def _edit(chat: Conversation) -> Any:
    return await chat.edit((await chat.path())[0].id, user("edited"))


async def _checkpoint(chat: Conversation) -> Any:
    return await chat.checkpoint("here", note="why")


async def _rename(chat: Conversation) -> Any:
    return await chat.rename("another")


OPERATIONS: list[Callable[[Conversation], Coroutine[Any, Any, Any]]] = [
    _append,
    _append_elsewhere,
    _branch,
    _fork,
    _rewind,
    _rewind_with_digest,
    _undo,
    _redo,
    _retry,
    _edit,
    _checkpoint,
    _rename,
]
operations = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: o.__name__.strip("_"))


async def prepared(store: Store) -> Conversation:
    """Two branches, a checkpoint, something to undo, redo and retry."""
    chat = await store.conversation(title="one")
    await chat.append([user("first"), assistant("one")])
    await chat.checkpoint("start")
    await chat.append([user("second"), *step(), assistant("two")])
    await chat.append([user("third")])
    await chat.undo()
    return chat


async def shape(store: Store, chat: Conversation) -> Any:
    """All that the store holds of a conversation and its forks, without ids and times."""
    fresh = await store.open(chat.id)
    messages = [m async for m in fresh.iter_messages()]
    place: dict[int | None, int] = {m.id: i for i, m in enumerate(messages)} | {None: -1}
    forks = [info async for info in store.conversations() if info.forked_from == chat.id]
    return {
        "messages": [(m.raw, m.key, place[m.parent_id], m.open_calls, m.meta) for m in messages],
        "head": place[fresh.head],
        "moves": [
            (place[m.from_id], place[m.to_id], m.cause, m.is_current) for m in await fresh.history()
        ],
        "labels": {c.label: (place[c.message_id], c.note) for c in await fresh.checkpoints()},
        "title": fresh.title,
        "drafts": texts((await fresh.resume()).draft),
        "forks": [texts(await (await store.open(fork.id)).path()) for fork in forks],
    }


# ---- how it is cancelled -------------------------------------------------------------


class Gate:
    """Stops the writer at the ``at``-th step of SQLite's machine, until it is opened."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.steps = 0
        self.reached = threading.Event()
        self.open = threading.Event()

    def __call__(self) -> int:
        self.steps += 1
        if self.steps == self.at:
            self.reached.set()
            self.open.wait(PATIENCE)
        return 0

    async def reached_by(self, task: asyncio.Task[Any]) -> bool:
        while not self.reached.is_set() and not task.done():  # noqa: ASYNC110
            await asyncio.sleep(0.0002)
        return self.reached.is_set()


class Slow(Pace):
    """Everything goes to the writer's thread: at hand the gate would stop the test itself."""

    def ended(self, began: float) -> None:
        """It is never quick."""


@asynccontextmanager
async def gated(store: Store, at: int) -> AsyncIterator[Gate]:
    gate = Gate(at)
    writer = store._backend._writer_connection
    assert writer is not None
    pace, writer.pace = writer.pace, Slow()
    await writer.run(lambda db: db.set_progress_handler(gate, 1))
    try:
        yield gate
    finally:
        gate.open.set()
        await writer.run(lambda db: db.set_progress_handler(None, 1))
        writer.pace = pace


async def settled(task: asyncio.Task[Any]) -> bool:
    """Whether the task came to its end in spite of the cancellation."""
    done, _ = await asyncio.wait([task], timeout=PATIENCE)
    assert done, "it hangs"
    return not task.cancelled() and task.exception() is None


async def turns_of_the_loop(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def whole_or_not_at_all(
    store: Store, chat: Conversation, before: Any, after: Any, what: object
) -> bool:
    """Whether it happened; the handle must know it, and go on from there."""
    now = await shape(store, chat)
    assert now in (before, after), what
    assert chat.head == (await store.open(chat.id)).head, what
    last = (await chat.append(user("and on")))[-1]
    assert chat.head == last.id, what
    return now == after and before != after


# ---- any operation, at any point -----------------------------------------------------


@operations
async def test_a_cancellation_inside_the_unit_of_work_leaves_it_whole_or_undone(
    store: Store, operation: Callable[[Conversation], Coroutine[Any, Any, Any]]
) -> None:
    chat = await prepared(store)
    before = await shape(store, chat)
    async with gated(store, -1) as gate:
        await operation(chat)
    after = await shape(store, chat)
    assert after != before
    seen: set[bool] = set()
    for at in sorted({1, 2, 3, 5, *range(8, gate.steps, max(1, gate.steps // 12)), gate.steps}):
        chat = await prepared(store)
        async with gated(store, at) as stopped:
            task = asyncio.create_task(operation(chat))
            await stopped.reached_by(task)
            for _ in range(1 + at % 3):
                task.cancel()
                await turns_of_the_loop(3)
            stopped.open.set()
            await settled(task)
        seen.add(await whole_or_not_at_all(store, chat, before, after, at))
    assert seen == {True, False}, "before the unit began it was dropped, afterwards waited for"


@operations
@pytest.mark.parametrize("steps", [0, 1, 2, 4, 7])
async def test_a_cancellation_after_any_number_of_turns_of_the_loop(
    store: Store, operation: Callable[[Conversation], Coroutine[Any, Any, Any]], steps: int
) -> None:
    reference = await prepared(store)
    before = await shape(store, reference)
    await operation(reference)
    after = await shape(store, reference)
    chat = await prepared(store)
    task = asyncio.create_task(operation(chat))
    await turns_of_the_loop(steps)
    task.cancel()
    await settled(task)
    await whole_or_not_at_all(store, chat, before, after, steps)


@operations
async def test_anyio_scopes_cancel_as_tasks_do(
    store: Store, operation: Callable[[Conversation], Coroutine[Any, Any, Any]]
) -> None:
    """Their scopes cancel again in each turn of the loop, until the block is left."""
    reference = await prepared(store)
    before = await shape(store, reference)
    async with gated(store, -1) as gate:
        await operation(reference)
    after = await shape(store, reference)
    for at in (1, gate.steps // 3, gate.steps // 2, gate.steps - 1):
        chat = await prepared(store)
        async with gated(store, at) as stopped:
            with anyio.move_on_after(0.02) as scope:
                threading.Timer(0.1, stopped.open.set).start()
                await operation(chat)
            stopped.open.set()
        await whole_or_not_at_all(store, chat, before, after, (at, scope.cancelled_caught))


async def test_asyncio_timeouts_cancel_as_tasks_do(store: Store) -> None:
    for at in (1, 30, 60):
        chat = await prepared(store)
        before = await shape(store, chat)
        async with gated(store, at) as stopped:
            threading.Timer(0.1, stopped.open.set).start()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.01):
                    await chat.append(user("new"))
            stopped.open.set()
        after = await shape(store, chat)
        assert len(after["messages"]) - len(before["messages"]) in (0, 1)
        assert chat.head == (await store.open(chat.id)).head


# ---- turns ---------------------------------------------------------------------------


async def test_a_turn_that_is_cancelled_knows_what_it_holds(store: Store) -> None:
    """Drafted or not, saved or not: what is pending tells, and the turn can go on."""
    for at in [1, 2, *range(5, 160, 11)]:
        for stage in range(3):
            chat = await store.conversation()
            said = [user("q"), call("c"), result("c")]
            async with chat.turn() as turn:
                for message in said[:stage]:
                    await turn.add(message)
                async with gated(store, at) as stopped:
                    task = asyncio.create_task(turn.add(said[stage]))
                    await stopped.reached_by(task)
                    task.cancel()
                    await turns_of_the_loop(2)
                    stopped.open.set()
                    await settled(task)
                done = len(await chat.path()) + len(turn.pending)
                assert done in (stage, stage + 1)
                drafts = await store._backend.read(reads.drafts, chat.id)
                assert len(drafts) == len(turn.pending)
                for message in said[done:]:
                    await turn.add(message)
            assert [m.role for m in await chat.path()] == ["user", "assistant", "tool"]
            assert chat.head == (await store.open(chat.id)).head


async def test_a_cancelled_add_may_be_tried_again_under_its_key(store: Store) -> None:
    for at in [1, *range(5, 160, 15)]:
        chat = await store.conversation()
        async with chat.turn() as turn:
            for number, message in enumerate([user("q"), call("c"), result("c")]):
                async with gated(store, at) as stopped:
                    task = asyncio.create_task(turn.add(message, key=str(number)))
                    await stopped.reached_by(task)
                    task.cancel()
                    await turns_of_the_loop(2)
                    stopped.open.set()
                    await settled(task)
                await turn.add(message, key=str(number))
        assert [m.key for m in await chat.path()] == ["0", "1", "2"]


async def test_a_turn_left_by_cancellation_keeps_its_draft(store: Store) -> None:
    chat = await store.conversation()
    ready = asyncio.Event()

    async def agent() -> None:
        async with chat.turn() as turn:
            await turn.add(user("q"))
            await turn.add(call("c"))
            ready.set()
            await asyncio.sleep(600)

    task = asyncio.create_task(agent())
    await ready.wait()
    task.cancel()
    await settled(task)
    resume = await chat.resume()
    assert [c.id for c in resume.interrupted] == ["c"]
    assert texts(resume.path) == ["q"]


async def test_cancelled_while_another_add_holds_the_turn(store: Store) -> None:
    chat = await store.conversation()
    async with chat.turn() as turn:
        await turn.add(call("a", "b"))
        async with gated(store, 1) as stopped:
            first = asyncio.create_task(turn.add(result("a")))
            second = asyncio.create_task(turn.add(result("b")))
            await stopped.reached_by(first)
            second.cancel()
            stopped.open.set()
            assert await settled(first)
            assert not await settled(second)
        await turn.add(result("b"))
    assert len(await chat.path()) == 3


# ---- a store that another process holds ----------------------------------------------


@asynccontextmanager
async def locked(file: Path) -> AsyncIterator[sqlite3.Connection]:
    """The store in the hands of another writer."""
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield other
    finally:
        if other.in_transaction:
            other.execute("ROLLBACK")
        other.close()


@operations
async def test_what_waits_for_another_process_is_dropped_at_once(
    store: Store, file: Path, operation: Callable[[Conversation], Coroutine[Any, Any, Any]]
) -> None:
    """Its busy timeout is 30 seconds; a cancelled caller does not wait for it."""
    chat = await prepared(store)
    before = await shape(store, chat)
    async with locked(file):
        task = asyncio.create_task(operation(chat))
        await asyncio.sleep(0.02)
        task.cancel()
        assert not await settled(task)
        with anyio.move_on_after(0.02) as scope:
            await operation(chat)
        assert scope.cancelled_caught
    assert await shape(store, chat) == before
    await operation(chat)
    assert await shape(store, chat) != before


async def test_others_that_wait_are_not_dropped_with_it(store: Store, file: Path) -> None:
    chats = [await store.conversation() for _ in range(20)]
    async with locked(file):
        tasks = [asyncio.create_task(chat.append(user("new"))) for chat in chats]
        await asyncio.sleep(0.02)
        for task in tasks[::2]:
            task.cancel()
        await turns_of_the_loop(3)
    done = [await settled(task) for task in tasks]
    assert done == [False, True] * 10
    assert [len(await chat.path()) for chat in chats] == [0, 1] * 10
    assert [chat.head is not None for chat in chats] == done


async def test_a_writer_that_is_refused_for_too_long_is_told_so_and_works_on(file: Path) -> None:
    async with sessiontree.open_store(file, busy_timeout=0.05) as store:
        chat = await prepared(store)
        before = await shape(store, chat)
        async with locked(file):
            for operation in OPERATIONS:
                with pytest.raises(sessiontree.StoreBusy, match="try again"):
                    await operation(chat)
            assert await shape(store, chat) == before, "reading goes on"
        assert chat.head == (await store.open(chat.id)).head
        await chat.append(user("new"))


# ---- many at once --------------------------------------------------------------------


async def test_many_tasks_some_of_them_cancelled_at_any_time(store: Store) -> None:
    chance = random.Random(11)
    chats = [await prepared(store) for _ in range(24)]
    before = await shape(store, chats[0])
    reference = await prepared(store)
    await _append(reference)
    after = await shape(store, reference)

    async def cancel_later(task: asyncio.Task[Any]) -> None:
        await turns_of_the_loop(chance.randrange(12))
        if chance.random() < 0.5:
            await asyncio.sleep(chance.random() * 0.01)
        task.cancel()

    tasks = [asyncio.create_task(_append(chat)) for chat in chats]
    await asyncio.gather(*(cancel_later(task) for task in chance.sample(tasks, 16)))
    for task in tasks:
        await settled(task)
    for chat in chats:
        await whole_or_not_at_all(store, chat, before, after, chat)


async def test_a_reader_that_is_cancelled_leaves_the_reader_usable(store: Store) -> None:
    chat = await store.conversation()
    await chat.append([user(str(n)) for n in range(3_000)])
    for number in range(30):
        task = asyncio.create_task(chat.path())
        await turns_of_the_loop(number)
        task.cancel()
        await settled(task)
    async for _ in chat.iter_path():
        break
    assert len(await chat.path()) == 3_000


# ---- opening and closing -------------------------------------------------------------


def _threads() -> int:
    return threading.active_count()


async def _eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("steps", [*range(6), 20])
async def test_opening_that_is_cancelled_leaves_nothing_behind(tmp_path: Path, steps: int) -> None:
    before = _threads()

    async def use() -> None:
        async with sessiontree.open_store(tmp_path / "a.db") as store:
            await store.conversation("t", system="s")
            await asyncio.sleep(0.001)

    task = asyncio.create_task(use())
    await turns_of_the_loop(steps)
    task.cancel()
    await settled(task)
    await _eventually(lambda: _threads() <= before)
    await use()


@pytest.mark.parametrize("steps", range(1, 8))
async def test_closing_that_is_cancelled_closes_all_the_same(tmp_path: Path, steps: int) -> None:
    before = _threads()
    opened = sessiontree.open_store(tmp_path / "a.db")
    store = await opened.__aenter__()
    chat = await store.conversation("t")
    await asyncio.gather(*(chat.path() for _ in range(4)))  # all readers are open
    task = asyncio.create_task(opened.__aexit__(None, None, None))
    for _ in range(3):
        await turns_of_the_loop(steps)
        task.cancel()
    await settled(task)
    await _eventually(lambda: _threads() <= before)
    assert os.listdir(tmp_path) == ["a.db"], "the last folds the WAL in"


async def test_closing_in_a_cancelled_scope_closes_all_the_same(tmp_path: Path) -> None:
    before = _threads()
    with anyio.CancelScope() as scope:
        async with sessiontree.open_store(tmp_path / "a.db") as store:
            chat = await store.conversation("t", system="s")
            await chat.path()
            scope.cancel()
            await asyncio.sleep(1)
    await _eventually(lambda: _threads() <= before)


async def test_closing_while_others_read_and_write_ends_all_of_them(tmp_path: Path) -> None:
    before = _threads()
    for pause in range(6):
        outcomes: list[asyncio.Task[Any]] = []
        async with sessiontree.open_store(tmp_path / f"{pause}.db") as store:
            chat = await store.conversation("t")
            work: list[Awaitable[Any]] = [chat.append(user("x"), parent=None) for _ in range(5)]
            work += [chat.path(), chat.tree(), chat.checkpoints(), chat.leaves()]
            outcomes = [asyncio.ensure_future(each) for each in work]
            await turns_of_the_loop(pause)
        for outcome in outcomes:
            await asyncio.wait([outcome], timeout=PATIENCE)
            assert outcome.done()
            error = outcome.exception()
            assert error is None or isinstance(error, sessiontree.StoreClosed), error
    await _eventually(lambda: _threads() <= before)


async def test_a_system_prompt_is_there_with_its_conversation_or_neither_is(store: Store) -> None:
    for at in range(1, 60, 6):
        async with gated(store, at) as stopped:
            task = asyncio.create_task(store.conversation(f"t{at}", system="be brief"))
            await stopped.reached_by(task)
            task.cancel()
            await turns_of_the_loop(2)
            stopped.open.set()
            await settled(task)
        chat = await store.conversation(f"t{at}")
        made = [m.native for m in await chat.path()]
        assert made in ([], [system("be brief")])
