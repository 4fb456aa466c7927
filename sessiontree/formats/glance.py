"""What a list shows of a message: its first line, and about how many tokens it costs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast

from sessiontree.core.message import Part, ToolCall
from sessiontree.core.tokens import estimate
from sessiontree.formats import shapes

PREVIEW_CHARS = 120
DATA_CHARS = 1000
"""A string of this length without a space is data (an image, a signature), not text."""

_LINE = re.compile(rf"\S[^\r\n]{{0,{PREVIEW_CHARS}}}")
_UNSHOWABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Controls would break a list, and neither NUL nor a lone surrogate is text to a database."""

tokens_of_text = estimate


def first_line(text: str) -> str:
    """The first line that shows something, at most 120 characters, "…" where it was cut."""
    for found in _LINE.finditer(text):
        line = found[0] if found[0].isprintable() else _UNSHOWABLE.sub(" ", found[0]).strip()
        if line:
            return _cut(line.rstrip())
    return ""


def _cut(line: str) -> str:
    return line if len(line) <= PREVIEW_CHARS else line[: PREVIEW_CHARS - 1] + "…"


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
        return first_line(f"→ {_line_of_response(part.get('response'))}")
    if kind == "reasoning":
        return first_line(f"({part.get('content') or 'reasoning'})")
    return first_line(f"[{part.get('mime_type') or part.get('modality') or kind}]")


def _line_of_response(response: object) -> str:
    if shapes.are_parts(response):
        return preview_of(cast("Sequence[Part]", response))
    return first_line(shapes.response_text(response))


def estimated_tokens(parts: Sequence[Part]) -> int:
    """About how many tokens the text, arguments and results cost. Images, audio and files
    are not counted: what they cost depends on the model, not on their bytes."""
    return sum(map(_tokens_of, parts))


def _tokens_of(part: Part) -> int:
    kind = part.get("type")
    if kind in ("text", "reasoning"):
        return estimate(str(part.get("content")))
    if kind == "tool_call":
        arguments = shapes.arguments_text(part.get("arguments"))
        return estimate(str(part.get("name"))) + estimate(arguments)
    if kind == "tool_call_response":
        return _tokens_of_response(part.get("response"))
    return 0 if shapes.is_media(part) or kind == "message" else _tokens_of_kept(part)


def _tokens_of_response(response: object) -> int:
    if shapes.are_parts(response):
        return estimated_tokens(cast("Sequence[Part]", response))
    return estimate(shapes.response_text(response))


def _tokens_of_kept(part: Part) -> int:
    """All strings inside, but for data: what is long and has no space in it."""
    total = 0
    waiting: list[object] = [value for key, value in part.items() if key != "type"]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(cast("dict[str, object]", value).values())
        elif isinstance(value, list | tuple):
            waiting.extend(cast("Sequence[object]", value))
        elif isinstance(value, str) and (len(value) < DATA_CHARS or " " in value[:DATA_CHARS]):
            total += estimate(value)
    return total
