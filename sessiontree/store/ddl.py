"""schema.sql, made from the tables: ``python -m sessiontree.store.ddl > schema.sql``."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from sqlalchemy import Table
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from sessiontree.store.migrations import APPLICATION_ID, VERSION
from sessiontree.store.tables import PARENT_GUARD, TABLES, Message

HEADER = f"""\
-- The schema of a sessiontree store, for readers in any language.
-- Generated from sessiontree/store/tables.py by `make schema`; do not edit.
--
-- A conversation is a tree of messages: each message records the one it follows
-- (parent_id), each conversation the one that the next will follow (head_id).
-- The path of a message is the chain of parents up to a root.

PRAGMA application_id = {APPLICATION_ID};  -- "STRE": this file is a sessiontree store
PRAGMA user_version = {VERSION};  -- the version of this schema
"""


def schema_sql() -> str:
    """The text of schema.sql."""
    return HEADER + "".join(_statements())


def _statements() -> Iterator[str]:
    for model in TABLES:
        table = model.metadata.tables[model.__name__.lower()]
        doc = " ".join((model.__doc__ or "").split())
        yield "\n" + textwrap.fill(doc, 86, initial_indent="-- ", subsequent_indent="-- ") + "\n"
        yield _with_comments(table) + ";\n"
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            yield str(CreateIndex(index).compile(dialect=sqlite.dialect())).strip() + ";\n"
        if model is Message:
            yield PARENT_GUARD + ";\n"


def _with_comments(table: Table) -> str:
    """The CREATE TABLE statement, each column's comment at the end of its line."""
    ddl = str(CreateTable(table).compile(dialect=sqlite.dialect())).strip()
    comments = {column.name: column.comment for column in table.columns}
    lines: list[str] = []
    for line in ddl.splitlines():
        name = line.strip().split(" ")[0].strip('"')
        comment = comments.get(name)
        lines.append(f"{line.rstrip()}  -- {comment}" if comment else line.rstrip())
    return "\n".join(lines)


if __name__ == "__main__":
    print(schema_sql(), end="")
