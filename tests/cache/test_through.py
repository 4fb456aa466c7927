"""`through`: one request for those who ask the same, and nothing of the cache's own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sessiontree.cache import Cache, open_cache

REQUEST: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture
async def cache(tmp_path: Any):
    async with open_cache(tmp_path / "answers.db") as opened:
        yield opened


class Reply:
    """An object as SDKs return them."""

    def __init__(self, text: str) -> None:
        self.text = text

    def model_dump(self, mode: str = "python") -> dict[str, Any]:
        assert mode == "json"
        return {"text": self.text, "usage": {"input_tokens": 3, "output_tokens": 1}}


async def test_the_second_time_nobody_is_asked(cache: Cache, asked: Any) -> None:
    assert [await cache.through(REQUEST, asked) for _ in range(3)] == [{"n": 1}] * 3
    assert asked.times == 1


async def test_the_call_gets_the_request_that_is_the_key(cache: Cache) -> None:
    async def ask(request: Any) -> Any:
        return request["messages"]

    assert await cache.through(REQUEST, ask) == REQUEST["messages"]


async def test_a_fresh_answer_replaces_the_kept_one(cache: Cache, asked: Any) -> None:
    await cache.through(REQUEST, asked)
    assert await cache.through(REQUEST, asked, fresh=True) == {"n": 2}
    assert await cache.through(REQUEST, asked) == {"n": 2}


async def test_of_many_who_ask_at_once_one_makes_the_request(cache: Cache, asked: Any) -> None:
    asked.gate = asyncio.Event()
    waiting = [asyncio.ensure_future(cache.through(REQUEST, asked)) for _ in range(20)]
    await asked.began.wait()
    asked.gate.set()
    answers = await asyncio.gather(*waiting)
    assert answers == [{"n": 1}] * 20
    assert len({id(answer) for answer in answers}) == 20
    assert (asked.times, cache.shared) == (1, 19)


async def test_other_requests_do_not_wait_for_it(cache: Cache, answering: Any) -> None:
    slow, quick = answering("slow"), answering("quick")
    slow.gate = asyncio.Event()
    waiting = asyncio.ensure_future(cache.through(REQUEST, slow))
    await slow.began.wait()
    assert await cache.through(REQUEST | {"model": "other"}, quick) == "quick"
    slow.gate.set()
    assert await waiting == "slow"


async def test_what_the_call_raises_reaches_all_who_wait_and_is_not_kept(
    cache: Cache, answering: Any
) -> None:
    failing = answering(ConnectionError("overloaded"))
    failing.gate = asyncio.Event()
    waiting = [asyncio.ensure_future(cache.through(REQUEST, failing)) for _ in range(3)]
    await failing.began.wait()
    failing.gate.set()
    found = await asyncio.gather(*waiting, return_exceptions=True)
    assert [str(error) for error in found] == ["overloaded"] * 3
    assert failing.times == 1
    assert await cache.through(REQUEST, answering("well again")) == "well again"
    assert cache.failures == 0


async def test_when_the_one_who_asks_is_cancelled_another_asks(cache: Cache, asked: Any) -> None:
    asked.gate = asyncio.Event()
    first = asyncio.ensure_future(cache.through(REQUEST, asked))
    await asked.began.wait()
    others = [asyncio.ensure_future(cache.through(REQUEST, asked)) for _ in range(3)]
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    asked.gate.set()
    assert await asyncio.gather(*others) == [{"n": 2}] * 3
    assert asked.times == 2


async def test_one_who_waits_may_be_cancelled_alone(cache: Cache, asked: Any) -> None:
    asked.gate = asyncio.Event()
    first = asyncio.ensure_future(cache.through(REQUEST, asked))
    await asked.began.wait()
    second = asyncio.ensure_future(cache.through(REQUEST, asked))
    await asyncio.sleep(0)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    asked.gate.set()
    assert await first == {"n": 1}


async def test_an_sdks_object_is_plain_the_first_time_too(cache: Cache, answering: Any) -> None:
    ask = answering(Reply("hello"))
    first, second = [await cache.through(REQUEST, ask) for _ in range(2)]
    assert first == second == {"text": "hello", "usage": {"input_tokens": 3, "output_tokens": 1}}
    assert ((await cache.stats()).input_tokens, ask.times) == (3, 1)


async def test_load_makes_objects_of_kept_answers(cache: Cache, answering: Any) -> None:
    ask = answering(Reply("hello"))
    both = [
        await cache.through(REQUEST, ask, load=lambda kept: Reply(kept["text"])) for _ in range(2)
    ]
    assert [type(each) for each in both] == [Reply, Reply]
    assert [each.text for each in both] == ["hello", "hello"]
    assert ask.times == 1


async def test_a_kept_answer_that_cannot_be_loaded_is_asked_for_again(
    cache: Cache, answering: Any
) -> None:
    await cache.put(REQUEST, {"of": "an older SDK"})
    reply = Reply("new")
    found = await cache.through(REQUEST, answering(reply), load=lambda kept: Reply(kept["text"]))
    assert found is reply
    assert isinstance(cache.last_failure, KeyError)


async def test_what_cannot_be_kept_is_given_to_each_who_asks(cache: Cache) -> None:
    gate, made = asyncio.Event(), list[object]()

    async def ask(request: Any) -> Any:
        made.append(object())
        await gate.wait()
        return object()

    waiting = [asyncio.ensure_future(cache.through(REQUEST, ask)) for _ in range(3)]
    while not made:  # noqa: ASYNC110
        await asyncio.sleep(0)
    gate.set()
    assert all(type(each) is object for each in await asyncio.gather(*waiting))
    assert len(made) == 3
    assert cache.failures == 1
    assert (await cache.stats()).entries == 0


@pytest.mark.parametrize(
    "request_", [{"timeout": object()}, {"x": float("nan")}, {1: 2, "a": 3}, ["no mapping"], None]
)
async def test_a_request_that_cannot_be_hashed_is_made_all_the_same(
    cache: Cache, asked: Any, request_: Any
) -> None:
    assert await cache.through(request_, asked) == {"n": 1}
    assert await cache.get(request_) is None
    assert not await cache.put(request_, {})
    assert cache.failures == 3
    assert cache.last_failure is not None


async def test_after_the_cache_was_closed_requests_are_still_made(
    tmp_path: Any, asked: Any
) -> None:
    async with open_cache(tmp_path / "answers.db") as cache:
        await cache.through(REQUEST, asked)
    assert await cache.through(REQUEST, asked) == {"n": 2}
    assert "closed" in str(cache.last_failure)
