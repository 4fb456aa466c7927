"""ShareGPT: lists of conversations, the common shape of training data.

    [{"conversations": [{"from": str, "value": str}], "system"?: str, "tools"?: str, "id"?}, …]

As one list, or one a line. A message is stored whole; its order is the chain. A
``function_call`` holds ``{"name", "arguments"}``, or a list of such, as JSON text; an
``observation`` answers it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

from sessiontree.core.message import Decoded, Part, Role
from sessiontree.errors import FormatError
from sessiontree.formats import document, shapes
from sessiontree.formats.document import Document, Node, NodeCodec, Object, Opening, Place
from sessiontree.formats.transcript import text_at

NAME = "sharegpt"

ROLES: dict[str, Role] = {
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "assistant": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "model": "assistant",
    "system": "system",
    "function_call": "assistant",
    "observation": "tool",
    "function_response": "tool",
    "tool": "tool",
}
CALL = "function_call"
LISTS = ("conversations", "conversation", "items")


class ShareGPT(NodeCodec):
    """The codec of its messages."""

    name = NAME
    marks = frozenset({"from", "value"})

    def said(self, native: Object) -> Decoded:
        sender = native.get("from")
        if not shapes.is_one_of(sender, frozenset(ROLES)):
            raise shapes.wrong(NAME, f"it is from {sender!r}", hint=f"from: {', '.join(ROLES)}")
        text = shapes.text_in(native, "value", NAME, "it")
        role = ROLES[str(sender)]
        if role == "tool":
            return Decoded(role, [{"type": "tool_call_response", "response": text}])
        return Decoded(role, _calls(text) if sender == CALL else [shapes.text_part(text)])

    def written(self, role: Role, text: str) -> dict[str, Any]:
        own = {"assistant": "gpt", "system": "system"}.get(role, "human")
        return {"from": own, "value": text}


CODEC = ShareGPT()


def _calls(text: str) -> list[Part]:
    """The calls in a value; what is no such JSON is the argument of a call without a name."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    calls = cast("list[object]", value) if isinstance(value, list) else [value]
    if not calls or not all(shapes.is_object(call) and text_at(call, "name") for call in calls):
        return [{"type": "tool_call", "name": "function", "arguments": text}]
    return [
        {"type": "tool_call", "name": call["name"], "arguments": call.get("arguments")}
        for call in calls
        if shapes.is_object(call)
    ]


class _Reader(document.DocumentReader):
    name = NAME
    marks = frozenset({f"{key}[].value" for key in LISTS})

    def document(self, found: Object, name: str) -> Document:
        lists = [key for key in LISTS if isinstance(found.get(key), list)]
        if not lists:
            raise FormatError("it has no list of conversations")
        opening = Opening(
            document.name_at(found, "id"),
            text_at(found, "title"),
            meta=document.rest_of(found, "id", "title", lists[0]),
        )
        nodes = _nodes(found[lists[0]])
        prompt = text_at(found, "system")
        if prompt is not None:
            nodes = document.with_system({"from": "system", "value": prompt}, nodes)
        return Document(name, opening, nodes)


READER = _Reader()


def _nodes(messages: list[object]) -> Iterator[Node]:
    for message in messages:
        yield Node(message, Place(follows=True))
