"""The figures on disk: JSON for programs, a chart for each subject, one table of them all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from chart import Kind, Panel, Row, chart
from host import Machine
from measure import MARKS, Figure, number, table, write_json

DOCS = Path(__file__).parents[1] / "docs" / "benchmarks"

KINDS: dict[str, Kind] = {"aim": "good", "pass": "good", "miss": "bad", "": "told"}
MEANT = "bar: median of the rounds, line through it: smallest to largest, tick: the target"


def write(folder: Path, name: str, title: str, machine: Machine, figures: Sequence[Figure]) -> None:
    """``NAME.json`` and ``NAME.svg``, and the table anew from all that is there."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / f"{name}.json", machine, figures, title)
    (folder / f"{name}.svg").write_text(drawn(title, machine, figures), encoding="utf-8")


def drawn(title: str, machine: Machine, figures: Sequence[Figure]) -> str:
    """A panel for each unit: a ratio and milliseconds have no axis in common."""
    units = list(dict.fromkeys(figure.unit for figure in figures))
    panels = [_panel(unit, [f for f in figures if f.unit == unit]) for unit in units]
    note = f"{machine.date} · {machine.cores} cores · load {machine.load:.1f} · {MEANT}"
    return chart(title, note, panels)


def _panel(unit: str, figures: Sequence[Figure]) -> Panel:
    rows = [_row(figure) for figure in figures]
    line = (1.0, "1 ×: the same") if unit == "×" else None  # noqa: RUF001
    senses = {figure.target.sense for figure in figures if figure.target}
    better = {"≥": ", more is better", "≤": ", less is better"}
    return Panel(rows, unit + (better[senses.pop()] if len(senses) == 1 else ""), line)


def _row(figure: Figure) -> Row:
    target = figure.target
    return Row(
        label=_cut(figure.subject.replace("`", "")),
        value=figure.median,
        text=f"{number(figure.median)} {figure.unit}{_judged(figure)}",
        kind=KINDS[figure.verdict],
        low=min(figure.values),
        high=max(figure.values),
        mark=target.aim if target else None,
    )


def _judged(figure: Figure) -> str:
    """The mark, and by what: the bound that must be kept, and the one aimed at."""
    target = figure.target
    if target is None:
        return ""
    aim = f", aim {number(target.aim)}" if target.aim != target.bound else ""
    return f"  {MARKS[figure.verdict]}  ({target.sense} {number(target.bound)}{aim})"


def _cut(label: str) -> str:
    return label if len(label) <= 66 else f"{label[:65]}…"


def write_table(folder: Path, names: Sequence[str], program: str) -> None:
    """``figures.md``: every subject that was measured, in this order."""
    lines = ["# Figures", "", f"Written by `{program}`; [README.md](README.md) explains them.", ""]
    for name in names:
        file = folder / f"{name}.json"
        if file.exists():
            lines += _section(json.loads(file.read_text(encoding="utf-8")), name)
    (folder / "figures.md").write_text("\n".join(lines), encoding="utf-8")


def _section(document: dict[str, Any], name: str) -> list[str]:
    machine = Machine(**document["machine"])
    figures = [Figure.from_json(known) for known in document["figures"]]
    title = document["title"]
    return [
        f"## {title}\n",
        f"![{title}]({name}.svg)\n",
        f"{table(figures)}\n",
        f"{machine}\n",
    ]
