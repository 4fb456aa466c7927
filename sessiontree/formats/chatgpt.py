"""ChatGPT's export: ``conversations.json``, or several files of that kind.

    [conversation, …]   {"conversations": [conversation, …]}   conversation

    {"id" | "conversation_id", "title", "create_time", "current_node",
     "mapping": {id: {"id", "parent", "children", "message": message | null}}}
    message: {"author": {"role", "name"}, "create_time", "recipient", "metadata",
              "content": {"content_type", "parts" | "text" | "thoughts" | …}}

A node is stored whole. By what is in its message:

    =====================================  ==================================================
    no message                             skipped: it only holds the tree together
    ``recipient`` is not "all"             a call of the tool that is the recipient
    role ``tool``                          the answer of the tool that is its author
    ``user_editable_context``              the system prompt: the user's own instructions
    hidden from the conversation           a mark
    ``thoughts``, ``reasoning_recap``      reasoning
    images, sounds, files                  names of files; an export holds them beside
    =====================================  ==================================================

Calls bear no ids: an answer goes to the oldest open call of its tool. The head is
``current_node``; the newest leaf where there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

from sessiontree.core.message import Decoded, Part, Role
from sessiontree.errors import FormatError
from sessiontree.formats import document, shapes
from sessiontree.formats.document import Document, Node, NodeCodec, Object, Opening, Place
from sessiontree.formats.transcript import Tells, text_at

NAME = "chatgpt"

ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "tool": "tool",
}
EVERYBODY = frozenset({"all", "user", "assistant"})
"""Recipients that are no tools."""
REASONING = frozenset({"thoughts", "reasoning_recap"})
INSTRUCTIONS = "user_editable_context"
_TEXTS = ("text", "result", "content", "user_profile", "user_instructions", "model_set_context")
"""Where contents of other types than ``text`` have their text."""
_BARE = frozenset({"id", "parent", "children", "message"})
_KNOWN = ("id", "conversation_id", "title", "create_time", "current_node", "mapping")


class ChatGPT(NodeCodec):
    """The codec of its nodes."""

    name = NAME
    marks = frozenset({"message", "parent", "children"})

    def said(self, native: Object) -> Decoded:
        message = shapes.object_in(native, "message", NAME, "it")
        author = shapes.object_in(message, "author", NAME, "message")
        content = shapes.object_in(message, "content", NAME, "message")
        role = shapes.role_in(author, ROLES, NAME)
        if role == "tool":
            return Decoded(role, [_answer(author, content)])
        tool = text_at(message, "recipient")
        if role == "assistant" and tool is not None and tool not in EVERYBODY:
            return Decoded(role, [_call(tool, content)])
        if content.get("content_type") == INSTRUCTIONS:
            return Decoded("system", _parts(content))
        parts = [*_parts(content), *_attachments(message)]
        return Decoded("mark" if _is_hidden(message) else role, parts)

    def written(self, role: Role, text: str) -> dict[str, Any]:
        content = {"content_type": "text", "parts": [text]}
        return {"message": {"author": {"role": role}, "content": content, "recipient": "all"}}


CODEC = ChatGPT()


def _is_hidden(message: Object) -> bool:
    metadata = message.get("metadata")
    return shapes.is_object(metadata) and bool(metadata.get("is_visually_hidden_from_conversation"))


def _call(tool: str, content: Object) -> Part:
    arguments = shapes.parsed_arguments(_text(content))
    return {"type": "tool_call", "name": tool, "arguments": arguments}


def _answer(author: Object, content: Object) -> Part:
    parts = _parts(content)
    only = parts[0] if len(parts) == 1 else {}
    response = only["content"] if only.get("type") == "text" else parts
    answer: Part = {"type": "tool_call_response", "response": response}
    name = text_at(author, "name")
    return answer if name is None else answer | {"name": name}


def _text(content: Object) -> str:
    return "\n".join(str(p["content"]) for p in _parts(content) if p.get("type") == "text")


def _parts(content: Object) -> list[Part]:
    """What a content says. One that says nothing in a way that is known is kept as it is."""
    if shapes.is_one_of(content.get("content_type"), REASONING):
        return [{"type": "reasoning", "content": _thoughts(content), "provider": NAME}]
    if isinstance(content.get("parts"), list):
        return [_part(piece) for piece in cast("list[object]", content["parts"])]
    texts = [text for key in _TEXTS if (text := text_at(content, key))]
    if texts or any(isinstance(content.get(key), str) for key in _TEXTS):
        return [shapes.text_part("\n\n".join(texts))]
    return [_kept(content)]


def _part(piece: object) -> Part:
    if isinstance(piece, str):
        return shapes.text_part(piece)
    if not shapes.is_object(piece):
        return shapes.text_part(shapes.to_json(piece))
    pointer = text_at(piece, "asset_pointer")
    kind = text_at(piece, "content_type") or ""
    if pointer is not None:
        modality = "audio" if "audio" in kind else "video" if "video" in kind else "image"
        return shapes.file(pointer, modality, NAME)
    text = text_at(piece, "text")
    return _kept(piece) if text is None else shapes.text_part(text)


def _kept(piece: Object) -> Part:
    return {"type": f"{NAME}:content", "provider": NAME, "native": dict(piece)}


def _thoughts(content: Object) -> str:
    thoughts = content.get("thoughts")
    if not isinstance(thoughts, list):
        return text_at(content, "content") or ""
    told: list[str] = []
    for thought in filter(shapes.is_object, cast("list[object]", thoughts)):
        lines = (text_at(thought, "summary"), text_at(thought, "content"))
        told += [line for line in lines if line is not None]
    return "\n\n".join(told)


def _attachments(message: Object) -> list[Part]:
    """The files that a message came with; images are among its parts."""
    metadata = message.get("metadata")
    attached = metadata.get("attachments") if shapes.is_object(metadata) else None
    if not isinstance(attached, list):
        return []
    files = filter(shapes.is_object, cast("list[object]", attached))
    return [
        shapes.file(text_at(file, "id") or "", "document", NAME) | {"filename": file.get("name")}
        for file in files
        if not (text_at(file, "mime_type") or text_at(file, "mimeType") or "").startswith("image/")
    ]


# --- the reader ---------------------------------------------------------------------------


class _Reader(document.DocumentReader):
    name = NAME
    marks = frozenset({"mapping", "conversations[].mapping"})

    def conversations(self, value: object) -> Iterable[object]:
        if shapes.is_object(value) and isinstance(value.get("conversations"), list):
            return cast("list[object]", value["conversations"])
        return [value]

    def document(self, found: Object, name: str) -> Document:
        mapping = found.get("mapping")
        if not shapes.is_object(mapping):
            raise FormatError("it has no mapping, so it holds no messages")
        nodes = list(_nodes(mapping))
        opening = Opening(
            document.name_at(found, "conversation_id", "id"),
            text_at(found, "title"),
            document.moment(found.get("create_time")),
            text_at(found, "current_node") or document.newest_leaf(node.place for node in nodes),
            document.rest_of(found, *_KNOWN),
        )
        return Document(name, opening, nodes)


READER = _Reader()


def _nodes(mapping: Object) -> Iterator[Node]:
    """Nodes go by their names in the mapping. One that names no parent that is there follows
    the one that names it as its child."""
    parents = document.parents_by_children(mapping, "children")
    for name, node in mapping.items():
        if not shapes.is_object(node):
            yield Node(node, Place(name))
            continue
        parent = document.name_at(node, "parent")
        if parent not in mapping:
            parent = parents.get(name, parent)
        yield Node(node, _place(name, parent, node))


def _place(name: str, parent: str | None, node: Object) -> Place:
    message = node.get("message")
    if message is None and node.keys() <= _BARE:
        tells = Tells(skip="it holds no message: it only holds the tree together")
        return Place(name, parent, tells=tells)
    message = document.as_object(message)
    metadata = message.get("metadata")
    model = text_at(metadata, "model_slug") if shapes.is_object(metadata) else None
    return Place(name, parent, False, document.moment(message.get("create_time")), model)
