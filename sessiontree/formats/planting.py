"""From the entries of a file to the tree that is stored.

``plan`` is the one way of building a tree, for every transcript format:

1. what each entry follows                       (``skeleton``: damage is mended)
2. each step on one chain                        (``steps``)
3. rows beside the conversation onto the chain   (``beside``)
4. what is stored already stays where it is
5. calls and results paired on every path, by the rules of ``core.pairing``:

   - A call that nothing answers below is closed by a result that says so, before the first
     row that begins something else, or at the leaf. So every leaf is a boundary.
   - A result whose call is nowhere before it is kept as a mark. What else its row says
     goes on as a message after it.

The plan is a list of indexes, each after what it follows. Indexes below ``len(entries)``
are the file's; those from there on are ours: see ``Ours``.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from sessiontree.core.message import ToolCall, ToolResult
from sessiontree.core.pairing import OpenCall, take
from sessiontree.formats import beside, steps
from sessiontree.formats.skeleton import ROOT, Skeleton, ancestors_first
from sessiontree.formats.steps import Known, is_same_answer
from sessiontree.formats.transcript import Entry


class Closing(NamedTuple):
    """A result of ours: ``call``, made by entry ``caller``, is unanswered after ``after``."""

    call: ToolCall
    caller: int
    after: int


class Rest(NamedTuple):
    """What entry ``of`` says beside its results of no call, whose positions are ``without``."""

    of: int
    without: frozenset[int]


Ours = Closing | Rest

CLOSING_KEY, REST_KEY = "interrupted:", "rest:"
"""What the keys of what is ours begin with: by these it is known again when it is stored."""

ORPHAN = "orphan_result"
"""What our note in its meta calls a row that is kept as a mark because it answers nothing."""


class Label(NamedTuple):
    """A label that the source has set on an entry."""

    topic: int
    at: int
    label: str
    note: str | None
    created_at: int | None


@dataclass(slots=True)
class Plan:
    """The tree of a file. ``parent[i]`` is the index of what i follows, or ``ROOT``."""

    order: array[int]
    parent: array[int]
    ours: list[Ours]
    first_of_ours: int
    open_calls: dict[int, int]
    """How many calls are open after i, where any are."""
    orphans: dict[int, str]
    """Entries that are stored as marks because they answer nothing, and what they are."""
    rests: dict[int, int] = field(default_factory=dict[int, int])
    """By such an entry, where the rest of what it says is."""
    heads: dict[int, int] = field(default_factory=dict[int, int])
    """By conversation: where the source's head is; ROOT for before the first."""
    sidechains: set[int] = field(default_factory=set[int])
    """Conversations of which the file has sidechains only: it does not tell their head."""
    labels: list[Label] = field(default_factory=list[Label])

    def ours_at(self, at: int) -> Ours | None:
        """What of ours is at an index; None for an entry of the file."""
        return self.ours[at - self.first_of_ours] if at >= self.first_of_ours else None


def plan(
    skeleton: Skeleton,
    known: Mapping[int, Known] | None = None,
    foreign: Sequence[Entry] = (),
) -> Plan:
    """The tree of ``skeleton``.

    ``known`` tells where entries stand that are stored already; ``foreign`` are stored
    messages between them that the file does not have, known under the indexes after
    those of the file.
    """
    known = known or {}
    parent = skeleton.parent[:]
    if not skeleton.reader.is_settled:
        steps.gather(skeleton, parent, known)
    beside.insert(skeleton, parent, known)
    parent.extend([ROOT] * len(foreign))
    for at, place in known.items():
        parent[at] = place.parent
    entries = [*skeleton.entries, *foreign] if foreign else skeleton.entries
    planting = _Planting(skeleton, entries, parent, known)
    planting.pair()
    planting.find_unanswered()
    made = planting.plant()
    made.heads = _heads(skeleton, made, planting.onward)
    made.sidechains = set(made.heads) - _with_main_chain(skeleton)
    made.labels = _labels(skeleton, made, planting.onward)
    return made


class _Planting:
    """Pairing and closing, in three walks: down, up, and down again."""

    def __init__(
        self,
        skeleton: Skeleton,
        entries: Sequence[Entry],
        parent: array[int],
        known: Mapping[int, Known],
    ) -> None:
        self.skeleton = skeleton
        self.entries = entries
        self.parent = parent
        self.known = known
        self.order = ancestors_first(parent)
        self.waiting: dict[int, tuple[OpenCall, ...]] = {}
        """The calls open after each entry, as far as any are."""
        self.answered: dict[int, list[OpenCall]] = {}
        self.orphaned: dict[int, frozenset[int]] = {}
        """Entries that answer nothing, and at which positions."""
        self.unsettled: dict[int, tuple[OpenCall, ...]] = {}
        """Entries that begin something else while calls are open; these are closed before
        them, unless they are answered below."""
        self.closed: dict[int, list[OpenCall]] = {}
        """What is closed before an entry."""
        self.onward: dict[int, int] = {}
        """Where a step goes on, from an entry inside it; see ``_goes_on``."""

    # --- down: which result answers which call --------------------------------------------

    def pair(self) -> None:
        seen, rows = bytearray(len(self.entries)), len(self.skeleton.entries)
        for at in self.order:
            entry = self.entries[at]
            open_before = self.waiting.get(self.parent[at], ())
            if at >= rows and self._is_stored_rest(at):
                self.answered[at] = self.answered.get(self.parent[at], [])
                open_after = open_before
            elif entry.results:
                open_after = self._answer(at, open_before, seen)
            elif open_before and self._begins_something(at):
                open_after = self._leave(at, open_before)
            else:
                open_after = open_before
            if entry.calls:
                open_after += tuple([OpenCall(at, call) for call in entry.calls])
            if open_after and not self._is_stored_boundary(at):
                self.waiting[at] = open_after
            seen[at] = 1

    def _answer(
        self, at: int, open_before: tuple[OpenCall, ...], seen: bytearray
    ) -> tuple[OpenCall, ...]:
        results = self.entries[at].results
        found = _taken(open_before, results)
        if None in found and at not in self.known and at < len(self.skeleton.parent):
            named = self.skeleton.parent[at]
            if named not in (ROOT, self.parent[at]) and seen[named]:
                there = self.waiting.get(named, ())
                if None not in (elsewhere := _taken(there, results)):
                    self.parent[at], open_before, found = named, there, elsewhere
        answered = [call for call in found if call is not None]
        if answered:
            self.answered[at] = answered
        if len(answered) < len(found):
            self._keep_apart(at, found)
        return _without(open_before, answered)

    def _is_stored_rest(self, at: int) -> bool:
        """True for what we have made of an entry that is kept as a mark: its results are those
        of that entry, and do not answer for a second time."""
        key = self.entries[at].key or ""
        return self.parent[at] in self.orphaned and key.startswith(REST_KEY)

    def _keep_apart(self, at: int, found: Sequence[OpenCall | None]) -> None:
        bad = frozenset(i for i, call in enumerate(found) if call is None)
        self.orphaned[at] = bad
        if at in self.known:
            return
        ids = ", ".join(self.entries[at].results[i].id for i in sorted(bad))
        self.skeleton.repair(
            at, f"the result of {ids} answers no open call before it; it is kept as a mark"
        )

    def _begins_something(self, at: int) -> bool:
        """True for what is neither a piece of the open step nor beside the conversation."""
        entry, above = self.entries[at], self.parent[at]
        if entry.beside or at in self.known:
            return False
        while above != ROOT and self.entries[above].beside:
            above = self.parent[above]
        return above == ROOT or not is_same_answer(entry, self.entries[above])

    def _leave(self, at: int, open_before: tuple[OpenCall, ...]) -> tuple[OpenCall, ...]:
        """Close what no result in the file can answer; the rest is seen on the way up."""
        hopeless = [c for c in open_before if not self._may_be_answered(c.call)]
        if hopeless:
            self.closed[at] = hopeless
        left = _without(open_before, hopeless)
        if left:
            self.unsettled[at] = left
        return left

    def _may_be_answered(self, call: ToolCall) -> bool:
        return call.id in self._ids or not (call.given and self._all_given)

    @cached_property
    def _ids(self) -> set[str]:
        return {result.id for entry in self.entries for result in entry.results}

    @cached_property
    def _all_given(self) -> bool:
        return all(result.given for entry in self.entries for result in entry.results)

    def _is_stored_boundary(self, at: int) -> bool:
        place = self.known.get(at)
        return place is not None and place.open_calls == 0

    # --- up: what is answered below ---------------------------------------------------------

    def find_unanswered(self) -> None:
        if not self.unsettled:  # as in nearly every file: nothing is to be found
            return
        below: dict[int, set[int]] = {}
        for at in reversed(self.order):
            answered = below.pop(at, None)
            if answered is None:
                if at not in self.unsettled and at not in self.answered:
                    continue
                answered = set[int]()
            lost = [call for call in self.unsettled.get(at, ()) if id(call) not in answered]
            if lost:
                self.closed[at] = self.closed.get(at, []) + lost
            answered.update(id(call) for call in self.answered.get(at, ()))
            above = self.parent[at]
            if answered and above in self.waiting:
                answered.difference_update(id(c) for c in self.waiting.get(at, ()) if c.at == at)
                below.setdefault(above, answered).update(answered)

    # --- down again: what is stored ---------------------------------------------------------

    def plant(self) -> Plan:
        first = len(self.entries)
        made = Plan(array("q"), self.parent, [], first, {}, {})
        followed = bytearray(first)
        for at in self.order:
            if self.parent[at] != ROOT and self.entries[at].is_kept:
                followed[self.parent[at]] = 1
        self.left: dict[int, tuple[OpenCall, ...]] = {}
        self.closings, self.stored_rests = self._stored_of_ours()
        for at in self.order:
            if at < len(self.skeleton.entries) and not self.entries[at].is_kept:
                continue
            end = self._plant_one(made, at)
            if not followed[at]:
                self._close(made, end, self.left.get(end, ()))
        return made

    def _plant_one(self, made: Plan, at: int) -> int:
        """Plant an entry, and return where what follows it hangs."""
        above = self.parent[at]
        if above in made.rests and made.rests[above] != at:
            above = made.rests[above]
        if at in self.closed:
            above = self._close(made, above, self.closed[at])
        open_before = self.left.get(above, ())
        made.parent[at] = above
        if above != ROOT and open_before:
            self._goes_on(made, above, at)
        if at < len(self.skeleton.entries):
            made.order.append(at)
        open_after = _without(open_before, self.answered.get(at, ()))
        if at in self.waiting:
            open_after += tuple([call for call in self.waiting[at] if call.at == at])
        if at in self.orphaned:
            return self._plant_orphan(made, at, open_before, open_after)
        self._settle(made, at, open_after)
        return at

    def _plant_orphan(
        self,
        made: Plan,
        at: int,
        open_before: tuple[OpenCall, ...],
        open_after: tuple[OpenCall, ...],
    ) -> int:
        made.orphans[at] = ORPHAN
        self._settle(made, at, open_before)
        entry = self.entries[at]
        if not entry.mixed and len(self.orphaned[at]) == len(entry.results):
            return at
        rest = self.stored_rests.get(at)
        if rest is None:
            rest = self._add(made, Rest(at, self.orphaned[at]), at)
        made.rests[at] = rest
        self._settle(made, rest, open_after)
        return rest

    def _close(self, made: Plan, above: int, calls: Iterable[OpenCall]) -> int:
        """A result of ours for each call, one after the other; those there are serve again."""
        for call in calls:
            if not any(call is left for left in self.left.get(above, ())):  # closed further up
                continue
            closing = self.closings.get((above, id(call)))
            if closing is None:
                closing = self._add(made, Closing(call.call, call.at, above), above)
                self.closings[above, id(call)] = closing
            self._settle(made, closing, _without(self.left.get(above, ()), [call]))
            self._goes_on(made, above, closing)
            above = closing
        return above

    def _stored_of_ours(self) -> tuple[dict[tuple[int, int], int], dict[int, int]]:
        """Closings and rests that are stored, and that something of the file follows: by
        what they stand after, as those that are made now."""
        closings: dict[tuple[int, int], int] = {}
        rests: dict[int, int] = {}
        for at in range(len(self.skeleton.entries), len(self.entries)):
            key, above = self.entries[at].key or "", self.parent[at]
            if key.startswith(REST_KEY):
                rests[above] = at
            elif key.startswith(CLOSING_KEY) and at in self.answered:
                closings[above, id(self.answered[at][0])] = at
        return closings, rests

    def _goes_on(self, made: Plan, above: int, at: int) -> None:
        """Note that ``at`` follows ``above``, inside a step. Where several do, the step goes on
        with the last row of the file; else with what closes the first of its calls. So it is
        the same each time a file is imported, whatever of it is stored by then."""
        other = self.onward.get(above)
        if other is None or self._rank(made, above, at) > self._rank(made, above, other):
            self.onward[above] = at

    def _rank(self, made: Plan, above: int, at: int) -> tuple[bool, int]:
        if at < len(self.skeleton.entries):
            return True, at
        ours = made.ours_at(at)
        answered = [call.call for call in self.answered.get(at, ())]
        closed = [ours.call] if isinstance(ours, Closing) else answered
        places = [i for i, c in enumerate(self.left[above]) if any(c.call is x for x in closed)]
        return False, -min(places, default=len(self.left[above]))

    def _add(self, made: Plan, ours: Ours, above: int) -> int:
        at = made.first_of_ours + len(made.ours)
        made.ours.append(ours)
        made.parent.append(above)
        made.order.append(at)
        return at

    def _settle(self, made: Plan, at: int, open_after: tuple[OpenCall, ...]) -> None:
        if open_after and not self._is_stored_boundary(at):
            self.left[at] = open_after
            made.open_calls[at] = len(open_after)


def _taken(open_before: Sequence[OpenCall], results: Sequence[ToolResult]) -> list[OpenCall | None]:
    waiting = list(open_before)
    return [take(waiting, result) for result in results]


def _without(calls: tuple[OpenCall, ...], gone: Sequence[OpenCall]) -> tuple[OpenCall, ...]:
    """``calls`` but those in ``gone``: the very same, since a row may call one id twice."""
    if not gone or not calls:
        return calls
    if len(gone) == len(calls) == 1 and gone[0] is calls[0]:
        return ()
    names = {id(call) for call in gone}
    return tuple(call for call in calls if id(call) not in names)


# --- head and labels ------------------------------------------------------------------------


def _heads(skeleton: Skeleton, made: Plan, onward: Mapping[int, int]) -> dict[int, int]:
    """By conversation: where the source says; else its last row, of the main chain if any;
    before the first where all its rows are beside."""
    last = dict.fromkeys(range(len(skeleton.topics)), ROOT)
    on_side: dict[int, bool] = {}
    said: dict[int, int] = {}
    for i, entry in enumerate(skeleton.entries):
        topic = skeleton.topic[i]
        if entry.is_inside and (not entry.side or on_side.get(topic, True)):
            last[topic] = i
            on_side[topic] = bool(entry.side)
        if entry.tells is not None and entry.tells.head_is is not None:
            said[topic] = _named(skeleton, i, entry.tells.head_is)
        elif entry.tells is not None and entry.tells.head:
            said[topic] = i
    heads = last | {topic: at for topic, at in said.items() if at != _NOWHERE}
    settled = {topic: _settled(made, onward, at) for topic, at in heads.items()}
    last_beside = _last_beside(skeleton, made)
    return {topic: last_beside.get(at, at) for topic, at in settled.items()}


def _with_main_chain(skeleton: Skeleton) -> set[int]:
    return {
        skeleton.topic[i]
        for i, entry in enumerate(skeleton.entries)
        if (entry.is_inside and not entry.side) or (entry.tells and entry.tells.head_is is not None)
    }


_NOWHERE = -2


def _named(skeleton: Skeleton, at: int, name: str) -> int:
    if name == "":
        return ROOT
    found = skeleton.ids.get(name, _NOWHERE)
    if found == _NOWHERE:
        skeleton.repair(at, f"the head is on {name!r}, which is not in the file; its last row is")
        return found
    return found if skeleton.entries[found].is_kept else skeleton.parent[found]


def _settled(made: Plan, onward: Mapping[int, int], at: int) -> int:
    """The first boundary at or after ``at``, and after the rest of what ``at`` says."""
    while at in made.open_calls or at in made.rests:
        at = made.rests[at] if at in made.rests else onward[at]
    return at


def _last_beside(skeleton: Skeleton, made: Plan) -> dict[int, int]:
    """By what they stand after, the last of the rows beside: a head is on it, so that what
    comes next does not make a branch of them."""
    after: dict[int, int] = {}
    last: dict[int, int] = {}
    for i, entry in enumerate(skeleton.entries):
        above = made.parent[i]
        if entry.beside and entry.is_kept and above != ROOT:
            start = after.get(above, above)
            if last.get(start, start) == above:
                after[i], last[start] = start, i
    return last


def _labels(skeleton: Skeleton, made: Plan, onward: Mapping[int, int]) -> list[Label]:
    """The labels that are set at the end of the file, each name once in a conversation."""
    taken: set[tuple[int, str]] = set()
    labels: list[Label] = []
    for target, i in _labelled(skeleton).items():
        entry = skeleton.entries[i]
        assert entry.tells is not None
        assert entry.tells.label is not None
        name = _free(entry.tells.label, skeleton.topic[target], taken)
        if name != entry.tells.label:
            skeleton.repair(i, f"{entry.tells.label!r} is a label already; it is set as {name!r}")
        place = _settled(made, onward, target)
        labels.append(
            Label(skeleton.topic[target], place, name, entry.tells.note, entry.created_at)
        )
    return labels


def _labelled(skeleton: Skeleton) -> dict[int, int]:
    """By labelled entry, the entry that labels it: the last counts."""
    found: dict[int, int] = {}
    for i, entry in enumerate(skeleton.entries):
        if entry.tells is None or entry.tells.target is None:
            continue
        target = skeleton.ids.get(entry.tells.target)
        if target is None or not skeleton.entries[target].is_kept:
            skeleton.repair(i, f"it labels {entry.tells.target!r}, which is not in the file")
        elif entry.tells.label is None:
            found.pop(target, None)
        else:
            found[target] = i
    return found


def _free(label: str, topic: int, taken: set[tuple[int, str]]) -> str:
    name, times = label, 1
    while (topic, name) in taken:
        times += 1
        name = f"{label} ({times})"
    taken.add((topic, name))
    return name
