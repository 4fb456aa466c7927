"""Repair of whatever was harmed, at random; and by the program and by scripts."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from machine.choosing import Chooser
from machine.damage import damage, everything_is_reachable, filled, rows
from machine.hands import Hands
from machine.world import World

import sessiontree
from sessiontree import sync

# ---- at random -----------------------------------------------------------------------

HARM = [
    "DELETE FROM message WHERE id = {message}",
    "DELETE FROM message WHERE id BETWEEN {message} AND {message} + 3",
    "UPDATE message SET parent_id = {message} WHERE id = {other}",
    "UPDATE message SET parent_id = 999999 WHERE id = {message}",
    "UPDATE message SET depth = depth + 1 WHERE id = {message}",
    "UPDATE message SET depth = 0 WHERE id = {message}",
    "UPDATE message SET open_calls = {small} WHERE id = {message}",
    "UPDATE message SET system_id = {other} WHERE id = {message}",
    "UPDATE message SET role = 'poet' WHERE id = {message}",
    "UPDATE message SET ref_id = {other} WHERE id = {message}",
    "UPDATE message SET conversation_id = {conversation} WHERE id = {message}",
    "UPDATE conversation SET head_id = {message} WHERE id = {conversation}",
    "UPDATE conversation SET head_id = 999999 WHERE id = {conversation}",
    "UPDATE conversation SET move_id = {small} WHERE id = {conversation}",
    "UPDATE checkpoint SET message_id = {message} WHERE conversation_id = {conversation}",
    "UPDATE move SET from_id = {message} WHERE conversation_id = {conversation} AND id = {small}",
    "UPDATE move SET to_id = 999999 WHERE conversation_id = {conversation} AND id = {small}",
    "UPDATE OR IGNORE move SET prev_id = {small} WHERE conversation_id = {conversation}",
    "UPDATE draft SET parent_id = {message}",
    "UPDATE draft SET content = substr(content, 1, 40)",
    "DELETE FROM draft WHERE position = 0",
    "DELETE FROM move WHERE conversation_id = {conversation} AND id = {small}",
    "DELETE FROM conversation WHERE id = {conversation}",
    "DELETE FROM blob WHERE id = {small}",
    "DELETE FROM sqlite_sequence",
]


async def harm_and_repair(target: Path, seed: int) -> int:
    """A random store, harmed at random; what is told of it is mended. How much was told."""
    rng, world = random.Random(seed), World()
    chooser = Chooser(rng, most=4, large=100)
    async with sessiontree.open_store(target, durability="normal") as store:
        hands = Hands(store)
        for _ in range(rng.randint(5, 120)):
            op = chooser.choose(world)
            assert await hands.perform(op) == world.apply(op)
        await hands.close()
    ids = list(rows(target)) or [1]
    for _ in range(rng.randint(1, 6)):
        statement = rng.choice(HARM).format(
            message=rng.choice(ids),
            other=rng.choice(ids),
            small=rng.randint(0, 9),
            conversation=rng.randint(1, 4),
        )
        try:
            damage(target, statement)
        except sqlite3.IntegrityError:  # a key or a topic would be there twice
            continue
    before = rows(target)
    async with sessiontree.open_store(target) as store:
        problems = await store.check()
        done = await store.repair()
        assert done.left == []
        assert bool(problems) == bool(done.mended) == (done.backup is not None)
        await everything_is_reachable(store, before)
        assert await store.check() == []
    return len(problems)


async def test_whatever_is_harmed_is_mended_and_nothing_becomes_unreachable(
    tmp_path: Path,
) -> None:
    told = [await harm_and_repair(tmp_path / f"{seed}.db", seed) for seed in range(25)]
    assert sum(map(bool, told)) > 15


@pytest.mark.long
@pytest.mark.parametrize("first", range(1_000, 3_000, 500))
async def test_whatever_is_harmed_is_mended_many_times(tmp_path: Path, first: int) -> None:
    for seed in range(first, first + 500):
        await harm_and_repair(tmp_path / f"{seed}.db", seed)


# ---- by hand -------------------------------------------------------------------------


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sessiontree.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_program_tells_what_it_mended_and_exits_with_1_while_something_is_left(
    tmp_path: Path,
) -> None:
    target = asyncio.run(filled(tmp_path / "s.db"))
    damage(target, "DELETE FROM message WHERE id = 6", "UPDATE blob SET content = x'7b7d'")
    found = run("check", "--store", target)
    assert found.returncode == 1
    assert "missing_parent  conversation 1, message 7" in found.stdout
    done = run("check", "--repair", "--store", target)
    assert done.returncode == 1  # what the blobs held is lost
    assert f"{target}.before-repair-" in done.stdout
    assert "mended  missing_message  conversation 1, message 6: a mark" in done.stdout
    again = json.loads(run("check", "--repair", "--json", "--store", target).stdout)
    assert again["mended"] == []
    assert {problem["kind"] for problem in again["left"]} == {"changed_blob", "unreadable_content"}


@pytest.mark.parametrize("damage", ["the end is missing", "the header is garbage"])
def test_the_program_repairs_a_file_that_cannot_be_opened(tmp_path: Path, damage: str) -> None:
    target = asyncio.run(filled(tmp_path / "s.db"))
    if damage == "the end is missing":
        os.truncate(target, os.path.getsize(target) - 4096)
    else:
        with target.open("r+b") as file:
            file.write(b"?" * 4096)
    assert run("ls", "--store", target).returncode == 1
    assert run("check", "--store", target).returncode == 1
    done = run("check", "--repair", "--store", target)
    assert "messages were read out of the damaged file" in done.stdout
    assert done.returncode == 0, done.stdout
    assert not {f"{target.name}-wal", f"{target.name}-shm"} & set(os.listdir(tmp_path))
    assert run("ls", "--store", target).returncode == 0


def test_the_program_leaves_a_file_of_another_kind_alone(tmp_path: Path) -> None:
    target = tmp_path / "letter.txt"
    target.write_text("Dear Camille, " * 1000)
    done = run("check", "--repair", "--store", target)
    assert done.returncode == 1
    assert "no message can be found" in done.stderr
    assert os.listdir(tmp_path) == ["letter.txt"]
    assert target.read_text() == "Dear Camille, " * 1000


def test_a_script_without_async_repairs_as_well(tmp_path: Path) -> None:
    target = asyncio.run(filled(tmp_path / "s.db"))
    damage(target, "UPDATE conversation SET head_id = 4000 WHERE id = 1")
    with sync.open_store(target) as store:
        assert [mended.kind for mended in store.repair().mended] == ["bad_head"]
        assert store.check() == []
