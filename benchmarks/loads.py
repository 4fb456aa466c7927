"""Reading a path back: rows, and the message of each decoded from its JSON text.

The plain program walks the same recursive query and decodes by ``json.loads``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import closing
from functools import partial
from typing import Any

from measure import (
    Bench,
    Clock,
    Figure,
    Target,
    at_most,
    blocking,
    cost,
    expect,
    microseconds,
    milliseconds,
    number,
    race,
)
from plain import EVERYTHING, Lean, Plain, decoded
from samples import batches, messages, turns

from sessiontree import Conversation, open_store

NEWEST = 20
TIMES = 50
"""How often the newest are read in one round."""


async def run(bench: Bench) -> AsyncIterator[Figure]:
    whole, long = bench.pick(10_000, 2_000, 200), bench.pick(50_000, 10_000, 400)
    async for figure in _compare(
        bench, f"load {number(whole)} messages", whole, None, 1, at_most(1.5, 1.2)
    ):
        yield figure
    async for figure in _compare(
        bench, f"newest {NEWEST} of {number(long)}", long, NEWEST, TIMES, at_most(2, 1.5)
    ):
        yield figure


async def _compare(
    bench: Bench, subject: str, length: int, newest: int | None, times: int, target: Target
) -> AsyncIterator[Figure]:
    said = messages(length)[-(newest or length) :]
    async with open_store(bench.folder / f"load-{length}.db", durability="normal") as store:
        chat = await store.conversation()
        for batch in batches(turns(length // 4)):
            await chat.append(batch)
        with (
            closing(Plain(bench.folder / f"load-{length}-plain.db", "normal")) as plain,
            closing(Lean(bench.folder / f"load-{length}-lean.db", "normal")) as lean,
        ):
            contenders = {
                "ours": partial(_ours, chat, newest, times, said),
                "plain": blocking(
                    partial(_plain, plain, _fill(plain, length), newest, times, said)
                ),
                "lean": blocking(partial(_plain, lean, _fill(lean, length), newest, times, said)),
            }
            spent = await race(bench.rounds(21), contenders)

    told = milliseconds if newest is None else microseconds(times)
    yield cost(subject, spent["ours"], spent["plain"], told, target)
    yield cost("… against the lean program", spent["ours"], spent["lean"], told)


def _fill(program: Plain | Lean, length: int) -> int:
    conversation = program.conversation()
    for batch in batches(turns(length // 4)):
        program.append(conversation, batch)
    return conversation


async def _ours(
    chat: Conversation, newest: int | None, times: int, said: list[dict[str, Any]]
) -> float:
    natives: list[dict[str, Any]] = []
    with Clock() as clock:
        for _ in range(times):
            path = await chat.path(newest=newest)
            natives = [message.native for message in path]
    expect(natives == said, True, "ours gives back what was said")
    return clock.seconds


def _plain(
    program: Plain | Lean,
    conversation: int,
    newest: int | None,
    times: int,
    said: list[dict[str, Any]],
) -> float:
    natives: list[dict[str, Any]] = []
    with Clock() as clock:
        for _ in range(times):
            rows = program.path(conversation, newest or EVERYTHING)
            natives = decoded(rows)
    expect(natives == said, True, "the plain program gives back what was said")
    return clock.seconds
