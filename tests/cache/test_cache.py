"""What every kind of cache does: keep, find, expire, let go, count."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from sessiontree.cache import Cache
from sessiontree.errors import BadArgument

REQUEST: dict[str, Any] = {
    "model": "claude-opus-5-5",
    "temperature": 0,
    "system": "You draft replies.",
    "messages": [{"role": "user", "content": "Where is order LK-266415?"}],
}
ANSWER = {
    "id": "msg_1",
    "model": "claude-opus-5-5",
    "content": [{"type": "text", "text": "It left on Monday."}],
    "usage": {"input_tokens": 1000, "cache_read_input_tokens": 500, "output_tokens": 20},
}


def numbered(n: int) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": str(n)}]}


async def test_what_was_put_is_found_and_nothing_else_is(cache: Cache) -> None:
    assert await cache.get(REQUEST) is None
    assert await cache.put(REQUEST, ANSWER) is True
    hit = await cache.get(REQUEST)
    assert hit is not None
    assert (hit.response, hit.usage, hit.model) == (ANSWER, ANSWER["usage"], "claude-opus-5-5")
    assert await cache.get(REQUEST | {"model": "claude-haiku-5-5"}) is None


async def test_the_order_of_keys_makes_no_difference(cache: Cache) -> None:
    await cache.put(REQUEST, ANSWER)
    assert await cache.get(dict(reversed(REQUEST.items()))) is not None


@pytest.mark.parametrize(
    "change",
    [
        {"system": "You draft replies"},
        {"messages": []},
        {"messages": [*REQUEST["messages"], *REQUEST["messages"]]},
        {"max_tokens": 10},
        {"temperature": 0.0},
        {"model": "claude-opus-5"},
    ],
)
async def test_any_other_request_is_another_one(cache: Cache, change: dict[str, Any]) -> None:
    await cache.put(REQUEST, ANSWER)
    assert await cache.get(REQUEST | change) is None


@pytest.mark.parametrize(
    "answer",
    [b"\x00\xff bytes", "text \ud800 \U0001f600 \0", {"a": [1, 2.5, None, "\ud800"]}, [1], 7, None],
)
async def test_bytes_text_and_json_come_back_as_they_were(cache: Cache, answer: Any) -> None:
    assert await cache.put(REQUEST, answer)
    hit = await cache.get(REQUEST)
    assert hit is not None
    assert hit.response == answer
    assert type(hit.response) is type(answer)


async def test_an_answer_that_was_put_again_replaces_the_first(cache: Cache) -> None:
    await cache.put(REQUEST, {"n": 1})
    await cache.put(REQUEST, {"n": "a longer one"})
    hit = await cache.get(REQUEST)
    assert hit is not None
    assert hit.response == {"n": "a longer one"}
    stats = await cache.stats()
    assert (stats.entries, stats.bytes) == (1, len('{"n":"a longer one"}'))


async def test_a_hit_is_nobody_elses_object(cache: Cache) -> None:
    await cache.put(REQUEST, ANSWER)
    first = await cache.get(REQUEST)
    assert first is not None
    first.response["content"].clear()
    second = await cache.get(REQUEST)
    assert second is not None
    assert second.response == ANSWER


async def test_statistics_count_hits_misses_bytes_tokens_and_money(cache: Cache) -> None:
    await cache.get(REQUEST)
    await cache.put(
        REQUEST, ANSWER, usage={"prompt_tokens": 100, "completion_tokens": 7, "cost": 0.25}
    )
    for _ in range(3):
        assert await cache.get(REQUEST)
    stats = await cache.stats()
    assert (stats.hits, stats.misses, stats.hit_rate, stats.entries) == (3, 1, 0.75, 1)
    assert (stats.input_tokens, stats.output_tokens) == (300, 21)
    assert (stats.dollars, stats.unpriced) == (Decimal("0.75"), 0)
    assert stats.bytes > len(str(ANSWER["content"]))


async def test_money_is_saved_at_the_price_of_the_model(cache: Cache) -> None:
    pytest.importorskip("genai_prices", reason="the extra `prices` is not installed")
    await cache.put(REQUEST, ANSWER)
    await cache.put(numbered(1), {"model": "made-up", "usage": {"prompt_tokens": 5}})
    await cache.get(REQUEST)
    await cache.get(numbered(1))
    stats = await cache.stats()
    # 1,000 at $4, 500 read from the provider's cache at $0.20, 20 out at $20 a million
    assert stats.dollars == Decimal("0.0045")
    assert stats.unpriced == 1


async def test_hits_are_counted_for_each_answer(cache: Cache) -> None:
    await cache.put(REQUEST, ANSWER)
    found = [await cache.get(REQUEST) for _ in range(3)]
    assert [hit.hits for hit in found if hit] == [1, 2, 3]


async def test_one_request_can_be_invalidated(cache: Cache) -> None:
    await cache.put(numbered(1), {})
    await cache.put(numbered(2), {})
    assert await cache.invalidate(request=numbered(1)) == 1
    assert await cache.get(numbered(1)) is None
    assert await cache.get(numbered(2)) is not None
    assert await cache.invalidate(request=numbered(1)) == 0


async def test_a_conversation_can_be_invalidated(cache: Cache) -> None:
    for n in range(4):
        await cache.put(numbered(n), {}, conversation=n % 2)
    await cache.put(numbered(0), {}, conversation="another")
    assert await cache.invalidate(conversation=0) == 2
    assert [bool(await cache.get(numbered(n))) for n in range(4)] == [False, True, False, True]
    assert await cache.invalidate(conversation="another") == 0  # it went with the first
    assert await cache.invalidate(conversation=0) == 0


async def test_what_is_over_an_age_can_be_invalidated(cache: Cache) -> None:
    await cache.put(numbered(1), {})
    assert await cache.invalidate(older_than=3600) == 0
    await asyncio.sleep(0.002)
    assert await cache.invalidate(older_than=0.001) == 1
    assert (await cache.stats()).entries == 0


async def test_all_can_be_cleared_and_what_was_saved_stays_counted(cache: Cache) -> None:
    for n in range(5):
        await cache.put(numbered(n), {"usage": {"prompt_tokens": 10}})
    await cache.get(numbered(0))
    assert await cache.clear() == 5
    stats = await cache.stats()
    assert (stats.entries, stats.bytes, stats.hits, stats.input_tokens) == (0, 0, 1, 10)


@pytest.mark.parametrize(
    "what", [{}, {"conversation": 1, "older_than": 3}, {"older_than": -1}, {"older_than": "3"}]
)
async def test_an_invalidation_of_nothing_or_of_nonsense_is_refused(
    cache: Cache, what: dict[str, Any]
) -> None:
    with pytest.raises(BadArgument):
        await cache.invalidate(**what)


async def test_what_was_unused_for_longest_goes_when_there_is_no_room(cache_at: Any) -> None:
    async with cache_at(max_bytes=3_100) as cache:
        for n in range(3):
            assert await cache.put(numbered(n), "x" * 1_000)
            await asyncio.sleep(0.001)  # the clocks count microseconds
        assert await cache.get(numbered(0))
        await cache.put(numbered(3), "x" * 1_000)
        assert [bool(await cache.get(numbered(n))) for n in range(4)] == [True, False, True, True]
        stats = await cache.stats()
        assert (stats.entries, stats.bytes) == (3, 3_000)


async def test_an_answer_larger_than_the_cache_is_not_kept_and_pushes_nothing_out(
    cache_at: Any,
) -> None:
    async with cache_at(max_bytes=1_000) as cache:
        assert await cache.put(numbered(1), "x" * 900)
        assert not await cache.put(numbered(2), "x" * 1_001)
        assert await cache.get(numbered(1))


async def test_a_cache_can_be_trimmed(cache: Cache) -> None:
    for n in range(10):
        await cache.put(numbered(n), "x" * 100)
    assert await cache.trim(250) == 8
    assert (await cache.stats()).bytes == 200
    assert await cache.trim(0) == 2


async def test_another_scope_finds_nothing_and_invalidates_nothing(
    cache_at: Any, target: str
) -> None:
    if target == ":memory:":
        pytest.skip("two handles never share a cache in memory")
    async with cache_at(scope="camille") as hers, cache_at(scope="bob") as his:
        await hers.put(REQUEST, ANSWER, conversation=1)
        assert await his.get(REQUEST) is None
        assert await his.invalidate(conversation=1) == 0
        assert await his.invalidate(request=REQUEST) == 0
        assert await hers.get(REQUEST) is not None


async def test_two_handles_share_what_they_keep(cache_at: Any, target: str) -> None:
    if target == ":memory:":
        pytest.skip("two handles never share a cache in memory")
    async with cache_at() as one, cache_at() as other:
        await one.put(REQUEST, ANSWER)
        assert await other.get(REQUEST)
        assert (await one.stats()).hits == 1


TOOL = {"name": "send_mail", "input_schema": {"type": "object"}}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"temperature": 0.7}, "its temperature is 0.7"),
        ({"generationConfig": {"temperature": 1}}, "its temperature is 1"),
        ({"tools": [TOOL]}, "these tools may have side effects: send_mail"),
    ],
)
async def test_sampling_and_side_effects_are_not_cached_unless_asked(
    cache: Cache, asked: Any, change: dict[str, Any], why: str
) -> None:
    request = REQUEST | change
    assert cache.refuses(request) == why
    assert not await cache.put(request, ANSWER)
    assert await cache.get(request) is None
    assert [await cache.through(request, asked) for _ in range(2)] == [{"n": 1}, {"n": 2}]
    assert cache.refused == 4
    assert (await cache.stats()).misses == 0

    assert await cache.put(request, ANSWER, force=True)
    assert (await cache.get(request, force=True)).response == ANSWER  # type: ignore[union-attr]
    assert await cache.through(request, asked, force=True) == ANSWER
    assert asked.times == 2


async def test_tools_that_are_said_to_be_safe_are_cached(cache_at: Any, asked: Any) -> None:
    async with cache_at(safe_tools=["send_mail"]) as cache:
        request = REQUEST | {"tools": [TOOL]}
        assert cache.refuses(request) is None
        assert [await cache.through(request, asked) for _ in range(2)] == [{"n": 1}] * 2
