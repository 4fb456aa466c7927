"""A store of an earlier schema opens in a later sessiontree, and a migration is all or nothing.

There is one version so far; ``machine.upgrade`` is a process of a later time with a step more.
"""

from __future__ import annotations

import json
import random
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from machine.choosing import Chooser
from machine.forks import Forks, forks
from machine.hands import Hands, look
from machine.world import World, differences

import sessiontree
from sessiontree import StoreReadOnly, StoreTooNew
from sessiontree.store import driver, migrations


async def fill(target: Path, operations: int = 150) -> dict[str, Any]:
    """A store of this version; what is in it."""
    world, chooser = World(), Chooser(random.Random(7), most=4)
    async with sessiontree.open_store(target) as store:
        hands = Hands(store)
        for _ in range(operations):
            op = chooser.choose(world)
            assert await hands.perform(op) == world.apply(op)
        await hands.close()
    return world.facts()


class Upgrader:
    """Later sessiontrees."""

    def __init__(self, processes: Forks, out: Path) -> None:
        self._processes = processes
        self._out = out

    def begin(self, target: Path, *, stays: bool = False) -> int:
        self._out.unlink(missing_ok=True)
        job = {"store": str(target), "out": str(self._out), "stays": stays}
        return self._processes.start(job)

    def kill(self, target: Path, after: float) -> None:
        pid = self.begin(target, stays=True)
        time.sleep(after)
        self._processes.end(pid, kill=True)

    def result(self, pid: int) -> dict[str, Any]:
        """What it found in the store."""
        self._processes.end(pid, kill=False)
        return json.loads(self._out.read_text())

    def upgrade(self, target: Path) -> dict[str, Any]:
        return self.result(self.begin(target))


@contextmanager
def later(folder: Path, number: int = 0) -> Iterator[Upgrader]:
    with forks("machine.upgrade") as processes:
        yield Upgrader(processes, folder / f"{number}.json")


@pytest.fixture
def upgrader(tmp_path: Path) -> Iterator[Upgrader]:
    with later(tmp_path) as found:
        yield found


def assert_migrated(found: dict[str, Any], facts: dict[str, Any]) -> None:
    assert not differences(found["facts"], facts)
    assert found["problems"] == []
    messages, moods = found["moods"]
    assert messages == moods == sum(len(chat["messages"]) for chat in facts.values())


async def test_an_older_store_is_migrated_and_keeps_everything(
    tmp_path: Path, upgrader: Upgrader
) -> None:
    facts = await fill(tmp_path / "s.db")
    assert_migrated(upgrader.upgrade(tmp_path / "s.db"), facts)
    assert_migrated(upgrader.upgrade(tmp_path / "s.db"), facts)  # and is opened as it is now


async def test_a_migrated_store_is_refused_by_the_older_sessiontree_and_not_changed(
    tmp_path: Path, upgrader: Upgrader
) -> None:
    target = tmp_path / "s.db"
    await fill(target)
    upgrader.upgrade(target)
    before = target.read_bytes()
    for read_only in (False, True):
        with pytest.raises(StoreTooNew, match="version 2") as caught:
            async with sessiontree.open_store(target, read_only=read_only):
                pass
        assert "upgrade" in caught.value.hint
    assert target.read_bytes() == before


async def test_two_processes_that_migrate_at_once_do_it_once(tmp_path: Path) -> None:
    target = tmp_path / "s.db"
    facts = await fill(target)
    with ExitStack() as stack:
        upgraders = [stack.enter_context(later(tmp_path, number)) for number in range(4)]
        pids = [each.begin(target) for each in upgraders]
        for each, pid in zip(upgraders, pids, strict=True):
            assert_migrated(each.result(pid), facts)


async def test_an_older_store_that_is_in_use_is_migrated_beneath_its_readers(
    tmp_path: Path, upgrader: Upgrader
) -> None:
    """A process of the old version that has it open goes on: columns were only added."""
    target = tmp_path / "s.db"
    facts = await fill(target)
    async with sessiontree.open_store(target) as store:
        assert not differences(await look(store), facts)
        assert_migrated(upgrader.upgrade(target), facts)
        assert not differences(await look(store), facts)


async def test_a_killed_migration_leaves_the_old_store_usable(
    tmp_path: Path, upgrader: Upgrader
) -> None:
    await kill_migrations(tmp_path, upgrader, kills=12)


@pytest.mark.long
async def test_many_killed_migrations_leave_the_old_store_usable(
    tmp_path: Path, upgrader: Upgrader
) -> None:
    await kill_migrations(tmp_path, upgrader, kills=1_000)


async def kill_migrations(folder: Path, upgrader: Upgrader, kills: int) -> None:
    """At instants spread over the time that opening, migrating and looking take."""
    original, target = folder / "original.db", folder / "s.db"
    facts = await fill(original)
    shutil.copy(original, target)
    begun = time.monotonic()
    upgrader.upgrade(target)
    took = time.monotonic() - begun
    seen: Counter[int] = Counter()
    for number in range(kills):
        shutil.copy(original, target)
        upgrader.kill(target, after=took * number / kills)
        seen[await version_of(target, facts)] += 1
        assert_migrated(upgrader.upgrade(target), facts)
    assert seen[1] > 0


async def version_of(target: Path, facts: dict[str, Any]) -> int:
    """1 when it is as it was, and 2 when it is migrated whole."""
    try:
        async with sessiontree.open_store(target) as store:
            assert not differences(await look(store), facts)
            assert await store.check() == []
        return 1
    except StoreTooNew:
        return 2


async def test_an_older_store_opened_to_read_only_says_how_to_migrate_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "s.db"
    await fill(target)
    before = target.read_bytes()
    monkeypatch.setattr(driver, "VERSION", 2)
    with pytest.raises(StoreReadOnly, match="version 1") as caught:
        async with sessiontree.open_store(target, read_only=True):
            pass
    assert "open it once without read_only" in caught.value.hint
    assert target.read_bytes() == before


async def test_a_step_that_fails_leaves_the_store_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "s.db"
    facts = await fill(target)
    bad = migrations.Step(
        2, "cannot be done", "CREATE TABLE half (x); INSERT INTO nowhere VALUES (1);"
    )
    monkeypatch.setattr(driver, "VERSION", 2)
    monkeypatch.setattr(migrations, "STEPS", (bad,))
    with pytest.raises(sessiontree.StoreError, match="nowhere"):
        async with sessiontree.open_store(target):
            pass
    monkeypatch.undo()
    async with sessiontree.open_store(target) as store:
        assert not differences(await look(store), facts)
        assert await store.check() == []
        tables = await store._backend.read(
            lambda db: [row[0] for row in db.execute("SELECT name FROM sqlite_master")]
        )
        assert "half" not in tables
