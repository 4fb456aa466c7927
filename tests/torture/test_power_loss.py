"""What is left after the power went: files cut anywhere, with garbage at their end, with blocks
that were not written, in any order. The store opens at a boundary, and has what was synced."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest
from machine.disk import Image, Recording, mangle, record
from machine.hands import look
from machine.world import differences

import sessiontree

PAGE = 4096


async def holds(target: Path, image: Image) -> None:
    """The store opens, is sound, and is what it was at ``image``, and goes on."""
    async with sessiontree.open_store(target) as store:
        assert not differences(await look(store), image.facts)
        assert await store.check() == []
        chat = await store.conversation("after")
        await chat.append({"role": "user", "content": "on we go"})
    discard(target)


def discard(target: Path) -> None:
    for part in ("", "-wal", "-shm"):
        Path(f"{target}{part}").unlink(missing_ok=True)


def cuts(recording: Recording, rng: random.Random, count: int) -> list[int]:
    """Where to cut the log: around the end of each transaction, and anywhere."""
    ends = [len(image.log) + off for image in recording.images for off in (-1, 0, 1, 24)]
    first, last = len(recording.images[0].log), len(recording.last.log)
    anywhere = [rng.randint(first, last) for _ in range(count)]
    near = rng.sample(ends, min(len(ends), count))
    return [cut for cut in anywhere + near if first <= cut <= last]


@pytest.mark.parametrize("tail", ["nothing", "garbage", "zeros"])
async def test_a_log_cut_at_any_byte_opens_at_the_last_whole_transaction(
    tmp_path: Path, tail: str
) -> None:
    await cut_and_open(tmp_path, tail, seed=1, operations=80, count=20)


@pytest.mark.long
@pytest.mark.parametrize("tail", ["nothing", "garbage", "zeros"])
@pytest.mark.parametrize("seed", range(10))
async def test_many_logs_cut_at_any_byte_open_at_the_last_whole_transaction(
    tmp_path: Path, tail: str, seed: int
) -> None:
    await cut_and_open(tmp_path, tail, seed=seed, operations=250, count=300)


async def cut_and_open(folder: Path, tail: str, *, seed: int, operations: int, count: int) -> None:
    rng = random.Random(f"{seed}{tail}")
    recording = await record(folder, seed, operations)
    discard(folder / "recorded.db")
    for cut in cuts(recording, rng, count):
        size = rng.randint(1, 20_000)
        more = {"nothing": b"", "garbage": rng.randbytes(size), "zeros": bytes(size)}[tail]
        left = Image(recording.last.main, recording.last.log[:cut] + more, {})
        whole = same_bytes(left.log, recording.last.log)
        await holds(left.lay(folder, "cut.db"), recording.at(whole))


def same_bytes(left: bytes, log: bytes) -> int:
    """How far a cut log is what it was: what came behind the cut may happen to be what was
    lost, one byte in 256 times."""
    low, high = 0, min(len(left), len(log))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == log[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


@pytest.mark.parametrize("durability", ["full", "normal"])
async def test_blocks_lost_or_reordered_after_the_last_sync_cost_nothing_that_was_synced(
    tmp_path: Path, durability: str
) -> None:
    await lose_blocks(tmp_path, durability, seed=2, operations=80, count=40)


@pytest.mark.long
@pytest.mark.parametrize("durability", ["full", "normal"])
@pytest.mark.parametrize("seed", range(10))
async def test_many_blocks_lost_or_reordered_cost_nothing_that_was_synced(
    tmp_path: Path, durability: str, seed: int
) -> None:
    await lose_blocks(tmp_path, durability, seed=seed, operations=250, count=500)


async def lose_blocks(
    folder: Path, durability: str, *, seed: int, operations: int, count: int
) -> None:
    """With "full" the log is synced by each transaction, so what was acknowledged before the
    blocks that were lost is there; with "normal" the log is not synced at all, and it still
    opens at a boundary."""
    rng = random.Random(f"{seed}{durability}")
    recording = await record(folder, seed, operations, durability=durability)
    discard(folder / "recorded.db")
    first = 1 if durability == "normal" else len(recording.images) // 3
    for _ in range(count):
        synced = rng.choice(recording.images[first:])
        log, spoilt = mangle(rng, recording.last.log, len(synced.log), rng.choice([512, PAGE]))
        expected = recording.at(spoilt)
        assert len(expected.log) >= len(synced.log)
        await holds(Image(recording.last.main, log, {}).lay(folder, "lost.db"), expected)


async def test_a_main_file_half_written_when_the_log_was_folded_is_made_whole(
    tmp_path: Path,
) -> None:
    """While SQLite folds the log, any block of the main file may be old or new; the log still
    has them all. What was folded earlier needs no log."""
    folded = await fold_in_part(tmp_path, seed=3, operations=150, times=2)
    assert folded >= 5


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
async def test_many_half_written_main_files_are_made_whole(tmp_path: Path, seed: int) -> None:
    await fold_in_part(tmp_path, seed=seed, operations=400, times=10)


async def fold_in_part(folder: Path, *, seed: int, operations: int, times: int) -> int:
    rng = random.Random(seed)
    recording = await record(folder, seed, operations, fold_after=30)
    discard(folder / "recorded.db")
    folds = [
        (before, after) for before, after in pairwise(recording.images) if before.main != after.main
    ]
    for before, after in folds:
        for _ in range(times):
            block = rng.choice([512, PAGE])
            main = patchwork(rng, before.main, after.main, block)
            await holds(Image(main, after.log, {}).lay(folder, "half.db"), after)
        await holds(Image(after.main, b"", {}).lay(folder, "folded.db"), after)
        await holds(Image(after.main, rng.randbytes(50_000), {}).lay(folder, "bad.db"), after)
    return len(folds)


def patchwork(rng: random.Random, old: bytes, new: bytes, block: int) -> bytes:
    """Blocks of the one and of the other. The file may be as long as it was, or as it is."""
    blocks = range(0, len(new), block)
    mixed = b"".join(
        rng.choice([old[at : at + block].ljust(block, b"\0"), new[at : at + block]])
        for at in blocks
    )
    return mixed if rng.random() < 0.5 else mixed[: max(len(old), rng.choice(blocks))]


async def test_an_index_of_the_log_that_holds_garbage_is_made_anew(tmp_path: Path) -> None:
    recording = await record(tmp_path, 4, 60)
    index = random.Random(4).randbytes(32_768)
    await holds(recording.last.lay(tmp_path, "index.db", index), recording.last)
