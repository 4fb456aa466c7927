"""A process that is killed at any instant loses nothing that it had acknowledged."""

from __future__ import annotations

import json
import os
import pickle
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from machine.hands import Hands, look
from machine.world import Operation, World, differences

import sessiontree

HELPERS = Path(__file__).parent / "helpers"
KILLS_PER_STORE = 20


class Victims:
    """Starts processes that work on a store, and kills them; see ``machine.crash_server``."""

    def __init__(self, server: subprocess.Popen[str]) -> None:
        self.server = server

    def kill_one(self, job: dict[str, Any], rng: random.Random) -> list[dict[str, Any]]:
        """Start one, kill it at some instant; everything that it said until then."""
        assert self.server.stdin is not None
        self.server.stdin.write(json.dumps(job) + "\n")
        self.server.stdin.flush()
        pid = self._hear()["pid"]
        said: list[dict[str, Any]] = []
        if rng.random() < 0.8:  # at work: after some lines, and a little more
            said += [self._hear() for _ in range(rng.randint(1, 60))]
            time.sleep(rng.random() * 0.003)
        else:  # while it opens, or makes, the store
            time.sleep(rng.random() * 0.03)
        os.kill(pid, signal.SIGKILL)
        while "dead" not in (fact := self._hear()):
            said.append(fact)
        return said

    def _hear(self) -> dict[str, Any]:
        assert self.server.stdout is not None
        return json.loads(self.server.stdout.readline())


@pytest.fixture
def victims() -> Iterator[Victims]:
    with _server() as server:
        yield Victims(server)


@contextmanager
def _server() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "machine.crash_server"]
    environment = os.environ | {"PYTHONPATH": str(HELPERS)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as server:
        yield server
        assert server.stdin is not None
        server.stdin.close()


class Witness:
    """What the parent knows of a store: what was acknowledged, and what was under way."""

    def __init__(self, store: Path, tasks: int) -> None:
        self.store = store
        self.tasks = tasks
        self.world = World()
        self.counts: Counter[str] = Counter()

    def job(self, seed: int) -> dict[str, Any]:
        world = self.store.with_suffix(".world")
        world.write_bytes(pickle.dumps(self.world))
        numbers = {"tasks": self.tasks, "seed": seed, "start": seed * 100_000}
        return {"store": str(self.store), "world": str(world)} | numbers

    def learn(self, said: list[dict[str, Any]]) -> dict[int, Operation]:
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


async def torture(folder: Path, victims: Victims, kills: int, *, tasks: int, seed: int) -> None:
    rng = random.Random(seed)
    counts: Counter[str] = Counter()
    for first in range(0, kills, KILLS_PER_STORE):
        witness = Witness(folder / f"{tasks}-{first}.db", tasks)
        for number in range(first, first + KILLS_PER_STORE):
            said = victims.kill_one(witness.job(number + 1), rng)
            await witness.look(witness.learn(said))
        counts += witness.counts
    print(f"{kills} kills, {tasks} task(s): {dict(counts)}")
    assert counts["acknowledged"] > kills * 5
    for kind in ("begun and not done", "done and not acknowledged", "drafts", "tried again"):
        assert counts[kind] > 0, f"nothing was {kind}: {counts}"


async def test_300_kills_lose_nothing_acknowledged(tmp_path: Path, victims: Victims) -> None:
    await torture(tmp_path, victims, 160, tasks=1, seed=1)
    await torture(tmp_path, victims, 140, tasks=4, seed=2)


@pytest.mark.long
async def test_10_000_kills_lose_nothing_acknowledged(tmp_path: Path, victims: Victims) -> None:
    await torture(tmp_path, victims, 5_000, tasks=1, seed=3)
    await torture(tmp_path, victims, 5_000, tasks=4, seed=4)
