"""One SQLite file: the connection that writes, those that read, and what runs on them."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from sessiontree.errors import StoreClosed, StoreReadOnly
from sessiontree.store.connection import Connection, outlast, roll_back
from sessiontree.store.driver import Opening, named_errors
from sessiontree.store.units import is_bounded
from sessiontree.store.writer import Writer

P = ParamSpec("P")
T = TypeVar("T")

READERS = 2


class SQLiteBackend:
    """Runs units of work against one SQLite file (or memory)."""

    def __init__(self, how: Opening) -> None:
        self._how = how
        self._process = os.getpid()
        self._writer_connection: Connection | None = None
        self._writer: Writer | None = None
        self._readers: list[Connection] = []
        self._next = 0
        self._opening: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock]
        self._opening = WeakKeyDictionary()
        self._lock = threading.Lock()
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
        if self._process != os.getpid():
            return  # its threads are not here, and its files are the other's
        with self._lock:
            self._closed = True
        closing = asyncio.ensure_future(self._close())
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:
            await outlast(closing)
            raise

    async def _close(self) -> None:
        async with self._opening_here():
            pass
        if self._writer is not None:
            self._writer.end()
        opened = [*self._readers, self._writer_connection]
        self._readers, self._writer, self._writer_connection = [], None, None
        for connection in opened:  # the writer last: it folds the WAL into the file
            if connection is not None:
                await connection.close()

    def write(
        self,
        unit: Callable[Concatenate[sqlite3.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Coroutine[Any, Any, T]:
        """Run a unit in a transaction of its own or shared; durable when it returns."""
        return self._writes().run(partial(unit, **kwargs) if kwargs else unit, args, None)

    def write_then(
        self,
        then: Callable[[T], None],
        unit: Callable[Concatenate[sqlite3.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Coroutine[Any, Any, T]:
        """As ``write``; ``then`` learns the result even when the caller was cancelled."""
        return self._writes().run(partial(unit, **kwargs) if kwargs else unit, args, then)

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
                    roll_back(db)

        run = reader.run_bounded if is_bounded(unit, args) else reader.run
        return await run(whole)

    async def _reader(self) -> Connection:
        self._refuse_closed()
        if self._how.in_memory and self._writer_connection is not None:
            return self._writer_connection  # there is nothing that a second one could open
        if len(self._readers) < READERS:
            async with self._opening_here():
                self._refuse_closed()
                if len(self._readers) < READERS:
                    await self._open_reader()
        readers = self._readers
        if not readers:
            self._refuse_closed()
        self._next += 1
        return readers[self._next % len(readers)]

    async def _open_reader(self) -> None:
        reader = await self._connect(replace(self._how, only_reads=True))
        with self._lock:
            if not self._closed:
                self._readers.append(reader)
                return
        await reader.close()  # another event loop has closed the store meanwhile
        self._refuse_closed()

    def _opening_here(self) -> asyncio.Lock:
        """One task opens a reader for all that wait; each event loop has its own lock, since they
        cannot wait for each other, and may open one more."""
        return self._opening.setdefault(asyncio.get_running_loop(), asyncio.Lock())

    async def _connect(self, how: Opening) -> Connection:
        return await Connection(how).open()

    def _refuse_closed(self) -> None:
        if self._process != os.getpid():
            what = f"{self.name} was opened by the process that this one was forked from"
            raise StoreClosed(
                what, hint="open stores after forking: SQLite's locks do not go along"
            )
        if self._closed:
            raise StoreClosed(f"{self.name} is closed")
