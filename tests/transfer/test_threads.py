"""Work in a thread beside what is awaited: both end before anything is told."""

from __future__ import annotations

import asyncio
from threading import Event

import anyio
import pytest

from sessiontree.transfer.threads import alongside


def fail(what: str) -> None:
    raise ValueError(what)


async def fails(what: str) -> None:
    await asyncio.sleep(0)
    raise KeyError(what)


async def test_both_go_on_at_the_same_time_and_the_work_is_told():
    begun, met = asyncio.Event(), Event()
    loop = asyncio.get_running_loop()

    def work(value: int) -> int:
        loop.call_soon_threadsafe(begun.set)
        assert met.wait(60)
        return value + 1

    async def meet() -> None:
        await begun.wait()
        met.set()

    assert await alongside(meet(), work, 4) == 5


async def test_an_error_of_what_is_awaited_waits_for_the_work_and_counts_first():
    ended: list[bool] = []

    def work() -> None:
        ended.append(True)
        fail("later")

    with pytest.raises(KeyError, match="first"):
        await alongside(fails("first"), work)
    assert ended == [True]


async def test_an_error_of_the_work_is_told_when_the_other_has_ended():
    ended: list[bool] = []

    async def other() -> None:
        await asyncio.sleep(0)
        ended.append(True)

    with pytest.raises(ValueError, match="it"):
        await alongside(other(), fail, "it")
    assert ended == [True]


@pytest.mark.parametrize("how", ["task", "scope"])
async def test_who_is_cancelled_waits_until_the_work_has_ended(how: str):
    begun, let_go = asyncio.Event(), Event()
    loop = asyncio.get_running_loop()
    ended: list[bool] = []

    def work() -> None:
        loop.call_soon_threadsafe(begun.set)
        assert let_go.wait(60)
        ended.append(True)

    async def begin() -> None:
        await alongside(asyncio.Event().wait(), work)

    async def in_a_scope() -> None:
        with scope:
            await begin()

    scope = anyio.CancelScope()
    running = asyncio.ensure_future(in_a_scope() if how == "scope" else begin())
    await begun.wait()
    if how == "scope":
        scope.cancel()
    else:
        running.cancel()
    loop.call_later(0.05, let_go.set)
    await asyncio.wait({running})
    assert ended == [True]
    assert running.cancelled() == (how == "task")
