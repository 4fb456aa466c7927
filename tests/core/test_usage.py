"""What providers and programs report, in one shape."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from sessiontree.core import tokens
from sessiontree.core.usage import Usage, read

# The same request everywhere: 1,000 tokens sent, of which 600 were read from the cache and
# 100 written to it where that is told; 50 came back.
BESIDE = Usage(300, 600, 100, 50)
READ = Usage(400, 600, 0, 50)
REPORTS: dict[str, tuple[dict[str, Any], Usage]] = {
    "anthropic": (
        {
            "input_tokens": 300,
            "cache_read_input_tokens": 600,
            "cache_creation_input_tokens": 100,
            "output_tokens": 50,
        },
        BESIDE,
    ),
    "anthropic, an hour": (
        {
            "input_tokens": 300,
            "cache_read_input_tokens": 600,
            "cache_creation_input_tokens": 100,
            "cache_creation": {"ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 70},
            "output_tokens": 50,
        },
        BESIDE._replace(written_1h=70),
    ),
    "bedrock": (
        {
            "inputTokens": 300,
            "cacheReadInputTokens": 600,
            "cacheWriteInputTokens": 100,
            "outputTokens": 50,
            "totalTokens": 1050,
        },
        BESIDE,
    ),
    "pi": (
        {
            "input": 300,
            "output": 50,
            "cacheRead": 600,
            "cacheWrite": 100,
            "totalTokens": 1050,
            "cost": {"input": 0.1, "total": 0.25},
        },
        BESIDE._replace(cost=Decimal("0.25")),
    ),
    "cline": (
        {
            "inputTokens": 1000,
            "outputTokens": 50,
            "cacheReadTokens": 600,
            "cacheWriteTokens": 100,
            "cost": 0.5,
        },
        BESIDE._replace(cost=Decimal("0.5")),
    ),
    "ai sdk": (
        {
            "inputTokens": 1000,
            "inputTokenDetails": {
                "noCacheTokens": 300,
                "cacheReadTokens": 600,
                "cacheWriteTokens": 100,
            },
            "outputTokens": 50,
        },
        BESIDE,
    ),
    "ai sdk, older": (
        {"inputTokens": 1000, "cachedInputTokens": 600, "outputTokens": 50, "reasoningTokens": 9},
        READ,
    ),
    "opencode": (
        {"input": 300, "output": 40, "reasoning": 10, "cache": {"read": 600, "write": 100}},
        BESIDE,
    ),
    "openai chat": (
        {
            "prompt_tokens": 1000,
            "completion_tokens": 50,
            "prompt_tokens_details": {"cached_tokens": 600},
            "completion_tokens_details": {"reasoning_tokens": 20},
        },
        READ,
    ),
    "openai responses": (
        {
            "input_tokens": 1000,
            "input_tokens_details": {"cached_tokens": 600},
            "output_tokens": 50,
            "output_tokens_details": {"reasoning_tokens": 20},
        },
        READ,
    ),
    "openrouter": (
        {
            "prompt_tokens": 1000,
            "completion_tokens": 50,
            "prompt_tokens_details": {"cached_tokens": 600, "cache_write_tokens": 100},
            "cost": 0.0125,
        },
        BESIDE._replace(cost=Decimal("0.0125")),
    ),
    "deepseek": (
        {
            "prompt_tokens": 1000,
            "completion_tokens": 50,
            "prompt_cache_hit_tokens": 600,
            "prompt_cache_miss_tokens": 400,
        },
        READ,
    ),
    "gemini": (
        {
            "promptTokenCount": 1000,
            "cachedContentTokenCount": 600,
            "candidatesTokenCount": 30,
            "thoughtsTokenCount": 20,
        },
        READ,
    ),
    "gemini, its sdk": (
        {
            "prompt_token_count": 900,
            "tool_use_prompt_token_count": 100,
            "cached_content_token_count": 600,
            "candidates_token_count": 50,
        },
        READ,
    ),
    "gemini cli": (
        {"input": 900, "output": 30, "cached": 600, "thoughts": 20, "tool": 100, "total": 1050},
        READ,
    ),
    "codex": (
        {
            "input_tokens": 1000,
            "cached_input_tokens": 600,
            "output_tokens": 50,
            "reasoning_output_tokens": 20,
        },
        READ,
    ),
    "langchain": (
        {
            "input_tokens": 1000,
            "output_tokens": 50,
            "input_token_details": {"cache_read": 600, "cache_creation": 100},
        },
        BESIDE,
    ),
    "opentelemetry": (
        {
            "gen_ai.usage.input_tokens": 1000,
            "gen_ai.usage.output_tokens": 50,
            "gen_ai.usage.cache_read.input_tokens": 600,
            "gen_ai.usage.cache_creation.input_tokens": 100,
        },
        BESIDE,
    ),
}


@pytest.mark.parametrize("name", REPORTS)
def test_each_token_is_counted_once(name: str) -> None:
    report, expected = REPORTS[name]
    found = read(report)
    assert found == expected
    assert found.sent == 1000


@pytest.mark.parametrize("name", REPORTS)
def test_it_is_what_windows_are_measured_by(name: str) -> None:
    report, expected = REPORTS[name]
    assert tokens.reported(report) == (expected.sent, expected.output)


def test_a_prompt_that_came_from_the_cache_whole_measures_a_window() -> None:
    report = {"input_tokens": 0, "cache_read_input_tokens": 900, "output_tokens": 4}
    assert tokens.reported(report) == (900, 4)


def test_a_report_of_zeros_measures_no_window() -> None:
    assert tokens.reported({"input_tokens": 0, "output_tokens": 0}) is None


@pytest.mark.parametrize(
    "report",
    [None, {}, {"service_tier": "standard"}, {"input_tokens": None}, {"total": 5},
     {"input_tokens": "300"}, {"input_tokens": True},
     {"input_tokens": -5, "output_tokens": float("nan")}],
)  # fmt: skip
def test_what_tells_no_tokens_is_no_report(report: Any) -> None:
    assert read(report) is None


def test_zeros_are_a_report() -> None:
    assert read({"input_tokens": 0, "output_tokens": 0}) == Usage()


@pytest.mark.parametrize(
    "report",
    [
        {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 10**9}},
        {"prompt_tokens": 10, "prompt_tokens_details": [1]},
        {"input": 1, "cost": float("inf"), "output": 10**400, "cacheRead": float("nan")},
        {"input": 1.0, "cost": {"total": "much"}},
        {"input_tokens": 5, "cache_creation": {"ephemeral_1h_input_tokens": 99}},
    ],
)
def test_nonsense_makes_no_negative_and_no_invented_tokens(report: Any) -> None:
    found = read(report)
    assert found is not None
    assert min(found[:5]) >= 0
    assert found.sent <= 10
    assert found.written_1h <= found.written
    assert found.cost is None
