"""Contenders timed beside each other, and the table that tells what came out.

A figure is a ratio of ours to a plain program, taken round by round: the machine is noisy,
and what slows one contender of a round slows the other. The median of the rounds is what
counts; the smallest and the largest are told.
"""

# ruff: noqa: RUF001 (the signs of the table are what they look like)

from __future__ import annotations

import gc
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Any, Literal, Protocol

from host import Machine as Machine

Contender = Callable[[], Awaitable[float]]
"""Does its work once, and returns the seconds of what is to be timed."""

Times = dict[str, list[float]]
"""Contender → seconds, one for each round."""


class Broken(Exception):
    """The environment, or what a contender did, is not what was to be measured."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What every subject is given: a folder of its own, and how much to do."""

    folder: Path
    quick: bool = False
    tiny: bool = False

    def pick(self, whole: int, quick: int, tiny: int | None = None) -> int:
        """A size: of the whole run, of the quick one, or of the one that only looks whether
        everything works (by default as quick)."""
        if self.tiny and tiny is not None:
            return tiny
        return quick if self.quick or self.tiny else whole

    def rounds(self, whole: int, quick: int = 3) -> int:
        """How often each contender is timed."""
        return self.pick(whole, quick, 1)


class Subject(Protocol):
    """A module that measures something."""

    def run(self, bench: Bench, /) -> AsyncIterator[Figure]: ...


# --- timing -----------------------------------------------------------------------------


class Clock:
    """``with Clock() as clock`` … ``clock.seconds``. Garbage is collected before, so that
    nobody pays for what another left behind; while it runs the collector is on, as in life."""

    seconds = 0.0

    def __enter__(self) -> Clock:
        gc.collect()
        self._start = time.perf_counter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.seconds = time.perf_counter() - self._start


def blocking(work: Callable[[], float]) -> Contender:
    """A contender that knows no async."""

    async def contender() -> float:
        return work()

    return contender


async def race(rounds: int, contenders: dict[str, Contender]) -> Times:
    """Every contender once in each round, the first one another each time. One round
    before them is not counted."""
    times: Times = {name: [] for name in contenders}
    names = list(contenders)
    for turn in range(rounds + 1):
        start = turn % len(names)
        for name in names[start:] + names[:start]:
            seconds = await contenders[name]()
            if turn:
                times[name].append(seconds)
    return times


def expect(found: object, expected: object, what: str) -> None:
    """Broken where a contender did not do what is being timed."""
    if found != expected:
        raise Broken(f"{what}: found {_short(found)}, expected {_short(expected)}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) < 200 else f"{text[:200]}…"


# --- figures ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Target:
    """The bound that must be kept, and the one aimed at."""

    sense: Literal["≥", "≤"]
    bound: float
    aim: float

    def is_met(self, value: float, bound: float) -> bool:
        return value >= bound if self.sense == "≥" else value <= bound


def at_least(bound: float, aim: float) -> Target:
    return Target("≥", bound, aim)


def at_most(bound: float, aim: float) -> Target:
    return Target("≤", bound, aim)


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table. ``values`` are one for each round; ``ours`` and ``plain`` say
    in absolute terms what was compared. Without a target it is told for honesty's sake."""

    subject: str
    values: tuple[float, ...]
    target: Target | None = None
    unit: Literal["×", "ms", "MB"] = "×"
    ours: str = ""
    plain: str = ""
    best: float | None = None
    """Our fastest round against the fastest of the other: what is left of the ratio when
    nothing else runs."""

    @property
    def median(self) -> float:
        return median(self.values)

    @property
    def verdict(self) -> Literal["aim", "pass", "miss", ""]:
        if self.target is None:
            return ""
        if self.target.is_met(self.median, self.target.aim):
            return "aim"
        return "pass" if self.target.is_met(self.median, self.target.bound) else "miss"

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "median": self.median, "verdict": self.verdict}

    @classmethod
    def from_json(cls, known: dict[str, Any]) -> Figure:
        target = known["target"] and Target(**known["target"])
        fields = {name: known[name] for name in ("subject", "unit", "ours", "plain", "best")}
        return cls(values=tuple(known["values"]), target=target, **fields)


Told = Callable[[Sequence[float]], str]
"""Seconds of each round → what the table says of them."""


def speed(
    subject: str, ours: list[float], plain: list[float], told: Told, target: Target | None = None
) -> Figure:
    """How many times as fast as the other we are."""
    values = tuple(p / o for o, p in zip(ours, plain, strict=True))
    best = min(plain) / min(ours)
    return Figure(subject, values, target, ours=told(ours), plain=told(plain), best=best)


def cost(
    subject: str, ours: list[float], plain: list[float], told: Told, target: Target | None = None
) -> Figure:
    """How many times as long as the other we take."""
    values = tuple(o / p for o, p in zip(ours, plain, strict=True))
    best = min(ours) / min(plain)
    return Figure(subject, values, target, ours=told(ours), plain=told(plain), best=best)


MARKS = {"aim": "✓ aim", "pass": "✓", "miss": "✗", "": ""}


HEADINGS = ("subject", "target (aim)", "median (min–max)", "best/best", "", "ours", "plain")


def table(figures: Iterable[Figure]) -> str:
    """The figures as one Markdown table."""
    rows = [HEADINGS, ("---",) * len(HEADINGS), *map(_cells, figures)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cells(figure: Figure) -> tuple[str, ...]:
    best = "" if figure.best is None else number(figure.best)
    mark = MARKS[figure.verdict]
    target = _target_text(figure)
    return figure.subject, target, _measured(figure), best, mark, figure.ours, figure.plain


def _target_text(figure: Figure) -> str:
    target = figure.target
    if target is None:
        return "–"
    return f"{target.sense} {number(target.bound)} ({number(target.aim)}) {figure.unit}"


def _measured(figure: Figure) -> str:
    values = figure.values
    spread = f" ({number(min(values))}–{number(max(values))})" if len(values) > 1 else ""
    return f"**{number(figure.median)}**{spread} {figure.unit}"


def number(value: float) -> str:
    """Three digits that count."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def per_second(count: int) -> Told:
    """So many of them in the time of a round."""
    return lambda seconds: f"{count / median(seconds):,.0f}/s"


def milliseconds(seconds: Sequence[float]) -> str:
    return f"{number(1000 * median(seconds))} ms"


def microseconds(count: int) -> Told:
    """Of each of so many in a round."""
    return lambda seconds: f"{number(1_000_000 * median(seconds) / count)} µs"


def write_json(file: Path, machine: Machine, figures: Iterable[Figure], title: str = "") -> None:
    """The same for programs."""
    told = [figure.as_json() for figure in figures]
    document = {"title": title, "machine": machine.as_json(), "figures": told}
    text = json.dumps(document, ensure_ascii=False, indent=1)
    file.write_text(text + "\n", encoding="utf-8")
