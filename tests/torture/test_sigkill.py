"""A process that is killed at any instant loses nothing that it had acknowledged."""

from __future__ import annotations

import pickle
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from machine.forks import Fact, Forks, forks
from machine.hands import Hands, look
from machine.world import Operation, World, differences

import sessiontree

KILLS_PER_STORE = 20


def kill_one(victims: Forks, job: Fact, rng: random.Random) -> list[Fact]:
    """Start a process, kill it at some instant; everything that it said until then."""
    pid = victims.start(job)
    said: list[Fact] = []
    if rng.random() < 0.8:  # at work: after some lines, and a little more
        said += [victims.hear() for _ in range(rng.randint(1, 60))]
        time.sleep(rng.random() * 0.003)
    else:  # while it opens, or makes, the store
        time.sleep(rng.random() * 0.03)
    return said + victims.end(pid, kill=True)


@pytest.fixture
def victims() -> Iterator[Forks]:
    with forks("machine.crashing") as found:
        yield found


class Witness:
    """What the parent knows of a store: what was acknowledged, and what was under way."""

    def __init__(self, store: Path, tasks: int) -> None:
        self.store = store
        self.tasks = tasks
        self.world = World()
        self.counts: Counter[str] = Counter()

    def job(self, seed: int) -> Fact:
        world = self.store.with_suffix(".world")
        world.write_bytes(pickle.dumps(self.world))
        numbers = {"tasks": self.tasks, "seed": seed, "start": seed * 100_000}
        return {"store": str(self.store), "world": str(world)} | numbers

    def learn(self, said: list[Fact]) -> dict[int, Operation]:
        """Put what was acknowledged into the world; returns what was under way, by task."""
        begun: dict[int, Operation] = {}
        for fact in said:
            if "op" in fact:
                begun[fact["task"]] = fact["op"]
            else:
                assert fact["out"] == self.world.apply(begun.pop(fact["task"])), fact
                self.counts["acknowledged"] += 1
        return begun

    async def look(self, begun: dict[int, Operation]) -> None:
        """The store holds what was acknowledged, and of what was under way all or nothing."""
        async with sessiontree.open_store(self.store) as store:
            found = await look(store)
            for task in range(self.tasks):
                mine = {topic: chat for topic, chat in found.items() if topic[0] == str(task)}
                self._compare(task, mine, begun.get(task))
            assert await store.check() == []
            await self._try_again(store, begun)
        self.counts["drafts"] += any(chat["drafts"] for chat in found.values())

    def _compare(self, task: int, found: dict[str, Any], under_way: Operation | None) -> None:
        others = {t: chat for t, chat in self.world.chats.items() if t[0] != str(task)}
        before = World({t: c for t, c in self.world.chats.items() if t not in others})
        after = before.copy()
        if under_way is not None:
            after.apply(under_way)
        before.crash()
        after.crash()
        if found == before.facts():
            self.counts["begun and not done"] += under_way is not None
            self.world = World(others | before.chats)
        else:
            assert not differences(found, after.facts()), under_way
            self.counts["done and not acknowledged"] += 1
            self.world = World(others | after.chats)

    async def _try_again(self, store: sessiontree.Store, begun: dict[int, Operation]) -> None:
        """The same keys once more: what was saved is not saved twice, what was not is now."""
        hands = Hands(store)
        appends = [op for op in begun.values() if op["do"] == "append"]
        for op in appends:
            chat = self.world.chats.get(op["chat"])
            if chat is not None:
                was_saved = op["names"][0] in chat.parents
                self.counts["tried again" if was_saved else "made up for"] += 1
                out = await hands.perform(op)
                assert was_saved or out == self.world.apply(op)
        if appends:
            assert not differences(await look(store), self.world.facts())


async def torture(folder: Path, victims: Forks, kills: int, *, tasks: int, seed: int) -> None:
    rng = random.Random(seed)
    counts: Counter[str] = Counter()
    for first in range(0, kills, KILLS_PER_STORE):
        witness = Witness(folder / f"{tasks}-{first}.db", tasks)
        for number in range(first, first + KILLS_PER_STORE):
            said = kill_one(victims, witness.job(number + 1), rng)
            await witness.look(witness.learn(said))
        counts += witness.counts
    print(f"{kills} kills, {tasks} task(s): {dict(counts)}")
    assert counts["acknowledged"] > kills * 5
    for kind in ("begun and not done", "done and not acknowledged", "drafts", "tried again"):
        assert counts[kind] > 0, f"nothing was {kind}: {counts}"


async def test_300_kills_lose_nothing_acknowledged(tmp_path: Path, victims: Forks) -> None:
    await torture(tmp_path, victims, 160, tasks=1, seed=1)
    await torture(tmp_path, victims, 140, tasks=4, seed=2)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10, 20))
async def test_10_000_kills_in_ten_shares_lose_nothing_acknowledged(
    tmp_path: Path, victims: Forks, seed: int
) -> None:
    await torture(tmp_path, victims, 1_000, tasks=(1, 4)[seed % 2], seed=seed)
