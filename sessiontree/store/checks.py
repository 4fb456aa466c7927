"""What is wrong with a store, as far as the rows themselves tell."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence

from sessiontree.core.message import MessageRow
from sessiontree.core.records import Problem
from sessiontree.store import reads
from sessiontree.store.statements import statements
from sessiontree.store.texts import any_text, check_texts

SQL = statements()

KINDS: dict[str, tuple[str, bool]] = {
    "check_sequences": ("low_sequence", True),
    "check_conversations": ("no_conversation", True),
    "check_cycles": ("cycle", True),
    "check_parents": ("missing_parent", True),
    "check_depths": ("wrong_depth", True),
    "check_systems": ("wrong_system", True),
    "check_roles": ("unknown_role", True),
    "check_contents": ("wrong_content", True),
    "check_blobs": ("missing_blob", False),
    "check_references": ("missing_reference", True),
    "check_heads": ("bad_head", True),
    "check_moves": ("bad_move", True),
    "check_current_moves": ("bad_move", True),
    "check_checkpoints": ("bad_checkpoint", True),
    "check_drafts": ("bad_draft", True),
}
"""Statement → the kind of problem that each of its rows is, and whether it can be mended."""

RULES = ("CHECK constraint failed", "NULL value in", "non-unique entry in index")
"""How SQLite's integrity check begins to speak of rows that break a rule of the schema."""


def structure(db: sqlite3.Connection) -> list[Problem]:
    """Problems of the file, then of the tree, heads, labels and blobs, as far as the file can
    be read."""
    found = list(damage(db))
    try:
        with any_text(db):
            found += [*check_texts(db), *_rows(db), *_changed_blobs(db)]
    except sqlite3.DatabaseError:
        if not found:
            raise
    return found


def messages_at(db: sqlite3.Connection, conversation: int, ids: Sequence[int]) -> list[MessageRow]:
    """As ``reads.messages_at``, of any text."""
    with any_text(db):
        return reads.messages_at(db, conversation, ids)


def drafts(db: sqlite3.Connection, conversation: int) -> list[reads.DraftRow]:
    """As ``reads.drafts``, of any text."""
    with any_text(db):
        return reads.drafts(db, conversation)


def conversation_ids(db: sqlite3.Connection) -> list[int]:
    return [row[0] for row in db.execute(SQL["conversation_ids"])]


def damage(db: sqlite3.Connection) -> Iterator[Problem]:
    """What SQLite itself finds."""
    try:
        for (line,) in db.execute("PRAGMA integrity_check"):
            if line != "ok":
                kind = _kind(line)
                yield Problem(kind, None, None, line, kind == "damaged_index")
        if db.execute(SQL["has_messages"]).fetchone() is None:
            yield Problem("damaged_file", None, None, "there is no table of messages in it")
    except sqlite3.DatabaseError as error:
        yield Problem("damaged_file", None, None, str(error))


def _kind(line: str) -> str:
    if "missing from index" in line or "wrong # of entries in index" in line:
        return "damaged_index"
    return "broken_rule" if line.startswith(RULES) else "damaged_file"


def _rows(db: sqlite3.Connection) -> Iterator[Problem]:
    for statement, (kind, can_mend) in KINDS.items():
        for conversation, message, detail in db.execute(SQL[statement]):
            yield Problem(kind, conversation, message, detail, can_mend)


def changed_blobs(db: sqlite3.Connection) -> Iterator[tuple[int, object]]:
    """(blob, the digest that it should have) of those that hold something else."""
    for blob, digest, content in db.execute(SQL["all_blobs"]):
        if not isinstance(content, bytes) or hashlib.sha256(content).digest() != digest:
            yield blob, digest


def _changed_blobs(db: sqlite3.Connection) -> Iterator[Problem]:
    for blob, _ in changed_blobs(db):
        detail = f"its content, blob {blob}, is not what was saved"
        users = db.execute(SQL["messages_of_blob"], {"blob": blob}).fetchall()
        for conversation, message in users or [(None, None)]:
            yield Problem("changed_blob", conversation, message, detail)
