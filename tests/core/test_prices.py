"""Prices: the caller's own, those of the package, and what is said without either."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal

import pytest

from sessiontree.core import prices
from sessiontree.core.prices import NoPrices, Prices, Rate, rate
from sessiontree.core.usage import Usage
from sessiontree.errors import SessionTreeError

AT = 1_790_000_000_000_000
"""September 2026."""
USAGE = Usage(1_000_000, 2_000_000, 100_000, 10_000)


def test_own_prices_are_dollars_for_a_million_tokens() -> None:
    own = Prices(dict([rate("local=0.5/1.5/0.05/0.6")]), loads=False)
    expected = Decimal("0.5") + Decimal("0.1") + Decimal("0.06") + Decimal("0.015")
    assert own.cost("local", USAGE, AT) == expected


def test_what_is_not_said_of_cached_tokens_costs_what_input_costs() -> None:
    assert rate("m=2/8") == ("m", Rate(*map(Decimal, (2, 8, 2, 2))))
    assert rate("a=b=2/8/1")[0] == "a=b"


@pytest.mark.parametrize(
    "text", ["", "m", "m=", "m=1", "=1/2", "m=1/2/3/4/5", "m=a/b", "m=-1/2", "m=NaN/1"]
)
def test_what_is_no_price_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(SessionTreeError, match="my-model="):
        rate(text)


def test_without_the_package_nothing_is_known_and_it_says_how_to_get_it() -> None:
    none = Prices(loads=False)
    assert not none.any
    assert none.cost("gpt-5.5", USAGE, AT) is None
    assert none.window("gpt-5.5") is None
    with pytest.raises(NoPrices, match=r"sessiontree\[prices\]"):
        none.require("gpt-5.5")


def test_the_package_is_not_loaded_before_a_price_is_asked_for() -> None:
    code = (
        "import sys; from sessiontree.core.prices import Prices; Prices(); "
        "sys.exit('genai_prices' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.fixture
def known() -> Prices:
    if not prices.installed():
        pytest.skip("the extra `prices` is not installed")
    return Prices()


def test_cached_and_written_tokens_have_prices_of_their_own(known: Prices) -> None:
    # claude-opus-5-5: $4 in, $20 out, $0.20 read, $5 written, $8 written for an hour
    assert known.cost("claude-opus-5-5", USAGE, AT) == Decimal("5.1")
    hour = USAGE._replace(written_1h=100_000)
    assert known.cost("claude-opus-5-5", hour, AT) == Decimal("5.4")


def test_a_long_request_costs_what_long_requests_cost(known: Prices) -> None:
    short = known.cost("gemini-2.5-pro", Usage(200_000), AT)
    long = known.cost("gemini-2.5-pro", Usage(200_001), AT)
    assert short is not None
    assert long is not None
    assert long > 1.9 * float(short)


@pytest.mark.parametrize(
    ("model", "format"),
    [
        ("claude-sonnet-4-20250514", "claude_code"),
        ("claude-opus-4-5", "pi"),
        ("anthropic/claude-opus-4.8-fast", "cline"),
        ("us.anthropic.claude-opus-4-5-20251101-v1:0", "bedrock"),
        ("anthropic.claude-opus-4-5-20251101-v1:0", None),
        ("openai/gpt-5-mini", "openai_chat"),
        ("gpt-4o-mini", "openai_responses"),
        ("gemini-2.5-flash", "gemini"),
        ("kimi-k2", "openai_chat"),
    ],
)
def test_models_are_found_by_the_names_that_sessions_have(
    known: Prices, model: str, format: str | None
) -> None:
    assert known.cost(model, USAGE, AT, format=format)


def test_bedrock_has_prices_of_its_own(known: Prices) -> None:
    here = known.cost(
        "us.anthropic.claude-opus-4-5-20251101-v1:0", Usage(10**6), AT, format="bedrock"
    )
    there = known.cost("claude-opus-4-5", Usage(10**6), AT, format="anthropic")
    assert here is not None
    assert there is not None
    assert here > there


@pytest.mark.parametrize("model", ["made-up", "", "/", "a/b/c", "<synthetic>", "é\ud800", None])
def test_an_unknown_model_has_no_price(known: Prices, model: str | None) -> None:
    assert known.cost(model, USAGE, AT) is None


def test_an_unknown_model_is_told_where_a_price_is_needed(known: Prices) -> None:
    with pytest.raises(SessionTreeError, match=r"'made-up' is unknown.*--price made-up="):
        known.require("made-up")
    known.require("gpt-5.5")
    Prices({"made-up": Rate(*[Decimal(1)] * 4)}).require("made-up")


@pytest.mark.parametrize("at", [-(10**18), 0, 10**18, 9 * 10**18])
def test_a_time_beyond_calendars_breaks_nothing(known: Prices, at: int) -> None:
    known.cost("gpt-5.5", USAGE, at)


def test_windows_are_known_where_the_package_knows_them(known: Prices) -> None:
    assert known.window("claude-sonnet-4-20250514") == 200_000
    assert known.window("made-up") is None
