"""Large contents: over 4 KB they are kept apart, by the hash of their bytes, and once.

A turn here is a question, a call, and a tool's result and an answer of 100 KB each. The
plain program keeps each content in its row. The same content again is what an agent that
reads a file twice says; what it costs then is the hash. What a fork of large contents
costs is among the forks.
"""

# ruff: noqa: RUF001 (the sign of a ratio)

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from measure import (
    Bench,
    Clock,
    Contender,
    Figure,
    at_most,
    blocking,
    cost,
    expect,
    milliseconds,
    number,
    per_second,
    race,
    speed,
)
from plain import Plain, decoded
from samples import KB, Turn, turns

from sessiontree import Conversation, open_store

LARGE = 100 * KB


async def run(bench: Bench) -> AsyncIterator[Figure]:
    size = bench.pick(64, 16, 4)
    async with open_store(bench.folder / "blobs.db") as store:
        with closing(Plain(bench.folder / "blobs-plain.db")) as plain:
            chats = {kind: await store.conversation(kind) for kind in ("new", "same")}
            theirs = {kind: plain.conversation() for kind in chats}
            contenders: dict[str, Contender] = {}
            for kind, chat in chats.items():
                contenders[f"ours {kind}"] = partial(_ours, chat, _said(kind, size))
                work = partial(_plain, plain, theirs[kind], _said(kind, size))
                contenders[f"plain {kind}"] = blocking(work)
            times = await race(bench.rounds(9), contenders)
            for kind, told in (("new", "no two alike"), ("same", "the same again")):
                subject = f"turns/s, two contents of 100 KB in each, {told}"
                ours, plainly = times[f"ours {kind}"], times[f"plain {kind}"]
                yield speed(subject, ours, plainly, per_second(size))
            yield await _load(bench, chats["new"], plain, theirs["new"])
    yield await _disk(bench)


def _large(first: int, sort: str) -> Turn:
    """A turn whose last two messages are large."""
    small, large = (
        next(turns(1, size, first=number))
        for size, number in ((KB, first), (LARGE, first if sort == "new" else 0))
    )
    result = large[2] | {"tool_call_id": small[2]["tool_call_id"]}
    return [*small[:2], result, large[3]]


def _said(sort: str, size: int) -> Any:
    """So many turns at each call; no two alike, but for what is the same on purpose."""
    numbers = count()
    return lambda: [_large(next(numbers), sort) for _ in range(size)]


async def _ours(chat: Conversation, make: Any) -> float:
    said = make()
    with Clock() as clock:
        for turn in said:
            await chat.append(turn)
    newest = await chat.path(newest=4)
    expect([message.native for message in newest] == said[-1], True, "ours gives back the turn")
    return clock.seconds


def _plain(program: Plain, conversation: int, make: Any) -> float:
    said = make()
    with Clock() as clock:
        for turn in said:
            program.append(conversation, turn)
    newest = decoded(program.path(conversation, 4))
    expect(newest == said[-1], True, "the plain program gives back the turn")
    return clock.seconds


async def _load(bench: Bench, chat: Conversation, plain: Plain, conversation: int) -> Figure:
    """The newest turns, each message decoded."""
    newest = bench.pick(256, 64, 8)

    async def ours() -> float:
        with Clock() as clock:
            natives = [message.native for message in await chat.path(newest=newest)]
        expect(len(natives), newest, "messages read by ours")
        return clock.seconds

    def plainly() -> float:
        with Clock() as clock:
            natives = decoded(plain.path(conversation, newest))
        expect(len(natives), newest, "messages read by the plain program")
        return clock.seconds

    times = await race(bench.rounds(15), {"ours": ours, "plain": blocking(plainly)})
    subject = f"load {number(newest)} messages, half of them of 100 KB"
    return cost(subject, times["ours"], times["plain"], milliseconds)


async def _disk(bench: Bench) -> Figure:
    """The file of a conversation that says the same large contents again and again, over
    one that says them once."""
    again = bench.pick(64, 16, 4)
    once, often = [await _written(bench.folder / f"once-{times}.db", times) for times in (1, again)]
    return Figure(
        f"disk: 100 KB said {again} times, against once",
        (often / once,),
        at_most(1 + again / 20, 1 + again / 30),  # what a turn holds beside its large contents
        ours=f"{often / KB:,.0f} KiB",
        plain=f"ours, once: {once / KB:,.0f} KiB; in rows {again} ×",
    )


async def _written(file: Path, times: int) -> int:
    async with open_store(file, durability="normal") as store:
        chat = await store.conversation()
        for number_ in range(times):
            await chat.append(_large(number_, "same"))
    return _size(file)


def _size(file: Path) -> int:
    return file.stat().st_size
