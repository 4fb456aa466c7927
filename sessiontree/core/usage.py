"""What a request used, as its provider or program reported it, in one shape.

Providers agree neither on names nor on whether the cached tokens are inside the input or
beside it. Where a name is used in both ways (``input_tokens``), the field beside it tells:
details that are nested are inside, ``cache_read_input_tokens`` stands beside.

    beside   Anthropic, Bedrock, pi, Cline, opencode
    inside   OpenAI (both APIs), DeepSeek, Gemini, Gemini CLI, Codex, LangChain, OpenTelemetry
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from math import isfinite
from typing import Any, NamedTuple, cast

Path = tuple[str, ...]


class Usage(NamedTuple):
    """Tokens of one request, each counted once.

    ``input`` are those that were neither read from the provider's cache (``cached``) nor
    written to it (``written``; ``written_1h`` of these are kept for an hour, which costs
    more). ``cost`` is the price in US dollars where the report tells it, else None.
    """

    input: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0
    written_1h: int = 0
    cost: Decimal | None = None

    @property
    def sent(self) -> int:
        """All that went to the model."""
        return self.input + self.cached + self.written


_INPUT: tuple[Path, ...] = (
    ("input_tokens",),
    ("prompt_tokens",),
    ("promptTokenCount",),
    ("prompt_token_count",),
    ("inputTokens",),
    ("promptTokens",),
    ("input",),
)
_OUTPUT: tuple[Path, ...] = (
    ("output_tokens",),
    ("completion_tokens",),
    ("candidatesTokenCount",),
    ("candidates_token_count",),
    ("outputTokens",),
    ("completionTokens",),
    ("output",),
)
_THOUGHTS: tuple[Path, ...] = (
    ("thoughtsTokenCount",),
    ("thoughts_token_count",),
    ("thoughts",),
    ("reasoning",),
)
"""Counted beside the output; what is nested in details is inside it."""
_TOOLS: tuple[Path, ...] = (("toolUsePromptTokenCount",), ("tool_use_prompt_token_count",))
"""Counted beside the input."""
_READ_BESIDE: tuple[Path, ...] = (
    ("cache_read_input_tokens",),
    ("cacheReadInputTokens",),
    ("cacheReadTokens",),
    ("cacheRead",),
    ("cache", "read"),
)
_READ_INSIDE: tuple[Path, ...] = (
    ("prompt_tokens_details", "cached_tokens"),
    ("input_tokens_details", "cached_tokens"),
    ("input_token_details", "cache_read"),
    ("cachedContentTokenCount",),
    ("cached_content_token_count",),
    ("prompt_cache_hit_tokens",),
    ("cached_input_tokens",),
    ("cachedInputTokens",),
    ("cache_read.input_tokens",),
    ("cached",),
)
_WRITTEN_BESIDE: tuple[Path, ...] = (
    ("cache_creation_input_tokens",),
    ("cacheWriteInputTokens",),
    ("cacheWriteTokens",),
    ("cacheWrite",),
    ("cache", "write"),
)
_WRITTEN_INSIDE: tuple[Path, ...] = (
    ("input_token_details", "cache_creation"),
    ("prompt_tokens_details", "cache_write_tokens"),
    ("cache_creation.input_tokens",),
)
_WRITTEN_1H: tuple[Path, ...] = (("cache_creation", "ephemeral_1h_input_tokens"),)
_COST: tuple[Path, ...] = (("cost",), ("cost", "total"), ("total_cost",))


def read(usage: Mapping[str, Any] | None) -> Usage | None:
    """``usage`` of any provider; None when it tells no tokens at all. Zeros are a report: of a
    request that was given up, of a message that no model wrote."""
    if not usage or not any(_is_told(usage, path) for path in _INPUT + _OUTPUT):
        return None
    told = _first(usage, _INPUT) + _first(usage, _TOOLS)
    beside, inside = _first(usage, _READ_BESIDE), _first(usage, _READ_INSIDE)
    put_beside, put_inside = _first(usage, _WRITTEN_BESIDE), _first(usage, _WRITTEN_INSIDE)
    cached, written = beside or min(inside, told), put_beside or min(put_inside, told)
    taken = (0 if beside else cached) + (0 if put_beside else written)
    output = _first(usage, _OUTPUT) + _first(usage, _THOUGHTS)
    long = min(_first(usage, _WRITTEN_1H), written)
    return Usage(max(told - taken, 0), cached, written, output, long, _cost(usage))


def _is_told(usage: Mapping[str, Any], path: Path) -> bool:
    return type(_at(usage, path)) in (int, float)


def _first(usage: Mapping[str, Any], paths: tuple[Path, ...]) -> int:
    return next((found for path in paths if (found := _count(_at(usage, path)))), 0)


def _count(value: object) -> int:
    """A number of tokens; some programs write it as a float."""
    if isinstance(value, float) and isfinite(value):
        value = int(value)
    return value if type(value) is int and value > 0 else 0


def _cost(usage: Mapping[str, Any]) -> Decimal | None:
    for path in _COST:
        value = _at(usage, path)
        if type(value) in (int, float) and isfinite(value) and value >= 0:
            return Decimal(str(value))
    return None


def _at(usage: Mapping[str, Any], path: Path) -> Any:
    first = usage.get(path[0], usage.get(f"gen_ai.usage.{path[0]}"))
    if len(path) == 1:
        return first
    return cast("Mapping[str, Any]", first).get(path[1]) if isinstance(first, Mapping) else None
