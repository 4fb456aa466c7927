"""What a list shows of a message: its first line, and about how many tokens it costs."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, cast

from sessiontree.core.message import Part, calls_of
from sessiontree.core.tokens import estimate

PREVIEW_CHARS = 120

_LINE = re.compile(rf"\S[^\r\n]{{0,{PREVIEW_CHARS}}}")
_UNSHOWABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""Controls would break a list, and neither NUL nor a lone surrogate is text to a database."""

tokens_of_text = estimate


def first_line(text: str) -> str:
    """The first line that is not empty, at most 120 characters, "…" where it was cut."""
    found = _LINE.search(text)
    if found is None:
        return ""
    line = found[0]
    if not line.isprintable():
        line = _UNSHOWABLE.sub(" ", line)
    if len(line) > PREVIEW_CHARS:
        return line[: PREVIEW_CHARS - 1] + "…"
    return line.rstrip()


def preview_of(parts: Sequence[Part]) -> str:
    """The first line of its text; without text, what it calls, answers or shows."""
    for part in parts:
        if part.get("type") == "text" and isinstance(part.get("content"), str):
            line = first_line(part["content"])
            if line:
                return line
    names = ", ".join(call.name for call in calls_of(parts))
    if names:
        return first_line(names)
    return next((line for part in parts if (line := _described(part))), "")


def _described(part: Part) -> str:
    kind = part.get("type")
    if kind == "tool_call_response":
        return first_line("→ " + text_of_value(part.get("response")).lstrip())
    if kind == "reasoning":
        return first_line(f"({part.get('content') or 'reasoning'})")
    return first_line(f"[{part.get('mime_type') or part.get('modality') or kind}]")


def estimated_tokens(parts: Sequence[Part]) -> int:
    """About how many tokens the text, arguments and results cost. Images, audio and files
    are not counted: what they cost depends on the model, not on their bytes."""
    return sum(map(_tokens_of, parts))


def _tokens_of(part: Part) -> int:
    kind = part.get("type")
    if kind in ("text", "reasoning"):
        return estimate(text_of_value(part.get("content")))
    if kind == "tool_call":
        arguments = part.get("arguments")
        return estimate(f"{part.get('name')}") + estimate(text_of_value(arguments))
    if kind == "tool_call_response":
        return estimate(text_of_value(part.get("response")))
    if kind in ("blob", "uri", "file"):
        return 0
    return estimate(text_of_value(part))


def text_of_value(value: Any) -> str:
    """A value as the text that a model reads: parts by their text, all else as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, list | tuple) and _are_parts(cast("Sequence[object]", value)):
        return "\n".join(text_of_part(part) for part in cast("Sequence[Part]", value))
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def text_of_part(part: Part) -> str:
    """The text inside one part of a result; nothing for what is not text."""
    if part.get("type") == "text":
        return text_of_value(part.get("content"))
    return "" if "content" in part or "uri" in part or "file_id" in part else text_of_value(part)


def _are_parts(values: Sequence[object]) -> bool:
    return bool(values) and all(
        isinstance(value, dict) and isinstance(cast("Part", value).get("type"), str)
        for value in values
    )
