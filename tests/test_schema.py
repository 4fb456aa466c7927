"""schema.sql, queries.sql and the tables say the same, and opening a store loads none of them
through an object mapper."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlmodel import Session, create_engine, select

import sessiontree
from sessiontree.store import ddl, tables
from sessiontree.store.migrations import APPLICATION_ID, STEPS, VERSION, steps_from
from sessiontree.store.statements import schema, split, statements

ROOT = Path(__file__).resolve().parents[1]
SOURCES = "\n".join(
    path.read_text(encoding="utf-8") for path in sorted((ROOT / "sessiontree/store").glob("*.py"))
)
HEAVY = ("sqlmodel", "sqlalchemy", "pydantic")


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    """An empty store, without the package."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for statement in split(schema()):
        connection.execute(statement)
    connection.execute("PRAGMA foreign_keys = ON")
    yield connection
    connection.close()


# ---- the three agree -----------------------------------------------------------------


def test_schema_sql_is_what_the_tables_say() -> None:
    assert (ROOT / "schema.sql").read_text(encoding="utf-8") == ddl.schema_sql()


def test_every_table_and_column_is_explained_in_schema_sql(db: sqlite3.Connection) -> None:
    text = schema()
    for table in tables.TABLES:
        name = table.__name__.lower()
        assert re.search(rf"-- .*\nCREATE TABLE {name} \(", text), name
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({name})")]
        assert columns == [column.name for column in table.metadata.tables[name].columns]
        body = text.split(f"CREATE TABLE {name} (")[1].split("\n\n")[0]
        for column in columns:
            assert re.search(rf'^\t"?{column}"? .*  -- \S', body, re.MULTILINE), (name, column)


def test_schema_sql_marks_the_file_and_its_version(db: sqlite3.Connection) -> None:
    assert db.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    assert db.execute("PRAGMA user_version").fetchone() == (VERSION,)
    assert (APPLICATION_ID).to_bytes(4, "big") == b"STRE"


def test_migrations_lead_from_each_version_to_the_next() -> None:
    assert [step.version for step in STEPS] == list(range(2, VERSION + 1))
    assert all(step.why and step.sql for step in STEPS)
    for version in range(1, VERSION + 1):
        assert [step.version for step in steps_from(version)] == list(
            range(version + 1, VERSION + 1)
        )


def _parameters(sql: str) -> object:
    """Nulls for whatever a statement takes."""
    named = set(re.findall(r":(\w+)", sql))
    if named:
        return dict.fromkeys(named)
    numbered = [int(n) for n in re.findall(r"\?(\d+)", sql)]
    return [None] * (max(numbered) if numbered else sql.count("?"))


@pytest.mark.parametrize("name", sorted(statements()))
def test_a_statement_prepares_against_the_schema(name: str, db: sqlite3.Connection) -> None:
    sql = statements()[name]
    assert db.execute(f"EXPLAIN {sql}", _parameters(sql)).fetchall()


@pytest.mark.parametrize("name", sorted(statements()))
def test_a_statement_is_used_by_the_code(name: str) -> None:
    assert f'"{name}"' in SOURCES


def test_every_statement_that_the_code_names_exists() -> None:
    used = set(re.findall(r'SQL\["(\w+)"\]', SOURCES)) | set(
        re.findall(r'_rows\(db, "(\w+)"', SOURCES)
    )
    assert len(used) > 20
    assert used <= set(statements())


def test_only_the_store_knows_sql() -> None:
    for path in (ROOT / "sessiontree").rglob("*.py"):
        if path.parent.name == "store" or path.name == "foreign.py":
            continue  # foreign: the databases of other programs
        words = re.findall(r'"(?:SELECT|INSERT|UPDATE|DELETE)\s[^"]*"', path.read_text("utf-8"))
        assert not words, (path, words)


WALKS = (
    "path", "path_stations", "place", "message", "children", "newest_prompt", "copy_path",
    "path_landmarks", "message_by_key", "head", "move", "next_move", "system_message",
    "checkpoint", "drafts", "conversation_by_topic", "conversation_by_id",
)  # fmt: skip


@pytest.mark.parametrize("name", [name for name in WALKS if name in statements()])
def test_what_runs_on_every_turn_never_reads_a_whole_table(
    name: str, db: sqlite3.Connection
) -> None:
    sql = statements()[name]
    plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", _parameters(sql))]
    scans = [line for line in plan if re.match(r"SCAN (message|m|move|blob|draft|conv|k)\b", line)]
    assert not scans, plan


# ---- what the schema itself refuses --------------------------------------------------


def _message(db: sqlite3.Connection, **columns: object) -> None:
    values = {
        "conversation_id": 1,
        "role": "user",
        "format": "openai_chat",
        "depth": 0,
        "open_calls": 0,
        "tokens": 1,
        "preview": "",
        "created_at": 1,
        "content": "{}",
    } | columns
    names = ", ".join(values)
    marks = ", ".join("?" * len(values))
    db.execute(f"INSERT INTO message ({names}) VALUES ({marks})", tuple(values.values()))


def _two_conversations(db: sqlite3.Connection) -> None:
    for number in (1, 2):
        db.execute(
            "INSERT INTO conversation (id, created_at, updated_at) VALUES (?, 1, 1)", (number,)
        )
    _message(db, id=10)
    _message(db, id=20, conversation_id=2)


@pytest.mark.parametrize(
    "columns",
    [
        {"id": 11, "parent_id": 10, "depth": 1, "open_calls": -1},
        {"id": 11, "parent_id": 11, "depth": 1},
        {"id": 11, "parent_id": 12, "depth": 1},
        {"id": 21, "parent_id": 20, "depth": 1},
        {"id": 11, "parent_id": 10, "depth": 0},
        {"id": 11, "parent_id": 10, "depth": 2},
        {"id": 11, "depth": 1},
        {"id": 11, "role": "boss"},
        {"id": 11, "content": None},
        {"id": 11, "blob_id": 99, "content": None},
        {"id": 11, "conversation_id": 3},
        {"id": 10},
    ],
    ids=lambda columns: " ".join(f"{k}={v}" for k, v in columns.items()),
)
def test_the_schema_refuses_a_message_that_would_break_the_tree(
    columns: dict[str, object], db: sqlite3.Connection
) -> None:
    _two_conversations(db)
    _message(db, id=12, parent_id=10, depth=1)
    with pytest.raises(sqlite3.IntegrityError):
        _message(db, **columns)


def test_the_schema_refuses_the_same_key_twice_in_a_conversation_only(
    db: sqlite3.Connection,
) -> None:
    _two_conversations(db)
    _message(db, key="k")
    _message(db, key="k", conversation_id=2)
    with pytest.raises(sqlite3.IntegrityError):
        _message(db, key="k")


def test_the_id_of_a_deleted_message_is_not_given_again(db: sqlite3.Connection) -> None:
    _two_conversations(db)
    db.execute("DELETE FROM message")
    _message(db)
    assert db.execute("SELECT id FROM message").fetchone() == (21,)


# ---- reading a store by ORM, and starting without one --------------------------------


async def test_sqlmodel_reads_a_store(tmp_path: Path) -> None:
    file = tmp_path / "sessions.db"
    async with sessiontree.open_store(file) as store:
        chat = await store.conversation("T-1", owner="camille", system="be brief")
        await chat.append([{"role": "user", "content": "hello"}], keys=["k"])
        await chat.checkpoint("here")
        await chat.append({"role": "user", "content": "long" * 2_000})
        await chat.branch(None)
    engine = create_engine(f"sqlite:///{file}")
    with Session(engine) as session:
        found = session.exec(select(tables.Message).where(tables.Message.role == "user")).all()
        assert (found[0].content, found[0].key, found[0].depth) == (
            '{"role":"user","content":"hello"}',
            "k",
            1,
        )
        blob = session.get(tables.Blob, found[1].blob_id)
        assert blob is not None
        assert b"longlong" in blob.content
        (conversation,) = session.exec(select(tables.Conversation)).all()
        assert (conversation.owner, conversation.topic) == ("camille", "T-1")
        (checkpoint,) = session.exec(select(tables.Checkpoint)).all()
        assert checkpoint.message_id == found[0].id
        moves = session.exec(select(tables.Move)).all()
        assert [move.cause for move in moves] == ["append", "append", "append", "branch"]
        assert session.exec(select(tables.Draft)).all() == []
    engine.dispose()


def _modules_after(code: str) -> set[str]:
    script = f"{code}\nimport sys\nprint(*sorted(sys.modules), sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_importing_sessiontree_loads_no_object_mapper() -> None:
    loaded = _modules_after("import sessiontree")
    assert "sessiontree" in loaded
    assert loaded.isdisjoint({*HEAVY, "typer", "rich"})


def test_making_and_using_a_store_loads_no_object_mapper(tmp_path: Path) -> None:
    code = f"""
import asyncio, sessiontree
async def main():
    for _ in range(2):
        async with sessiontree.open_store({str(tmp_path / "a.db")!r}) as store:
            chat = await store.conversation("t", system="s")
            async with chat.turn() as turn:
                await turn.add({{"role": "user", "content": "hello"}})
            await chat.fork()
            await chat.tree()
            assert await store.check() == []
asyncio.run(main())
"""
    assert _modules_after(code).isdisjoint({*HEAVY, "typer", "rich"})


def test_the_blocking_face_loads_no_object_mapper(tmp_path: Path) -> None:
    code = f"""
from sessiontree import sync
with sync.open_store({str(tmp_path / "a.db")!r}) as store:
    store.conversation("t").append({{"role": "user", "content": "hello"}})
"""
    assert _modules_after(code).isdisjoint({*HEAVY, "typer", "rich"})
