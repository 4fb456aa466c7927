"""A month of sessions: what adds up, what a ladder changes, and what no longer fits."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessiontree.core.forecast import Ladder, Load, Month, month
from sessiontree.core.usage import Usage
from sessiontree.errors import BadArgument

PLAIN = Load(
    users=1, sessions=1, turns=3, prompt=10, answer=20, calls=1, results=0, system=100, cache=False
)


def by_kind(usage: Usage) -> Decimal:
    """Sent 1, cached a tenth, written a quarter more, output 5: as providers have it."""
    return (
        Decimal(usage.input)
        + usage.cached * Decimal("0.1")
        + usage.written * Decimal("1.25")
        + usage.output * 5
    )


def test_each_request_sends_all_that_was_said() -> None:
    found = month(PLAIN, by_kind)
    assert found.requests == 3
    assert found.input == 110 + 140 + 170
    assert found.output == 60
    assert found.money == 420 + 300
    assert (found.largest, found.ends) == (170, None)


def test_a_round_of_tools_is_a_request_and_its_results_are_sent_again() -> None:
    found = month(PLAIN._replace(turns=1, calls=3, results=7), by_kind)
    assert found.requests == 3
    assert found.input == 110 + (110 + 20 + 3) + (110 + 20 + 3 + 20 + 4)


def test_a_prompt_that_is_cached_is_written_once_and_read_then() -> None:
    found = month(PLAIN._replace(cache=True), by_kind)
    assert (found.input, found.written, found.cached) == (0, 110 + 30 + 30, 110 + 140)


def test_users_and_sessions_multiply() -> None:
    one, many = month(PLAIN, by_kind), month(PLAIN._replace(users=30, sessions=7), by_kind)
    assert (many.input, many.money, many.requests) == (210 * one.input, 210 * one.money, 630)
    assert many.largest == one.largest


def test_a_model_refuses_the_turn_that_no_longer_fits_its_window() -> None:
    found = month(PLAIN, by_kind, window=165)
    assert (found.ends, found.requests) == (3, 2)
    assert month(PLAIN, by_kind, window=190).ends is None


AGENT = Load(
    users=1, sessions=1, turns=60, prompt=200, answer=300, calls=4, results=6_000, system=4_000
)


@pytest.mark.parametrize("summary", [0, 1_000])
@pytest.mark.parametrize("budget", [30_000, 60_000, 100_000])
def test_with_a_ladder_no_turn_begins_over_its_share(budget: int, summary: int) -> None:
    ladder = Ladder(budget, summary=summary)
    found = month(AGENT, by_kind, ladder=ladder, window=budget)
    assert found.ends is None
    assert found.largest <= budget * ladder.threshold + 6_000 + 3 * 300
    assert found.reclaims > 0


def test_a_ladder_that_is_never_climbed_changes_nothing() -> None:
    assert month(AGENT, by_kind, ladder=Ladder(10_000_000)) == month(AGENT, by_kind)


def test_a_summary_is_paid_for() -> None:
    talk = Load(
        users=1, sessions=1, turns=100, prompt=500, answer=500, calls=1, results=0, system=0
    )
    cut = month(talk, by_kind, ladder=Ladder(20_000, summary=0))
    summed = month(talk, by_kind, ladder=Ladder(20_000, summary=1_000))
    assert summed.requests > cut.requests == 100
    assert summed.output > cut.output


def test_a_summary_is_sent_from_then_on() -> None:
    talk = Load(1, 1, 14, 500, 500, 1, 0, 0, False)
    small = month(talk, by_kind, ladder=Ladder(20_000, threshold=0.5, summary=10))
    large = month(talk, by_kind, ladder=Ladder(20_000, threshold=0.5, summary=110))
    assert small.reclaims == large.reclaims == 1
    sent_later = 14 - 10  # the window is over its share when the eleventh turn begins
    assert large.input - small.input == 100 * sent_later


def test_old_results_go_before_anything_is_summarised_or_cut() -> None:
    found = month(AGENT._replace(turns=14), by_kind, ladder=Ladder(100_000))
    assert found.reclaims > 0
    assert found.requests == 14 * 4  # no summary was asked for


def test_without_the_providers_cache_a_ladder_saves_most() -> None:
    plain = AGENT._replace(cache=False)
    full, short = month(plain, by_kind), month(plain, by_kind, ladder=Ladder(60_000))
    cached = month(AGENT, by_kind), month(AGENT, by_kind, ladder=Ladder(60_000))
    assert short.money / full.money < cached[1].money / cached[0].money
    assert short.money < full.money / 2


LOADS = st.builds(
    Load,
    users=st.integers(1, 3),
    sessions=st.integers(1, 3),
    turns=st.integers(1, 30),
    prompt=st.integers(0, 2_000),
    answer=st.integers(0, 2_000),
    calls=st.integers(1, 4),
    results=st.integers(0, 9_000),
    system=st.integers(0, 1_000),
    cache=st.booleans(),
)


@given(LOADS, st.integers(5_000, 80_000), st.integers(0, 1_000))
def test_for_any_load_the_sums_hold(load: Load, budget: int, summary: int) -> None:
    seen = list[Usage]()

    def noted(usage: Usage) -> Decimal:
        seen.append(usage)
        return by_kind(usage)

    found = month(load, noted, ladder=Ladder(budget, summary=summary))
    many = load.users * load.sessions
    assert all(min(usage[:4]) >= 0 for usage in seen)
    assert found.money == many * sum(map(by_kind, seen))
    assert found.tokens == many * sum(usage.sent + usage.output for usage in seen)
    assert found.requests == many * len(seen) >= many * load.turns * load.calls
    assert found.largest == max(usage.sent for usage in seen)


@pytest.mark.parametrize(
    ("load", "ladder"),
    [
        (Load(users=0), None),
        (Load(turns=0), None),
        (Load(turns=10**9), None),
        (Load(calls=0), None),
        (Load(prompt=-1), None),
        (Load(system=5_000), Ladder(7_000)),
    ],
)
def test_numbers_that_no_month_has_are_refused(load: Load, ladder: Ladder | None) -> None:
    with pytest.raises(BadArgument):
        month(load, by_kind, ladder=ladder)


def test_a_month_of_nothing_is_empty() -> None:
    assert Month().tokens == 0
