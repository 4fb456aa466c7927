"""Blocking work, off the event loop's thread."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar, TypeVarTuple

S = TypeVar("S")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")


async def in_thread(work: Callable[[*Ts], T], *args: *Ts) -> T:
    """``work(*args)`` in a thread. A caller that is cancelled waits until it has ended, so
    that nothing it works on is taken from under it."""
    from anyio import to_thread  # imported when needed: it would slow every start

    return await to_thread.run_sync(work, *args)


async def beside(other: Awaitable[S], work: Callable[[*Ts], T], *args: *Ts) -> tuple[S, T]:
    """What ``other`` comes to, and ``work(*args)``, done in a thread meanwhile. Both have ended
    when this ends, also by an error or a cancellation."""
    from anyio import create_task_group

    first: list[S] = []
    done: list[T] = []

    async def run() -> None:
        done.append(await in_thread(work, *args))

    try:
        async with create_task_group() as group:
            group.start_soon(run)
            first.append(await other)
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return first[0], done[0]
