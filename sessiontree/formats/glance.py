"""What a list shows of a message: its first line, and about how many tokens it costs."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any, cast

import orjson

from sessiontree.core.message import Part, ToolCall
from sessiontree.core.tokens import GENERIC, counter, estimate
from sessiontree.formats import shapes

PREVIEW_CHARS = 120
DATA_CHARS = 1000
"""A string of this length without a space is data (an image, a signature), not text."""

_LINE = re.compile(rf"\S[^\r\n]{{0,{PREVIEW_CHARS}}}")
_UNSHOWABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Controls would break a list, and neither NUL nor a lone surrogate is text to a database."""

tokens_of_text = counter(GENERIC, exact=False)
"""As ``estimate``, without a question asked first."""


def first_line(text: str) -> str:
    """The first line that shows something, at most 120 characters, "…" where it was cut."""
    line = text.lstrip()[: PREVIEW_CHARS + 1].partition("\n")[0]
    if line.isprintable():  # as most are
        if len(line) <= PREVIEW_CHARS or line[-1] == " ":
            return line.rstrip()
        return line[:-2] + "…"
    return _first_shown(text)


def _first_shown(text: str) -> str:
    """As ``first_line``, of any text."""
    found = _LINE.search(text)
    while found is not None:
        line = found[0]
        line = line.rstrip() if line.isprintable() else _UNSHOWABLE.sub(" ", line).strip()
        if line:
            return line if len(line) <= PREVIEW_CHARS else line[: PREVIEW_CHARS - 1] + "…"
        found = _LINE.search(text, found.end())
    return ""


def answered_line(line: str) -> str:
    """How a result is shown, by the first line of it."""
    if line and len(line) <= PREVIEW_CHARS - 2:  # it is a line that shows something already
        return f"→ {line}"
    return first_line(f"→ {line}")


def preview_of(parts: Sequence[Part], calls: Sequence[ToolCall] = ()) -> str:
    """The first line of its text; without text, what it calls, answers or shows."""
    for part in parts:
        if part.get("type") == "text" and isinstance(part.get("content"), str):
            line = first_line(part["content"])
            if line:
                return line
    if calls:
        return first_line(", ".join(call.name for call in calls))
    return next((line for part in parts if (line := _described(part))), "")


def _described(part: Part) -> str:
    kind = part.get("type")
    if kind in ("text", "message"):
        return ""
    if kind == "tool_call_response":
        return answered_line(_line_of_response(part.get("response")))
    if kind == "reasoning":
        return first_line(f"({part.get('content') or 'reasoning'})")
    if kind == "mark":
        return first_line(f"[{_kind_of_mark(part.get('mark'))}]")
    return first_line(f"[{part.get('mime_type') or part.get('modality') or kind}]")


def _kind_of_mark(fields: object) -> object:
    """What a mark without words does, in one word: cut, elide, images."""
    return (
        cast("dict[str, Any]", fields).get("kind") if isinstance(fields, dict) else ""
    ) or "mark"


def _line_of_response(response: object) -> str:
    if shapes.are_parts(response):
        return preview_of(cast("Sequence[Part]", response))
    return first_line(shapes.response_text(response))


def estimated_tokens(parts: Sequence[Part]) -> int:
    """About how many tokens the text, arguments and results cost. Images, audio and files
    are not counted: what they cost depends on the model, not on their bytes."""
    total = 0
    for part in parts:
        kind = part.get("type")
        if kind == "text" or kind == "reasoning":
            total += estimate(str(part.get("content")))
        elif kind == "tool_call":
            arguments = arguments_text(part.get("arguments"))
            total += estimate(str(part.get("name"))) + estimate(arguments)
        elif kind == "tool_call_response":
            total += _tokens_of_response(part.get("response"))
        elif not shapes.is_media(part) and kind != "message":
            total += _tokens_of_kept(part)
    return total


def arguments_text(arguments: object) -> str:
    """As ``shapes.arguments_text``, which writes what the fast encoder refuses."""
    if isinstance(arguments, dict):
        try:
            return orjson.dumps(cast("dict[str, object]", arguments)).decode()
        except TypeError:
            pass
    return shapes.arguments_text(cast("object", arguments))


def _tokens_of_response(response: object) -> int:
    if isinstance(response, str):
        return estimate(response)
    if shapes.are_parts(response):
        return estimated_tokens(cast("Sequence[Part]", response))
    return estimate(shapes.response_text(response))


def _tokens_of_kept(part: Part) -> int:
    return tokens_inside([value for key, value in part.items() if key != "type"])


def tokens_inside(values: Collection[object]) -> int:
    """All strings inside, but for data: what is long and has no space in it."""
    total = 0
    waiting = [values]
    for inside in waiting:  # grows as it goes
        if _SCALARS.issuperset(map(type, inside)):  # numbers alone
            continue
        for value in inside:
            kind = type(value)
            if kind is str:
                text = cast("str", value)
                if len(text) < DATA_CHARS or " " in text[:DATA_CHARS]:
                    total += tokens_of_text(text)
            elif kind is dict:
                waiting.append(cast("dict[str, object]", value).values())
            elif kind not in _SCALARS:
                waiting.append(_inside(value))
    return total


_SCALARS: frozenset[type[Any]] = frozenset({int, float, bool, type(None)})


def _inside(value: object) -> Collection[object]:
    if isinstance(value, dict):
        return cast("dict[str, object]", value).values()
    return cast("Collection[object]", value) if isinstance(value, list | tuple) else ()
