"""The named statements of queries.sql and mending.sql, and the text of schema.sql.

A small loader of our own: a library that does this costs 40 ms to import, a fifth of
what starting may take.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_HERE = Path(__file__).parent
_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_COMMENT = re.compile(r"^\s*--.*\n", re.MULTILINE)


@cache
def statements() -> dict[str, str]:
    """Name → SQL of the session store."""
    return named("queries.sql") | named("mending.sql")


@cache
def named(file: str) -> dict[str, str]:
    """Name → SQL of a file, comments taken off (SQLite's statement cache compares whole
    texts)."""
    pieces = _NAME.split((_HERE / file).read_text(encoding="utf-8"))
    return {
        name: _COMMENT.sub("", sql).strip()
        for name, sql in zip(pieces[1::2], pieces[2::2], strict=True)
    }


def schema() -> str:
    """schema.sql: beside this file in a wheel, at the top of a checkout."""
    packed = _HERE / "schema.sql"
    found = packed if packed.exists() else _HERE.parents[1] / "schema.sql"
    return found.read_text(encoding="utf-8")


def split(script: str) -> Iterator[str]:
    """The statements of a script, so that they can run inside a transaction."""
    statement = ""
    for piece in re.split("(?<=;)", script):  # a semicolon need not end one: triggers, strings
        statement += piece
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if _COMMENT.sub("", statement + "\n").strip():
        yield statement  # the last one may go without a semicolon
