"""Turns per second: four messages of 1 KB and a head move, one transaction for each turn.

Ours gets one task for each conversation; the plain program serves the same conversations
in a round, one turn after the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, closing
from functools import partial
from typing import NamedTuple

import orjson
from measure import (
    Bench,
    Clock,
    Contender,
    Figure,
    Target,
    at_least,
    blocking,
    expect,
    per_second,
    race,
    speed,
)
from plain import Durability, Lean, Message, Plain, decoded
from samples import Turn, turns

from sessiontree import Conversation, open_store


class Case(NamedTuple):
    """What is compared: how durable, how many conversations at once, which turns."""

    durability: Durability
    at_once: int
    target: Target | None = None
    tools: bool = True

    def __str__(self) -> str:
        who = "1 conversation" if self.at_once == 1 else f"{self.at_once} conversations at once"
        what = "" if self.tools else ", text only"
        return f"turns/s, {who}, {self.durability.upper()}{what}"


CASES = (
    Case("full", 1, at_least(0.7, 0.8)),
    Case("full", 1, tools=False),
    Case("full", 8),
    Case("full", 64, at_least(3, 4)),
    Case("full", 64, tools=False),
    Case("normal", 1),
    Case("normal", 8),
    Case("normal", 64),
)
"""The promise is made for the default; the others are told beside it."""


async def run(bench: Bench) -> AsyncIterator[Figure]:
    cases = [case for case in CASES if case.target or not bench.tiny]
    for number, case in enumerate(cases):
        for figure in await _compare(bench, case, bench.pick(256, 64), f"appends-{number}"):
            yield figure


async def _compare(bench: Bench, case: Case, count: int, name: str) -> list[Figure]:
    said = list(turns(count, tools=case.tools))
    programs: dict[str, Plain | Lean] = {
        "plain": Plain(bench.folder / f"{name}-plain.db", case.durability),
        "orjson": Plain(bench.folder / f"{name}-orjson.db", case.durability, _orjson),
        "lean": Lean(bench.folder / f"{name}-lean.db", case.durability),
    }
    with ExitStack() as stack:
        contenders: dict[str, Contender] = {}
        for who, program in programs.items():
            stack.enter_context(closing(program))
            begun = [program.conversation() for _ in range(case.at_once)]
            contenders[who] = blocking(partial(_plain, program, begun, said))
        async with open_store(bench.folder / f"{name}.db", durability=case.durability) as store:
            chats = [await store.conversation() for _ in range(case.at_once)]
            times = await race(
                bench.rounds(15), {"ours": partial(_ours, chats, said), **contenders}
            )
    told = per_second(count)
    return [
        speed(str(case), times["ours"], times["plain"], told, case.target),
        speed("… against plain with orjson, as we have", times["ours"], times["orjson"], told),
        speed("… against the lean program", times["ours"], times["lean"], told),
    ]


def _orjson(message: Message) -> str:
    return orjson.dumps(message).decode()


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
