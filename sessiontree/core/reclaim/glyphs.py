"""Glyphs: what a character looks like, as bits.

A glyph is sixteen rows high and eight or sixteen pixels wide, one byte for each row of eight
pixels, the left pixel the highest bit. A wide one (Chinese, Japanese, Korean) is two of
eight side by side: sixteen bytes of the left half, then sixteen of the right.

The 3,702 glyphs that ship (Latin, Greek, Cyrillic, Vietnamese, Hebrew, signs, boxes) are
X.org's misc-fixed 8x13. More are read from a font in the .hex format of GNU Unifont, which
is not shipped: Debian's package ``unifont`` has it, and https://unifoundry.com.
"""

from __future__ import annotations

import base64
import re
import struct
import zlib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module

from sessiontree.errors import FormatError

ROWS = 16
"""Rows of a glyph: those of Unifont. The thirteen of misc-fixed stand on its base line."""
WIDTH = 8

_SHIPPED_ROWS = 13
_ABOVE = bytes(ROWS - _SHIPPED_ROWS)

BOX = bytes.fromhex("00000000007e425a6642665a427e0000")
"""What is drawn for a character without a glyph."""

_HEX_LINE = re.compile("([0-9A-Fa-f]{4,6}):((?:[0-9A-Fa-f]{32}){1,2})")


class Font:
    """The glyphs that ship, and ``more`` for the characters that these lack.

    ``more`` is character → glyph as hexadecimal digits, row by row.
    """

    def __init__(self, more: Mapping[str, str] | None = None) -> None:
        self._more = dict(more or {})

    def glyph(self, char: str) -> bytes | None:
        """16 bytes, or 32 of a wide one; None when there is none for this character."""
        found = shipped().get(char)
        if found is not None or char not in self._more:
            return found
        rows = bytes.fromhex(self._more[char])
        return rows if len(rows) == ROWS else rows[0::2] + rows[1::2]


PLAIN = Font()
"""The glyphs that ship."""


def load_hex(lines: Iterable[str]) -> Font:
    """The font in a .hex file: ``with open("unifont.hex") as file: load_hex(file)``.

    57,000 glyphs take about 0.1 s, so keep what is returned. FormatError names the line
    that is none of ``<character>:<32 or 64 digits>``.
    """
    more: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        found = _HEX_LINE.fullmatch(line.strip())
        if found is not None and (at := int(found[1], 16)) <= 0x10FFFF:
            more[chr(at)] = found[2]
        elif line.strip():
            raise FormatError(
                "this is no glyph of a .hex font",
                line=number,
                hint="give unifont.hex, whose lines are like 0041:0000000018242442427E424242420000",
            )
    return Font(more)


@cache
def shipped() -> Mapping[str, bytes]:
    """The glyphs that ship, unpacked when first asked for (1 ms)."""
    packed: str = import_module("sessiontree.core.reclaim.atlas").PACKED
    data = zlib.decompress(base64.b85decode(packed))
    count = int.from_bytes(data[:2], "big")
    found: dict[str, bytes] = {}
    glyph = 2 + 4 * count
    for first, many in struct.iter_unpack(">HH", data[2:glyph]):
        for char in range(first, first + many):
            found[chr(char)] = _ABOVE + data[glyph : glyph + _SHIPPED_ROWS]
            glyph += _SHIPPED_ROWS
    return found
