"""CSV: one message a row, for spreadsheets and data frames (RFC 4180, UTF-8).

A cell that a spreadsheet would take for a formula begins with an apostrophe: what a model or
a tool wrote must not be run by opening the file.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from sessiontree.core.message import Message, Part
from sessiontree.formats import shapes
from sessiontree.formats.transcript import kind_of
from sessiontree.formats.writing.lines import as_json, sayable
from sessiontree.formats.writing.times import iso

COLUMNS = (
    "id",
    "parent_id",
    "depth",
    "role",
    "on_path",
    "is_head",
    "labels",
    "created_at",
    "model",
    "tokens",
    "text",
    "reasoning",
    "calls",
    "results",
    "media",
    "format",
    "key",
    "kind",
)
"""``on_path``: the head's path goes through it. ``calls``, ``results``: JSON lists."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def header() -> str:
    return _line(COLUMNS)


def row(message: Message, *, on_path: bool, is_head: bool, labels: Sequence[str] = ()) -> str:
    """The message as a line (it may go over several, in quotes)."""
    parts = message.parts
    cells = (
        str(message.id),
        "" if message.parent_id is None else str(message.parent_id),
        str(message.depth),
        message.role,
        "yes" if on_path else "no",
        "yes" if is_head else "no",
        _harmless("; ".join(labels)),
        iso(message.created_at),
        _harmless(message.model or ""),
        str(message.tokens),
        _harmless(_joined(parts, "text")),
        _harmless(_joined(parts, "reasoning")),
        _list(_call(part) for part in parts if part.get("type") == "tool_call"),
        _list(_result(part) for part in parts if part.get("type") == "tool_call_response"),
        _harmless("; ".join(_media(parts))),
        message.format,
        _harmless(message.key or ""),
        _harmless(kind_of(message) or ""),
    )
    return _line(cells)


def _line(cells: Sequence[str]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow(cells)
    return out.getvalue()


def _harmless(text: str) -> str:
    """``text`` that no spreadsheet runs, without what CSV readers stop at."""
    text = sayable(text.replace("\0", "\N{SYMBOL FOR NULL}"))
    return f"'{text}" if text.startswith(_FORMULA) else text


def _joined(parts: Sequence[Part], kind: str) -> str:
    texts = [str(part.get("content") or "") for part in parts if part.get("type") == kind]
    return "\n".join(text for text in texts if text)


def _list(values: Iterable[object]) -> str:
    found = list(values)
    return as_json(found) if found else ""


def _call(part: Part) -> dict[str, object]:
    return {"id": part.get("id"), "name": part.get("name"), "arguments": part.get("arguments")}


def _result(part: Part) -> dict[str, object]:
    result: dict[str, object] = {"id": part.get("id"), "text": shapes.said_by(part)}
    return result | ({"is_error": True} if part.get("is_error") else {})


def _media(parts: Sequence[Part]) -> list[str]:
    return [shapes.media_in_words(part, "csv") for part in parts if shapes.is_media(part)]
