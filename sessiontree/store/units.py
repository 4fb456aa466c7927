"""Units of work that can be done for several callers at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar, TypeVarTuple

Ts = TypeVarTuple("Ts")
T = TypeVar("T")


class Together(Generic[*Ts, T]):
    """A unit of work that does for many in few statements what ``unit(db, *args)`` does for
    one: SQLite works without Python's lock, but each statement has to win the lock back.

    ``everyone(db, calls)`` takes the arguments of each call and gives their results in the same
    order. What it raises undoes all of them.
    """

    def __init__(
        self, everyone: Callable[[sqlite3.Connection, Sequence[tuple[*Ts]]], list[T]]
    ) -> None:
        self.everyone = everyone

    def __call__(self, db: sqlite3.Connection, *args: *Ts) -> T:
        return self.everyone(db, [args])[0]
