"""Anthropic Messages.

    {"role": "user" | "assistant" | "system", "content": str | [block]}

Blocks: text, image, document, tool_use, tool_result, thinking; all others (redacted
thinking, server tools and their results, search results, …) are kept as they are. A user
message that holds a tool_result has the role ``tool``. The fields that a response has
beside its content (id, model, stop_reason, usage, …) are in ``message`` of the first part;
``encode`` leaves them out, since a request that bears them is refused.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, cast

from sessiontree.core.message import Decoded, Native, Part, Role
from sessiontree.formats import shapes

NAME = "anthropic"

ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})

_MARK_BLOCKS = frozenset(
    {
        "tool_use",
        "tool_result",
        "thinking",
        "redacted_thinking",
        "image",
        "document",
        "server_tool_use",
        "search_result",
        "web_search_tool_result",
        "web_fetch_tool_result",
        "mcp_tool_use",
        "mcp_tool_result",
        "container_upload",
    }
)
_MARKS = frozenset({"stop_reason", "stop_sequence"})
_SOURCE_KEYS = {
    "base64": frozenset({"type", "media_type", "data"}),
    "text": frozenset({"type", "media_type", "data"}),
    "url": frozenset({"type", "url"}),
    "file": frozenset({"type", "file_id"}),
}
"""Sources with a neutral counterpart, and the keys they have."""


class Anthropic:
    name = NAME

    def recognises(self, native: Native) -> bool:
        if not shapes.is_one_of(native.get("role"), frozenset(ROLES)) or "message" in native:
            return False
        return not _MARKS.isdisjoint(native) or shapes.has_block(
            native.get("content"), _MARK_BLOCKS
        )

    def decode(self, native: Native) -> Decoded:
        role = shapes.role_in(native, ROLES, NAME)
        if "content" not in native:
            raise shapes.wrong(NAME, "it has no content")
        parts = _parts(native["content"], "content")
        if role == "user" and any(part["type"] == "tool_call_response" for part in parts):
            role = "tool"
        known = frozenset({"role", "content"})
        return Decoded(role, shapes.with_message_fields(parts, native, known, NAME))

    def encode(self, role: Role, parts: Sequence[Part]) -> list[dict[str, Any]]:
        if role == "mark":
            return []
        text = shapes.plain_text(parts)
        if text is not None:
            return [{"role": "user" if role == "tool" else role, "content": text}]
        answers, rest = shapes.split(shapes.with_ids(parts))
        results = [_result(part) for part in answers]
        sender: Role = "user" if role == "tool" else role
        said = [block for part in rest for block in _blocks(part, sender)]
        if sender == "user":
            return _message("user", results + said)
        return _message(sender, said) + _message("user", results)


CODEC = Anthropic()


# --- decode -----------------------------------------------------------------------------


def _parts(content: object, where: str) -> list[Part]:
    if isinstance(content, str):
        return [shapes.text_part(content)]
    blocks = shapes.blocks_in(content, NAME, where)
    return [_part(block, f"{where}[{i}]") for i, block in enumerate(blocks)]


def _part(block: Mapping[str, Any], where: str) -> Part:
    kind = shapes.kind_in(block, NAME, where)
    if kind == "text":
        part = shapes.text_part(shapes.text_in(block, "text", NAME, where))
        return shapes.ride(part, block, frozenset({"type", "text"}), NAME)
    if kind == "tool_use":
        return _tool_call(block, where)
    if kind == "tool_result":
        return _tool_result(block, where)
    if kind == "thinking":
        text = shapes.text_in(block, "thinking", NAME, where)
        part = {"type": "reasoning", "content": text, "provider": NAME}
        return shapes.ride(part, block, frozenset({"type", "thinking"}), NAME)
    if kind in ("image", "document"):
        return _media_part(block, kind, where)
    return shapes.keep(block, kind, NAME)


def _tool_call(block: Mapping[str, Any], where: str) -> Part:
    part: Part = {
        "type": "tool_call",
        "id": shapes.text_in(block, "id", NAME, where),
        "name": shapes.text_in(block, "name", NAME, where),
        "arguments": block.get("input"),
    }
    return shapes.ride(part, block, frozenset({"type", "id", "name", "input"}), NAME)


def _tool_result(block: Mapping[str, Any], where: str) -> Part:
    content = block.get("content")
    is_text = content is None or isinstance(content, str)
    part: Part = {
        "type": "tool_call_response",
        "id": shapes.text_in(block, "tool_use_id", NAME, where),
        "response": content if is_text else _parts(content, f"{where}.content"),
    }
    if "is_error" in block:
        part["is_error"] = bool(block["is_error"])
    known = frozenset({"type", "tool_use_id", "content", "is_error"})
    return shapes.ride(part, block, known, NAME)


def _media_part(block: Mapping[str, Any], kind: str, where: str) -> Part:
    source = shapes.object_in(block, "source", NAME, where)
    place = f"{where}.source"
    variant = shapes.text_in(source, "type", NAME, place)
    odd = source.keys() ^ _SOURCE_KEYS.get(variant, frozenset())
    if odd or (kind, variant) == ("image", "text"):
        return shapes.keep(block, kind, NAME)
    modality = "image" if kind == "image" else "document"
    if variant == "url":
        part = shapes.uri(shapes.text_in(source, "url", NAME, place), modality)
    elif variant == "file":
        part = shapes.file(shapes.text_in(source, "file_id", NAME, place), modality, NAME)
    else:
        mime_type = shapes.text_in(source, "media_type", NAME, place)
        data = shapes.text_in(source, "data", NAME, place)
        part = shapes.blob(mime_type, data) if variant == "base64" else shapes.text_part(data)
        part |= {"mime_type": mime_type, "modality": modality}
    return shapes.ride(part, block, frozenset({"type", "source"}), NAME)


# --- encode -----------------------------------------------------------------------------


def _message(role: str, blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One message, a string for a single plain text; none for nothing."""
    if not blocks:
        return []
    only = blocks[0]
    if len(blocks) == 1 and only["type"] == "text" and len(only) == 2:
        return [{"role": role, "content": only["text"]}]
    return [{"role": role, "content": blocks}]


def _blocks(part: Part, role: str) -> list[dict[str, Any]]:
    kind = part.get("type")
    own = shapes.extras(part, NAME)
    if kind == "text":
        return [_text(part) | own]
    if kind == "tool_call":
        arguments = shapes.arguments_object(part.get("arguments"))
        call = {"type": "tool_use", "id": part.get("id"), "name": part.get("name")}
        return [call | {"input": arguments} | own]
    if kind == "reasoning":
        thought = {"type": "thinking", "thinking": part.get("content")} | own
        return [thought] if part.get("provider") == NAME else []
    if shapes.is_media(part):
        block = _media(part) if role == "user" else None
        return [block | own if block else _words(part)]
    block = shapes.kept(part, NAME)
    if block is None and shapes.is_kept_media(part):
        return [_words(part)]
    return [] if block is None else [block]


def _text(part: Part) -> dict[str, Any]:
    text = part.get("content")
    if part.get("modality") == "document" and isinstance(part.get("mime_type"), str):
        return _text_document(part["mime_type"], text)
    return {"type": "text", "text": text}


def _words(part: Part) -> dict[str, Any]:
    return {"type": "text", "text": shapes.media_in_words(part, NAME)}


def _result(part: Part) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": part.get("id")}
    response = part.get("response")
    if response == []:
        block["content"] = []
    elif shapes.are_parts(response):
        inner = cast("list[Part]", response)
        block["content"] = [found for one in inner for found in _blocks(one, "user")]
    elif response is not None:
        block["content"] = shapes.response_text(response)
    if "is_error" in part:
        block["is_error"] = part["is_error"]
    return block | shapes.extras(part, NAME)


def _media(part: Part) -> dict[str, Any] | None:
    """An image or document in this format's shape; None where it has none."""
    kind, modality, own = part["type"], part.get("modality"), part.get("provider") == NAME
    if kind == "blob":
        return _data(str(part.get("mime_type")), part.get("content"))
    if modality not in ("image", "document"):
        return None
    if kind == "file":
        source = {"type": "file", "file_id": part.get("file_id")}
        return {"type": modality, "source": source} if own else None
    url = str(part.get("uri"))
    fits = own or url.startswith(("https://", "http://"))
    return {"type": modality, "source": {"type": "url", "url": url}} if fits else None


def _data(mime_type: str, data: object) -> dict[str, Any] | None:
    source = {"type": "base64", "media_type": mime_type, "data": data}
    if mime_type in IMAGE_TYPES:
        return {"type": "image", "source": source}
    if mime_type == "application/pdf":
        return {"type": "document", "source": source}
    text = _plain_text(str(data)) if mime_type.startswith("text/") else None
    return None if text is None else _text_document("text/plain", text)


def _text_document(mime_type: str, text: object) -> dict[str, Any]:
    return {"type": "document", "source": {"type": "text", "media_type": mime_type, "data": text}}


def _plain_text(data: str) -> str | None:
    try:
        return base64.b64decode(data, validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return None
