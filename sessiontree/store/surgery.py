"""Mending one conversation: its tree from the roots up, then what points into it."""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

from sessiontree.core.lost import Bone, Places
from sessiontree.core.message import ROLES, MessageRow, NewMessage, Role, ToolCall, ToolResult
from sessiontree.core.pairing import OpenCall, pair
from sessiontree.core.records import Mended
from sessiontree.store import reads
from sessiontree.store.messages import json_or_null
from sessiontree.store.statements import statements

SQL = statements()
PAGE = 500


class Step(NamedTuple):
    """What pairing wants of a message."""

    role: Role
    calls: tuple[ToolCall, ...]
    results: tuple[ToolResult, ...]


class Known(NamedTuple):
    """What an index still says of a message that is lost."""

    id: int
    conversation_id: int
    parent_id: int | None


class Contents(Protocol):
    """Knows the formats, which the store does not."""

    def step(self, row: MessageRow, /) -> Step | None:
        """What a message says; None where that cannot be read."""
        ...

    def stand_in(self, calls: Sequence[ToolCall], was: MessageRow | None, /) -> NewMessage:
        """What stands in the place of a lost message that answered these calls. ``was``: its
        row, where only the content is gone."""
        ...

    def drafted(self, step: Sequence[reads.DraftRow], /) -> dict[int, tuple[NewMessage, str]]:
        """Of the messages that a turn has in flight: place → what is to stand there instead, and
        why, where one cannot be read or answers a call that is not there."""
        ...

    def astray(self, row: MessageRow, /) -> str | None:
        """The ``meta`` of a message with a note of the parent that it named and that cannot
        be its own."""
        ...


@dataclass(slots=True)
class _Place:
    """What a message must know of its parent, as mended."""

    depth: int = -1
    system_id: int | None = None
    open: list[OpenCall] = field(default_factory=list[OpenCall])


class Surgery:
    """Mends one conversation. All that it does is told in what ``mend`` returns.

    ``known``: messages of it that are known to be gone, and the parent of each.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        conversation: int,
        contents: Contents,
        now: int,
        known: Mapping[int, int | None],
    ) -> None:
        self._db = db
        self._conversation = conversation
        self._contents = contents
        self._now = now
        self._known = known
        self._mended: list[Mended] = []
        self._bones = {bone.id: bone for bone in map(Bone._make, self._all("bones"))}
        self._moves = {row[0]: row[1:] for row in self._all("mend_moves")}
        self._head, self._move, _ = self._all("head")[0]
        self._places: dict[int | None, _Place] = {None: _Place()}
        self._parents: dict[int, int | None] = {}
        self._children: dict[int | None, list[int]] = {}

    def mend(self) -> list[Mended]:
        """The tree from the roots up, then what points into it."""
        for (at,) in self._all("mend_contents"):
            self._tell("wrong_content", at, "of its two contents the one in its row is kept")
        lost = self._lost()
        self._plant(lost)
        waiting = deque(sorted(lost))
        for row in self._rows():
            while waiting and waiting[0] < row.id:
                self._stand_in(waiting.popleft())
            self._set(row)
        for at in waiting:
            self._stand_in(at)
        self._mend_head()
        self._mend_moves()
        self._mend_checkpoints()
        self._mend_drafts()
        self._mend_references()
        return self._mended

    # ---- help ----------------------------------------------------------------------

    def _all(self, statement: str) -> list[Any]:
        return self._db.execute(SQL[statement], {"conversation": self._conversation}).fetchall()

    def _do(self, statement: str, **values: Any) -> None:
        self._db.execute(SQL[statement], {"conversation": self._conversation} | values)

    def _tell(self, kind: str, at: int | None, detail: str) -> None:
        self._mended.append(Mended(kind, self._conversation, at, detail))

    def _rows(self) -> Iterator[MessageRow]:
        ids = reads.all_ids(self._db, self._conversation)
        for start in range(0, len(ids), PAGE):
            some = ids[start : start + PAGE]
            yield from reads.messages_at(self._db, self._conversation, some)

    # ---- where everything stands ---------------------------------------------------

    def _lost(self) -> set[int]:
        """Messages that something speaks of, and that were there once and are no more."""
        spoken = {
            bone.parent_id for bone in self._bones.values() if (bone.parent_id or 0) < bone.id
        }
        spoken.update(bone.ref_id for bone in self._bones.values())
        spoken.update(at for _, origin, to in self._moves.values() for at in (origin, to))
        spoken.update(row[1] for row in self._all("checkpoints"))
        spoken.update(row[1] for row in self._all("draft_parents"))
        if self._move not in self._moves or self._moves[self._move][2] == self._head:
            spoken.add(self._head)  # else the head itself was damaged; its last move tells
        newest = self._db.execute(SQL["last_message_id"]).fetchone()[0]
        unknown = {at for at in spoken if at is not None and at not in self._bones}
        gone = {at for at in unknown if 0 < at <= newest and not self._is_anothers(at)}
        return gone.union(self._known)

    def _is_anothers(self, at: int) -> bool:
        return self._db.execute(SQL["is_message"], {"id": at}).fetchone() is not None

    def _plant(self, lost: set[int]) -> None:
        """Find the parents of what is lost, and of what names one that cannot be it."""
        came_from = {to: origin for _, origin, to in self._moves.values() if to is not None}
        self._parents = {bone.id: bone.parent_id for bone in self._bones.values()}
        self._parents |= Places(self._bones, lost, came_from, self._known).parents()
        for at, parent in self._parents.items():
            self._children.setdefault(parent, []).append(at)

    # ---- messages ------------------------------------------------------------------

    def _stand_in(self, at: int) -> None:
        """Put a message of ours in the place of a lost one."""
        parent = self._parents[at]
        above = self._places[parent]
        calls = self._answered_by(at, above.open)
        new = self._contents.stand_in([opened.call for opened in calls], None)
        left = [opened for opened in above.open if opened not in calls]
        self._places[at] = _Place(above.depth + 1, above.system_id, left)
        values = (
            *(at, self._conversation, parent, new.role, new.format, above.depth + 1, len(left)),
            *(new.tokens, None, None, new.preview, None, json_or_null(new.meta)),
            *(above.system_id, None, self._now, new.content, None),
        )
        self._db.execute(SQL["insert_message"], values)
        where = "at a root, since nothing tells what it followed"
        where = f"after message {parent}" if parent is not None else where
        what = "a mark stands"
        if calls:
            what = f"results that say that those of {len(calls)} call(s) are lost stand"
        self._tell("missing_message", at, f"{what} in its place, {where}")

    def _answered_by(self, at: int, waiting: Sequence[OpenCall]) -> list[OpenCall]:
        """The calls that only ``at`` can have answered: those that wait before it, and that
        nothing after it answers up to the next boundary."""
        steps: list[Step] = []
        following = self._children.get(at, [])
        while waiting and len(following) == 1 and following[0] in self._bones:
            row = reads.message(self._db, self._conversation, following[0])
            step = self._read(row)
            if step is None:
                break
            steps.append(step)
            following = self._children.get(row.id, []) if row.open_calls else []
        left = {id(opened) for opened in pair(steps, waiting).open}
        return [opened for opened in waiting if id(opened) in left]

    def _read(self, row: MessageRow) -> Step | None:
        return self._contents.step(row) if row.content is not None else None  # pyright: ignore

    def _set(self, row: MessageRow) -> None:
        """Put a message that is there right: its place, its role, its count of open calls."""
        parent = self._parents[row.id]
        above = self._places[parent]
        new = row
        if row.content is None:  # pyright: ignore[reportUnnecessaryComparison]
            new = self._without_content(row, above.open)
        step = self._read(new)
        role, left = self._paired(new, step, above.open)
        system = row.id if role == "system" else above.system_id
        self._places[row.id] = _Place(above.depth + 1, system, left)
        new = new._replace(
            parent_id=parent,
            role=role,
            depth=above.depth + 1,
            open_calls=len(left),
            system_id=system,
            meta=new.meta if parent == row.parent_id else self._contents.astray(new),
        )
        if new != row:
            self._tell_changes(row, new)
            self._do("mend_message", lost=new.content != row.content, **new._asdict())

    def _without_content(self, row: MessageRow, waiting: Sequence[OpenCall]) -> MessageRow:
        """A row whose content is gone, with one that says so."""
        calls = self._answered_by(row.id, waiting)
        new = self._contents.stand_in([opened.call for opened in calls], row)
        self._tell("missing_blob", row.id, f"a {new.role} message says that its content is lost")
        return row._replace(
            role=new.role,
            format=new.format,
            content=new.content,
            tokens=new.tokens,
            meta=json_or_null(new.meta),
        )

    def _paired(
        self, row: MessageRow, step: Step | None, before: list[OpenCall]
    ) -> tuple[Role, list[OpenCall]]:
        """The role of a message, and the calls that are open after it. A result without its
        call is a mark, which is never sent."""
        if step is None:  # what it counted is all that is known
            role: Role = row.role if row.role in ROLES else "mark"
            return role, [] if row.open_calls == 0 else before
        role = row.role if row.role in ROLES else step.role
        if role == "mark" or not (step.calls or step.results):
            return role, before
        pairing = pair([step], before)
        faults = [fault for fault in pairing.violations if fault.kind != "unanswered_call"]
        if faults and not step.calls and not pairing.answers:
            self._tell(faults[0].kind, row.id, f"it is a mark now, never sent: {faults[0].why}")
            return "mark", before
        return role, pairing.open

    def _tell_changes(self, row: MessageRow, new: MessageRow) -> None:
        """What was wrong with the row; not what only follows from a parent's being mended."""
        if new.parent_id != row.parent_id:
            where = "it is a root now, since nothing tells what it followed"
            where = f"it follows {new.parent_id} now" if new.parent_id is not None else where
            self._tell("missing_parent", row.id, f"{where}; it said {row.parent_id}")
        else:
            said = self._said(row.parent_id)
            system = row.id if row.role == "system" else said.system_id
            if row.depth != said.depth + 1:
                self._tell("wrong_depth", row.id, f"{new.depth} instead of {row.depth}")
            if row.system_id != system and row.system_id != new.system_id:
                self._tell("wrong_system", row.id, f"{new.system_id} instead of {row.system_id}")
        if row.role not in ROLES:
            self._tell("unknown_role", row.id, f"{new.role} instead of {row.role!r}")
        if row.open_calls != new.open_calls:
            self._tell("wrong_open_calls", row.id, f"{new.open_calls} instead of {row.open_calls}")

    def _said(self, parent: int | None) -> _Place:
        """What the parent's row said before it was mended; where it is lost, what is so now."""
        bone = self._bones.get(parent or 0)
        return self._places[parent] if bone is None else _Place(bone.depth, bone.system_id)

    # ---- what points into the tree -------------------------------------------------

    def _is_boundary(self, at: int | None) -> bool:
        """True of the place before every root, too."""
        return at in self._places and not self._places[at].open

    def _boundary_before(self, at: int | None) -> int | None:
        while not self._is_boundary(at):
            assert at is not None
            at = self._parents[at]
        return at

    def _mend_head(self) -> None:
        was = self._head
        if self._is_boundary(was):
            return
        last = self._moves.get(self._move)
        if last is not None and self._is_boundary(last[2]):
            self._head, why = last[2], "where its last move had put it"
        elif was in self._places:
            self._head, why = self._boundary_before(was), "the boundary before it"
        else:
            boundaries = (at for at in self._parents if self._is_boundary(at))
            self._head, why = max(boundaries, default=None), "the newest boundary"
        self._do("mend_head", head=self._head)
        self._tell("bad_head", was, f"the head is on {self._head} now, {why}")

    def _mend_moves(self) -> None:
        """Moves from or to a place that is none are left out of what undo goes through."""
        kept = {
            number
            for number, (_, origin, to) in self._moves.items()
            if self._is_boundary(origin) and self._is_boundary(to)
        }
        for number, (before, origin, to) in self._moves.items():
            if number not in kept:
                self._do("delete_move", move=number)
                self._tell("bad_move", None, f"move {number}, from {origin} to {to}, is forgotten")
            elif (found := self._kept(before, number, kept)) != before:
                self._do("mend_move", move=number, before=found)
                self._tell("bad_move", None, f"move {number} follows move {found} now")
        self._mend_current_move(kept)

    def _kept(self, move: int | None, after: int, kept: set[int]) -> int | None:
        """The newest move that is kept of ``move`` and those before it."""
        while move is not None and move not in kept:
            if move not in self._moves or move >= after:
                return None
            move, after = self._moves[move][0], move
        return move if move is None or move < after else None

    def _mend_current_move(self, kept: set[int]) -> None:
        if self._move in self._moves:
            current = self._kept(self._move, self._move + 1, kept)
        elif self._move is None:
            current = None
        else:
            there = (number for number in kept if self._moves[number][2] == self._head)
            current = max(there, default=None)
        if current != self._move:
            self._do("mend_current_move", move=current)
            detail = f"the move that undo takes back is {current} now; it was {self._move}"
            self._tell("bad_move", None, detail)

    def _mend_checkpoints(self) -> None:
        for label, at, note, _ in self._all("checkpoints"):
            if self._is_boundary(at):
                continue
            to = self._boundary_before(at) if at in self._places else None
            if to is None:
                self._do("delete_checkpoint", label=label)
                said = "" if note is None else f", whose note was {note!r},"
                detail = f"checkpoint {label!r}{said} is gone: {at} is no place to go back to"
            else:
                self._do("mend_checkpoint", label=label, id=to)
                detail = f"checkpoint {label!r} is on {to} now, the boundary before"
            self._tell("bad_checkpoint", at, detail)

    def _mend_drafts(self) -> None:
        for turn, parent in self._all("draft_parents"):
            if not self._is_boundary(parent):
                self._do("mend_draft", turn=turn, parent=self._head)
                detail = f"what was in flight after {parent} follows the head now, {self._head}"
                self._tell("bad_draft", parent, detail)
        rows = reads.drafts(self._db, self._conversation)
        for turn, places in groupby(self._all("draft_places"), key=itemgetter(0)):
            positions = [position for _, position in places]
            step, rows = rows[: len(positions)], rows[len(positions) :]
            for at, (mark, why) in self._contents.drafted(step).items():
                self._put_in_draft(turn, positions[at], mark)
                self._tell("bad_draft", step[at][1], f"a mark in flight stands for what was: {why}")

    def _put_in_draft(self, turn: int, position: int, mark: NewMessage) -> None:
        """Without its key: whoever adds that message again is not to be told that it is there."""
        meta = json_or_null(mark.meta)
        place = {"turn": turn, "position": position}
        self._do("set_drafted", **place, format=mark.format, meta=meta, content=mark.content)

    def _mend_references(self) -> None:
        for bone in self._bones.values():
            if bone.ref_id is not None and bone.ref_id not in self._places:
                self._do("set_reference", id=bone.id, ref=None)
                self._tell(
                    "missing_reference", bone.id, f"it speaks of none; it said {bone.ref_id}"
                )
