"""The JSON values of a file, one at a time.

A file holds a list of values, or values one after the other (one a line, or only one). Of a
list, its items are given. No more of the file is in memory than the value at hand, which may
be as large as ``MAX_VALUE``.

What is damaged is told, and read on after where that is possible: after the end of the line
in a file that has one value a line; not in a list, whose next item cannot be found.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any

from sessiontree.errors import FormatError
from sessiontree.formats.transcript import BOM, Notes, Source

MAX_VALUE = 128 << 20
"""Characters. In memory a value takes several times that."""

MAX_DEPTH = 200_000
"""Levels. Messages that hold each other take two each."""

PIECE = 1 << 20
"""Bytes that are read at a time, at least."""

_BETWEEN = re.compile(r"[ \t\r\n,]*")
_DECODER = json.JSONDecoder()
_NEAR_THE_END = 16
"""Characters before the end of what is read in which an error may be for want of the rest."""


def values(source: Source, skipped: Notes) -> Iterator[tuple[Any, int]]:
    """Each value, and how many bytes of the file are read by then."""
    text = _Text(source)
    is_list = text.next() == "["
    text.at += is_list
    count = 0
    while (first := text.next()) and not (is_list and first == "]"):
        count += 1
        place = text.place
        try:
            value = text.value()
        except FormatError as error:
            skipped.add(count, error.what)
            if text.place == place and (is_list or not text.skip_line()):
                return
        else:
            yield value, text.offset


class _Text:
    """The text of a file, as far as it is read. ``at`` is where one stands in it."""

    def __init__(self, source: Source) -> None:
        self.text = ""
        self.at = 0
        self.offset = len(BOM) if source.read(0, len(BOM)) == BOM else 0
        self._source = source
        self._passed = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._is_whole = False

    @property
    def place(self) -> int:
        """Where one stands in the file, in characters."""
        return self._passed + self.at

    def next(self) -> str:
        """The next character that begins something; "" at the end of the file."""
        while True:
            match = _BETWEEN.match(self.text, self.at)
            self.at = match.end() if match else self.at
            if self.at < len(self.text) or not self._more():
                return self.text[self.at : self.at + 1]

    def value(self) -> Any:
        """The value that begins here. FormatError when there is none, or not a whole one."""
        while True:
            try:
                value, end = _decoded(self.text, self.at)
            except json.JSONDecodeError as error:
                if self._is_wrong(error) or not self._more():
                    raise self._not_json(error.msg, error.pos) from error
            except ValueError as error:
                raise self._not_json(str(error), self.at) from error
            else:
                raw = self.text[self.at : end]
                self.at = end
                _refuse_other_than_utf8(raw)
                return value

    def skip_line(self) -> bool:
        """Go to the next line; False when there is none."""
        while (end := self.text.find("\n", self.at)) < 0:
            self.at = len(self.text)
            if not self._more():
                return False
        self.at = end + 1
        return True

    def _more(self) -> bool:
        """Read on, and forget what is passed; False at the end of the file."""
        left = len(self.text) - self.at
        if self._is_whole:
            return False
        if left > MAX_VALUE:
            raise FormatError(f"one value in it is longer than {MAX_VALUE >> 20} MiB")
        raw = self._source.read(self.offset, max(PIECE, left))
        self.offset += len(raw)
        self._is_whole = not raw
        self._passed += self.at
        self.text = self.text[self.at :] + self._decoder.decode(raw, final=not raw)
        self.at = 0
        return True

    def _is_wrong(self, error: json.JSONDecodeError) -> bool:
        """True for an error that more of the file cannot mend."""
        is_open = error.msg.startswith("Unterminated string")
        return not is_open and error.pos < len(self.text) - _NEAR_THE_END

    def _not_json(self, why: str, pos: int) -> FormatError:
        place = self._passed + pos + 1
        return FormatError(f"it stops being JSON at character {place}: {why}")


def _decoded(text: str, at: int) -> tuple[Any, int]:
    """The value at ``at``, and where it ends. JSONDecodeError."""
    try:
        return _DECODER.raw_decode(text, at)
    except RecursionError:
        return _decoded_deep(text, at)


_SPACE = re.compile(r"[ \t\n\r]*")
_CLOSES = {"{": "}", "[": "]"}


def _decoded_deep(text: str, at: int) -> tuple[Any, int]:
    """The same without recursion, for trees of messages that hold each other. FormatError
    beyond ``MAX_DEPTH``."""
    around: list[dict[str, Any] | list[Any]] = []
    keys: list[str] = []
    while True:
        mark = text[at : at + 1]
        if mark in _CLOSES and mark:
            value: Any = {} if mark == "{" else []
            at = _past_space(text, at + 1)
            if text[at : at + 1] != _CLOSES[mark]:
                around.append(value)
                if len(around) > MAX_DEPTH:
                    raise FormatError(f"it is nested deeper than {MAX_DEPTH} levels")
                at = _past_key(text, at, keys) if mark == "{" else at
                continue
            at += 1
        else:
            value, at = _DECODER.raw_decode(text, at)
        value, at = _put(text, at, value, around, keys)
        if not around:
            return value, at


def _put(
    text: str, at: int, value: Any, around: list[dict[str, Any] | list[Any]], keys: list[str]
) -> tuple[Any, int]:
    """Put a whole value where it belongs, and what is whole by that where that belongs. Returns
    the last that is whole, and where the next value begins."""
    while around:
        inside = around[-1]
        if isinstance(inside, dict):
            inside[keys.pop()] = value
        else:
            inside.append(value)
        at = _past_space(text, at)
        mark = text[at : at + 1]
        if mark == ",":
            at = _past_space(text, at + 1)
            return value, _past_key(text, at, keys) if isinstance(inside, dict) else at
        if mark != ("}" if isinstance(inside, dict) else "]"):
            raise json.JSONDecodeError("Expecting ',' delimiter", text, at)
        value, at = around.pop(), at + 1
    return value, at


def _past_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _past_key(text: str, at: int, keys: list[str]) -> int:
    """Where the value of the key at ``at`` begins."""
    if text[at : at + 1] != '"':
        raise json.JSONDecodeError("Expecting property name", text, at)
    key, at = _DECODER.raw_decode(text, at)
    keys.append(key)
    at = _past_space(text, at)
    if text[at : at + 1] != ":":
        raise json.JSONDecodeError("Expecting ':' delimiter", text, at)
    return _past_space(text, at + 1)


def _refuse_other_than_utf8(raw: str) -> None:
    if raw.isascii():
        return
    try:
        raw.encode()
    except UnicodeEncodeError as error:
        raise FormatError(f"it is not UTF-8 (at its character {error.start + 1})") from error
