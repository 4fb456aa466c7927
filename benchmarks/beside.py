"""What the contest with the peers came to: results, one table for each subject, charts."""

# ruff: noqa: RUF001 (the sign of a ratio)

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from chart import Kind, Panel, Row, chart
from host import Machine
from measure import number

OURS, PLAIN = "ours", "plain_sqlite"
GROWTH = ("append-1", "append-1000", "append-5000")
"""The subjects that together show what an append costs as a conversation grows."""

PROMISED = ("append-1", "load")
"""The subjects in which ours is to be faster than every peer."""

ENOUGH = 3
"""Rounds that a slow contender has to do."""


@dataclass(slots=True)
class Result:
    """Of one contender in one subject: seconds of each counted round, or what went wrong."""

    seconds: list[float] = field(default_factory=list[float])
    trouble: str | None = None
    spent: float = 0.0

    def goes_on(self, budget: float) -> bool:
        """Whether it is asked again: not after a failure, nor when it took long enough."""
        is_done = self.spent > budget and len(self.seconds) >= ENOUGH
        return self.trouble is None and not is_done

    def took(self, seconds: float | None, *, counts: bool) -> None:
        if seconds is not None:
            self.spent += seconds
            if counts:
                self.seconds.append(seconds)

    @property
    def median(self) -> float | None:
        """None where something went wrong, even late: half a result would flatter."""
        return median(self.seconds) if self.seconds and self.trouble is None else None


@dataclass(slots=True)
class Contest:
    """One subject. ``work`` is how many turns a round has; 0 where milliseconds are told."""

    name: str
    title: str
    work: int
    results: dict[str, Result] = field(default_factory=dict[str, Result])

    def told(self, seconds: float) -> str:
        if self.work:
            return f"{number(self.work / seconds)} turns/s"
        return f"{number(1000 * seconds)} ms"

    def shown(self, seconds: float) -> float:
        """In the unit of the chart."""
        return self.work / seconds if self.work else 1000 * seconds

    @property
    def unit(self) -> str:
        return "turns/s, more is better" if self.work else "ms, less is better"

    def trouble(self, name: str) -> str:
        """Why there is no figure, and how far it came."""
        result = self.results[name]
        told = result.trouble or "no round was counted"
        if not result.seconds:
            return told
        rounds = f"{len(result.seconds)} round{'s' * (len(result.seconds) > 1)}"
        return f"{told} (after {rounds} of {self.told(median(result.seconds))})"

    def speed(self, name: str) -> float | None:
        """How many times as fast as ours."""
        ours, other = self.results[OURS].median, self.results[name].median
        return None if ours is None or other is None else ours / other

    def in_order(self) -> list[str]:
        """Fastest first; who could not, at the end."""
        return sorted(self.results, key=lambda name: self.results[name].median or float("inf"))

    def faster(self) -> list[str]:
        """The peers that were faster than ours."""
        peers = [name for name in self.in_order() if name not in (OURS, PLAIN)]
        return [name for name in peers if (self.speed(name) or 0) > 1]


@dataclass(frozen=True, slots=True)
class Report:
    machine: Machine
    about: dict[str, dict[str, Any]]
    settings: dict[str, str]
    contests: list[Contest]

    # --- tables -----------------------------------------------------------------------

    def markdown(self) -> str:
        """All of it, for people."""
        lines = [
            "# sessiontree beside the stores of other frameworks",
            "",
            "Written by `python benchmarks/compare.py`; [README.md](README.md) explains it.",
            "",
            *self._contenders(),
        ]
        for contest in self.contests:
            lines += ["", *self._table(contest)]
        return "\n".join([*lines, "", str(self.machine), ""])

    def _contenders(self) -> Iterator[str]:
        yield "| contender | version | writes with |"
        yield "| --- | --- | --- |"
        for name, about in self.about.items():
            version = f"{about['package']} {about['version']}"
            yield f"| {about['title']} | {version} | {self.settings.get(name, '–')} |"

    def _table(self, contest: Contest) -> Iterator[str]:
        yield f"## {contest.title}"
        yield ""
        yield f"![{contest.title}](peers-{contest.name}.svg)"
        yield ""
        yield "| contender | median | smallest – largest | × as fast as sessiontree | how |"
        yield "| --- | --- | --- | --- | --- |"
        for name in contest.in_order():
            yield f"| {' | '.join(self._cells(contest, name))} |"
        yield ""
        yield self._judged(contest)

    def _judged(self, contest: Contest) -> str:
        """Who is faster, and whether that was to be so."""
        faster = ", ".join(self._title(name) for name in contest.faster())
        told = f"Faster than sessiontree here: {faster or 'no peer'}."
        if contest.name in PROMISED:
            told += f" Target: faster than every peer {'✗' if faster else '✓'}."
        return told

    def _cells(self, contest: Contest, name: str) -> tuple[str, ...]:
        result, how = contest.results[name], self.about[name]["how"].get(self._action(contest), "")
        if result.median is None:
            return self._title(name), "–", "–", "–", contest.trouble(name)
        slowest, fastest = max(result.seconds), min(result.seconds)
        least, most = (slowest, fastest) if contest.work else (fastest, slowest)
        ends = f"{contest.told(least)} – {contest.told(most)}"
        speed = contest.speed(name) or 0.0
        is_faster = name in contest.faster()
        ratio = f"**{number(speed)} ×, faster**" if is_faster else f"{number(speed)} ×"
        return self._title(name), contest.told(result.median), ends, ratio, how

    @staticmethod
    def _action(contest: Contest) -> str:
        return contest.name.partition("-")[0]

    def _title(self, name: str) -> str:
        return self.about[name]["title"]

    # --- files ------------------------------------------------------------------------

    def write(self, folder: Path) -> None:
        """peers.json, peers.md, peers-NAME.svg."""
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.as_json(), ensure_ascii=False, indent=1)
        (folder / "peers.json").write_text(text + "\n", encoding="utf-8")
        (folder / "peers.md").write_text(self.markdown(), encoding="utf-8")
        for contest in self.contests:
            (folder / f"peers-{contest.name}.svg").write_text(self.drawn(contest), encoding="utf-8")
        (folder / "peers-growth.svg").write_text(self.growth(), encoding="utf-8")

    def as_json(self) -> dict[str, Any]:
        return {
            "machine": self.machine.as_json(),
            "contenders": {
                name: about | {"settings": self.settings.get(name)}
                for name, about in self.about.items()
            },
            "subjects": [
                {
                    "name": contest.name,
                    "title": contest.title,
                    "turns": contest.work,
                    "faster_than_ours": contest.faster(),
                    "results": {
                        name: {"seconds": result.seconds, "trouble": result.trouble}
                        for name, result in contest.results.items()
                    },
                }
                for contest in self.contests
            ],
        }

    # --- charts -----------------------------------------------------------------------

    def drawn(self, contest: Contest) -> str:
        rows = [self._row(contest, name) for name in contest.in_order()]
        ours = contest.results[OURS].median
        line = None if ours is None else (contest.shown(ours), "sessiontree")
        return chart(contest.title, self._note(), [Panel(rows, contest.unit, line)])

    def _row(self, contest: Contest, name: str) -> Row:
        result, kind = contest.results[name], _kind(name)
        label = self._title(name)
        if result.median is None:
            return Row(label, None, _short(contest.trouble(name)), kind)
        ends = sorted(contest.shown(seconds) for seconds in result.seconds)
        speed = contest.speed(name) or 0.0
        text = f"{contest.told(result.median)}  {number(speed)} ×"
        if name in contest.faster():
            text += " (faster)"
        return Row(label, contest.shown(result.median), text, kind, low=ends[0], high=ends[-1])

    def growth(self) -> str:
        """Three bars for each contender: the same turn in a longer and longer conversation."""
        known = {contest.name: contest for contest in self.contests}
        contests = [known[name] for name in GROWTH if name in known]
        names = [n for n in known[GROWTH[-1]].in_order() if all(n in c.results for c in contests)]
        rows: list[Row] = []
        for name in names:
            for contest in contests:
                row = self._row(contest, name)
                length = contest.title.partition(" of ")[2]
                label = f"… with {length}" if length else f"{row.label}, new"
                rows.append(Row(label, row.value, row.text, row.kind))
        title = "Turns/s as a conversation grows: new, then with more and more messages"
        return chart(title, self._note(), [Panel(rows, "turns/s, more is better")])

    def _note(self) -> str:
        machine = self.machine
        size = " · QUICK" if machine.quick else ""
        return (
            f"{machine.date} · {machine.cores} cores · load {machine.load:.1f} · median of the "
            f"rounds, line: smallest to largest · ×: as fast as sessiontree{size}"
        )


def _kind(name: str) -> Kind:
    return "ours" if name == OURS else "plain" if name == PLAIN else "peer"


def _short(text: str) -> str:
    return text if len(text) <= 84 else f"{text[:83]}…"
