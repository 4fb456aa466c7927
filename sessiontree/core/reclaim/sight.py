"""What a reclaim looks at: a path, as a window would send it, with and without a mark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sessiontree.core import marks, planner, render, rules
from sessiontree.core.marks import Item
from sessiontree.core.message import Codecs, Part, Role
from sessiontree.core.reclaim.drawing import draw
from sessiontree.core.rules import Entry
from sessiontree.core.turns import Reader, Turn
from sessiontree.core.window import Budget, Window

Json = dict[str, Any]


@dataclass(slots=True)
class Proposal:
    """A mark that makes the window smaller, to be appended at the head."""

    kind: marks.Kind
    mark: Json
    """The message to append, of the format ``mark``."""
    ref_id: int
    """The message that it reaches; the ``ref_id`` of its row."""
    before: int
    """Tokens of the window, estimated, without the mark."""
    after: int
    """And with it."""
    what: str
    """What it does, in words."""

    @property
    def saves(self) -> int:
        return self.before - self.after


@dataclass(slots=True, frozen=True)
class Refused:
    """A reclaim that was not worth it. Nothing is to be appended."""

    kind: marks.Kind
    why: str


@dataclass(slots=True)
class MarkItem:
    """A mark that is not stored yet, as the newest message of a path."""

    native: Json
    ref_id: int | None
    id: int = 0
    depth: int = 0
    open_calls: int = 0
    role: Role = "mark"
    format: str = "mark"
    parts: list[Part] = field(default_factory=list[Part])
    tokens: int = 0
    usage: Mapping[str, Any] | None = None
    model: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Sight:
    """A path, newest message first, and how windows of it are planned.

    ``items`` need not reach back to the root: as far as matters is enough, a few times the
    budget. ``options`` are those of ``planner.Planner``, but for the budget.
    """

    def __init__(self, items: Sequence[Item], target: str, codecs: Codecs, **options: Any) -> None:
        self.items = items
        self.target = target
        self.codecs = codecs
        self.options = options
        self.shape = rules.shape_of(target)
        self._plain: Window | None = None

    def window(self, budget: Budget | int | None = None, *, anchored: bool = True) -> Window:
        options = {**self.options, "budget": budget, "anchored": anchored, "draw": draw}
        return planner.plan(self.items, self.target, self.codecs, **options)

    @property
    def tokens(self) -> int:
        """What all of it costs by our own count, which alone compares before and after."""
        if self._plain is None:
            self._plain = self.window(anchored=False)
        return self._plain.tokens

    def under(self, mark: Json, ref_id: int) -> Sight:
        """The same path with a mark appended."""
        newest = self.items[0] if self.items else None
        depth = newest.depth + 1 if newest else 0
        item = MarkItem(mark, ref_id, depth=depth, open_calls=newest.open_calls if newest else 0)
        return Sight([item, *self.items], self.target, self.codecs, **self.options)

    def turns(self) -> list[tuple[Turn, list[Entry]]]:
        """The turns that are sent, newest first, with their entries."""
        reader = Reader()
        turns = [turn for item in self.items for turn in reader.feed(item)] + reader.end()
        return [
            (turn, render.entries_of(turn, self.shape, self.codecs))
            for turn in turns
            if not turn.is_past_cut
        ]

    @property
    def standing(self) -> marks.Mark | None:
        """The mark in force whose text stands for what came before; None where all is sent."""
        reader = Reader()
        for item in self.items:
            reader.feed(item)
        return reader.standing if reader.is_cut else None

    @property
    def model(self) -> str | None:
        """The model that the windows are for: as asked, else the newest that answered."""
        found = planner.Planner(self.target, self.codecs, **self.options)
        for item in self.items:
            if found.model is not None:
                break
            found.feed(item)
        return found.model

    def propose(
        self, kind: marks.Kind, mark: Json, ref_id: int, what: str, *, shrinks: bool = True
    ) -> Proposal | Refused:
        """The proposal of a mark; one that ``shrinks`` the window is refused where it does
        not."""
        before, after = self.tokens, self.under(mark, ref_id).tokens
        if shrinks and after >= before:
            return Refused(kind, f"the window would not shrink: {before} tokens, then {after}")
        return Proposal(kind, mark, ref_id, before, after, what)
