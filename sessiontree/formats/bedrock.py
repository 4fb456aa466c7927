"""Amazon Bedrock Converse.

    {"role": "user" | "assistant" | "system", "content": [block]}

Blocks have no type but one key: text, toolUse, toolResult, image, document, video, audio,
reasoningContent; all others (cachePoint, guardContent, citationsContent, …) are kept as they
are. A user message with a toolResult has the role ``tool``. Bytes are base64 text, as on the
wire. A system message holds what the request has in its ``system`` field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from sessiontree.core.message import Decoded, Native, Part, Role
from sessiontree.formats import shapes

NAME = "bedrock"

ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}

_KINDS = frozenset(
    {
        "text",
        "toolUse",
        "toolResult",
        "image",
        "document",
        "video",
        "audio",
        "reasoningContent",
        "cachePoint",
        "guardContent",
        "citationsContent",
        "searchResult",
    }
)
_MEDIA = frozenset({"image", "document", "video", "audio"})
MIME_TYPES: dict[str, dict[str, str]] = {
    "image": {kind: f"image/{kind}" for kind in ("png", "jpeg", "gif", "webp")},
    "video": {
        "mkv": "video/x-matroska",
        "mov": "video/quicktime",
        "mp4": "video/mp4",
        "webm": "video/webm",
        "flv": "video/x-flv",
        "mpeg": "video/mpeg",
        "wmv": "video/x-ms-wmv",
        "three_gp": "video/3gpp",
    },
    "audio": {
        "mp3": "audio/mpeg",
        "wav": "audio/wav",
        "ogg": "audio/ogg",
        "flac": "audio/flac",
        "aac": "audio/aac",
        "m4a": "audio/mp4",
        "webm": "audio/webm",
        "opus": "audio/opus",
    },
    "document": {
        "pdf": "application/pdf",
        "csv": "text/csv",
        "doc": "application/msword",
        "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "xls": "application/vnd.ms-excel",
        "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "html": "text/html",
        "txt": "text/plain",
        "md": "text/markdown",
    },
}
"""What may be sent, by modality: this format's name for it and its MIME type."""

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9\s\-()\[\]]+|\s{2,}")
"""A document's name may hold nothing else. Source: API reference, DocumentBlock."""


class Bedrock:
    name = NAME

    def recognises(self, native: Native) -> bool:
        content = native.get("content")
        if not shapes.is_one_of(native.get("role"), frozenset(ROLES)):
            return False
        return isinstance(content, list | tuple) and any(
            shapes.is_object(block) and "type" not in block and not _KINDS.isdisjoint(block)
            for block in cast("Sequence[object]", content)
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
            return [{"role": "user" if role == "tool" else role, "content": [{"text": text}]}]
        answers, rest = shapes.split(shapes.with_ids(parts))
        results = [_result_block(part) for part in answers]
        sender: Role = "user" if role == "tool" else role
        said = [block for part in rest for block in _blocks(part, sender)]
        if sender == "user":
            return _message("user", results + said)
        return _message(sender, said) + _message("user", results)


CODEC = Bedrock()


# --- decode -----------------------------------------------------------------------------


def _parts(content: object, where: str) -> list[Part]:
    blocks = shapes.blocks_in(content, NAME, where)
    return [_part(block, f"{where}[{i}]") for i, block in enumerate(blocks)]


def _part(block: Mapping[str, Any], where: str) -> Part:
    kind = shapes.one_of_in(block, _KINDS, NAME, where)
    if kind == "text":
        part = shapes.text_part(shapes.text_in(block, kind, NAME, where))
        return shapes.ride(part, block, frozenset({kind}), NAME)
    if kind == "json":  # inside results only
        part = shapes.text_part(shapes.to_json(block["json"]))
        part |= {"json": block["json"], "provider": NAME}
        return _beside(part, block, kind)
    if kind not in ("toolUse", "toolResult", "reasoningContent", *_MEDIA):
        return shapes.keep(block, kind, NAME)
    inner, place = shapes.object_in(block, kind, NAME, where), f"{where}.{kind}"
    if kind == "toolUse":
        part = _call(inner, place)
    elif kind == "toolResult":
        part = _result(inner, place)
    elif kind == "reasoningContent":
        part = _reasoning(inner, place)
    else:
        part = _media_part(inner, kind)
    return shapes.keep(block, kind, NAME) if part is None else _beside(part, block, kind)


def _beside(part: Part, block: Mapping[str, Any], kind: str) -> Part:
    """A block has one key; should there be more, they go to ``block``."""
    further = {key: value for key, value in block.items() if key != kind}
    return part | {"block": further, "provider": NAME} if further else part


def _call(call: Mapping[str, Any], where: str) -> Part:
    part: Part = {
        "type": "tool_call",
        "id": shapes.text_in(call, "toolUseId", NAME, where),
        "name": shapes.text_in(call, "name", NAME, where),
        "arguments": call.get("input"),
    }
    return shapes.ride(part, call, frozenset({"toolUseId", "name", "input"}), NAME)


def _result(result: Mapping[str, Any], where: str) -> Part:
    part: Part = {
        "type": "tool_call_response",
        "id": shapes.text_in(result, "toolUseId", NAME, where),
        "response": _response(result.get("content"), f"{where}.content"),
    }
    known = {"toolUseId", "content"}
    if result.get("status") in ("error", "success"):
        part["is_error"] = result["status"] == "error"
        known.add("status")
    return shapes.ride(part, result, frozenset(known), NAME)


def _response(content: object, where: str) -> Any:
    """A single text is a string and a single object itself, as tools return them."""
    if content is None:
        return None
    parts = _parts(content, where)
    only = parts[0] if len(parts) == 1 else {}
    if isinstance(only.get("json"), dict) and "block" not in only:
        return only["json"]
    return only["content"] if list(only) == ["type", "content"] else parts


def _reasoning(reasoning: Mapping[str, Any], where: str) -> Part | None:
    if reasoning.keys() ^ {"reasoningText"}:
        return None
    said = shapes.object_in(reasoning, "reasoningText", NAME, where)
    text = shapes.text_in(said, "text", NAME, f"{where}.reasoningText")
    part: Part = {"type": "reasoning", "content": text, "provider": NAME}
    return shapes.ride(part, said, frozenset({"text"}), NAME)


def _media_part(media: Mapping[str, Any], kind: str) -> Part | None:
    """A part, when the type and the source have a neutral counterpart."""
    source, name = media.get("source"), media.get("format")
    mime_type = MIME_TYPES[kind].get(name) if isinstance(name, str) else None
    if mime_type is None or not shapes.is_object(source) or len(source) != 1:
        return None
    part = _sourced(source, kind, mime_type)
    return part and shapes.ride(part, media, frozenset({"format", "source"}), NAME)


def _sourced(source: Mapping[str, Any], kind: str, mime_type: str) -> Part | None:
    data, place = source.get("bytes"), source.get("s3Location")
    if isinstance(data, str):
        return shapes.blob(mime_type, data) | {"modality": kind}
    if shapes.is_object(place):
        address = place.get("uri")
        if isinstance(address, str) and len(place) == 1:
            return shapes.uri(address, kind, mime_type) | {"provider": NAME}
    if kind == "document" and isinstance(source.get("text"), str):
        return shapes.text_part(source["text"]) | {"mime_type": mime_type, "modality": kind}
    return None


# --- encode -----------------------------------------------------------------------------


def _message(role: str, blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"role": role, "content": blocks}] if blocks else []


def _blocks(part: Part, role: str) -> list[dict[str, Any]]:
    kind, own = part.get("type"), part.get("provider") == NAME
    if kind == "text":
        return [_text(part)]
    if kind == "tool_call":
        call = {"toolUseId": part.get("id"), "name": part.get("name")}
        call["input"] = shapes.arguments_object(part.get("arguments"))
        return [{"toolUse": call | shapes.extras(part, NAME)} | _further(part)]
    if kind == "reasoning":
        said = {"text": part.get("content")} | shapes.extras(part, NAME)
        return [{"reasoningContent": {"reasoningText": said}} | _further(part)] if own else []
    if shapes.is_media(part):
        block = _media(part) if role == "user" else None
        return [block or _words(part)]
    block = shapes.kept(part, NAME, typed=False)
    if block is None and shapes.is_kept_media(part):
        return [_words(part)]
    return [] if block is None else [block]


def _further(part: Part) -> dict[str, Any]:
    further = part.get("block") if part.get("provider") == NAME else None
    return cast("dict[str, Any]", further) if isinstance(further, dict) else {}


def _words(part: Part) -> dict[str, Any]:
    return {"text": shapes.media_in_words(part, NAME)}


def _text(part: Part) -> dict[str, Any]:
    own = part.get("provider") == NAME
    if own and "json" in part:
        return {"json": part["json"]} | _further(part)
    mime_type = part.get("mime_type")
    if part.get("modality") == "document" and isinstance(mime_type, str):
        name = _format_of(mime_type, "document") or "txt"
        document = {"format": name, "source": {"text": part.get("content")}} | _named(part)
        return {"document": document} | _further(part)
    return {"text": str(part.get("content", ""))} | shapes.extras(part, NAME)


def _named(part: Part) -> dict[str, Any]:
    """A document needs a name, of few kinds of characters."""
    own = shapes.extras(part, NAME)
    name = _NOT_IN_A_NAME.sub(" ", shapes.file_name(part)).strip() or "file"
    return own if "name" in own else {"name": name} | own


def _format_of(mime_type: str, modality: str) -> str | None:
    known = MIME_TYPES.get(modality, {})
    return next((name for name, mime in known.items() if mime == mime_type), None)


def _media(part: Part) -> dict[str, Any] | None:
    """An image, document, sound or video in this format's shape; None where it has none."""
    modality = str(part.get("modality"))
    name = _format_of(str(part.get("mime_type")), modality)
    if name is None or part["type"] == "file":
        return None
    address = str(part.get("uri"))
    if part["type"] == "uri" and not address.startswith("s3://"):
        return None
    place = {"s3Location": {"uri": address}}
    source = place if part["type"] == "uri" else {"bytes": part.get("content")}
    further = _named(part) if modality == "document" else shapes.extras(part, NAME)
    return {modality: {"format": name, "source": source} | further} | _further(part)


def _result_block(part: Part) -> dict[str, Any]:
    result: dict[str, Any] = {"toolUseId": part.get("id"), "content": _answer(part)}
    if "is_error" in part:
        result["status"] = "error" if part["is_error"] else "success"
    return {"toolResult": result | shapes.extras(part, NAME)} | _further(part)


def _answer(part: Part) -> list[dict[str, Any]]:
    response = part.get("response")
    if response is None or response == []:
        return []
    if isinstance(response, dict):
        return [{"json": response}]
    if not shapes.are_parts(response):
        return [{"text": shapes.response_text(response)}]
    return [block for inner in cast("list[Part]", response) for block in _blocks(inner, "user")]
