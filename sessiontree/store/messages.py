"""Units of work that save messages.

A unit of work is one function that runs whole inside one transaction, on the writer's
thread: ``db`` is always in a transaction when it is called. Units take and give plain
values and raise our errors; what they raise rolls them back.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import chain
from operator import itemgetter
from typing import Any

from sessiontree.core import jsontext
from sessiontree.core.message import MessageRow, NewMessage, new_row
from sessiontree.core.records import Graft
from sessiontree.errors import FormatError
from sessiontree.store import reads
from sessiontree.store.heads import (
    PLACE_OF_ROOTS,
    Place,
    head_of,
    place_of,
)
from sessiontree.store.statements import statements
from sessiontree.store.units import bounded_where

SQL = statements()

FEW = 32
SMALL = 64 * 1024
"""So many messages of so many characters, together, are written at hand."""
BLOB_CHARACTERS = 4096
"""Content longer than this is a blob: about where a row would leave its page, so that
walks over skeletons stay dense, and where sharing between forks begins to pay."""

ROWS = (128, 32, 8)
"""How many messages one statement inserts, or less than the last: few texts, so that they stay
prepared."""

BATCH_ROOM = 16_000
"""KiB of pages that are kept at hand while a batch is written; see ``_room``."""


def graft(db: sqlite3.Connection, conversation: int, batch: Sequence[Graft], now: int) -> list[int]:
    """Save a batch of messages with their places; see ``records.Graft``."""
    head_of(db, conversation)
    with _room(db):
        return _graft(db, conversation, batch, now)


def _graft(
    db: sqlite3.Connection, conversation: int, batch: Sequence[Graft], now: int
) -> list[int]:
    new_id = next_message_id(db)
    ids: list[int] = []
    fresh: list[MessageRow] = []
    keys = [item.message.key for item in batch]
    saved = reads.find_keys(db, conversation, filter(None, keys))
    by_key: dict[str | None, MessageRow] = {}
    places: dict[int | None, Place | MessageRow] = {None: PLACE_OF_ROOTS}
    for item, key in zip(batch, keys, strict=True):
        row = by_key.get(key) or (by_key_of(db, conversation, key) if key in saved else None)
        if row is None:
            parent, ref = _resolve(item.parent, ids), _resolve(item.ref, ids)
            for at in (parent, ref):
                if at not in places:
                    places[at] = place_of(db, conversation, at)
            row = row_of(new_id + len(fresh), conversation, places[parent], item.message, ref, now)
            fresh.append(row)
            if key is not None:
                by_key[key] = row
        places[row.id] = row
        ids.append(row.id)
    insert(db, fresh)
    return ids


@contextmanager
def _room(db: sqlite3.Connection) -> Generator[None, None, None]:
    """Memory for all pages that a batch writes, for as long as it does. Keys come in no order: with
    the usual room, pages of their index are written and read again many times."""
    (before,) = db.execute("PRAGMA cache_size").fetchone()
    db.execute(f"PRAGMA cache_size = -{BATCH_ROOM}")
    try:
        yield
    finally:
        db.execute(f"PRAGMA cache_size = {before}")


def _resolve(parent: int | None, ids: list[int]) -> int | None:
    return ids[-1 - parent] if parent is not None and parent < 0 else parent


def by_key_of(db: sqlite3.Connection, conversation: int, key: str | None) -> MessageRow | None:
    return None if key is None else reads.message_by_key(db, conversation, key)


def row_of(
    new_id: int,
    conversation: int,
    after: Place | MessageRow,
    message: NewMessage,
    ref: int | None,
    now: int,
) -> MessageRow:
    usage, meta, created_at = message.usage, message.meta, message.created_at
    values = (
        new_id,
        conversation,
        after.id,
        message.role,
        message.format,
        after.depth + 1,
        message.open_calls,
        message.tokens,
        None if usage is None else json_or_null(usage),
        message.model,
        message.preview,
        message.key,
        None if meta is None else json_or_null(meta),
        new_id if message.role == "system" else after.system_id,
        ref,
        now if created_at is None else created_at,
        message.content,
    )
    return new_row(MessageRow, values)


def insert(db: sqlite3.Connection, rows: Sequence[MessageRow]) -> None:
    """Write rows, many to a statement: SQLite works without Python's lock, and each step of a
    statement has to win it back from the event loop's thread."""
    start = 0
    while (left := len(rows) - start) > 0:
        count = left if left < ROWS[-1] else next(size for size in ROWS if size <= left)
        some = rows[start : start + count] if count < len(rows) else rows
        if max(map(len, map(_content_of, some))) <= BLOB_CHARACTERS:  # as nearly always
            db.execute(_insertion("insert_small_message", count), list(chain.from_iterable(some)))
        else:
            db.execute(_insertion("insert_message", count), _with_blobs(db, some))
        start += count


_content_of = itemgetter(MessageRow._fields.index("content"))


def _with_blobs(db: sqlite3.Connection, rows: Sequence[MessageRow]) -> list[Any]:
    """Their values, and which blob holds their content, if one does."""
    values: list[Any] = []
    for row in rows:
        if len(row.content) > BLOB_CHARACTERS:
            values += (*row[:-1], None, _blob(db, row.content))
        else:
            values += (*row, None)
    return values


@cache
def _insertion(statement: str, count: int) -> str:
    """The statement that inserts ``count`` messages."""
    insertion, _, one = SQL[statement].rpartition("VALUES")
    return f"{insertion}VALUES{', '.join([one] * count)}"


def next_message_id(db: sqlite3.Connection) -> int:
    """The id that the next message will get. Nobody else can take it: we hold the lock."""
    return db.execute(SQL["last_message_id"]).fetchone()[0] + 1


def _blob(db: sqlite3.Connection, content: str) -> int:
    import hashlib  # takes 3 ms at start; of no use where nothing is large

    data = content.encode("utf-8")
    digest = hashlib.sha256(data).digest()
    made = db.execute(SQL["insert_blob"], {"sha256": digest, "content": data})
    if made.rowcount == 1 and made.lastrowid is not None:
        return made.lastrowid
    return db.execute(SQL["blob_id"], {"sha256": digest}).fetchone()[0]


def json_or_null(value: Mapping[str, Any] | str | None) -> str | None:
    """``value`` as JSON text, which it may be already. None also for what a provider reported
    and JSON cannot hold: 1e400, in the text of a message that is kept as it is."""
    if isinstance(value, str):
        return value
    try:
        return jsontext.dump(value) if value else None
    except FormatError:
        return None


def is_small(step: Sequence[NewMessage]) -> bool:
    """Whether these are messages of a usual step, and quick to write."""
    return len(step) <= FEW and sum([len(message.content) for message in step]) <= SMALL


def _is_short(
    _conversation: int, _turn: int, _parent: int | None, step: Sequence[NewMessage], _now: int
) -> bool:
    return is_small(step)


@bounded_where(_is_short)
def save_draft(
    db: sqlite3.Connection,
    conversation: int,
    turn: int,
    parent: int | None,
    step: Sequence[NewMessage],
    now: int,
) -> MessageRow | None:
    """Keep the last message of a step that waits for results, and those before it where another
    process has let them go. Returns the saved message of its key instead, where there is one."""
    head_of(db, conversation)
    known = by_key_of(db, conversation, step[-1].key)
    if known is not None:
        return known
    names = {"conversation": conversation, "turn": turn}
    (kept,) = db.execute(SQL["draft_size"], names).fetchone()
    for position in range(min(kept, len(step) - 1), len(step)):
        place = names | {"position": position, "parent": parent}
        db.execute(SQL["insert_draft"], place | _drafted(step[position], now))
    return None


def _drafted(message: NewMessage, now: int) -> dict[str, Any]:
    return {
        "format": message.format,
        "usage": json_or_null(message.usage),
        "model": message.model,
        "key": message.key,
        "meta": json_or_null(message.meta),
        "created_at": now if message.created_at is None else message.created_at,
        "content": message.content,
    }
