"""What an export of a long conversation costs: time, and memory above the start.

    python benchmarks/exports.py [--messages 1000000] [--store FILE] [FORMAT ...]

Fills a store with one chain of messages of Claude Code (an existing FILE is used as it is),
exports it in a process of its own for each format, as the active path and as the whole
tree, and prints a Markdown table. More than 100 MB above the start is a miss.
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
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType

from measure import Broken, Figure, at_most, table

import sessiontree
from sessiontree import formats
from sessiontree.core.records import Graft

FORMATS = ("jsonl", "markdown", "html", "csv", "claude_code", "pi")
PARTS = ("path", "tree")
BATCH = 5_000
MEMORY = at_most(100, 50)
"""MB above the start."""


class Peak:
    """``with Peak() as peak`` … ``peak.above``: MB that the process held at most while it
    ran, above what it held when it began."""

    above = 0.0

    def __enter__(self) -> Peak:
        self._start = _memory("VmRSS")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.above = _memory("VmHWM") - self._start


def _memory(field: str) -> float:
    """MB that this process holds (VmRSS), or has held at most (VmHWM). Where the system does
    not tell both, the most is told for either."""
    status = Path("/proc/self/status")
    if not status.exists():
        unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    for line in status.read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise Broken(f"the system does not tell its {field}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("formats", nargs="*", default=FORMATS)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    wish = parser.parse_args()
    if wish.one:
        print(json.dumps(asyncio.run(_measure(wish.store, *wish.one))))
        return
    with tempfile.TemporaryDirectory(prefix="sessiontree-bench-") as folder:
        store = wish.store or Path(folder) / "sessions.db"
        print(table(_figures(store, wish.messages, wish.formats)))


def figures(folder: Path, count: int) -> list[Figure]:
    """The memory of every export of a new conversation of ``count`` messages."""
    return list(_figures(folder / "sessions.db", count, FORMATS))


def _figures(store: Path, count: int, names: Sequence[str]) -> Iterator[Figure]:
    if not store.exists():
        asyncio.run(_fill(store, count))
    for format in names:
        for part in PARTS:
            command = [sys.executable, __file__, "--store", str(store), "--one", format, part]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise Broken(f"export of {format}: {done.stderr}")
            print(f"{format}, {part}: {done.stdout.strip()}", file=sys.stderr)
            yield _figure(format, part, *json.loads(done.stdout))


def _figure(format: str, part: str, seconds: float, count: int, size: int, peak: float) -> Figure:
    subject = f"export of {count:,} messages as {format}, {part}: memory"
    ours = f"{count / seconds:,.0f}/s, {size / 1e6:,.0f} MB"
    return Figure(subject, (peak,), MEMORY, "MB", ours=ours)


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


async def _measure(store: Path, format: str, part: str) -> tuple[float, int, int, float]:
    """Seconds, messages, bytes written, and MB above the start."""
    from sessiontree.transfer import export

    with tempfile.TemporaryDirectory(prefix="sessiontree-bench-") as folder:
        file = Path(folder) / "out"
        async with sessiontree.open_store(store, read_only=True) as opened:
            chat = await opened.open(1)
            with Peak() as peak:
                start = time.perf_counter()
                await export(chat, format, whole_tree=part == "tree", file=file)
                seconds = time.perf_counter() - start
            count = (await chat.message(chat.head or 0)).depth + 1
        return seconds, count, file.stat().st_size, peak.above


if __name__ == "__main__":
    try:
        main()
    except Broken as error:
        sys.exit(f"benchmark broken: {error}")
