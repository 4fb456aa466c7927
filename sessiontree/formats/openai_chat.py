"""OpenAI Chat Completions, and the many servers that speak it.

    {"role": "system" | "developer" | "user", "content": str | [part]}
    {"role": "assistant", "content": str | [part] | null, "tool_calls": [call], …}
    {"role": "tool", "tool_call_id": str, "content": str | [part]}
    {"role": "function", "name": str, "content": str}                       (legacy)

Parts: text, image_url, input_audio, file, refusal. Calls: function, custom.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, cast

from sessiontree.core.message import Decoded, Native, Part, Role
from sessiontree.formats import shapes

NAME = "openai_chat"

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_SECONDARY = ("developer", "function")
"""Roles that have a neutral role in common with another; kept in ``message``."""

_MARKS = frozenset({"tool_calls", "tool_call_id", "function_call", "reasoning_content"})
_CALLING: Set[str] = frozenset({"role", "content", "tool_calls"})
"""The fields of most messages that call a tool."""
_PLAIN_CALL: Set[str] = frozenset({"id", "type", "function"})
_PLAIN_FUNCTION: Set[str] = frozenset({"name", "arguments"})
_MARK_BLOCKS = frozenset({"image_url", "input_audio"})
_AUDIO = f"{NAME}:audio"
"""The kind of part that holds the ``audio`` field of an assistant's message."""
_AUDIO_TYPES = {"mp3": "audio/mpeg"}


class OpenAIChat:
    name = NAME

    def recognises(self, native: Native) -> bool:
        if native.get("role") in ("tool", "function"):
            return isinstance(native.get("content"), str | list)
        if not shapes.is_one_of(native.get("role"), frozenset(ROLES)) or "type" in native:
            return False
        return not _MARKS.isdisjoint(native) or shapes.has_block(
            native.get("content"), _MARK_BLOCKS
        )

    def decode(self, native: Native) -> Decoded:
        role = shapes.role_in(native, ROLES, NAME)
        if role == "tool":
            return Decoded(role, _result(native))
        if len(native) == 2 and role == native["role"] and isinstance(native.get("content"), str):
            return Decoded(role, [shapes.text_part(native["content"])])  # most are no more
        if native.keys() == _CALLING and native["role"] == role and native["tool_calls"]:
            return Decoded(role, [*_content(native, role), *_calls(native)])
        parts = [*_reasoning(native), *_content(native, role), *_refusal(native), *_audio(native)]
        parts += [*_calls(native), *_function_call(native)]
        return Decoded(role, shapes.with_message_fields(parts, native, _known(native), NAME))

    def encode(self, role: Role, parts: Sequence[Part]) -> list[dict[str, Any]]:
        if role == "mark":
            return []
        text = shapes.plain_text(parts)
        if text is not None:
            return [{"role": "user" if role == "tool" else role, "content": text}]
        results, rest = shapes.split(shapes.with_ids(parts))
        answers = [_result_message(part) for part in results]
        said = _message("user" if role == "tool" else role, rest)
        return said + answers if role == "assistant" else answers + said


CODEC = OpenAIChat()


# --- decode -----------------------------------------------------------------------------


def _known(native: Native) -> frozenset[str]:
    """The fields of ``native`` that have become parts; the others are the message's own."""
    known = {"content"}
    known.update(k for k in ("tool_calls", "function_call") if native.get(k) is not None)
    known.update(k for k in ("refusal", "reasoning_content") if isinstance(native.get(k), str))
    if isinstance(native.get("audio"), Mapping):
        known.add("audio")
    if native["role"] not in _SECONDARY:
        known.add("role")
    return frozenset(known)


def _result(native: Native) -> list[Part]:
    part: Part = {"type": "tool_call_response"}
    if native.get("tool_call_id") is not None:
        part["id"] = shapes.text_in(native, "tool_call_id", NAME, "it")
    part["response"] = _response(native)
    known = {"tool_call_id", "content"}
    if isinstance(native.get("name"), str):
        part |= {"name": native["name"], "provider": NAME}
        known.add("name")
    if native["role"] not in _SECONDARY:
        known.add("role")
    return shapes.with_message_fields([part], native, frozenset(known), NAME)


def _response(native: Native) -> Any:
    content = native.get("content")
    if content is None or isinstance(content, str):
        return content
    return _parts(content)


def _content(native: Native, role: Role) -> list[Part]:
    content = native.get("content")
    if isinstance(content, str):
        return [shapes.text_part(content)]
    if content is None and role == "assistant":
        return []
    if "content" not in native:
        raise shapes.wrong(NAME, f"a message of role {native['role']!r} needs content")
    return _parts(content)


def _parts(content: object) -> list[Part]:
    return [
        _part(block, f"content[{i}]")
        for i, block in enumerate(shapes.blocks_in(content, NAME, "content"))
    ]


def _part(block: Mapping[str, Any], where: str) -> Part:
    kind = shapes.kind_in(block, NAME, where)
    if kind in ("text", "refusal"):
        part = shapes.text_part(shapes.text_in(block, kind, NAME, where))
        part = shapes.ride(part, block, frozenset({"type", kind}), NAME)
        return part | {"refusal": True, "provider": NAME} if kind == "refusal" else part
    if kind == "image_url":
        return _image(block, where)
    if kind == "input_audio":
        return _sound(block, where)
    if kind == "file":
        return _file(block, where)
    return shapes.keep(block, kind, NAME)


def _image(block: Mapping[str, Any], where: str) -> Part:
    image = block.get("image_url")
    if isinstance(image, str):
        image = {"url": image}
        block = {**block, "image_url": image}
    image = shapes.object_in(block, "image_url", NAME, where)
    part = shapes.from_url(shapes.text_in(image, "url", NAME, f"{where}.image_url"), "image")
    return _inner_ride(part, block, "image_url", image, frozenset({"url"}))


def _sound(block: Mapping[str, Any], where: str) -> Part:
    sound = shapes.object_in(block, "input_audio", NAME, where)
    inner = f"{where}.input_audio"
    kind = shapes.text_in(sound, "format", NAME, inner)
    data = shapes.text_in(sound, "data", NAME, inner)
    part = shapes.blob(_AUDIO_TYPES.get(kind, f"audio/{kind}"), data)
    return _inner_ride(part, block, "input_audio", sound, frozenset({"data", "format"}))


def _file(block: Mapping[str, Any], where: str) -> Part:
    file = shapes.object_in(block, "file", NAME, where)
    data, file_id = file.get("file_data"), file.get("file_id")
    if isinstance(file_id, str) and "file_data" not in file:
        return _inner_ride(
            shapes.file(file_id, "document", NAME), block, "file", file, frozenset({"file_id"})
        )
    if isinstance(data, str) and "file_id" not in file:
        part = shapes.from_url(data, "document")
        if part["type"] == "blob":
            return _inner_ride(part, block, "file", file, frozenset({"file_data"}))
    return shapes.keep(block, "file", NAME)


def _inner_ride(
    part: Part, block: Mapping[str, Any], key: str, inner: Mapping[str, Any], known: frozenset[str]
) -> Part:
    """The extras of the inner object ride under their names, the block's own under ``block``."""
    shapes.ride(part, inner, known, NAME)
    outer = {k: v for k, v in block.items() if k not in ("type", key)}
    return part | {"block": outer, "provider": NAME} if outer else part


def _reasoning(native: Native) -> list[Part]:
    text = native.get("reasoning_content")
    if not isinstance(text, str):
        return []
    return [{"type": "reasoning", "content": text, "provider": NAME}]


def _refusal(native: Native) -> list[Part]:
    text = native.get("refusal")
    if not isinstance(text, str):
        return []
    return [shapes.text_part(text) | {"refusal": True, "provider": NAME}]


def _audio(native: Native) -> list[Part]:
    audio = native.get("audio")
    if not shapes.is_object(audio):
        return []
    return [{"type": _AUDIO, "audio": audio, "provider": NAME}]


def _calls(native: Native) -> list[Part]:
    calls = native.get("tool_calls")
    if calls is None:
        return []
    return [
        _plain_call(call) or _call(call, f"tool_calls[{i}]")
        for i, call in enumerate(shapes.blocks_in(calls, NAME, "tool_calls"))
    ]


def _plain_call(call: Mapping[str, Any]) -> Part | None:
    """A call with nothing but what every call has, as most are; None for another."""
    body = call.get("function")
    if call.keys() != _PLAIN_CALL or not shapes.is_object(body) or call["type"] != "function":
        return None
    if body.keys() != _PLAIN_FUNCTION or not all(map(_is_text, (call["id"], *body.values()))):
        return None
    part: Part = {"type": "tool_call", "id": call["id"], "name": body["name"]}
    part["arguments"] = shapes.parsed_arguments(body["arguments"])
    return part


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _call(call: Mapping[str, Any], where: str) -> Part:
    kind = "custom" if "custom" in call and "function" not in call else "function"
    body = shapes.object_in(call, kind, NAME, where)
    part: Part = {"type": "tool_call"}
    if call.get("id") is not None:
        part["id"] = shapes.text_in(call, "id", NAME, where)
    part["name"] = shapes.text_in(body, "name", NAME, f"{where}.{kind}")
    if kind == "custom":
        part["arguments"] = shapes.text_in(body, "input", NAME, f"{where}.custom")
        part |= {"custom": True, "provider": NAME}
    else:
        part["arguments"] = _arguments(body, f"{where}.function")
    known = {"id", kind, "type"} if call.get("type", kind) == kind else {"id", kind}
    shapes.ride(part, call, frozenset(known), NAME)
    further = {k: v for k, v in body.items() if k not in ("name", "arguments", "input")}
    return part | {"function": further, "provider": NAME} if further else part


def _arguments(body: Mapping[str, Any], where: str) -> Any:
    arguments = body.get("arguments")
    if isinstance(arguments, str):
        return shapes.parsed_arguments(arguments)
    if arguments is None:
        return {}
    if isinstance(arguments, dict):  # some local servers give the object
        return cast("Any", arguments)
    raise shapes.wrong(NAME, f"{where}.arguments is {shapes.kind_of(arguments)}, not a string")


def _function_call(native: Native) -> list[Part]:
    call = native.get("function_call")
    if call is None:
        return []
    call = shapes.object_in(native, "function_call", NAME, "it")
    part: Part = {
        "type": "tool_call",
        "name": shapes.text_in(call, "name", NAME, "function_call"),
        "arguments": _arguments(call, "function_call"),
        "function_call": True,
        "provider": NAME,
    }
    return [shapes.ride(part, call, frozenset({"name", "arguments"}), NAME)]


# --- encode -----------------------------------------------------------------------------


def _message(role: Role, parts: Sequence[Part]) -> list[dict[str, Any]]:
    """The one message that holds everything but results; none when nothing is left."""
    fields = shapes.message_fields(parts, NAME)
    message: dict[str, Any] = {"role": fields.pop("role", role)} | fields
    content = [block for part in parts for block in _blocks(part, role)]
    message |= _said_beside(parts)
    calls = [part for part in parts if part.get("type") == "tool_call"]
    message |= _called(calls)
    if not content and not calls and len(message) == 1 and not fields:
        return []
    _put_content(message, content)
    return [message]


def _put_content(message: dict[str, Any], content: list[dict[str, Any]]) -> None:
    """A string for a single plain text, as the providers' own libraries write it."""
    if len(content) == 1 and content[0]["type"] == "refusal" and len(content[0]) == 2:
        message |= {"content": None, "refusal": content[0]["refusal"]}
    elif len(content) == 1 and content[0]["type"] == "text" and len(content[0]) == 2:
        message["content"] = content[0]["text"]
    else:
        message["content"] = content or (None if message["role"] == "assistant" else "")


def _said_beside(parts: Sequence[Part]) -> dict[str, Any]:
    """What this format writes beside the content: reasoning and audio."""
    beside: dict[str, Any] = {}
    reasoning = [
        str(part.get("content", ""))
        for part in parts
        if part.get("type") == "reasoning" and not shapes.is_bound_elsewhere(part, NAME)
    ]
    if reasoning:
        beside["reasoning_content"] = "\n".join(reasoning)
    for part in parts:
        if part.get("type") == _AUDIO:
            beside["audio"] = part.get("audio")
    return beside


def _blocks(part: Part, role: Role) -> list[dict[str, Any]]:
    kind = part.get("type")
    if kind == "text":
        own = shapes.extras(part, NAME)
        name = "refusal" if part.get("refusal") is True else "text"
        return [{"type": name, name: str(part.get("content", ""))} | own]
    if shapes.is_media(part):
        sent = _media(part) if role == "user" else None
        return [sent or _text_block(shapes.media_in_words(part, NAME))]
    if kind == _AUDIO:
        return []
    block = shapes.kept(part, NAME)
    if block is None and shapes.is_kept_media(part):
        return [_text_block(shapes.media_in_words(part, NAME))]
    return [] if block is None else [block]


def _text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _media(part: Part) -> dict[str, Any] | None:
    """An image, sound or file in this format's shape; None where it has none."""
    inner = shapes.extras(part, NAME)
    outer = cast("dict[str, Any]", part.get("block", {})) if part.get("provider") == NAME else {}
    kind, modality = part["type"], part.get("modality")
    if modality == "image" and kind in ("blob", "uri"):
        url = shapes.data_url(part) if kind == "blob" else part.get("uri")
        return {"type": "image_url", "image_url": {"url": url} | inner} | outer
    if modality == "audio" and kind == "blob":
        sound = {"data": part.get("content"), "format": _audio_format(part)}
        return {"type": "input_audio", "input_audio": sound | inner} | outer
    if kind == "blob" and modality == "document":
        named = inner if part.get("provider") == NAME else {"filename": shapes.file_name(part)}
        return {"type": "file", "file": {"file_data": shapes.data_url(part)} | named} | outer
    if kind == "file" and part.get("provider") in (None, NAME):
        return {"type": "file", "file": {"file_id": part.get("file_id")} | inner} | outer
    return None


def _audio_format(part: Part) -> str:
    mime_type = str(part.get("mime_type", ""))
    known = {mime: name for name, mime in _AUDIO_TYPES.items()}
    return known.get(mime_type, mime_type.partition("/")[2])


def _called(calls: Sequence[Part]) -> dict[str, Any]:
    legacy = [call for call in calls if _is_legacy(call)]
    modern = [_call_block(call) for call in calls if not _is_legacy(call)]
    found: dict[str, Any] = {"tool_calls": modern} if modern else {}
    for call in legacy[:1]:
        found["function_call"] = _function(call) | shapes.extras(call, NAME)
    return found


def _is_legacy(call: Part) -> bool:
    return call.get("function_call") is True and call.get("provider") == NAME


def _function(call: Part) -> dict[str, Any]:
    return {
        "name": str(call.get("name", "")),
        "arguments": shapes.arguments_text(call.get("arguments")),
    }


def _call_block(call: Part) -> dict[str, Any]:
    own = shapes.extras(call, NAME)
    given = {"id": call["id"]} if "id" in call else {}
    further: dict[str, Any] = call.get("function", {}) if call.get("provider") == NAME else {}
    if call.get("custom") is True and call.get("provider") == NAME:
        body = {"name": call.get("name"), "input": call.get("arguments")}
        return given | {"type": "custom", "custom": body | further} | own
    return given | {"type": "function", "function": _function(call) | further} | own


def _result_message(part: Part) -> dict[str, Any]:
    fields = shapes.message_fields([part], NAME)
    message: dict[str, Any] = {"role": fields.pop("role", "tool")}
    if message["role"] == "tool":
        message["tool_call_id"] = part["id"]
    if part.get("provider") == NAME and "name" in part:
        message["name"] = part["name"]
    return message | {"content": _result_content(part)} | fields


def _result_content(part: Part) -> str | list[dict[str, Any]]:
    """Text only: this format has no images in results, and no field for failure."""
    response = part.get("response")
    failed = shapes.ERROR_MARK if part.get("is_error") else ""
    if not shapes.are_parts(response):
        return failed + shapes.response_text(response)
    blocks = [block for inner in cast("list[Part]", response) for block in _blocks(inner, "tool")]
    blocks = [_text_block(failed.strip()), *blocks] if failed else blocks
    return blocks or ""
