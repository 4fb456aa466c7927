"""What the codecs share: checking native messages, and parts that lose nothing.

Parts beyond ``core.message``'s docstring, the same in every codec:

``provider``
    The format whose extra keys the part carries. A codec writes extras of its own format
    only. A reasoning part, or one of a kind that is not neutral, that is bound to another
    provider means nothing to this one and is left out.
``message``
    On the first part: fields of the message itself, beside its role and content.
``extra``
    Native keys whose names already mean something else on a part.
``native``
    The whole native block, where its own ``type`` is the name of a neutral kind.

A part of kind ``message`` holds nothing but the fields of a message that is empty.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, TypeGuard, cast

from sessiontree.core import jsontext
from sessiontree.core.message import Part, Role, text_of
from sessiontree.errors import FormatError

NEUTRAL = frozenset(
    {"text", "reasoning", "tool_call", "tool_call_response", "blob", "uri", "file", "message"}
)
RESERVED = frozenset(
    {
        "type",
        "content",
        "id",
        "name",
        "arguments",
        "response",
        "is_error",
        "mime_type",
        "modality",
        "uri",
        "file_id",
        "provider",
        "message",
        "extra",
        "native",
        # Flags by which a codec remembers which of its own shapes a part had.
        "block",
        "custom",
        "function",
        "function_call",
        "item",
        "json",
        "refusal",
        "thought_signature",
    }
)
"""Keys that mean something on a part, so that a native key of that name goes to ``extra``."""

# --- Checking ---------------------------------------------------------------------------


def wrong(fmt: str, what: str, *, hint: str = "") -> FormatError:
    """The error for a message that is not of its format."""
    return FormatError(f"not a message of format {fmt}: {what}", hint=hint)


def kind_of(value: object) -> str:
    """A value's kind as JSON calls it, for error messages."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    kinds = {str: "a string", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return kinds.get(cast("type[Any]", type(value)), f"a {type(value).__name__}")


_WHOLE_RESPONSES = {
    "choices": "give response.choices[0].message",
    "candidates": "give response.candidates[0].content",
    "output": "give each item of the output",
    "messages": "give the messages one by one",
}


def role_in(native: Mapping[str, Any], roles: Mapping[str, Role], fmt: str) -> Role:
    """The neutral role of ``native``, by the format's table of roles."""
    role = native.get("role")
    if isinstance(role, str) and role in roles:
        return roles[role]
    hint = f"roles of {fmt}: {', '.join(roles)}"
    if "role" in native:
        raise wrong(fmt, f"its role is {role!r}", hint=hint)
    whole = next((advice for key, advice in _WHOLE_RESPONSES.items() if key in native), hint)
    raise wrong(fmt, "it has no role", hint=whole)


def text_in(block: Mapping[str, Any], key: str, fmt: str, where: str) -> str:
    """The string at ``key``; FormatError tells what is there instead."""
    value = block.get(key)
    if isinstance(value, str):
        return value
    found = f"is {kind_of(value)}, not a string" if key in block else "is missing"
    raise wrong(fmt, f"{where}.{key} {found}")


def object_in(block: Mapping[str, Any], key: str, fmt: str, where: str) -> Mapping[str, Any]:
    """The object at ``key``; FormatError tells what is there instead."""
    value = block.get(key)
    if is_object(value):
        return value
    found = f"is {kind_of(value)}, not an object" if key in block else "is missing"
    raise wrong(fmt, f"{where}.{key} {found}")


def blocks_in(value: object, fmt: str, where: str) -> Sequence[Mapping[str, Any]]:
    """``value`` as a list of objects; FormatError tells where it is none."""
    if not isinstance(value, list | tuple):
        raise wrong(fmt, f"{where} is {kind_of(value)}, not a list")
    blocks = cast("Sequence[Mapping[str, Any]]", value)
    for i, block in enumerate(blocks):
        if not is_object(block):
            raise wrong(fmt, f"{where}[{i}] is {kind_of(block)}, not an object")
    return blocks


def is_object(value: object) -> TypeGuard[Mapping[str, Any]]:
    """True for a JSON object. Asking for what most values are first is ten times as fast."""
    if isinstance(value, dict):
        return True
    return type(value) not in _NO_OBJECTS and isinstance(value, Mapping)


_NO_OBJECTS: frozenset[type[Any]] = frozenset({type(None), str, list, int, float, bool})


def one_of_in(block: Mapping[str, Any], kinds: frozenset[str], fmt: str, where: str) -> str:
    """The key that says what a block is, in a format whose blocks bear no ``type``."""
    if "type" in block:
        raise wrong(fmt, f"{where} has a type, which its blocks do not have")
    kind = next((key for key in block if key in kinds), next(iter(block), None))
    if kind is None:
        raise wrong(fmt, f"{where} is empty")
    return kind


def kind_in(block: Mapping[str, Any], fmt: str, where: str) -> str:
    """The ``type`` of a block."""
    return text_in(block, "type", fmt, where)


def has_block(value: object, kinds: frozenset[str]) -> bool:
    """True when ``value`` is a list that holds a block of one of these kinds."""
    return isinstance(value, list | tuple) and any(
        is_object(block) and is_one_of(block.get("type"), kinds)
        for block in cast("Sequence[object]", value)
    )


def is_one_of(value: object, kinds: frozenset[str]) -> bool:
    return isinstance(value, str) and value in kinds


# --- Nothing is lost --------------------------------------------------------------------


def ride(part: Part, native: Mapping[str, Any], known: frozenset[str], fmt: str) -> Part:
    """``part``, with the keys of ``native`` that it has no neutral place for."""
    extra: dict[str, Any] = {}
    for key, value in native.items():
        if key in known:
            continue
        if key in RESERVED:
            extra[key] = value
        else:
            part[key] = value
        part["provider"] = fmt
    if extra:
        part["extra"] = extra
    return part


def extras(part: Part, fmt: str) -> dict[str, Any]:
    """The extra native keys of a part, when they are of this format."""
    if part.get("provider") != fmt:
        return {}
    found = {key: part[key] for key in part if key not in RESERVED}
    extra = part.get("extra")
    return found | extra if isinstance(extra, dict) else found


def keep(block: Mapping[str, Any], kind: str, fmt: str) -> Part:
    """A block of a kind that has no neutral counterpart, as it is. ``kind`` is its type,
    or in a format whose blocks have none the key that says what it is."""
    if kind in NEUTRAL or not RESERVED.isdisjoint(block.keys() - {"type", "id", "name", "content"}):
        return {"type": f"{fmt}:{kind}", "provider": fmt, "native": dict(block)}
    return {"type": kind, **block, "provider": fmt}


def kept(part: Part, fmt: str, *, typed: bool = True) -> dict[str, Any] | None:
    """The native block of a kept part; None when it is not of this format. ``typed`` is
    False where the format's blocks bear no ``type``."""
    if part.get("provider") != fmt or part.get("type") in NEUTRAL:
        return None
    native = part.get("native")
    if isinstance(native, dict):
        return dict(cast("dict[str, Any]", native))
    ours = ("provider", "message") if typed else ("provider", "message", "type")
    return {key: value for key, value in part.items() if key not in ours}


def with_message_fields(
    parts: list[Part], native: Mapping[str, Any], known: frozenset[str], fmt: str
) -> list[Part]:
    """``parts``, the first of which carries the message's own further fields."""
    fields = {key: value for key, value in native.items() if key not in known}
    if not fields:
        return parts
    if not parts:
        parts.append({"type": "message"})
    parts[0] |= {"provider": fmt, "message": fields}
    return parts


def message_fields(parts: Sequence[Part], fmt: str) -> dict[str, Any]:
    """The message's own fields, from the first part that carries some of this format."""
    for part in parts:
        fields = part.get("message")
        if part.get("provider") == fmt and isinstance(fields, dict):
            return dict(cast("dict[str, Any]", fields))
    return {}


def is_bound_elsewhere(part: Part, fmt: str) -> bool:
    """True for what belongs to one provider, and that is another one."""
    provider = part.get("provider")
    return provider is not None and provider != fmt


# --- Arguments and results --------------------------------------------------------------


def parsed_arguments(text: str) -> Any:
    """The object in ``text``; ``text`` itself when it is no JSON object."""
    found = jsontext.flat(text)
    return _parsed_with_care(text) if found is None else found


def _parsed_with_care(text: str) -> Any:
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return text
    return cast("Any", value) if isinstance(value, dict) else text


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(text)
    return value


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def arguments_text(arguments: object) -> str:
    """Arguments as JSON text; text that never was JSON stays as it came."""
    if isinstance(arguments, str):
        return arguments
    return to_json({} if arguments is None else arguments)


def arguments_object(arguments: object) -> dict[str, Any]:
    """Arguments where only an object will do."""
    if isinstance(arguments, dict):
        return cast("dict[str, Any]", arguments)
    return {} if arguments in (None, "") else {"input": arguments}


def to_json(value: object) -> str:
    """Compact JSON text of what came from JSON."""
    return _ENCODER.encode(value)


_WITH_IDS = ("tool_call", "tool_call_response")


def with_ids(parts: Sequence[Part]) -> list[Part]:
    """Calls and results that bear no id get the one that ``calls_of`` gives them."""
    if all(part.get("id") or part.get("type") not in _WITH_IDS for part in parts):
        return list(parts)
    counts = dict.fromkeys(_WITH_IDS, 0)
    found: list[Part] = []
    for part in parts:
        kind = part.get("type")
        if kind in counts:
            if not part.get("id"):
                part = part | {"id": f"call_{counts[kind]}"}
            counts[kind] += 1
        found.append(part)
    return found


def split(parts: Sequence[Part]) -> tuple[list[Part], list[Part]]:
    """The results, and everything else, in their order."""
    results = [part for part in parts if part.get("type") == "tool_call_response"]
    if not results:
        return [], list(parts)
    return results, [part for part in parts if part.get("type") != "tool_call_response"]


def response_text(response: object) -> str:
    """A result that is not in parts, as the text that a model reads."""
    if isinstance(response, str):
        return response
    return "" if response is None else to_json(response)


def said_by(part: Part) -> str:
    """The text of a result, whatever it is made of."""
    response = part.get("response")
    if not are_parts(response):
        return response_text(response)
    return text_of(cast("Sequence[Part]", response))


def are_parts(value: object) -> bool:
    """True for a list of parts, as against a list that is a tool's own JSON."""
    return (
        isinstance(value, list | tuple)
        and bool(cast("Sequence[object]", value))
        and all(
            isinstance(item, dict) and isinstance(cast("Part", item).get("type"), str)
            for item in cast("Sequence[object]", value)
        )
    )


def text_part(text: str) -> Part:
    return {"type": "text", "content": text}


def plain_text(parts: Sequence[Part]) -> str | None:
    """The text of parts that are one text and nothing beside it, as most messages are; None
    for any others. Every format writes these alike, which takes a tenth of the time."""
    if len(parts) != 1 or len(parts[0]) != 2 or parts[0].get("type") != "text":
        return None
    text = parts[0].get("content")
    return text if isinstance(text, str) else None


ERROR_MARK = "[error] "
"""How a failed call is told where the format has no field for it."""

# --- Images, files, audio ---------------------------------------------------------------


def modality_of(mime_type: str) -> str:
    """image, audio, video or document."""
    kind = mime_type.partition("/")[0]
    return kind if kind in ("image", "audio", "video") else "document"


def blob(mime_type: str, content: str) -> Part:
    """``content`` is base64."""
    return {
        "type": "blob",
        "mime_type": mime_type,
        "modality": modality_of(mime_type),
        "content": content,
    }


def uri(address: str, modality: str, mime_type: str | None = None) -> Part:
    part: Part = {"type": "uri", "modality": modality, "uri": address}
    return part if mime_type is None else part | {"mime_type": mime_type}


def file(file_id: str, modality: str, fmt: str) -> Part:
    """A file that lies with the provider, so its id means nothing to others."""
    return {"type": "file", "modality": modality, "file_id": file_id, "provider": fmt}


def data_url(part: Part) -> str:
    return f"data:{part.get('mime_type', '')};base64,{part.get('content', '')}"


def from_url(address: str, modality: str) -> Part:
    """A blob when ``address`` holds base64 data, else a uri."""
    if address.startswith("data:"):
        head, comma, content = address.partition(",")
        if comma and head.endswith(";base64"):
            return blob(head[5:-7], content) | {"modality": modality}
    return uri(address, modality)


_KEPT_MEDIA = ("image", "document", "file", "audio", "video", "input_audio", "video_url")


def is_media(part: Part) -> bool:
    return part.get("type") in ("blob", "uri", "file")


def is_kept_media(part: Part) -> bool:
    """True for an image, sound or file in a shape that only its own format knows."""
    kind = str(part.get("type")).rpartition(":")[2]
    return kind in _KEPT_MEDIA and part.get("provider") is not None


def media_in_words(part: Part, fmt: str) -> str:
    """What stands in the place of an image, audio or file that cannot be sent."""
    kind = str(part.get("type")).rpartition(":")[2]
    what = [part.get("modality") or kind, part.get("mime_type")]
    named = [part.get(key) for key in ("filename", "title", "uri", "file_id")]
    details = [" ".join(word for word in what if isinstance(word, str))]
    details += [name for name in named if isinstance(name, str)]
    if part.get("type") == "blob":
        details.append(in_bytes(len(str(part.get("content", ""))) * 3 // 4))
    return f"[{', '.join(details)}, not sent: {fmt} cannot take it here]"


def in_bytes(size: int) -> str:
    """A size for people: 12 kB."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size} {unit}"
        size //= 1000
    return f"{size} GB"


def file_name(part: Part) -> str:
    """A file's name where the target wants one."""
    extra = part.get("extra")
    own = cast("dict[str, Any]", extra).get("name") if isinstance(extra, dict) else None
    name = part.get("filename") or part.get("title") or own
    return name if isinstance(name, str) else "file"
