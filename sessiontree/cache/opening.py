"""Opening a cache: a file, or a server."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol, cast

from sessiontree.cache.handle import Backend, Cache, Rules, microseconds, size
from sessiontree.errors import BadArgument, shown
from sessiontree.store.caching import Clock, SQLiteCache

SERVERS = ("redis://", "rediss://", "valkey://", "valkeys://", "unix://")

HOUR = 3_600.0
MIB = 1 << 20


class Opened(Backend, Protocol):
    """A backend that is opened and closed."""

    async def open(self) -> None: ...
    async def close(self) -> None: ...


def _now() -> int:
    return time.time_ns() // 1_000


@asynccontextmanager
async def open_cache(
    target: str | Path,
    *,
    ttl: float | None = HOUR,
    max_bytes: int = 256 * MIB,
    scope: str = "",
    safe_tools: Collection[str] = (),
    patience: float = 1.0,
    pause: float = 5.0,
    clock: Clock = _now,
) -> AsyncGenerator[Cache]:
    """Open a response cache, and make it where there is none.

    ``target``: a file (of its own, never a session store's), ``:memory:``, or the URL of a
    Redis or Valkey server (``redis://…``, ``rediss://…``, ``valkey://…``, ``unix://…``; the
    extra ``redis``). A server that is down is no error, then or later.

    ``ttl``: seconds that an answer lives since it was last used; None: for ever.
    ``max_bytes``: what was unused for longest goes when there is more.
    ``scope``: whose answers these are; another scope's are never found (an owner, say).
    ``safe_tools``: names of tools without side effects; see ``Cache.refuses``.
    ``patience``: seconds that a request waits for the cache at most. ``pause``: seconds for
    which a cache that failed is left alone.
    ``clock``: microseconds since 1970, for a file; a server has its own.

    BadArgument, NotAStore, StoreTooNew, StoreCorrupt, StoreUnavailable, StoreReadOnly,
    StoreBusy: the file cannot be a cache.
    """
    rules = _rules(ttl, max_bytes, scope, safe_tools, pause)
    wait = (microseconds(patience, "patience") or 0) / 1_000_000
    backend = _backend(_place(target), wait, clock)
    try:
        await backend.open()
        yield Cache(backend, rules)
    finally:
        await backend.close()


def _rules(
    ttl: float | None, max_bytes: int, scope: str, safe_tools: Collection[str], pause: float
) -> Rules:
    if not isinstance(cast(object, scope), str):
        raise BadArgument(f"scope is {shown(scope)}", hint="give a string")
    if isinstance(safe_tools, str):
        raise BadArgument(f"safe_tools is {shown(safe_tools)}", hint="give a list of names")
    rest = (microseconds(pause, "pause") or 0) / 1_000_000
    lives = microseconds(ttl, "ttl")
    return Rules(lives, size(max_bytes), scope, frozenset(safe_tools), rest)


def _place(target: object) -> str:
    place = str(target) if isinstance(target, str | Path) else ""
    if not place or "\0" in place or not place.isprintable():
        raise BadArgument(f"a cache at {shown(target)}", hint="give a path or a redis:// URL")
    return place


def _backend(place: str, patience: float, clock: Clock) -> Opened:
    if place.startswith(SERVERS):
        from sessiontree.cache.server import RedisCache

        return RedisCache(place, patience)
    path = place.removeprefix("sqlite:///")
    if "://" in path:
        raise BadArgument(f"a cache at {shown(path)}", hint=f"a path, or {', '.join(SERVERS)}…")
    return SQLiteCache(path if path == ":memory:" else os.path.abspath(path), patience, clock)
