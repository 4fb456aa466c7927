"""What planning a window costs: on a conversation of any length, and for any provider.

The long conversation ends with the very messages of the short one, so both windows are the
same, and what one takes more than the other is what its length costs. Tokens are estimated
(``exact=False``): no tokenizer takes part. A handle remembers what its last windows sent, so
that each first window is planned by a new one; "the next turn" is the window of one that has
planned before, a turn ago.
"""

from __future__ import annotations

import gc
import json
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import closing
from functools import partial
from pathlib import Path

from measure import (
    Bench,
    Clock,
    Figure,
    at_most,
    cost,
    expect,
    milliseconds,
    number,
    race,
)
from samples import messages

from sessiontree import Conversation, Message, Store, Window, open_store
from sessiontree.core import planner, rules
from sessiontree.formats import codec

SHORT = 1_000
"""Messages of 1 KB; what the long conversation repeats."""
BUDGET = 100_000

REPEAT = """
INSERT INTO message (id, conversation_id, parent_id, role, format, depth, open_calls, tokens, usage,
    model, preview, key, meta, system_id, ref_id, created_at, blob_id, content)
WITH RECURSIVE round (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM round WHERE i + 1 < :rounds)
SELECT :size * i + m.id, conversation_id, :size * i + m.id - 1, role, format, :size * i + depth,
       open_calls, tokens, usage, model, preview, NULL, meta, NULL, NULL, created_at, blob_id,
       content
FROM round CROSS JOIN message m WHERE m.id <= :size
"""


async def run(bench: Bench) -> AsyncIterator[Figure]:
    long = bench.pick(1_000_000, 20_000, 2_000)
    short_file, long_file = bench.folder / "short.db", bench.folder / "long.db"
    await _make(short_file, 1)
    await _make(long_file, long // SHORT)
    async with open_store(short_file) as few, open_store(long_file) as many:
        yield await _length(bench, few, many, long)
        yield await _pinned(bench, few, many, long)
        for target in rules.PROVIDERS:
            yield await _whole(bench, few, target)
        for target in rules.PROVIDERS:
            yield await _next(bench, few, target)


async def _make(file: Path, rounds: int) -> None:
    """A conversation of ``rounds`` times the same messages. Repeated by SQL."""
    async with open_store(file, durability="normal") as store:
        chat = await store.conversation("window")
        await chat.append(messages(SHORT))
    if rounds > 1:
        with closing(sqlite3.connect(file)) as db, db:
            db.execute(REPEAT, {"size": SHORT, "rounds": rounds})
            db.execute("UPDATE conversation SET head_id = ?", (SHORT * rounds,))
    async with open_store(file) as store:
        newest = await (await store.open(1)).path(newest=SHORT)
        expect(newest[-1].id, SHORT * rounds, "the id of the newest message")
        expect([each.native for each in newest] == messages(SHORT), True, "the newest messages")


async def _length(bench: Bench, short: Store, tall: Store, long: int) -> Figure:
    times = await race(
        bench.rounds(31, 5), {"short": partial(_window, short), "long": partial(_window, tall)}
    )
    ours, theirs = await _planned(await tall.open(1)), await _planned(await short.open(1))
    expect(ours.messages == theirs.messages, True, "windows")
    subject = f"plan {number(BUDGET)} tokens of {number(long)} messages, against {number(SHORT)}"
    return cost(subject, times["long"], times["short"], milliseconds, at_most(1.2, 1.1))


async def _pinned(bench: Bench, short: Store, tall: Store, long: int) -> Figure:
    """The first message pinned: all between it and the window is walked, and not read."""
    times = await race(
        bench.rounds(5), {"short": partial(_window, short, 1), "long": partial(_window, tall, 1)}
    )
    subject = f"… with the first of {number(long)} messages pinned"
    return cost(subject, times["long"], times["short"], milliseconds)


async def _window(store: Store, *pinned: int) -> float:
    chat = await store.open(1)
    with Clock() as clock:
        found = await _planned(chat, *pinned)
    expect(found.ids[: len(pinned)], pinned, "what is pinned")
    expect(BUDGET * 0.9 < found.tokens <= BUDGET, True, "a window that is full")
    return clock.seconds


async def _planned(chat: Conversation, *pinned: int) -> Window:
    return await chat.window(BUDGET, target="openai_chat", pinned=pinned, exact=False)


async def _whole(bench: Bench, store: Store, target: str) -> Figure:
    """All of the short conversation for a provider, read from the store each time. In
    milliseconds of the processor; beside it what the planning alone takes, and what parsing
    the same messages as JSON does."""
    read = (await (await store.open(1)).path())[::-1]
    times = await race(
        bench.rounds(31, 5),
        {
            "ours": partial(_sent, store, target),
            "plan": partial(_plan, read, target),
            "json": partial(_parse, [each.raw for each in read]),
        },
    )
    values = tuple(1000 * seconds for seconds in times["ours"])
    return Figure(
        f"{number(SHORT)} messages of 1 KB for {target}, CPU",
        values,
        at_most(30, 25),
        "ms",
        ours=f"planning: {milliseconds(times['plan'])}",
        plain=f"json.loads: {milliseconds(times['json'])}",
    )


async def _sent(store: Store, target: str) -> float:
    chat = await store.open(1)
    with Processor() as clock:
        found = await chat.window(target=target, exact=False)
    expect(len(found.ids), SHORT, "messages sent")
    return clock.seconds


async def _next(bench: Bench, store: Store, target: str) -> Figure:
    """The same of a handle that planned a window when the path was a turn shorter."""
    times = await race(bench.pick(31, 5), {"ours": partial(_sent_next, store, target)})
    values = tuple(1000 * seconds for seconds in times["ours"])
    return Figure(f"… the next turn's window for {target}, CPU", values, at_most(30, 10), "ms")


async def _sent_next(store: Store, target: str) -> float:
    chat = await store.open(1)
    await chat.branch(SHORT - 4)
    await chat.window(target=target, exact=False)
    await chat.branch(SHORT)
    with Processor() as clock:
        found = await chat.window(target=target, exact=False)
    expect(len(found.ids), SHORT, "messages sent")
    return clock.seconds


async def _plan(path: list[Message], target: str) -> float:
    with Processor() as clock:
        found = planner.plan(path, target, codec, exact=False)
    expect(len(found.ids), SHORT, "messages sent")
    return clock.seconds


async def _parse(texts: list[str]) -> float:
    with Processor() as clock:
        values = [json.loads(text) for text in texts]
    expect(len(values), SHORT, "messages")
    return clock.seconds


class Processor(Clock):
    """A clock that stands still while something else runs."""

    def __enter__(self) -> Processor:
        gc.collect()
        self._start = time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.process_time() - self._start
