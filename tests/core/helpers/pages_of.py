"""Reading pages back: a PNG decoder of its own, and pages drawn the slow way."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

from sessiontree.core.reclaim.glyphs import BOX, ROWS
from sessiontree.core.reclaim.pages import Geometry

Bits = list[str]
"""Rows of a page, a ``#`` for each black pixel and a ``.`` for each white one."""


_EIGHT = [f"{byte:08b}".replace("0", "#").replace("1", ".") for byte in range(256)]


def decode(png: bytes) -> Bits:
    """The pixels of a PNG file of one bit a pixel. Checks its sums and sizes."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    chunks: dict[bytes, bytes] = {}
    at = 8
    while at < len(png):
        size = int.from_bytes(png[at : at + 4], "big")
        kind, data = png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        check = int.from_bytes(png[at + 8 + size : at + 12 + size], "big")
        assert check == zlib.crc32(kind + data)
        chunks[kind] = data
        at += 12 + size
    assert at == len(png)
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    width, height = (int.from_bytes(chunks[b"IHDR"][i : i + 4], "big") for i in (0, 4))
    assert chunks[b"IHDR"][8:] == b"\x01\x00\x00\x00\x00", "one bit, grey, no interlace"
    lines = zlib.decompress(chunks[b"IDAT"])
    stride = 1 + (width + 7) // 8
    assert len(lines) == stride * height
    return [_pixels(lines[i : i + stride], width) for i in range(0, len(lines), stride)]


def _pixels(line: bytes, width: int) -> str:
    assert line[0] == 0, "no filter"
    return "".join(map(_EIGHT.__getitem__, line[1:]))[:width]


def drawn_slowly(lines: list[list[str]], glyphs: Mapping[str, bytes], geometry: Geometry) -> Bits:
    """The page that ``lines`` (of characters) should give, pixel by pixel."""
    width = geometry.columns * geometry.cell_width
    above = (geometry.cell_height - ROWS) // 2
    page = [["."] * width for _ in range(len(lines) * geometry.cell_height)]
    for number, line in enumerate(lines):
        top, left = number * geometry.cell_height + above, 0
        for char in line:
            glyph = glyphs.get(char, BOX)
            _stamp(page, top, left, glyph, geometry)
            left += geometry.cell_width * (len(glyph) // ROWS)
    return ["".join(row) for row in page]


def _stamp(page: list[list[str]], top: int, left: int, glyph: bytes, geometry: Geometry) -> None:
    """A narrow glyph begins where its cell does; a wide one is centred: its halves meet
    where its cells do."""
    start = left if len(glyph) == ROWS else left + geometry.cell_width - 8
    for row in range(ROWS):
        pixels = "".join(f"{half:08b}" for half in glyph[row::ROWS])
        for at, pixel in enumerate(pixels):
            if pixel == "1":
                page[top + row][start + at] = "#"
