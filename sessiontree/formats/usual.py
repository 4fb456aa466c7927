"""What most rows of an agent's session are, seen without a codec: texts, thoughts, calls and
results in their plainest shape.

A codec makes parts of all that a row says, which takes longer than parsing it. An import
looks at each row for a few values only; for the usual ones they are taken as they lie there.
What is seen here is what ``see`` makes of a codec's parts; a test holds the two equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import orjson

from sessiontree.core.message import Part, Role, ToolCall, ToolResult, calls_of, results_of
from sessiontree.core.pairing import OpenCall, take
from sessiontree.formats.glance import (
    answered_line,
    arguments_text,
    estimated_tokens,
    first_line,
    preview_of,
    tokens_inside,
)
from sessiontree.formats.glance import tokens_of_text as estimate

Block = Mapping[str, Any]


class Seen(NamedTuple):
    """What an import wants to know of a row: calls without arguments, results without
    responses."""

    role: Role
    calls: tuple[ToolCall, ...]
    results: tuple[ToolResult, ...]
    mixed: bool
    """It says something beside its results."""
    preview: str
    tokens: int


_PAIRED = ("tool_call", "tool_call_response")


def see(role: Role, parts: Sequence[Part]) -> Seen:
    """What is in a row by its parts."""
    preview = preview_of(parts, calls_of(parts))
    return Seen(role, *paired(role, parts), preview, estimated_tokens(parts))


def paired(
    role: Role, parts: Sequence[Part]
) -> tuple[tuple[ToolCall, ...], tuple[ToolResult, ...], bool]:
    """Calls, results, and is anything beside the results; a mark neither calls nor answers.
    What a message calls and answers itself is neither."""
    bare = [_bare(part) for part in parts if part.get("type") in _PAIRED]
    if role == "mark" or not bare:
        return (), (), False
    calls, results = calls_of(bare), results_of(bare)
    if calls and results:
        waiting = [OpenCall(0, call) for call in calls]
        results = tuple(result for result in results if take(waiting, result) is None)
        calls = tuple(opened.call for opened in waiting)
    return calls, results, len(parts) > len(results) > 0


def _bare(part: Part) -> Part:
    return {**part, "arguments": None, "response": None}


def mark(format: str, kind: str, native: Mapping[str, Any], text: str | None) -> Seen:
    """A row that its codec keeps whole, as a part called ``format:kind``; before it stands the
    text that the codec finds in it, if any."""
    line = first_line(text) if text else ""
    tokens = estimate(text or "") + tokens_inside((format, native))
    return Seen("mark", (), (), False, line or first_line(f"[{format}:{kind}]"), tokens)


class _Look:
    """What is seen so far. ``is_usual`` is False once there was anything else."""

    __slots__ = ("calls", "count", "is_usual", "line", "other", "results", "tokens")

    def __init__(self) -> None:
        self.line = self.other = ""
        self.tokens = self.count = 0
        self.calls: tuple[ToolCall, ...] = ()
        self.results: tuple[ToolResult, ...] = ()
        self.is_usual = True

    def text(self, text: object) -> None:
        if type(text) is not str:
            self.is_usual = False
            return
        self.count += 1
        self.tokens += estimate(text)
        self.line = self.line or first_line(text)

    def thought(self, text: object) -> None:
        if type(text) is not str:
            self.is_usual = False
            return
        self.count += 1
        self.tokens += estimate(text)
        self.other = self.other or first_line(f"({text or 'reasoning'})")

    def call(self, call_id: object, name: object, arguments: object) -> None:
        if type(call_id) is not str or type(name) is not str or not (call_id and name):
            self.is_usual = False
            return
        self.count += 1
        self.tokens += estimate(name) + estimate(arguments_text(arguments))
        self.calls += (ToolCall(call_id, name, None),)

    def result(self, call_id: object, response: object, name: object, is_error: object) -> None:
        """``response`` is a text, or blocks of text."""
        told = _texts(response)
        if type(call_id) is not str or not call_id or told is None:
            self.is_usual = False
            return
        self.count += 1
        for text in told:
            self.tokens += estimate(text)
        if not self.other:
            lines = map(first_line, told)
            self.other = answered_line(next((line for line in lines if line), ""))
        known = name if type(name) is str else None
        self.results += (ToolResult(call_id, None, known, bool(is_error)),)

    def seen(self, role: Role) -> Seen | None:
        calls, results = self.calls, self.results
        if not self.is_usual or not self.count or (calls and results):
            return None
        preview = self.line
        if not preview and calls:
            preview = first_line(", ".join([call.name for call in calls]))
        mixed = self.count > len(results) > 0
        return Seen(role, calls, results, mixed, preview or self.other, self.tokens)


def _texts(response: object, kind: str = "text") -> list[str] | None:
    """The texts of a response; None where it is anything else, or empty."""
    if type(response) is str:
        return [response]
    if type(response) is not list or not response:
        return None
    found: list[str] = []
    for block in cast("list[object]", response):
        if type(block) is not dict:
            return None
        text = cast("dict[str, object]", block).get("text")
        if cast("dict[str, object]", block).get("type") != kind or type(text) is not str:
            return None
        found.append(text)
    return found


def _look_into(content: object, look_at: Callable[[_Look, Block], None]) -> _Look:
    """A message's content: a text, or blocks."""
    look = _Look()
    if type(content) is str:
        look.text(content)
    elif type(content) is list:
        for block in cast("list[Any]", content):
            if type(block) is not dict:
                look.is_usual = False
                return look
            look_at(look, cast("Block", block))
    return look


# --- Claude Code ----------------------------------------------------------------------------


def claude_code(native: Mapping[str, Any]) -> Seen | None:
    """A row of Claude Code's that holds a message of Anthropic's."""
    message = native.get("message")
    if type(message) is not dict or native.get("isApiErrorMessage"):
        return None
    said = cast("dict[str, Any]", message)
    role, kind = said.get("role"), native.get("type")
    if kind not in ("user", "assistant") or role not in ("user", "assistant"):
        return None
    look = _look_into(said.get("content"), _anthropic_block)
    return look.seen("tool" if role == "user" and look.results else role)


def _anthropic_block(look: _Look, block: Block) -> None:
    kind = block.get("type")
    if kind == "text":
        look.text(block.get("text"))
    elif kind == "tool_use":
        look.call(block.get("id"), block.get("name"), block.get("input"))
    elif kind == "tool_result":
        content, failed = block.get("content"), block.get("is_error")
        look.result(block.get("tool_use_id"), content, None, failed)
    elif kind == "thinking":
        look.thought(block.get("thinking"))
    else:
        look.is_usual = False


# --- pi -------------------------------------------------------------------------------------


def pi(native: Mapping[str, Any]) -> Seen | None:
    """An entry of pi's that holds a message."""
    message = native.get("message")
    if native.get("type") != "message" or type(message) is not dict or "role" in native:
        return None
    said = cast("dict[str, Any]", message)
    role, content = said.get("role"), said.get("content")
    if role == "toolResult":
        look = _Look()
        look.result(said.get("toolCallId"), content, said.get("toolName"), said.get("isError"))
        return look.seen("tool")
    if role not in ("user", "assistant"):
        return None
    return _look_into(content, _pi_block).seen(role)


def _pi_block(look: _Look, block: Block) -> None:
    kind = block.get("type")
    if kind == "text":
        look.text(block.get("text"))
    elif kind == "toolCall":
        look.call(block.get("id"), block.get("name"), block.get("arguments"))
    elif kind == "thinking":
        look.thought(block.get("thinking"))
    else:
        look.is_usual = False


# --- Codex ----------------------------------------------------------------------------------


def codex(item: Mapping[str, Any]) -> Seen | None:
    """An item of Codex's, without its envelope."""
    kind = item.get("type")
    if kind == "message":
        role = item.get("role")
        if role not in ("user", "assistant"):
            return None
        return _look_into(item.get("content"), _codex_block).seen(role)
    look = _Look()
    if kind == "function_call":
        look.call(item.get("call_id"), item.get("name"), _parsed(look, item.get("arguments")))
        return look.seen("assistant")
    if kind == "function_call_output":
        output = item.get("output")
        look.result(item.get("call_id"), output if type(output) is str else None, None, False)
        return look.seen("tool")
    if kind == "reasoning":
        look.thought(_summary(item))
        return look.seen("assistant")
    return None


def only_text(item: Mapping[str, Any]) -> str | None:
    """The text of a message of Codex's that is nothing but one text."""
    content = cast("object", item.get("content"))
    if item.get("type") != "message" or type(content) is str:
        return None
    told = _texts(content, "input_text")
    return told[0] if told is not None and len(told) == 1 else None


def _summary(item: Mapping[str, Any]) -> str | None:
    """What can be read of a thought: nothing, most times."""
    summary = item.get("summary")
    if item.get("content") is not None or type(summary) is not list:
        return None
    if not summary:
        return ""
    told = _texts(cast("object", summary), "summary_text")
    return None if told is None else "\n".join(told)


def _codex_block(look: _Look, block: Block) -> None:
    if block.get("type") in ("input_text", "output_text"):
        look.text(block.get("text"))
    else:
        look.is_usual = False


def _parsed(look: _Look, arguments: object) -> object:
    """The arguments in a JSON text, where the fast decoder reads an object in it."""
    try:
        value = orjson.loads(cast("str", arguments))
    except (orjson.JSONDecodeError, TypeError):
        value = None
    look.is_usual = type(value) is dict
    return cast("object", value)
