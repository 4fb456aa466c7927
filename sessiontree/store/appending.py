"""The unit of work that appends: for one caller, or for all that wait."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sessiontree.core.message import MessageRow, NewMessage
from sessiontree.core.pairing import settle
from sessiontree.core.records import Cause
from sessiontree.errors import MessageNotFound
from sessiontree.store.heads import (
    Move,
    Place,
    Standing,
    boundary,
    closed,
    head_and_place,
    next_move,
    record,
    set_checkpoint,
)
from sessiontree.store.messages import by_key_of, insert, is_small, row_of
from sessiontree.store.statements import statements
from sessiontree.store.units import Together, bounded_where

SQL = statements()


@dataclass(slots=True)
class Append:
    """What an append wants. ``parent`` counts when ``at_head`` is False.

    Messages whose key is taken are not saved again; the first of that key stands in their
    place.
    """

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


class _Begun(NamedTuple):
    """An append whose messages have their places and are about to be written."""

    conversation: int
    wish: Append
    at: Standing
    start: int | None
    rows: list[MessageRow]
    fresh: list[MessageRow]

    @property
    def last(self) -> int | None:
        return (self.fresh or self.rows)[-1].id if self.rows else self.start


def _append(
    db: sqlite3.Connection, calls: Sequence[tuple[int, Append]], at_length: Callable[[], None]
) -> list[Appended]:
    if len(calls) == 1:
        return _append_apart(db, calls, at_length)
    done: list[Appended] = []
    for share in _apart(calls):
        done += _append_apart(db, share, at_length)
    return done


def is_short(_conversation: int, wish: Append, *_more: object) -> bool:
    """Whether an append is of a usual size: not an import."""
    return is_small(wish.messages)


append: Together[int, Append, Appended] = bounded_where(is_short)(Together(_append))
"""``append(db, conversation, wish)``: save messages in a row, and move the head to the last."""


def _apart(calls: Sequence[tuple[int, Append]]) -> Iterator[list[tuple[int, Append]]]:
    """Shares in which no conversation occurs twice: an append follows what came before it."""
    share: dict[int, Append] = {}
    for conversation, wish in calls:
        if conversation in share:
            yield list(share.items())
            share = {}
        share[conversation] = wish
    yield list(share.items())


def _append_apart(
    db: sqlite3.Connection, calls: Sequence[tuple[int, Append]], at_length: Callable[[], None]
) -> list[Appended]:
    begun: list[_Begun] = []
    rows: list[MessageRow] = []
    for conversation, wish in calls:
        begun.append(_begin(db, conversation, wish, len(rows)))
        rows += begun[-1].fresh
    moves: list[Move] = []
    done = [_finish(db, one, moves) for one in begun]
    record(db, moves)
    at_length()
    insert(db, rows)
    for one in begun:
        if one.wish.labels:
            _label(db, one)
    return done


def _begin(db: sqlite3.Connection, conversation: int, wish: Append, taken: int) -> _Begun:
    """``taken`` ids are those of messages of others, which are not written yet."""
    start = wish.expected if wish.at_head else wish.parent
    at, place, next_id = head_and_place(db, conversation, start)
    messages, known = wish.messages, _known(db, conversation, wish.messages)
    if known:  # a retry; what is left must be whole without what was saved then
        if all(known):
            return _Begun(conversation, wish, at, start, list(filter(None, known)), [])
        messages = [m for m, row in zip(messages, known, strict=True) if row is None]
        settle(messages)
        if known[0] is not None:
            start = _where_it_had_come_to(known)
            place = boundary(db, conversation, start)
    if place is None:
        raise MessageNotFound(start, conversation)
    fresh = _chain(conversation, messages, closed(place), next_id + taken, wish.now)
    rows = _together(known, fresh) if known else fresh
    return _Begun(conversation, wish, at, start, rows, fresh)


def _known(
    db: sqlite3.Connection, conversation: int, messages: Sequence[NewMessage]
) -> list[MessageRow | None]:
    """For each message the one that bears its key already; empty where none does."""
    keys = [message.key for message in messages]
    if keys.count(None) == len(keys):
        return []
    found = [by_key_of(db, conversation, key) for key in keys]
    return found if any(found) else []


def _where_it_had_come_to(known: Sequence[MessageRow | None]) -> int | None:
    """The last message that the first try had saved in a row."""
    last: int | None = None
    for row in known:
        if row is None:
            break
        last = row.id
    return last


def _chain(
    conversation: int,
    messages: Sequence[NewMessage],
    place: Place | MessageRow,
    new_id: int,
    now: int,
) -> list[MessageRow]:
    """The messages as they are saved, each after the one before it."""
    rows: list[MessageRow] = []
    for id, message in enumerate(messages, new_id):
        place = row_of(id, conversation, place, message, message.ref, now)
        rows.append(place)
    return rows


def _together(known: Sequence[MessageRow | None], fresh: Sequence[MessageRow]) -> list[MessageRow]:
    """What was saved before and what is saved just now, in the order of the messages."""
    these = iter(fresh)
    return [next(these) if row is None else row for row in known]


def _finish(db: sqlite3.Connection, one: _Begun, moves: list[Move]) -> Appended:
    """What goes with the messages; where the head is to move, the move is added to ``moves``."""
    conversation, wish, at, _, rows, fresh = one
    last = one.last
    for turn in wish.drafts:
        db.execute(SQL["delete_draft"], {"conversation": conversation, "turn": turn})
    if not fresh:  # a retry
        inside = bool(rows) and rows[-1].open_calls > 0
        seen = wish.expected if inside or at.head == wish.expected else last
        return Appended(rows, fresh, seen, moved=True)
    if wish.at_head and at.head != wish.expected and at.head != fresh[0].parent_id:
        return Appended(rows, fresh, at.head, moved=False)
    if at.head != last:
        moves.append(next_move(conversation, at, last, wish.cause, wish.now))
    return Appended(rows, fresh, last, moved=True)


def _label(db: sqlite3.Connection, one: _Begun) -> None:
    for label, note, replace in one.wish.labels:
        set_checkpoint(db, one.conversation, label, one.last, note, one.wish.now, replace)
