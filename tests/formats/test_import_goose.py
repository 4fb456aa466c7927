"""Goose's sessions: rows of its database, lines of its files, and what it hides."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agents import FIXTURES, brought, damaged, objects, roles, sent, survives, texts
from hypothesis import given, settings
from hypothesis import strategies as st

import sessiontree
from sessiontree.core.message import calls_of, results_of
from sessiontree.errors import FormatError
from sessiontree.formats import codec, recognise
from sessiontree.transfer import foreign, import_file

LINES = FIXTURES / "goose.jsonl"
LINES_BYTES = LINES.read_bytes()
CODEC = codec("goose")

Row = dict[str, Any]


@pytest.fixture
async def store():
    async with sessiontree.open_store(":memory:") as opened:
        yield opened


def lines() -> list[Row]:
    return [json.loads(line) for line in LINES_BYTES.splitlines()]


def database(path: Path, messages: list[Row], session: str | None = "s1") -> Path:
    """A database with as much of Goose's schema as matters."""
    with closing(sqlite3.connect(path)) as made, made:
        made.execute("CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT, created_at TEXT)")
        made.execute(
            "CREATE TABLE messages (id INTEGER PRIMARY KEY, message_id TEXT, session_id TEXT, "
            "role TEXT, content_json TEXT, created_timestamp INTEGER, metadata_json TEXT)"
        )
        if session is not None:
            row = (session, "Tides", "2025-11-02 09:00:00")
            made.execute("INSERT INTO sessions VALUES (?, ?, ?)", row)
        add(made, messages)
    return path


def add(made: sqlite3.Connection, messages: list[Row]) -> None:
    for m in messages:
        values = (m.get("id"), m["role"], json.dumps(m["content"]), m.get("created"))
        metadata = json.dumps(m["metadata"]) if "metadata" in m else None
        made.execute(
            "INSERT INTO messages (message_id, session_id, role, content_json, "
            "created_timestamp, metadata_json) VALUES (?, 's1', ?, ?, ?, ?)",
            (*values, metadata),
        )


def said(name: str, text: str, role: str = "user", **visible: bool) -> Row:
    metadata = {"userVisible": True, "agentVisible": True} | visible
    content = [{"type": "text", "text": text}]
    return {"id": name, "role": role, "content": content, "created": 1, "metadata": metadata}


# --- the codec --------------------------------------------------------------------------------


def test_requests_are_calls_and_responses_are_results():
    answer, results = CODEC.decode(lines()[2]), CODEC.decode(lines()[3])
    assert [(call.id, call.name) for call in calls_of(answer.parts)] == [
        ("t1", "developer__shell"),
        ("t2", "unreadable_call"),
    ]
    assert results.role == "tool"
    first, second = results_of(results.parts)
    assert (first.response[0]["content"], first.is_error) == ("def tide(): ...", False)
    assert (second.response, second.is_error) == ("-32602: not a call", True)


def test_a_result_of_the_newer_shape_is_read_too():
    value = {"content": [{"type": "text", "text": "no"}], "isError": True}
    block = {"type": "toolResponse", "id": "t", "toolResult": {"status": "success", "value": value}}
    (result,) = results_of(CODEC.decode({"role": "user", "content": [block]}).parts)
    assert (result.response[0]["content"], result.is_error) == ("no", True)


def test_a_row_of_the_database_is_recognised_and_read():
    row = {"role": "user", "content_json": '[{"type": "text", "text": "hi"}]'}
    assert recognise(row) == "goose"
    assert CODEC.decode(row) == ("user", [{"type": "text", "content": "hi"}])


@pytest.mark.parametrize("content", ["{", "7", "[7]", '[{"type": "toolRequest"}]', None, 7])
def test_a_row_of_another_shape_is_a_mark_that_keeps_it(content: object):
    row = {"role": "user", "content_json": content}
    decoded = CODEC.decode(row)
    assert (decoded.role, decoded.parts[0]["native"]) == ("mark", row)


def test_calls_and_results_are_written_as_they_are_read():
    for line in lines()[2:4]:
        role, parts = CODEC.decode(line)
        (made,) = CODEC.encode(role, parts)
        again = CODEC.decode(made)
        assert (again.role, calls_of(again.parts)) == (role, calls_of(parts))
        assert [(r.id, r.is_error) for r in results_of(again.parts)] == [
            (r.id, r.is_error) for r in results_of(parts)
        ]
    assert CODEC.encode("mark", [{"type": "text", "content": "x"}]) == []


async def test_a_result_of_no_call_is_kept_apart_from_one_that_has_one(
    store: sessiontree.Store, tmp_path: Path
):
    made = lines()
    del made[2]["content"][2]  # the first of the calls
    file = tmp_path / "session.jsonl"
    file.write_text("\n".join(map(json.dumps, made)))
    done, chat = await brought(store, file)
    assert (done.repaired, await roles(chat)) == (1, "uamtaa")


# --- in a store -------------------------------------------------------------------------------


async def test_a_file_of_before_comes_in_whole(store: sessiontree.Store):
    done, chat = await brought(store, LINES)
    assert (done.format, done.kept, done.about, done.closed) == ("goose", 5, 1, 0)
    assert (await roles(chat), chat.title) == ("uataa", "Tides")
    assert chat.topic is not None
    assert chat.topic.startswith("goose-")
    assert [m.native for m in await chat.path()] == lines()[1:]
    assert [m.key for m in await chat.path()] == ["g1", "g2", "g3", "g4", "g5"]


async def test_an_export_comes_in_whole(store: sessiontree.Store, tmp_path: Path):
    file = tmp_path / "session.json"
    export = {"id": "s9", "name": "Tides", "working_dir": "/", "conversation": lines()[1:]}
    file.write_text(json.dumps(export))
    done, chat = await brought(store, file)
    assert (done.format, done.kept, chat.topic) == ("goose", 5, "s9")


async def test_a_database_comes_in_whole(store: sessiontree.Store, tmp_path: Path):
    done, chat = await brought(store, database(tmp_path / "sessions.db", lines()[1:]))
    assert (done.format, done.kept, chat.topic, chat.title) == ("goose", 5, "s1", "Tides")
    assert await roles(chat) == "uataa"
    assert [json.loads(m.native["content_json"]) for m in await chat.path()] == [
        line["content"] for line in lines()[1:]
    ]


async def test_messages_of_a_session_that_is_gone_come_in(store: sessiontree.Store, tmp_path: Path):
    done, chat = await brought(store, database(tmp_path / "sessions.db", lines()[1:], None))
    assert (done.kept, chat.topic) == (5, "s1")


async def test_what_was_compacted_stays_and_is_not_sent(store: sessiontree.Store, tmp_path: Path):
    before = [said("a", "secret start"), said("b", "fine", "assistant")]
    hidden = [{**m, "metadata": {"userVisible": True, "agentVisible": False}} for m in before]
    after = [
        said("c", "Summary: tides.", userVisible=False),
        said("d", "on"),
        said("e", "for people only", agentVisible=False),
    ]
    file = database(tmp_path / "sessions.db", before)
    assert (await import_file(store, file)).kept == 2
    with closing(sqlite3.connect(file)) as made, made:
        made.execute("DELETE FROM messages")  # as Goose itself does
        add(made, hidden + after)
    done, chat = await brought(store, file)
    assert done.branch_points == 0
    assert await roles(chat) == "uamuum"
    said_now = await sent(chat)
    assert "Summary: tides." in said_now
    assert not any(text in said_now for text in ("secret start", "for people only"))
    assert "secret start" in await texts(chat)


async def test_a_database_that_is_written_to_is_read_with_its_log(
    store: sessiontree.Store, tmp_path: Path
):
    file = database(tmp_path / "sessions.db", lines()[1:4])
    with closing(sqlite3.connect(file)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        with writer:
            add(writer, lines()[4:])
        done = await import_file(store, file)
    assert done.kept == 5


async def test_reading_a_database_writes_nothing(store: sessiontree.Store, tmp_path: Path):
    file = database(tmp_path / "sessions.db", lines()[1:])
    before = file.read_bytes()
    await import_file(store, file)
    assert os.listdir(tmp_path) == ["sessions.db"]
    assert file.read_bytes() == before


async def test_the_database_of_the_corpus(store: sessiontree.Store, corpus: Path):
    done, chat = await brought(store, corpus / "goose" / "sessions.db")
    assert (done.format, done.kept, len(done.conversations)) == ("goose", 2, 2)
    assert (chat.title, await texts(chat)) == ("parent user session", ["synthetic parent prompt"])
    other = done.conversations[1].info.meta
    assert other["parent_session_id"] == chat.topic


# --- damage -----------------------------------------------------------------------------------


async def test_a_database_without_sessions_is_told(store: sessiontree.Store, tmp_path: Path):
    file = tmp_path / "other.db"
    with closing(sqlite3.connect(file)) as made, made:
        made.execute("CREATE TABLE birds (name TEXT)")
    with pytest.raises(FormatError, match="a database without sessions"):
        await import_file(store, file)


async def test_a_value_of_a_database_that_is_too_large_is_told(
    store: sessiontree.Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file = database(tmp_path / "sessions.db", [said("a", "x" * 5000)])
    monkeypatch.setattr(foreign, "MAX_SESSION", 1000)
    with pytest.raises(FormatError, match="longer than"):
        await import_file(store, file)
    monkeypatch.setattr(foreign, "MAX_CELL", 1000)
    with pytest.raises(FormatError, match="cannot be read"):
        await import_file(store, file)


async def test_a_damaged_database_is_refused_or_read(tmp_path: Path):
    many = [said(str(i), "text " * 200) for i in range(60)]
    raw = database(tmp_path / "sessions.db", many).read_bytes()
    file = tmp_path / "bad.db"
    for at in range(16, len(raw), 4001):
        file.write_bytes(raw[:at] + b"\xff\x00\x80" * 11 + raw[at + 33 :])
        await survives(file)
    for end in (0, 15, 16, 99, 4096, len(raw) // 2):
        file.write_bytes(raw[:end])
        assert await survives(file) is False


async def test_values_that_json_does_not_have_come_in(store: sessiontree.Store, tmp_path: Path):
    file = database(tmp_path / "sessions.db", [said("a", "hi")])
    with closing(sqlite3.connect(file)) as made, made:
        made.execute("UPDATE messages SET created_timestamp = 9e999, metadata_json = x'ff00'")
        made.execute("UPDATE sessions SET name = CAST(x'ff41' AS TEXT)")
    done, _ = await brought(store, file)
    assert done.kept == 1


async def test_damaged_files_are_refused_or_mended(tmp_path: Path):
    file = tmp_path / "session.jsonl"
    outcomes = set[bool]()
    for bad in damaged(LINES_BYTES):
        file.write_bytes(bad)
        outcomes.add(await survives(file, "goose"))
    assert outcomes == {True, False}


WORDS = """id role content user assistant created type text toolRequest toolResponse toolCall value
toolResult status error success name arguments isError thinking signature image data mimeType
metadata agentVisible content_json metadata_json working_dir t1 message_id"""


@settings(max_examples=20)
@given(st.lists(objects(WORDS), max_size=6))
async def test_messages_of_any_shape_come_in_or_are_refused(
    tmp_path_factory: pytest.TempPathFactory, made: list[Row]
):
    file = tmp_path_factory.mktemp("fuzz") / "session.jsonl"
    file.write_text("\n".join(map(json.dumps, [lines()[0], *made])))
    await survives(file, "goose")
    file.write_text(json.dumps({"sessions": {"id": "s"}, "messages": made}))
    await survives(file, "goose")


async def test_what_a_row_calls_beside_its_results_of_no_call_is_closed(
    store: sessiontree.Store, tmp_path: Path
):
    request = {"type": "toolRequest", "id": "t1", "toolCall": {"value": {"name": "x"}}}
    response = {"type": "toolResponse", "id": "t9", "toolResult": {"value": []}}
    rows = [lines()[0], {"id": "a", "role": "assistant", "content": [request, response]}]
    file = tmp_path / "session.jsonl"
    file.write_text("\n".join(map(json.dumps, [*rows, said("b", "go on")])))
    done, chat = await brought(store, file)
    assert (done.closed, await roles(chat)) == (1, "ma!u")
