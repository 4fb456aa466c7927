"""What a piece of work holds at most, above what an open store holds.

Each is done in a process of its own; the plain program does the same beside it. Memory is
the peak of what the process has resident, as the system counts it, in MB.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from exports import Peak
from measure import Bench, Broken, Figure, number
from plain import PATH, connect
from samples import batches, chain, turns

from sessiontree import Conversation, open_store


async def run(bench: Bench) -> AsyncIterator[Figure]:
    length, long = bench.pick(10_000, 2_000, 200), bench.pick(1_000_000, 20_000, 1_000)
    stored, chained = bench.folder / "stored.db", bench.folder / "chain.db"
    async with open_store(stored, durability="normal") as store:
        chat = await store.conversation("stored")
        for batch in batches(turns(length // 4)):
            await chat.append(batch)
    await chain(chained, long)
    of_length, of_long = f"{number(length)} messages of 1 KB", f"{number(long)} short messages"
    for subject, file, work in (
        (f"load {of_length}, all of them held and decoded", stored, "load"),
        (f"walk {of_length}, one after the other", stored, "walk"),
        (f"the tree of {of_length}", stored, "tree"),
        (f"the newest 20 of {of_long}", chained, "newest"),
        (f"a window of 100,000 tokens on {of_long}", chained, "window"),
        (f"walk {of_long}, one after the other", chained, "walk"),
        (f"the tree of {of_long}", chained, "tree"),
    ):
        yield _figure(bench, subject, file, work)


def _figure(bench: Bench, subject: str, file: Path, work: str) -> Figure:
    peaks = tuple(_process(work, file) for _ in range(bench.rounds(3, 1)))
    plain = f"{_process(f'plain_{work}', file):.1f} MB" if f"plain_{work}" in WORKS else ""
    return Figure(subject, peaks, None, "MB", ours=f"{max(peaks):.1f} MB", plain=plain)


def _process(work: str, file: Path) -> float:
    command = [sys.executable, __file__, work, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Broken(f"{work}: {done.stderr}")
    return json.loads(done.stdout)


# --- what a process does ----------------------------------------------------------------


async def _ours(file: Path, work: Callable[[Conversation], Awaitable[Any]]) -> float:
    async with open_store(file) as store:
        chat = await store.open(1)
        await chat.path(newest=1)
        with Peak() as peak:
            await work(chat)
    return peak.above


async def _load(chat: Conversation) -> None:
    path = await chat.path()
    natives = [message.native for message in path]
    assert len(natives) == len(path) == path[-1].depth + 1


async def _walk(chat: Conversation) -> None:
    length = depth = 0
    async for message in chat.iter_path():
        length += bool(message.native)
        depth = message.depth
    assert length == depth + 1


async def _newest(chat: Conversation) -> None:
    assert len([message.native for message in await chat.path(newest=20)]) == 20


async def _tree(chat: Conversation) -> None:
    tree = await chat.tree()
    assert tree.head == chat.head


async def _window(chat: Conversation) -> None:
    window = await chat.window(100_000, target="openai_chat", exact=False)
    assert window.messages


def _plain(file: Path, work: Callable[[sqlite3.Connection, int], Any]) -> float:
    with closing(connect(file, "full")) as db:
        (head,) = db.execute("SELECT head_id FROM conversation").fetchone()
        with Peak() as peak:
            held = work(db, head)
        assert held
    return peak.above


def _plain_load(db: sqlite3.Connection, head: int) -> list[Any]:
    return [json.loads(row[-1]) for row in db.execute(PATH, (head, 1 << 62)).fetchall()]


def _plain_walk(db: sqlite3.Connection, head: int) -> int:
    return sum(bool(json.loads(row[-1])) for row in db.execute(PATH, (head, 1 << 62)))


def _plain_tree(db: sqlite3.Connection, head: int) -> list[Any]:
    columns = "id, parent_id, role, preview, depth, open_calls, tokens, created_at"
    return db.execute(f"SELECT {columns} FROM message").fetchall()


OURS = {"load": _load, "walk": _walk, "newest": _newest, "tree": _tree, "window": _window}
PLAIN = {"plain_load": _plain_load, "plain_walk": _plain_walk, "plain_tree": _plain_tree}
WORKS = {*OURS, *PLAIN}


def main() -> None:
    work, file = sys.argv[1], Path(sys.argv[2])
    above = asyncio.run(_ours(file, OURS[work])) if work in OURS else _plain(file, PLAIN[work])
    print(json.dumps(above))


if __name__ == "__main__":
    main()
