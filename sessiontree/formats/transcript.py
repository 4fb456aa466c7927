"""What the readers of transcript files share: rows in, light entries out.

A transcript is read twice. The first time, its reader turns each row of the file into an
``Entry``: where the row stands, what it follows, which calls it makes and answers, and
nothing of what it says. From these ``planting.plan`` makes the tree. The second time,
each row is read again where it stands, and becomes a message. So a file may be much
larger than memory.

    Source      the file: its lines, and any row again by offset and length
    Row         one row as parsed JSON, on its way to a reader
    Reader      what a format has to know: which files are its own, rows -> entries -> messages
    Entry       one row, without what it says
    Notes       what was skipped or repaired, by line
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, BinaryIO, NamedTuple, Protocol, cast

import orjson

from sessiontree import formats
from sessiontree.core import jsontext
from sessiontree.core.message import (
    META,
    Codec,
    Message,
    NewMessage,
    Part,
    Role,
    ToolCall,
    ToolResult,
)
from sessiontree.errors import FormatError
from sessiontree.formats import usual
from sessiontree.formats.usual import Seen

MAX_ROW = 64 << 20
"""Bytes. A longer row is skipped: reading it would take several times that in memory."""

HEAD = 64 << 10
"""Bytes at the start of a file by which its format is told."""

BOM = b"\xef\xbb\xbf"


class Note(NamedTuple):
    """Something that was done with lines ``line`` to ``last``, and why.

    ``part`` names the conversation, in a file that holds several; its nodes are its lines.
    """

    line: int
    what: str
    last: int
    part: str = ""

    def __str__(self) -> str:
        where = f"line {self.line}" if self.last == self.line else f"lines {self.line}-{self.last}"
        return f"{self.part}, {where}: {self.what}" if self.part else f"{where}: {self.what}"


class Notes(list[Note]):
    """Notes in the order in which they were made; the same about lines in a row is one."""

    def add(self, line: int, what: str) -> None:
        if self and self[-1].what == what and self[-1].last + 1 == line:
            self[-1] = self[-1]._replace(last=line)
        else:
            self.append(Note(line, what, line))


@dataclass(slots=True)
class Tells:
    """What few entries tell. ``target``, ``ref`` are ids in the source, or indexes of rows."""

    kind: str | None = None
    """What our notes in the message's meta call it: "compaction", "digest", …"""
    ref: str | int | None = None
    """The entry that it speaks of."""
    target: str | None = None
    """The entry that gets (or loses, when ``label`` is None) a label."""
    label: str | None = None
    note: str | None = None
    title: str | None = None
    head: bool = False
    """True when the source says that its head is here."""
    head_is: str | None = None
    """The id of the entry that the source says its head is on; "" for before the first."""
    move: tuple[str, str, str, bool] | None = None
    """A move of the head: from and to (ids, "" for before the first), cause, is it current."""
    opens: Mapping[str, Any] | None = None
    """What its conversation is opened with: owner, topic, format, meta, source."""
    skip: str | None = None
    """Why it is not kept; what follows it hangs on what it follows."""
    end: int | None = None
    """The file ends here, and holds so many messages."""
    about: bool = False
    """It speaks of the conversation itself (a header, a checkpoint), and is no message."""
    mended: str | None = None
    """What the reader had to repair in it."""


@dataclass(slots=True)
class Entry:
    """One row of a transcript, without what it says."""

    line: int
    """From 1."""
    offset: int
    """Bytes from the start of the file."""
    length: int
    id: str | None = None
    parent: str | None = None
    """The id of what it follows. None: a root, unless it ``follows``."""
    follows: bool = False
    """It names no parent, and follows the entry before it in the file."""
    beside: bool = False
    """It stands beside the conversation (a snapshot, a title, a progress report): it is
    kept where it stands in the file, but never makes a branch or a leaf of its own."""
    role: Role = "mark"
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    mixed: bool = False
    """It says something beside its results."""
    group: str | None = None
    """The answer of the model that it is a piece of, where the source cuts answers up."""
    side: str = ""
    """The sidechain that it belongs to; "" for the main chain."""
    topic: str | None = None
    """The session that it belongs to, as the source names it."""
    key: str | None = None
    created_at: int | None = None
    """Microseconds since 1970, UTC."""
    model: str | None = None
    """Who wrote it, where that is known at the first reading."""
    tells: Tells | None = None
    text: str | None = None
    """The row itself, where the file has no bytes that are the row."""
    preview: str = ""
    tokens: int = 0
    usage: str | None = None
    """JSON text."""
    sum: int | None = None
    """The CRC-32 of its bytes, where they are what is stored and all of the above is what is to
    be known of it: see ``looked``."""
    is_kept: bool = True
    """It becomes a message. Set with ``is_inside`` by ``settle``."""
    is_inside: bool = True
    """It becomes a message that has a place of its own in the tree."""

    def settle(self) -> None:
        """All else is told by now."""
        tells = self.tells
        self.is_kept = tells is None or not (tells.skip or tells.about)
        self.is_inside = self.is_kept and not self.beside


class Place(NamedTuple):
    """Where a node stands, as the conversation around it tells; see ``Entry``."""

    id: str | None = None
    parent: str | None = None
    follows: bool = False
    created_at: int | None = None
    model: str | None = None
    tells: Tells | None = None


class Row(NamedTuple):
    """One row of a file: its place, its bytes, and the object they hold."""

    line: int
    offset: int
    raw: bytes
    native: dict[str, Any]
    place: Place | None = None
    """For a node of a document."""


class Reader(Protocol):
    """What a transcript format has to know. One for each format, without state."""

    name: str
    codec: str
    """The format that its rows are stored in."""
    answers: str
    """The format in which a missing result is written."""
    goes_on: str | None
    """The format in which such conversations go on, if there is one for all of them."""
    is_settled: bool
    """True when its trees are ours: they stand as they are, and results are not moved."""

    def recognises(self, head: Head) -> bool:
        """True when the start of a file bears marks that only this format has."""
        ...

    def rows(self, source: Source, skipped: Notes) -> Iterator[Row]:
        """The rows of the file, in its order; what is none is told to ``skipped``."""
        ...

    def entry(self, row: Row) -> Entry:
        """The row's entry; FormatError says why it has none."""
        ...

    def message(self, text: str, entry: Entry) -> NewMessage:
        """The message that a row (its text) is stored as."""
        ...


class Head:
    """The start of a file, and the whole rows in it, for those who recognise formats."""

    def __init__(self, head: bytes, name: str) -> None:
        self.name = name
        self.text = head.removeprefix(BOM).decode("utf-8", "replace")
        lines = self.text.splitlines()
        whole = lines if len(head) < HEAD or len(lines) < 2 else lines[:-1]
        self.rows: list[dict[str, Any]] = list(_objects(whole))


def _objects(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            yield jsontext.check(line.encode("utf-8", "surrogatepass"))[1]
        except FormatError:
            continue


class Source:
    """A file that is read twice."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.file = file
        self.name = name
        self.size = file.seek(0, os.SEEK_END)
        file.seek(0)

    def head(self) -> bytes:
        """The first bytes; the place in the file stays as it is."""
        return self.read(0, HEAD)

    def read(self, offset: int, length: int) -> bytes:
        """Bytes by their place; the place in the file stays as it is."""
        here = self.file.tell()
        self.file.seek(offset)
        found = self.file.read(length)
        self.file.seek(here)
        return found

    def text(self, entry: Entry) -> str:
        """A row again. FormatError when the file has changed since it was read first."""
        if entry.text is not None:
            return entry.text
        self.file.seek(entry.offset)
        raw = self.file.read(entry.length)
        if len(raw) != entry.length or (entry.sum is not None and zlib.crc32(raw) != entry.sum):
            raise self.changed(entry.line)
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.changed(entry.line) from error

    def changed(self, line: int) -> FormatError:
        return FormatError(
            "the file was rewritten while it was read",
            file=self.name,
            line=line,
            hint="import it again; what was saved stays, and is not saved twice",
        )

    def lines(self, skipped: Notes) -> Iterator[tuple[int, int, bytes]]:
        """(line from 1, offset, bytes without the line's end). Blank lines and those that
        are too long are told to ``skipped``."""
        line = 0
        offset = len(BOM) if self.read(0, len(BOM)) == BOM else 0
        self.file.seek(offset)
        while raw := self.file.readline(MAX_ROW + 1):
            line += 1
            length = len(raw)
            if length > MAX_ROW:
                length += self._rest_of_line()
                skipped.add(line, f"it is longer than {MAX_ROW >> 20} MiB")
            elif raw.isspace():
                skipped.add(line, "it is blank")
            else:
                yield line, offset, raw.rstrip(b"\r\n")
            offset += length

    def _rest_of_line(self) -> int:
        length = 0
        while raw := self.file.readline(1 << 20):
            length += len(raw)
            if raw.endswith(b"\n"):
                break
        return length


def json_lines(
    source: Source,
    skipped: Notes,
    placed: Callable[[int, dict[str, Any]], Place] | None = None,
) -> Iterator[Row]:
    """The rows of a file that has one JSON object a line. ``placed`` tells the place of each, by
    its line and the object, where the rows before it decide that."""
    for line, offset, raw in source.lines(skipped):
        try:
            native = _object_in(raw)
        except FormatError as error:
            ends = offset + len(raw) >= source.size
            skipped.add(line, _why_unreadable(raw, error, ends))
        else:
            yield Row(line, offset, raw, native, placed(line, native) if placed else None)


def _object_in(raw: bytes) -> dict[str, Any]:
    """The object in a row; FormatError as ``jsontext.check``, which reads it where the fast
    decoder refuses it (lone surrogates), or where it may be nested too deep."""
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return jsontext.check(raw, "line")[1]
    if type(value) is not dict or (len(raw) > _FLAT and _may_be_deep(raw)):
        return jsontext.check(raw, "line")[1]
    return cast("dict[str, Any]", value)


_FLAT = 2 * jsontext.MAX_NESTING
"""Bytes up to which no row is nested too deep: each level takes two."""


def _may_be_deep(raw: bytes) -> bool:
    return len(raw.translate(None, _ALL_BUT_OPENING)) > jsontext.MAX_NESTING


_ALL_BUT_OPENING = bytes(set(range(256)) - set(b"[{"))


def _why_unreadable(raw: bytes, error: FormatError, is_last: bool) -> str:
    if not raw.strip(b"\0"):
        return "it holds nothing but NUL bytes, as a crash leaves them"
    if is_last and raw.lstrip().startswith(b"{"):
        return f"the file ends in the middle of it ({error.what})"
    return error.what


def entry(row: Row, role: Role, parts: Sequence[Part]) -> Entry:
    """An entry with what its decoded parts call and answer; readers add its place."""
    made = Entry(row.line, row.offset, len(row.raw), role=role)
    made.calls, made.results, made.mixed = usual.paired(role, parts)
    return made


def looked(row: Row, codec: Codec, seen: Seen | None) -> Entry:
    """The entry of a row that is stored as it stands in the file. What a list shows of it is
    kept, so that it need not be parsed again when it is stored. ``seen`` is None where it takes
    its codec to see what is in it; FormatError when the codec sees nothing."""
    made = Entry(row.line, row.offset, len(row.raw))
    seen = seen or usual.see(*codec.decode(row.native))
    made.role, made.calls, made.results, made.mixed, made.preview, made.tokens = seen
    made.usage, made.model = formats.reported(row.native)
    if made.usage is not None and "e+" in made.usage:  # a large integer, to the fast decoder
        made.usage, _ = formats.reported(jsontext.check(row.raw)[1])
    made.sum = zlib.crc32(row.raw)
    return made


def message(text: str, codec: str, entry: Entry) -> NewMessage:
    """The message that a row is stored as: the row itself, and what its codec sees in it."""
    kind = entry.tells.kind if entry.tells is not None else None
    meta = our_meta(kind) if kind else None
    if entry.sum is None:
        return formats.read(
            text, format=codec, key=entry.key, meta=meta, created_at=entry.created_at
        )
    return NewMessage(
        text,
        codec,
        entry.role,
        entry.calls,
        entry.results,
        entry.preview,
        entry.tokens,
        entry.usage,
        entry.model,
        entry.key,
        meta,
        entry.created_at,
    )


def text_at(native: Mapping[str, Any], key: str) -> str | None:
    """The string at ``key``, if there is one that is not empty, as ``storable``."""
    value = native.get(key)
    return storable(value) if isinstance(value, str) and value else None


def storable(text: str) -> str:
    """A name as every database can hold it: NULs and lone surrogates as JSON escapes."""
    if text.isascii() and "\0" not in text:
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(text)[1:-1]
    return json.dumps(text)[1:-1] if "\0" in text else text


def microseconds(time: object) -> int | None:
    """An ISO 8601 text or a number of milliseconds as microseconds since 1970; None for
    anything else. Times without a zone are UTC."""
    if isinstance(time, str):
        try:
            read = datetime.fromisoformat(time)
        except ValueError:
            return None
        return _since_1970(read if read.tzinfo else read.replace(tzinfo=UTC))
    if isinstance(time, int | float) and not isinstance(time, bool) and abs(time) < 1 << 50:
        return int(time * 1000)
    return None


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _since_1970(time: datetime) -> int:
    since = time - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def our_meta(kind: str, **more: Any) -> dict[str, Any]:
    """Our own note in a message's meta."""
    return {META: {"kind": kind, **more}}


def kind_of(message: Message) -> str | None:
    """What our own note in a message's meta calls it, if there is one."""
    ours = message.meta.get(META)
    kind = cast("dict[str, Any]", ours).get("kind") if isinstance(ours, dict) else None
    return kind if isinstance(kind, str) else None
