"""Starting: what a process pays before it does anything."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

from measure import Bench, Broken, Figure, Times, at_most, blocking, milliseconds, number, race

from sessiontree import open_store

CONVERSATIONS = 200


async def run(bench: Bench) -> AsyncIterator[Figure]:
    file = bench.folder / "listed.db"
    async with open_store(file, durability="normal") as store:
        for i in range(CONVERSATIONS):
            chat = await store.conversation(f"topic {i}", owner="camille")
            await chat.append({"role": "user", "content": "Where is order LK-266415?"})
    commands = {
        "bare": [sys.executable, "-c", "pass"],
        "stdlib": [sys.executable, "-c", "import asyncio, sqlite3"],
        "import": [sys.executable, "-c", "import sessiontree"],
        "ls": [str(_program()), "--store", str(file), "ls"],
    }
    contenders = {name: blocking(partial(_spawn, command)) for name, command in commands.items()}
    times = await race(bench.rounds(21), contenders)
    yield Figure(
        "`import sessiontree`, beyond a bare Python",
        _beyond(times, "import"),
        at_most(200, 150),
        "ms",
        ours=_told(times, "import"),
        plain=f"{_told(times, 'bare')}; with asyncio and sqlite3 {milliseconds(times['stdlib'])}",
    )
    yield Figure(
        f"`sessiontree ls`, {CONVERSATIONS} conversations, the whole process",
        tuple(1000 * seconds for seconds in times["ls"]),
        at_most(400, 400),
        "ms",
        ours=_told(times, "ls"),
        plain=_told(times, "bare"),
    )


def _program() -> Path:
    """The command that was installed beside this Python."""
    program = Path(sys.executable).with_name("sessiontree")
    if not program.exists():
        raise Broken(f"there is no {program}: install the project into this Python first")
    return program


def _spawn(command: list[str]) -> float:
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    if done.returncode:
        raise Broken(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()}")
    return seconds


def _beyond(times: Times, name: str) -> tuple[float, ...]:
    """Milliseconds more than a bare Python takes."""
    return tuple(
        1000 * (all_ - bare) for all_, bare in zip(times[name], times["bare"], strict=True)
    )


def _told(times: Times, name: str) -> str:
    return f"{milliseconds(times[name])}, best {number(1000 * min(times[name]))} ms"
