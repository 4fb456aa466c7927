"""What an export of a long conversation costs: time, and memory above the start.

    python benchmarks/exports.py [--messages 1000000] [--store FILE] [FORMAT ...]

Fills a store with one chain of messages of Claude Code (an existing FILE is used as it is),
exports it in a process of its own for each format, as the active path and as the whole
tree, and prints a Markdown table. More than 100 MB above the start is marked as a miss.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import sessiontree
from sessiontree import formats
from sessiontree.core.records import Graft

FORMATS = ("jsonl", "markdown", "csv", "claude_code", "pi")
BATCH = 5_000
LIMIT = 100
"""MB."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("formats", nargs="*", default=FORMATS)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    wish = parser.parse_args()
    if wish.one:
        asyncio.run(_measure(wish.store, *wish.one))
        return
    with tempfile.TemporaryDirectory(prefix="sessiontree-bench-") as folder:
        store = wish.store or Path(folder) / "sessions.db"
        if not store.exists():
            asyncio.run(_fill(store, wish.messages))
        print("| format | part | seconds | messages/s | MB written | MB above the start |")
        print("|---|---|---|---|---|---|")
        for format in wish.formats:
            for part in ("path", "tree"):
                command = [sys.executable, __file__, "--store", str(store), "--one", format, part]
                print(
                    subprocess.run(command, check=True, capture_output=True, text=True).stdout,
                    end="",
                )


async def _fill(store: Path, count: int) -> None:
    async with sessiontree.open_store(store, durability="normal") as opened:
        chat = await opened.conversation("long")
        last: int | None = None
        for start in range(0, count, BATCH):
            batch = [_graft(at, start, last) for at in range(start, min(count, start + BATCH))]
            last = (await chat.graft(batch))[-1]
        await chat.branch(last)


def _graft(at: int, start: int, last: int | None) -> Graft:
    role = ("user", "assistant")[at % 2]
    row = {
        "type": role,
        "uuid": f"u{at}",
        "parentUuid": f"u{at - 1}" if at else None,
        "sessionId": "s",
        "timestamp": "2026-01-01T00:00:00Z",
        "message": {"role": role, "content": f"message {at} " + "words " * 20},
    }
    made = formats.read(json.dumps(row), format="claude_code", key=f"u{at}")
    return Graft(made, start - at if at > start else last)


async def _measure(store: Path, format: str, part: str) -> None:
    from sessiontree.transfer import export

    with tempfile.TemporaryDirectory(prefix="sessiontree-bench-") as folder:
        file = Path(folder) / "out"
        async with sessiontree.open_store(store, read_only=True) as opened:
            chat = await opened.open(1)
            before, begun = _peak(), time.perf_counter()
            await export(chat, format, whole_tree=part == "tree", file=file)
            took = time.perf_counter() - begun
            count = (await chat.message(chat.head or 0)).depth + 1
        above = _peak() - before
        size = file.stat().st_size / 1e6
    miss = " (miss)" if above > LIMIT else ""
    print(
        f"| {format} | {part} | {took:.1f} | {count / took:,.0f} | {size:.0f} | {above:.0f}{miss} |"
    )


def _peak() -> float:
    """MB that this process has held at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
