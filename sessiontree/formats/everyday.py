"""What most messages of an agent are, seen at a glance: an OpenAI call or result with no
field but the usual ones.

Reading these by their codec costs several times more, on the way of every append. What is
seen here is what the codec would see; a property test holds the two equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessiontree.core.message import Role, ToolCall, ToolResult
from sessiontree.formats.glance import answered_line, arguments_text, first_line
from sessiontree.formats.glance import tokens_of_text as estimate
from sessiontree.formats.shapes import parsed_arguments

NAME = "openai_chat"

_CALL = {"id", "type", "function"}
_FUNCTION = {"name", "arguments"}


Seen = tuple[Role, tuple[ToolCall, ...], tuple[ToolResult, ...], str, int]
"""Role, calls, results, preview and tokens, as ``NewMessage`` takes them."""


def see(native: Mapping[str, Any]) -> Seen | None:
    """What is in an everyday message; None for any other."""
    if len(native) != 3:
        return None
    role = native.get("role")
    if role == "tool":
        return _result(native)
    return _calls(native) if role == "assistant" else None


def _result(native: Mapping[str, Any]) -> Seen | None:
    call_id, content = native.get("tool_call_id"), native.get("content")
    if type(call_id) is not str or type(content) is not str or not call_id:
        return None
    preview = answered_line(first_line(content))
    return "tool", (), (ToolResult(call_id, content),), preview, estimate(content)


def _calls(native: Mapping[str, Any]) -> Seen | None:
    content: str | None = native.get("content")
    made: list[Any] | None = native.get("tool_calls")
    if type(made) is not list or not made or "content" not in native:
        return None
    if content is not None and type(content) is not str:
        return None
    calls: list[ToolCall] = []
    tokens = estimate(content or "")
    for each in made:
        call = _call(each)
        if call is None:
            return None
        calls.append(call)
        tokens += estimate(call.name) + estimate(arguments_text(call.arguments))
    preview = first_line(content or "") or first_line(", ".join([call.name for call in calls]))
    return "assistant", tuple(calls), (), preview, tokens


def _call(made: dict[str, Any]) -> ToolCall | None:
    if type(made) is not dict or made.keys() != _CALL or made["type"] != "function":
        return None
    body: dict[str, Any] = made["function"]
    if type(body) is not dict or body.keys() != _FUNCTION:
        return None
    call_id, name, arguments = made["id"], body["name"], body["arguments"]
    if type(call_id) is not str or type(name) is not str or type(arguments) is not str:
        return None
    return ToolCall(call_id, name, parsed_arguments(arguments)) if call_id else None
