"""Goose's sessions: its database, its export, and the files it wrote before.

    {"sessions": row, "messages": [row], …}      its database, one session a line (see
                                                 transfer/foreign.py)
    {"id", "name", "conversation": [message]}    an export
    {"working_dir", "description"}, message, …   a file: what it is about, then one a line

    message: {"id"?, "role": "user" | "assistant", "created", "content": [block], "metadata"}
    row:     the same, with ``content_json`` and ``metadata_json`` as text

A message is stored as it is there. ``toolRequest`` is a call, ``toolResponse`` a result.
When Goose compacts, it hides the messages before from the model, and they stay: a mark of
ours stands where they end. What is hidden after that is a mark: the model never reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from sessiontree.core import jsontext
from sessiontree.core.message import Decoded, NewMessage, Part, Role
from sessiontree.errors import FormatError
from sessiontree.formats import document, shapes
from sessiontree.formats.document import Document, Node, NodeCodec, Object, Opening, Place
from sessiontree.formats.transcript import Entry, Head, Notes, Row, Source, Tells, text_at

NAME = "goose"

ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}
COMPACTION = "goose_compaction"
"""The key by which a mark of ours is told: {"goose_compaction": the message after it}."""
CALLS = frozenset({"toolRequest", "frontendToolRequest"})
HIDDEN = "hidden"
_VISIBLE = ("agentVisible", "agent_visible")


class Goose(NodeCodec):
    """The codec of its messages."""

    name = NAME
    marks = frozenset({"role", "content_json"})

    def said(self, native: Object) -> Decoded:
        if COMPACTION in native:
            return Decoded("mark", [])
        role = shapes.role_in(native, ROLES, NAME)
        blocks = shapes.blocks_in(_content(native), NAME, "content")
        parts = [_part(block, f"content[{i}]") for i, block in enumerate(blocks)]
        if any(part["type"] == "tool_call_response" for part in parts) and role == "user":
            role = "tool"
        return Decoded(role, parts)

    def written(self, role: Role, text: str) -> dict[str, Any]:
        return {"role": role, "created": 0, "content": [{"type": "text", "text": text}]}

    def encode(self, role: Role, parts: Sequence[Part]) -> list[dict[str, Any]]:
        blocks = [block for part in shapes.with_ids(parts) if (block := _block(part))]
        sender = "assistant" if role == "assistant" else "user"
        made = {"role": sender, "created": 0, "content": blocks}
        return [made] if blocks and role != "mark" else []


CODEC = Goose()


def _content(native: Object) -> object:
    return native["content"] if "content" in native else _parsed(native.get("content_json"))


def _parsed(text: object) -> object:
    if not isinstance(text, str):
        return text
    try:
        return jsontext.load(text)
    except FormatError:
        return text


def _part(block: Object, where: str) -> Part:
    kind = shapes.kind_in(block, NAME, where)
    if kind == "text":
        part = shapes.text_part(shapes.text_in(block, "text", NAME, where))
        return shapes.ride(part, block, frozenset({"type", "text"}), NAME)
    if kind in ("thinking", "reasoning"):
        key = "thinking" if kind == "thinking" else "text"
        text = shapes.text_in(block, key, NAME, where)
        part = {"type": "reasoning", "content": text, "provider": NAME}
        return shapes.ride(part, block, frozenset({"type", key}), NAME)
    if kind == "image" and isinstance(block.get("data"), str):
        return shapes.blob(text_at(block, "mimeType") or "image/png", block["data"])
    if kind in CALLS:
        return _call(block, where)
    if kind == "toolResponse":
        return _result(block, where)
    return shapes.keep(block, kind, NAME)


def _call(block: Object, where: str) -> Part:
    call = shapes.object_in(block, "toolCall", NAME, where)
    value = call.get("value")
    said = value if shapes.is_object(value) else call
    part: Part = {
        "type": "tool_call",
        "id": shapes.text_in(block, "id", NAME, where),
        "name": text_at(said, "name") or "unreadable_call",
        "arguments": said.get("arguments") or {},
    }
    if text_at(call, "error"):  # what the model wrote could not be read as a call
        part["arguments"] = {"error": call["error"]}
    return part


def _result(block: Object, where: str) -> Part:
    result = shapes.object_in(block, "toolResult", NAME, where)
    value = result.get("value", result.get("error"))
    is_error = result.get("status") == "error" or "error" in result
    if shapes.is_object(value):
        is_error = is_error or value.get("isError") is True
        value = value.get("content", value)
    part: Part = {
        "type": "tool_call_response",
        "id": shapes.text_in(block, "id", NAME, where),
        "response": _shown(value),
    }
    return part | ({"is_error": True} if is_error else {})


def _shown(value: object) -> object:
    """The blocks of a result as parts; what is no list of them as it is."""
    blocks = cast("list[object]", value)
    if not isinstance(value, list) or not blocks:
        return cast("object", value)
    try:
        return [
            _part(block, "value") for block in shapes.blocks_in(blocks, NAME, "toolResult.value")
        ]
    except FormatError:
        return blocks


def _block(part: Part) -> dict[str, Any] | None:
    kind = part.get("type")
    if kind == "text":
        return {"type": "text", "text": part.get("content")} | shapes.extras(part, NAME)
    if kind == "tool_call":
        value = {"name": part.get("name"), "arguments": part.get("arguments")}
        call = {"status": "success", "value": value}
        return {"type": "toolRequest", "id": part.get("id"), "toolCall": call}
    if kind == "tool_call_response":
        text = shapes.said_by(part)
        result: dict[str, Any] = {"status": "success", "value": [{"type": "text", "text": text}]}
        if part.get("is_error"):
            result = {"status": "error", "error": text}
        return {"type": "toolResponse", "id": part.get("id"), "toolResult": result}
    if kind == "blob" and part.get("modality") == "image":
        return {"type": "image", "data": part.get("content"), "mimeType": part.get("mime_type")}
    return shapes.kept(part, NAME)


# --- the reader -----------------------------------------------------------------------------


class _Reader(document.DocumentReader):
    name = NAME
    marks = frozenset({"sessions.working_dir", "messages[].content_json", "conversation[].role"})

    def recognises(self, head: Head) -> bool:
        return super().recognises(head) or _is_heading(head.rows[0] if head.rows else {})

    def values(self, source: Source, skipped: Notes) -> Iterator[tuple[object, int]]:
        head = Head(source.head(), source.name)
        if not _is_heading(head.rows[0] if head.rows else {}):
            yield from super().values(source, skipped)
            return
        found = [value for value, _ in super().values(source, skipped)]
        heading = document.as_object(found[0] if found else None)
        yield {**heading, "conversation": found[1:]}, source.size

    def document(self, found: Object, name: str) -> Document:
        session = document.as_object(found.get("sessions"))
        if "sessions" not in found:
            session = {k: v for k, v in found.items() if k != "conversation"}
        messages = found.get("messages", found.get("conversation"))
        told = cast("list[Any]", messages) if isinstance(messages, list) else []
        others = {k: v for k, v in found.items() if k not in ("sessions", "messages")}
        meta = document.rest_of(session, "id", "name")
        if "sessions" in found and others:
            meta["tables"] = others
        topic = document.name_at(session, "id") or _session_of(told)
        created = document.moment(session.get("created_at"))
        title = text_at(session, "name") or text_at(session, "description")
        return Document(name, Opening(topic, title, created, meta=meta), _nodes(told))

    def entry(self, row: Row) -> Entry:
        made = super().entry(row)
        if made.tells is not None and made.tells.kind == HIDDEN:
            made.role, made.calls, made.results = "mark", (), ()
        return made

    def message(self, text: str, entry: Entry) -> NewMessage:
        made = super().message(text, entry)
        if entry.tells is not None and entry.tells.kind == HIDDEN:
            made.role, made.calls, made.results = "mark", (), ()
        return made


READER = _Reader()


def _is_heading(row: Object) -> bool:
    """True for the first line of a file."""
    return "working_dir" in row and "role" not in row and "conversation" not in row


def _session_of(messages: Sequence[object]) -> str | None:
    """The session of messages that are left of one."""
    first = messages[0] if messages else None
    return text_at(first, "session_id") if shapes.is_object(first) else None


def _nodes(messages: Iterable[object]) -> Iterator[Node]:
    made = [Node(message, _place(message)) for message in messages]
    first = next((i for i, node in enumerate(made) if not _is_hidden(node.native)), len(made))
    for i, (native, place) in enumerate(made):
        if 0 < i == first:
            yield _compaction(native, place)
        elif i > first and _is_hidden(native):
            place = place._replace(tells=replace(place.tells or Tells(), kind=HIDDEN))
        yield Node(native, place)


def _place(message: object) -> Place:
    if not shapes.is_object(message):
        return Place(follows=True)
    created = message.get("created", message.get("created_timestamp"))
    name = document.name_at(message, "message_id", "id")
    return Place(name, follows=True, created_at=document.moment(created))


def _compaction(native: object, place: Place) -> Node:
    """The mark of ours before the first message that the model still reads."""
    tells = Tells(kind="compaction")
    mark = place._replace(id=place.id and f"compaction:{place.id}", tells=tells)
    return Node({COMPACTION: place.id or ""}, mark)


def _is_hidden(native: object) -> bool:
    if not shapes.is_object(native):
        return False
    metadata = native.get("metadata", _parsed(native.get("metadata_json")))
    if not shapes.is_object(metadata):
        return False
    return any(metadata.get(key) is False for key in _VISIBLE)
