"""A process that works on a store until somebody kills it. Its job: ``{"store", "world" (the file
of a pickle), "tasks", "seed", "start"}``. It tells

    {"task": 0, "op": {…}}      when it is about to do this
    {"task": 0, "out": …}       when the store has acknowledged it
"""

from __future__ import annotations

import asyncio
import pickle
import random
from pathlib import Path

from machine.choosing import Chooser
from machine.forks import Fact, serve, tell
from machine.hands import Hands
from machine.world import World

import sessiontree


def work(job: Fact) -> None:
    asyncio.run(work_on_all(job, pickle.loads(Path(job["world"]).read_bytes())))


async def work_on_all(job: Fact, world: World) -> None:
    """Several tasks, each on conversations of its own, without an end."""
    async with sessiontree.open_store(job["store"]) as store:
        tasks = range(job["tasks"])
        await asyncio.gather(*(work_on_some(store, world, job, task) for task in tasks))


async def work_on_some(store: sessiontree.Store, world: World, job: Fact, task: int) -> None:
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


if __name__ == "__main__":
    serve(work)
