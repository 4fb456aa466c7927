"""What a power loss leaves of a store: its files as they stood on the disk."""

from __future__ import annotations

import random
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from machine.choosing import Chooser
from machine.hands import Hands
from machine.world import World

import sessiontree

NEVER = 2**31 - 1
"""More pages than any log here has."""


@dataclass
class Image:
    """The two files, and what the store had acknowledged by then."""

    main: bytes
    log: bytes
    facts: dict[str, Any]

    def lay(self, folder: Path, name: str, index: bytes | None = None) -> Path:
        """Write them as a store of this name; with an index of the log where one is given."""
        target = folder / name
        if index is not None:
            Path(f"{target}-shm").write_bytes(index)
        target.write_bytes(self.main)
        Path(f"{target}-wal").write_bytes(self.log)
        return target


@dataclass
class Recording:
    """Images of a store after each operation; only those that wrote are kept."""

    images: list[Image] = field(default_factory=list[Image])

    @property
    def last(self) -> Image:
        return self.images[-1]

    def at(self, length: int) -> Image:
        """The newest image whose whole log is in the first ``length`` bytes of the last's; for
        a log that only grew."""
        return [image for image in self.images if len(image.log) <= length][-1]


async def record(
    folder: Path, seed: int, operations: int, *, fold_after: int = NEVER, durability: Any = "full"
) -> Recording:
    """Random operations, an image after each. ``fold_after``: pages of the log after which
    SQLite folds it into the main file, and begins it anew; else the log only grows."""
    target, recording, world = folder / "recorded.db", Recording(), World()
    chooser = Chooser(random.Random(seed), most=3, large=80)

    def look() -> None:
        main, log = _copy(target), _copy(Path(f"{target}-wal"))
        image = Image(main, log, world.copy().facts())
        if not recording.images or (main, log) != (recording.last.main, recording.last.log):
            recording.images.append(image)

    async with sessiontree.open_store(target, durability=durability) as store:
        await store._backend.write(lambda db: db.execute(f"PRAGMA wal_autocheckpoint={fold_after}"))
        assert store._backend._writer is not None
        store._backend._writer._fold_at = sys.maxsize  # not beside us, between two copies
        hands = Hands(store)
        look()
        for _ in range(operations):
            op = chooser.choose(world)
            assert await hands.perform(op) == world.apply(op)
            look()
        await hands.close()
    return recording


def _copy(file: Path) -> bytes:
    """Another process reads it: if we closed a file that SQLite has open, its locks would go."""
    return subprocess.run(["cat", str(file)], check=True, capture_output=True).stdout


def mangle(rng: random.Random, log: bytes, begin: int, block: int) -> tuple[bytes, int]:
    """What was not synced, from ``begin`` on: blocks of it were written, or not, or something
    else was. Returns it, and up to where it is as it was."""
    whole, spoilt = bytearray(log), len(log)
    starts = list(range(begin, len(log), block))
    for start in rng.sample(starts, min(len(starts), rng.randint(1, 4))):
        end = min(start + block, len(log))
        other = rng.choice(starts)
        instead = {
            "zeros": bytes(end - start),
            "garbage": rng.randbytes(end - start),
            "another block": bytes(log[other : other + end - start]).ljust(end - start, b"\0"),
        }[rng.choice(["zeros", "garbage", "another block"])]
        same = next((i for i in range(end - start) if instead[i] != log[start + i]), None)
        if same is not None:
            whole[start:end] = instead
            spoilt = min(spoilt, start + same)
    return bytes(whole), spoilt
