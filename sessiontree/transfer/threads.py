"""Blocking work, off the event loop's thread."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


async def in_thread(work: Callable[[*Ts], T], *args: *Ts) -> T:
    """``work(*args)`` in a thread. A caller that is cancelled waits until it has ended, so
    that nothing it works on is taken from under it."""
    from anyio import to_thread  # imported when needed: it would slow every start

    return await to_thread.run_sync(work, *args)


async def alongside(awaited: Awaitable[object], work: Callable[[*Ts], T], *args: *Ts) -> T:
    """``work(*args)`` in a thread while ``awaited`` goes on. Ends when both have, however they
    do; an error of ``awaited`` counts before one of the work."""
    from anyio import CancelScope

    beside = asyncio.ensure_future(in_thread(work, *args))
    try:
        await awaited
    except BaseException:
        with CancelScope(shield=True):
            await asyncio.wait({beside})
        if not beside.cancelled():
            beside.exception()  # asked for, so that nobody is told that it was not
        raise
    return await beside
