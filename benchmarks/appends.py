"""Turns per second: four messages of 1 KB and a head move, one transaction for each turn.

Ours gets one task for each conversation; the plain program serves the same conversations
in a round, one turn after the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing
from functools import partial

from measure import (
    Bench,
    Clock,
    Figure,
    Target,
    at_least,
    blocking,
    expect,
    per_second,
    race,
    speed,
)
from plain import Durability, Lean, Plain, decoded
from samples import Turn, turns

from sessiontree import Conversation, open_store

TARGETS: dict[int, Target | None] = {1: at_least(0.7, 0.8), 8: None, 64: at_least(3, 4)}


async def run(bench: Bench) -> AsyncIterator[Figure]:
    for durability in ("full", "normal"):
        for at_once, target in TARGETS.items():
            async for figure in _compare(bench, durability, at_once, target):
                yield figure


async def _compare(
    bench: Bench, durability: Durability, at_once: int, target: Target | None
) -> AsyncIterator[Figure]:
    name = f"{durability}-{at_once}"
    count = bench.pick(256, 64)
    said = list(turns(count))
    async with open_store(bench.folder / f"{name}.db", durability=durability) as store:
        chats = [await store.conversation() for _ in range(at_once)]
        with (
            closing(Plain(bench.folder / f"{name}-plain.db", durability)) as plain,
            closing(Lean(bench.folder / f"{name}-lean.db", durability)) as lean,
        ):
            contenders = {
                "ours": partial(_ours, chats, said),
                "plain": blocking(partial(_plain, plain, _begin(plain, at_once), said)),
                "lean": blocking(partial(_plain, lean, _begin(lean, at_once), said)),
            }
            times = await race(bench.pick(21, 3), contenders)
    who = "1 conversation" if at_once == 1 else f"{at_once} conversations at once"
    told = per_second(count)
    yield speed(
        f"turns/s, {who}, {durability.upper()}",
        times["ours"],
        times["plain"],
        told,
        # the promise is made for the default; NORMAL is told beside it
        target if durability == "full" else None,
    )
    yield speed("… against the lean program", times["ours"], times["lean"], told)


def _begin(program: Plain | Lean, count: int) -> list[int]:
    return [program.conversation() for _ in range(count)]


async def _ours(chats: list[Conversation], said: list[Turn]) -> float:
    shares = [said[i :: len(chats)] for i in range(len(chats))]
    with Clock() as clock:
        await asyncio.gather(*map(_talk, chats, shares))
    for chat, share in zip(chats, shares, strict=True):
        newest = await chat.path(newest=4)
        expect([message.native for message in newest], share[-1], "the turn saved last by ours")
    return clock.seconds


async def _talk(chat: Conversation, share: list[Turn]) -> None:
    for turn in share:
        await chat.append(turn)


def _plain(program: Plain | Lean, conversations: list[int], said: list[Turn]) -> float:
    with Clock() as clock:
        for number, turn in enumerate(said):
            program.append(conversations[number % len(conversations)], turn)
    newest = program.path(conversations[-1], 4)
    expect(decoded(newest), said[-1], "the turn saved last by the plain program")
    return clock.seconds
