"""Units of work that read. Each runs inside one read transaction."""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections.abc import Collection, Iterable, Sequence
from contextlib import closing
from itertools import pairwise, repeat
from operator import itemgetter
from typing import Any

from sessiontree.core import jsontext
from sessiontree.core.message import MessageRow, new_row
from sessiontree.core.records import Checkpoint, ConversationInfo, Move
from sessiontree.core.tree import SkeletonRow
from sessiontree.errors import ConversationNotFound, MessageNotFound, StoreCorrupt
from sessiontree.store.statements import statements
from sessiontree.store.units import bounded, bounded_where

SQL = statements()

ALL = 1 << 62
"""As many rows as there are."""
FEW = 64
"""Messages that may be read at hand."""
STRETCH = 1000
"""Ids that are read at once where a path may lie close together."""

DraftRow = tuple[int, int | None, str, str | None, str | None, str | None, str | None, int, str]
"""turn, parent_id, format, usage, model, key, meta, created_at, content"""


@bounded
def conversation(db: sqlite3.Connection, conversation_id: int) -> ConversationInfo:
    row = db.execute(SQL["conversation_by_id"], {"conversation": conversation_id}).fetchone()
    if row is None:
        raise ConversationNotFound(conversation_id)
    return _info(row)


@bounded
def conversation_by_topic(
    db: sqlite3.Connection, owner: str, topic: str
) -> ConversationInfo | None:
    row = db.execute(SQL["conversation_by_topic"], {"owner": owner, "topic": topic}).fetchone()
    return _info(row) if row else None


def conversations(
    db: sqlite3.Connection, owner: str | None, after: tuple[int, int], limit: int
) -> list[ConversationInfo]:
    """A page, newest first, of what comes after (updated_at, id)."""
    names = {"owner": owner, "updated": after[0], "id": after[1], "limit": limit}
    return [_info(row) for row in db.execute(SQL["conversations"], names)]


def _info(row: Any) -> ConversationInfo:
    info = ConversationInfo(*row)
    meta = jsontext.stored(row[8], f"the meta of conversation {info.id}") if row[8] else {}
    return info._replace(meta=meta)


@bounded
def message(db: sqlite3.Connection, conversation_id: int, message_id: int) -> MessageRow:
    names = {"conversation": conversation_id, "id": message_id}
    row = db.execute(SQL["message"], names).fetchone()
    if row is None:
        raise MessageNotFound(message_id, conversation_id)
    return MessageRow._make(row)


def children(db: sqlite3.Connection, conversation_id: int, parent: int | None) -> list[MessageRow]:
    if parent is not None:
        message(db, conversation_id, parent)
    return _children(db, conversation_id, parent)


def siblings(db: sqlite3.Connection, conversation_id: int, message_id: int) -> list[MessageRow]:
    """The children of the message's parent, itself included, in id order."""
    parent = message(db, conversation_id, message_id).parent_id
    return _children(db, conversation_id, parent)


def _children(db: sqlite3.Connection, conversation_id: int, parent: int | None) -> list[MessageRow]:
    return _rows(db, "children", conversation=conversation_id, parent=parent)


def leaves(db: sqlite3.Connection, conversation_id: int) -> list[MessageRow]:
    return _rows(db, "leaves", conversation=conversation_id)


def all_ids(db: sqlite3.Connection, conversation_id: int) -> array[int]:
    """The ids of the whole tree, in order; 8 bytes each."""
    names = {"conversation": conversation_id}
    ids = array("q", (row[0] for row in db.execute(SQL["all_ids"], names)))
    return ids if all(a < b for a, b in pairwise(ids)) else array("q", sorted(ids))


SCATTERED = 20
"""From so many ids for each of one's own on, it is faster to fetch one's own one by one."""


def messages_at(
    db: sqlite3.Connection, conversation_id: int, ids: Sequence[int]
) -> list[MessageRow]:
    """The messages of these ids, which are in order; those that are there no more, left out.

    With ``all_ids`` the way through a whole tree of any size, some hundred at a time.
    """
    first, last = ids[0], ids[-1]
    if last - first < SCATTERED * len(ids):
        return _rows(db, "messages_between", conversation=conversation_id, first=first, last=last)
    found = (_rows(db, "message", conversation=conversation_id, id=id) for id in ids)
    return [row for rows in found for row in rows]


def _is_short(
    _conversation: int, _leaf: int | None, newest: int | None = None, *_more: object
) -> bool:
    return newest is not None and newest <= FEW


@bounded_where(_is_short)
def path(
    db: sqlite3.Connection, conversation_id: int, leaf: int | None, newest: int | None
) -> list[MessageRow]:
    """The path of ``leaf``, or its newest messages; oldest first."""
    if leaf is None:
        return []
    limit = ALL if newest is None else newest
    rows = _close_ones(db, conversation_id, leaf, limit) if limit > FEW else []
    rest = rows[-1].parent_id if rows else leaf
    if rest is not None and len(rows) < limit:
        walk = _rows(db, "path", conversation=conversation_id, leaf=rest, newest=limit - len(rows))
        _add(rows, walk)
    if not rows and limit:
        raise MessageNotFound(leaf, conversation_id)
    if rows:
        require_whole(conversation_id, leaf, len(rows), min(limit, rows[0].depth + 1))
    rows.reverse()
    return rows


def _close_ones(
    db: sqlite3.Connection, conversation_id: int, leaf: int, limit: int
) -> list[MessageRow]:
    """The newest of a path, newest first, as far as they lie close together in the table, as
    those of one talk do: to read a stretch of it takes three quarters of the time of a walk."""
    path: list[MessageRow] = []
    wanted: int | None = leaf
    while wanted is not None and len(path) < limit:
        size = min(STRETCH, 2 * (limit - len(path)))
        some = _in_stretch(db, conversation_id, wanted, size)
        if not _add(path, some) or len(some) < size // 3:
            break
        wanted = path[-1].parent_id
    return path[:limit]


def _in_stretch(
    db: sqlite3.Connection, conversation_id: int, leaf: int, size: int
) -> list[MessageRow]:
    """Those of a path whose ids are ``leaf``'s and the ``size - 1`` below it, newest first."""
    names = {"conversation": conversation_id, "first": leaf - size + 1, "last": leaf}
    rows = _rows(db, "messages_between", **names)
    rows.reverse()
    if _are_in_line(rows, leaf):
        return rows
    wanted: int | None = leaf
    found: list[MessageRow] = []
    for row in rows:
        if row.id == wanted and (not found or row.depth == found[-1].depth - 1):
            found.append(row)
            wanted = row.parent_id
    return found


_ids = itemgetter(MessageRow._fields.index("id"))
_parents = itemgetter(MessageRow._fields.index("parent_id"))
_depths = itemgetter(MessageRow._fields.index("depth"))


def _are_in_line(rows: list[MessageRow], leaf: int) -> bool:
    """Whether each follows the next one, as where nothing else was said meanwhile: a look without
    Python for each."""
    ids, depths = list(map(_ids, rows)), list(map(_depths, rows))
    above = list(map(_parents, rows))[:-1]
    if ids[:1] != [leaf] or ids[1:] != above or type(depths[0]) is not int:  # in a damaged file
        return False
    return depths == _downwards(depths[0], len(depths))


def _downwards(first: int, count: int) -> list[int]:
    return list(range(first, first - count, -1))


def _add(path: list[MessageRow], more: list[MessageRow]) -> bool:
    """Whether ``more`` goes on towards the root, as it does but in a damaged file: it is added."""
    goes_on = bool(more) and (not path or more[0].depth == path[-1].depth - 1)
    if goes_on:
        path += more
    return goes_on


def path_stations(
    db: sqlite3.Connection, conversation_id: int, leaf: int, step: int
) -> list[tuple[int, int]]:
    """(id, depth) of every ``step``-th message of a path and of its leaf, oldest first."""
    names = {"conversation": conversation_id, "leaf": leaf, "step": step}
    found = db.execute(SQL["path_stations"], names).fetchall()
    if not found:
        raise MessageNotFound(leaf, conversation_id)
    found.reverse()
    return found


def require_whole(conversation_id: int, leaf: int, found: int, expected: int) -> None:
    """StoreCorrupt when a walk ended before it should have."""
    if found != expected:
        raise StoreCorrupt(
            f"the path of message {leaf} in conversation {conversation_id} is broken: "
            f"{found} of {expected} messages can be reached"
        )


def steps(
    db: sqlite3.Connection, conversation_id: int, leaf: int, wanted: Collection[int]
) -> list[list[MessageRow]]:
    """The steps that hold the ``wanted`` messages of a path, newest first, each newest message
    first. Of what lies between no message is read. Those that are not on the path are left
    out."""
    line = _line(db, conversation_id, leaf, min(wanted))
    missing, found = set(wanted), list[list[MessageRow]]()
    for at, id in enumerate(line):
        if id in missing:
            while at and _is_inside(db, conversation_id, line[at]):
                at -= 1
            found.append(_step(db, conversation_id, line[at], id))
            missing.difference_update(row.id for row in found[-1])
    return found


def _line(db: sqlite3.Connection, conversation_id: int, leaf: int, oldest: int) -> array[int]:
    """The ids of a path from ``leaf`` back, down to ``oldest``. A parent's id is the smaller
    one, so that one way through the index, backwards, meets all of them in turn."""
    names = {"conversation": conversation_id, "leaf": leaf, "oldest": oldest}
    line = array("q", [leaf])
    for parent, id in db.execute(SQL["parents_below"], names):
        if id == leaf:
            leaf = parent
            line.append(leaf)
    return line


def _is_inside(db: sqlite3.Connection, conversation_id: int, id: int) -> bool:
    """True when a call is open at the message."""
    return message(db, conversation_id, id).open_calls > 0


def _step(db: sqlite3.Connection, conversation_id: int, end: int, wanted: int) -> list[MessageRow]:
    """The messages from ``end`` back to where the step of ``wanted`` begins."""
    step: list[MessageRow] = []
    names = {"conversation": conversation_id, "leaf": end, "newest": ALL}
    with closing(db.execute(SQL["path"], names)) as rows:
        for row in map(MessageRow._make, rows):
            if step and step[-1].id <= wanted and row.open_calls == 0:
                break
            step.append(row)
    return step


def newest_prompt(db: sqlite3.Connection, conversation_id: int, leaf: int | None) -> int | None:
    names = {"conversation": conversation_id, "leaf": leaf}
    row = db.execute(SQL["newest_prompt"], names).fetchone()
    return row[0] if row else None


@bounded
def system_message(
    db: sqlite3.Connection, conversation_id: int, leaf: int | None
) -> MessageRow | None:
    """The newest system message on the path of ``leaf``."""
    rows = _rows(db, "system_message", conversation=conversation_id, leaf=leaf)
    return rows[0] if rows else None


def skeleton(db: sqlite3.Connection, conversation_id: int) -> list[SkeletonRow]:
    """The whole tree without content, in id order."""
    return db.execute(SQL["skeleton"], {"conversation": conversation_id}).fetchall()


def tree(
    db: sqlite3.Connection, conversation_id: int
) -> tuple[list[SkeletonRow], int | None, list[Checkpoint]]:
    """Skeleton, head and checkpoints, of one moment."""
    head = conversation(db, conversation_id).head
    return skeleton(db, conversation_id), head, checkpoints(db, conversation_id)


def checkpoints(db: sqlite3.Connection, conversation_id: int) -> list[Checkpoint]:
    rows = db.execute(SQL["checkpoints"], {"conversation": conversation_id})
    return [Checkpoint(*row) for row in rows]


def moves(db: sqlite3.Connection, conversation_id: int) -> list[Move]:
    """Every move of the head, oldest first."""
    row = db.execute(SQL["head"], {"conversation": conversation_id}).fetchone()
    if row is None:
        raise ConversationNotFound(conversation_id)
    found = db.execute(SQL["moves"], {"conversation": conversation_id})
    return [Move(*values, is_current=values[0] == row[1]) for values in found]


def drafts(db: sqlite3.Connection, conversation_id: int) -> list[DraftRow]:
    return db.execute(SQL["drafts"], {"conversation": conversation_id}).fetchall()


def where_it_stands(
    db: sqlite3.Connection, conversation_id: int
) -> tuple[ConversationInfo, list[MessageRow], list[DraftRow], list[Checkpoint]]:
    """A conversation, the path of its head, what is in flight, and its checkpoints."""
    info = conversation(db, conversation_id)
    rows = path(db, conversation_id, info.head, None)
    return info, rows, drafts(db, conversation_id), checkpoints(db, conversation_id)


@bounded
def message_by_key(db: sqlite3.Connection, conversation_id: int, key: str) -> MessageRow | None:
    names = {"conversation": conversation_id, "key": key}
    row = db.execute(SQL["message_by_key"], names).fetchone()
    return message(db, conversation_id, row[0]) if row else None


def find_keys(db: sqlite3.Connection, conversation_id: int, keys: Iterable[str]) -> dict[str, int]:
    """The ids of the messages that bear these keys."""
    names = {"conversation": conversation_id, "keys": json.dumps(list(keys))}
    return dict(db.execute(SQL["messages_by_keys"], names))


def _rows(db: sqlite3.Connection, statement: str, **names: Any) -> list[MessageRow]:
    return list(map(new_row, repeat(MessageRow), db.execute(SQL[statement], names)))
