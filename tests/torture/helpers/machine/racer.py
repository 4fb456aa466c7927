"""One of several processes that work on one store at once, with many tasks each.

    python -m machine.racer STORE NUMBER TASKS TURNS SEED

Prints one JSON line for each step: what it holds, where, and what became of it: "saved",
"sibling" (another writer was first), or "cancelled" (it is there whole or not at all). An error
of any other kind ends the process.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from typing import Any

from machine.words import name_of, raw_of

import sessiontree
from sessiontree import Conversation, HeadMoved

SHARED = 4
"""Conversations that everybody writes to."""
PATIENCE = 1_800.0
"""Seconds: on a machine that has much else to do, the turn of one of 16 may come late."""


class Racer:
    """One task: takes turns, on shared conversations and on one of its own."""

    def __init__(self, store: sessiontree.Store, number: int, rng: random.Random) -> None:
        self.store = store
        self.number = number
        self.rng = rng
        self.last = 0

    async def run(self, turns: int) -> None:
        for _ in range(turns):
            shared = f"shared {self.rng.randrange(SHARED)}"
            topic = self.rng.choice([shared, f"own {self.number}"])
            chat = await self.store.conversation(topic)
            await self.rng.choice([self.append, self.turn, self.turn])(chat)
            await self.wander(chat)

    async def append(self, chat: Conversation) -> None:
        names = self.step()
        tell(chat, names, await self.fate(chat, chat.append([*map(raw_of, names)], keys=names)))

    async def turn(self, chat: Conversation) -> None:
        """A prompt, a step with tools that run at the same time, an answer."""
        prompt, call, *results, answer = self.step()
        async with chat.turn() as turn:
            tell(chat, [prompt], await self.fate(chat, turn.add(raw_of(prompt), key=prompt)))
            await turn.add(raw_of(call), key=call)
            tools = [turn.add(raw_of(result), key=result) for result in results]
            step, fate = [call, *results], await self.fate(chat, _all(tools))
            if turn.open_calls:  # cancelled before the last result
                step = [name_of(message) for message in turn.pending]
                fate = await self.fate(chat, turn.interrupt(), is_safe=True)
            tell(chat, step, fate)
            tell(chat, [answer], await self.fate(chat, turn.add(raw_of(answer), key=answer)))

    async def fate(self, chat: Conversation, work: Any, *, is_safe: bool = False) -> str:
        """Do it, cancelled now and then unless it is safe; what became of it."""
        task = asyncio.ensure_future(work)
        if not is_safe and self.rng.random() < 0.2:
            asyncio.get_running_loop().call_later(self.rng.random() ** 3 * 0.02, task.cancel)
        try:
            await task
        except asyncio.CancelledError:
            return "cancelled"
        except HeadMoved as error:
            await chat.refresh()
            is_beside = error.saved[0].parent_id == error.expected != error.actual
            return "sibling" if is_beside else "misplaced"
        return "saved"

    async def wander(self, chat: Conversation) -> None:
        """Move the head, also under the others' feet."""
        if self.rng.random() < 0.1:
            leaves = [leaf for leaf in await chat.leaves() if leaf.is_boundary]
            if leaves:
                await chat.branch(self.rng.choice(leaves).id)
        if self.rng.random() < 0.1 and chat.head is not None:
            await chat.checkpoint(f"{self.number} {self.last}")

    def step(self) -> list[str]:
        self.last += 20
        base = self.number * 100_000 + self.last
        calls = self.rng.randint(1, 3)
        results = [f"r.{base + 2 + i}.{base + 1}.{i}" for i in range(calls)]
        return [f"u.{base}", f"c.{base + 1}.{calls}", *results, f"a.{base + 9}"]


def tell(chat: Conversation, names: list[str], fate: str) -> None:
    print(json.dumps({"topic": chat.topic, "names": names, "fate": fate}))


async def _all(work: list[Any]) -> None:
    """All of it at once; over only when each is over."""
    for outcome in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


async def race(target: str, number: int, tasks: int, turns: int, seed: int) -> None:
    async with sessiontree.open_store(target, busy_timeout=PATIENCE) as store:
        racers = [
            Racer(store, number * tasks + task, random.Random(f"{seed}/{number}/{task}"))
            for task in range(tasks)
        ]
        await asyncio.gather(*(racer.run(turns) for racer in racers))


if __name__ == "__main__":
    asyncio.run(race(sys.argv[1], *map(int, sys.argv[2:])))
