"""Paths of messages without a store, for the tests of windows."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sessiontree import formats
from sessiontree.core import pairing, planner, rules
from sessiontree.core.message import Part, calls_of, results_of
from sessiontree.core.tokens import estimate
from sessiontree.core.window import Window

TARGETS = rules.PROVIDERS


@dataclass
class Msg:
    """What a window reads of a message."""

    id: int
    role: str
    format: str
    native: dict[str, Any]
    depth: int = 0
    open_calls: int = 0
    tokens: int = 0
    usage: Mapping[str, Any] | None = None
    model: str | None = None
    meta: dict[str, Any] = field(default_factory=dict)
    ref_id: int | None = None

    @property
    def parts(self) -> list[Part]:
        return formats.codec(self.format).decode(self.native).parts

    @property
    def calls(self):
        return calls_of(self.parts) if self.role != "mark" else ()

    @property
    def results(self):
        return results_of(self.parts) if self.role != "mark" else ()


def path(natives: Iterable[Mapping[str, Any]], fmt: str, **more: Any) -> list[Msg]:
    """A path of native messages, oldest first, with ids 1, 2, … as a store would have it.

    A native may be a pair (native, fields) to set fields of its message; a mark is of the
    format ``mark`` whatever ``fmt`` is.
    """
    found: list[Msg] = []
    for at, given in enumerate(natives):
        native, fields = given if isinstance(given, tuple) else (given, {})
        fields = dict(fields)
        own = fields.pop("format", fmt)
        own = "mark" if native.get("role") == "mark" else own
        role = formats.codec(own).decode(native).role
        found.append(Msg(at + 1, role, own, dict(native), at, **{**more, **fields}))
        found[-1].tokens = found[-1].tokens or estimate(str(native))
    for msg, count in zip(found, pairing.pair(found).open_counts, strict=True):
        msg.open_calls = count
    return found


def window(messages: Sequence[Msg], target: str, **options: Any) -> Window:
    """The window of a path given oldest first; the newest system prompt is in force."""
    if "system" not in options:
        options["system"] = next((m for m in reversed(messages) if m.role == "system"), None)
    return planner.plan(reversed(messages), target, formats.codec, **options)


def violations(found: Window, **facts: Any) -> list[str]:
    """What the provider would refuse of a window; a window that is no request yet may end
    with the assistant's message."""
    bad = rules.violations(found.messages, found.target, system=found.system, **facts)
    allowed = set() if found.ready else {"A12", "G5"}
    return [str(v) for v in bad if v.rule not in allowed]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


# --- Anthropic ------------------------------------------------------------------------------


def a_calls(*ids: str, text: str = "", thinking: bool = False) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = []
    if thinking:
        blocks.append({"type": "thinking", "thinking": "hm", "signature": "sig"})
    if text:
        blocks.append({"type": "text", "text": text})
    blocks += [{"type": "tool_use", "id": i, "name": "read", "input": {"id": i}} for i in ids]
    return {"role": "assistant", "content": blocks}


def a_results(*ids: str, text: str = "", output: str = "ok") -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [
        {"type": "tool_result", "tool_use_id": i, "content": output} for i in ids
    ]
    if text:
        blocks.append({"type": "text", "text": text})
    return {"role": "user", "content": blocks}


# --- OpenAI chat ----------------------------------------------------------------------------


def c_calls(*ids: str, text: str | None = None) -> dict[str, Any]:
    function = {"name": "read", "arguments": "{}"}
    calls = [{"id": i, "type": "function", "function": dict(function)} for i in ids]
    return {"role": "assistant", "content": text, "tool_calls": calls}


def c_result(call_id: str, output: str = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": output}


# --- OpenAI Responses -----------------------------------------------------------------------


def r_call(call_id: str, item_id: str | None = None) -> dict[str, Any]:
    item = {"type": "function_call", "call_id": call_id, "name": "read", "arguments": "{}"}
    return item | ({"id": item_id} if item_id else {})


def r_output(call_id: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": "ok"}


def r_reasoning(item_id: str) -> dict[str, Any]:
    return {"type": "reasoning", "id": item_id, "summary": [], "encrypted_content": "xx"}


# --- Gemini ---------------------------------------------------------------------------------


def g_user(text: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"text": text}]}


def g_model(text: str) -> dict[str, Any]:
    return {"role": "model", "parts": [{"text": text}]}


def g_calls(*names: str, signed: bool = True) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"functionCall": {"name": n, "args": {}}} for n in names]
    if signed:
        parts[0]["thoughtSignature"] = "sig"
    return {"role": "model", "parts": parts}


def g_results(*names: str, text: str = "") -> dict[str, Any]:
    parts: list[dict[str, Any]] = [
        {"functionResponse": {"name": n, "response": {"output": "ok"}}} for n in names
    ]
    return {"role": "user", "parts": parts + ([{"text": text}] if text else [])}


# --- Bedrock --------------------------------------------------------------------------------


def b_text(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": [{"text": text}]}


def b_calls(*ids: str) -> dict[str, Any]:
    uses = [{"toolUse": {"toolUseId": i, "name": "read", "input": {}}} for i in ids]
    return {"role": "assistant", "content": uses}


def b_results(*ids: str, status: str = "success", content: list | None = None) -> dict[str, Any]:
    said = [{"text": "ok"}] if content is None else content
    results = [{"toolResult": {"toolUseId": i, "content": said, "status": status}} for i in ids]
    return {"role": "user", "content": results}


def png(width: int, height: int, size: int = 0) -> str:
    """The base64 of a PNG's beginning and end, with ``size`` bytes of nothing between."""
    head = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
    measures = width.to_bytes(4, "big") + height.to_bytes(4, "big")
    end = b"\x00\x00\x00\x00IEND\xaeB`\x82"
    raw = head + measures + b"\x08\x02\x00\x00\x00" + bytes(size) + end
    return base64.b64encode(raw).decode()


def a_image(width: int = 100, height: int = 100, size: int = 0) -> dict[str, Any]:
    source = {"type": "base64", "media_type": "image/png", "data": png(width, height, size)}
    return {"type": "image", "source": source}
