"""The one place where text reaches a terminal.

What a store holds was written by models, tools and strangers. Everything printed is
cleaned here first: control characters (with them every escape sequence), characters that
turn the direction of a line around and lone surrogates are shown as marks, never sent.
Colour is added afterwards, and only for a terminal.

JSON is ASCII with escapes, so it needs no cleaning.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple, TextIO, cast

_STYLES = {
    "": "",
    "bold": "1",
    "dim": "2",
    "system": "34",
    "user": "36",
    "assistant": "32",
    "tool": "33",
    "mark": "35",
    "label": "1;33",
}

_CONTROL = {code: 0x2400 + code for code in range(0x20)} | {0x7F: 0x2421}
_HIDDEN = [*range(0x80, 0xA0), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
_MARKS: dict[int, int | str] = (
    _CONTROL
    | {code: f"<U+{code:04X}>" for code in _HIDDEN}
    | dict.fromkeys(range(0xD800, 0xE000), "\N{REPLACEMENT CHARACTER}")
)
_LINES = {code: mark for code, mark in _MARKS.items() if code not in (0x09, 0x0A)}

_NOT_A_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*"|-?Infinity|NaN')


class Styled(NamedTuple):
    """Text and how it looks on a terminal: a role, ``bold``, ``dim`` or ``label``."""

    text: str
    style: str


Piece = str | Styled


def clean(text: str, *, keep_lines: bool = False) -> str:
    """``text`` without anything that a terminal would obey; with ``keep_lines``, line ends
    and tabs stay."""
    if text.isprintable():
        return text
    if keep_lines:
        return text.replace("\r\n", "\n").translate(_LINES)
    return text.translate(_MARKS)


def out(*pieces: Piece) -> None:
    """Print one line."""
    sys.stdout.write(_joined(pieces, sys.stdout) + "\n")


def out_lines(text: str, indent: str = "") -> None:
    """Print text of several lines, each behind ``indent``."""
    for line in clean(text, keep_lines=True).split("\n"):
        sys.stdout.write(f"{indent}{line}\n" if line else "\n")


class _Cleaned(io.TextIOBase):
    """A terminal as a file to write to."""

    def write(self, s: str, /) -> int:
        return sys.stdout.write(clean(s, keep_lines=True))


def sink() -> TextIO:
    """stdout for a whole file: as it is into a pipe or a file, cleaned onto a terminal."""
    if sys.stdout.isatty():
        return cast(TextIO, _Cleaned())
    _leave_bytes_alone(sys.stdout)
    return sys.stdout


def never_fail(stream: TextIO) -> None:
    """Show a character that the stream's encoding lacks as a question mark."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")


def _leave_bytes_alone(stream: TextIO) -> None:
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8", newline="\n")


@contextmanager
def progress(title: str) -> Generator[Callable[[int, int | None], None] | None, None, None]:
    """A bar on stderr while somebody watches: call what is yielded with (done, of)."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bars:
        bar = bars.add_task(escape(clean(title)), total=None)
        yield lambda done, total: bars.update(bar, completed=done, total=total)


def tell(*pieces: Piece) -> None:
    """Say something to the person, beside the output: one line on stderr."""
    sys.stderr.write(_joined(pieces, sys.stderr) + "\n")


def row(left: list[Piece], text: Styled, right: list[Piece]) -> None:
    """Print a line of which ``text`` is cut where the terminal is too narrow for it."""
    width = terminal_width()
    if width is not None:
        used = sum(cells(_plain(piece)) for piece in (*left, *right))
        text = Styled(cut(clean(text.text), max(width - used, 8)), text.style)
    out(*left, text, *right)


def table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    """Print columns; the last one is cut where the terminal is too narrow."""
    lines = [[clean(value) for value in line] for line in rows]
    widths = [max(map(cells, column)) for column in zip(header, *lines, strict=True)]
    for style, line in [("dim", list(header)), *(("", line) for line in lines)]:
        padded = [f"{v}{' ' * (w - cells(v))}  " for v, w in zip(line, widths, strict=True)]
        left = "".join(padded[:-1])
        row([Styled(left if line[-1] else left.rstrip(), style)], Styled(line[-1], style), [])


def cut(text: str, width: int) -> str:
    """``text`` (cleaned) in at most ``width`` columns; wide characters take two."""
    if len(text) <= width and text.isascii():
        return text
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…"


def cells(text: str) -> int:
    """How many columns ``text`` (cleaned) takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def terminal_width() -> int | None:
    """Columns of the terminal on stdout, or None when there is none: then nothing is cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def document(value: Any) -> None:
    """Print one JSON document."""
    sys.stdout.write(as_json(value) + "\n")


@contextmanager
def long_list(before: str = "", after: str = "") -> Generator[Callable[[Any], None], None, None]:
    """Print a JSON list item by item: call what is yielded with each."""
    sys.stdout.write(f"{before}[")
    separator = ""

    def item(value: Any) -> None:
        nonlocal separator
        sys.stdout.write(separator + as_json(value))
        separator = ",\n "

    yield item
    sys.stdout.write(f"]{after}\n")


def long_document(
    facts: Mapping[str, Any], name: str
) -> AbstractContextManager[Callable[[Any], None]]:
    """Print a JSON object whose last member, ``name``, is such a list."""
    return long_list(f"{as_json(dict(facts))[:-1]}, {json.dumps(name)}: ", "}")


def as_json(value: Any) -> str:
    """JSON text. A number too large for a float (1e400 in a stored message) reads as
    infinite; it is written as a number that reads the same, since JSON has no Infinity."""
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:
        return _NOT_A_NUMBER.sub(_finite, json.dumps(value))


def _finite(match: re.Match[str]) -> str:
    return {"Infinity": "1e999", "-Infinity": "-1e999", "NaN": "null"}.get(match[0], match[0])


def _plain(piece: Piece) -> str:
    return clean(piece.text if isinstance(piece, Styled) else piece)


def _joined(pieces: Iterable[Piece], stream: TextIO) -> str:
    if not stream.isatty() or os.environ.get("NO_COLOR"):
        return "".join(map(_plain, pieces))
    return "".join(_coloured(piece) for piece in pieces)


def _coloured(piece: Piece) -> str:
    code = _STYLES[piece.style] if isinstance(piece, Styled) else ""
    return f"\x1b[{code}m{_plain(piece)}\x1b[0m" if code else _plain(piece)
