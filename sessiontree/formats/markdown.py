"""A conversation for people: Markdown with front matter.

What a message says is Markdown as it is. Calls, results and data stand in fences that are
longer than any in them, so that nothing in them can end the fence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast

from sessiontree.core.message import Message, Part
from sessiontree.core.records import ConversationInfo
from sessiontree.formats import shapes
from sessiontree.formats.glance import first_line
from sessiontree.formats.transcript import kind_of
from sessiontree.formats.writing.detail import Detail, parts_shown

_FENCES = re.compile(r"`{3,}|~{3,}")
_FENCE_LINE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")

NAMES = {
    "system": "System",
    "user": "User",
    "assistant": "Assistant",
    "tool": "Tool",
    "mark": "Mark",
}


def front(info: ConversationInfo, shows: str, detail: Detail = "full") -> str:
    """The front matter: YAML, of which JSON strings are a part."""
    fields = {
        "conversation": info.id,
        "owner": info.owner or None,
        "topic": info.topic,
        "title": info.title,
        "shows": shows,
        "detail": None if detail == "full" else detail,
        "head": info.head,
        "begun": _time(info.created_at),
    }
    lines = [
        f"{k}: {json.dumps(v, ensure_ascii=False)}" for k, v in fields.items() if v is not None
    ]
    title = first_line(info.title or info.topic or f"Conversation {info.id}")
    return "\n".join(["---", *lines, "---", "", f"# {_inline(title)}", ""])


def branch(number: int, first: Message, is_active: bool) -> str:
    """A line above the messages of another branch."""
    where = f"after message {first.parent_id}" if first.parent_id else "from the beginning"
    active = " (active)" if is_active else ""
    return f"\n---\n\n*Branch {number}{active}: goes on {where}.*\n"


def section(
    message: Message,
    labels: Sequence[str] = (),
    *,
    follows: bool = False,
    detail: Detail = "full",
) -> str:
    """One message; "" where the level of ``detail`` shows nothing of it. ``follows``: say
    which it follows, as the order does not."""
    parts = parts_shown(message, detail)
    if parts is None:
        return ""
    heading = f"## {NAMES[message.role]} · {message.id}"
    facts = [_time(message.created_at)]
    if follows and message.parent_id is not None:
        facts.append(f"follows {message.parent_id}")
    if message.model:
        facts.append(_code(message.model))
    if kind := kind_of(message):
        facts.append(kind)
    facts += [f"⚑ {_inline(label)}" for label in labels]
    pieces = ["", heading, "", "*" + " · ".join(facts) + "*", ""]
    if message.role == "mark":
        return "\n".join([*pieces, *_mark(message)])
    for part in parts:
        pieces += [*_part(part), ""]
    return "\n".join(pieces)


def _mark(message: Message) -> list[str]:
    """What a mark says, quoted: it is no part of what was said."""
    texts = [str(part["content"]) for part in message.parts if part.get("type") == "text"]
    said = "\n".join(texts) or _inline(message.preview) or message.format
    return [*_quoted(said), ""]


def _part(part: Part) -> list[str]:
    kind = part.get("type")
    if kind == "text":
        return [_closed(str(part.get("content")))]
    if kind == "reasoning":
        return _quoted(f"*Reasoning*\n\n{part.get('content') or '(not shown)'}")
    if kind == "tool_call":
        title = f"**Call** {_code(part.get('name'))} {_code(part.get('id'))}"
        return [title, "", *_data(part["arguments"])] if "arguments" in part else [title]
    if kind == "tool_call_response":
        word = "Error" if part.get("is_error") else "Result"
        return [f"**{word}** of {_code(part.get('id'))}", "", *_response(part.get("response"))]
    if shapes.is_media(part) or shapes.is_kept_media(part):
        return [_inline(shapes.media_in_words(part, "markdown"))]
    if kind == "message":
        return []
    return [f"**{_inline(str(kind))}**", "", *_data(_without_fields(part))]


def _without_fields(part: Part) -> Any:
    return part.get("native") or {k: part[k] for k in part if k != "message"}


def _response(response: object) -> list[str]:
    if shapes.are_parts(response):
        parts = cast("list[Part]", response)
        return [line for part in parts for line in _part_of_response(part)]
    return _data(response)


def _part_of_response(part: Part) -> list[str]:
    if part.get("type") == "text":
        return _fenced(str(part.get("content")))
    return _part(part)


def _data(value: object) -> list[str]:
    """Text as it is, anything else as JSON."""
    if isinstance(value, str):
        return _fenced(value)
    return _fenced(json.dumps(value, ensure_ascii=False, indent=2), "json")


def _fenced(text: str, language: str = "") -> list[str]:
    longest = max((len(found) for found in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}", text.removesuffix("\n"), fence]


def _quoted(text: str) -> list[str]:
    return [f"> {line}".rstrip() for line in _closed(text).splitlines()] or [">"]


def _closed(text: str) -> str:
    """``text`` with a fence that it leaves open closed, or what follows would be in it."""
    open_fence = ""
    for line in text.splitlines():
        found = _FENCE_LINE.match(line)
        if found is None:
            continue
        fence, rest = found[1], found[2]
        if not open_fence:
            open_fence = "" if fence[0] == "`" and "`" in rest else fence
        elif fence[0] == open_fence[0] and len(fence) >= len(open_fence) and not rest.strip():
            open_fence = ""
    return f"{text}\n{open_fence}" if open_fence else text


def _code(value: object) -> str:
    """A value on one line, as code that its own backticks do not end."""
    text = first_line(str(value))
    longest = max((len(found) for found in re.findall(r"`+", text)), default=0)
    tick = "`" * (longest + 1)
    space = " " if longest else ""
    return f"{tick}{space}{text}{space}{tick}"


def _inline(text: str) -> str:
    """Text on one line whose signs mean nothing."""
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", text)


def _time(microseconds: int) -> str:
    try:
        time = datetime.fromtimestamp(microseconds / 1_000_000, UTC)
    except (OverflowError, ValueError, OSError):  # no calendar reaches there
        return f"{microseconds} µs"
    return time.strftime("%Y-%m-%d %H:%M:%S UTC")
