"""Writes the glyphs that snapshots are drawn with, from the X.org font misc-fixed 8x13.

    apt-get install xfonts-base            # or any other source of 8x13.pcf.gz
    python tools/atlas.py [8x13.pcf.gz] > sessiontree/core/reclaim/atlas.py

The font is in the public domain ("Public domain font.  Share and enjoy."). One glyph is
changed: the zero gets a slash, because models take it for an O. A test holds the shipped
file equal to what this makes, where the font is installed.

PCF is X.org's compiled bitmap font: a table of contents, then tables, each of which begins
with its format. See https://fontforge.org/docs/techref/pcf-format.html.
"""

from __future__ import annotations

import base64
import gzip
import struct
import sys
import zlib
from pathlib import Path

SOURCE = Path("/usr/share/fonts/X11/misc/8x13.pcf.gz")
WIDTH, HEIGHT = 8, 13

METRICS, BITMAPS, ENCODINGS = 1 << 2, 1 << 3, 1 << 5
"""The tables that are read, by their type."""
MOST_SIGNIFICANT_FIRST = 0b1110
"""The format of 8x13.pcf.gz: rows padded to four bytes, bytes and bits in order."""
COMPRESSED = 0x100
ROW = 4
NOWHERE = 0xFFFF

SLASH = {4: "......#.", 5: ".....#..", 6: "....#...", 7: "...#....", 8: "..#....."}

HEAD = '''"""The glyphs of the X.org font misc-fixed 8x13, packed. Written by ``tools/atlas.py``.

The font is in the public domain ("Public domain font.  Share and enjoy."); the zero has a
slash that is ours. ``PACKED`` is the base85 of a zlib stream, its numbers big-endian:

    2 bytes          how many ranges of characters there are
    4 bytes each     the first character of a range, and how many it has
    13 bytes each    the rows of a glyph, from the top; the left pixel is the highest bit
"""

PACKED = (
'''


def main() -> None:
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE
    sys.stdout.write(module(glyphs(source)))


def glyphs(source: Path) -> dict[int, bytes]:
    """Character → 13 bytes, one for each row; the zero with its slash."""
    data = gzip.decompress(source.read_bytes())
    if data[:4] != b"\x01fcp":
        raise SystemExit(f"{source} is no PCF font: it begins with {data[:4]!r}")
    bitmaps = _bitmaps(_table(data, BITMAPS), _count_of_metrics(_table(data, METRICS)))
    found = {at: bitmaps[glyph] for at, glyph in _encodings(_table(data, ENCODINGS)).items()}
    del found[0]  # not a character but what is drawn for those that are not there
    found[ord("0")] = _slashed(found[ord("0")])
    return found


def module(found: dict[int, bytes]) -> str:
    """The text of ``sessiontree/core/reclaim/atlas.py``."""
    text = base64.b85encode(zlib.compress(pack(found), 9)).decode()
    lines = [f'    "{text[at : at + 92]}"\n' for at in range(0, len(text), 92)]
    return HEAD + "".join(lines) + ")\n"


def pack(found: dict[int, bytes]) -> bytes:
    ranges: list[list[int]] = []
    for at in sorted(found):
        if ranges and at == sum(ranges[-1]):
            ranges[-1][1] += 1
        else:
            ranges.append([at, 1])
    head = struct.pack(">H", len(ranges)) + b"".join(struct.pack(">HH", *r) for r in ranges)
    return head + b"".join(found[at] for at in sorted(found))


def _table(data: bytes, kind: int) -> bytes:
    """A table without the four bytes of its format."""
    (count,) = struct.unpack_from("<I", data, 4)
    for at in range(count):
        found, form, size, start = struct.unpack_from("<4I", data, 8 + 16 * at)
        if found == kind:
            if form & ~COMPRESSED != MOST_SIGNIFICANT_FIRST:
                raise SystemExit(f"table {kind} has the format {form:#x}, which is not read")
            return data[start + 4 : start + size]
    raise SystemExit(f"the font has no table {kind}")


def _count_of_metrics(table: bytes) -> int:
    """How many glyphs there are; all are as large as the font says."""
    (count,) = struct.unpack_from(">H", table)
    for at in range(count):
        left, right, width, ascent, descent = (b - 0x80 for b in table[2 + 5 * at : 7 + 5 * at])
        if (left, right, width, ascent + descent) != (0, WIDTH, WIDTH, HEIGHT):
            raise SystemExit(f"glyph {at} is not {WIDTH}x{HEIGHT}")
    return count


def _bitmaps(table: bytes, expected: int) -> list[bytes]:
    (count,) = struct.unpack_from(">I", table)
    assert count == expected, f"{count} bitmaps for {expected} metrics"
    offsets = struct.unpack_from(f">{count}I", table, 4)
    bits = table[4 + 4 * count + 16 :]
    return [bits[at : at + ROW * HEIGHT : ROW] for at in offsets]


def _encodings(table: bytes) -> dict[int, int]:
    """Character → number of its glyph."""
    low, high, first, last, _ = struct.unpack_from(">5H", table)
    wide = high - low + 1
    numbers = struct.unpack_from(f">{wide * (last - first + 1)}H", table, 10)
    return {
        (first + at // wide) * 256 + low + at % wide: glyph
        for at, glyph in enumerate(numbers)
        if glyph != NOWHERE
    }


def _slashed(zero: bytes) -> bytes:
    rows = list(zero)
    for at, row in SLASH.items():
        rows[at] |= int(row.replace(".", "0").replace("#", "1"), 2)
    return bytes(rows)


if __name__ == "__main__":
    main()
