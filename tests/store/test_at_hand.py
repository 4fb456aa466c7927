"""What is bounded is done on the caller's own thread where that is quick and nobody else is at
work; everything else, and everything on a slow disk, on the connection's thread."""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import sqlite3
import threading
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from hands import HERE, warmed, where
from talk import user

import sessiontree
from sessiontree import Conversation, Store
from sessiontree.conversation.anchor import digest
from sessiontree.errors import StoreClosed
from sessiontree.store import connection, conversations, messages, reads, units, writer
from sessiontree.store.appending import Append


@units.bounded
def fail(db: sqlite3.Connection, error: BaseException) -> None:
    db.execute("DELETE FROM message")
    db.execute("UPDATE conversation SET title = 'half done'")
    raise error


def where_unbounded(db: sqlite3.Connection) -> int:
    return where(db)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is that runs the tests."""
    monkeypatch.setattr(connection, "QUICK", float("inf"))


@pytest.fixture(params=["file", "memory"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    target = ":memory:" if request.param == "memory" else tmp_path / "a.db"
    async with sessiontree.open_store(target, durability="normal") as opened:
        yield opened
        assert await opened.check() == []


async def test_a_lone_caller_is_served_on_its_own_thread(store: Store) -> None:
    await warmed(store)
    assert await store._backend.write(where) == HERE()
    assert await store._backend.read(where) == HERE()


async def test_the_first_units_are_not_since_nothing_is_known_of_the_disk(store: Store) -> None:
    found = [await store._backend.write(where) == HERE() for _ in range(connection.STEADY + 1)]
    assert found == [False] * connection.STEADY + [True]


async def test_what_may_be_long_goes_to_the_thread(store: Store) -> None:
    await warmed(store)
    assert await store._backend.write(where_unbounded) != HERE()
    assert await store._backend.read(where_unbounded) != HERE()


async def test_what_turns_out_to_be_long_goes_to_the_thread(store: Store) -> None:
    """An image of megabytes: how much a row holds shows when it is read."""
    chat = await warmed(store)
    image = "x" * 2 * connection.LONG
    (long,) = await chat.append(user(image), keys=["long"])
    threads: list[int] = []

    @units.bounded
    def look(db: sqlite3.Connection, *args: Any) -> Any:
        threads.append(HERE())
        return reads.message(db, *args)

    assert image in (await store._backend.read(look, chat.id, long.id)).content
    assert image in (await store._backend.write(look, chat.id, long.id)).content
    assert [thread == HERE() for thread in threads] == [True, False] * 2
    assert await store._backend.write(where) == HERE()
    assert (await chat.append(user(image), keys=["long"]))[0].text == image
    assert [m.text for m in await chat.path(newest=2)] == ["2", image]
    await chat.branch(None)
    await chat.undo()
    assert chat.head == long.id


async def test_what_is_small_and_long_in_bytes_is_written_all_the_same(store: Store) -> None:
    chat = await warmed(store)
    text = "\U0001f333" * (messages.SMALL - 100)
    await chat.append(user(text))
    assert (await chat.path(newest=1))[0].text == text


async def test_a_long_digest_goes_to_the_thread(store: Store) -> None:
    chat = await warmed(store)
    await chat.checkpoint("start")
    short, long = digest("no", None), digest("x" * messages.SMALL, None)
    assert units.is_bounded(conversations.rewind, (1, "start", None, 0))
    assert units.is_bounded(conversations.rewind, (1, "start", short, 0))
    assert not units.is_bounded(conversations.rewind, (1, "start", long, 0))
    wish = Append([short], 0, True)
    assert units.is_bounded(conversations.append_and_rewind, (1, wish, "start", short))
    assert not units.is_bounded(conversations.append_and_rewind, (1, wish, "start", long))
    said = await chat.rewind("start", digest="x" * messages.SMALL)
    assert said is not None
    assert said.text.endswith("x" * messages.SMALL)


async def test_a_slow_disk_sends_all_to_the_thread(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await warmed(store)
    monkeypatch.setattr(connection, "QUICK", 0)
    await store._backend.write(where)  # this one was slow
    assert await store._backend.write(where) != HERE()


async def test_what_was_long_does_not_count_as_slow(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await warmed(store)
    monkeypatch.setattr(connection, "QUICK", 0)
    await store._backend.write(where_unbounded)
    await store._backend.read(where_unbounded)
    assert await store._backend.write(where) == HERE()


async def test_those_who_write_at_the_same_time_go_into_one_transaction(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await warmed(store)
    groups: list[int] = []
    commit = writer.Writer._commit

    def counted(self: writer.Writer, jobs: list[Any], ended: Any) -> None:
        groups.append(len(jobs))
        commit(self, jobs, ended)

    monkeypatch.setattr(writer.Writer, "_commit", counted)
    found = await asyncio.gather(*(store._backend.write(where, n) for n in range(8)))
    assert HERE() not in found
    assert groups == [8]


async def test_a_task_that_writes_and_reads_without_end_lets_others_have_their_turn(
    store: Store,
) -> None:
    chat = await warmed(store)
    turns = itertools.count()

    async def other() -> None:
        while True:
            next(turns)
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    for _ in range(20):
        await chat.append(user("on and on"))
        await chat.path(newest=1)
    task.cancel()
    assert next(turns) >= 20 + 20 // writer.AT_A_TIME


@pytest.mark.parametrize(
    "error", [ValueError("no"), KeyboardInterrupt(), StopIteration(), MemoryError()], ids=repr
)
async def test_a_unit_that_fails_at_hand_leaves_nothing(store: Store, error: BaseException) -> None:
    chat = await warmed(store)
    with pytest.raises((type(error), RuntimeError)):
        await store._backend.write(fail, error)
    assert len(await chat.path()) == connection.STEADY
    assert (await chat.refresh()).title is None
    assert await store._backend.write(where) == HERE()


async def test_a_caller_that_is_cancelled_before_its_turn_has_begun_nothing(store: Store) -> None:
    chat = await warmed(store)
    task = asyncio.create_task(chat.append(user("never")))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [m.text for m in await chat.path()] == ["0", "1", "2"]
    assert await store._backend.write(where) == HERE(), "nobody is thought to be on the way"


async def test_a_store_that_another_process_holds_is_waited_for_on_the_thread(
    tmp_path: Path,
) -> None:
    async with sessiontree.open_store(tmp_path / "a.db", durability="normal") as store:
        chat = await warmed(store)
        with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            task = asyncio.create_task(chat.append(user("late")))
            for _ in range(20):  # the loop is free meanwhile
                await asyncio.sleep(0.001)
            assert not task.done()
            other.execute("ROLLBACK")
        await task
        assert (await chat.path())[-1].text == "late"


async def test_a_unit_at_hand_waits_for_a_reader_in_memory() -> None:
    """One connection does all; what is read is of one moment."""
    async with sessiontree.open_store(":memory:") as store:
        chat = await warmed(store)
        begun, go_on = threading.Event(), threading.Event()

        def slow(db: sqlite3.Connection) -> list[int]:
            first = db.execute("SELECT count(*) FROM message").fetchone()[0]
            begun.set()
            go_on.wait(20)
            return [first, db.execute("SELECT count(*) FROM message").fetchone()[0]]

        reading = asyncio.create_task(store._backend.read(slow))
        while not begun.is_set():  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        writing = asyncio.create_task(chat.append(user("meanwhile")))
        await asyncio.sleep(0.01)
        assert not writing.done()
        go_on.set()
        assert await reading == [connection.STEADY] * 2
        await writing


async def test_after_closing_nothing_is_done_at_hand(tmp_path: Path) -> None:
    async with sessiontree.open_store(tmp_path / "a.db") as store:
        chat = await warmed(store)
    for operation in (chat.append(user("late")), chat.path(newest=1), chat.branch(None)):
        with pytest.raises(StoreClosed):
            await operation


async def test_who_comes_while_another_thread_closes_the_store_is_told_so(tmp_path: Path) -> None:
    """Its handle is closed, and its log is gone, before the connection says so."""
    async with sessiontree.open_store(tmp_path / "a.db") as store:
        chat = await warmed(store)
        for number in range(2):
            await chat.path(newest=1)
            await chat.append(user(str(number)))
        backend: Any = store._backend
        for opened in (*backend._readers, backend._writer_connection):
            opened._close_what_was_made()
        for _ in range(2):
            with pytest.raises(StoreClosed):
                await chat.path(newest=1)
            with pytest.raises(StoreClosed):
                await chat.append(user("late"))


async def test_a_signal_while_long_values_are_forbidden_does_not_forbid_them_to_the_thread(
    store: Store,
) -> None:
    chat = await warmed(store)
    opened: Any = store._backend._writer_connection
    await store._backend.write(where_unbounded)
    made = opened._connection

    class Interrupted:
        """SQLite has taken the limit; then the signal comes."""

        def __getattr__(self, name: str) -> Any:
            return getattr(made, name)

        def setlimit(self, *limit: int) -> None:
            made.setlimit(*limit)
            raise KeyboardInterrupt

    opened._connection = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        await store._backend.write(where)
    opened._connection = made
    image = "x" * 2 * connection.LONG
    assert (await chat.append(user(image)))[0].text == image


@pytest.mark.parametrize("error", [ValueError, sqlite3.OperationalError])
async def test_what_a_unit_at_hand_raised_is_gone_once_it_was_caught(
    store: Store, error: type[Exception]
) -> None:
    """No circle holds it, and with it all that its frames knew."""
    await warmed(store)

    class Held:
        """What a unit works with."""

    @units.bounded
    def fail_with(_: sqlite3.Connection, held: Held) -> None:
        raise error("no")

    held = Held()
    gone = weakref.ref(held)
    gc.disable()
    try:
        with suppress(ValueError, sessiontree.StoreError):
            await store._backend.write(fail_with, held)
        del held
        assert gone() is None
    finally:
        gc.enable()


# ---- the log ---------------------------------------------------------------------------


def _log(file: Path) -> int:
    return os.stat(f"{file}-wal").st_size


async def test_the_log_of_a_lone_writer_stays_short(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    async with sessiontree.open_store(file, durability="normal") as store:
        chat = await warmed(store)
        for number in range(12 * writer.FOLD):
            await chat.append([user("x" * 2000), {"role": "assistant", "content": str(number)}])
        assert _log(file) < 4 * writer.FOLD * 4096 * 8
        assert len(await chat.path()) == connection.STEADY + 24 * writer.FOLD


async def test_a_log_that_cannot_be_folded_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.db"
    async with sessiontree.open_store(file, durability="normal") as store:
        chat = await warmed(store)
        refuses = sessiontree.StoreFull("there is no room")

        def full(how: object) -> sqlite3.Connection:
            raise refuses

        monkeypatch.setattr("sessiontree.store.driver.Opening.connect", full)
        for number in range(3 * writer.FOLD):
            await chat.append(user(str(number)))
        monkeypatch.undo()
    async with sessiontree.open_store(file) as store:
        assert await store.check() == []
        chat = await store.conversation("chat")
        assert len(await chat.path()) == connection.STEADY + 3 * writer.FOLD


# ---- several event loops ---------------------------------------------------------------


async def test_event_loops_in_several_threads_share_a_store(store: Store) -> None:
    count, each = 3, 60
    chats = [await store.conversation(str(number)) for number in range(count)]
    failed: list[BaseException] = []

    async def talk(chat: Conversation) -> None:
        for number in range(each):
            await chat.append(user(str(number)))
            assert (await chat.path(newest=1))[0].text == str(number)

    def run(work: Callable[[Conversation], Any], chat: Conversation) -> None:
        try:
            asyncio.run(work(chat))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(talk, chat)) for chat in chats]
    for thread in threads:
        thread.start()
    await asyncio.to_thread(lambda: [thread.join(60) for thread in threads])
    assert not failed
    assert [len(await chat.path()) for chat in chats] == [each] * count
