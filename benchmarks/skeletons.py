"""The tree of a conversation: every message, and how they follow each other; no content.

Held against one SELECT of the same columns of the same file, all rows fetched, on the
standard library's ``sqlite3``. Told beside: what walking the whole of it in display order
costs, and the rows that a surface shows.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from measure import (
    Bench,
    Broken,
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

from sessiontree import Conversation, open_store

INSERT = """
INSERT INTO message (id, conversation_id, parent_id, role, format, depth, open_calls, tokens,
    preview, created_at, content)
VALUES (?, 1, ?, ?, 'openai_chat', ?, 0, 250, ?, ?, ?)
"""
FETCH = """
SELECT id, parent_id, role, preview, depth, open_calls, tokens, created_at
FROM message WHERE conversation_id = 1 ORDER BY id
"""
WORDS = "Where is order LK-266415? It was sent to a warehouse in Lyon and we wait for its return"
CONTENT = '{"role":"user","content":"' + "words " * 160 + '"}'

Shape = dict[int, int | None]
"""Id → the id of its parent."""


async def run(bench: Bench) -> AsyncIterator[Figure]:
    size = bench.pick(100_000, 10_000, 500)
    for name, shape in (("one chain", _chain(size)), ("a branch at every tenth", _bushy(size))):
        file = bench.folder / f"{name.replace(' ', '-')}.db"
        await _make(file, shape)
        async with open_store(file) as store:
            with closing(sqlite3.connect(file)) as db:
                chat = await store.open(1)
                contenders: dict[str, Contender] = {
                    "tree": partial(_tree, chat, size),
                    "plain": blocking(partial(_plain, db, size)),
                    "walk": partial(_walk, chat, size),
                }
                times = await race(bench.rounds(9), contenders)
        of = f"{number(size)} messages, {name}"
        target = at_most(2, 2)
        yield cost(f"tree of {of}", times["tree"], times["plain"], milliseconds, target)
        yield cost("… and every node in display order", times["walk"], times["plain"], milliseconds)


def _chain(size: int) -> Shape:
    return {number: number - 1 or None for number in range(1, size + 1)}


def _bushy(size: int) -> Shape:
    """Nine in ten follow the newest, one begins a branch at one of the last thousand."""
    chance = random.Random(size)
    parents: Shape = {1: None}
    for each in range(2, size + 1):
        is_branch = chance.random() < 0.1
        parents[each] = chance.randint(max(1, each - 1_000), each - 1) if is_branch else each - 1
    return parents


async def _make(file: Path, shape: Shape) -> None:
    """Messages of 1 KB, written by SQL: what is measured reads none of their contents."""
    async with open_store(file) as store:
        await store.conversation("tree")
    with closing(sqlite3.connect(file)) as db, db:
        db.executemany(INSERT, _rows(shape))
        db.execute("UPDATE conversation SET head_id = ?", (len(shape),))
    async with open_store(file) as store:
        problems = await store.check()
        if problems:
            raise Broken(f"the tree is not sound: {problems[:3]}")


def _rows(shape: Shape) -> Iterator[tuple[object, ...]]:
    depths: dict[int | None, int] = {None: -1}
    for each, parent in shape.items():
        depths[each] = depth = depths[parent] + 1
        role = ("user", "assistant")[each % 2]
        yield each, parent, role, depth, f"{each} {WORDS}"[:80], 1_700_000_000_000_000, CONTENT


async def _tree(chat: Conversation, size: int) -> float:
    with Clock() as clock:
        tree = await chat.tree()
    expect((len(tree), tree.head), (size, size), "the tree and its head")
    return clock.seconds


async def _walk(chat: Conversation, size: int) -> float:
    with Clock() as clock:
        nodes = (await chat.tree()).nodes
    expect(len(nodes), size, "nodes")
    return clock.seconds


def _plain(db: sqlite3.Connection, size: int) -> float:
    with Clock() as clock:
        rows = db.execute(FETCH).fetchall()
    expect(len(rows), size, "rows")
    return clock.seconds
