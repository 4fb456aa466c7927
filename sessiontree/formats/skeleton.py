"""The entries of a file, and what each of them follows.

Whatever order the rows of a file are in, and however damaged, every entry gets a parent
or is a root, and following parents ends at a root. What had to be mended is told:

    =====================================  ====================================================
    found                                  done
    =====================================  ====================================================
    a row with the id of an equal row      skipped
    a row with the id of another row       kept, under ``id#2``; what names the id means the first
    a parent that is not in the file       it follows the entry before it in the file
    entries that follow each other in a    the first of them follows the entry before it in the
    circle                                 file, or is a root
    no entry of a chain names a parent     the order of the file is the chain
    =====================================  ====================================================

"Before it in the file" means: in the same session and the same sidechain. Nothing here
recurses or depends on how deep a chain is.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator, Sequence
from operator import gt
from pathlib import PurePath

from sessiontree.errors import FormatError
from sessiontree.formats.naming import key_of_row
from sessiontree.formats.transcript import Entry, Notes, Reader, Row, Source, Tells, storable

ROOT = -1
"""The parent of a root."""

ROWS_A_TIME = 500
"""Rows between two moments at which a reader of a file can be stopped."""

Lane = tuple[str, str]
"""A session and a sidechain of it."""


class Skeleton:
    """The entries of a file in its order, and how they follow each other.

    ``parent[i]`` is the index of what entry i follows, or ROOT.
    """

    def __init__(self, source: Source, reader: Reader) -> None:
        self.source = source
        self.reader = reader
        self.entries: list[Entry] = []
        self.ids: dict[str, int] = {}
        self.parent: array[int] = array("q")
        self.skipped = Notes()
        self.repaired = Notes()
        self.mended: set[int] = set()
        """The entries that ``repaired`` speaks of."""
        self.rows = 0
        """Rows of the file, those that were skipped included."""
        self.topics: list[str] = []
        """The conversations in the file."""
        self.topic: array[int] = array("q")
        """For each entry, the index of its conversation: that of the root it leads to."""
        self.default_topic = storable(PurePath(source.name).stem)
        self._seen: dict[str, int] = {}

    def read(self) -> Iterator[int]:
        """Read the file to its end; tells from time to time how many bytes are read.

        FormatError when nothing in it can be imported.
        """
        for i, row in enumerate(self.reader.rows(self.source, self.skipped)):
            self._take(row)
            if i % ROWS_A_TIME == 0:
                yield row.offset
        skipped = sum(1 for entry in self.entries if entry.tells and entry.tells.skip)
        self.rows = len(self.entries) - skipped + lines_in(self.skipped)
        self._refuse_nothing()
        self._note_missing_end()
        self._note_compactions_of_nothing()
        self.parent = parents(self)
        self.topics, self.topic = _topics(self)
        yield self.source.size

    def repair(self, at: int, what: str) -> None:
        """Note that something was done to entry ``at``."""
        self.repaired.add(self.entries[at].line, what)
        self.mended.add(at)

    def _take(self, row: Row) -> None:
        try:
            entry = self.reader.entry(row)
        except FormatError as error:
            self.skipped.add(row.line, error.what)
            return
        if not self.entries:
            self.default_topic += "-" + _digest(row.raw)[:12]
        if entry.id is not None and entry.id in self.ids:
            self._take_again(entry, row)
        elif self.reader.is_settled:
            self._add(entry, None)
        else:
            self._add(entry, entry.id or self._free_key(key_of_row(row.raw, entry.created_at)))

    def _take_again(self, entry: Entry, row: Row) -> None:
        """Another row with an id that is taken."""
        assert entry.id is not None
        first = self.entries[self.ids[entry.id]]
        same = entry.length == first.length and row.raw == self._bytes_of(first)
        if same:
            self.skipped.add(row.line, f"it is line {first.line} again")
            return
        self._add(entry, None if self.reader.is_settled else self._free_key(entry.id))
        self.repair(len(self.entries) - 1, f"it has the id of line {first.line}; it is kept apart")

    def _bytes_of(self, entry: Entry) -> bytes:
        if entry.text is not None:
            return entry.text.encode()
        return self.source.read(entry.offset, entry.length)

    def _add(self, entry: Entry, key: str | None) -> None:
        if entry.beside or entry.tells is not None:
            entry.settle()
        own, entry.key = entry.key, key
        if own is not None:
            self._keep_own_key(entry, own)
        if entry.parent is not None:  # one string for all who name it, instead of one each
            known = self.ids.get(entry.parent)
            entry.parent = self.entries[known].id if known is not None else entry.parent
        if entry.id is not None:
            self.ids.setdefault(entry.id, len(self.entries))
        self.entries.append(entry)
        if entry.tells is not None:
            self._note(entry, entry.tells)

    def _keep_own_key(self, entry: Entry, key: str) -> None:
        """A key that the row itself tells, if no row before has it."""
        if self._free_key(key) == key:
            entry.key = key
        else:
            what = f"its key {key!r} is that of another row; it is kept without"
            self.repaired.add(entry.line, what)
            self.mended.add(len(self.entries))

    def _note(self, entry: Entry, tells: Tells) -> None:
        if tells.mended:
            self.repair(len(self.entries) - 1, tells.mended)
        if tells.skip:
            self.skipped.add(entry.line, tells.skip)

    def _free_key(self, wanted: str) -> str:
        """``wanted``, and ``#2``, ``#3`` … when it comes again: the same each time."""
        is_id = wanted in self.ids and not self.reader.is_settled
        times = self._seen.get(wanted, 1 if is_id else 0) + 1
        self._seen[wanted] = times
        return wanted if times == 1 else f"{wanted}#{times}"

    def _note_missing_end(self) -> None:
        if self.reader.is_settled and not any(e.tells and e.tells.end for e in self.entries[-1:]):
            self.repair(len(self.entries) - 1, "the file is cut off after it; its end is missing")

    def _note_compactions_of_nothing(self) -> None:
        """A compaction that keeps what is not here keeps nothing of what came before it."""
        for i, entry in enumerate(self.entries):
            tells = entry.tells
            if tells is None or tells.kind != "compaction" or tells.ref is None:
                continue
            target = self.index(tells.ref)
            if target is None or target == i:
                where = "itself" if target == i else "not in the file"
                self.repair(i, f"it keeps all from {tells.ref!r} on, which is {where}")
                tells.ref = None

    def index(self, name: str | int) -> int | None:
        """The index of an entry that is named by its id, or by its place in the file."""
        if isinstance(name, str):
            return self.ids.get(name)
        return name if 0 <= name < len(self.entries) else None

    def _refuse_nothing(self) -> None:
        if self.rows == 0:
            raise FormatError("it is empty", file=self.source.name)
        if any(entry.role != "mark" for entry in self.entries):
            return
        why = "; ".join(map(str, self.skipped[:3])) or "its rows are notes of the program only"
        raise FormatError(
            f"there is no message of format {self.reader.name} in its {self.rows} rows: {why}",
            file=self.source.name,
            hint="name another format, if it is of another",
        )


def lines_in(notes: Notes) -> int:
    """How many lines notes speak of, when each speaks of lines of its own."""
    return sum(note.last - note.line + 1 for note in notes)


def _digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()[:32]


# --- what each entry follows --------------------------------------------------------------


def parents(skeleton: Skeleton) -> array[int]:
    """The index of what each entry follows. Entries beside the conversation have one too,
    but nothing follows them."""
    before = _before(skeleton.entries)
    parent = array("q", bytes(8 * len(skeleton.entries)))
    unlinked = set[Lane]() if skeleton.reader.is_settled else _unlinked(skeleton.entries)
    for i, entry in enumerate(skeleton.entries):
        if entry.parent is None:
            chained = entry.follows or entry.beside or _lane(entry) in unlinked
            parent[i] = before[i] if chained else ROOT
            if chained and entry.is_inside and not entry.follows and parent[i] != ROOT:
                skeleton.repair(i, "no row of the file names a parent; it follows the row before")
        else:
            parent[i] = skeleton.ids.get(entry.parent, ROOT)
            if parent[i] in (ROOT, i):
                parent[i] = before[i]
                skeleton.repair(i, _parent_missing(entry, before[i] == ROOT))
    _cut_circles(skeleton, parent, before)
    _step_over(skeleton.entries, parent)
    return parent


def _parent_missing(entry: Entry, is_first: bool) -> str:
    named = "itself" if entry.parent == entry.id else f"{entry.parent!r}, which is not in the file"
    return f"it follows {named}; it is put " + ("first" if is_first else "after the row before it")


def _lane(entry: Entry) -> Lane:
    return entry.topic or "", entry.side


def _unlinked(entries: Sequence[Entry]) -> set[Lane]:
    """The lanes in which no entry names a parent, though some should."""
    linked = {_lane(entry) for entry in entries if entry.parent is not None}
    return {_lane(entry) for entry in entries if entry.is_inside} - linked


def _before(entries: Sequence[Entry]) -> array[int]:
    """For each entry the one before it in its lane. What belongs to no session of the file
    belongs to that of the main row before it."""
    before = array("q", bytes(8 * len(entries)))
    lanes = {_lane(entry) for entry in entries if entry.is_inside and entry.topic}
    newest: dict[Lane, int] = {}
    main: Lane = ("", "")
    for i, entry in enumerate(entries):
        lane = _lane(entry)
        lane = lane if entry.side or lane in lanes else main
        before[i] = newest.get(lane, ROOT)
        if entry.is_inside:
            newest[lane] = i
            main = lane if not entry.side else main
    return before


def _topics(skeleton: Skeleton) -> tuple[list[str], array[int]]:
    """The conversations, and which of them each entry is in. A row that continues one of
    another session is in the conversation that it continues."""
    found: dict[str, int] = {}
    topic = array("q", bytes(8 * len(skeleton.entries)))
    main = next((entry.topic for entry in skeleton.entries if entry.topic), None)
    for i in ancestors_first(skeleton.parent):
        above = skeleton.parent[i]
        if above != ROOT:
            topic[i] = topic[above]
        else:
            name = skeleton.entries[i].topic or main or skeleton.default_topic
            topic[i] = found.setdefault(name, len(found))
    return list(found), topic


_UNKNOWN, _CLIMBING, _ROOTED = 0, 1, 2


def _cut_circles(skeleton: Skeleton, parent: array[int], before: array[int]) -> None:
    if _is_in_order(parent):
        return
    state = bytearray(len(parent))
    for i in range(len(parent)):
        climbed: list[int] = []
        at = i
        while at != ROOT and state[at] == _UNKNOWN:
            state[at] = _CLIMBING
            climbed.append(at)
            at = parent[at]
        if at != ROOT and state[at] == _CLIMBING:
            circle = climbed[climbed.index(at) :]
            first = min(circle)
            place = before[first]
            parent[first] = place if place != ROOT and state[place] == _ROOTED else ROOT
            skeleton.repair(first, _circle_cut(skeleton, circle, parent[first]))
        for at in climbed:
            state[at] = _ROOTED


def _circle_cut(skeleton: Skeleton, circle: list[int], place: int) -> str:
    lines = ", ".join(str(skeleton.entries[at].line) for at in sorted(circle)[:5])
    more = ", …" if len(circle) > 5 else ""
    where = "made a root" if place == ROOT else "put after the row before it"
    return f"lines {lines}{more} follow each other in a circle; this one is {where}"


def _step_over(entries: Sequence[Entry], parent: array[int]) -> None:
    """What follows an entry without a place follows the nearest before it that has one."""
    for i, at in enumerate(parent):
        if at == ROOT or entries[at].is_inside:
            continue
        climbed: list[int] = []
        while at != ROOT and not entries[at].is_inside:
            climbed.append(at)
            at = parent[at]
        for passed in climbed:  # so that a chain of them is climbed once
            parent[passed] = at
        parent[i] = at


# --- orders and children --------------------------------------------------------------------


def ancestors_first(parent: Sequence[int]) -> array[int]:
    """All indexes in order, but each after what it follows."""
    if _is_in_order(parent):
        return array("q", range(len(parent)))
    order: array[int] = array("q")
    done = bytearray(len(parent))
    for i in range(len(parent)):
        waiting: list[int] = []
        at = i
        while at != ROOT and not done[at]:
            done[at] = 1
            waiting.append(at)
            at = parent[at]
        order.extend(reversed(waiting))
    return order


def _is_in_order(parent: Sequence[int]) -> bool:
    """True where each stands after what it follows, as in nearly every file."""
    return all(map(gt, range(len(parent)), parent))


class Children:
    """Who follows whom, for a tree given by its parents."""

    def __init__(self, parent: Sequence[int]) -> None:
        self._first = array("q", [ROOT]) * len(parent)
        self._next = array("q", [ROOT]) * len(parent)
        for i in range(len(parent) - 1, -1, -1):
            above = parent[i]
            if above != ROOT:
                self._next[i] = self._first[above]
                self._first[above] = i

    def only(self, at: int) -> int:
        """The one that follows ``at``; ROOT where there is none, or several."""
        child = self._first[at]
        return child if child == ROOT or self._next[child] == ROOT else ROOT

    def has_any(self, at: int) -> bool:
        return self._first[at] != ROOT

    def of(self, at: int) -> Iterator[int]:
        """Those that follow ``at``, in order."""
        child = self._first[at]
        while child != ROOT:
            yield child
            child = self._next[child]


def root_of(parent: Sequence[int], order: Sequence[int]) -> array[int]:
    """The root that each entry leads to."""
    root = array("q", bytes(8 * len(parent)))
    for i in order:
        root[i] = i if parent[i] == ROOT else root[parent[i]]
    return root
