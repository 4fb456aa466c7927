"""opencode's sessions: its export, its database, its folder, told the same way."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agents import FIXTURES, brought, chat_of, damaged, objects, roles, sent, survives, texts
from hypothesis import given, settings
from hypothesis import strategies as st

import sessiontree
from sessiontree.core.message import calls_of, results_of
from sessiontree.formats import codec
from sessiontree.transfer import Import, import_all, import_file

EXPORT = FIXTURES / "opencode.json"
EXPORT_BYTES = EXPORT.read_bytes()
CODEC = codec("opencode")

Object = dict[str, Any]


@pytest.fixture
async def store():
    async with sessiontree.open_store(":memory:") as opened:
        yield opened


def session() -> Object:
    return json.loads(EXPORT_BYTES)


def message(name: str) -> Object:
    return next(m for m in session()["messages"] if m["info"]["id"] == name)


def database(path: Path, given: Object) -> Path:
    with closing(sqlite3.connect(path)) as made, made:
        made.execute("CREATE TABLE session (id TEXT, title TEXT, time_created INTEGER, revert)")
        for table in ("message", "part"):
            above = "message_id TEXT, " if table == "part" else ""
            made.execute(
                f"CREATE TABLE {table} "
                f"(id TEXT, {above}session_id TEXT, time_created INTEGER, data)"
            )
        made.execute("CREATE TABLE todo (session_id TEXT, content TEXT)")
        info = given["info"]
        revert = json.dumps(info["revert"]) if "revert" in info else None
        values = (info["id"], info["title"], info["time"]["created"], revert)
        made.execute("INSERT INTO session VALUES (?, ?, ?, ?)", values)
        made.execute("INSERT INTO todo VALUES (?, 'paint')", (info["id"],))
        for m in reversed(given["messages"]):  # the order of rows is not the order of messages
            add(made, m)
    return path


def add(made: sqlite3.Connection, m: Object) -> None:
    info = m["info"]
    created = info["time"]["created"]
    data = {k: v for k, v in info.items() if k not in ("id", "sessionID")}
    values = (info["id"], info["sessionID"], created, json.dumps(data))
    made.execute("INSERT INTO message VALUES (?, ?, ?, ?)", values)
    for part in m["parts"]:
        data = {k: v for k, v in part.items() if k not in ("id", "sessionID", "messageID")}
        values = (part["id"], info["id"], info["sessionID"], created, json.dumps(data))
        made.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?)", values)


def folder(path: Path, given: Object) -> Path:
    """As its storage was before it had a database."""
    info = given["info"]
    put(path / "session" / "p1" / f"{info['id']}.json", info)
    for m in given["messages"]:
        put(path / "message" / info["id"] / f"{m['info']['id']}.json", m["info"])
        for part in m["parts"]:
            put(path / "part" / m["info"]["id"] / f"{part['id']}.json", part)
    return path


def put(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


# --- the codec --------------------------------------------------------------------------------


def test_a_tool_is_a_call_with_its_result():
    role, parts = CODEC.decode(message("msg_02"))
    assert role == "assistant"
    assert [call.id for call in calls_of(parts)] == ["call_1", "call_2", "call_3"]
    read, make, shot = results_of(parts)
    assert (read.response, read.is_error) == ("def tide(): ...", False)
    assert (make.response, make.is_error) == ("no rule", True)
    assert [part["type"] for part in shot.response] == ["text", "blob"]


def test_a_tool_that_still_runs_is_a_call_without_a_result():
    parts = CODEC.decode(message("msg_03")).parts
    assert (len(calls_of(parts)), results_of(parts)) == (1, ())


def test_what_is_ignored_is_kept_and_never_sent():
    role, parts = CODEC.decode(message("msg_01"))
    assert (role, [part["type"] for part in parts]) == ("user", ["text", "blob", "opencode:text"])


def test_messages_are_recognised():
    assert all(CODEC.recognises(m) for m in session()["messages"])
    assert not CODEC.recognises({"role": "user", "parts": [{"text": "hi"}]})


@pytest.mark.parametrize(
    "broken",
    [
        {"info": {"role": "user"}, "parts": 7},
        {"info": {"role": "user"}, "parts": [7]},
        {"info": {"role": "user"}, "parts": [{"type": {}}]},
        {"info": {"role": "user"}, "parts": [{"type": "tool", "tool": "x", "state": 1}]},
        {"info": {"role": []}, "parts": []},
        {"info": 7, "parts": []},
    ],
)
def test_a_message_of_another_shape_is_a_mark_that_keeps_it(broken: Object):
    decoded = CODEC.decode(broken)
    assert (decoded.role, decoded.parts[0]["native"]) == ("mark", broken)


# --- in a store -------------------------------------------------------------------------------


async def test_an_export_comes_in_whole(store: sessiontree.Store):
    done, chat = await brought(store, EXPORT)
    assert (done.format, done.kept, done.closed, done.roots) == ("opencode", 9, 1, 1)
    assert await roles(chat) == "uaa!maumua"
    assert (chat.topic, chat.title) == ("ses_tides", "Tides")
    path = [m for m in await chat.path() if m.role != "tool"]
    assert [m.native for m in path] == session()["messages"]
    assert [m.key for m in path] == [m["info"]["id"] for m in session()["messages"]]
    assert (path[1].model, path[1].usage) == ("claude-opus", message("msg_02")["info"]["tokens"])


async def test_what_was_compacted_stays_and_is_not_sent(store: sessiontree.Store):
    _, chat = await brought(store, EXPORT)
    said = await sent(chat)
    assert "Summary: two columns." in said
    assert "Read the tides" not in said
    assert any("Read the tides" in text for text in await texts(chat))


async def test_a_compaction_that_came_to_nothing_compacts_nothing(
    store: sessiontree.Store, tmp_path: Path
):
    given = session()
    given["messages"] = [m for m in given["messages"] if m["info"]["id"] != "msg_05"]
    put(tmp_path / "x.json", given)
    _, chat = await brought(store, tmp_path / "x.json")
    assert "Read the tides" in await sent(chat)


@pytest.mark.parametrize("make", [database, folder])
async def test_a_database_and_a_folder_say_what_the_export_says(
    store: sessiontree.Store, tmp_path: Path, make: Any
):
    done, chat = await brought(store, make(tmp_path / "storage", session()))
    assert (done.format, done.kept, done.closed) == ("opencode", 9, 1)
    assert await roles(chat) == "uaa!maumua"
    assert (chat.topic, chat.title) == ("ses_tides", "Tides")
    natives = [m.native for m in await chat.path() if m.role != "tool"]
    if make is folder:
        assert natives == session()["messages"]
        return
    for found, wanted in zip(natives, session()["messages"], strict=True):
        assert found["info"].items() >= wanted["info"].items()
        for part, told in zip(found["parts"], wanted["parts"], strict=True):
            assert part.items() >= told.items()
    assert chat.info.meta["tables"] == {"todo": [{"session_id": "ses_tides", "content": "paint"}]}


async def test_a_folder_in_a_folder_is_found(store: sessiontree.Store, tmp_path: Path):
    folder(tmp_path / "opencode" / "storage", session())
    (tmp_path / "opencode" / "log.txt").write_text("nothing")
    found = [one async for one in import_all(store, tmp_path)]
    assert [one.kept for one in found if isinstance(one, Import)] == [9]


@pytest.mark.parametrize(
    ("revert", "head"),
    [
        ({"messageID": "msg_08"}, "msg_07"),
        ({"messageID": "msg_08", "partID": "prt_16"}, "msg_08"),
        ({"messageID": "msg_01"}, None),
        ({"messageID": "gone"}, "msg_09"),
        ({}, "msg_09"),
    ],
)
async def test_the_head_is_before_what_was_reverted(
    store: sessiontree.Store, tmp_path: Path, revert: Object, head: str | None
):
    given = session()
    given["info"]["revert"] = revert
    _, chat = await brought(store, database(tmp_path / "opencode.db", given))
    found = None if chat.head is None else (await chat.message(chat.head)).key
    assert found == head


async def test_an_answer_that_grows_is_not_lost(store: sessiontree.Store, tmp_path: Path):
    given = session()
    last = given["messages"][-1]
    completed = last["info"]["time"].pop("completed")
    file = tmp_path / "x.json"
    put(file, given)
    await import_file(store, file)
    last["parts"][0]["text"] = "Blue. And dry."
    last["info"]["time"]["completed"] = completed
    put(file, given)
    done = await import_file(store, file)
    assert (done.kept, done.branch_points) == (1, 0)
    chat = await chat_of(store)
    assert (await texts(chat))[-1] == "Blue. And dry."
    assert await store.check() == []


async def test_the_database_of_the_corpus(store: sessiontree.Store, corpus: Path):
    done, chat = await brought(store, corpus / "opencode" / "opencode.db")
    assert (done.format, done.kept, chat.title) == ("opencode", 2, "SQLite synthetic")
    assert await texts(chat) == [
        "Please inspect the synthetic parser.",
        "I inspected only synthetic evidence.",
    ]
    assert [r.response for r in (await chat.path())[-1].tool_results] == ["synthetic tool output"]


# --- damage -----------------------------------------------------------------------------------


async def test_damaged_files_are_refused_or_mended(tmp_path: Path):
    file = tmp_path / "session.json"
    outcomes = set[bool]()
    for bad in damaged(EXPORT_BYTES):
        file.write_bytes(bad)
        outcomes.add(await survives(file, "opencode"))
    assert outcomes == {True, False}


async def test_files_of_a_folder_that_are_no_json_do_not_keep_the_others_out(
    store: sessiontree.Store, tmp_path: Path
):
    storage = folder(tmp_path / "storage", session())
    (storage / "message" / "ses_tides" / "msg_02.json").write_text("{")
    (storage / "part" / "msg_01" / "prt_01.json").write_bytes(b"\xff")
    done, chat = await brought(store, storage)
    assert (done.kept, await roles(chat)) == (11, "mmmua!maumua")
    everything = "".join([m.raw async for m in chat.iter_messages()])
    assert all(text in everything for text in ('"unreadable":"{"', "I look.", "tide.png"))


WORDS = """id role info parts type text tool callID state status input output error completed
running user assistant time created parentID summary compaction reasoning file url mime
attachments data: revert messageID
session message part message_id session_id data a b modelID tokens"""


@settings(max_examples=20)
@given(st.lists(objects(WORDS), max_size=5), objects(WORDS))
async def test_messages_of_any_shape_come_in_or_are_refused(
    tmp_path_factory: pytest.TempPathFactory, made: list[Object], info: Object
):
    file = tmp_path_factory.mktemp("fuzz") / "session.json"
    good = message("msg_01")
    file.write_text(json.dumps({"info": info, "messages": [good, *made]}))
    await survives(file, "opencode")
    file.write_text(json.dumps({"session": info, "message": made, "part": made}))
    await survives(file, "opencode")
