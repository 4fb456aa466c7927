"""SillyTavern's chats: a header, then one message a line.

    {"user_name", "character_name", "create_date", "chat_metadata": {…}}
    {"name", "is_user", "is_system", "send_date", "mes", "swipes"?: [str], "swipe_id"?,
     "swipe_info"?: [{"send_date", "extra"}], "extra": {"bookmark_link"?, …}}

The order of the file is the path. A line is stored whole. Each of its swipes that is not the
one chosen becomes a message of its own beside it: the line as it would be with that swipe
chosen, without the others. Messages have no ids; their place and text are one, so that a
swipe stays what it is when another is chosen. Lines with ``is_system`` are not sent to the
model: marks. ``bookmark_link`` is a label.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, cast

from sessiontree.core.message import Decoded, Role
from sessiontree.errors import FormatError
from sessiontree.formats import document, shapes
from sessiontree.formats.document import Document, Node, NodeCodec, Object, Opening, Place
from sessiontree.formats.transcript import Notes, Source, Tells, text_at

NAME = "sillytavern"

SWIPES = frozenset({"swipes", "swipe_info", "swipe_id"})
_HEADER = frozenset({"user_name", "character_name", "create_date", "chat_metadata"})
NO_HEADER: Object = {}

_STAMP = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2}) ?@ ?(\d{1,2})h ?(\d{1,2})m ?(?:(\d{1,2})s)?")
"""2026-08-14@10h03m, 2023-3-5 @18h 27m 13s 180ms"""
_WORDS = ("%B %d, %Y %I:%M%p", "%B %d, %Y %I:%M %p")
"""February 25, 2025 3:46pm"""


class SillyTavern(NodeCodec):
    """The codec of its messages."""

    name = NAME
    marks = frozenset({"mes", "is_user"})

    def said(self, native: Object) -> Decoded:
        text = shapes.text_in(native, "mes", NAME, "it")
        role: Role = "user" if native.get("is_user") else "assistant"
        extra = document.as_object(native.get("extra"))
        reasoning = text_at(extra, "reasoning")
        parts = [{"type": "reasoning", "content": reasoning, "provider": NAME}] if reasoning else []
        parts.append(shapes.text_part(text))
        image = text_at(extra, "image")
        if image is not None:
            parts.append(shapes.from_url(image, "image"))
        return Decoded("mark" if native.get("is_system") else role, parts)

    def written(self, role: Role, text: str) -> dict[str, Any]:
        return {"is_user": role != "assistant", "is_system": role == "system", "mes": text}


CODEC = SillyTavern()


# --- the reader ---------------------------------------------------------------------------


class _Reader(document.DocumentReader):
    name = NAME
    marks = frozenset({"mes", "chat_metadata"})

    def values(self, source: Source, skipped: Notes) -> Iterator[tuple[object, int]]:
        """A file is one chat, which may have no header."""
        yield {"lines": [value for value, _ in super().values(source, skipped)]}, source.size

    def document(self, found: Object, name: str) -> Document:
        lines: list[object] = found["lines"]
        if not lines:
            raise FormatError("it has no lines")
        first = document.as_object(lines[0])
        header = first if not _HEADER.isdisjoint(first) and "mes" not in first else NO_HEADER
        opening = Opening(
            title=text_at(header, "character_name"),
            created_at=moment(header.get("create_date")),
            meta=document.rest_of(header),
        )
        return Document(name, opening, _nodes(lines[1:] if header else lines))


READER = _Reader()


def _nodes(lines: list[object]) -> Iterator[Node]:
    above: str | None = None
    for at, line in enumerate(lines):
        native = document.as_object(line)
        text = native.get("mes")
        if not isinstance(text, str):
            yield Node(line, Place(f"{at}", above))
            above = f"{at}"
            continue
        name = _name(at, text)
        yield from _swipes(native, at, above, {name})
        yield Node(line, _place(name, above, native))
        above = name


def _name(at: int, text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{at}:{digest}"


def _swipes(native: Object, at: int, above: str | None, seen: set[str]) -> Iterator[Node]:
    swipes = native.get("swipes")
    if not isinstance(swipes, list):
        return
    plain = {key: value for key, value in native.items() if key not in SWIPES}
    infos = native.get("swipe_info")
    known = cast("list[object]", infos) if isinstance(infos, list) else []
    for i, swipe in enumerate(cast("list[object]", swipes)):
        name = _name(at, swipe) if isinstance(swipe, str) else None
        if name is None or name in seen:
            continue
        seen.add(name)
        info = document.as_object(known[i] if i < len(known) else None)
        own = {key: info[key] for key in ("send_date", "extra") if key in info}
        line = {**plain, **own, "mes": swipe, "swipe_id": i}
        yield Node(line, _place(name, above, line))


def _place(name: str, above: str | None, native: Mapping[str, Any]) -> Place:
    extra = document.as_object(native.get("extra"))
    label = text_at(extra, "bookmark_link")
    tells = Tells(target=name, label=label) if label is not None else None
    time = moment(native.get("send_date"))
    return Place(name, above, False, time, text_at(extra, "model"), tells)


def moment(time: object) -> int | None:
    """A time in any of the ways in which this program has written it, as microseconds."""
    found = document.moment(time)
    if found is not None or not isinstance(time, str):
        return found
    if time.isdecimal() and len(time) < 17:
        return document.moment(int(time))
    stamp = _STAMP.match(time)
    if stamp is not None:
        numbers = [int(number or 0) for number in stamp.groups()]
        return _moment_of(*numbers)
    for form in _WORDS:
        try:
            return document.moment(datetime.strptime(time, form).replace(tzinfo=UTC).isoformat())
        except ValueError:
            continue
    return None


def _moment_of(year: int, month: int, day: int, hour: int, minute: int, second: int) -> int | None:
    try:
        time = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return document.moment(time.isoformat())
