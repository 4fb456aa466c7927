"""A stretch of conversation as text, to be drawn or read.

    ¶user: …
    ¶assistant: …
    ¶reasoning: …
    ¶call read(path=src/app.py, limit=20)
    ¶result read: …
    ¶error read: …

The sign ``¶`` begins each part and stands nowhere else: nothing that a tool returned can
pass for what the user said. Results and arguments are shortened, images and data are named
in words. Text of more messages begins with the text of fewer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, cast

from sessiontree.core import images
from sessiontree.core.message import Part, Role
from sessiontree.core.tokens import as_json

SIGN = "¶"
NOT_THE_SIGN = "⁋"
"""What is written where the text has a ``¶`` of its own."""

RESULT = 2_000
ARGUMENT = 500
CALL = 2_000
NAME = 100
"""Characters that are shown at most of a result, of one argument, of all arguments of a
call, and of a name."""
HEAD = 0.6
"""The share of a shortened text that is its beginning; the rest is its end."""

_DATA_URL = re.compile(r"data:([\w.+-]{1,64}/[\w.+-]{1,64})(?:;[\w=.+-]{1,64}){0,8},[^\s\"'()<>]*+")
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{512,}+={0,2}")
_ANSI = re.compile(r"\x1b\[[0-9;?]*+[ -/]*+[@-~]")
_VARIED = 8
"""Different characters that a long run has when it is data; else it is a line of dashes."""

REASONING = f"{SIGN}reasoning: "


class Said(Protocol):
    """What is written of a message; ``core.message.Message`` is one."""

    @property
    def role(self) -> Role: ...
    @property
    def parts(self) -> list[Part]: ...


def write(messages: Iterable[Said]) -> str:
    """The messages as text, oldest first. Marks and system prompts are left out: they are
    no part of what was said."""
    names: dict[str, str] = {}
    return "".join(
        _part(message.role, part, names)
        for message in messages
        if message.role not in ("mark", "system")
        for part in message.parts
    )


def standing(text: str, name: str = "summary") -> str:
    """Text that stands for what came before, such as a summary, as a part of its own."""
    return _written(f"{name}:", clean(text))


def without_reasoning(text: str) -> str:
    """The text of ``write``, but for what the model thought."""
    if REASONING not in text:
        return text
    first, *parts = text.split(SIGN)
    mark = REASONING.removeprefix(SIGN)
    return first + "".join(SIGN + part for part in parts if not part.startswith(mark))


# --- Parts ------------------------------------------------------------------------------------


def _part(role: Role, part: Part, names: dict[str, str]) -> str:
    kind = part.get("type")
    content = part.get("content")
    if kind == "tool_call":
        return _call(part, names)
    if kind == "tool_call_response":
        return _result(part, names)
    if kind == "reasoning":
        return _written("reasoning:", clean(content)) if isinstance(content, str) else ""
    who = "assistant:" if role == "assistant" else "user:"
    return _written(who, clean(_said(part)))


def _call(part: Part, names: dict[str, str]) -> str:
    name = _name(part.get("name")) or "a tool"
    if isinstance(part.get("id"), str):
        names[part["id"]] = name
    return _written(f"call {name}({shorten(_arguments(part.get('arguments')), CALL)})")


def _result(part: Part, names: dict[str, str]) -> str:
    name = _name(part.get("name")) or names.get(str(part.get("id"))) or "of a tool"
    kind = "error" if part.get("is_error") else "result"
    said = shorten(clean(_said(part.get("response"))), RESULT)
    return _written(f"{kind} {name}:", said or "(nothing)")


def _written(label: str, said: str | None = None) -> str:
    if said is None:
        return f"{SIGN}{label}\n"
    said = said.rstrip()
    return f"{SIGN}{label} {said}\n" if said else ""


def _name(value: object) -> str:
    return " ".join(clean(value[:NAME]).split()) if isinstance(value, str) else ""


def _arguments(arguments: object) -> str:
    """``path=a.py, limit=20``; what is no object as its JSON."""
    if not isinstance(arguments, Mapping):
        return _argument(arguments)
    items = cast("Mapping[str, Any]", arguments).items()
    return ", ".join(f"{_name(str(key))}={_argument(value)}" for key, value in items)


def _argument(value: object) -> str:
    return shorten(clean(as_json(value)), ARGUMENT)


def _said(value: object) -> str:
    """A part, or what a tool answered, as text. Lists are looked into one level deep."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return "\n".join(map(_piece, cast("list[object]", value)))
    return _piece(value)


def _piece(value: object) -> str:
    if not isinstance(value, Mapping):
        return as_json(value)
    part = cast("Mapping[str, Any]", value)
    kind = part.get("type")
    content = part.get("content", part.get("text"))
    if kind == "text" and isinstance(content, str):
        return content
    if kind in ("blob", "uri", "file"):
        return _medium(part)
    return _kept(part) if "provider" in part else as_json(dict(part))


def _medium(part: Mapping[str, Any]) -> str:
    """An image, a sound or a file in words."""
    what = part.get("mime_type") or part.get("modality") or "file"
    data = part.get("content")
    size = images.size_of(data) if isinstance(data, str) else None
    measures = f", {size[0]}x{size[1]}" if size else ""
    where = part.get("uri") or part.get("file_id") or part.get("filename")
    return f"[{what}{measures}{f', {where}' if isinstance(where, str) else ''}]"


_SILENT = ("message", "thinking", "reasoning")
"""Kinds of parts that say nothing, or nothing that is for the eye."""


def _kept(part: Mapping[str, Any]) -> str:
    """A part of a kind that only its provider knows, as JSON."""
    kind = str(part.get("type"))
    if any(word in kind.lower() for word in _SILENT):
        return ""
    native = part.get("native")
    own = cast("Mapping[str, Any]", native) if isinstance(native, Mapping) else part
    fields = {k: v for k, v in own.items() if k not in ("type", "provider", "message")}
    return f"[{kind}] {shorten(as_json(fields), RESULT)}"


# --- Text -------------------------------------------------------------------------------------


def clean(text: str) -> str:
    """Text with data named in words, without codes of colours, and without our own sign."""
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if "data:" in text:
        text = _DATA_URL.sub(_data, text)
    if len(text) >= 512:
        text = _BASE64.sub(_base64, text)
    return text.replace(SIGN, NOT_THE_SIGN)


def _data(found: re.Match[str]) -> str:
    return f"[data, {found[1]}, {len(found[0]):,} characters]"


def _base64(found: re.Match[str]) -> str:
    is_data = len(set(found[0][:512])) > _VARIED
    return f"[data, {len(found[0]):,} characters]" if is_data else found[0]


def shorten(text: str, most: int) -> str:
    """The beginning and the end of the text, ``most`` characters, and how many are left out
    between them."""
    if len(text) <= most:
        return text
    head = int(most * HEAD)
    gone = f"[… {len(text) - most:,} characters left out …]"
    return f"{text[:head].rstrip()}\n{gone}\n{text[head - most :].lstrip()}"
