"""Random operations, one after another, against the model; the store closed now and then."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from machine.choosing import Chooser
from machine.hands import Hands, look
from machine.world import World, differences

import sessiontree


async def run(target: Path, seed: int, operations: int, *, every: int) -> World:
    """Each operation must come out as the model says; every so many, the store is closed,
    opened again, and all that is in it is compared."""
    world, done = World(), 0
    chooser = Chooser(random.Random(seed), most=8, large=250)
    while done < operations:
        async with sessiontree.open_store(target, durability="normal") as store:
            hands = Hands(store)
            for _ in range(every):
                op = chooser.choose(world)
                expected = world.apply(op)
                assert await hands.perform(op) == expected, (seed, done, op)
                done += 1
            await hands.close()
        world.crash()
        async with sessiontree.open_store(target) as store:
            assert not differences(await look(store), world.facts()), (seed, done)
            assert await store.check() == []
    return world


async def test_random_operations_leave_what_the_model_says(tmp_path: Path) -> None:
    world = await run(tmp_path / "s.db", seed=1, operations=20_000, every=1_000)
    assert sum(len(chat.parents) for chat in world.chats.values()) > 300


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
async def test_a_million_random_operations_in_ten_shares_leave_what_the_model_says(
    tmp_path: Path, seed: int
) -> None:
    await run(tmp_path / "s.db", seed=seed, operations=100_000, every=2_000)
