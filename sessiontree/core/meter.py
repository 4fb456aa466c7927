"""What entries cost in tokens: estimated, then set right by what the provider reported."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from math import ceil
from typing import Any, NamedTuple, Protocol, cast

from sessiontree.core import images, tokens
from sessiontree.core.marks import Item
from sessiontree.core.rules.images import inside_of
from sessiontree.core.rules.model import Entry, Shape
from sessiontree.core.tokens import Reported
from sessiontree.core.turns import Turn
from sessiontree.errors import WindowError, shown

PER_MESSAGE = 4
"""Tokens around each message. Sources differ between 3 and 6."""

Count = Callable[[Item], int]
"""A caller's own count of a message, in tokens."""


class Meter:
    """Counts entries for one target and model.

    ``count`` is the caller's own count of a stored message; without it, text is counted by
    a tokenizer or by characters (``tokens.counter``) and images by their formula.
    """

    def __init__(
        self, shape: Shape, model: str | None, count: Count | None, exact: bool | None
    ) -> None:
        self.shape = shape
        self.model = model
        self.count = count
        self.family = tokens.family_of(model, shape.name)
        self.text = tokens.counter(self.family, exact=exact)

    def entry(self, entry: Entry) -> int:
        """Tokens of an entry, counted once."""
        if entry.tokens < 0:
            shape, text = self.shape, self.text
            total = PER_MESSAGE
            for block in entry.blocks:
                for said in shape.texts(block):
                    total += text(said)
            if not shape.holders.isdisjoint(entry.kinds):
                for _, _, picture in inside_of(entry, shape):
                    total += images.tokens_of(picture, self.family, self.model)
            entry.tokens = total
        return entry.tokens

    def entries(self, entries: list[Entry]) -> int:
        total = 0
        for entry in entries:
            total += entry.tokens if entry.tokens >= 0 else self.entry(entry)
        return total

    def turn(self, turn: Turn, entries: list[Entry]) -> int:
        """Tokens of a turn's entries; a caller's count holds for what is sent as stored."""
        if self.count is not None:
            counted: set[int] = set()
            counts = {item.id: self._counted(item) for item in turn.items}
            for entry in entries:
                if entry.native is not None or entry.is_carried:
                    new = [i for i in entry.sources if i not in counted]
                    counted.update(new)
                    entry.tokens = sum(counts[i] for i in new)
        return self.entries(entries)

    def _counted(self, item: Item) -> int:
        """By the caller's own count. WindowError where that is none."""
        assert self.count is not None
        found: Any = self.count(item)
        if not isinstance(found, int) or isinstance(found, bool) or found < 0:
            raise WindowError(
                f"the count of message {item.id} is {shown(found)}",
                hint="let count return how many tokens it is: a whole number, 0 or more",
            )
        return found

    def system(self, item: Item | None, system: Any) -> int:
        """Tokens of the system prompt as it is sent."""
        if item is None:
            return 0
        if self.count is not None:
            return self._counted(item)
        return PER_MESSAGE + self.text(text_of_system(system))


def text_of_system(system: Any) -> str:
    """The text of a system prompt, in whatever shape."""
    if isinstance(system, str):
        return system
    if isinstance(system, list):
        return "\n".join(map(text_of_system, cast("list[Any]", system)))
    if not isinstance(system, dict):
        return ""
    body = cast("dict[str, Any]", system)
    return text_of_system(body.get("content") or body.get("parts") or body.get("text"))


class Rendered(NamedTuple):
    """What a turn is sent as, what it costs, and what was reported of it."""

    entries: list[Entry]
    tokens: int
    notes: list[Note]


class Memory(Protocol):
    """Keeps what was rendered, for the next window: messages never change, and neither do
    entries once they were counted."""

    def get(self, key: Hashable, /) -> Rendered | None: ...
    def put(self, key: Hashable, message_id: int, value: Rendered, /) -> None:
        """``message_id`` is the newest message of the turn."""
        ...


# --- By the provider's own report -------------------------------------------------------


class Note(NamedTuple):
    """What a message says for ``Reports``: its estimate, and what was reported with it."""

    id: int
    is_stale: bool
    guess: int
    said: Reported | None


@dataclass(slots=True)
class Reports:
    """What the provider said that requests on this path cost.

    Two reports in a row tell the exact size of the messages between them, so long as
    nothing before them changed. Their sum against the estimates is the ``factor`` by which
    the estimates are off; the newest report is the ``anchor`` of a window that is whole.
    """

    family: str
    anchor: tuple[int, Reported] | None = None
    """The id of the newest message with a report, and the report."""
    _later: int | None = None
    _since: int = 0
    _told: int = 0
    _guessed: int = 0
    _stale: bool = False

    ENOUGH = 500
    """Tokens between reports that a factor needs to mean anything."""
    MOST = 2.5
    """A larger difference comes from something else: another prompt, another model."""

    @property
    def factor(self) -> float:
        return self._told / self._guessed if self._guessed >= self.ENOUGH else 1.0

    def notes(self, turn: Turn, entries: list[Entry]) -> list[Note]:
        """What there is to note of a turn, newest message first."""
        if not any(edits.is_stale for edits in turn.edits) and not any(
            item.role == "assistant" and item.usage for item in turn.items
        ):  # nothing was reported: all that matters is what they come to
            return [Note(0, False, sum([e.tokens for e in entries if e.sources]), None)]
        guesses: dict[int, int] = {}
        for entry in entries:
            if entry.sources:
                guesses[entry.sources[0]] = guesses.get(entry.sources[0], 0) + entry.tokens
        found = zip(reversed(turn.items), reversed(turn.edits), strict=True)
        return [
            Note(item.id, edits.is_stale, guesses.get(item.id, 0), self._report_of(item))
            for item, edits in found
        ]

    def add(self, note: Note) -> None:
        """Take note of a message, newest first."""
        self._since += note.guess
        if note.is_stale != self._stale:
            self._stale, self._later = note.is_stale, None
        said = note.said
        if said is None:
            return
        if self.anchor is None and not note.is_stale:
            self.anchor = (note.id, said)
        if self._later is not None:
            self._compare(self._later - said.input)
        self._later, self._since = said.input, 0

    def _compare(self, told: int) -> None:
        if self._since and 1 / self.MOST <= told / self._since <= self.MOST:
            self._told += told
            self._guessed += self._since

    def _report_of(self, item: Item) -> Reported | None:
        if item.role != "assistant":
            return None
        usage = item.usage
        if not usage or tokens.family_of(item.model, item.format).name != self.family:
            return None
        return tokens.reported(usage)


def scaled(count: int, factor: float) -> int:
    return count if factor == 1.0 else ceil(count * factor)
