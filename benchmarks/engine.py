"""How fast the engine is, held against plain ``sqlite3`` programs in the same run.

    python benchmarks/engine.py [--quick] [--only NAME] [--out FOLDER]

Prints one Markdown table: what was promised, what was measured, and on which machine. A
whole run writes the figures (JSON), a chart (SVG) for each subject and the table into
docs/benchmarks as well; a quick one writes nothing unless it is told where. A figure that
misses its target is a mark in the table; what does not work is an error.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

import appends
import blobs
import disk
import forks
import imports
import loads
import memory
import moves
import report
import skeletons
import snapshot
import startup
import window
from host import Machine
from measure import Bench, Broken, Figure, Subject, table

PROGRAM = "python benchmarks/engine.py"

SUBJECTS: dict[str, Subject] = {
    "appends": appends,
    "loads": loads,
    "windows": window,
    "moves": moves,
    "forks": forks,
    "blobs": blobs,
    "skeletons": skeletons,
    "imports": imports,
    "snapshots": snapshot,
    "startup": startup,
    "memory": memory,
    "disk": disk,
}
TITLES = {
    "appends": "Appending turns: how many times as fast as a plain program",
    "loads": "Reading a path: how many times as long as a plain program",
    "windows": "Planning what a model is sent",
    "moves": "Branch, rewind and undo, at any length",
    "forks": "Forking a conversation",
    "blobs": "Large contents, kept once",
    "skeletons": "The tree of 100,000 messages, without contents",
    "imports": "Importing session files",
    "snapshots": "Old turns as pages",
    "startup": "What a process pays before it does anything",
    "memory": "Memory above that of an open store",
    "disk": "Bytes on disk",
}


def main() -> None:
    wish = _arguments()
    names = wish.only or list(SUBJECTS)
    out = wish.out or (None if wish.quick else report.DOCS)
    asyncio.run(run(names, wish.quick, out, wish.folder))


async def run(names: list[str], quick: bool, out: Path | None, where: Path | None = None) -> None:
    """One subject after the other; the files of each are gone before the next."""
    figures: list[Figure] = []
    for name in names:
        with tempfile.TemporaryDirectory(prefix="sessiontree-bench-", dir=where) as folder:
            machine = Machine.here(Path(folder), quick, _command(name, quick))
            found = await measured(name, Bench(Path(folder), quick))
        if out:
            report.write(out, name, TITLES[name], machine, found)
            report.write_table(out, list(SUBJECTS), PROGRAM)
        figures += found
        print(f"\n{table(found)}\n\n{machine}", flush=True)
    missed = [figure.subject for figure in figures if figure.verdict == "miss"]
    print(f"\n{len(figures)} figures; {len(missed)} miss their target: {'; '.join(missed)}")


async def measured(name: str, bench: Bench) -> list[Figure]:
    """The figures of one subject."""
    start = time.perf_counter()
    figures = [figure async for figure in SUBJECTS[name].run(bench)]
    print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    return figures


def _command(name: str, quick: bool) -> str:
    return f"{PROGRAM} --only {name}{' --quick' if quick else ''}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes and few rounds")
    parser.add_argument(
        "--only", action="append", choices=SUBJECTS, metavar="NAME", help=", ".join(SUBJECTS)
    )
    parser.add_argument("--out", type=Path, help="where JSON, charts and the table are written")
    parser.add_argument(
        "--folder", type=Path, help="where the stores are made; a real disk, for FULL to mean it"
    )
    return parser.parse_args()


if __name__ == "__main__":
    try:
        main()
    except Broken as error:
        sys.exit(f"benchmark broken: {error}")
