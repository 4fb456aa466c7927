"""Cline's sessions, and those of Roo Code, which began as Cline.

    {"version", "sessionId", "system_prompt", "messages": [message]}     <id>.messages.json
    [message, …]                                       tasks/<id>/api_conversation_history.json

A message is an Anthropic message with an id, a time, a model and metrics, and is stored as
it is; a ``file`` block is a text. Roo hides messages instead of taking them away:

    ========================  ============================================================
    ``isSummary``             a mark of kind "compaction": what it says stands for what
                              came before it
    ``isTruncationMarker``    a mark of kind "cut": what came before it is not sent
    ``condenseParent``, …     say which mark hides a message; they come later, and change
                              nothing of what the message is
    ``type: reasoning``       an item of OpenAI's: reasoning
    ========================  ============================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from sessiontree.core import jsontext
from sessiontree.core.message import Decoded, NewMessage, Part, Role, text_of
from sessiontree.formats import anthropic, document, openai_responses, shapes, transcript
from sessiontree.formats.document import Document, Node, NodeCodec, Object, Opening, Place
from sessiontree.formats.naming import fingerprint
from sessiontree.formats.transcript import Entry, Head, Notes, Source, Tells, text_at

NAME = "cline"

SYSTEM = "system_prompt"
HISTORY = "api_conversation_history"
"""How the file of a task is called that has nothing but a list."""
MARKS = {"isSummary": "compaction", "isTruncationMarker": "cut"}
HIDES = frozenset({"condenseParent", "truncationParent"})
"""Fields that a message gets when it is hidden."""
_ABOUT = frozenset({"id", "ts", "metrics", "modelInfo", "condenseId", "truncationId"}) | HIDES
_BLOCK_KEYS = {
    "text": ("type", "text"),
    "tool_use": ("type", "id", "name", "input"),
    "tool_result": ("type", "tool_use_id", "content", "is_error"),
    "thinking": ("type", "thinking", "signature"),
}
_KNOWN = ("sessionId", "messages", SYSTEM)


class Cline(NodeCodec):
    """The codec of its messages."""

    name = NAME

    def recognises(self, native: Object) -> bool:
        return "role" in native and any(key in native for key in (*MARKS, *HIDES, "modelInfo"))

    def said(self, native: Object) -> Decoded:
        if SYSTEM in native:
            text = shapes.text_in(native, SYSTEM, NAME, "it")
            return Decoded("system", [shapes.text_part(text)])
        if native.get("type") == "reasoning":
            return openai_responses.CODEC.decode(native)
        role, parts = anthropic.CODEC.decode(_message(native))
        return Decoded("mark" if _mark_of(native) else role, parts)

    def written(self, role: Role, text: str) -> dict[str, Any]:
        return {"role": role, "content": [{"type": "text", "text": text}]}

    def encode(self, role: Role, parts: Sequence[Part]) -> list[dict[str, Any]]:
        return anthropic.CODEC.encode(role, parts)


CODEC = Cline()


def _message(native: Object) -> dict[str, Any]:
    """The Anthropic message in it."""
    message = {key: value for key, value in native.items() if key not in _ABOUT}
    content = message.get("content")
    if isinstance(content, list):
        message["content"] = [_block(block) for block in cast("list[object]", content)]
    return message


def _block(block: object) -> object:
    """A block with nothing but what Anthropic knows of such a block. Results of tools hold
    objects of their own shape too."""
    if not shapes.is_object(block) or not isinstance(block.get("type"), str):
        return {"type": "text", "text": shapes.response_text(block)}
    kind = block.get("type")
    if kind == "file" and text_at(block, "path"):
        return {"type": "text", "text": f"{block['path']}:\n{block.get('content')}"}
    if kind == "image" and isinstance(block.get("data"), str):
        media_type = block.get("mediaType") or block.get("mimeType")
        source = {"type": "base64", "media_type": media_type, "data": block["data"]}
        return {"type": "image", "source": source}
    known = _BLOCK_KEYS.get(str(kind))
    made = {key: block[key] for key in known if key in block} if known else dict(block)
    content = made.get("content")
    if kind == "tool_result" and isinstance(content, list):
        made["content"] = [_block(inner) for inner in cast("list[object]", content)]
    return made


def _mark_of(native: Object) -> str | None:
    return next((kind for key, kind in MARKS.items() if native.get(key)), None)


class _Reader(document.DocumentReader):
    name = NAME
    answers = anthropic.NAME
    goes_on: str | None = anthropic.NAME

    def recognises(self, head: Head) -> bool:
        keys = document.outline(head.text)
        if {"sessionId", "messages[].role"} <= keys and "projectHash" not in keys:
            return True
        is_list = head.text.lstrip().startswith("[")
        is_history = HISTORY in head.name or "ts" in keys
        return is_list and is_history and {"role", "content"} <= keys

    def values(self, source: Source, skipped: Notes) -> Iterator[tuple[object, int]]:
        found = super().values(source, skipped)
        if not Head(source.head(), source.name).text.lstrip().startswith("["):
            yield from found
            return
        messages = [value for value, _ in found]
        if messages:
            yield {"messages": messages}, source.size

    def document(self, found: Object, name: str) -> Document:
        messages = cast("list[object]", shapes.blocks_in(found.get("messages"), NAME, "messages"))
        topic = document.name_at(found, "sessionId") or _task(name)
        nodes = _nodes(messages)
        if text_at(found, SYSTEM):
            nodes = _after(Node({SYSTEM: found[SYSTEM]}, Place(SYSTEM)), nodes)
        opening = Opening(topic, meta=document.rest_of(found, *_KNOWN))
        return Document(name, opening, nodes)

    def message(self, text: str, entry: Entry) -> NewMessage:
        made = super().message(text, entry)
        native = jsontext.check(text)[1]
        if shapes.is_object(native.get("metrics")):
            made.usage = native["metrics"]
        if entry.tells is not None and entry.tells.kind == "compaction":
            said = text_of(CODEC.decode(native).parts)
            made.meta = transcript.our_meta("compaction", text=said)
        return made


READER = _Reader()


def _task(name: str) -> str | None:
    """The id of a task: its folder is called so."""
    parts = name.replace("\\", "/").split("/")
    return parts[-2] if HISTORY in parts[-1] and len(parts) > 1 else None


def _after(first: Node, nodes: Iterator[Node]) -> Iterator[Node]:
    yield first
    yield from nodes


def _nodes(messages: Sequence[object]) -> Iterator[Node]:
    names: dict[str, int] = {}
    for message in messages:
        yield Node(message, _place(cast("Object", message), names))


def _place(message: Object, names: dict[str, int]) -> Place:
    """A message without an id is told by what it says, hidden or not."""
    own = {key: value for key, value in message.items() if key not in HIDES}
    name = text_at(message, "id") or f"sha256:{fingerprint(own)}"
    names[name] = times = names.get(name, 0) + 1
    model = message.get("modelInfo")
    kind = _mark_of(message)
    return Place(
        name if times == 1 else f"{name}#{times}",
        follows=True,
        created_at=document.moment(message.get("ts")),
        model=text_at(model, "id") if shapes.is_object(model) else None,
        tells=Tells(kind=kind) if kind else None,
    )
