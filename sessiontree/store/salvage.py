"""Getting out of a damaged file what is still in it.

Pages of the file may hold garbage, or be missing at its end. A backup of it is read page by
page, and each row that is whole is copied into a new store. Which messages are missing then,
and what they followed, the index of parents may still know. The new store is mended like any
other, and written over the damaged one, in one transaction.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sessiontree.core.records import Mended, Problem
from sessiontree.errors import StoreCorrupt
from sessiontree.store.driver import Opening
from sessiontree.store.pages import Pages, Row, Value
from sessiontree.store.repair import back_up, copy_all, mend
from sessiontree.store.statements import statements
from sessiontree.store.surgery import Contents, Known

SQL = statements()

TABLES = ("conversation", "message", "blob", "checkpoint", "draft", "move")


def survey(db: sqlite3.Connection) -> list[Problem]:
    """The messages of a damaged file that cannot be read any more."""
    return list(_unreadable(db))


def _unreadable(db: sqlite3.Connection) -> Iterator[Problem]:
    detail = "it cannot be read: a page that it is on, or that leads to it, is damaged"
    for known in sorted({each.id: each for each in _known(db)}.values()):
        try:
            row = db.execute(SQL["whole_message"], {"id": known.id}).fetchone()
        except sqlite3.DatabaseError:
            row = None
        if row is None:
            yield Problem("lost_message", known.conversation_id, known.id, detail)


def salvage(
    db: sqlite3.Connection, how: Opening, name: str, contents: Contents, now: int
) -> tuple[list[Mended], str]:
    """Replace the content of a damaged file by what can be read of it, mended. ``db`` reads
    it. Returns what was done, and the backup, which bears ``name`` or one like it.

    Whoever has the file open waits meanwhile, and goes on with what there is then.
    StoreCorrupt: nothing of a store can be found in it. StoreBusy. Nothing was changed.
    """
    damaged = sqlite3.connect(how.path, timeout=how.patience, isolation_level=None)
    with closing(damaged):
        _hold(damaged)
        backup = back_up(db, name)
        try:
            return _replace(damaged, backup, how, contents, now), backup
        except BaseException:
            _remove(backup, "")
            raise


def _hold(damaged: sqlite3.Connection) -> None:
    """Keep others from writing what would be written over; as far as there is a database."""
    damaged.execute("PRAGMA writable_schema = ON")  # SQLite reads on where the file ends early
    try:
        damaged.execute("BEGIN IMMEDIATE")
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
            raise


def _replace(
    damaged: sqlite3.Connection, backup: str, how: Opening, contents: Contents, now: int
) -> list[Mended]:
    fresh = Opening(f"{how.path}.salvage-{os.getpid()}")
    try:
        with closing(fresh.connect()) as db:
            mended = _fill(db, backup, contents, now)
            is_written = _write_over(db, damaged, how.patience)
        if not is_written:
            _remove(how.path, "-wal", "-shm")
            os.replace(fresh.path, how.path)
    finally:
        _remove(fresh.path, "", "-wal", "-shm")
    return mended


def _write_over(db: sqlite3.Connection, damaged: sqlite3.Connection, patience: float) -> bool:
    """Write a store over a damaged one. False where this is so damaged that SQLite does not
    take it for a database, so that nobody can have it open."""
    if damaged.in_transaction:
        damaged.execute("ROLLBACK")
    try:
        copy_all(db, damaged, patience)
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_NOTADB:
            raise
        return False
    return True


def _remove(path: str, *parts: str) -> None:
    for part in parts:
        Path(path + part).unlink(missing_ok=True)


def _fill(db: sqlite3.Connection, backup: str, contents: Contents, now: int) -> list[Mended]:
    """Copy what can be read of the backup into a new store, and mend it."""
    guard = db.execute("SELECT sql FROM sqlite_master WHERE name = 'message_parent'").fetchone()[0]
    db.execute("PRAGMA foreign_keys = OFF")
    db.execute("PRAGMA ignore_check_constraints = ON")
    db.execute("BEGIN IMMEDIATE")
    db.execute("DROP TRIGGER message_parent")
    _copy_rows(db, backup)
    lost = _lost(db, backup)
    db.execute(guard)
    db.execute("PRAGMA ignore_check_constraints = OFF")
    copied = db.execute("SELECT count(*) FROM message").fetchone()[0]
    if not copied:
        hint = "it was not changed; put a backup in its place"
        raise StoreCorrupt("no message can be found in this file", hint=hint)
    conversations = [row[0] for row in db.execute(SQL["conversation_ids"])]
    mended = mend(db, conversations, contents, now, lost)
    db.execute("COMMIT")
    what = f"{copied} messages were read out of the damaged file, {len(lost)} could not be"
    return [Mended("damaged_file", None, None, what), *mended]


def _copy_rows(db: sqlite3.Connection, backup: str) -> None:
    tables = {len(table.columns): table for table in (_Table(db, name) for name in TABLES)}
    for row in Pages(backup).rows():
        table = tables.get(len(row.values))
        if table is not None and table.is_its(row):
            table.insert(row)


class _Table:
    """Takes rows for a table: those that have as many values as it has columns, which no two
    tables have in common, and values of its types."""

    def __init__(self, db: sqlite3.Connection, name: str) -> None:
        question = "SELECT name, type, pk FROM pragma_table_info(?)"
        self.columns: list[tuple[str, str, int]] = db.execute(question, (name,)).fetchall()
        names = ", ".join(f'"{column}"' for column, _, _ in self.columns)
        holes = ", ".join("CAST(? AS TEXT)" if t == "TEXT" else "?" for _, t, _ in self.columns)
        self._db = db
        self._write = f"INSERT OR IGNORE INTO {name} ({names}) VALUES ({holes})"
        self._has_rowids = name != "move"
        self._is_numbered = sum(pk for _, _, pk in self.columns) == 1

    def is_its(self, row: Row) -> bool:
        if (row.rowid is not None) != self._has_rowids:
            return False
        return all(
            value is None or isinstance(value, int if kind == "INTEGER" else bytes)
            for value, (_, kind, _) in zip(row.values, self.columns, strict=True)
        )

    def insert(self, row: Row) -> None:
        """An integer primary key stands in its row as null: it is the rowid."""
        values: list[Value] = list(row.values)
        if self._is_numbered:
            values[0] = row.rowid
        self._db.execute(self._write, values)


def _lost(db: sqlite3.Connection, backup: str) -> list[Known]:
    """The messages that are missing, as far as the index of parents knows of them; and the
    counts of ids go on from where they were."""
    uri = f"file:{quote(os.fsencode(backup))}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as damaged:
        damaged.execute("PRAGMA writable_schema = ON")
        known = {each.id: each for each in _known(damaged)}
        sequence = dict(_until_it_breaks(damaged, "SELECT name, seq FROM sqlite_sequence"))
    db.execute(SQL["make_sequences"])
    for name in ("message", "conversation"):
        db.execute(SQL["raise_sequence"], {"name": name, "least": sequence.get(name) or 0})
    db.execute(SQL["raise_sequence"], {"name": "message", "least": max(known, default=0)})
    there = {row[0] for row in db.execute("SELECT id FROM message")}
    return [each for at, each in known.items() if at not in there]


def _known(db: sqlite3.Connection) -> Iterator[Known]:
    """What can be read of the index of parents, from both of its ends."""
    for order in ("", "DESC"):
        by = f"conversation_id {order}, parent_id {order}, id {order}"
        question = (
            "SELECT id, conversation_id, parent_id FROM message "
            f"INDEXED BY message_by_parent ORDER BY {by}"
        )
        yield from map(Known._make, _until_it_breaks(db, question))


def _until_it_breaks(db: sqlite3.Connection, question: str) -> Iterator[tuple[Any, ...]]:
    with suppress(sqlite3.DatabaseError):
        yield from db.execute(question)
