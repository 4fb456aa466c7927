"""Claude.ai's export (``conversations.json``), and what its API and browser extensions give.

    [conversation, …] or conversation
    {"uuid", "name", "created_at", "current_leaf_message_uuid"?,
     "chat_messages": [{"uuid", "sender": "human" | "assistant", "text", "content": [block],
                        "created_at", "attachments", "files", "parent_message_uuid"?}]}

A message is stored whole. ``content`` is what it says, ``text`` where there is none; the
text of attachments is read by the model too. One message holds calls with their results. The
export tells no parents (then the order of the list is the chain) and no head (then the
newest leaf is); the API tells both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from sessiontree.core.message import Decoded, Part, Role
from sessiontree.errors import FormatError
from sessiontree.formats import document, shapes
from sessiontree.formats.document import Document, Node, NodeCodec, Object, Opening, Place
from sessiontree.formats.transcript import text_at

NAME = "claude_ai"

SENDERS: dict[str, Role] = {"human": "user", "assistant": "assistant"}

_KNOWN = ("uuid", "name", "created_at", "current_leaf_message_uuid", "chat_messages")


class ClaudeAI(NodeCodec):
    """The codec of its messages."""

    name = NAME
    marks = frozenset({"uuid", "sender"})

    def said(self, native: Object) -> Decoded:
        sender = native.get("sender")
        if not shapes.is_one_of(sender, frozenset(SENDERS)):
            raise shapes.wrong(NAME, f"its sender is {sender!r}")
        parts = [*_content(native), *_attachments(native), *_files(native)]
        return Decoded(SENDERS[str(sender)], document.settled(parts))

    def written(self, role: Role, text: str) -> dict[str, Any]:
        sender = "assistant" if role == "assistant" else "human"
        return {"sender": sender, "text": text, "content": [{"type": "text", "text": text}]}


CODEC = ClaudeAI()


def _content(native: Object) -> list[Part]:
    content = native.get("content")
    blocks = cast("list[object]", content) if isinstance(content, list) else []
    parts = [_part(block) for block in blocks]
    says_nothing = all(part.get("type") == "text" and not part["content"] for part in parts)
    text = text_at(native, "text")
    return [shapes.text_part(text)] if text is not None and says_nothing else parts


def _part(block: object) -> Part:
    if not shapes.is_object(block):
        return shapes.text_part(block if isinstance(block, str) else shapes.to_json(block))
    kind = text_at(block, "type") or "block"
    text = block.get("thinking" if kind == "thinking" else "text")
    if kind in ("text", "thinking") and isinstance(text, str):
        if kind == "text":
            return shapes.text_part(text)
        return {"type": "reasoning", "content": text, "provider": NAME}
    if kind == "tool_use":
        return _named(block, "id", {"type": "tool_call", "arguments": block.get("input")})
    if kind == "tool_result":
        answer: Part = {"type": "tool_call_response", "response": _response(block.get("content"))}
        answer["is_error"] = bool(block.get("is_error"))
        return _named(block, "tool_use_id", answer)
    return {"type": f"{NAME}:{kind}", "provider": NAME, "native": dict(block)}


def _named(block: Object, key: str, part: Part) -> Part:
    """A call or result with its name and its id, which is often null."""
    call_id, name = text_at(block, key), text_at(block, "name")
    named: Part = {} if call_id is None else {"id": call_id}
    if name is not None:
        named["name"] = name
    return part | named


def _response(content: object) -> object:
    if not isinstance(content, list):
        return content
    return [_part(block) for block in cast("list[object]", content)]


def _attachments(native: Object) -> list[Part]:
    return [
        shapes.text_part(f"[{file.get('file_name') or 'attachment'}]\n{text}")
        for file in _objects(native.get("attachments"))
        if (text := text_at(file, "extracted_content"))
    ]


def _files(native: Object) -> list[Part]:
    """Files that an export names and does not hold."""
    return [
        shapes.file(
            text_at(file, "file_uuid") or "",
            "image" if file.get("file_kind") == "image" else "document",
            NAME,
        )
        | {"filename": file.get("file_name")}
        for file in _objects(native.get("files"))
    ]


def _objects(value: object) -> Sequence[Object]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [item for item in items if shapes.is_object(item)]


# --- the reader ---------------------------------------------------------------------------


class _Reader(document.DocumentReader):
    name = NAME
    marks = frozenset({"chat_messages"})

    def document(self, found: Object, name: str) -> Document:
        messages = found.get("chat_messages")
        if not isinstance(messages, list):
            raise FormatError("it has no chat_messages")
        nodes = list(_nodes(cast("list[object]", messages)))
        opening = Opening(
            document.name_at(found, "uuid"),
            text_at(found, "name"),
            document.moment(found.get("created_at")),
            text_at(found, "current_leaf_message_uuid") or document.head_of(nodes),
            document.rest_of(found, *_KNOWN),
        )
        return Document(name, opening, nodes)


READER = _Reader()


def _nodes(messages: list[object]) -> Iterator[Node]:
    for message in messages:
        native = document.as_object(message)
        time = document.moment(native.get("created_at"))
        parent = document.parent_at(native, "parent_message_uuid")
        follows = "parent_message_uuid" not in native
        model = text_at(native, "model")
        yield Node(message, Place(document.name_at(native, "uuid"), parent, follows, time, model))
