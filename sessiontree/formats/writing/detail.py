"""How much of a conversation is shown to people.

full       everything
high       no marks and no reasoning; long results by their beginning
low        what user and assistant say, and the names of the tools that are called
user-only  what the user says
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast, get_args

from sessiontree.core.message import Message, Part, Role
from sessiontree.errors import FormatError
from sessiontree.formats import shapes

Detail = Literal["full", "high", "low", "user-only"]
DETAILS: tuple[Detail, ...] = get_args(Detail)

RESULT_LINES = 30
RESULT_CHARS = 3_000
"""What ``high`` shows of a result, at most."""


def checked(detail: str) -> Detail:
    """A level by its name; FormatError lists those that there are."""
    if detail not in DETAILS:
        raise FormatError(
            f"there is no level of detail {detail!r}", hint=f"levels: {', '.join(DETAILS)}"
        )
    return detail


def is_role_shown(role: Role, detail: Detail) -> bool:
    """True when a level shows messages of a role. What one of them says may still be nothing."""
    return detail == "full" or role in _ROLES[detail]


_ROLES: dict[Detail, tuple[Role, ...]] = {
    "high": ("system", "user", "assistant", "tool"),
    "low": ("user", "assistant"),
    "user-only": ("user",),
}


def parts_shown(message: Message, detail: Detail) -> list[Part] | None:
    """The parts of a message that a level shows; None when it does not show the message.
    A call without ``arguments`` is shown by its name."""
    if detail == "full":
        return message.parts
    if not is_role_shown(message.role, detail):
        return None
    if detail == "high":
        return _shortened(message.parts)
    return [_brief(part) for part in message.parts if _is_said(part)] or None


def _is_said(part: Part) -> bool:
    kind = part.get("type")
    is_text = kind == "text" and str(part.get("content")).strip() != ""
    return is_text or kind == "tool_call" or shapes.is_media(part) or shapes.is_kept_media(part)


def _brief(part: Part) -> Part:
    if part.get("type") != "tool_call":
        return part
    return {key: part[key] for key in ("type", "id", "name") if key in part}


def _shortened(parts: Sequence[Part]) -> list[Part]:
    return [_short(part) for part in parts if part.get("type") != "reasoning"]


def _short(part: Part) -> Part:
    if part.get("type") != "tool_call_response":
        return part
    response = part.get("response")
    if shapes.are_parts(response):
        inner = cast("Sequence[Part]", response)
        return part | {"response": [_short_text(one) for one in inner]}
    return part | {"response": beginning(shapes.response_text(response))}


def _short_text(part: Part) -> Part:
    if part.get("type") != "text":
        return part
    return part | {"content": beginning(str(part.get("content")))}


def beginning(text: str) -> str:
    """The beginning of a long text, and how much is left out."""
    kept = "\n".join(text.split("\n", RESULT_LINES)[:RESULT_LINES])[:RESULT_CHARS]
    left = len(text) - len(kept)
    return f"{kept}\n… {left:,} more characters" if left > 0 else text
