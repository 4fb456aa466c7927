"""LibreChat's export, recursive or flat.

    {"conversationId", "title", "endpoint", "options"?: {"promptPrefix", …},
     "messages" | "messagesTree": [{"messageId", "parentMessageId", "isCreatedByUser", "sender",
                                    "text" | "content": [part], "createdAt", "children"?}]}

A message is stored without its ``children``, which are messages of their own. ``promptPrefix``
is the system prompt. One message holds calls with their results. An export of one branch has
no parents: then the order of the list is the chain. It tells no head: the newest leaf is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from sessiontree.core.message import Decoded, Part, Role
from sessiontree.errors import FormatError
from sessiontree.formats import document, shapes
from sessiontree.formats.document import Document, Node, NodeCodec, Object, Opening, Place
from sessiontree.formats.transcript import text_at

NAME = "librechat"

CHILDREN = "children"
PROMPT = "promptPrefix"

_LISTS = ("messagesTree", "messages")
_KNOWN = ("conversationId", "title", *_LISTS)


class LibreChat(NodeCodec):
    """The codec of its messages."""

    name = NAME
    marks = frozenset({"messageId", "isCreatedByUser"})

    def said(self, native: Object) -> Decoded:
        if PROMPT in native and "text" not in native:
            return Decoded("system", [shapes.text_part(shapes.text_in(native, PROMPT, NAME, "it"))])
        parts = [*_content(native), *_files(native)]
        return Decoded(_role(native), document.settled(parts))

    def written(self, role: Role, text: str) -> dict[str, Any]:
        if role == "system":
            return {PROMPT: text}
        is_user = role != "assistant"
        return {"sender": "User" if is_user else "AI", "isCreatedByUser": is_user, "text": text}


CODEC = LibreChat()


def _role(native: Object) -> Role:
    """A message that tells of an error is the program's, not the model's."""
    if native.get("error") is True:
        return "mark"
    by_user = native.get("isCreatedByUser")
    if isinstance(by_user, bool):
        return "user" if by_user else "assistant"
    return "user" if shapes.text_in(native, "sender", NAME, "it").lower() == "user" else "assistant"


def _content(native: Object) -> list[Part]:
    content = native.get("content")
    if isinstance(content, list) and content:
        return [part for piece in cast("list[object]", content) for part in _parts(piece)]
    return [shapes.text_part(shapes.text_in(native, "text", NAME, "it"))]


def _parts(piece: object) -> list[Part]:
    if not shapes.is_object(piece):
        return [shapes.text_part(piece if isinstance(piece, str) else shapes.to_json(piece))]
    kind = text_at(piece, "type") or "part"
    call = piece.get("tool_call")
    if kind == "tool_call" and shapes.is_object(call):
        return _call(call)
    inner = piece.get(kind)
    inner = inner.get("value") if shapes.is_object(inner) else inner
    if isinstance(inner, str) and kind in ("text", "error"):
        return [shapes.text_part(inner)]
    if isinstance(inner, str) and kind == "think":
        return [{"type": "reasoning", "content": inner, "provider": NAME}]
    return [{"type": f"{NAME}:{kind}", "provider": NAME, "native": dict(piece)}]


def _call(call: Object) -> list[Part]:
    """A call, and its answer if there is one: this format writes both in one."""
    body = call.get("function")
    body = body if shapes.is_object(body) else call
    arguments = body.get("args", body.get("arguments"))
    arguments = shapes.parsed_arguments(arguments) if isinstance(arguments, str) else arguments
    named: Part = {"name": text_at(body, "name") or ""}
    if (call_id := text_at(call, "id")) is not None:
        named["id"] = call_id
    made: list[Part] = [{"type": "tool_call", "arguments": arguments} | named]
    output = body.get("output")
    if output is not None:
        made.append({"type": "tool_call_response", "response": output} | named)
    return made


def _files(native: Object) -> list[Part]:
    """Files that an export names and does not hold."""
    files = native.get("files")
    items = cast("list[object]", files) if isinstance(files, list) else []
    return [
        shapes.file(
            text_at(file, "file_id") or "",
            shapes.modality_of(text_at(file, "type") or ""),
            NAME,
        )
        | {"filename": file.get("filename")}
        for file in items
        if shapes.is_object(file)
    ]


# --- the reader ---------------------------------------------------------------------------


class _Reader(document.DocumentReader):
    name = NAME
    marks = frozenset({"messages[].messageId", "messagesTree[].messageId"})

    def document(self, found: Object, name: str) -> Document:
        lists = [found[key] for key in _LISTS if isinstance(found.get(key), list)]
        if not lists:
            raise FormatError("it has neither messages nor a messagesTree")
        nodes = list(_nodes(lists[0]))
        opening = Opening(
            document.name_at(found, "conversationId"),
            text_at(found, "title"),
            min(filter(None, (node.place.created_at for node in nodes)), default=None),
            document.head_of(nodes),
            document.rest_of(found, *_KNOWN),
        )
        options = found.get("options")
        prompt = text_at(options, PROMPT) if shapes.is_object(options) else None
        if prompt is None:
            return Document(name, opening, nodes)
        return Document(name, opening, document.with_system({PROMPT: prompt}, nodes))


READER = _Reader()


def _nodes(messages: list[object]) -> Iterator[Node]:
    for message, above in document.unfolded(messages, CHILDREN):
        if not shapes.is_object(message):
            yield Node(message, Place())
            continue
        parent = document.parent_at(message, "parentMessageId") or above
        follows = "parentMessageId" not in message and above is None
        name = document.name_at(message, "messageId")
        time = document.moment(message.get("createdAt"))
        yield Node(message, Place(name, parent, follows, time))
