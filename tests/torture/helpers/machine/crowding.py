"""A process in which a crowd appends to one store until somebody kills it. Its job:
``{"store", "tasks"}``. It tells ``{"task": 7, "saved": 12}`` when the store has acknowledged the
12th append to the conversation of task 7."""

from __future__ import annotations

import asyncio

from machine.forks import Fact, serve, tell
from machine.words import raw_of

import sessiontree


def turn_of(task: int, number: int) -> list[str]:
    """The names of the messages of an append; some are so large that they are blobs."""
    base = task * 1_000_000 + number * 10
    prompt = "b" if number % 7 == 0 else "u"
    return [f"{prompt}.{base}", f"c.{base + 1}.1", f"r.{base + 2}.{base + 1}.0", f"a.{base + 3}"]


def work(job: Fact) -> None:
    asyncio.run(work_on_all(job["store"], job["tasks"]))


async def work_on_all(target: str, tasks: int) -> None:
    async with sessiontree.open_store(target) as store:
        await asyncio.gather(*(work_on_one(store, task) for task in range(tasks)))


async def work_on_one(store: sessiontree.Store, task: int) -> None:
    chat = await store.conversation(str(task))
    number = len(await chat.path()) // 4
    while True:
        number += 1
        await chat.append([raw_of(name) for name in turn_of(task, number)])
        tell({"task": task, "saved": number})


if __name__ == "__main__":
    serve(work)
