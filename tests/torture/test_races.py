"""Many processes with many tasks each write to one file, on the same and on other
conversations, and are cancelled now and then."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from machine.words import name_of

import sessiontree
from sessiontree import Message

HELPERS = Path(__file__).parent / "helpers"


async def race(
    target: Path, processes: int, tasks: int, turns: int, *, seed: int, within: float
) -> list[dict[str, Any]]:
    """What became of each step, as told by all; fails where one of them met an error."""
    arguments = [str(tasks), str(turns), str(seed)]
    runs = [
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "machine.racer", str(target), str(number), *arguments),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(HELPERS)},
        )
        for number in range(processes)
    ]
    try:
        outputs = await asyncio.wait_for(
            asyncio.gather(*(run.communicate() for run in runs)), within
        )
    finally:
        for run in runs:
            if run.returncode is None:
                run.kill()
                await run.wait()
    for run, (_, errors) in zip(runs, outputs, strict=True):
        assert run.returncode == 0, errors.decode()[-2000:]
        assert not errors
    return [json.loads(line) for output, _ in outputs for line in output.splitlines()]


async def compare(target: Path, told: list[dict[str, Any]]) -> Counter[str]:
    """Each step is there once and in one piece; a cancelled one may be missing as a whole."""
    counts: Counter[str] = Counter()
    async with sessiontree.open_store(target) as store:
        assert await store.check() == []
        there: dict[str, dict[str, Message]] = {}
        async for info in store.conversations():
            chat = await store.open(info.id)
            messages = {name_of(m): m async for m in chat.iter_messages()}
            assert len(messages) == info.messages  # none is there twice
            there[info.topic or ""] = messages
    for step in told:
        found = [there[step["topic"]].pop(name, None) for name in step["names"]]
        fate = step["fate"]
        if fate == "cancelled":
            fate += ", saved" if found[0] else ", not saved"
            if found[0] is None:
                assert found == [None] * len(found), step
        assert fate != "misplaced", step
        counts[fate] += 1
        if found[0] is not None:
            assert_in_one_piece(found, step)
    left = [name for messages in there.values() for name in messages if name[0] != "x"]
    assert left == []
    return counts


def assert_in_one_piece(found: list[Message | None], step: dict[str, Any]) -> None:
    """A chain, in which results stand in any order."""
    assert None not in found, step
    chain = sorted((message for message in found if message), key=lambda message: message.depth)
    parents = [message.parent_id for message in chain[1:]]
    assert parents == [message.id for message in chain[:-1]], step


async def test_processes_and_tasks_on_one_file_lose_nothing(tmp_path: Path) -> None:
    target = tmp_path / "s.db"
    told = await race(target, 4, 16, 8, seed=1, within=120)
    counts = await compare(target, told)
    print(counts)
    assert counts["saved"] > 500
    assert counts["sibling"] > 50
    assert counts["cancelled, saved"] > 0
    assert counts["cancelled, not saved"] > 0


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
async def test_16_processes_with_64_tasks_on_one_file_lose_nothing(
    tmp_path: Path, seed: int
) -> None:
    target = tmp_path / "s.db"
    told = await race(target, 16, 64, 20, seed=seed, within=1800)
    counts = await compare(target, told)
    print(counts)
    assert counts["sibling"] > 1000
