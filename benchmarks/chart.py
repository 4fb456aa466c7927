"""Bars as SVG: small, the same bytes for the same figures, and readable on light and dark.

A chart is a column of panels, a panel one bar for each row. A panel has one unit; its axis
is logarithmic where the values are far apart. What a colour says is said in words as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from math import ceil, floor, log10
from typing import Literal

Kind = Literal["ours", "plain", "peer", "good", "bad", "told"]

WIDTH, LABELS, PLOT = 980, 400, 330
LEFT = LABELS + 10
ROW, BAR, HEAD, AXIS, GAP = 22, 14, 58, 34, 16
FAR_APART = 20
"""A panel whose largest value is so many times its smallest gets a logarithmic axis."""

STYLE = """
text { font: 12px system-ui, -apple-system, 'Segoe UI', sans-serif; fill: var(--ink) }
.title { font-size: 16px; font-weight: 600 } .strong { font-weight: 600 }
.soft { fill: var(--soft) }
.why { fill: var(--soft); stroke: var(--paper); stroke-width: 5; paint-order: stroke }
.paper { fill: var(--paper) } .grid { stroke: var(--grid) }
.line { stroke: var(--ink); stroke-dasharray: 4 3 }
.whisker { stroke: var(--ink); stroke-opacity: .55 } .mark { stroke: var(--ink); stroke-width: 2 }
.ours { fill: var(--ours) } .plain { fill: var(--plain) } .peer { fill: var(--peer) }
.good { fill: var(--good) } .bad { fill: var(--bad) } .told { fill: var(--plain) }
svg { --paper: #fff; --ink: #1f2328; --soft: #59636e; --grid: #d1d9e0; --ours: #0969da;
  --plain: #818b98; --peer: #b7791f; --good: #1a7f37; --bad: #cf222e }
@media (prefers-color-scheme: dark) { svg { --paper: #0d1117; --ink: #f0f6fc; --soft: #9198a1;
  --grid: #3d444d; --ours: #4493f8; --plain: #656c76; --peer: #d29922; --good: #3fb950;
  --bad: #f85149 } }
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One bar. Without a value there is only the text, which says why. ``low`` and ``high``
    are the ends of a whisker, ``mark`` a bound of its own."""

    label: str
    value: float | None
    text: str
    kind: Kind
    low: float | None = None
    high: float | None = None
    mark: float | None = None


@dataclass(frozen=True, slots=True)
class Panel:
    """``line`` is a value that all rows are compared with, and what it is called."""

    rows: Sequence[Row]
    unit: str
    line: tuple[float, str] | None = None


@dataclass(frozen=True, slots=True)
class Axis:
    """From values to pixels, and where its ticks are."""

    low: float
    high: float
    is_log: bool
    ticks: tuple[float, ...] = field(default=())

    def x(self, value: float) -> float:
        if self.is_log:
            value = max(value, self.low)
            share = log10(value / self.low) / log10(self.high / self.low)
        else:
            share = value / self.high
        return LEFT + PLOT * min(max(share, 0.0), 1.0)


def axis(values: Iterable[float]) -> Axis:
    """One that holds all of the values: from 0, or from the power of ten below them where
    they are far apart."""
    known = [value for value in values if value > 0] or [1.0]
    least, most = min(known), max(known)
    if most / least > FAR_APART:
        first, last = floor(log10(least)), max(ceil(log10(most)), floor(log10(least)) + 1)
        ticks = tuple(10.0**power for power in range(first, last + 1))
        return Axis(ticks[0], ticks[-1], True, ticks)
    step = _step(most)
    count = ceil(most / step - 1e-9)
    return Axis(0, step * count, False, tuple(step * i for i in range(count + 1)))


def _step(most: float) -> float:
    """1, 2 or 5 times a power of ten, so that there are four to eight ticks."""
    power = 10.0 ** floor(log10(most / 4))
    return next(step * power for step in (1, 2, 5, 10) if most / (step * power) <= 8)


def chart(title: str, note: str, panels: Sequence[Panel]) -> str:
    """The SVG document. ``note`` is small, under the title: where and how."""
    parts: list[str] = []
    top = HEAD
    for panel in panels:
        parts += _panel(panel, top)
        top += _height(panel)
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<desc>{escape(_told(panels))}</desc>",
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{top}" rx="8"/>',
        _text(16, 26, title, "title"),
        _text(16, 46, note, "soft"),
    ]
    return "\n".join([*head, *parts, "</svg>"]) + "\n"


def _told(panels: Sequence[Panel]) -> str:
    """The whole chart in words, for who cannot see it."""
    return "; ".join(f"{row.label}: {row.text}" for panel in panels for row in panel.rows)


def _height(panel: Panel) -> int:
    return len(panel.rows) * ROW + AXIS + GAP


def _panel(panel: Panel, top: int) -> Iterator[str]:
    scale = axis(_values(panel))
    bottom = top + len(panel.rows) * ROW
    for tick in scale.ticks:
        x = scale.x(tick)
        yield f'<line class="grid" x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}"/>'
        yield _text(x, bottom + 14, tick_text(tick), "soft", "middle")
    yield _text(LEFT + PLOT + 30, bottom + 14, panel.unit + " (log)" * scale.is_log, "soft")
    if panel.line:
        value, name = panel.line
        x = scale.x(value)
        yield f'<line class="line" x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom + 18}"/>'
        yield _text(x, bottom + 30, name, "strong", "middle")
    for number, row in enumerate(panel.rows):
        yield from _row(row, scale, top + number * ROW)


def _values(panel: Panel) -> Iterator[float]:
    for row in panel.rows:
        yield from (v for v in (row.value, row.low, row.high, row.mark) if v is not None)
    if panel.line:
        yield panel.line[0]


def _row(row: Row, scale: Axis, top: int) -> Iterator[str]:
    middle = top + ROW / 2
    style = "strong" if row.kind == "ours" else ""
    yield _text(LABELS, middle + 4, row.label, style, "end")
    if row.value is None:
        yield _text(LEFT + 6, middle + 4, row.text, "why")
        return
    width = max(scale.x(row.value) - LEFT, 1)
    y = middle - BAR / 2
    size = f'width="{width:.1f}" height="{BAR}"'
    yield f'<rect class="{row.kind}" x="{LEFT}" y="{y:.1f}" {size} rx="2"/>'
    if row.low is not None and row.high is not None:
        ends = f'x1="{scale.x(row.low):.1f}" x2="{scale.x(row.high):.1f}"'
        yield f'<line class="whisker" {ends} y1="{middle:.1f}" y2="{middle:.1f}"/>'
    if row.mark is not None:
        x, ends = scale.x(row.mark), f'y1="{y - 2:.1f}" y2="{y + BAR + 2:.1f}"'
        yield f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" {ends}/>'
    yield _text(LEFT + PLOT + 12, middle + 4, row.text, style)


def _text(x: float, y: float, text: str, style: str = "", anchor: str = "start") -> str:
    what = f' class="{style}"' if style else ""
    where = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{what}{where}>{escape(text)}</text>'


def tick_text(value: float) -> str:
    """A number as short as it goes: 0.01, 5, 20k, 1M."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"
