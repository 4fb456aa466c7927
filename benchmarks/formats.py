"""How fast a session file is imported, beside a plain program, and in how much memory.

    python benchmarks/formats.py [--quick] [--only NAME] [--json FILE] [--folder FOLDER]

For each of the formats that agents write (Claude Code's, pi's, Codex's) a file of 100 MB is
made and imported into a new store, in a process of its own. The plain program reads the file
once, parses each line with the standard library's ``json``, and inserts one row a line into
a store of the same schema with the same durability; it takes every row for the child of the row
before it, keeps its id (or else its line) as its key, and pairs, counts and checks nothing. Then a
conversation of 1,000,000 messages is exported; see exports.py. Memory is the peak of the
process above what it held when the work began.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import exports
import plain
import session_files
from measure import (
    Bench,
    Broken,
    Figure,
    Machine,
    Target,
    at_least,
    at_most,
    speed,
    table,
    write_json,
)
from measure import expect as expect_equal

SIZE = 100_000_000
"""Bytes of a file."""
BATCH = 1_000
"""Rows in one transaction of the plain program."""
ROUNDS = 3
RATE = at_least(0.5, 1.0)
MEMORY = at_most(200, 100)
"""MB above the start."""


class Run(NamedTuple):
    """What one process did."""

    seconds: float
    rows: int
    peak: float
    """MB above the start."""


def main() -> None:
    wish = _arguments()
    if wish.one:
        work, format, file, store = wish.one
        print(json.dumps(_WORK[work](format, Path(file), Path(store))))
        return
    with tempfile.TemporaryDirectory(prefix="sessiontree-bench-", dir=wish.folder) as folder:
        bench = Bench(Path(folder), wish.quick)
        machine = Machine.here(bench.folder, bench.quick)
        figures = [figure for name in wish.only or NAMES for figure in _measure(name, bench)]
    print(table(figures))
    print(f"\n{machine}")
    if wish.json:
        write_json(wish.json, machine, figures)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes and few rounds")
    parser.add_argument(
        "--only", action="append", choices=NAMES, metavar="NAME", help=", ".join(NAMES)
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument(
        "--folder", type=Path, help="where the stores are made; a real disk, for FULL to mean it"
    )
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    return parser.parse_args()


def _measure(name: str, bench: Bench) -> list[Figure]:
    print(f"{name} …", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=bench.folder) as own:
        if name == EXPORTS:
            return exports.figures(Path(own), bench.pick(1_000_000, 20_000))
        return imports(name, Path(own), bench)


# --- imports ----------------------------------------------------------------------------


def imports(format: str, folder: Path, bench: Bench) -> list[Figure]:
    """Rate and memory of one format."""
    file = folder / "session.jsonl"
    rows = session_files.write(file, format, bench.pick(SIZE, 2_000_000))
    size = file.stat().st_size / 1e6
    ours, plainly = _rounds(format, file, bench.pick(ROUNDS, 1))
    expect_equal({run.rows for run in [*ours, *plainly]}, {rows}, f"rows stored of {format}")

    def told(seconds: Sequence[float]) -> str:
        return f"{size / sorted(seconds)[len(seconds) // 2]:.1f} MB/s"

    of = f"{format}, {size:,.0f} MB, {rows:,} rows"
    rates = [run.seconds for run in ours], [run.seconds for run in plainly]
    return [
        speed(f"import of {of}: rate", *rates, told, RATE),
        _memory(f"import of {of}: memory", ours, plainly, MEMORY),
    ]


def _rounds(format: str, file: Path, count: int) -> tuple[list[Run], list[Run]]:
    """Ours and the plain program in turn, each a new process with a new store."""
    runs: dict[str, list[Run]] = {work: [] for work in _WORK}
    for turn in range(count):
        for work in list(_WORK)[:: -1 if turn % 2 else 1]:
            runs[work].append(_process(work, format, file))
    return runs["import"], runs["plain"]


def _process(work: str, format: str, file: Path) -> Run:
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        command = [sys.executable, __file__, "--one", work, format, str(file), f"{folder}/new.db"]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Broken(f"{work} of {format}: {done.stderr}")
    return Run(*json.loads(done.stdout))


def _memory(name: str, ours: list[Run], plainly: list[Run], target: Target) -> Figure:
    told = [f"{max(run.peak for run in runs):.0f} MB" for runs in (ours, plainly)]
    peaks = tuple(run.peak for run in ours)
    return Figure(name, peaks, target, "MB", ours=told[0], plain=told[1])


# --- what a process does ------------------------------------------------------------------


def _import(format: str, file: Path, store: Path) -> Run:
    return asyncio.run(_import_ours(format, file, store))


async def _import_ours(format: str, file: Path, store: Path) -> Run:
    from sessiontree import open_store
    from sessiontree.transfer import import_file

    async with open_store(store) as opened:
        with exports.Peak() as peak:
            start = time.perf_counter()
            done = await import_file(opened, file, format=format)
            seconds = time.perf_counter() - start
    return Run(seconds, done.kept, peak.above)


def _plain(format: str, file: Path, store: Path) -> Run:
    ours = plain.Plain(store)
    chat = ours.conversation()
    with exports.Peak() as peak, file.open("rb") as source:
        start = time.perf_counter()
        count = 0
        lines = enumerate(source, 1)
        rows = (_plain_row(chat, at, json.loads(line), line) for at, line in lines)
        while batch := list(islice(rows, BATCH)):
            ours.db.execute("BEGIN IMMEDIATE")
            ours.db.executemany(_INSERT, batch)
            ours.db.execute("COMMIT")
            count += len(batch)
        seconds = time.perf_counter() - start
    ours.close()
    return Run(seconds, count, peak.above)


_INSERT = """
INSERT INTO message (id, conversation_id, parent_id, role, format, depth, open_calls, tokens, usage,
    model, preview, key, meta, system_id, ref_id, created_at, blob_id, content)
VALUES (?, ?, nullif(?, 0), ?, 'openai_chat', ?, 0, ?, NULL, NULL, '', ?, NULL, NULL, NULL, 0,
    NULL, ?)
"""


def _plain_row(chat: int, at: int, native: dict[str, Any], line: bytes) -> tuple[object, ...]:
    """What it makes of a line: a row under the row before."""
    role = native.get("type")
    role = role if role in ("user", "assistant") else "mark"
    key = native.get("uuid") or native.get("id") or f"line {at}"
    return at, chat, at - 1, role, at - 1, len(line) // 4, key, line.decode()


_WORK: dict[str, Callable[[str, Path, Path], Run]] = {"import": _import, "plain": _plain}
EXPORTS = "exports"
NAMES = (*session_files.FORMATS, EXPORTS)


if __name__ == "__main__":
    try:
        main()
    except Broken as error:
        sys.exit(f"benchmark broken: {error}")
