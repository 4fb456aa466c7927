"""Amp's threads, a file each.

    {"v", "id": "T-…", "created", "title", "env", "messages": [message]}        T-<uuid>.json

A message is much like Anthropic's, has a number as its id, and is stored as it is. By its role:

    ==========  ======================================================================
    user        what the user says, or results: {"type": "tool_result", "toolUseID",
                "run": {"status", "result" | "error" | "progress"}}
    assistant   {"type": "text" | "thinking" | "tool_use", …}; its ``usage`` names the model
    info        a mark: notes of the program, summaries of what came before
    ==========  ======================================================================

A run that is not done has no result: what is known of it is told in its place. Source of the
shapes: public readers of these files, since the format is not documented.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from sessiontree.core import jsontext
from sessiontree.core.message import Decoded, NewMessage, Part, Role
from sessiontree.formats import anthropic, document, shapes
from sessiontree.formats.document import Document, Node, NodeCodec, Object, Opening, Place
from sessiontree.formats.transcript import Entry, Head, text_at

NAME = "amp"

BLOCKS = {
    "text": ("type", "text"),
    "tool_use": ("type", "id", "name", "input"),
    "thinking": ("type", "thinking", "signature"),
}
"""The keys of a block that mean what they mean to Anthropic."""
ANSWERED_BY = ("toolUseID", "tool_use_id")
DONE = "done"


class Amp(NodeCodec):
    """The codec of its messages."""

    name = NAME

    def recognises(self, native: Object) -> bool:
        is_numbered = type(native.get("messageId")) is int
        return is_numbered and "role" in native and isinstance(native.get("content"), list)

    def said(self, native: Object) -> Decoded:
        if native.get("role") == "info":
            return Decoded("mark", _parts_of_info(native))
        content = native.get("content")
        if isinstance(content, list):
            content = [_block(block) for block in cast("list[object]", content)]
        return anthropic.CODEC.decode({"role": native.get("role"), "content": content})

    def written(self, role: Role, text: str) -> dict[str, Any]:
        return {"role": role, "content": [{"type": "text", "text": text}]}

    def encode(self, role: Role, parts: Sequence[Part]) -> list[dict[str, Any]]:
        return anthropic.CODEC.encode(role, parts)


CODEC = Amp()


def _parts_of_info(native: Object) -> list[Part]:
    """What a note says, and the note as it is."""
    kept: Part = {"type": f"{NAME}:info", "provider": NAME, "native": dict(native)}
    text = _summary(native)
    return [shapes.text_part(text), kept] if text else [kept]


def _summary(native: Object) -> str:
    content = native.get("content")
    told: list[str] = []
    for block in cast("list[object]", content) if isinstance(content, list) else []:
        about = block.get("summary") if shapes.is_object(block) else None
        if shapes.is_object(about):
            told.append(text_at(about, "summary") or text_at(about, "thread") or "")
    return "\n".join(filter(None, told))


def _block(block: object) -> object:
    if not shapes.is_object(block):
        return block
    kind = block.get("type")
    if kind == "tool_result":
        return _result(block)
    known = BLOCKS.get(str(kind))
    return {key: block[key] for key in known if key in block} if known else dict(block)


def _result(block: Mapping[str, Any]) -> dict[str, Any]:
    """A result as Anthropic's, from how the run of the tool went."""
    name = next((block[key] for key in ANSWERED_BY if key in block), None)
    run = block.get("run")
    made = {"type": "tool_result", "tool_use_id": name}
    if not shapes.is_object(run):
        return made | {"content": block.get("content")}
    status = str(run.get("status"))
    known = next((run[key] for key in ("result", "error", "progress") if run.get(key)), None)
    text = shapes.response_text(known) if known is not None else f"({status})"
    return made | {"content": text, "is_error": status != DONE}


class _Reader(document.DocumentReader):
    name = NAME
    answers = anthropic.NAME
    goes_on: str | None = anthropic.NAME

    def recognises(self, head: Head) -> bool:
        keys = document.outline(head.text)
        if not {"id", "messages[].role", "messages[].content"} <= keys or "sessionId" in keys:
            return False
        is_named = '"T-' in head.text[:2000] or head.name.rpartition("/")[2].startswith("T-")
        return is_named and bool({"messages[].messageId", "env", "v"} & keys)

    def document(self, found: Object, name: str) -> Document:
        messages = shapes.blocks_in(found.get("messages"), NAME, "messages")
        opening = Opening(
            document.name_at(found, "id"),
            title=text_at(found, "title"),
            created_at=document.moment(found.get("created")),
            meta=document.rest_of(found, "id", "title", "created", "messages"),
        )
        return Document(name, opening, _nodes(messages))

    def message(self, text: str, entry: Entry) -> NewMessage:
        made = super().message(text, entry)
        native = jsontext.check(text)[1]
        if shapes.is_object(native.get("usage")):
            made.usage = native["usage"]
        return made


READER = _Reader()


def _nodes(messages: Sequence[Object]) -> Iterator[Node]:
    for message in messages:
        usage, meta = message.get("usage"), message.get("meta")
        yield Node(
            message,
            Place(
                document.name_at(message, "messageId"),
                follows=True,
                created_at=document.moment(meta.get("sentAt")) if shapes.is_object(meta) else None,
                model=text_at(usage, "model") if shapes.is_object(usage) else None,
            ),
        )
