"""Gemini generateContent: Content objects.

    {"role": "user" | "model" | "system" | "function", "parts": [part]}

Parts: text (with ``thought`` it is reasoning), functionCall, functionResponse, inlineData,
fileData; all others (executableCode, …) are kept as they are. Calls often bear no id: they
pair by name and order. A user message with a functionResponse has the role ``tool``. The
names that Google's Python library writes (``function_call``) are read as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from sessiontree.core.message import Decoded, Native, Part, Role
from sessiontree.formats import shapes

NAME = "gemini"

ROLES: dict[str, Role] = {
    "user": "user",
    "model": "assistant",
    "system": "system",
    "function": "tool",
}
_SENT_AS: dict[Role, str] = {
    "user": "user",
    "tool": "user",
    "assistant": "model",
    "system": "system",
}

_CAMEL = {
    "function_call": "functionCall",
    "function_response": "functionResponse",
    "inline_data": "inlineData",
    "file_data": "fileData",
    "executable_code": "executableCode",
    "code_execution_result": "codeExecutionResult",
    "thought_signature": "thoughtSignature",
    "video_metadata": "videoMetadata",
    "media_resolution": "mediaResolution",
    "part_metadata": "partMetadata",
    "mime_type": "mimeType",
    "file_uri": "fileUri",
    "display_name": "displayName",
}
_KINDS = frozenset(
    {
        "functionCall",
        "functionResponse",
        "inlineData",
        "fileData",
        "executableCode",
        "codeExecutionResult",
        "toolCall",
        "toolResponse",
        "text",
    }
)
_MIME_TYPES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "gif": "image/gif",
    "pdf": "application/pdf",
}
"""Types by the end of an address, for formats that give none with it."""


class Gemini:
    name = NAME

    def recognises(self, native: Native) -> bool:
        if native.get("role") == "model":
            return "parts" in native
        parts = native.get("parts")
        return isinstance(parts, list | tuple) and any(
            shapes.is_object(part) and "type" not in part
            for part in cast("Sequence[object]", parts)
        )

    def decode(self, native: Native) -> Decoded:
        role = shapes.role_in(native, ROLES, NAME)
        if "parts" not in native:
            raise shapes.wrong(NAME, "it has no parts")
        blocks = shapes.blocks_in(native["parts"], NAME, "parts")
        parts = [_part(_camel(block), f"parts[{i}]") for i, block in enumerate(blocks)]
        if role == "user" and any(part["type"] == "tool_call_response" for part in parts):
            role = "tool"
        known = frozenset({"parts"} if native["role"] == "function" else {"role", "parts"})
        return Decoded(role, shapes.with_message_fields(parts, native, known, NAME))

    def encode(self, role: Role, parts: Sequence[Part]) -> list[dict[str, Any]]:
        if role == "mark":
            return []
        text = shapes.plain_text(parts)
        if text is not None:
            return [{"role": _SENT_AS[role], "parts": [{"text": text}]}]
        results, rest = shapes.split(parts)
        answers = [_response(part) for part in results]
        said = [block for part in rest for block in _blocks(part, role)]
        if role == "assistant":
            return _content("model", said) + _content("user", answers)
        return _content(_SENT_AS[role], answers + said)


CODEC = Gemini()


# --- decode -----------------------------------------------------------------------------


def _camel(block: Mapping[str, Any]) -> dict[str, Any]:
    """The names that the service writes, without the nulls that stand for nothing."""
    return {_CAMEL.get(key, key): value for key, value in block.items() if value is not None}


def _inner(block: Mapping[str, Any], kind: str, where: str) -> dict[str, Any]:
    return _camel(shapes.object_in(block, kind, NAME, where))


def _part(block: dict[str, Any], where: str) -> Part:
    kind = shapes.one_of_in(block, _KINDS, NAME, where)
    if kind == "functionCall":
        part = _call(_inner(block, kind, where), f"{where}.{kind}")
    elif kind == "functionResponse":
        part = _result(_inner(block, kind, where), f"{where}.{kind}")
    elif kind == "inlineData":
        part = _blob(_inner(block, kind, where), f"{where}.{kind}")
    elif kind == "fileData":
        part = _uri(_inner(block, kind, where), f"{where}.{kind}")
    elif kind == "text":
        part = _text(block, where)
    else:
        return shapes.keep(block, kind, NAME)
    known = {kind, "thoughtSignature"}
    if part["type"] == "reasoning":
        known.add("thought")
    shapes.ride(part, block, frozenset(known), NAME)
    if "thoughtSignature" in block:
        part |= {"thought_signature": block["thoughtSignature"], "provider": NAME}
    return part


def _text(block: Mapping[str, Any], where: str) -> Part:
    text = shapes.text_in(block, "text", NAME, where)
    if block.get("thought") is True:
        return {"type": "reasoning", "content": text, "provider": NAME}
    return shapes.text_part(text)


def _named(inner: Mapping[str, Any], kind: str, where: str) -> Part:
    part: Part = {"type": kind}
    if "id" in inner:
        part["id"] = shapes.text_in(inner, "id", NAME, where)
    return part | {"name": shapes.text_in(inner, "name", NAME, where)}


def _call(call: Mapping[str, Any], where: str) -> Part:
    part = _named(call, "tool_call", where)
    part["arguments"] = shapes.object_in(call, "args", NAME, where) if "args" in call else {}
    return _ride_inside(part, call, frozenset({"id", "name", "args"}))


def _result(result: Mapping[str, Any], where: str) -> Part:
    part = _named(result, "tool_call_response", where)
    response: Mapping[str, Any] = {}
    if "response" in result:
        response = shapes.object_in(result, "response", NAME, where)
    if "error" in response and "output" not in response:
        part["is_error"] = True
    if "parts" not in result:
        part["response"] = response
        return _ride_inside(part, result, frozenset({"id", "name", "response"}))
    blocks = shapes.blocks_in(result["parts"], NAME, f"{where}.parts")
    shown = [_part(_camel(block), f"{where}.parts[{i}]") for i, block in enumerate(blocks)]
    said = [shapes.text_part(shapes.to_json(response))] if response else []
    return part | {"response": said + shown, "provider": NAME, "native": dict(result)}


def _blob(data: Mapping[str, Any], where: str) -> Part:
    mime_type = shapes.text_in(data, "mimeType", NAME, where)
    part = shapes.blob(mime_type, shapes.text_in(data, "data", NAME, where))
    return _ride_inside(part, data, frozenset({"mimeType", "data"}))


def _uri(data: Mapping[str, Any], where: str) -> Part:
    mime_type = shapes.text_in(data, "mimeType", NAME, where) if "mimeType" in data else None
    address = shapes.text_in(data, "fileUri", NAME, where)
    part = shapes.uri(address, shapes.modality_of(mime_type or ""), mime_type)
    part["provider"] = NAME
    return _ride_inside(part, data, frozenset({"mimeType", "fileUri"}))


def _ride_inside(part: Part, inner: Mapping[str, Any], known: frozenset[str]) -> Part:
    """The extras of the inner object go to ``block``, the part's own ride beside it."""
    further = {key: value for key, value in inner.items() if key not in known}
    return part | {"block": further, "provider": NAME} if further else part


# --- encode -----------------------------------------------------------------------------


def _content(role: str, blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"role": role, "parts": blocks}] if blocks else []


def _blocks(part: Part, role: Role) -> list[dict[str, Any]]:
    kind = part.get("type")
    if kind == "text":
        return [{"text": str(part.get("content", ""))} | _own(part)]
    if kind == "reasoning":
        thought = {"text": str(part.get("content", "")), "thought": True} | _own(part)
        return [] if shapes.is_bound_elsewhere(part, NAME) else [thought]
    if kind == "tool_call":
        call = _id_and_name(part) | {"args": shapes.arguments_object(part.get("arguments"))}
        return [{"functionCall": call | _block(part)} | _own(part)]
    if shapes.is_media(part):
        block = None if role == "system" else _media(part)
        return [block | _own(part) if block else _words(part)]
    block = shapes.kept(part, NAME, typed=False)
    if block is None and shapes.is_kept_media(part):
        return [_words(part)]
    return [] if block is None else [block]


def _own(part: Part) -> dict[str, Any]:
    """What stands beside the data in a part of this format."""
    own = shapes.extras(part, NAME)
    if part.get("provider") == NAME and "thought_signature" in part:
        own["thoughtSignature"] = part["thought_signature"]
    return own


def _block(part: Part) -> dict[str, Any]:
    """What else stood inside the data."""
    further = part.get("block") if part.get("provider") == NAME else None
    return cast("dict[str, Any]", further) if isinstance(further, dict) else {}


def _words(part: Part) -> dict[str, Any]:
    return {"text": shapes.media_in_words(part, NAME)}


def _id_and_name(part: Part) -> dict[str, Any]:
    given = {"id": part["id"]} if part.get("id") else {}
    return given | {"name": str(part.get("name") or part.get("id") or "")}


def _response(part: Part) -> dict[str, Any]:
    native = part.get("native")
    if part.get("provider") == NAME and isinstance(native, dict):
        result = cast("dict[str, Any]", native) | _id_and_name(part)
    else:
        result = _id_and_name(part) | _answer(part) | _block(part)
    return {"functionResponse": result} | _own(part)


def _answer(part: Part) -> dict[str, Any]:
    """``output`` and ``error`` are the keys that the service knows."""
    response: object = part.get("response")
    if isinstance(response, dict) and ("error" in response or not part.get("is_error")):
        return {"response": response}
    key = "error" if part.get("is_error") else "output"
    if not shapes.are_parts(cast(object, response)):
        return {"response": {key: shapes.response_text(cast(object, response))}}
    inner = cast("list[Part]", response)
    said = [block for one in inner for block in _blocks(one, "tool")]
    texts = [block["text"] for block in said if "text" in block]
    shown = [block for block in said if "text" not in block]
    return {"response": {key: "\n".join(texts)}} | ({"parts": shown} if shown else {})


def _media(part: Part) -> dict[str, Any] | None:
    """An image, sound, video or file in this format's shape; None where it has none."""
    mime_type, further = part.get("mime_type"), _block(part)
    if part["type"] == "blob":
        return {"inlineData": {"mimeType": mime_type, "data": part.get("content")} | further}
    if part["type"] == "file":
        return None
    address = str(part.get("uri"))
    mime_type = mime_type or _MIME_TYPES.get(address.rpartition(".")[2].lower())
    if mime_type is None and part.get("provider") != NAME:
        return None
    typed = {} if mime_type is None else {"mimeType": mime_type}
    return {"fileData": typed | {"fileUri": address} | further}
