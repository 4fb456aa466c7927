"""What is wrong with a store, as far as the rows themselves tell."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator

from sessiontree.core.records import Problem
from sessiontree.store.statements import statements

SQL = statements()

KINDS: dict[str, tuple[str, bool]] = {
    "check_owners": ("no_conversation", False),
    "check_cycles": ("cycle", False),
    "check_parents": ("missing_parent", False),
    "check_depths": ("wrong_depth", True),
    "check_systems": ("wrong_system", True),
    "check_blobs": ("missing_blob", False),
    "check_heads": ("bad_head", True),
    "check_checkpoints": ("bad_checkpoint", True),
}
"""Statement → the kind of problem that each of its rows is, and whether it can be mended."""


def structure(db: sqlite3.Connection) -> list[Problem]:
    """Problems of the file, then of the tree, heads, labels and blobs, as far as the file can
    be read."""
    found = list(_damage(db))
    try:
        found += [*_rows(db), *_changed_blobs(db)]
    except sqlite3.DatabaseError:
        if not found:
            raise
    return found


def conversation_ids(db: sqlite3.Connection) -> list[int]:
    return [row[0] for row in db.execute(SQL["conversation_ids"])]


def _damage(db: sqlite3.Connection) -> Iterator[Problem]:
    try:
        for (line,) in db.execute("PRAGMA integrity_check"):
            if line != "ok":
                yield Problem("damaged_file", None, None, line)
    except sqlite3.DatabaseError as error:
        yield Problem("damaged_file", None, None, str(error))


def _rows(db: sqlite3.Connection) -> Iterator[Problem]:
    for statement, (kind, can_mend) in KINDS.items():
        for conversation, message, detail in db.execute(SQL[statement]):
            yield Problem(kind, conversation, message, detail, can_mend)


def _changed_blobs(db: sqlite3.Connection) -> Iterator[Problem]:
    for blob, digest, content in db.execute(SQL["all_blobs"]):
        if not isinstance(content, bytes) or hashlib.sha256(content).digest() != digest:
            yield Problem("changed_blob", None, None, f"blob {blob} is not what its SHA-256 says")
