"""What a request costs: by the package's own estimate, so that a test can foretell it.

System prompt, tools and messages are counted as a window counts them (``core.meter``, without
a tokenizer). ``scale`` multiplies it, for a provider that counts otherwise than we do.
"""

from __future__ import annotations

from math import ceil
from typing import Any

from sessiontree.core.meter import Meter
from sessiontree.core.rules import shape_of
from sessiontree.core.tokens import as_json
from tests.standin.script import Json


def tokens_of(body: Json, provider: str, scale: float) -> int:
    """Tokens of a request: of its messages, its system prompt and its tools."""
    shape = shape_of(provider)
    meter = Meter(shape, body.get("model"), None, False)
    total = meter.entries([shape.open(message) for message in body["messages"]])
    total += sum(meter.text(as_json(body[key])) for key in ("system", "tools") if body.get(key))
    return ceil(total * scale)


def said_by_user(messages: list[Json]) -> list[str]:
    """The texts of the user's messages, oldest first; results of tools are none."""
    said = [_text(message.get("content")) for message in messages if message["role"] == "user"]
    return [text for text in said if text is not None]


def _text(content: Any) -> str | None:
    if isinstance(content, str):
        return content
    texts = [str(part.get("text", "")) for part in content or () if part.get("type") == "text"]
    return "\n".join(texts) if texts else None
