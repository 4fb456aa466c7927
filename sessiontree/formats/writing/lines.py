"""JSON text and plain text of whatever a message may hold."""

from __future__ import annotations

import json
import re

_INFINITE = re.compile(r'"(?:[^"\\]|\\.)*"|-?Infinity|NaN')
_FINITE = {"Infinity": "1e999", "-Infinity": "-1e999", "NaN": "null"}


def as_json(value: object) -> str:
    """Compact JSON text. A lone surrogate is an escape, as UTF-8 has no place for it; a
    number beyond floats (1e400 in a message) is one that reads the same."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(value, separators=(",", ":"))
    if "Infinity" in text or "NaN" in text:
        return _INFINITE.sub(lambda found: _FINITE.get(found[0], found[0]), text)
    return text


def json_line(value: object) -> str:
    """A JSON value on a line of its own."""
    return as_json(value) + "\n"


def sayable(text: str) -> str:
    """``text`` with a mark in the place of each lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def pretty(value: object) -> str:
    """JSON text for people to read."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=2)
    except RecursionError:  # the encoder that indents goes less deep
        return as_json(value)
