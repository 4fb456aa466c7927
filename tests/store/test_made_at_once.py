"""Two processes that open a new file at once: the second may look while the first makes it."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from sessiontree.store.caching import CacheFile
from sessiontree.store.driver import Opening

KINDS = [Opening, CacheFile]


class Interrupted:
    """A connection before whose statement number ``at`` the other one makes the file."""

    def __init__(self, db: sqlite3.Connection, at: int, other: Opening) -> None:
        self._db = db
        self._left = at
        self._other = other

    def execute(self, *args: Any) -> sqlite3.Cursor:
        self._left -= 1
        if self._left == 0:
            with (
                contextlib.suppress(sqlite3.OperationalError),  # locked out, since we look
                contextlib.closing(sqlite3.connect(self._other.path, 0)) as db,
            ):
                db.isolation_level = None
                self._other.set_up(db)
        return self._db.execute(*args)

    @property
    def in_transaction(self) -> bool:
        return self._db.in_transaction


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "new.db"


@pytest.mark.parametrize("at", range(1, 16))
@pytest.mark.parametrize("kind", KINDS, ids=["store", "cache"])
def test_a_file_that_another_process_makes_meanwhile_is_no_file_of_another_kind(
    file: Path, kind: type[Opening], at: int
) -> None:
    how = kind(str(file), patience=0.01)
    with contextlib.closing(sqlite3.connect(file, 0.01, isolation_level=None)) as db:
        how.set_up(Interrupted(db, at, how))  # pyright: ignore[reportArgumentType]
    with contextlib.closing(how.connect()) as db:
        assert db.execute("PRAGMA application_id").fetchone()[0] > 0
