"""Text that a damaged file holds and that is none: bytes that are not UTF-8.

Python refuses to read a row with such text, and with it everything that is read together with
the row. Here it is read all the same: bytes that are no text become lone surrogates, which no
text of a store has, so that they can be found, told and replaced.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from sessiontree.core.records import Mended, Problem
from sessiontree.store.statements import statements

SQL = statements()

_BROKEN = re.compile("[\udc80-\udcff]")

_TABLES = ("conversation", "message", "blob", "checkpoint", "draft")


class Broken(NamedTuple):
    """A row with text that is none. ``texts``: column → what stands there."""

    table: str
    rowid: int
    texts: dict[str, str]

    @property
    def message_id(self) -> int | None:
        return self.rowid if self.table == "message" else None

    @property
    def named(self) -> str:
        return f"{', '.join(self.texts)} of {self.table} {self.rowid}"


@contextmanager
def any_text(db: sqlite3.Connection) -> Generator[None]:
    """Read any text while this lasts."""
    before = db.text_factory
    db.text_factory = _read_any
    try:
        yield
    finally:
        db.text_factory = before


def _read_any(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def check_texts(db: sqlite3.Connection) -> Iterator[Problem]:
    """Inside ``any_text``."""
    for broken in find_broken(db):
        conversation = _conversation_of(db, broken.message_id)
        detail = f"{broken.named} is not text any more"
        yield Problem("broken_text", conversation, broken.message_id, detail, True)


def mend_texts(db: sqlite3.Connection) -> Iterator[Mended]:
    """Put a sign (U+FFFD) in the place of what is no text. Inside ``any_text``."""
    for broken in list(find_broken(db)):
        texts = {name: _mended(text) for name, text in broken.texts.items()}
        if broken.table == "blob":
            _take_out_of_blob(db, broken.rowid, texts["content"])
        else:
            columns = ", ".join(f'"{name}" = ?' for name in texts)
            update = f"UPDATE OR IGNORE {broken.table} SET {columns} WHERE rowid = ?"
            db.execute(update, (*texts.values(), broken.rowid))
        detail = f"U+FFFD stands where {broken.named} was not text any more"
        conversation = _conversation_of(db, broken.message_id)
        yield Mended("broken_text", conversation, broken.message_id, detail)


def find_broken(db: sqlite3.Connection) -> Iterator[Broken]:
    for table in _TABLES:
        columns = _texts_of(db, table)
        names = ", ".join(columns.values())
        for row in db.execute(f"SELECT rowid, {names} FROM {table}"):
            texts = dict(zip(columns, row[1:], strict=True))
            broken = {name: text for name, text in texts.items() if _is_broken(text)}
            if broken:
                yield Broken(table, row[0], broken)


def _texts_of(db: sqlite3.Connection, table: str) -> dict[str, str]:
    """Column → how it is read, of those that hold text. A blob's content is JSON text."""
    if table == "blob":
        return {"content": "CAST(content AS TEXT)"}
    question = "SELECT name FROM pragma_table_info(?) WHERE type = 'TEXT'"
    return {row[0]: f'"{row[0]}"' for row in db.execute(question, (table,))}


def _is_broken(text: object) -> bool:
    return isinstance(text, str) and not text.isascii() and _BROKEN.search(text) is not None


def _mended(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _take_out_of_blob(db: sqlite3.Connection, blob: int, text: str) -> None:
    """A blob is what its digest says; a mended text is not, and goes into the rows."""
    db.execute(SQL["take_out_of_blob"], {"blob": blob, "content": text})
    db.execute(SQL["delete_blob_if_unused"], {"blob": blob})


def _conversation_of(db: sqlite3.Connection, message: int | None) -> int | None:
    row = db.execute(SQL["conversation_of"], {"id": message}).fetchone()
    return row[0] if row else None
