"""Garbage is collected more seldom while a file is imported.

An import holds some objects for each row of a file until its end, and none of them is part of
a circle. Python would go through each of them twice when it is young, and again through all
each time that a quarter more are there: a fifth of the time of a large import. Meanwhile only
the newest are looked through, and after more of them; so most of the garbage of others does not
gather, and the rest waits for the end of the import.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock

SELDOM = (50_000, 1 << 30, 1 << 30)
"""New objects before they are looked through; such collections before one of what has been there
for a while; and of these before one of everything."""

_lock = Lock()
_running = 0
_before = SELDOM


@contextmanager
def seldom_collecting() -> Generator[None, None, None]:
    """For all that is imported at once, in any thread. Then it is as it was, unless somebody
    has changed it since."""
    _begin()
    try:
        yield
    finally:
        _end()


def _begin() -> None:
    global _running, _before  # there is one collector in a process
    with _lock:
        if not _running:
            _before = gc.get_threshold()
            gc.set_threshold(*SELDOM)
        _running += 1


def _end() -> None:
    global _running
    with _lock:
        _running -= 1
        if not _running and gc.get_threshold() == SELDOM:
            gc.set_threshold(*_before)
