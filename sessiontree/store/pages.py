"""The rows of a SQLite file, read page by page, without its tables.

Where the page that leads to other pages is damaged, SQLite reaches none of them, although the
rows on them are whole. So this looks at each page for itself. Source: "Database File Format",
sqlite.org/fileformat2.html, sections 1.5 (freelist), 1.6 (b-tree pages) and 2.1 (records).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from mmap import ACCESS_READ, mmap
from typing import NamedTuple

Value = int | float | bytes | None
"""A text is its bytes, as a blob is."""

TABLE_LEAF, INDEX_LEAF, INDEX_INTERIOR = 13, 10, 2
HEADER = 100
"""Bytes of the file's header, at the begin of the first page."""
MAGIC = b"SQLite format 3\0"
DEFAULT_SIZE = 4096

_INTEGER_BYTES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_CONSTANTS: dict[int, Value] = {0: None, 8: 0, 9: 1}


class Row(NamedTuple):
    """A record. ``rowid`` is None where it stands in an index, or in a table without rowids."""

    rowid: int | None
    values: list[Value]


class Pages:
    """The pages of a file that no one else has open. One that makes no sense has no rows."""

    def __init__(self, file: str) -> None:
        with open(file, "rb") as opened:
            empty = os.fstat(opened.fileno()).st_size == 0
            whole = b"" if empty else mmap(opened.fileno(), 0, access=ACCESS_READ)
        self._content = memoryview(whole)
        self._has_header = bytes(self._content[: len(MAGIC)]) == MAGIC
        self._size = self._page_size()
        self._usable = self._size - (self._content[20] if self._has_header else 0)

    def rows(self) -> Iterator[Row]:
        """Every record of the pages that are in use."""
        free = self._free()
        for number in range(1, len(self._content) // self._size + 1):
            if number not in free:
                yield from self._rows_of(number)

    def _page_size(self) -> int:
        (said,) = struct.unpack(">H", self._content[16:18]) if self._has_header else (0,)
        size = 65536 if said == 1 else said
        return size if size >= 512 and size & (size - 1) == 0 else DEFAULT_SIZE

    def _page(self, number: int) -> memoryview:
        if number < 1:
            raise IndexError
        return self._content[(number - 1) * self._size : number * self._size]

    def _free(self) -> set[int]:
        """Pages that are not in use: what is on them was deleted."""
        free: set[int] = set()
        (trunk,) = struct.unpack(">I", self._content[32:36]) if self._has_header else (0,)
        while trunk and trunk not in free and len(page := self._page(trunk)) == self._size:
            free.add(trunk)
            trunk, count = struct.unpack(">II", page[:8])
            leaves = struct.unpack(f">{self._size // 4 - 2}I", page[8:])
            free.update(leaves[: min(count, len(leaves))])
        return free

    def _rows_of(self, number: int) -> Iterator[Row]:
        page = self._page(number)
        begin = HEADER if number == 1 and self._has_header else 0
        kind = page[begin]
        if kind not in (TABLE_LEAF, INDEX_LEAF, INDEX_INTERIOR):
            return
        (count,) = struct.unpack(">H", page[begin + 3 : begin + 5])
        first = begin + (12 if kind == INDEX_INTERIOR else 8)
        for at in range(first, min(first + 2 * count, self._size - 1), 2):
            (cell,) = struct.unpack(">H", page[at : at + 2])
            try:
                yield self._row(page, cell, kind)
            except (IndexError, ValueError, struct.error):  # not a record
                continue

    def _row(self, page: memoryview, at: int, kind: int) -> Row:
        if kind == INDEX_INTERIOR:
            at += 4  # the page to the left
        size, at = _varint(page, at)
        rowid = None
        if kind == TABLE_LEAF:
            rowid, at = _varint(page, at)
        return Row(rowid, _record(self._payload(page, at, size, kind)))

    def _payload(self, page: memoryview, at: int, size: int, kind: int) -> bytes:
        """What belongs to a cell, on its page and on those that it flows over to."""
        most = self._usable - 35 if kind == TABLE_LEAF else (self._usable - 12) * 64 // 255 - 23
        if size <= most:
            return _take(page, at, size)
        least = (self._usable - 12) * 32 // 255 - 23
        here = least + (size - least) % (self._usable - 4)
        here = here if here <= most else least
        pieces, left = [_take(page, at, here)], size - here
        following = at + here
        while left > 0:
            (number,) = struct.unpack(">I", _take(page, following, 4))
            page, following = self._page(number), 0
            pieces.append(_take(page, 4, min(left, self._usable - 4)))
            left -= len(pieces[-1])
        return b"".join(pieces)


def _take(page: memoryview, at: int, size: int) -> bytes:
    taken = bytes(page[at : at + size])
    if len(taken) != size:
        raise IndexError
    return taken


def _varint(data: memoryview | bytes, at: int) -> tuple[int, int]:
    """An integer of one to nine bytes, and where the next thing begins."""
    value = 0
    for i in range(8):
        byte = data[at + i]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + i + 1
    value = value << 8 | data[at + 8]
    return value - (1 << 64) if value >= 1 << 63 else value, at + 9


def _record(payload: bytes) -> list[Value]:
    end, at = _varint(payload, 0)
    kinds: list[int] = []
    while at < end:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    values: list[Value] = []
    at = end
    for kind in kinds:
        value, at = _value(payload, at, kind)
        values.append(value)
    if at != len(payload):
        raise ValueError
    return values


def _value(payload: bytes, at: int, kind: int) -> tuple[Value, int]:
    if kind in _CONSTANTS:
        return _CONSTANTS[kind], at
    size = _INTEGER_BYTES.get(kind, 8 if kind == 7 else (kind - 12) // 2)
    if kind in (10, 11) or at + size > len(payload):
        raise ValueError
    raw = payload[at : at + size]
    if kind in _INTEGER_BYTES:
        return int.from_bytes(raw, "big", signed=True), at + size
    return (struct.unpack(">d", raw)[0] if kind == 7 else raw), at + size
