"""Fork: the path of 5,000 messages into a new conversation.

Held against one INSERT … SELECT over the same recursive walk, with a conversation and a
head, in one transaction. Large messages are told beside: of 4 KB, the largest that are
copied, and of 100 KB, which are shared.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path

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
    race,
)
from plain import Lean, Plain
from samples import KB, batches, turns

from sessiontree import Conversation, Store, open_store

SMALL = KB
LARGEST_COPIED = 4_000
LARGE = 100 * KB


async def run(bench: Bench) -> AsyncIterator[Figure]:
    length = bench.pick(5_000, 400, 40)
    async with AsyncExitStack() as stack:
        contenders: dict[str, Contender] = {}
        for size in (SMALL, LARGEST_COPIED, LARGE):
            store = await stack.enter_async_context(open_store(_file(bench, "ours", size)))
            contenders[f"ours {size}"] = partial(_ours, store, await _fill(store, length, size))
        for size in (SMALL, LARGEST_COPIED):
            plain = stack.enter_context(closing(Plain(_file(bench, "plain", size))))
            contenders[f"plain {size}"] = _plain(plain, length, size)
        lean = stack.enter_context(closing(Lean(_file(bench, "lean", SMALL))))
        contenders["lean"] = _plain(lean, length, SMALL)
        times = await race(bench.rounds(9), contenders)
    small, fork = times[f"ours {SMALL}"], f"fork {number(length)} messages"
    copied, plainly = times[f"ours {LARGEST_COPIED}"], times[f"plain {LARGEST_COPIED}"]
    target = at_most(1.5, 1.3)
    yield cost(f"{fork} of 1 KB", small, times[f"plain {SMALL}"], milliseconds, target)
    yield cost("… against the lean program", small, times["lean"], milliseconds)
    yield cost(f"{fork} of 4 KB", copied, plainly, milliseconds)
    shared = cost(
        f"{fork} of 100 KB, against ours of 1 KB",
        times[f"ours {LARGE}"],
        small,
        milliseconds,
        at_most(1.1, 1),
    )
    yield replace(shared, plain=f"ours: {shared.plain}")


def _file(bench: Bench, who: str, size: int) -> Path:
    return bench.folder / f"fork-{who}-{size}.db"


async def _fill(store: Store, length: int, size: int) -> Conversation:
    chat = await store.conversation()
    for batch in batches(turns(length // 4, size), size=max(1, 256 * KB // size)):
        await chat.append(batch)
    return chat


async def _ours(store: Store, chat: Conversation) -> float:
    with Clock() as clock:
        copy = await chat.fork()
    original, copied = await chat.path(newest=4), await copy.path(newest=4)
    expect([m.raw for m in copied], [m.raw for m in original], "the newest of the fork")
    expect(copied[-1].depth, original[-1].depth, "the length of the fork")
    return clock.seconds


def _plain(program: Plain | Lean, length: int, size: int) -> Contender:
    conversation = program.conversation()
    for batch in batches(turns(length // 4, size)):
        program.append(conversation, batch)

    def fork() -> float:
        with Clock() as clock:
            target = program.fork(conversation)
        expect(len(program.path(target)), length, "the length of the plain program's fork")
        return clock.seconds

    return blocking(fork)
