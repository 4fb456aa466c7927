"""What a request used, as its provider or program reported it, in one shape.

Providers agree neither on names nor on whether the cached tokens are inside the input or
beside it. Where a name is used in both ways (``input_tokens``), the field beside it tells:
details that are nested are inside, ``cache_read_input_tokens`` stands beside.

    beside   Anthropic, Bedrock, pi, opencode
    inside   OpenAI (both APIs), DeepSeek, Gemini, Gemini CLI, Codex, Cline, AI SDK, LangChain,
             OpenTelemetry
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

if TYPE_CHECKING:  # few reports tell a price, and every program that opens a store reads this
    from decimal import Decimal


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


_NAMES: dict[str, tuple[str, ...]] = {
    "input": (
        "input_tokens",
        "prompt_tokens",
        "promptTokenCount",
        "prompt_token_count",
        "inputTokens",
        "promptTokens",
        "input",
    ),
    "output": (
        "output_tokens",
        "completion_tokens",
        "candidatesTokenCount",
        "candidates_token_count",
        "outputTokens",
        "completionTokens",
        "output",
    ),
    # Counted beside the output; what is nested in details is inside it.
    "thoughts": ("thoughtsTokenCount", "thoughts_token_count", "thoughts", "reasoning"),
    # Counted beside the input.
    "tools": ("toolUsePromptTokenCount", "tool_use_prompt_token_count", "tool"),
    "read beside": (
        "cache_read_input_tokens",
        "cacheReadInputTokens",
        "cacheRead",
        "cache/read",
    ),
    "read inside": (
        "prompt_tokens_details/cached_tokens",
        "input_tokens_details/cached_tokens",
        "input_token_details/cache_read",
        "cachedContentTokenCount",
        "cached_content_token_count",
        "prompt_cache_hit_tokens",
        "cached_input_tokens",
        "cachedInputTokens",
        "cacheReadTokens",
        "inputTokenDetails/cacheReadTokens",
        "cache_read.input_tokens",
        "cached",
    ),
    "written beside": (
        "cache_creation_input_tokens",
        "cacheWriteInputTokens",
        "cacheWrite",
        "cache/write",
    ),
    "written inside": (
        "input_token_details/cache_creation",
        "prompt_tokens_details/cache_write_tokens",
        "cacheWriteTokens",
        "inputTokenDetails/cacheWriteTokens",
        "cache_creation.input_tokens",
    ),
    "written 1h": ("cache_creation/ephemeral_1h_input_tokens",),
    "cost": ("cost", "cost/total", "total_cost"),
}
"""What is told → under which names; of several in one report the first that is not 0 holds.
A name that is nested has a slash."""
_MEANING = {name: what for what, names in _NAMES.items() for name in names}
_OTEL = "gen_ai.usage."
_MOST = 10**15
"""Beyond it a number is damage."""


def read(usage: Mapping[str, Any] | None) -> Usage | None:
    """``usage`` of any provider; None when it tells no tokens at all. Zeros are a report: of a
    request that was given up, of a message that no model wrote."""
    told = _told(usage) if usage else {}
    if "input" not in told and "output" not in told:
        return None
    count = {what: int(value) for what, value in told.items()}.get
    sent = count("input", 0) + count("tools", 0)
    beside, put_beside = count("read beside", 0), count("written beside", 0)
    cached = beside or min(count("read inside", 0), sent)
    written = put_beside or min(count("written inside", 0), sent)
    taken = (0 if beside else cached) + (0 if put_beside else written)
    output = count("output", 0) + count("thoughts", 0)
    long = min(count("written 1h", 0), written)
    cost = _dollars(told["cost"]) if "cost" in told else None
    return Usage(max(sent - taken, 0), cached, written, output, long, cost)


def _dollars(told: float) -> Decimal:
    from decimal import Decimal

    return Decimal(str(told))


def _told(usage: Mapping[str, Any]) -> dict[str, int | float]:
    """What is told → the number; none is negative."""
    found: dict[str, int | float] = {}
    for name, value in _numbers(usage):
        what = _MEANING.get(name)
        if what is not None and 0 <= value < _MOST and not found.get(what):
            found[what] = value
    return found


def _numbers(usage: Mapping[str, Any]) -> Iterator[tuple[str, int | float]]:
    """Every number in a report; of some programs, tokens are floats."""
    for name, value in usage.items():
        name = name.removeprefix(_OTEL)
        if type(value) in (int, float):
            yield name, value
        elif isinstance(value, Mapping):
            for inner, number in cast("Mapping[str, Any]", value).items():
                if type(number) in (int, float):
                    yield f"{name}/{inner}", number
