"""OpenTelemetry GenAI messages: our own parts, as they are.

    {"role": "system" | "user" | "assistant" | "tool", "parts": [part], …}

Being our own shape it can carry any message of any format without loss: extras, their
``provider`` and kinds of others stay on the parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from sessiontree.core.message import Decoded, Native, Part, Role
from sessiontree.formats import shapes

NAME = "otel"

ROLES: dict[str, Role] = {
    "system": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}

REQUIRED: dict[str, tuple[str, ...]] = {
    "text": ("content",),
    "reasoning": ("content",),
    "tool_call": ("name",),
    "blob": ("modality", "content"),
    "uri": ("modality", "uri"),
    "file": ("modality", "file_id"),
}
"""Fields that must be strings, by kind of part. Source: the GenAI message JSON schemas."""

OPTIONAL: dict[str, tuple[str, ...]] = {
    "tool_call": ("id",),
    "tool_call_response": ("id",),
    "blob": ("mime_type",),
    "uri": ("mime_type",),
    "file": ("mime_type",),
}
"""Fields that are strings or null or absent."""


class OTel:
    name = NAME

    def recognises(self, native: Native) -> bool:
        parts = native.get("parts")
        return isinstance(parts, list | tuple) and any(
            shapes.is_object(part) and "type" in part for part in cast("Sequence[object]", parts)
        )

    def decode(self, native: Native) -> Decoded:
        role = shapes.role_in(native, ROLES, NAME)
        if "parts" not in native:
            raise shapes.wrong(NAME, "it has no parts")
        blocks = shapes.blocks_in(native["parts"], NAME, "parts")
        parts = [_checked(block, f"parts[{i}]") for i, block in enumerate(blocks)]
        fields = {key: value for key, value in native.items() if key not in ("role", "parts")}
        if fields:
            parts.append({"type": "message", "provider": NAME, "message": fields})
        return Decoded(role, parts)

    def encode(self, role: Role, parts: Sequence[Part]) -> list[dict[str, Any]]:
        if role == "mark" or not parts:
            return []
        own = [part for part in parts if not _is_fields(part)]
        return [{"role": role, "parts": [dict(part) for part in own]} | _fields(parts)]


CODEC = OTel()


def _checked(block: Mapping[str, Any], where: str) -> Part:
    kind = shapes.kind_in(block, NAME, where)
    for key in REQUIRED.get(kind, ()):
        shapes.text_in(block, key, NAME, where)
    for key in OPTIONAL.get(kind, ()):
        if block.get(key) is not None:
            shapes.text_in(block, key, NAME, where)
    return dict(block)


def _is_fields(part: Part) -> bool:
    return part.get("type") == "message" and part.get("provider") == NAME


def _fields(parts: Sequence[Part]) -> dict[str, Any]:
    return shapes.message_fields([part for part in parts if _is_fields(part)], NAME)
