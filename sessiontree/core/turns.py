"""Reading a path from its newest message back, turn by turn.

A turn begins with a user message before which no call waits for a result that comes later.
A path is cut only there, so that no call is parted from its result. The reader is fed one
message at a time, so that whoever reads the rows reads no more of them than needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field, replace

from sessiontree.core import marks, pairing
from sessiontree.core.marks import NO_EDITS, Edits, Item, Mark
from sessiontree.core.message import calls_of, results_of


@dataclass(slots=True)
class Turn:
    """One turn, oldest message first, each with the marks that reach it."""

    items: list[Item]
    edits: list[Edits]
    is_edited: bool = False
    """Whether any of the marks reaches one of its messages."""
    is_past_cut: bool = False
    """True when a cut or a summary leaves it out, its pinned messages apart."""
    ids: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.ids = [item.id for item in self.items]

    @property
    def key(self) -> tuple[Hashable, ...] | None:
        """The same for turns of which the same is sent; None where a message, or a mark that
        reaches it, is not stored yet."""
        ids, first = self.ids, self.edits[0]
        if min(ids) <= 0 or any(mark.at <= 0 for mark in first.elisions):
            return None
        if self.edits.count(NO_EDITS) == len(ids):
            return tuple(ids)
        return (*ids, *[edits.key for edits in self.edits])


class _Said:
    """The calls and results of a message."""

    def __init__(self, item: Item) -> None:
        self.calls = calls_of(item.parts)
        self.results = results_of(item.parts)


@dataclass(slots=True)
class _Ties:
    """The results of a turn whose calls were not met yet, as the turn is read back. Each
    message is looked at once, however often the user speaks while calls are open."""

    owed: Counter[str] = field(default_factory=Counter[str])
    """By id."""
    surplus: int = 0
    """How many more results there are than calls."""
    are_all_given: bool = True
    looked_at: int = 0

    @property
    def is_sure(self) -> bool:
        """True when ``owed`` tells: all have ids, or there are not calls enough for all."""
        return self.are_all_given or self.surplus > 0

    def look(self, items: list[Item]) -> None:
        """Go on with the messages that came since, newest first."""
        for item in items[self.looked_at :]:
            said = _Said(item)
            self.surplus += len(said.results) - len(said.calls)
            for each in (*said.results, *said.calls):
                self.are_all_given = self.are_all_given and each.given
            self.owed.update(result.id for result in said.results)
            for call in said.calls:
                if self.owed[call.id] > 1:
                    self.owed[call.id] -= 1
                else:
                    del self.owed[call.id]
        self.looked_at = len(items)


@dataclass(slots=True)
class Reader:
    """Groups messages, fed newest first, into turns."""

    items: list[Item] = field(default_factory=list[Item])
    edits: list[Edits] = field(default_factory=list[Edits])
    """Of the turn that is being read, newest first."""
    weight: int = 0
    """Tokens of that turn as they were estimated when it was saved, elided results apart."""
    newest: Item | None = None
    """The newest message that is no mark and no system prompt."""
    standing: Mark | None = None
    """The newest mark whose text stands for what came before."""
    is_cut: bool = False
    """True once the message was met that a cut or a summary makes the first one."""
    in_force: Edits = NO_EDITS
    waiting: list[Mark] = field(default_factory=list[Mark])
    """Marks whose ``ref_id`` was not met yet."""
    _is_past: bool = False
    _cuts_next: bool = False
    _ties: _Ties = field(default_factory=lambda: _Ties())

    def feed(self, item: Item) -> list[Turn]:
        """The turns that are complete now that ``item`` is known to come before them."""
        items, role = self.items, item.role
        was_cut = self.is_cut
        begins = items and items[-1].role == "user" and self._begins_turn(before=item)
        done = self._close() if begins else []
        if role == "mark":
            self._meet_mark(item)
        elif role == "system":
            self.in_force = Edits(self.in_force.elisions, self.in_force.drops_images, True)
        else:
            self._add(item)
        if self.is_cut and not (was_cut or self._is_past):
            done += self.end()
            self._is_past = True
        return done

    def jump(self, to: int) -> None:
        """What is fed next is further back and begins with message ``to``; what was being
        read is let go. Marks that reach what lies between reach all that comes next: ids
        grow along a path."""
        self.items, self.edits, self.weight = [], [], 0
        self._ties = _Ties()
        for mark in list(self.waiting):
            if mark.ref_id is not None and mark.ref_id > to:
                self.waiting.remove(mark)
                self._enforce(mark)
        self._is_past = self._is_past or self.is_cut

    def end(self) -> list[Turn]:
        """The turn that was being read, when nothing comes before it."""
        return self._close() if self.items else []

    def _begins_turn(self, before: Item) -> bool:
        return before.open_calls == 0 or self._answers_itself()

    def _answers_itself(self) -> bool:
        """True when no result in the turn answers a call before it: then a call that was
        never answered, further back, does not tie the turn to it."""
        self._ties.look(self.items)
        if self._ties.is_sure:
            return not self._ties.owed
        found = pairing.pair([_Said(item) for item in reversed(self.items)])
        return all(fault.kind == "unanswered_call" for fault in found.violations)

    def _close(self) -> list[Turn]:
        is_edited = not self.in_force.is_none  # marks only add up on the way back
        turn = Turn(self.items[::-1], self.edits[::-1], is_edited, self._is_past)
        self.items, self.edits, self.weight = [], [], 0
        self._ties = _Ties()
        if self._cuts_next:
            self.is_cut = self._is_past = True
        return [turn]

    def _add(self, item: Item) -> None:
        self.newest = self.newest or item
        if self.waiting:
            for mark in [mark for mark in self.waiting if mark.ref_id == item.id]:
                self.waiting.remove(mark)
                self._enforce(mark)
        self.items.append(item)
        self.edits.append(self.in_force)
        if not (self.in_force.elisions and item.role == "tool"):
            self.weight += item.tokens

    def _meet_mark(self, item: Item) -> None:
        mark = marks.read(item)
        if mark is None:
            return
        if mark.kind in marks.STANDING and mark.text and self.standing is None:
            self.standing = mark
        force = self.in_force
        self.in_force = Edits(force.elisions, force.drops_images, is_stale=True)
        if mark.ref_id is None:
            self._enforce(mark)
        else:
            self.waiting.append(mark)

    def _enforce(self, mark: Mark) -> None:
        force = self.in_force
        if mark.kind == "elide":
            self.in_force = Edits((*force.elisions, mark), force.drops_images, True)
        elif mark.kind == "images":
            self.in_force = Edits(force.elisions, True, True)
        elif self.newest is None:  # it would leave nothing: the newest turn is always sent
            self._cuts_next = True
        else:
            self.is_cut = True


# --- What is pinned of a turn ----------------------------------------------------------------


def pinned_of(turn: Turn, pinned: frozenset[int]) -> Turn:
    """The pinned messages of a turn, each with the calls and results that it is tied to."""
    order = _places_of(turn, pinned)
    items, edits = [turn.items[i] for i in order], [turn.edits[i] for i in order]
    return Turn(items, edits, turn.is_edited, turn.is_past_cut)


def spare(turn: Turn, pinned: frozenset[int]) -> None:
    """Take the edits off what is pinned of a turn."""
    for at in _places_of(turn, pinned):
        turn.edits[at] = replace(NO_EDITS, is_stale=turn.edits[at].is_stale)


def _places_of(turn: Turn, pinned: frozenset[int]) -> list[int]:
    """Where the pinned messages of a turn are, and those of their steps."""
    kept = {i for i, item in enumerate(turn.items) if item.id in pinned}
    for step in steps_of(turn.items):
        if not kept.isdisjoint(step):
            kept |= step
    return sorted(kept)


def steps_of(items: list[Item]) -> list[set[int]]:
    """Indexes of the messages that make one step: calls, and what comes until all of them
    are answered."""
    found: list[set[int]] = []
    open_calls = 0
    for at, item in enumerate(items):
        if open_calls and found:
            found[-1].add(at)
        elif item.open_calls:
            found.append({at})
        open_calls = item.open_calls
    return found
