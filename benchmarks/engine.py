"""How fast the engine is, held against plain ``sqlite3`` programs in the same run.

    python benchmarks/engine.py [--quick] [--only NAME] [--json FILE]

Prints one Markdown table: what was promised, what was measured, and on which machine.
A figure that misses its target is a mark in the table; what does not work is an error.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

import appends
import disk
import forks
import loads
import moves
import startup
from measure import Bench, Broken, Figure, Machine, Subject, table, write_json

SUBJECTS: dict[str, Subject] = {
    "appends": appends,
    "loads": loads,
    "moves": moves,
    "forks": forks,
    "disk": disk,
    "startup": startup,
}


def main() -> None:
    wish = _arguments()
    with tempfile.TemporaryDirectory(prefix="sessiontree-bench-", dir=wish.folder) as folder:
        machine = Machine.here(Path(folder), wish.quick)
        figures = asyncio.run(_measure(wish.only or list(SUBJECTS), Path(folder), wish.quick))
    print(table(figures))
    print(f"\n{machine}")
    if wish.json:
        write_json(wish.json, machine, figures)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes and few rounds")
    parser.add_argument(
        "--only", action="append", choices=SUBJECTS, metavar="NAME", help=", ".join(SUBJECTS)
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument(
        "--folder", type=Path, help="where the stores are made; a real disk, for FULL to mean it"
    )
    return parser.parse_args()


async def _measure(names: list[str], folder: Path, quick: bool) -> list[Figure]:
    """One subject after the other; the files of each are gone before the next."""
    figures: list[Figure] = []
    for name in names:
        start = time.perf_counter()
        with tempfile.TemporaryDirectory(prefix=f"{name}-", dir=folder) as own:
            figures += [figure async for figure in SUBJECTS[name].run(Bench(Path(own), quick))]
        print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    return figures


if __name__ == "__main__":
    try:
        main()
    except Broken as error:
        sys.exit(f"benchmark broken: {error}")
