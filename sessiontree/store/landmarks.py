"""A unit of work for importers: moves and checkpoints as another store recorded them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from sessiontree.core.records import Checkpoint, Move
from sessiontree.store.heads import boundary, head_of, set_checkpoint, set_head
from sessiontree.store.statements import statements

SQL = statements()


def restore(
    db: sqlite3.Connection,
    conversation: int,
    head: int | None,
    moves: Sequence[Move],
    checkpoints: Sequence[Checkpoint],
    now: int,
) -> None:
    """Record moves and checkpoints with the times they have, and put the head where it was.

    Undo and redo work as they would have where the moves were made: which move each was made
    after follows from where it began. For a conversation that has neither yet.
    """
    first = (head_of(db, conversation).newest or 0) + 1
    boundary(db, conversation, head)
    made: dict[int, tuple[int | None, int | None]] = {}
    current: int | None = None
    standing: int | None = None
    for move in moves:
        boundary(db, conversation, move.to_id)
        while current is not None and made[current][0] != move.from_id:
            current = made[current][1]
        new_id = first + len(made)
        ends = (move.from_id, move.to_id)
        values = (conversation, new_id, current, *ends, move.cause, move.created_at)
        db.execute(SQL["insert_move"], values)
        made[new_id] = (move.to_id, current)
        current = new_id
        standing = new_id if move.is_current else standing
    set_head(db, conversation, head, standing, now)
    for label, message_id, note, created_at in checkpoints:
        set_checkpoint(db, conversation, label, message_id, note, created_at)
