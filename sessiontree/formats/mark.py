"""Our own marks: notes on the path that change what a window sends, never sent themselves.

    {"role": "mark", "kind": str, "text"?: str, …}

``text`` (a summary, say) is a text part; everything else is one part of kind ``mark``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from sessiontree.core.message import Decoded, Native, Part, Role
from sessiontree.formats import shapes

NAME = "mark"


class Mark:
    name = NAME

    def recognises(self, native: Native) -> bool:
        return native.get("role") == "mark"

    def decode(self, native: Native) -> Decoded:
        role = shapes.role_in(native, {"mark": "mark"}, NAME)
        shapes.text_in(native, "kind", NAME, "it")
        has_text = isinstance(native.get("text"), str)
        fields = {
            key: value
            for key, value in native.items()
            if key != "role" and not (key == "text" and has_text)
        }
        parts: list[Part] = [{"type": "mark", "mark": fields}]
        if has_text:
            parts.append(shapes.text_part(native["text"]))
        return Decoded(role, parts)

    def encode(self, role: Role, parts: Sequence[Part]) -> list[dict[str, Any]]:
        if role != "mark":
            return []
        message: dict[str, Any] = {"role": "mark"}
        for part in parts:
            fields = part.get("mark")
            if part.get("type") == "mark" and isinstance(fields, dict):
                message |= cast("dict[str, Any]", fields)
            elif part.get("type") == "text":
                message["text"] = part.get("content")
        return [message]


CODEC = Mark()
