"""Units of work that move the head, and the checkpoints that it can be moved to."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from sessiontree.core.message import MessageRow, new_row
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
from sessiontree.store.units import bounded

SQL = statements()


class Place(NamedTuple):
    """What a message must know of the one it follows."""

    id: int | None
    depth: int
    open_calls: int
    system_id: int | None


PLACE_OF_ROOTS = Place(None, -1, 0, None)


class Standing(NamedTuple):
    """Where a conversation stands: its head, the move that undo takes back, and the newest of
    its moves, which are numbered from 1 in each conversation."""

    head: int | None
    move: int | None
    newest: int | None


class Move(NamedTuple):
    """A move of a head, as it is recorded."""

    conversation: int
    id: int
    prev: int | None
    from_id: int | None
    to_id: int | None
    cause: Cause
    now: int


def head_of(db: sqlite3.Connection, conversation: int) -> Standing:
    """ConversationNotFound when it was deleted meanwhile."""
    row = db.execute(SQL["head"], {"conversation": conversation}).fetchone()
    if row is None:
        raise ConversationNotFound(conversation)
    return Standing._make(row)


def head_and_place(
    db: sqlite3.Connection, conversation: int, message_id: int | None
) -> tuple[Standing, Place | None, int]:
    """As ``head_of`` and ``place_of`` in one look, and the id that the next message will get.
    The place is None where there is no such message, which a retry need not mind."""
    row = db.execute(SQL["head_and_place"], (conversation, message_id)).fetchone()
    if row is None:
        raise ConversationNotFound(conversation)
    next_id = (row[3] or 0) + 1
    if message_id is None:
        return Standing._make(row[:3]), PLACE_OF_ROOTS, next_id
    return Standing._make(row[:3]), None if row[4] is None else Place._make(row[4:]), next_id


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
    return closed(place_of(db, conversation, message_id))


def closed(place: Place) -> Place:
    """``place``; NotABoundary where calls are open."""
    if place.open_calls and place.id is not None:
        raise NotABoundary(place.id, place.open_calls)
    return place


def next_move(conversation: int, at: Standing, to: int | None, cause: Cause, now: int) -> Move:
    return Move(conversation, (at.newest or 0) + 1, at.move, at.head, to, cause, now)


def record(db: sqlite3.Connection, moves: Sequence[Move]) -> None:
    """Write moves down, and make them: each of another conversation."""
    if len(moves) == 1:
        conversation, id, _, _, to, _, now = moves[0]
        db.execute(SQL["insert_move"], moves[0])
        set_head(db, conversation, to, id, now)
        return
    db.executemany(SQL["insert_move"], moves)
    db.executemany(
        SQL["set_head"], [(move.to_id, move.id, move.now, move.conversation) for move in moves]
    )


def set_head(
    db: sqlite3.Connection, conversation: int, head: int | None, move: int | None, now: int
) -> None:
    db.execute(SQL["set_head"], (head, move, now, conversation))


@bounded
def branch(
    db: sqlite3.Connection, conversation: int, to: int | None, cause: Cause, now: int
) -> MessageRow | None:
    """Move the head to a boundary; returns that message."""
    at, row = _head_and(db, "head_and_message", conversation, to)
    if row is None and to is not None:
        raise MessageNotFound(to, conversation)
    return _go_to(db, conversation, at, row, cause, now)


def to_checkpoint(
    db: sqlite3.Connection, conversation: int, label: str, now: int
) -> MessageRow | None:
    """Move the head to the message of a checkpoint; returns it."""
    at, row = _head_and(db, "head_and_labelled", conversation, label)
    if row is None:
        gone = find_checkpoint(db, conversation, label).message_id
        raise MessageNotFound(gone, conversation)
    return _go_to(db, conversation, at, row, "rewind", now)


def _head_and(
    db: sqlite3.Connection, statement: str, conversation: int, named: int | str | None
) -> tuple[Standing, MessageRow | None]:
    """As ``head_of``; and in the same look the message that is named, if there is one."""
    found = db.execute(SQL[statement], (conversation, named)).fetchone()
    if found is None:
        raise ConversationNotFound(conversation)
    row = None if found[3] is None else new_row(MessageRow, found[3:])
    return Standing(*found[:3]), row


def _go_to(
    db: sqlite3.Connection,
    conversation: int,
    at: Standing,
    row: MessageRow | None,
    cause: Cause,
    now: int,
) -> MessageRow | None:
    if row is not None and row.open_calls:
        raise NotABoundary(row.id, row.open_calls)
    to = None if row is None else row.id
    if at.head != to:
        record(db, [next_move(conversation, at, to, cause, now)])
    return row


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


@bounded
def undo(
    db: sqlite3.Connection, conversation: int, expected: int | None, now: int
) -> MessageRow | None:
    """Put the head back where it was before its current move."""
    found = db.execute(SQL["head_and_undone"], (conversation,)).fetchone()
    if found is None:
        raise ConversationNotFound(conversation)
    head, current, move, back, previous = found[:5]
    if head != expected:
        raise HeadMoved(expected, head)
    if current is None:
        raise NothingToUndo(f"conversation {conversation} has no move of its head left to undo")
    if move is None:
        raise StoreCorrupt(f"the current move {current} of conversation {conversation} is missing")
    row = None if found[5] is None else new_row(MessageRow, found[5:])
    if row is None and back is not None:
        raise MessageNotFound(back, conversation)
    set_head(db, conversation, back, previous, now)
    return row


@bounded
def redo(
    db: sqlite3.Connection, conversation: int, expected: int | None, now: int
) -> MessageRow | None:
    """Do again the newest move that was undone from here."""
    current = _expect(db, conversation, expected)
    values = {"conversation": conversation, "move": current}
    found = db.execute(SQL["next_move"], values).fetchone()
    if found is None:
        raise NothingToUndo(f"conversation {conversation} has no undone move to do again")
    move, to = found
    row = None if to is None else reads.message(db, conversation, to)
    set_head(db, conversation, to, move, now)
    return row


def _expect(db: sqlite3.Connection, conversation: int, expected: int | None) -> int | None:
    """The current move; HeadMoved when the head is not what the caller last saw."""
    at = head_of(db, conversation)
    if at.head != expected:
        raise HeadMoved(expected, at.head)
    return at.move


def find_checkpoint(db: sqlite3.Connection, conversation: int, label: str) -> Checkpoint:
    values = {"conversation": conversation, "label": label}
    row = db.execute(SQL["checkpoint"], values).fetchone()
    if row is None:
        labels = (checkpoint.label for checkpoint in reads.checkpoints(db, conversation))
        raise CheckpointNotFound(label, conversation, labels)
    return Checkpoint(*row)


@bounded
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
