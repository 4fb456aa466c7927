"""However a unit of work at hand ends, the connection is let go, no transaction stays open, and
the handle knows what was saved: a signal handler that raises anywhere in it, a store that is
closed beside it, a process that forks."""

from __future__ import annotations

import asyncio
import dis
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import cache
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any

import pytest
from hands import HERE, warmed, where
from talk import user

import sessiontree
from sessiontree import Conversation, Store
from sessiontree.errors import StoreClosed
from sessiontree.store import connection, units, writer
from sessiontree.store.sqlite import SQLiteBackend

PATIENCE = 20
"""Seconds after which a test says that something hangs; no test waits for it when all is well."""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is that runs the tests; and the thread has no log to fold."""
    monkeypatch.setattr(connection, "QUICK", float("inf"))
    monkeypatch.setattr(writer, "FOLD", 1 << 60)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with sessiontree.open_store(tmp_path / "a.db", durability="normal") as opened:
        yield opened
        assert await opened.check() == []


# ---- a signal handler that raises ------------------------------------------------------


class Struck(BaseException):
    """What a signal handler raises: KeyboardInterrupt, a time limit."""


@cache
def _looked(code: CodeType) -> frozenset[int]:
    """Where Python has just looked for signals: after a call, and where a function begins."""
    found: set[int] = set()
    looks = False
    for at in dis.get_instructions(code):
        if looks:
            found.add(at.offset)
        looks = at.opname.startswith("CALL") or at.opname in ("RESUME", "JUMP_BACKWARD")
    return frozenset(found)


class Strike:
    """A signal handler raises at the ``at``-th place of the store's code where Python looks for
    signals. ``where`` tells the place, or None: there were fewer."""

    def __init__(self, at: int) -> None:
        self._left = at
        self.where: str | None = None

    def __enter__(self) -> Strike:
        self._before = sys.gettrace()
        sys.settrace(self._begin)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        sys.settrace(self._before)

    def _begin(self, frame: FrameType, event: str, arg: Any) -> Any:
        if os.path.join("sessiontree", "store") not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return self._step

    def _step(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "opcode" and frame.f_lasti in _looked(frame.f_code):
            self._left -= 1
            if self._left == 0:
                name = os.path.basename(frame.f_code.co_filename)
                self.where = f"{name}:{frame.f_lineno} {frame.f_code.co_qualname}"
                raise Struck
        return self._step


async def _append(chat: Conversation) -> None:
    await chat.append(user("struck"))


async def _branch(chat: Conversation) -> None:
    path = await chat.path(newest=2)
    await chat.branch(path[0].id)


async def _undo(chat: Conversation) -> None:
    await chat.undo()


async def _read(chat: Conversation) -> None:
    await chat.path(newest=2)


@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("operation", [_append, _branch, _undo, _read], ids=lambda o: o.__name__)
async def test_a_signal_handler_may_raise_anywhere_in_a_unit_at_hand(
    store: Store, operation: Callable[[Conversation], Awaitable[None]]
) -> None:
    chat = await warmed(store)
    backend = store._backend
    assert backend._writer_connection is not None
    connections = [backend._writer_connection, *backend._readers]
    faults: dict[str, str] = {}
    at = 0
    while True:
        at += 1
        await chat.append([user("a"), user("b")])
        try:
            with Strike(at) as strike:
                await operation(chat)
        except Struck:
            pass
        if strike.where is None:
            break
        for one in connections:
            if one._held.locked():
                faults[strike.where] = "the connection is still held"
                one._held.release()
            if one.raw.in_transaction:
                faults[strike.where] = "a transaction is still open"
                one.raw.execute("ROLLBACK")
        if chat.head != (await store.open(chat.id)).head:
            faults[strike.where] = "the handle does not know its head"
            await chat.refresh()
        await backend.read(where)  # both readers
        if {await backend.write(where), await backend.read(where)} != {HERE()}:
            faults[strike.where] = "no unit is done at hand any more"
            await warmed(store)
    assert not faults
    assert at > 30


# ---- closing beside it -----------------------------------------------------------------


class Gate:
    """A unit that stops in the middle until it is let through."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.open = threading.Event()

    def __call__(self, db: sqlite3.Connection) -> int:
        self.reached.set()
        self.open.wait(PATIENCE)
        return db.execute("SELECT 7").fetchone()[0]

    async def is_reached(self) -> None:
        async with asyncio.timeout(PATIENCE):
            while not self.reached.is_set():  # noqa: ASYNC110
                await asyncio.sleep(0.001)


@pytest.mark.parametrize("way", ["read", "write"])
async def test_a_store_closes_when_a_unit_at_hand_of_another_event_loop_has_ended(
    tmp_path: Path, way: str
) -> None:
    """SQLite's connection would be taken away from under it, and Python's process with it."""
    gate, outcome = Gate(), list[Any]()
    units.bounded(gate)
    opened = sessiontree.open_store(tmp_path / "a.db")
    store = await opened.__aenter__()
    await warmed(store)

    def other() -> None:
        try:
            outcome.append(asyncio.run(getattr(store._backend, way)(gate)))
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=other)
    thread.start()
    await gate.is_reached()
    closing = asyncio.create_task(opened.__aexit__(None, None, None))
    await asyncio.wait([closing], timeout=0.1)
    assert not closing.done()
    gate.open.set()
    async with asyncio.timeout(PATIENCE):
        await closing
    await asyncio.to_thread(thread.join, PATIENCE)
    assert outcome == [7]
    assert os.listdir(tmp_path) == ["a.db"]


async def test_event_loops_may_all_be_the_first_to_read(tmp_path: Path) -> None:
    count = 4
    outcomes: list[Any] = []
    together = threading.Barrier(count)
    async with sessiontree.open_store(tmp_path / "a.db") as store:
        backend = store._backend

        def run() -> None:
            async def read() -> list[int]:
                together.wait(PATIENCE)
                return await asyncio.gather(*(backend.read(where) for _ in range(4)))

            try:
                outcomes.append(len(asyncio.run(read())))
            except BaseException as error:
                outcomes.append(error)

        threads = [threading.Thread(target=run) for _ in range(count)]
        for thread in threads:
            thread.start()
        await asyncio.to_thread(lambda: [thread.join(PATIENCE) for thread in threads])
        assert outcomes == [4] * count
    assert os.listdir(tmp_path) == ["a.db"]


async def test_a_reader_that_is_opened_while_another_event_loop_closes_is_closed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, outcomes = Gate(), list[Any]()
    connect = SQLiteBackend._connect

    async def slowly(self: SQLiteBackend, how: Any) -> connection.Connection:
        made = await connect(self, how)
        await made.run(gate)
        return made

    opened = sessiontree.open_store(tmp_path / "a.db")
    store = await opened.__aenter__()
    monkeypatch.setattr(SQLiteBackend, "_connect", slowly)

    def run() -> None:
        try:
            asyncio.run(store._backend.read(where))
        except BaseException as error:
            outcomes.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    await gate.is_reached()
    await opened.__aexit__(None, None, None)
    gate.open.set()
    await asyncio.to_thread(thread.join, PATIENCE)
    assert [type(error) for error in outcomes] == [StoreClosed]
    assert os.listdir(tmp_path) == ["a.db"]


async def test_a_connection_that_another_event_loop_has_closed_says_so(tmp_path: Path) -> None:
    async with sessiontree.open_store(tmp_path / "a.db") as store:
        await warmed(store)
        for one in [store._backend._writer_connection, *store._backend._readers]:
            assert one is not None
            await one.close()
            with pytest.raises(StoreClosed):
                await one.run(where)
            with pytest.raises(StoreClosed):
                await one.run_bounded(where)
            await one.close()
        for way in (store._backend.read, store._backend.write):
            with pytest.raises(StoreClosed):
                await way(where)


# ---- the log and the thread ------------------------------------------------------------


async def test_an_event_loop_that_is_still_at_work_opens_nothing_after_the_store_has_closed(
    tmp_path: Path,
) -> None:
    """A connection that was left open would keep the log, and leave it behind."""
    opened = sessiontree.open_store(tmp_path / "a.db")
    store = await opened.__aenter__()
    await store.conversation("chat")
    one = store._backend._writer
    assert one is not None
    one.end()
    one._connection.start(one._fold)  # as it is asked for by whoever had begun before
    await opened.__aexit__(None, None, None)
    assert one._folder is None
    assert os.listdir(tmp_path) == ["a.db"]


async def test_a_log_whose_file_was_replaced_is_not_folded_into_the_other(tmp_path: Path) -> None:
    """What lies there now may be an older store, or an empty file: it is not touched."""
    file = tmp_path / "a.db"
    async with sessiontree.open_store(file) as store:
        await warmed(store)
        one = store._backend._writer
        assert one is not None
        os.rename(file, tmp_path / "mine.db")
        file.touch()
        one._connection.start(one._fold)
        await one._connection.run(where)
        assert file.stat().st_size == 0
        os.rename(tmp_path / "mine.db", file)
        one._connection.start(one._fold)
        await one._connection.run(where)
        assert one._folder is not None
        await store.conversation("another")


async def test_a_fold_that_was_missed_is_made_up_for(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else nothing would be done at hand any more, however quick the disk is."""
    chat = await warmed(store)
    monkeypatch.setattr(writer, "FOLD", 10)
    one = store._backend._writer
    assert one is not None
    one._unfolded, one._fold_at = 10, 20  # it was to be asked for, and a signal handler raised
    for number in range(10):
        await chat.append(user(str(number)))
    await one._connection.run(where)
    assert one._unfolded < 10
    assert await store._backend.write(where) == HERE()


async def test_what_a_crowd_has_left_in_the_log_is_not_folded_at_hand(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop would wait for megabytes to be on the disk, twice."""
    monkeypatch.setattr(writer, "FOLD", 10)
    chats = [await store.conversation(str(number)) for number in range(40)]
    one = store._backend._writer
    assert one is not None
    one._unfolded, one._fold_at = 0, 10
    await asyncio.gather(*(chat.append(user("all at once")) for chat in chats))
    folds: list[int] = []
    fold = writer.Writer._fold

    def counted(self: writer.Writer) -> None:
        folds.append(HERE())
        fold(self)

    monkeypatch.setattr(writer.Writer, "_fold", counted)
    for _ in range(connection.STEADY):
        assert await store._backend.write(where) != HERE()
    await one._connection.run(where)
    assert [thread != HERE() for thread in folds] == [True]
    assert await store._backend.write(where) == HERE()


# ---- tasks that nobody waits for -------------------------------------------------------


async def test_a_task_that_is_garbage_is_no_longer_on_the_way(store: Store) -> None:
    """Wherever it is collected: also where this thread has the writer's lock."""
    chat = await warmed(store)
    one = store._backend._writer
    assert one is not None
    one._alone = writer.NOBODY
    coming = one.run(where, (), None)
    coming.send(None)
    assert one._arriving
    ended = threading.Event()

    def collect() -> None:
        nonlocal coming
        with one._lock:
            coming.close()
        ended.set()

    threading.Thread(target=collect, daemon=True).start()
    assert await asyncio.to_thread(ended.wait, PATIENCE), "it waits for itself"
    assert await store._backend.write(where) == HERE()
    await chat.append(user("on"))


# ---- forks -----------------------------------------------------------------------------


FORKS = """
import asyncio, os, sys
import sessiontree
from sessiontree.errors import StoreClosed
from sessiontree.store import connection

connection.QUICK = float("inf")

async def use(store, chat):
    for work in (chat.append(user("child")), chat.path(newest=1), chat.rename("child")):
        try:
            await asyncio.wait_for(work, 20)
        except StoreClosed as error:
            assert "forked" in str(error), error
        else:
            raise AssertionError("it was done")
    await asyncio.wait_for(store._backend.close(), 20)

def user(text):
    return {"role": "user", "content": text}

async def main():
    async with sessiontree.open_store(sys.argv[1]) as store:
        chat = await store.conversation("chat")
        for number in range(9):
            await chat.append(user(str(number)))
            await chat.path(newest=1)
        child = os.fork()
        if not child:
            try:
                asyncio.run(use(store, chat))
                os._exit(0)
            finally:
                sys.excepthook(*sys.exc_info())
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        await chat.append(user("parent"))
        assert await store.check() == []
        assert [m.text for m in await chat.path(newest=2)] == ["8", "parent"]

asyncio.run(main())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_that_was_forked_does_not_write_by_its_parents_connection(
    tmp_path: Path,
) -> None:
    """SQLite's locks do not go along: two would write at once."""
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKS, str(tmp_path / "a.db")],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr
