"""Blocking work, off the event loop's thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


async def in_thread(work: Callable[[*Ts], T], *args: *Ts) -> T:
    """``work(*args)`` in a thread. A caller that is cancelled waits until it has ended, so
    that nothing it works on is taken from under it."""
    from anyio import to_thread  # imported when needed: it would slow every start

    return await to_thread.run_sync(work, *args)
