"""Pages: text as a grid of glyphs, drawn in black on white.

A page is full before the next begins, and where a line or a page breaks depends on nothing
that comes after it. So text that has grown has the same first pages, to the byte.

How it is fast: the glyphs of a page are put one behind the other, sixteen bytes each. Every
sixteenth byte of that, from the n-th on, is then the n-th row of all the characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import lcm
from typing import NamedTuple

from sessiontree.core.reclaim import png
from sessiontree.core.reclaim.glyphs import BOX, ROWS, WIDTH, Font

LINE_END = "█"
"""What is drawn for the end of a line, and for all empty lines after it. Where the text has
one of its own, the sign below is drawn."""
NOT_A_LINE_END = "▇"
INDENT = 16
"""Blanks at the beginning of a line that are kept at most."""

_HALF = "\uffff"
"""Stands behind a wide character in a line, so that a line is as long as it is wide."""
_INVISIBLE = "".join(
    [
        "\u00ad\u061c\u180e\ufeff",
        "".join(map(chr, [*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070)])),
        "".join(map(chr, range(0xFE00, 0xFE10))),
    ]
)
"""Marks of direction, joiners, variants of emoji: they have no look of their own."""
_ALIKE = dict.fromkeys("✅✔✓", "√") | dict.fromkeys("❌✖✗✘", "\u00d7")
"""Signs that programs like and few fonts have, and what says the same."""
_REDRAWN = dict.fromkeys(_INVISIBLE, "") | _ALIKE | {LINE_END: NOT_A_LINE_END, _HALF: "\ufffd"}
_SURROGATE = re.compile("[\ud800-\udfff]")
_INVERTED = bytes(255 - byte for byte in range(256))


Sheet = list[str]
"""The lines of one page; see ``_HALF``."""


class Geometry(NamedTuple):
    """A page, in pixels: the distances of characters, and what it may measure at most."""

    cell_width: int
    """From one character to the next: 8, or up to 16 for more room between them."""
    cell_height: int
    """From one line to the next, 16 or more."""
    width: int
    height: int

    @property
    def columns(self) -> int:
        return self.width // self.cell_width

    @property
    def rows(self) -> int:
        return self.height // self.cell_height


@dataclass(frozen=True, slots=True)
class Laid:
    """Text on its way to pages."""

    lines: list[str]
    """As wide as the page each, but for the last; see ``_HALF``."""
    glyphs: Mapping[str, bytes]
    missing: Mapping[str, int]
    """The characters that have no glyph, and how often each comes; most often first."""
    chars: int
    """How many characters are drawn."""

    def pages(self, rows: int) -> list[Sheet]:
        return [self.lines[at : at + rows] for at in range(0, len(self.lines), rows)]


def lay(text: str, font: Font, columns: int) -> Laid:
    """Lines of ``columns`` characters, and what each character looks like."""
    text = drawn(text)
    glyphs: dict[str, bytes] = {}
    wide: list[str] = []
    missing: set[str] = set()
    for char in sorted(set(text)):
        glyph = font.glyph(char)
        if glyph is None:
            missing.add(char)
        elif len(glyph) > ROWS:
            wide.append(char)
        glyphs[char] = glyph or BOX
    lines = list(_narrow(text, columns) if not wide else _mixed(text, frozenset(wide), columns))
    return Laid(lines, glyphs, _counted(text, missing), len(text))


def drawn(text: str) -> str:
    """The characters that are drawn for ``text``: line ends as a sign, blanks at most one,
    but for those at the beginning of a line, and nothing that has no look."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
        for char in sorted(_REDRAWN.keys() & set(text)):
            text = text.replace(char, _REDRAWN[char])
    return "".join(map(_line, text.splitlines()))


def plain(lines: Sheet) -> str:
    """Lines of a page as text again, which can be sent: half characters are replaced."""
    text = "".join(lines).replace(_HALF, "").replace(LINE_END, "\n")
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def _line(line: str) -> str:
    words = line.split()
    if not words:
        return ""
    body = " ".join(words)
    if line[0] == words[0][0]:
        return body + LINE_END
    indent = line[: len(line) - len(line.lstrip())].expandtabs(2)
    return " " * min(len(indent), INDENT) + body + LINE_END


def _counted(text: str, chars: set[str]) -> dict[str, int]:
    if not chars:
        return {}
    counts = Counter(text)
    return dict(sorted(((c, counts[c]) for c in chars), key=lambda item: (-item[1], item[0])))


def _narrow(text: str, columns: int) -> Iterator[str]:
    for at in range(0, len(text), columns):
        yield text[at : at + columns]


def _mixed(text: str, wide: frozenset[str], columns: int) -> Iterator[str]:
    """A wide character that would stand on the edge goes to the next line."""
    as_cells = {char: char + _HALF if char in wide else char for char in set(text)}
    cells = "".join(map(as_cells.__getitem__, text))
    at = 0
    while at < len(cells):
        end = at + columns
        if cells[end : end + 1] == _HALF:
            end -= 1
        yield cells[at:end]
        at = end


# --- Drawing ------------------------------------------------------------------------------


def draw(lines: Sheet, glyphs: Mapping[str, bytes], geometry: Geometry) -> bytes:
    """A page as a PNG file."""
    width = geometry.columns * geometry.cell_width
    rows, stride = _rows(lines, glyphs, geometry)
    size = (width + 7) // 8
    gap = geometry.cell_height - ROWS
    blank = b"\xff" * size
    scan: list[bytes] = []
    for at in range(0, len(lines) * stride, stride):
        scan += [blank] * (gap // 2)
        scan += [rows[i : i + size] for i in range(at, len(rows), len(lines) * stride)]
        scan += [blank] * (gap - gap // 2)
    return png.encode(width, len(scan), scan)


def _rows(lines: Sheet, glyphs: Mapping[str, bytes], geometry: Geometry) -> tuple[bytes, int]:
    """The first rows of all lines, then the second rows, …; and the bytes of one row of one
    line, which is a little wider than the page where the cells do not end with a byte."""
    group = lcm(8, geometry.cell_width) // geometry.cell_width
    length = -(-geometry.columns // group) * group
    text = "".join(line.ljust(length) for line in lines)
    left, right = _spread(glyphs, geometry.cell_width - WIDTH)
    bits = _packed(_by_row(text, left), geometry.cell_width)
    if right is not None:
        more = _packed(_by_row(text, right), geometry.cell_width, WIDTH)
        bits = (int.from_bytes(bits) | int.from_bytes(more)).to_bytes(len(bits))
    return bits.translate(_INVERTED), length * geometry.cell_width // 8


def _by_row(text: str, glyphs: Mapping[str, bytes]) -> bytes:
    cells = b"".join(map(glyphs.__getitem__, text))
    return b"".join([cells[row::ROWS] for row in range(ROWS)])


def _spread(
    glyphs: Mapping[str, bytes], gap: int
) -> tuple[Mapping[str, bytes], Mapping[str, bytes] | None]:
    """What stands in the first eight pixels of each cell and, where there are wide
    characters, what stands behind these: their left halves are moved over the gap, so that
    the halves meet."""
    blank = bytes(ROWS)
    left = {**glyphs, " ": blank, _HALF: b""}
    if not gap or all(len(glyph) == ROWS for glyph in glyphs.values()):
        return left, None
    right = dict.fromkeys(left, blank) | {_HALF: b""}
    for char, glyph in glyphs.items():
        if len(glyph) > ROWS:
            half = glyph[:ROWS]
            left[char] = half.translate(_moved(gap)) + glyph[ROWS:]
            right[char] = half.translate(_moved(gap - WIDTH)) + blank
    return left, right


def _packed(cells: bytes, cell_width: int, offset: int = 0) -> bytes:
    """Cells of eight pixels each, ``cell_width`` pixels apart, the first at ``offset``.

    Cells whose place in a byte is the same are moved there together; then those that share
    a byte are laid over each other.
    """
    if cell_width == WIDTH:
        return cells
    shares = _shares(cell_width, offset)
    group = lcm(8, cell_width) // cell_width
    alike = [cells[at::group] for at in range(group)]
    packed = bytearray(len(cells) * cell_width // 8)
    for at, share in enumerate(shares):
        byte = 0
        for cell, shift in share:
            byte |= int.from_bytes(alike[cell].translate(_moved(shift)))
        packed[at :: len(shares)] = byte.to_bytes(len(alike[0]))
    return bytes(packed)


@cache
def _shares(cell_width: int, offset: int) -> list[list[tuple[int, int]]]:
    """For each byte of a group of cells that ends with a byte: the cells that reach into
    it, and by how many bits they are moved to the right."""
    bits = lcm(8, cell_width)
    starts = [cell * cell_width + offset for cell in range(bits // cell_width)]
    return [
        [(cell, start - at) for cell, start in enumerate(starts) if -8 < start - at < 8]
        for at in range(0, bits, 8)
    ]


@cache
def _moved(bits: int) -> bytes:
    """A table that moves the pixels of a byte to the right (to the left where negative)."""
    return bytes((byte >> bits if bits >= 0 else byte << -bits) & 0xFF for byte in range(256))
