"""Whether a store's files are still those that were opened."""

from __future__ import annotations

import os
import time

from sessiontree.errors import StoreUnavailable
from sessiontree.store.driver import Opening

BELIEVED = 1.0
"""Seconds for which a folder is believed: something may be mounted over a file, and not every file
system keeps the times of its folders."""


class SameFile:
    """Whether the paths of a store and of its log still name the files that were opened: what
    is written to a file that somebody removed or replaced meanwhile would be lost with the
    last handle on it.

    Whoever does that changes their folder, so mostly a look at the folder is enough. A look at
    the log costs more than itself: Linux, once asked for the time of a file's last change,
    notes the next one to the nanosecond, and the sync after it takes 0.05 ms longer."""

    def __init__(self, how: Opening) -> None:
        files = () if how.in_memory else (how.path, how.path + "-wal")
        self._opened = [(path, _identity(path)) for path in files]
        self._folder = os.path.dirname(how.path) or os.curdir
        self._tells = not how.in_memory and not os.path.islink(how.path)
        """Whether it is that folder that changes: a link leads to another one."""
        self._unchanged: tuple[int, ...] | None = None
        self._until = 0.0

    def require(self) -> None:
        """StoreUnavailable when they do not."""
        folder = _state(self._folder) if self._tells else None
        if folder is not None and folder == self._unchanged and time.monotonic() < self._until:
            return
        seen, self._until = time.time_ns(), time.monotonic() + BELIEVED
        self._require_files()
        is_over = folder is not None and all(_is_settled(at, seen) for at in folder[2:])
        self._unchanged = folder if is_over else None

    def _require_files(self) -> None:
        for at, (path, opened) in enumerate(self._opened):
            found = _identity(path)
            if opened is None:  # the log of a new store is made when it is first read
                self._opened[at] = path, found
            elif found != opened:
                raise StoreUnavailable(
                    f"{path} was removed or replaced while it was open",
                    hint="nothing was saved; put it back, or open the store again",
                )


def _identity(path: str) -> tuple[int, int] | None:
    found = _look(path)
    return None if found is None else (found.st_dev, found.st_ino)


def _state(folder: str) -> tuple[int, ...] | None:
    """Which folder it is, and when a name in it was last made, removed or given to another. That
    is its last time of change too, which nobody can set back, as whoever restores a copy does
    with the other one."""
    found = _look(folder)
    if found is None:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns


def _look(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None


def _is_settled(changed: int, seen: int) -> bool:
    """Whether the next change will bear another time: clocks of file systems tick every few
    milliseconds, some every two seconds."""
    tick = 3_000_000_000 if changed % 1_000_000_000 == 0 else 50_000_000
    return seen - changed > tick
