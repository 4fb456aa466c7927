"""One peer in a process of its own: does what it is told by lines of JSON, and answers.

    python -m peers.child NAME [wal]

A command is ``{"do": …}`` with the arguments of a method of ``Worker``; the answer is
``{"answer": …}``, or ``{"error": …}`` with what the peer said. Nothing is contacted: every
socket that is not of this machine's own file system is refused before a library is loaded.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import importlib.metadata
import json
import os
import socket
import sqlite3
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from samples import Turn, turns

from .peer import Peer, switch_to_wal


class Amiss(Exception):
    """The peer did not do what it was told; in words for the table."""


class Worker:
    """The commands. Each answer that is a time is in seconds."""

    def __init__(self, make: type[Peer], wal: bool) -> None:
        self._make = make
        self._wal = wal
        self._numbers = count()
        self._first = 0
        """The number of the next turn: no turn is ever said twice in a store."""

    async def about(self) -> dict[str, Any]:
        return {
            "title": self._make.title + (" in WAL mode" if self._wal else ""),
            "package": self._make.package,
            "version": _version(self._make.package),
            "how": self._make.how,
            "cannot": self._make.cannot,
        }

    async def open(self, folder: str) -> None:
        self.peer = self._make(Path(folder))
        if self._wal:
            switch_to_wal(self.peer.file)
        self._filled: tuple[Any, list[str]] | None = None
        await self.peer.open()

    async def close(self) -> None:
        await self.peer.close()

    async def appends(self, at_once: int, each: int) -> float:
        """So many new conversations at once, so many turns in each; then whether the last
        turn of each is there."""
        begun = [await self._begin() for _ in range(at_once)]
        said = [self._said(each) for _ in begun]
        shares = [[self.peer.prepared(turn) for turn in share] for share in said]
        seconds = await _timed(lambda: _all(map(self._talk, begun, shares)))
        for conversation, share in zip(begun, said, strict=True):
            self._expect(await self.peer.newest(conversation, 4), _texts(share[-1:]))
            await self.peer.end(conversation)
        return seconds

    async def settings(self) -> str:
        """Asked when something was written."""
        return await self.peer.settings()

    async def fill(self, count: int) -> None:
        """A conversation of so many turns, for what follows."""
        conversation, said = await self._begin(), self._said(count)
        await self.peer.fill(conversation, said)
        self._filled = (conversation, _texts(said))

    async def grow(self, each: int) -> float:
        """So many turns more in the filled conversation."""
        conversation, texts = self._known()
        said = self._said(each)
        share = [self.peer.prepared(turn) for turn in said]
        seconds = await _timed(lambda: self._talk(conversation, share))
        texts += _texts(said)
        self._expect(await self.peer.newest(conversation, 4), texts[-4:])
        return seconds

    async def load(self) -> float:
        conversation, texts = self._known()
        return await self._read(lambda: self.peer.load(conversation), texts)

    async def newest(self, count: int) -> float:
        conversation, texts = self._known()
        return await self._read(lambda: self.peer.newest(conversation, count), texts[-count:])

    async def branch(self, turns: int) -> float:
        """Go on after so many turns, and go back again."""
        conversation, texts = self._known()
        seconds = await _timed(lambda: self.peer.branch(conversation, turns))
        await self.peer.back(conversation)
        self._expect(await self.peer.newest(conversation, 4), texts[-4:])
        return seconds

    async def fork(self) -> float:
        conversation, texts = self._known()
        start = time.perf_counter()
        copy = await self.peer.fork(conversation)
        seconds = time.perf_counter() - start
        self._expect(await self.peer.load(copy), texts)
        return seconds

    async def size(self) -> int:
        """Bytes of all its files."""
        return sum(file.stat().st_size for file in self.peer.folder.rglob("*") if file.is_file())

    async def _begin(self) -> Any:
        return await self.peer.begin(f"conversation {next(self._numbers)}")

    def _said(self, count: int) -> list[Turn]:
        made = list(turns(count, first=self._first))
        self._first += count
        return made

    async def _talk(self, conversation: Any, share: list[Any]) -> None:
        for turn in share:
            await self.peer.append(conversation, turn)

    async def _read(self, read: Callable[[], Awaitable[Sequence[Any]]], texts: list[str]) -> float:
        await self.peer.fresh()
        gc.collect()
        start = time.perf_counter()
        found = await read()
        seconds = time.perf_counter() - start
        self._expect(found, texts)
        return seconds

    def _known(self) -> tuple[Any, list[str]]:
        if self._filled is None:
            raise Amiss("no conversation was filled in")
        return self._filled

    def _expect(self, found: Sequence[Any], texts: list[str]) -> None:
        if self.peer.said(found) != texts:
            raise Amiss(f"did not give back the {len(texts)} messages that it was given")


async def _all(talks: Iterable[Awaitable[None]]) -> None:
    """Every conversation to its end, also where another fails."""
    ends = await asyncio.gather(*talks, return_exceptions=True)
    failed = [end for end in ends if isinstance(end, BaseException)]
    if failed:
        raise Amiss(f"{len(failed)} of {len(ends)} conversations failed: {_line(failed[0])}")


async def _timed(work: Callable[[], Awaitable[Any]]) -> float:
    gc.collect()
    start = time.perf_counter()
    await work()
    return time.perf_counter() - start


def _line(error: BaseException) -> str:
    """Its first line: what follows is often a whole statement."""
    return str(error).strip().partition("\n")[0][:200]


def _texts(said: Sequence[Turn]) -> list[str]:
    return [message["content"] for turn in said for message in turn]


def _version(package: str) -> str:
    return sqlite3.sqlite_version if package == "sqlite3" else importlib.metadata.version(package)


def refuse_the_network() -> None:
    """A library that would phone home gets an error instead."""

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "socket.getaddrinfo" or (
            event == "socket.connect" and arguments[0].family != socket.AF_UNIX
        ):
            raise PermissionError("a benchmark contacts nobody")

    sys.addaudithook(audit)


async def _serve(worker: Worker, answers: Any) -> None:
    """The loop sleeps while it waits for a line; nothing else runs meanwhile."""
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        command = json.loads(line)
        try:
            answer = {"answer": await getattr(worker, command.pop("do"))(**command)}
        except Amiss as error:
            answer = {"error": str(error)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {_line(error)}"}
        print(json.dumps(answer), file=answers, flush=True)


def main() -> None:
    name, *options = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    refuse_the_network()
    made: type[Peer] = importlib.import_module(f"peers.{name}").PEER
    asyncio.run(_serve(Worker(made, "wal" in options), answers))


if __name__ == "__main__":
    main()
