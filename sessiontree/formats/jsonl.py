"""sessiontree's own transcript: a whole conversation, one JSON object a line, without loss.

    {"sessiontree": 1, "owner", "topic", "title", "format", "meta", "created_at", "head", "shows",
     "source"}
    {"id", "parent", "role", "format", "content", "preview", "tokens", "usage", "model",
     "key", "meta", "ref", "created_at"}                                one for each message
    {"checkpoint", "message", "note", "created_at"}                  one for each checkpoint
    {"move", "from", "to", "cause", "created_at", "current"}   one for each move of the head
    {"end": the number of messages}

``content`` is a string: the message's own JSON text, to the byte. Messages come in id order,
so each after the one it follows. Ids are those of the store that wrote the file, and mean
nothing elsewhere. Times are microseconds since 1970, UTC. ``source`` names the conversation
wherever it goes, so that importing it again finds it. Fields that are null are left out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, cast, get_args

from sessiontree import formats
from sessiontree.core import jsontext
from sessiontree.core.message import (
    META,
    ROLES,
    Message,
    Native,
    NewMessage,
    Role,
    calls_of,
    results_of,
)
from sessiontree.core.records import Cause, Checkpoint, ConversationInfo, Move
from sessiontree.errors import FormatError
from sessiontree.formats import shapes, transcript
from sessiontree.formats.glance import first_line
from sessiontree.formats.transcript import Entry, Head, Notes, Row, Source, Tells, text_at

NAME = "jsonl"
VERSION = 1

CAUSES: tuple[str, ...] = get_args(Cause)


# --- writing ------------------------------------------------------------------------------


def header_line(info: ConversationInfo, shows: str = "tree") -> str:
    """The first line; ``shows``: "tree", or "path" when the file has the active path only."""
    origin = _origin(info.meta)
    fields = {
        "sessiontree": VERSION,
        "owner": info.owner,
        "topic": info.topic,
        "title": info.title,
        "format": info.format,
        "meta": _without_origin(info.meta) or None,
        "created_at": origin.get("created_at", info.created_at),
        "head": info.head,
        "shows": shows,
        "source": identity(info),
    }
    return _line(fields)


def identity(info: ConversationInfo) -> str:
    """A name for a conversation that stays the same in every store it is carried to."""
    given = _origin(info.meta).get("source")
    if isinstance(given, str):
        return given
    facts = json.dumps([info.owner, info.topic, info.created_at, info.id])
    return hashlib.sha256(facts.encode()).hexdigest()[:32]


ORIGIN = "origin"
"""Our note in a conversation's meta: {"source", "created_at"} of the file it came from."""


def with_origin(meta: Mapping[str, Any], origin: Mapping[str, Any]) -> dict[str, Any]:
    """A conversation's meta with where it came from."""
    return {**meta, META: {**_ours(meta), ORIGIN: dict(origin)}}


def _without_origin(meta: Mapping[str, Any]) -> dict[str, Any]:
    ours = {key: value for key, value in _ours(meta).items() if key != ORIGIN}
    others = {key: value for key, value in meta.items() if key != META}
    return others | ({META: ours} if ours else {})


def _origin(meta: Mapping[str, Any]) -> Mapping[str, Any]:
    return _object(_ours(meta), ORIGIN) or {}


def _ours(meta: Mapping[str, Any]) -> Mapping[str, Any]:
    return _object(meta, META) or {}


def message_line(message: Message) -> str:
    row = message.row
    fields = {
        "id": row.id,
        "parent": row.parent_id,
        "role": row.role,
        "format": row.format,
        "content": row.content,
        "preview": row.preview,
        "tokens": row.tokens,
        "usage": message.usage,
        "model": row.model,
        "key": row.key,
        "meta": message.meta or None,
        "ref": row.ref_id,
        "created_at": row.created_at,
    }
    return _line(fields)


def checkpoint_line(checkpoint: Checkpoint) -> str:
    fields = {
        "checkpoint": checkpoint.label,
        "message": checkpoint.message_id,
        "note": checkpoint.note,
        "created_at": checkpoint.created_at,
    }
    return _line(fields)


def move_line(move: Move) -> str:
    fields = {
        "move": move.id,
        "from": move.from_id,
        "to": move.to_id,
        "cause": move.cause,
        "created_at": move.created_at,
        "current": move.is_current or None,
    }
    return _line(fields)


def end_line(messages: int) -> str:
    """The last line, by which one sees that none is missing."""
    return _line({"end": messages})


def _line(fields: Mapping[str, Any]) -> str:
    told = {key: value for key, value in fields.items() if value is not None}
    text = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(told, separators=(",", ":"))
    return text + "\n"


# --- reading ------------------------------------------------------------------------------


class _Reader:
    name = NAME
    codec = NAME
    answers = formats.FALLBACK
    goes_on: str | None = None
    is_settled = True

    def recognises(self, head: Head) -> bool:
        return bool(head.rows) and "sessiontree" in head.rows[0]

    def rows(self, source: Source, skipped: Notes) -> Iterator[Row]:
        return transcript.json_lines(source, skipped)

    def entry(self, row: Row) -> Entry:
        native = row.native
        if "content" in native:
            return _message_entry(row)
        entry = Entry(row.line, row.offset, len(row.raw))
        entry.beside = True
        entry.created_at = _integer(native, "created_at")
        entry.tells = _about(native)
        return entry

    def message(self, text: str, entry: Entry) -> NewMessage:
        native = jsontext.check(text, "line")[1]
        content: str = native["content"]
        parts = formats.codec(native["format"]).decode(jsontext.check(content, "content")[1]).parts
        is_mark = entry.role == "mark"
        return NewMessage(
            content,
            native["format"],
            entry.role,
            () if is_mark else calls_of(parts),
            () if is_mark else results_of(parts),
            preview=first_line(_text(native, "preview") or ""),
            tokens=max(0, _integer(native, "tokens") or 0),
            usage=_object(native, "usage"),
            model=_text(native, "model"),
            key=entry.key,
            meta=_object(native, "meta"),
            created_at=entry.created_at,
        )


READER = _Reader()


def _message_entry(row: Row) -> Entry:
    native = row.native
    message_id, parent = _integer(native, "id"), _integer(native, "parent")
    if message_id is None:
        raise FormatError("it has no id")
    try:
        entry = _decoded(row)
    except FormatError as error:
        entry = Entry(row.line, row.offset, len(row.raw), tells=Tells(skip=error.what))
    entry.id = str(message_id)
    entry.parent = None if parent is None else str(parent)
    entry.key = text_at(native, "key")
    entry.created_at = _integer(native, "created_at")
    ref = _integer(native, "ref")
    if ref is not None:
        entry.tells = entry.tells or Tells()
        entry.tells.ref = str(ref)
    return entry


def _decoded(row: Row) -> Entry:
    native = row.native
    content = shapes.text_in(native, "content", NAME, "it")
    codec = formats.codec(shapes.text_in(native, "format", NAME, "it"))
    decoded = codec.decode(jsontext.check(content, "content")[1])
    made = transcript.entry(row, _role(native), decoded.parts)
    if made.calls and made.role != "assistant":
        what = f"its role is {made.role!r}, but it calls; it is kept as {decoded.role!r}"
        made = transcript.entry(row, decoded.role, decoded.parts)
        made.tells = Tells(mended=what)
    return made


def _role(native: Native) -> Role:
    role = native.get("role")
    if role not in ROLES:
        raise FormatError(f"its role is {role!r}", hint=f"roles: {', '.join(ROLES)}")
    return role


def _about(native: Native) -> Tells:
    """What a line that is no message says of the conversation."""
    if "sessiontree" in native:
        return _header(native)
    if "checkpoint" in native:
        target, label = _integer(native, "message"), text_at(native, "checkpoint")
        if target is not None and label is not None:
            note = _text(native, "note")
            return Tells(about=True, target=str(target), label=label, note=note)
    if "move" in native and native.get("cause") in CAUSES:
        places = [_integer(native, "from"), _integer(native, "to")]
        start, end = ("" if place is None else str(place) for place in places)
        return Tells(about=True, move=(start, end, native["cause"], bool(native.get("current"))))
    if _integer(native, "end"):
        return Tells(about=True, end=_integer(native, "end"))
    raise FormatError("it is neither a message nor a header, a checkpoint, a move or the end")


def _header(native: Native) -> Tells:
    if native["sessiontree"] != VERSION:
        raise FormatError(
            f"it is of version {native['sessiontree']!r} of this format; this reads {VERSION}",
            hint="upgrade sessiontree to read it",
        )
    head = _integer(native, "head")
    told = {key: _text(native, key) for key in ("owner", "topic", "title", "format", "source")}
    words = {key: value for key, value in told.items() if value is not None}
    origin = {"source": words.get("source"), "created_at": _integer(native, "created_at")}
    meta = with_origin(_object(native, "meta") or {}, origin)
    return Tells(
        about=True,
        head_is="" if head is None else str(head),
        title=words.get("title"),
        opens={**words, "meta": meta},
    )


def _integer(native: Native, key: str) -> int | None:
    """An integer that a database holds."""
    value = native.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 1 << 63:
        return None
    return value


def _text(native: Native, key: str) -> str | None:
    value = native.get(key)
    return transcript.storable(value) if isinstance(value, str) else None


def _object(native: Native, key: str) -> dict[str, Any] | None:
    value = native.get(key)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
