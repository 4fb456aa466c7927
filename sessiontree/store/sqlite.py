"""SQLite: connections, transactions, and driver errors turned into ours.

One connection writes, on its own thread. Units of work that wait while a transaction is
being committed go into the next one together (*group commit*): one fsync serves them all.
They run as if nothing could fail; where one does, all run again, each inside a savepoint, so
that its failure is its own caller's alone. Readers have connections of their own.

Python runs one thread at a time, SQLite does not mind: while it commits one group, the event
loop hears that the last one is durable and makes the next one ready. So a crowd is parted in
two groups that take turns, and what is durable is told when SQLite is busy again.

A unit that has begun is always waited for, even by a caller that is cancelled, so that
afterwards the caller's handle knows what happened. One that has not begun is dropped: also
one that waits for another process to let the store go.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, groupby
from operator import attrgetter
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import aiosqlite

from sessiontree.errors import StoreClosed, StoreReadOnly
from sessiontree.store.driver import Opening, SameFile, named_errors
from sessiontree.store.units import Together

P = ParamSpec("P")
T = TypeVar("T")

READERS = 2
BATCH = 256
"""Most units in one transaction: bounds how long the first of them waits."""
CROWD = 16
"""So many that wait are parted in two groups."""
LOOK_AGAIN = 0.01
"""Seconds, at most, until a writer that another process keeps out tries again. SQLite by itself
tries every 0.1 s: next to processes that write group after group it hardly ever finds the store
free, and gives up."""


class Connection(aiosqlite.Connection):
    """An aiosqlite connection that runs a whole unit of work in one hop to its thread."""

    _stopped: asyncio.Future[Any] | None = None
    _made: sqlite3.Connection | None = None

    def __init__(self, how: Opening) -> None:
        def connect() -> sqlite3.Connection:
            self._made = how.connect()
            return self._made

        super().__init__(connect, iter_chunk_size=64)

    async def open(self) -> Connection:
        """Connect. Where that fails, the thread has ended before the error goes on: it must
        not speak to an event loop that is closed by then."""
        try:
            return await self  # pyright: ignore
        except BaseException:
            if self._stopped is not None:
                await _outlast(self._stopped)
            raise

    def stop(self) -> asyncio.Future[Any] | None:
        self.start(self._close_what_was_made)
        self._stopped = super().stop()  # pyright: ignore[reportUnknownMemberType]
        return self._stopped

    async def run(self, unit: Callable[[sqlite3.Connection], T]) -> T:
        """``unit(connection)``, on the connection's thread."""
        return await self._execute(unit, self._conn)  # pyright: ignore

    def start(self, job: Callable[[], None]) -> None:
        """Run ``job`` on the connection's thread; nobody waits for it, it must not raise."""
        self._tx.put_nowait((None, job))  # pyright: ignore[reportUnknownMemberType]

    @property
    def is_asked(self) -> bool:
        """Whether a job waits for the thread."""
        return not self._tx.empty()  # pyright: ignore[reportUnknownMemberType]

    def _close_what_was_made(self) -> None:
        """On the thread: what a caller that was cancelled did not take."""
        if self._made is not None:
            self._made.close()

    @property
    def raw(self) -> sqlite3.Connection:
        return self._conn

    @property
    def alive(self) -> bool:
        return self._running and self._connection is not None


@dataclass(slots=True, eq=False)
class _Job:
    number: int
    """They begin in this order."""
    unit: Callable[..., Any]
    args: tuple[Any, ...]
    then: Callable[[Any], None] | None
    future: asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = None
    settled: bool = False
    waiter: asyncio.Future[None] | None = None
    """Of a caller that was cancelled, and stays until the unit has ended."""

    def settle(self) -> None:
        """On the caller's event loop: hand over what came out. Never raises: others follow."""
        self.settled = True
        if self.error is None and self.then is not None:
            try:
                self.then(self.result)
            except BaseException as error:
                self.error = error
        if self.waiter is not None:
            self.waiter.set_result(None)
        if self.future.done():  # the caller was cancelled, or the loop is being torn down
            return
        if isinstance(self.error, StopIteration):  # a future cannot hold it
            self.error = RuntimeError(f"a unit of work raised {self.error!r}")
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


class _Ended:
    """Jobs that have ended, and whose callers are to be told: when SQLite is at work again,
    since they will want Python's lock."""

    def __init__(self) -> None:
        self.jobs: list[_Job] = []

    def tell(self) -> None:
        """Each on the event loop that it came from."""
        jobs, self.jobs = self.jobs, []
        for loop, theirs in groupby(jobs, key=lambda job: job.future.get_loop()):
            with contextlib.suppress(RuntimeError):  # it was closed: nobody waits there any more
                loop.call_soon_threadsafe(_settle, list(theirs))


class Writer:
    """The one that writes: drains what waits into one transaction after another."""

    def __init__(self, connection: Connection, how: Opening) -> None:
        self._connection = connection
        self._name = how.path
        self._patience = how.patience
        self._file = SameFile(how)
        self._waiting: deque[_Job] = deque()
        self._numbers = count()
        self._lock = threading.Lock()
        self._draining = False
        self._over = False
        self._lets_sqlite_wait = True

    async def run(
        self, unit: Callable[..., T], args: tuple[Any, ...], then: Callable[[T], None] | None
    ) -> T:
        """``unit(connection, *args)`` in a transaction; returns once it is durable.

        ``then`` is called with the result on the event loop, even when the caller was
        cancelled while the unit ran.
        """
        job = self._put(unit, args, then)
        try:
            return await job.future
        except asyncio.CancelledError:
            await self._drop_or_wait(job)
            raise

    def _put(
        self, unit: Callable[..., Any], args: tuple[Any, ...], then: Callable[[Any], None] | None
    ) -> _Job:
        future = asyncio.get_running_loop().create_future()
        with self._lock:
            if self._over:
                raise StoreClosed(f"{self._name} is closed")
            job = _Job(next(self._numbers), unit, args, then, future)
            self._waiting.append(job)
            if not self._draining:
                self._connection.start(self._drain)
                self._draining = True
        return job

    def end(self) -> None:
        """Take nothing more. What was taken is done before the connection closes."""
        with self._lock:
            self._over = True

    async def _drop_or_wait(self, job: _Job) -> None:
        with self._lock:
            if job in self._waiting:
                self._waiting.remove(job)
                return
        if not job.settled:
            job.waiter = asyncio.get_running_loop().create_future()
            await _outlast(job.waiter)
        if job.future.done() and not job.future.cancelled():
            job.future.exception()  # it ended just before the caller was cancelled; seen

    def _drain(self) -> None:
        ended = _Ended()
        while True:
            with self._lock:
                newest = self._waiting[-1].number if self._waiting else None
                self._draining = newest is not None
            if newest is None:
                ended.tell()
                return
            error = self._begin(ended)  # may wait for another process; callers come and go
            jobs = self._take_until(newest) if error else self._take(ended)
            if error is None:
                self._commit(jobs, ended)
            for job in jobs:
                job.error = job.error or error
            ended.tell()
            ended.jobs = jobs
            if self._gives_way():
                ended.tell()
                return

    def _gives_way(self) -> bool:
        """Whether others wait for the thread, and go first: a store in memory has but one."""
        with self._lock:
            if self._over or not self._connection.is_asked:
                return False
            self._connection.start(self._drain)
            return True

    def _take(self, ended: _Ended) -> list[_Job]:
        """The jobs that begin now, the oldest. What is taken can no longer be dropped."""
        with self._lock:
            size = len(self._waiting)
            if size >= CROWD and not ended.jobs:
                size //= 2
            return [self._waiting.popleft() for _ in range(min(size, BATCH))]

    def _take_until(self, newest: int) -> list[_Job]:
        """All that wait since this one or longer: another process kept them out together."""
        jobs: list[_Job] = []
        with self._lock:
            while self._waiting and self._waiting[0].number <= newest:
                jobs.append(self._waiting.popleft())
        return jobs

    def _begin(self, ended: _Ended) -> BaseException | None:
        try:
            with named_errors(self._name):
                self._file.require()
                self._begin_in_turn(ended)
        except BaseException as error:
            return error
        return None

    def _begin_in_turn(self, ended: _Ended) -> None:
        """Begin when no other process is writing. Callers whose work is durable are not to wait
        for that."""
        deadline, pause = time.monotonic() + self._patience, 0.001
        while (busy := self._begin_at_once()) is not None:
            if time.monotonic() >= deadline:
                raise busy
            ended.tell()
            time.sleep(random.uniform(0.5, 1) * pause)
            pause = min(2 * pause, LOOK_AGAIN)

    def _begin_at_once(self) -> sqlite3.OperationalError | None:
        """Begin; or what SQLite says when another process is writing."""
        db = self._connection.raw
        if self._lets_sqlite_wait:
            db.execute("PRAGMA busy_timeout = 0")
            self._lets_sqlite_wait = False
        try:
            db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            return error
        return None

    def _commit(self, jobs: list[_Job], ended: _Ended) -> None:
        """Run the jobs in the transaction; each has its result or its error afterwards."""
        db = self._connection.raw
        try:
            with named_errors(self._name):
                if not self._run_together(db, jobs, ended):
                    self._run_apart(db, jobs, ended)
                ended.tell()
                db.execute("COMMIT")
        except BaseException as error:
            _roll_back(db)
            for job in jobs:
                job.error = job.error or error

    def _run_together(self, db: sqlite3.Connection, jobs: list[_Job], ended: _Ended) -> bool:
        """Run them as if nothing could fail, which nearly always holds and is cheaper; False
        when one of several failed: nothing is known of the others then."""
        try:
            for unit, alike in groupby(jobs, key=attrgetter("unit")):
                _run_alike(db, unit, list(alike), ended)
        except BaseException:
            if len(jobs) == 1:
                raise
            return False
        return True

    def _run_apart(self, db: sqlite3.Connection, jobs: list[_Job], ended: _Ended) -> None:
        """Begin again, each in a savepoint, so that one's failure is its own caller's."""
        _roll_back(db)
        self._begin_in_turn(ended)
        for job in jobs:
            self._run_in_savepoint(db, job)

    def _run_in_savepoint(self, db: sqlite3.Connection, job: _Job) -> None:
        db.execute("SAVEPOINT unit")
        try:
            with named_errors(self._name):
                job.result = job.unit(db, *job.args)
        except BaseException as error:
            job.error = error
            if not db.in_transaction:  # SQLite gave the whole transaction up: disk full, …
                raise
            db.execute("ROLLBACK TO unit")
        db.execute("RELEASE unit")


async def _outlast(future: asyncio.Future[Any]) -> None:
    """Wait for it however often the caller is cancelled, natively or by anyio's scopes."""
    from anyio import CancelScope  # slow to import, and rarely needed

    while not future.done():
        with contextlib.suppress(asyncio.CancelledError), CancelScope(shield=True):
            await asyncio.wait([future])


def _run_alike(
    db: sqlite3.Connection, unit: Callable[..., Any], jobs: list[_Job], ended: _Ended
) -> None:
    if isinstance(unit, Together) and len(jobs) > 1:
        calls = [job.args for job in jobs]
        results = cast("Together[Any, Any]", unit).everyone(db, calls)
        for job, result in zip(jobs, results, strict=True):
            job.result = result
        return
    ended.tell()
    for job in jobs:
        job.result = unit(db, *job.args)


def _settle(jobs: list[_Job]) -> None:
    for job in jobs:
        job.settle()


def _roll_back(db: sqlite3.Connection) -> None:
    if db.in_transaction:
        try:
            db.execute("ROLLBACK")
        except sqlite3.Error:  # the transaction is gone with the connection
            return


class SQLiteBackend:
    """Runs units of work against one SQLite file (or memory)."""

    def __init__(self, how: Opening) -> None:
        self._how = how
        self._writer_connection: Connection | None = None
        self._writer: Writer | None = None
        self._readers: list[Connection] = []
        self._next = 0
        self._opening = asyncio.Lock()
        self._closed = False

    @property
    def name(self) -> str:
        """What errors call this store."""
        return self._how.path

    async def open(self) -> None:
        """Open the first connection; creates or migrates the store when it may."""
        first = await self._connect(self._how)
        if self._how.read_only:
            self._readers.append(first)
        else:
            self._writer_connection = first
            self._writer = Writer(first, self._how)

    async def close(self) -> None:
        """Close all connections, whoever is cancelled: a thread that is left over would keep
        the process from ending."""
        self._closed = True
        closing = asyncio.ensure_future(self._close())
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:
            await _outlast(closing)
            raise

    async def _close(self) -> None:
        async with self._opening:
            pass
        if self._writer is not None:
            self._writer.end()
        opened = [*self._readers, self._writer_connection]
        self._readers, self._writer, self._writer_connection = [], None, None
        for connection in opened:  # the writer last: it folds the WAL into the file
            if connection is not None:
                await connection.close()

    async def write(
        self,
        unit: Callable[Concatenate[sqlite3.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run a unit in a transaction of its own or shared; durable when it returns."""
        return await self._writes().run(partial(unit, **kwargs) if kwargs else unit, args, None)

    async def write_then(
        self,
        then: Callable[[T], None],
        unit: Callable[Concatenate[sqlite3.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """As ``write``; ``then`` learns the result even when the caller was cancelled."""
        return await self._writes().run(partial(unit, **kwargs) if kwargs else unit, args, then)

    @property
    def how(self) -> Opening:
        """How it was opened."""
        return self._how

    def require_writable(self) -> None:
        """StoreReadOnly, StoreClosed."""
        self._writes()

    def _writes(self) -> Writer:
        self._refuse_closed()
        if self._writer is None or self._writer_connection is None:
            raise StoreReadOnly(f"{self.name} was opened read-only")
        if not self._writer_connection.alive:
            raise StoreClosed(f"{self.name} is closed")
        return self._writer

    async def read(
        self,
        unit: Callable[Concatenate[sqlite3.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run a unit in a read transaction: all that it reads is of one moment."""
        reader = await self._reader()

        def whole(db: sqlite3.Connection) -> T:
            with named_errors(self.name):
                db.execute("BEGIN")
                try:
                    return unit(db, *args, **kwargs)
                finally:
                    _roll_back(db)

        return await reader.run(whole)

    async def _reader(self) -> Connection:
        self._refuse_closed()
        if self._how.in_memory and self._writer_connection is not None:
            return self._writer_connection  # there is nothing that a second one could open
        if len(self._readers) < READERS:
            async with self._opening:
                self._refuse_closed()
                if len(self._readers) < READERS:
                    self._readers.append(await self._connect(replace(self._how, only_reads=True)))
        self._next += 1
        return self._readers[self._next % len(self._readers)]

    async def _connect(self, how: Opening) -> Connection:
        return await Connection(how).open()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise StoreClosed(f"{self.name} is closed")
