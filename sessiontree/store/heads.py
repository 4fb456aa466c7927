"""Units of work that move the head, and the checkpoints that it can be moved to."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from sessiontree.core.message import MessageRow
from sessiontree.core.records import Cause, Checkpoint
from sessiontree.errors import (
    CheckpointExists,
    CheckpointNotFound,
    ConversationNotFound,
    HeadMoved,
    MessageNotFound,
    NotABoundary,
    NothingToRetry,
    NothingToUndo,
    StoreCorrupt,
)
from sessiontree.store import reads
from sessiontree.store.statements import statements

SQL = statements()


class Place(NamedTuple):
    """What a message must know of the one it follows."""

    id: int | None
    depth: int
    open_calls: int
    system_id: int | None


PLACE_OF_ROOTS = Place(None, -1, 0, None)


def head_of(db: sqlite3.Connection, conversation: int) -> tuple[int | None, int | None]:
    """Head and current move. ConversationNotFound when it was deleted meanwhile."""
    row = db.execute(SQL["head"], {"conversation": conversation}).fetchone()
    if row is None:
        raise ConversationNotFound(conversation)
    return row[0], row[1]


def place_of(db: sqlite3.Connection, conversation: int, message_id: int | None) -> Place:
    """Where ``message_id`` stands; None is the place before every root."""
    if message_id is None:
        return PLACE_OF_ROOTS
    row = db.execute(SQL["place"], {"conversation": conversation, "id": message_id}).fetchone()
    if row is None:
        raise MessageNotFound(message_id, conversation)
    return Place(message_id, row[0], row[1], row[2])


def boundary(db: sqlite3.Connection, conversation: int, message_id: int | None) -> Place:
    """As ``place_of``; NotABoundary where calls are open."""
    place = place_of(db, conversation, message_id)
    if place.open_calls and message_id is not None:
        raise NotABoundary(message_id, place.open_calls)
    return place


def move_head(
    db: sqlite3.Connection,
    conversation: int,
    at: tuple[int | None, int | None],
    to: int | None,
    cause: Cause,
    now: int,
) -> None:
    """Point the head, which is ``at`` (head, current move), to ``to``, and record the move;
    nothing where it is there already."""
    head, current = at
    if head == to:
        return
    move = (conversation, current, head, to, cause, now)
    made = db.execute(SQL["insert_move"], move).fetchone()[0]
    set_head(db, conversation, to, made, now)


def set_head(
    db: sqlite3.Connection, conversation: int, head: int | None, move: int | None, now: int
) -> None:
    values = {"conversation": conversation, "head": head, "move": move, "now": now}
    db.execute(SQL["set_head"], values)


def branch(
    db: sqlite3.Connection, conversation: int, to: int | None, cause: Cause, now: int
) -> MessageRow | None:
    """Move the head to a boundary; returns that message."""
    at = head_of(db, conversation)
    boundary(db, conversation, to)
    move_head(db, conversation, at, to, cause, now)
    return None if to is None else reads.message(db, conversation, to)


def retry(
    db: sqlite3.Connection, conversation: int, expected: int | None, now: int
) -> MessageRow | None:
    """Move the head to the newest prompt on its path."""
    _expect(db, conversation, expected)
    prompt = reads.newest_prompt(db, conversation, expected)
    if prompt is None:
        raise NothingToRetry(
            f"conversation {conversation} has no user message on the path of its head",
            hint="append one first",
        )
    return branch(db, conversation, prompt, "retry", now)


def undo(
    db: sqlite3.Connection, conversation: int, expected: int | None, now: int
) -> MessageRow | None:
    """Put the head back where it was before its current move."""
    current = _expect(db, conversation, expected)
    if current is None:
        raise NothingToUndo(f"conversation {conversation} has no move of its head left to undo")
    values = {"conversation": conversation, "move": current}
    move = db.execute(SQL["move"], values).fetchone()
    if move is None:
        raise StoreCorrupt(f"the current move {current} of conversation {conversation} is missing")
    back, _, previous = move
    place_of(db, conversation, back)
    set_head(db, conversation, back, previous, now)
    return None if back is None else reads.message(db, conversation, back)


def redo(
    db: sqlite3.Connection, conversation: int, expected: int | None, now: int
) -> MessageRow | None:
    """Do again the newest move that was undone from here."""
    current = _expect(db, conversation, expected)
    values = {"conversation": conversation, "move": current}
    found = db.execute(SQL["next_move"], values).fetchone()
    if found is None:
        raise NothingToUndo(f"conversation {conversation} has no undone move to do again")
    place_of(db, conversation, found[1])
    set_head(db, conversation, found[1], found[0], now)
    return None if found[1] is None else reads.message(db, conversation, found[1])


def _expect(db: sqlite3.Connection, conversation: int, expected: int | None) -> int | None:
    """The current move; HeadMoved when the head is not what the caller last saw."""
    head, current = head_of(db, conversation)
    if head != expected:
        raise HeadMoved(expected, head)
    return current


def find_checkpoint(db: sqlite3.Connection, conversation: int, label: str) -> Checkpoint:
    values = {"conversation": conversation, "label": label}
    row = db.execute(SQL["checkpoint"], values).fetchone()
    if row is None:
        labels = (checkpoint.label for checkpoint in reads.checkpoints(db, conversation))
        raise CheckpointNotFound(label, conversation, labels)
    return Checkpoint(*row)


def set_checkpoint(
    db: sqlite3.Connection,
    conversation: int,
    label: str,
    message_id: int | None,
    note: str | None,
    now: int,
    replace: bool = False,
) -> Checkpoint:
    """Label a boundary; CheckpointExists where the label is taken on another message."""
    if message_id is None:
        raise MessageNotFound(None, conversation, hint="add a message before the checkpoint")
    boundary(db, conversation, message_id)
    values = {
        "conversation": conversation,
        "label": label,
        "id": message_id,
        "note": note,
        "now": now,
    }
    statement = "replace_checkpoint" if replace else "insert_checkpoint"
    if db.execute(SQL[statement], values).rowcount == 0:
        raise CheckpointExists(label, find_checkpoint(db, conversation, label).message_id)
    return Checkpoint(label, message_id, note, now)
