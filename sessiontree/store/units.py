"""Units of work: what is known of them before they run."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, TypeVarTuple

Ts = TypeVarTuple("Ts")
T = TypeVar("T")
Unit = TypeVar("Unit", bound=Callable[..., Any])


class Together(Generic[*Ts, T]):
    """A unit of work that does for many in few statements what ``unit(db, *args)`` does for
    one: SQLite works without Python's lock, but each statement has to win the lock back.

    ``everyone(db, calls, at_length)`` takes the arguments of each call and gives their results in
    the same order. It calls ``at_length`` before the statement that takes longest. What it raises
    undoes all of them.
    """

    def __init__(
        self,
        everyone: Callable[[sqlite3.Connection, Sequence[tuple[*Ts]], Callable[[], None]], list[T]],
    ) -> None:
        self.everyone = everyone

    def __call__(self, db: sqlite3.Connection, *args: *Ts) -> T:
        return self.everyone(db, [args], _pass)[0]


def _pass() -> None:
    """Nobody waits to be told."""


_BOUNDED: dict[Any, Callable[..., bool] | None] = {}


def bounded(unit: Unit) -> Unit:
    """Mark a unit that touches a few rows, which it finds by an index, however large the store
    is: it may be run at hand."""
    _BOUNDED[unit] = None
    return unit


def bounded_where(holds: Callable[..., bool]) -> Callable[[Unit], Unit]:
    """As ``bounded``, where ``holds(*args)`` says so of the arguments."""

    def mark(unit: Unit) -> Unit:
        _BOUNDED[unit] = holds
        return unit

    return mark


def is_bounded(unit: Callable[..., Any], args: Sequence[Any]) -> bool:
    """Whether this call touches a few rows."""
    if unit not in _BOUNDED:
        return False
    holds = _BOUNDED[unit]
    return holds is None or holds(*args)
