"""Horizontal bars: as characters for a terminal, as SVG for a page. Makes text, prints nothing."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from sessiontree.cli.screen import clean

_EIGHTHS = " ▏▎▍▌▋▊▉"
_COLOURS = ("#4269d0", "#efb118", "#3ca951")
_ROW, _LABEL, _BARS, _VALUE, _TOP = 22, 260, 460, 150, 58
"""Pixels: a bar's height with its gap; the widths of the three columns; the height above."""


class Bar(NamedTuple):
    """``value`` is what is drawn, ``said`` what is written behind it; ``series`` chooses the
    colour."""

    label: str
    value: float
    said: str
    series: int = 0


def bar(value: float, largest: float, width: int) -> str:
    """``value`` as a bar of at most ``width`` columns."""
    if largest <= 0 or value <= 0:
        return ""
    eighths = max(round(value / largest * width * 8), 1)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def svg(title: str, bars: Sequence[Bar], legend: Sequence[str] = ()) -> str:
    """A drawing that stands alone, readable on light and dark pages; colour is never the only
    difference: each bar bears its label and its value."""
    largest = max((each.value for each in bars), default=0)
    width, height = _LABEL + _BARS + _VALUE, _TOP + _ROW * len(bars) + 12
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'width="{width}" height="{height}" font-family="system-ui, sans-serif" font-size="13">',
        f"<title>{_text(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text x="12" y="22" font-size="15" font-weight="600">{_text(title)}</text>',
        *_legend(legend),
    ]
    for at, each in enumerate(bars):
        lines += _drawn(each, _TOP + _ROW * at, largest)
    return "\n".join([*lines, "</svg>", ""])


def _legend(names: Sequence[str]) -> list[str]:
    lines: list[str] = []
    x = 12
    for at, name in enumerate(names):
        lines.append(f'<rect x="{x}" y="33" width="12" height="12" fill="{_colour(at)}"/>')
        lines.append(f'<text x="{x + 18}" y="44">{_text(name)}</text>')
        x += 40 + 8 * len(name)
    return lines


def _drawn(each: Bar, y: int, largest: float) -> list[str]:
    length = round(each.value / largest * _BARS, 1) if largest > 0 else 0
    base = y + 14
    return [
        f'<text x="{_LABEL - 8}" y="{base}" text-anchor="end">{_text(_cut(each.label))}</text>',
        f'<rect x="{_LABEL}" y="{y + 2}" width="{length}" height="{_ROW - 6}" '
        f'fill="{_colour(each.series)}"/>',
        f'<text x="{_LABEL + length + 6}" y="{base}">{_text(each.said)}</text>',
    ]


def _colour(series: int) -> str:
    return _COLOURS[series % len(_COLOURS)]


def _cut(label: str) -> str:
    return label if len(label) <= 36 else label[:35] + "…"


def _text(value: str) -> str:
    return escape(clean(value))
