"""A connection and its thread; and when the way to that thread is not worth going.

The way to another thread and back takes about 0.1 ms. On a disk that is done in 0.2 ms that is
a third of a turn, and while it lasts the event loop gets little else done: both threads want
Python's lock. So a unit of work that is bounded is run *at hand*, on the caller's own thread,
where nobody else is at work on the connection and the last ones were quick. On a slow disk
they are not, and everything goes to the thread, as does what is long by its nature.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any, TypeVar

import aiosqlite

from sessiontree.errors import StoreClosed, StoreError
from sessiontree.store.driver import Opening

T = TypeVar("T")

QUICK = 0.001
"""Seconds that an event loop may well be kept from other tasks."""
STEADY = 3
"""So many bounded units in a row must have been quick before the next is run at hand."""
LONG = 256 * 1024
"""Bytes of one value, an image perhaps, from which on it is read on the thread: how much a few
rows hold shows only when they are read."""
ANY = 0x7FFFFFFF


class Pace:
    """How long bounded units of work have taken of late."""

    def __init__(self) -> None:
        self._quick_ones = 0
        self.is_quick = False
        """Whether the next one may be run at hand."""

    def ended(self, began: float) -> None:
        """One has, that began at this time of ``perf_counter``."""
        quick = perf_counter() - began <= QUICK
        self._quick_ones = self._quick_ones + 1 if quick else 0
        self.is_quick = self._quick_ones >= STEADY


class Connection(aiosqlite.Connection):
    """An aiosqlite connection that runs a whole unit of work in one hop to its thread, or at
    hand. Whoever works on it *holds* it."""

    _stopped: asyncio.Future[Any] | None = None
    _made: sqlite3.Connection | None = None

    def __init__(self, how: Opening) -> None:
        def connect() -> sqlite3.Connection:
            self._made = how.connect()
            return self._made

        super().__init__(connect, iter_chunk_size=64)
        self._path = how.path
        self._held = threading.Lock()
        self._allowed: int | None = ANY
        self.pace = Pace()

    async def open(self) -> Connection:
        """Connect. Where that fails, the thread has ended before the error goes on: it must
        not speak to an event loop that is closed by then."""
        try:
            return await self  # pyright: ignore
        except BaseException:
            if self._stopped is not None:
                await outlast(self._stopped)
            raise

    def stop(self) -> asyncio.Future[Any] | None:
        self.start(self._close_what_was_made)
        self._stopped = super().stop()  # pyright: ignore[reportUnknownMemberType]
        return self._stopped

    async def close(self) -> None:
        """Once nobody is at work on it: an event loop in another thread may be, at hand."""
        self.start(self._close_what_was_made)
        await super().close()

    async def run(self, unit: Callable[[sqlite3.Connection], T]) -> T:
        """``unit(connection)``, on the connection's thread."""
        if not self.alive:
            raise StoreClosed(f"{self._path} is closed")
        box: list[T] = await self._execute(self._hold_for, unit)  # pyright: ignore
        return box.pop()

    async def run_bounded(self, unit: Callable[[sqlite3.Connection], T]) -> T:
        """As ``run``; at hand where that is quick and nobody else is at work here."""
        if self.pace.is_quick:
            await asyncio.sleep(0)  # other tasks, and whoever cancels this one, have their turn
            try:
                done = self.at_hand(partial(self._timed, unit))
            except StoreError as error:
                if not is_too_long(error):
                    raise
            else:
                if done is not None:
                    return done[0]
        return await self.run(partial(self._timed, unit))

    def at_hand(self, unit: Callable[[sqlite3.Connection], T]) -> tuple[T] | None:
        """``(unit(connection),)``, here and now; None where another one holds it. Whatever a
        signal handler raises in between, it is let go, and no transaction stays open.

        An error that ``is_too_long``: it is not for here."""
        db = self.raw
        taken: list[bool] = []
        try:
            taken.extend(map(self._held.acquire, (False,)))  # one step: no signal comes between
            if not taken[0]:
                return None
            if self._allowed != LONG:
                self.allow(LONG)
            return (unit(db),)
        finally:
            if True in taken:
                try:
                    roll_back(db)  # nothing, but for a signal
                finally:
                    self._held.release()  # not by a function of ours: it might not begin

    def _timed(self, unit: Callable[[sqlite3.Connection], T], db: sqlite3.Connection) -> T:
        began = perf_counter()
        try:
            return unit(db)
        finally:
            self.pace.ended(began)

    def start(self, job: Callable[[], None]) -> None:
        """Run ``job`` on the connection's thread; it holds the connection while it needs it.
        Nobody waits for it, it must not raise."""
        self._tx.put_nowait((None, job))  # pyright: ignore[reportUnknownMemberType]

    def hold(self) -> None:
        """Take the connection for its thread, when nobody is at work on it."""
        self._held.acquire()

    def allow(self, length: int) -> None:
        """From now on values may be of so many bytes. StoreClosed."""
        try:
            self._allowed = None  # until it is done: a signal may come between
            self.raw.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, length)
            self._allowed = length
        except sqlite3.ProgrammingError as error:
            raise StoreClosed(f"{self._path} is closed") from error

    def let_go(self) -> None:
        self._held.release()

    def _hold_for(self, unit: Callable[[sqlite3.Connection], T]) -> list[T]:
        """In a box that is emptied: the thread keeps what its last job returned until the next,
        and would free ten thousand rows while the next caller waits."""
        with self._held:
            self.allow(ANY)
            return [unit(self.raw)]

    @property
    def is_asked(self) -> bool:
        """Whether a job waits for the thread."""
        return not self._tx.empty()  # pyright: ignore[reportUnknownMemberType]

    def _close_what_was_made(self) -> None:
        """On the thread; also what a caller that was cancelled did not take."""
        with self._held:
            if self._made is not None:
                self._made.close()
                self._allowed = None  # whoever comes now is told that it is closed

    @property
    def raw(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreClosed(f"{self._path} is closed")
        return self._connection

    @property
    def alive(self) -> bool:
        return self._running and self._connection is not None


async def outlast(future: asyncio.Future[Any]) -> None:
    """Wait for it however often the caller is cancelled, natively or by anyio's scopes."""
    from anyio import CancelScope  # slow to import, and rarely needed

    while not future.done():
        with contextlib.suppress(asyncio.CancelledError), CancelScope(shield=True):
            await asyncio.wait([future])


def is_too_long(error: BaseException) -> bool:
    """Whether a value was too long to be read, or written, at hand."""
    code = getattr(error.__cause__, "sqlite_errorcode", None)
    return code == sqlite3.SQLITE_TOOBIG


def roll_back(db: sqlite3.Connection) -> None:
    try:
        if db.in_transaction:
            db.execute("ROLLBACK")
    except sqlite3.Error:  # the transaction is gone with the connection
        return
