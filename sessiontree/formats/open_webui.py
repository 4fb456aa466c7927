"""Open WebUI's export: a list of chats, one chat, or the bare inside of one.

    {"id", "title", "created_at", "chat": {"title", "models", "params": {"system"}, "history":
        {"currentId", "messages": {id: {"id", "parentId", "childrenIds", "role", "content",
                                        "timestamp", "model", "done", "output"?: [item]}}}}}

A message is stored whole. ``output`` is what an assistant's message says: items as OpenAI's
Responses has them. Where there is none, ``content`` is, with reasoning and calls inside it as
``<details type="reasoning">`` and ``<details type="tool_calls" name= arguments= result=>``.
The head is ``currentId``. ``params.system`` is the system prompt.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, cast

from sessiontree.core.message import Decoded, Part, Role
from sessiontree.errors import FormatError
from sessiontree.formats import document, openai_responses, shapes
from sessiontree.formats.document import Document, Node, NodeCodec, Object, Opening, Place
from sessiontree.formats.transcript import text_at

NAME = "open_webui"

ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "tool": "tool",
}
_ASSISTANTS = frozenset({"model", "modelName", "modelIdx", "done"})
"""Fields that only an assistant's message has; by them its role is told when it is missing."""

_DETAILS = re.compile(r'<details\s+type="(reasoning|tool_calls|code_interpreter)"([^>]*)>')
_END = "</details>"
_ATTRIBUTE = re.compile(r'([a-z_]+)="([^"]*)"')
_SUMMARY = re.compile(r"\s*<summary>[^<]*</summary>\s*")
_QUOTED = re.compile(r"^> ?", re.MULTILINE)


class OpenWebUI(NodeCodec):
    """The codec of its messages."""

    name = NAME
    marks = frozenset({"childrenIds"})

    def said(self, native: Object) -> Decoded:
        role = _role(native)
        output = native.get("output")
        if role == "assistant" and isinstance(output, list) and output:
            parts = [part for item in cast("list[object]", output) for part in _item(item)]
        else:
            parts = _content(native, role)
        return Decoded(role, document.settled([*parts, *_files(native)]))

    def written(self, role: Role, text: str) -> dict[str, Any]:
        return {"role": "user" if role == "tool" else role, "content": text}


CODEC = OpenWebUI()


def _role(native: Object) -> Role:
    if "role" not in native and not _ASSISTANTS.isdisjoint(native):
        return "assistant"
    return shapes.role_in(native, ROLES, NAME)


def _content(native: Object, role: Role) -> list[Part]:
    content = native.get("content")
    if isinstance(content, list):
        return [part for piece in cast("list[object]", content) for part in _piece(piece)]
    text = shapes.text_in(native, "content", NAME, "it")
    return list(_with_details(text)) if role == "assistant" else [shapes.text_part(text)]


def _piece(piece: object) -> list[Part]:
    """A part of a content, as OpenAI's chats have them."""
    if isinstance(piece, str):
        return [shapes.text_part(piece)]
    if not shapes.is_object(piece):
        return []
    image = piece.get("image_url")
    address = text_at(image, "url") if shapes.is_object(image) else None
    if address is not None:
        return [shapes.from_url(address, "image")]
    text = text_at(piece, "text")
    return [_kept(piece, "content") if text is None else shapes.text_part(text)]


def _kept(native: Object, kind: str) -> Part:
    return {"type": f"{NAME}:{kind}", "provider": NAME, "native": dict(native)}


def _item(item: object) -> list[Part]:
    """What an item of the output says; one that is not OpenAI's is kept."""
    if not shapes.is_object(item):
        return []
    try:
        return openai_responses.CODEC.decode(item).parts
    except FormatError:
        return [_kept(item, "output")]


def _with_details(text: str) -> Iterator[Part]:
    at = 0
    while (found := _DETAILS.search(text, at)) and (end := text.find(_END, found.end())) >= 0:
        yield from _text(text[at : found.start()])
        attributes = {key: html.unescape(value) for key, value in _ATTRIBUTE.findall(found[2])}
        yield from _detail(found[1], attributes, text[found.end() : end])
        at = end + len(_END)
    if at == 0 or text[at:].strip():
        yield shapes.text_part(text[at:])


def _text(text: str) -> list[Part]:
    return [shapes.text_part(text.strip())] if text.strip() else []


def _detail(kind: str, attributes: dict[str, str], inside: str) -> list[Part]:
    body = _SUMMARY.sub("", inside, count=1).strip()
    if kind == "reasoning":
        return [{"type": "reasoning", "content": _QUOTED.sub("", body), "provider": NAME}]
    if kind == "code_interpreter":
        return _text(body)
    named: Part = {"name": attributes.get("name", "")}
    if attributes.get("id"):
        named["id"] = attributes["id"]
    arguments = shapes.parsed_arguments(_unquoted(attributes.get("arguments", "")))
    call: Part = {"type": "tool_call", "arguments": arguments} | named
    result = attributes.get("result")
    if result is None:
        return [call]
    return [call, {"type": "tool_call_response", "response": _unquoted(result)} | named]


def _unquoted(value: str) -> str:
    """JSON text of a string is that string; the program writes it either way."""
    try:
        read: object = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return read if isinstance(read, str) else value


def _files(native: Object) -> list[Part]:
    files = native.get("files")
    items = cast("list[object]", files) if isinstance(files, list) else []
    return [_file(file) for file in items if shapes.is_object(file)]


def _file(file: Object) -> Part:
    address = text_at(file, "url") or ""
    if file.get("type") == "image" and address.startswith(("data:", "http://", "https://")):
        return shapes.from_url(address, "image")
    modality = "image" if file.get("type") == "image" else "document"
    file_id = text_at(file, "id") or address
    return shapes.file(file_id, modality, NAME) | {"filename": file.get("name")}


# --- the reader ---------------------------------------------------------------------------


class _Reader(document.DocumentReader):
    name = NAME
    marks = frozenset({"chat.history", "history.messages", "history.currentId"})

    def conversations(self, value: object) -> Iterable[object]:
        if shapes.is_object(value) and isinstance(value.get("data"), list):
            return cast("list[object]", value["data"])
        return [value]

    def document(self, found: Object, name: str) -> Document:
        inner = found.get("chat")
        chat = inner if shapes.is_object(inner) else found
        nodes = list(_nodes(chat))
        history = _object(chat, "history")
        opening = Opening(
            document.name_at(found, "id") or document.name_at(chat, "id"),
            text_at(found, "title") or text_at(chat, "title"),
            document.moment(found.get("created_at")) or document.moment(chat.get("timestamp")),
            text_at(history, "currentId") or document.head_of(nodes),
            _meta(found, chat),
        )
        prompt = text_at(_object(chat, "params"), "system") or text_at(chat, "system")
        if prompt is None:
            return Document(name, opening, nodes)
        system = {"role": "system", "content": prompt}
        return Document(name, opening, document.with_system(system, nodes))


READER = _Reader()


def _object(native: Object, key: str) -> Object:
    return document.as_object(native.get(key))


def _meta(found: Object, chat: Object) -> dict[str, Any]:
    """The fields of a chat, and of its inside, but for the messages."""
    history = {k: v for k, v in _object(chat, "history").items() if k != "messages"}
    inside = document.rest_of({**chat, "history": history}, "id", "title", "messages", "chat")
    outside = document.rest_of(found, "id", "title", "created_at", "chat")
    return inside if chat is found else {**outside, "chat": inside}


def _nodes(chat: Object) -> Iterator[Node]:
    messages = _object(chat, "history").get("messages")
    if shapes.is_object(messages) and messages:
        yield from _of_tree(messages)
        return
    linear = chat.get("messages")
    if not isinstance(linear, list):
        raise FormatError("it has no history of messages")
    for message in cast("list[object]", linear):
        native = document.as_object(message)
        yield Node(message, _place(native, document.name_at(native, "id"), None, True))


def _of_tree(messages: Object) -> Iterator[Node]:
    """Messages go by their names. One that names no parent follows the one that names it."""
    parents = document.parents_by_children(messages, "childrenIds")
    for name, message in messages.items():
        native = document.as_object(message)
        parent = document.name_at(native, "parentId")
        if parent not in messages:
            parent = parents.get(name, parent)
        yield Node(message, _place(native, name, parent, False))


def _place(native: Object, name: str | None, parent: str | None, follows: bool) -> Place:
    return Place(name, parent, follows, document.moment(native.get("timestamp")))
