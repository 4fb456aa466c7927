"""Units of work on their way: what came of them, and who is told."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any


@dataclass(slots=True, eq=False)
class Job:
    """A unit of work that is done at once, on its caller's own thread."""

    unit: Callable[..., Any]
    args: tuple[Any, ...]
    then: Callable[[Any], None] | None
    """Learns the result, on the caller's event loop."""
    result: Any = None
    error: BaseException | None = None
    kept: bool = False
    """Whether what the unit did is in the store, whatever was raised since."""
    settled: bool = False

    def settle(self) -> None:
        """On the caller's event loop: hand over what came out. Never raises: others follow."""
        self.settled = True
        if self.kept and self.then is not None:
            try:
                self.then(self.result)
            except BaseException as error:
                self.error = error


@dataclass(slots=True, eq=False)
class Waiting(Job):
    """One that waits for its turn; its caller waits for it."""

    future: asyncio.Future[Any] = field(kw_only=True)
    number: int = -1
    """In the order of which they begin."""
    waiter: asyncio.Future[None] | None = None
    """Of a caller that was cancelled, and stays until the unit has ended."""

    def settle(self) -> None:
        Job.settle(self)
        if self.waiter is not None:
            self.waiter.set_result(None)
        if self.future.done():  # the caller was cancelled, or the loop is being torn down
            return
        if isinstance(self.error, StopIteration):  # a future cannot hold it
            self.error = RuntimeError(f"a unit of work raised {self.error!r}")
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


class Ended:
    """Jobs that have ended, and whose callers are to be told: when SQLite is at work again,
    since they will want Python's lock."""

    def __init__(self) -> None:
        self.jobs: list[Waiting] = []

    def tell_half(self) -> None:
        """The first half: the others when SQLite is at work for the next time."""
        half = len(self.jobs) // 2
        _tell(self.jobs[:half])
        self.jobs = self.jobs[half:]

    def tell(self) -> None:
        """Each on the event loop that it came from."""
        jobs, self.jobs = self.jobs, []
        _tell(jobs)


def _tell(jobs: Sequence[Waiting]) -> None:
    for loop, theirs in groupby(jobs, key=_loop_of):
        with contextlib.suppress(RuntimeError):  # it was closed: nobody waits there any more
            loop.call_soon_threadsafe(_settle, list(theirs))


def _loop_of(job: Waiting) -> asyncio.AbstractEventLoop:
    return job.future.get_loop()


def _settle(jobs: Sequence[Waiting]) -> None:
    for job in jobs:
        job.settle()
