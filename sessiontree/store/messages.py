"""Units of work that save messages.

A unit of work is one function that runs whole inside one transaction, on the writer's
thread: ``db`` is always in a transaction when it is called. Units take and give plain
values and raise our errors; what they raise rolls them back.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from sessiontree.core import jsontext
from sessiontree.core.message import MessageRow, NewMessage
from sessiontree.core.pairing import settle
from sessiontree.core.records import Cause, Graft
from sessiontree.errors import FormatError
from sessiontree.store import reads
from sessiontree.store.heads import (
    PLACE_OF_ROOTS,
    Place,
    boundary,
    head_of,
    move_head,
    place_of,
    set_checkpoint,
)
from sessiontree.store.statements import statements

SQL = statements()

BLOB_CHARACTERS = 4096
"""Content longer than this is a blob: about where a row would leave its page, so that
walks over skeletons stay dense, and where sharing between forks begins to pay."""

ROWS = 8
"""Most messages that one statement inserts."""

INSERTED = len(MessageRow._fields) + 1
"""Columns of an inserted row: those that are read, and the blob."""


@dataclass(slots=True)
class Append:
    """What an append wants. ``parent`` counts when ``at_head`` is False."""

    messages: Sequence[NewMessage]
    now: int
    at_head: bool
    expected: int | None = None
    """The head that the writer last saw."""
    parent: int | None = None
    cause: Cause = "append"
    labels: Sequence[tuple[str, str | None, bool]] = ()
    """Checkpoints (label, note, replace) to set on the last message."""
    drafts: Iterable[int] = ()
    """Turns whose drafts are settled by this."""


class Appended(NamedTuple):
    """What an append did: ``rows`` are all its messages, ``fresh`` those that were not saved
    before. ``head`` is what the writer has now seen; ``moved`` is False when it is another
    writer's, and the messages are a branch beside it."""

    rows: list[MessageRow]
    fresh: list[MessageRow]
    head: int | None
    moved: bool

    @property
    def last(self) -> MessageRow | None:
        """What the next message follows."""
        return (self.fresh or self.rows or [None])[-1]


def append(db: sqlite3.Connection, conversation: int, wish: Append) -> Appended:
    """Save messages in a row, and move the head to the last of them.

    Messages whose key is taken are not saved again; the first of that key stands in
    their place.
    """
    head, current = head_of(db, conversation)
    start = wish.expected if wish.at_head else wish.parent
    rows, fresh = _save_chain(db, conversation, wish, start)
    last = (fresh or rows)[-1].id if rows else start
    for label, note, replace in wish.labels:
        set_checkpoint(db, conversation, label, last, note, wish.now, replace)
    for turn in wish.drafts:
        db.execute(SQL["delete_draft"], {"conversation": conversation, "turn": turn})
    if not fresh:  # a retry
        inside = bool(rows) and rows[-1].open_calls > 0
        seen = wish.expected if inside or head == wish.expected else last
        return Appended(rows, fresh, seen, moved=True)
    if wish.at_head and head not in (wish.expected, fresh[0].parent_id):
        return Appended(rows, fresh, head, moved=False)
    move_head(db, conversation, (head, current), last, wish.cause, wish.now)
    return Appended(rows, fresh, last, moved=True)


def _save_chain(
    db: sqlite3.Connection, conversation: int, wish: Append, start: int | None
) -> tuple[list[MessageRow], list[MessageRow]]:
    """All messages as saved, and those that were saved just now."""
    known = [_by_key(db, conversation, message.key) for message in wish.messages]
    for row in known:
        if row is None:
            break
        start = row.id  # a retry goes on where its first try had come to
    if None not in known:
        return [row for row in known if row is not None], []
    if any(known):  # what is left must be whole without them
        settle([m for m, row in zip(wish.messages, known, strict=True) if row is None])
    place = boundary(db, conversation, start)
    new_id = next_message_id(db)
    rows: list[MessageRow] = []
    fresh: list[MessageRow] = []
    for message, row in zip(wish.messages, known, strict=True):
        if row is None:
            row = _row(new_id + len(fresh), conversation, place, message, message.ref, wish.now)
            place = Place(row.id, row.depth, row.open_calls, row.system_id)
            fresh.append(row)
        rows.append(row)
    _insert(db, fresh)
    return rows, fresh


def graft(db: sqlite3.Connection, conversation: int, batch: Sequence[Graft], now: int) -> list[int]:
    """Save a batch of messages with their places; see ``records.Graft``."""
    head_of(db, conversation)
    new_id = next_message_id(db)
    ids: list[int] = []
    fresh: list[MessageRow] = []
    by_key: dict[str, MessageRow] = {}
    places: dict[int | None, Place] = {None: PLACE_OF_ROOTS}
    for item in batch:
        key = item.message.key
        row = by_key.get(key or "") or _by_key(db, conversation, key)
        if row is None:
            parent, ref = _resolve(item.parent, ids), _resolve(item.ref, ids)
            for at in (parent, ref):
                if at not in places:
                    places[at] = place_of(db, conversation, at)
            row = _row(new_id + len(fresh), conversation, places[parent], item.message, ref, now)
            fresh.append(row)
            if key is not None:
                by_key[key] = row
        places[row.id] = Place(row.id, row.depth, row.open_calls, row.system_id)
        ids.append(row.id)
    _insert(db, fresh)
    return ids


def _resolve(parent: int | None, ids: list[int]) -> int | None:
    return ids[-1 - parent] if parent is not None and parent < 0 else parent


def _by_key(db: sqlite3.Connection, conversation: int, key: str | None) -> MessageRow | None:
    return None if key is None else reads.message_by_key(db, conversation, key)


def _row(
    new_id: int,
    conversation: int,
    after: Place,
    message: NewMessage,
    ref: int | None,
    now: int,
) -> MessageRow:
    return MessageRow(
        new_id,
        conversation,
        after.id,
        message.role,
        message.format,
        after.depth + 1,
        message.open_calls,
        message.tokens,
        json_or_null(message.usage),
        message.model,
        message.preview,
        message.key,
        json_or_null(message.meta),
        new_id if message.role == "system" else after.system_id,
        ref,
        now if message.created_at is None else message.created_at,
        message.content,
    )


def _insert(db: sqlite3.Connection, rows: Sequence[MessageRow]) -> None:
    """Write rows, several to a statement: each step of a statement hands Python's lock to
    the event loop's thread and has to win it back."""
    for start in range(0, len(rows), ROWS):
        values: list[Any] = []
        for row in rows[start : start + ROWS]:
            content = row.content
            blob = _blob(db, content) if len(content) > BLOB_CHARACTERS else None
            values += row[:-1]
            values += (blob, content if blob is None else None)
        db.execute(_insertion(len(rows[start : start + ROWS])), values)


@cache
def _insertion(count: int) -> str:
    """The statement that inserts ``count`` messages."""
    one = SQL["insert_message"]
    return one + f", ({', '.join('?' * INSERTED)})" * (count - 1)


def next_message_id(db: sqlite3.Connection) -> int:
    """The id that the next message will get. Nobody else can take it: we hold the lock."""
    return db.execute(SQL["last_message_id"]).fetchone()[0] + 1


def _blob(db: sqlite3.Connection, content: str) -> int:
    data = content.encode("utf-8")
    digest = hashlib.sha256(data).digest()
    db.execute(SQL["insert_blob"], {"sha256": digest, "content": data})
    return db.execute(SQL["blob_id"], {"sha256": digest}).fetchone()[0]


def json_or_null(value: Mapping[str, Any] | None) -> str | None:
    """None also for what a provider reported and JSON cannot hold: 1e400, in the text of a
    message that is kept as it is."""
    try:
        return jsontext.dump(value) if value else None
    except FormatError:
        return None


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
    known = _by_key(db, conversation, step[-1].key)
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
