"""Branch, rewind and undo on a chain of 10 … 1,000,000 messages.

Held against a plain pointer UPDATE, a transaction of its own, in the same file. The
figure against it is taken at the worst of the lengths. *Flat* is the slowest length over
the fastest.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

from measure import (
    Bench,
    Clock,
    Contender,
    Figure,
    Times,
    at_most,
    blocking,
    cost,
    expect,
    microseconds,
    number,
    race,
)
from plain import Durability, Plain
from samples import chain

from sessiontree import Conversation, open_store

LENGTHS = (10, 1_000, 100_000, 1_000_000)
QUICK_LENGTHS = (10, 1_000, 10_000)
TINY_LENGTHS = (10, 100)
MOVES = 20
"""How many in one round; even, so that the head ends where it was."""


class Place(NamedTuple):
    """One chain, as both know it."""

    length: int
    chat: Conversation
    plain: Plain
    pointer: int
    """The conversation whose head the plain program moves: an empty one of its own."""


async def run(bench: Bench) -> AsyncIterator[Figure]:
    lengths = TINY_LENGTHS if bench.tiny else QUICK_LENGTHS if bench.quick else LENGTHS
    files = [(length, bench.folder / f"chain-{length}.db") for length in lengths]
    for length, file in files:
        await chain(file, length)
    for durability in ("full", "normal"):
        for figure in await _measure(files, durability, bench.rounds(31)):
            yield figure


async def _measure(
    files: list[tuple[int, Path]], durability: Durability, rounds: int
) -> list[Figure]:
    async with AsyncExitStack() as stack:
        places = [await _open(stack, length, file, durability) for length, file in files]
        contenders: dict[str, Contender] = {}
        for place in places:
            contenders |= _contenders(place)
        times = await race(rounds, contenders)
    lengths = [length for length, _ in files]
    figures: list[Figure] = []
    for action in ("branch", "rewind", "undo"):
        figures += _figures(action, lengths, times, durability)
    return figures


async def _open(stack: AsyncExitStack, length: int, file: Path, durability: Durability) -> Place:
    store = await stack.enter_async_context(open_store(file, durability=durability))
    plain = stack.enter_context(closing(Plain(file, durability)))
    return Place(length, await store.open(1), plain, plain.conversation())


def _contenders(place: Place) -> dict[str, Contender]:
    """In this order: what undo takes back is the rewinds of the same round."""
    works: dict[str, Contender] = {
        "plain": blocking(partial(_point, place)),
        "branch": partial(_branch, place),
        "rewind": partial(_rewind, place),
        "undo": partial(_undo, place),
    }
    return {f"{name} {place.length}": work for name, work in works.items()}


async def _branch(place: Place) -> float:
    with Clock() as clock:
        for _ in range(MOVES // 2):
            await place.chat.branch(1)
            await place.chat.branch(place.length)
    return clock.seconds


async def _rewind(place: Place) -> float:
    with Clock() as clock:
        for _ in range(MOVES // 2):
            await place.chat.rewind("start")
            await place.chat.rewind("end")
    return clock.seconds


async def _undo(place: Place) -> float:
    with Clock() as clock:
        for _ in range(MOVES):
            await place.chat.undo()
    head = (await place.chat.refresh()).head
    expect(head, place.length, "the head after as many undos as moves")
    return clock.seconds


def _point(place: Place) -> float:
    with Clock() as clock:
        for _ in range(MOVES // 2):
            place.plain.point(place.pointer, 1)
            place.plain.point(place.pointer, place.length)
    return clock.seconds


def _figures(action: str, lengths: list[int], times: Times, durability: Durability) -> list[Figure]:
    mine = {length: times[f"{action} {length}"] for length in lengths}
    plain = {length: times[f"plain {length}"] for length in lengths}
    told = microseconds(MOVES)
    worst = max(
        (cost("", mine[length], plain[length], told) for length in lengths),
        key=lambda figure: figure.median,
    )
    fastest = min(lengths, key=lambda length: median(mine[length]))
    slowest = max(lengths, key=lambda length: median(mine[length]))
    flat = cost(
        f"… flat at {' / '.join(map(number, lengths))} messages",
        mine[slowest],
        mine[fastest],
        told,
        at_most(1.25, 1.1),
    )
    against = replace(
        worst,
        subject=f"{action}, {durability.upper()}, against a pointer UPDATE",
        # the promise is made for the default; NORMAL is told beside it
        target=at_most(1.5, 1.5) if durability == "full" else None,
        ours=" / ".join(told(mine[length]) for length in lengths),
        plain=" / ".join(told(plain[length]) for length in lengths),
    )
    return [against, replace(flat, plain=f"ours: {flat.plain}")]
