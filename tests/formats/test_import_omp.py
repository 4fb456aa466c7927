"""oh-my-pi's sessions: what it writes beyond pi, and the images it keeps beside them."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from agents import brought, chat_of, damaged, objects, plants, roles, sent, survives, write
from hypothesis import given
from hypothesis import strategies as st
from planted import Planted

import sessiontree
from sessiontree.core.message import text_of
from sessiontree.formats import codec
from sessiontree.transfer import import_file

CODEC = codec("pi")
PNG = base64.b64decode("iVBORw0KGgo=")
NAME = f"blob:sha256:{hashlib.sha256(PNG).hexdigest()}"

Row = dict[str, Any]


@pytest.fixture
async def store():
    async with sessiontree.open_store(":memory:") as opened:
        yield opened


def slot(title: str) -> Row:
    """The first line: as long whatever the title is, so that it can be written over."""
    row = {"type": "title", "v": 1, "title": title, "updatedAt": "2026-01-01T00:00:00Z", "pad": ""}
    row["pad"] = " " * (255 - len(json.dumps(row).encode()))
    return row


def entry(name: str, parent: str | None, kind: str, **more: Any) -> Row:
    time = "2026-01-01T10:00:00.000Z"
    return {"type": kind, "id": name, "parentId": parent, "timestamp": time, **more}


def message(name: str, parent: str | None, role: str, content: object, **more: Any) -> Row:
    return entry(name, parent, "message", message={"role": role, "content": content, **more})


def session() -> list[Row]:
    image = {"type": "image", "data": NAME, "mimeType": "image/png"}
    call = {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "tides.py"}}
    result = {"toolCallId": "c1", "toolName": "read", "isError": False}
    files = [{"path": "tides.py", "content": "def tide(): ..."}]
    return [
        slot("Tides"),
        {"type": "session", "version": 3, "id": "omp-1", "cwd": "/", "timestamp": "2026-01-01"},
        entry("e1", None, "model_change", model="anthropic/claude-opus", role="default"),
        entry("e2", "e1", "session_init", systemPrompt=["You are omp.", "Be kind."], task="x"),
        message("e3", "e2", "user", [{"type": "text", "text": "Before"}]),
        message("e4", "e3", "assistant", [{"type": "text", "text": "Said before"}]),
        entry("e5", "e4", "reset_boundary"),
        message("e6", "e5", "user", [{"type": "text", "text": "Look"}, image]),
        entry("e7", "e6", "message", message={"role": "fileMention", "files": files}),
        message("e8", "e7", "developer", "A reminder"),
        message("e9", "e8", "assistant", [call]),
        message("ea", "e9", "toolResult", [{"type": "text", "text": "ok"}], **result),
        entry("eb", "ea", "model_usage", purpose="title", role="tiny", model="m", usage={}),
        entry(
            "ec",
            "eb",
            "message",
            message={"role": "pythonExecution", "code": "1 + 1", "output": "2", "exitCode": 0},
        ),
        entry("ed", "ec", "credential_pin", provider="anthropic", hash="aa"),
        entry("ee", "ed", "title_change", title="Tides and moons", source="user"),
        message("ef", "ee", "assistant", [{"type": "text", "text": "Two columns"}]),
    ]


def test_entries_with_the_role_of_a_model_are_no_messages():
    for made in session():
        if made["type"] in ("model_change", "model_usage"):
            assert CODEC.decode(made).role == "mark"
            assert CODEC.recognises(made)


def test_the_title_slot_is_as_long_as_it_says():
    assert len(json.dumps(slot("Größe")).encode()) == 255
    assert CODEC.recognises(slot("x"))


@pytest.mark.parametrize("prompt", [None, [], 7, [7, None]])
def test_a_beginning_without_a_prompt_is_a_mark(prompt: object):
    assert CODEC.decode(entry("e", None, "session_init", systemPrompt=prompt)).role == "mark"


@pytest.mark.parametrize("files", [None, 7, [7]])
def test_broken_mentions_of_files_are_marks(files: object):
    made = entry("e", None, "message", message={"role": "fileMention", "files": files})
    assert CODEC.decode(made).role == "mark"


async def test_a_session_comes_in_whole(store: sessiontree.Store, tmp_path: Path):
    done, chat = await brought(store, write(tmp_path / "s.jsonl", session()))
    assert (done.format, done.entries, done.kept, done.repaired) == ("pi", 17, 17, 0)
    assert (chat.topic, chat.title) == ("omp-1", "Tides and moons")
    assert await roles(chat) == "mmmsuamuuuatmumma"
    assert [m.native for m in await chat.path()] == session()


async def test_what_was_cleared_is_not_sent_and_the_prompt_is(
    store: sessiontree.Store, tmp_path: Path
):
    _, chat = await brought(store, write(tmp_path / "s.jsonl", session()))
    said = await sent(chat)
    assert "Before" not in said
    for text in ("Look", "tides.py:", "A reminder", "1 + 1", "Two columns"):
        assert text in said
    assert (await chat.window(target="anthropic")).system == "You are omp.\n\nBe kind."


@pytest.mark.parametrize("place", ["blobs", "../blobs", "../../blobs"])
async def test_images_beside_are_put_in(store: sessiontree.Store, tmp_path: Path, place: str):
    home = tmp_path / "agent" / "sessions" / "--home--"
    home.mkdir(parents=True)
    (home / place).mkdir(exist_ok=True)
    (home / place / NAME.removeprefix("blob:sha256:")).write_bytes(PNG)
    _, chat = await brought(store, write(home / "s.jsonl", session()))
    (look,) = [m for m in await chat.path() if m.key == "e6"]
    assert look.native["message"]["content"][1]["data"] == base64.b64encode(PNG).decode()
    assert look.parts[1]["type"] == "blob"


async def test_images_that_are_not_there_stay_named(store: sessiontree.Store, tmp_path: Path):
    blobs = tmp_path / "blobs"
    blobs.mkdir()
    (blobs / NAME.removeprefix("blob:sha256:")).write_bytes(b"something else")
    _, chat = await brought(store, write(tmp_path / "s.jsonl", session()))
    (look,) = [m for m in await chat.path() if m.key == "e6"]
    assert (look.parts[1]["type"], look.parts[1]["file_id"]) == ("file", NAME)
    assert "image/png" in await sent(chat)


@pytest.mark.parametrize("name", ["blob:sha256:../../secret", "blob:sha256:", "blob:sha256:AA"])
async def test_a_name_that_is_no_digest_is_never_a_path(
    store: sessiontree.Store, tmp_path: Path, name: str
):
    (tmp_path / "blobs").mkdir()
    (tmp_path / "secret").write_text("secret")
    rows = json.loads(json.dumps(session()).replace(NAME, name))
    _, chat = await brought(store, write(tmp_path / "s.jsonl", rows))
    (look,) = [m for m in await chat.path() if m.key == "e6"]
    assert look.parts[1]["file_id"] == name


async def test_what_is_said_about_a_blob_is_no_blob(store: sessiontree.Store, tmp_path: Path):
    blobs = tmp_path / "blobs"
    blobs.mkdir()
    (blobs / NAME.removeprefix("blob:sha256:")).write_bytes(PNG)
    text = json.dumps({"data": NAME}, separators=(",", ":"))
    rows = [*session()[:2], message("a", None, "user", [{"type": "text", "text": text}])]
    _, chat = await brought(store, write(tmp_path / "s.jsonl", rows))
    assert text_of((await chat.path())[-1].parts) == text


async def test_a_title_that_is_written_over_is_no_other_row(
    store: sessiontree.Store, tmp_path: Path
):
    file = write(tmp_path / "s.jsonl", session()[:5])
    await import_file(store, file)
    file = write(file, [slot("Moons"), *session()[1:]])
    done = await import_file(store, file)
    assert (done.already, done.kept, done.branch_points) == (5, 12, 0)
    assert (await roles(await chat_of(store)))[-1] == "a"
    assert await store.check() == []


async def test_damaged_files_are_refused_or_mended(tmp_path: Path):
    raw = "".join(json.dumps(row) + "\n" for row in session()).encode()
    file = tmp_path / "s.jsonl"
    outcomes = set[bool]()
    for bad in damaged(raw):
        file.write_bytes(bad)
        outcomes.add(await survives(file, "pi"))
    assert outcomes == {True, False}


WORDS = """type id parentId role message content title pad session_init systemPrompt text data image
mimeType model_change model_usage fileMention files path reset_boundary label targetId developer
compaction firstKeptEntryId summary toolResult toolCallId toolCall a b blob:sha256:0"""


@given(st.lists(objects(WORDS), max_size=8))
def test_rows_of_any_shape_make_a_sound_tree_or_a_clear_error(made: list[Row]):
    plants([*session()[:4], *made], "pi")


def test_a_session_that_was_cleared_is_one_chain():
    tree = Planted(session(), "pi")
    tree.check()
    assert len(tree.paths) == 1
    assert tree.repairs == []
