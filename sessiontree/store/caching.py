"""The response cache in a SQLite file of its own.

Not in the session store: a cache is thrown away, grows and shrinks, and is written at every
read. It would make the store's file larger than what it keeps, and its writers wait.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

from sessiontree.core.caching import Entry, Packed, Totals
from sessiontree.errors import NotAStore, StoreTooNew
from sessiontree.store.driver import Opening, one_moment, write_ahead
from sessiontree.store.sqlite import SQLiteBackend
from sessiontree.store.statements import named, split

STATEMENTS = named("caching.sql")

APPLICATION_ID = 0x53544341
""""STCA": the mark in the file that says it is a cache."""
VERSION = 1

Clock = Callable[[], int]
"""Microseconds since 1970, UTC."""


@dataclass(frozen=True, slots=True)
class CacheFile(Opening):
    """How a cache's file is opened; it is made where there is none."""

    def set_up(self, db: sqlite3.Connection) -> None:
        is_new = self._is_new(db)
        if not self.only_reads:
            if is_new:
                db.execute("PRAGMA auto_vacuum = FULL")  # before the first table
            write_ahead(db, self.patience)
            if is_new:
                self._create(db)
            db.execute("PRAGMA synchronous = NORMAL")  # an answer may be lost with the power
            db.execute("PRAGMA foreign_keys = ON")
        db.execute("PRAGMA temp_store = MEMORY")

    def _is_new(self, db: sqlite3.Connection) -> bool:
        """Whether the file is empty. NotAStore when it is another's, StoreTooNew."""
        with one_moment(db):
            mark: int = db.execute("PRAGMA application_id").fetchone()[0]
            version: int = db.execute("PRAGMA user_version").fetchone()[0]
            is_empty: int = db.execute(STATEMENTS["is_empty"]).fetchone()[0]
        if mark == APPLICATION_ID:
            if version > VERSION:
                raise StoreTooNew(
                    f"{self.path} is a cache of version {version}, this sessiontree knows {VERSION}"
                )
            return version < VERSION
        if mark or version or not is_empty:
            raise NotAStore(
                f"{self.path} is a SQLite file of another kind, and no response cache",
                hint="name another file; this one was not changed",
            )
        return True

    def _create(self, db: sqlite3.Connection) -> None:
        """In one transaction; another process may have been first."""
        db.execute("BEGIN IMMEDIATE")
        try:
            if self._is_new(db):
                for statement in split(STATEMENTS["schema"]):
                    db.execute(statement)
                db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                db.execute(f"PRAGMA user_version = {VERSION}")
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise


class SQLiteCache:
    """Entries in a SQLite file, or in memory. Times to live are in microseconds."""

    def __init__(self, path: str, patience: float, clock: Clock) -> None:
        self._backend = SQLiteBackend(CacheFile(path, "normal", patience=patience))
        self._clock = clock

    @property
    def name(self) -> str:
        return self._backend.name

    async def open(self) -> None:
        await self._backend.open()

    async def close(self) -> None:
        await self._backend.close()

    async def get(self, key: str, ttl: int | None) -> Entry | None:
        """The entry, which then lives for another ``ttl``; counts a hit or a miss."""
        return await self._backend.write(_get, key, self._clock(), ttl)

    async def put(
        self, key: str, entry: Entry, ttl: int | None, most: int, conversation: str | None
    ) -> None:
        """Keep an entry, and let go of what was unused for longest when there are more than
        ``most`` bytes."""
        await self._backend.write(_put, key, entry, self._clock(), ttl, most, conversation)

    async def drop(self, key: str) -> int:
        return await self._backend.write(_drop, "drop_key", key=key)

    async def drop_conversation(self, conversation: str) -> int:
        return await self._backend.write(_drop, "drop_conversation", conversation=conversation)

    async def drop_older(self, age: int) -> int:
        """Entries stored longer than ``age`` microseconds ago, used since or not."""
        before = self._clock() - age
        return await self._backend.write(_drop, "drop_stored_before", before=before)

    async def clear(self) -> int:
        return await self._backend.write(_drop, "drop_all")

    async def trim(self, most: int) -> int:
        return await self._backend.write(_trim, most, self._clock())

    async def totals(self) -> Totals:
        return await self._backend.write(_totals, self._clock())


def _get(db: sqlite3.Connection, key: str, now: int, ttl: int | None) -> Entry | None:
    row = db.execute(STATEMENTS["get"], {"key": key, "now": now}).fetchone()
    if row is None:
        db.execute(STATEMENTS["count_miss"])
        return None
    kind, model, usage, sent, output, nanodollars, stored_at, hits, body = row
    db.execute(STATEMENTS["use"], {"key": key, "now": now, "expires": _expiry(now, ttl)})
    saved = {"sent": sent, "output": output, "nanodollars": nanodollars}
    db.execute(STATEMENTS["count_hit"], saved)
    packed = Packed(kind, body)
    return Entry(packed, model, usage, sent, output, nanodollars, stored_at, hits + 1)


def _put(
    db: sqlite3.Connection,
    key: str,
    entry: Entry,
    now: int,
    ttl: int | None,
    most: int,
    conversation: str | None,
) -> None:
    db.execute(STATEMENTS["drop_expired"], {"now": now})
    values = {
        "key": key,
        "kind": entry.packed.kind,
        "model": entry.model,
        "usage": entry.usage,
        "sent": entry.sent,
        "output": entry.output,
        "nanodollars": entry.nanodollars,
        "size": entry.size,
        "now": now,
        "expires": _expiry(now, ttl),
        "body": entry.packed.body,
    }
    db.execute(STATEMENTS["put"], values)
    if conversation is not None:
        names = {"conversation": conversation, "key": key}
        db.execute(STATEMENTS["mark_used_by"], names)
    _evict(db, most)


def _expiry(now: int, ttl: int | None) -> int | None:
    return None if ttl is None else now + ttl


def _evict(db: sqlite3.Connection, most: int) -> int:
    """Let go of what was unused for longest until ``most`` bytes are left."""
    excess: int = db.execute(STATEMENTS["bytes"]).fetchone()[0] - most
    rows: list[tuple[int]] = []
    if excess > 0:
        for row, size in db.execute(STATEMENTS["longest_unused"]):
            rows.append((row,))
            excess -= size
            if excess <= 0:
                break
    db.executemany(STATEMENTS["drop_row"], rows)
    return len(rows)


def _drop(db: sqlite3.Connection, statement: str, **names: str | int) -> int:
    return db.execute(STATEMENTS[statement], names).rowcount


def _trim(db: sqlite3.Connection, most: int, now: int) -> int:
    dropped = db.execute(STATEMENTS["drop_expired"], {"now": now}).rowcount
    return dropped + _evict(db, most)


def _totals(db: sqlite3.Connection, now: int) -> Totals:
    db.execute(STATEMENTS["drop_expired"], {"now": now})
    return Totals._make(db.execute(STATEMENTS["totals"]).fetchone())
