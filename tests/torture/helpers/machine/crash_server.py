"""Processes that are there to be killed, each forked from one that has everything imported.

    python -m machine.crash_server

reads jobs, one JSON line each: ``{"store", "world" (a pickle), "tasks", "seed", "start"}``.
For each it forks a process that works on the store without an end, and writes what is known
of it, a line each, to its own output:

    {"pid": …}                  the process has begun
    {"task": 0, "op": {…}}      it is about to do this
    {"task": 0, "out": …}       the store has acknowledged it
    {"dead": …}                 it is gone; nothing of it comes after this
"""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import random
import sys
from pathlib import Path
from typing import Any

from machine.choosing import Chooser
from machine.hands import Hands
from machine.world import World

import sessiontree


def tell(fact: dict[str, Any]) -> None:
    """One line at once; a pipe takes up to 4096 bytes whole or not at all."""
    line = json.dumps(fact).encode() + b"\n"
    assert len(line) <= 4096
    os.write(1, line)


async def work(job: dict[str, Any], world: World) -> None:
    """Several tasks, each on conversations of its own, until somebody kills us."""
    async with sessiontree.open_store(job["store"]) as store:
        numbers = range(job["tasks"])
        await asyncio.gather(*(work_on(store, world, job, number) for number in numbers))


async def work_on(store: sessiontree.Store, world: World, job: dict[str, Any], task: int) -> None:
    rng = random.Random(f"{job['seed']}/{task}")
    start = job["start"] + task * 10_000
    chooser = Chooser(rng, prefix=f"{task}/", start=start, most=3, large=60)
    own = World({topic: chat for topic, chat in world.chats.items() if topic[0] == str(task)})
    hands = Hands(store)
    while True:
        op = chooser.choose(own)
        tell({"task": task, "op": op})
        out = await hands.perform(op)
        tell({"task": task, "out": out})
        own.apply(op)


def serve() -> None:
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            try:
                tell({"pid": os.getpid()})
                job = json.loads(line)
                asyncio.run(work(job, pickle.loads(Path(job["world"]).read_bytes())))
            finally:
                os._exit(1)
        os.waitpid(pid, 0)
        tell({"dead": pid})


if __name__ == "__main__":
    serve()
