"""What is asked of a peer, and how it says what it cannot do.

A peer is used as its documentation says, on one file, with the settings it comes with. What
it is given it may make into its own objects before the clock runs (``prepared``), as its
framework would have done by then.
"""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

Message = Mapping[str, Any]
"""As in OpenAI's chat requests: that is what ``samples`` makes."""
Turn = Sequence[Message]


class Peer(ABC):
    """One store. What a conversation, a prepared turn and a loaded message are, each peer
    knows for itself. ``how`` says by which call it does something where that is not plain,
    ``cannot`` why it does not do it at all: both by the name of the method."""

    title: ClassVar[str]
    package: ClassVar[str]
    """The distribution whose version is told."""
    how: ClassVar[dict[str, str]] = {}
    cannot: ClassVar[dict[str, str]] = {}

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self.file = folder / "sessions.db"

    @abstractmethod
    async def open(self) -> None: ...

    @abstractmethod
    async def begin(self, name: str) -> Any:
        """A new conversation."""

    async def end(self, conversation: Any) -> None:
        """Let go of a conversation that nobody will ask for again; not timed."""
        return

    @abstractmethod
    def prepared(self, turn: Turn) -> Any:
        """The turn in the shape that ``append`` takes."""

    @abstractmethod
    async def append(self, conversation: Any, turn: Any) -> None:
        """One turn of four messages, durable when this returns as far as the store goes."""

    async def fill(self, conversation: Any, turns: Iterable[Turn]) -> None:
        """Many turns, into a conversation without any, in the quickest way there is; not
        timed. Only one conversation of a store is filled."""
        for turn in turns:
            await self.append(conversation, self.prepared(turn))

    async def fresh(self) -> None:
        """Before each timed load: let go of what is kept of earlier ones in memory."""
        return

    @abstractmethod
    async def load(self, conversation: Any) -> Sequence[Any]:
        """Every message, oldest first."""

    async def newest(self, conversation: Any, count: int) -> Sequence[Any]:
        """The newest messages, oldest first."""
        return (await self.load(conversation))[-count:]

    async def branch(self, conversation: Any, turns: int) -> None:
        """Go on after so many turns; what came after them stays."""
        raise NotImplementedError(self.cannot["branch"])

    async def back(self, conversation: Any) -> None:
        """Take the last branch back; not timed."""
        return

    async def fork(self, conversation: Any) -> Any:
        """A conversation of its own with the same messages."""
        raise NotImplementedError(self.cannot["fork"])

    @abstractmethod
    def said(self, messages: Sequence[Any]) -> list[str]:
        """The texts of what was loaded, to compare with what was given."""

    @abstractmethod
    async def settings(self) -> str:
        """How it writes: what its file and its own connection say when they are asked."""

    async def close(self) -> None:
        """Let go of the file."""
        return


FILLED_AT_ONCE = 125
"""Turns. Whoever can branch can branch after each so many of what was filled in."""


def batches(turns: Iterable[Turn]) -> Iterator[tuple[int, list[Turn]]]:
    """So many turns at a time, and how many it is with them."""
    rest, so_far = iter(turns), 0
    while some := list(islice(rest, FILLED_AT_ONCE)):
        so_far += len(some)
        yield so_far, some


PRAGMAS = ("journal_mode", "synchronous")
SYNCHRONOUS = {"0": "OFF", "1": "NORMAL", "2": "FULL", "3": "EXTRA"}


def told(journal_mode: object, synchronous: object) -> str:
    """The answers of the two pragmas in words."""
    return f"{str(journal_mode).upper()}, {SYNCHRONOUS[str(synchronous)]}"


def asked(connection: sqlite3.Connection) -> str:
    """The settings of a connection of the standard library."""
    return told(*(connection.execute(f"PRAGMA {name}").fetchone()[0] for name in PRAGMAS))


def switch_to_wal(file: Path) -> None:
    """A file remembers its journal mode, so whoever opens it later runs in WAL mode."""
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA journal_mode = WAL")
