"""A batch has room for the pages it writes, and gives it back."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from sessiontree.core.message import NewMessage
from sessiontree.core.records import Graft
from sessiontree.store import messages

SCHEMA = Path(__file__).parents[2] / "schema.sql"


@pytest.fixture
def db() -> sqlite3.Connection:
    made = sqlite3.connect(":memory:", isolation_level=None)
    made.executescript(SCHEMA.read_text(encoding="utf-8"))
    made.execute("INSERT INTO conversation (created_at, updated_at) VALUES (0, 0)")
    made.execute("PRAGMA cache_size = -1234")
    return made


def room(db: sqlite3.Connection) -> int:
    return db.execute("PRAGMA cache_size").fetchone()[0]


def grafts(*parents: int | None) -> list[Graft]:
    return [Graft(NewMessage('{"x": 1}', "mark", "mark"), parent) for parent in parents]


def test_the_room_of_a_batch_is_given_back(db: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch):
    during: list[int] = []
    insert = messages.insert
    monkeypatch.setattr(messages, "insert", lambda *a: (during.append(room(db)), insert(*a)))
    db.execute("BEGIN")
    assert messages.graft(db, 1, grafts(None, -1, -2), now=5) == [1, 2, 3]
    db.execute("COMMIT")
    assert during == [-messages.BATCH_ROOM]
    assert room(db) == -1234
    depths = db.execute("SELECT depth, parent_id FROM message ORDER BY id").fetchall()
    assert depths == [(0, None), (1, 1), (2, 2)]


def test_the_room_of_a_batch_that_is_refused_is_given_back(db: sqlite3.Connection):
    broken = [Graft(NewMessage('{"x": 1}', "mark", "nobody"), None)]  # type: ignore[arg-type]
    db.execute("BEGIN")
    with pytest.raises(sqlite3.IntegrityError, match="known_role"):
        messages.graft(db, 1, broken, now=5)
    assert room(db) == -1234
