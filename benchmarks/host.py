"""Where it was measured, when, and by which command."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any


@dataclass(frozen=True, slots=True)
class Machine:
    """``fsync`` is what one costs there, in microseconds: it is most of a durable
    transaction, and nothing at all on a disk that is memory. ``load`` is that of the minute
    before: of anything but an idle machine, only the ratios are worth a look."""

    cores: int
    processor: str
    memory: float
    """GiB."""
    python: str
    sqlite: str
    system: str
    load: float
    fsync: float
    quick: bool
    command: str
    date: str = field(default_factory=lambda: time.strftime("%Y-%m-%d"))

    @classmethod
    def here(cls, folder: Path, quick: bool, command: str | None = None) -> Machine:
        return cls(
            cores=len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1,
            processor=_processor(),
            memory=_memory(),
            python=platform.python_version(),
            sqlite=sqlite3.sqlite_version,
            system=f"{platform.system()} {platform.machine()}",
            load=os.getloadavg()[0],
            fsync=_cost_of_fsync(folder),
            quick=quick,
            command=command or f"python benchmarks/{Path(sys.argv[0]).name}",
        )

    def __str__(self) -> str:
        size = " · QUICK: small sizes, few rounds" if self.quick else ""
        return (
            f"{self.date} · {self.cores} cores ({self.processor}) · {self.memory:.0f} GiB · "
            f"Python {self.python} · SQLite {self.sqlite} · {self.system} · "
            f"write and fsync {self.fsync:,.0f} µs · load {self.load:.1f} at the start · "
            f"`{self.command}`{size}"
        )

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def _processor() -> str:
    """The name that the kernel gives it, where it gives one."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _memory() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def _cost_of_fsync(folder: Path) -> float:
    """Microseconds to append 4 KiB to a file and see them on the disk."""
    costs: list[float] = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(50):
            start = time.perf_counter()
            file.write(bytes(4096))
            file.flush()
            os.fsync(file.fileno())
            costs.append(time.perf_counter() - start)
    return 1_000_000 * median(costs)
