"""What ours is held against: blocking programs on the standard library's ``sqlite3``.

``Plain`` does the same work as the store: the same schema.sql with its keys and indexes,
every column, the same JSON of the same messages, the same head and move, one transaction
for each turn, the same durability. It is written to be fast: it trusts what it is given,
keeps the head in memory and never looks back. Its statements are the fastest of those
that were tried.

``Lean`` is what somebody would write by hand for himself: id, parent and content. It can
tell neither a boundary nor an owner, undo nothing and find nothing without decoding it.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

Message = Mapping[str, Any]
Encode = Callable[[Message], str]
Durability = Literal["full", "normal"]

SCHEMA = Path(__file__).parents[1] / "schema.sql"

INSERT_MESSAGE = """
INSERT INTO message (conversation_id, parent_id, role, format, depth, open_calls, tokens, usage,
    model, preview, key, meta, system_id, ref_id, created_at, blob_id, content)
VALUES (?, ?, ?, 'openai_chat', ?, ?, ?, NULL, NULL, ?, NULL, NULL, NULL, NULL, ?, NULL, ?)
"""
INSERT_MOVE = """
INSERT INTO move (conversation_id, id, prev_id, from_id, to_id, cause, created_at)
VALUES (?, ?, ?, ?, ?, 'append', ?)
"""
SET_HEAD = "UPDATE conversation SET head_id = ?, move_id = ?, updated_at = ? WHERE id = ?"
POINT = "UPDATE conversation SET head_id = ?, updated_at = ? WHERE id = ?"

COLUMNS = (
    "m.id, m.conversation_id, m.parent_id, m.role, m.format, m.depth, m.open_calls, m.tokens, "
    "m.usage, m.model, m.preview, m.key, m.meta, m.system_id, m.ref_id, m.created_at, m.content"
)
PATH = f"""
WITH RECURSIVE path (id) AS (
    SELECT ? UNION ALL SELECT m.parent_id FROM path JOIN message m ON m.id = path.id
)
SELECT {COLUMNS} FROM path CROSS JOIN message m ON m.id = path.id LIMIT ?
"""
"""Newest first. The walk carries ids alone."""

COPY_PATH = """
INSERT INTO message (id, conversation_id, parent_id, role, format, depth, open_calls, tokens, usage,
    model, preview, key, meta, system_id, ref_id, created_at, blob_id, content)
WITH RECURSIVE path (id, parent_id, depth) AS (
    SELECT id, parent_id, depth FROM message WHERE id = :leaf UNION ALL
    SELECT m.id, m.parent_id, m.depth FROM path CROSS JOIN message m ON m.id = path.parent_id
)
SELECT :base + m.depth, :target, CASE WHEN m.depth > 0 THEN :base + m.depth - 1 END,
       m.role, m.format, m.depth, m.open_calls, m.tokens, m.usage, m.model, m.preview, m.key,
       m.meta, NULL, NULL, m.created_at, m.blob_id, m.content
FROM (SELECT id FROM path ORDER BY depth LIMIT -1) AS path CROSS JOIN message m ON m.id = path.id
"""
"""Oldest first. What is sorted are ids alone; the LIMIT keeps the order of the subquery."""

EVERYTHING = 1 << 62


class Place(NamedTuple):
    """Where a conversation stands."""

    head: int | None
    move: int | None
    depth: int


class Plain:
    """One connection to one file of the same schema."""

    def __init__(
        self, file: Path, durability: Durability = "full", encode: Encode | None = None
    ) -> None:
        is_new = not file.exists()
        self.db = connect(file, durability)
        self.db.execute("PRAGMA foreign_keys = ON")
        self._encode = encode or encoded
        if is_new:
            self.db.executescript(SCHEMA.read_text(encoding="utf-8"))
        self._places: dict[int, Place] = {}

    def conversation(self) -> int:
        """A new one."""
        made = self.db.execute(
            "INSERT INTO conversation (created_at, updated_at) VALUES (?, ?)", (_now(), _now())
        ).lastrowid
        assert made is not None
        self._places[made] = Place(None, None, -1)
        return made

    def head(self, conversation: int) -> int | None:
        return self._places[conversation].head

    def append(self, conversation: int, messages: Sequence[Message]) -> None:
        """Save a turn and move the head to its last message."""
        now = _now()
        head, move, depth = self._places[conversation]
        last, open_calls = head, 0
        self.db.execute("BEGIN IMMEDIATE")
        for message in messages:
            depth += 1
            open_calls += len(message.get("tool_calls", ())) - (message["role"] == "tool")
            text = message["content"]
            values = (
                conversation,
                last,
                message["role"],
                depth,
                open_calls,
                len(text) // 4,
                text[:120],
                now,
                self._encode(message),
            )
            last = self.db.execute(INSERT_MESSAGE, values).lastrowid
        this = (move or 0) + 1
        self.db.execute(INSERT_MOVE, (conversation, this, move, head, last, now))
        self.db.execute(SET_HEAD, (last, this, now, conversation))
        self.db.execute("COMMIT")
        self._places[conversation] = Place(last, this, depth)

    def path(self, conversation: int, newest: int = EVERYTHING) -> list[tuple[Any, ...]]:
        """Rows, oldest first; the content is the last column."""
        rows = self.db.execute(PATH, (self.head(conversation), newest)).fetchall()
        rows.reverse()
        return rows

    def point(self, conversation: int, head: int) -> None:
        """Set the head: one UPDATE, which is a transaction of its own."""
        self.db.execute(POINT, (head, _now(), conversation))

    def fork(self, conversation: int) -> int:
        """Copy the path of the head under new ids; the new conversation."""
        leaf, _, depth = self._places[conversation]
        self.db.execute("BEGIN IMMEDIATE")
        target = self.conversation()
        (last,) = self.db.execute("SELECT max(id) FROM message").fetchone()
        names = {"leaf": leaf, "base": last + 1, "target": target}
        self.db.execute(COPY_PATH, names)
        self.db.execute(SET_HEAD, (last + 1 + depth, None, _now(), target))
        self.db.execute("COMMIT")
        self._places[target] = Place(last + 1 + depth, None, depth)
        return target

    def close(self) -> None:
        self.db.close()


LEAN_SCHEMA = """
CREATE TABLE conversation (id INTEGER PRIMARY KEY, head INTEGER);
CREATE TABLE message (id INTEGER PRIMARY KEY, parent INTEGER, content TEXT NOT NULL);
"""
LEAN_PATH = """
WITH RECURSIVE path (id) AS (
    SELECT ? UNION ALL SELECT m.parent FROM path JOIN message m ON m.id = path.id
)
SELECT m.id, m.parent, m.content FROM path CROSS JOIN message m ON m.id = path.id LIMIT ?
"""
LEAN_COPY_PATH = """
INSERT INTO message (id, parent, content)
WITH RECURSIVE path (id, at) AS (
    SELECT :leaf, 0 UNION ALL
    SELECT m.parent, at + 1 FROM path JOIN message m ON m.id = path.id WHERE m.parent IS NOT NULL
)
SELECT :top - at, CASE WHEN m.parent IS NOT NULL THEN :top - at - 1 END, m.content
FROM path JOIN message m ON m.id = path.id ORDER BY at DESC
"""


class Lean:
    """One connection to a file that holds the least."""

    def __init__(self, file: Path, durability: Durability = "full") -> None:
        is_new = not file.exists()
        self.db = connect(file, durability)
        if is_new:
            self.db.executescript(LEAN_SCHEMA)
        self._places: dict[int, tuple[int | None, int]] = {}
        """Conversation → head and how many messages lead to it."""

    def conversation(self) -> int:
        made = self.db.execute("INSERT INTO conversation (head) VALUES (NULL)").lastrowid
        assert made is not None
        self._places[made] = (None, 0)
        return made

    def append(self, conversation: int, messages: Sequence[Message]) -> None:
        last, length = self._places[conversation]
        self.db.execute("BEGIN IMMEDIATE")
        for message in messages:
            values = (last, encoded(message))
            last = self.db.execute(
                "INSERT INTO message (parent, content) VALUES (?, ?)", values
            ).lastrowid
        self.db.execute("UPDATE conversation SET head = ? WHERE id = ?", (last, conversation))
        self.db.execute("COMMIT")
        self._places[conversation] = (last, length + len(messages))

    def fork(self, conversation: int) -> int:
        leaf, length = self._places[conversation]
        self.db.execute("BEGIN IMMEDIATE")
        target = self.conversation()
        (last,) = self.db.execute("SELECT max(id) FROM message").fetchone()
        top = last + length
        self.db.execute(LEAN_COPY_PATH, {"leaf": leaf, "top": top})
        self.db.execute("UPDATE conversation SET head = ? WHERE id = ?", (top, target))
        self.db.execute("COMMIT")
        self._places[target] = (top, length)
        return target

    def path(self, conversation: int, newest: int = EVERYTHING) -> list[tuple[Any, ...]]:
        head, _ = self._places[conversation]
        rows = self.db.execute(LEAN_PATH, (head, newest)).fetchall()
        rows.reverse()
        return rows

    def close(self) -> None:
        self.db.close()


def connect(file: Path, durability: Durability) -> sqlite3.Connection:
    """In WAL mode, with transactions that are begun and ended by hand, as the store's."""
    db = sqlite3.connect(file, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute(f"PRAGMA synchronous = {durability}")
    db.execute("PRAGMA fullfsync = ON")
    db.execute("PRAGMA temp_store = MEMORY")
    return db


def encoded(message: Message) -> str:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"))


def decoded(rows: Sequence[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """The messages of a path."""
    return [json.loads(row[-1]) for row in rows]


def _now() -> int:
    return time.time_ns() // 1000
