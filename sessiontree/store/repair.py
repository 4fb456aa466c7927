"""Mending a damaged store, as one unit of work: no message that is there becomes unreachable.

What is gone and still spoken of gets a message of ours in its place, under its own id, so that
what points at it points at something: a mark that says so, or, where calls were open, the
results that say that theirs were lost. Nothing is put right silently. ``surgery`` does this
for one conversation; here is what conversations share.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

from sessiontree.core.records import Mended
from sessiontree.errors import StoreBusy
from sessiontree.store import checks
from sessiontree.store.statements import statements
from sessiontree.store.surgery import Contents, Known, Surgery
from sessiontree.store.texts import any_text, mend_texts

SQL = statements()

PATIENCE = 30.0
"""Seconds that a backup may wait; nobody writes to its file, and readers are not waited for."""

LOST_AND_FOUND = "lost+found"
"""The owner of conversations whose own row is gone: nobody's, so that no scoped store sees
what may be another's."""


def back_up(db: sqlite3.Connection, name: str) -> str:
    """A copy of the store as it is, whoever else writes to it, under a name that is free;
    whole, or none. Returns its name."""
    names = (name if number == 1 else f"{name}-{number}" for number in count(1))
    target = next(free for free in names if not os.path.exists(free))
    try:
        with closing(sqlite3.connect(target)) as copy:
            _copy(db, copy, target)
    except BaseException:
        remove(target)
        raise
    return target


def remove(backup: str) -> None:
    Path(backup).unlink(missing_ok=True)


def _copy(db: sqlite3.Connection, copy: sqlite3.Connection, target: str) -> None:
    """Of a file that is no database any more a copy byte for byte."""
    try:
        copy_all(db, copy, PATIENCE)
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_NOTADB:
            raise
        file = db.execute("PRAGMA database_list").fetchone()[2]
        shutil.copyfile(file, target)


def copy_all(source: sqlite3.Connection, target: sqlite3.Connection, patience: float) -> None:
    """Copy a database over another. StoreBusy after ``patience`` seconds: by itself Python
    would wait for ever."""
    deadline = time.monotonic() + patience

    def look(status: int, remaining: int, total: int) -> None:
        if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) and time.monotonic() > deadline:
            raise StoreBusy("another process holds the store", hint="nothing was changed")

    source.backup(target, progress=look)


def mend(
    db: sqlite3.Connection,
    conversations: Iterable[int],
    contents: Contents,
    now: int,
    lost: Iterable[Known] = (),
) -> list[Mended]:
    """Mend what the whole store shares, then each of the ``conversations``. ``lost``: messages
    that are known to be gone, and what they followed."""
    found = [
        *_mend_indexes(db),
        *_mend_texts(db),
        *_mend_sequences(db),
        *_shut_away_changed_blobs(db),
        *_restore_conversations(db, now),
    ]
    of: dict[int, dict[int, int | None]] = {}
    for known in lost:
        of.setdefault(known.conversation_id, {})[known.id] = known.parent_id
    restored = {each.conversation_id for each in found if each.conversation_id is not None}
    for conversation in sorted(restored.union(conversations)):
        found += Surgery(db, conversation, contents, now, of.get(conversation, {})).mend()
    return found


def _mend_indexes(db: sqlite3.Connection) -> Iterator[Mended]:
    """An index holds nothing of its own."""
    if any(problem.kind == "damaged_index" for problem in checks.damage(db)):
        db.execute("REINDEX")
        yield Mended("damaged_index", None, None, "the indexes were made anew from their tables")


def _mend_texts(db: sqlite3.Connection) -> Iterator[Mended]:
    """First of all: what is no text cannot be read."""
    with any_text(db):
        yield from mend_texts(db)


def _mend_sequences(db: sqlite3.Connection) -> Iterator[Mended]:
    for _, _, detail in db.execute(SQL["check_sequences"]).fetchall():
        db.execute(SQL["make_sequences"])
        db.execute(SQL["mend_sequences"])
        yield Mended("low_sequence", None, None, f"{detail}: it counts on from the largest now")


def _shut_away_changed_blobs(db: sqlite3.Connection) -> Iterator[Mended]:
    """Their digests are made such that nothing has them: what is saved later under the true
    digest must not find the wrong content."""
    for blob, digest in list(checks.changed_blobs(db)):
        away = b"\xff" * 24 + blob.to_bytes(8, "big")
        if digest != away:
            db.execute(SQL["set_digest"], {"blob": blob, "sha256": away})
            was = bytes(digest).hex() if isinstance(digest, bytes) else repr(digest)
            detail = f"blob {blob} is kept, and no longer taken for what was saved (SHA-256 {was})"
            yield Mended("changed_blob", None, None, detail)


def _restore_conversations(db: sqlite3.Connection, now: int) -> Iterator[Mended]:
    for conversation, begun in db.execute(SQL["missing_conversations"]).fetchall():
        values = {
            "conversation": conversation,
            "owner": LOST_AND_FOUND,
            "title": f"conversation {conversation}, whose own row was lost",
            "created_at": now if begun is None else begun,
            "now": now,
        }
        db.execute(SQL["restore_conversation"], values)
        detail = f"it is there again, for the owner {LOST_AND_FOUND!r}; topic and title are lost"
        yield Mended("no_conversation", conversation, None, detail)
