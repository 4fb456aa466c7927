"""What a machine does to a store: each is a fault while the ``with`` lasts."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

NOBODY = 65534

LOCK = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
"""


@contextmanager
def small_disk(folder: Path, size: str = "2m") -> Iterator[Path]:
    """A disk of its own that can be filled; the test is skipped where none can be mounted."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no disk can be mounted here; mounting needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@contextmanager
def full(disk: Path) -> Iterator[None]:
    """No byte is left on it."""
    filler = disk / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(b"\0" * 4096)
    try:
        yield
    finally:
        filler.unlink()


@contextmanager
def limit(kind: int, soft: int) -> Iterator[None]:
    """A limit of this process; see ``resource``."""
    before, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (soft, hard))
    try:
        yield
    finally:
        resource.setrlimit(kind, (before, hard))


@contextmanager
def no_file_grows(beyond: int) -> Iterator[None]:
    """Writing past so many bytes of a file is an I/O error."""
    with limit(resource.RLIMIT_FSIZE, beyond):
        yield


@contextmanager
def no_more_files() -> Iterator[None]:
    """Every file that is opened now is one too many."""
    lowest_free = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest_free)
    with limit(resource.RLIMIT_NOFILE, lowest_free):
        yield


@contextmanager
def locked_by_another(store: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process is in a transaction that writes."""
    command = [sys.executable, "-c", LOCK, str(store)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        try:
            yield other
        finally:
            other.stdin.close()


@contextmanager
def nobody() -> Iterator[None]:
    """We are a user whom permissions bind. Root is not."""
    if os.geteuid() != 0:
        yield
        return
    os.setresgid(NOBODY, NOBODY, 0)
    os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)
