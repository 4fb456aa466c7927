"""OpenTelemetry: each message as a log record of the GenAI conventions (OTLP/JSON lines).

A line is what a collector's ``otlpjsonfile`` receiver reads:

    {"resourceLogs": [{"resource": …, "scopeLogs": [{"scope": …, "logRecords": [record]}]}]}

The record is an event ``gen_ai.client.inference.operation.details`` with what the message
says in ``gen_ai.input.messages`` (user, tool), ``gen_ai.output.messages`` (assistant) or
``gen_ai.system_instructions``. The conventions know no tree: its place is in
``sessiontree.message.id``, ``.parent_id``, ``.on_path``; marks have no message in theirs.

Source: semantic-conventions-genai 0.1.0, which calls itself experimental.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from sessiontree.core.message import Message, Part
from sessiontree.core.records import ConversationInfo
from sessiontree.formats.transcript import kind_of
from sessiontree.formats.writing.lines import as_json, json_line

EVENT = "gen_ai.client.inference.operation.details"
_SCOPE = {"name": "sessiontree"}
_INT64 = 1 << 63
DEEPEST = 20
"""Levels of nesting; each is three in OTLP/JSON, and protobuf readers stop at 100."""


def record_line(
    message: Message, info: ConversationInfo, *, shows: str, on_path: bool, labels: Sequence[str]
) -> str:
    """One message as a line; ``shows``: "path" or "tree"."""
    resource = {"sessiontree.shows": shows, "sessiontree.owner": info.owner or None}
    record = {
        "timeUnixNano": str(max(0, message.created_at) * 1000),
        "eventName": EVENT,
        "severityNumber": 9,
        "attributes": _attributes(_facts(message, info, on_path, labels)),
    }
    scope = {"scope": _SCOPE, "logRecords": [record]}
    logs = {"resource": {"attributes": _attributes(resource)}, "scopeLogs": [scope]}
    return json_line({"resourceLogs": [logs]})


def _facts(
    message: Message, info: ConversationInfo, on_path: bool, labels: Sequence[str]
) -> dict[str, Any]:
    usage = message.usage or {}
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.conversation.id": info.topic or str(info.id),
        **_said(message),
        "gen_ai.response.model": message.model,
        "gen_ai.usage.input_tokens": _count(usage, "input_tokens", "prompt_tokens", "input"),
        "gen_ai.usage.output_tokens": _count(usage, "output_tokens", "completion_tokens", "output"),
        "sessiontree.message.id": message.id,
        "sessiontree.message.parent_id": message.parent_id,
        "sessiontree.message.depth": message.depth,
        "sessiontree.message.on_path": on_path,
        "sessiontree.message.role": message.role,
        "sessiontree.message.format": message.format,
        "sessiontree.message.key": message.key,
        "sessiontree.message.kind": kind_of(message),
        "sessiontree.message.labels": list(labels) or None,
    }


def _said(message: Message) -> dict[str, Any]:
    parts = message.parts
    if message.role == "system":
        return {"gen_ai.system_instructions": parts}
    if message.role == "mark":
        return {"sessiontree.message.parts": parts}
    said: dict[str, Any] = {"role": message.role, "parts": parts}
    if message.role != "assistant":
        return {"gen_ai.input.messages": [said]}
    return {"gen_ai.output.messages": [said | {"finish_reason": _finish(parts)}]}


def _finish(parts: Sequence[Part]) -> str:
    return "tool_call" if any(part.get("type") == "tool_call" for part in parts) else "stop"


def _count(usage: Mapping[str, Any], *names: str) -> int | None:
    values = (usage.get(name) for name in names)
    return next((value for value in values if type(value) is int), None)


def _attributes(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Key and AnyValue pairs; what is null is left out."""
    return [{"key": key, "value": any_value(v)} for key, v in facts.items() if v is not None]


def any_value(value: object) -> dict[str, Any]:
    """A JSON value as OTLP's AnyValue; what is nested deeper than readers go, as JSON text."""
    return _any_value(value, DEEPEST)


def _any_value(value: object, levels: int) -> dict[str, Any]:
    if not isinstance(value, Mapping | list | tuple):
        return _scalar(value)
    if levels == 0:
        return {"stringValue": as_json(cast(object, value))}
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, object]", value)
        pairs = [{"key": k, "value": _any_value(v, levels - 1)} for k, v in fields.items()]
        return {"kvlistValue": {"values": pairs}}
    items = cast("Sequence[object]", value)
    return {"arrayValue": {"values": [_any_value(item, levels - 1) for item in items]}}


def _scalar(value: object) -> dict[str, Any]:
    """An AnyValue without any field is null; 64-bit integers are strings in OTLP/JSON."""
    if value is None:
        return {}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue" if -_INT64 <= value < _INT64 else "stringValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": str(value)}
