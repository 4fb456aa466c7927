"""Folders and archives: everything in them, and nothing that an archive could do to us."""

from __future__ import annotations

import json
import os
import sqlite3
import struct
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import zstandard
from chats import FIXTURES
from mutations import database

from sessiontree import FormatError, Store
from sessiontree.transfer import Import, Refused, gathering, import_all


async def gather(store: Store, path: Path, **options: Any) -> tuple[list[Import], list[Refused]]:
    found = [one async for one in import_all(store, path, **options)]
    done = [one for one in found if isinstance(one, Import)]
    return done, [one for one in found if isinstance(one, Refused)]


def archive(file: Path, members: dict[str, bytes | str]) -> Path:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in members.items():
            made.writestr(name, content)
    return file


def files(folder: Path) -> list[Path]:
    return [one for one in folder.rglob("*") if one.is_file()]


def chatgpt(topic: str) -> str:
    content = {"content_type": "text", "parts": ["Hi"]}
    message = {"author": {"role": "user"}, "content": content}
    node = {"id": "a", "parent": None, "children": [], "message": message}
    return json.dumps([{"id": topic, "title": topic, "mapping": {"a": node}}])


async def test_every_file_of_an_archive_comes_in_in_the_order_of_names(
    store: Store, tmp_path: Path
):
    members = {f"conversations-{i:03}.json": chatgpt(f"c{i}") for i in reversed(range(60))}
    file = archive(tmp_path / "export.zip", {**members, "user.json": "{}", "chat.html": "<html>"})
    done, refused = await gather(store, file)
    assert [one.conversations[0].topic for one in done] == [f"c{i}" for i in range(60)]
    assert [Path(one.file).name for one in refused] == ["chat.html", "user.json"]
    again, _ = await gather(store, file)
    assert sum(one.kept for one in again) == 0


async def test_every_file_of_a_folder_comes_in_and_of_the_archives_in_it(
    store: Store, tmp_path: Path
):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "one.json").write_text(chatgpt("one"))
    (tmp_path / "README.md").write_text("# nothing")
    archive(tmp_path / "a.zip", {"deep/two.json": chatgpt("two")})
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "dead").symlink_to(tmp_path / "nowhere")
    done, refused = await gather(store, tmp_path)
    assert [one.conversations[0].topic for one in done] == ["two", "one"]
    assert sorted(Path(one.file).name for one in refused) == ["README.md", "dead"]


async def test_one_file_is_imported_and_its_error_raised(store: Store, tmp_path: Path):
    (done,), refused = await gather(store, FIXTURES / "oasst.jsonl")
    assert (done.format, refused) == ("oasst", [])
    with pytest.raises(FormatError, match="cannot be read"):
        await gather(store, tmp_path / "nowhere.json")


async def test_progress_goes_over_all_files(store: Store, tmp_path: Path):
    for name in ("one", "two"):
        (tmp_path / f"{name}.json").write_text(chatgpt(name))
    told: list[tuple[int, int]] = []
    await gather(store, tmp_path, progress=lambda done, whole: told.append((done, whole)))
    size = sum(file.stat().st_size for file in files(tmp_path))
    assert told[-1] == (size, size)
    assert told == sorted(told)


@pytest.mark.parametrize("members", [{}, {"a.txt": "x"}, {"a/": b""}])
async def test_an_archive_in_which_nothing_can_be_imported_is_an_error(
    store: Store, tmp_path: Path, members: dict[str, bytes | str]
):
    with pytest.raises(FormatError):
        await gather(store, archive(tmp_path / "x.zip", members))


async def test_an_empty_folder_is_an_error(store: Store, tmp_path: Path):
    with pytest.raises(FormatError, match="there is no file in it"):
        await gather(store, tmp_path)


@pytest.mark.parametrize("name", ["../../evil.json", "/etc/evil.json", "..\\evil.json", "a" * 4000])
async def test_names_in_an_archive_are_never_places_on_the_disk(
    store: Store, tmp_path: Path, name: str
):
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    file = archive(inside / "x.zip", {name: chatgpt("one")})
    (done,), _ = await gather(store, file)
    assert done.conversations[0].topic == "one"
    assert files(tmp_path) == [file]
    assert not files(Path("/etc/evil.json"))


# --- bombs --------------------------------------------------------------------------------------


async def test_a_file_that_unpacks_to_far_more_than_it_is_packed_is_refused(
    store: Store, tmp_path: Path
):
    members: dict[str, bytes | str] = {
        "bomb.json": b"[" + b" " * (50 << 20),
        "a.json": chatgpt("a"),
    }
    (done,), (refused,) = await gather(store, archive(tmp_path / "x.zip", members))
    assert done.conversations[0].topic == "a"
    assert "it unpacks to more than" in refused.error.what


async def test_the_size_is_counted_and_not_believed(store: Store, tmp_path: Path):
    """The archive says that its file is 10 bytes long."""
    file = archive(tmp_path / "x.zip", {"bomb.json": b" " * (50 << 20)})
    raw = file.read_bytes()
    file.write_bytes(raw.replace(struct.pack("<I", 50 << 20), struct.pack("<I", 10)))
    with pytest.raises(FormatError):
        await gather(store, file)


async def test_too_many_files_are_refused(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(gathering, "MAX_MEMBERS", 2)
    file = archive(tmp_path / "x.zip", {f"{i}.json": chatgpt(str(i)) for i in range(3)})
    with pytest.raises(FormatError, match="has 3 files; more than 2 are not read"):
        await gather(store, file)


async def test_an_archive_that_is_too_large_in_all_is_refused(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(gathering, "MAX_ARCHIVE", 300)
    file = archive(tmp_path / "x.zip", {f"{i}.json": chatgpt(str(i)) for i in range(3)})
    with pytest.raises(FormatError, match="more than 300 are not read"):
        await gather(store, file)


async def test_an_archive_in_an_archive_is_refused(store: Store, tmp_path: Path):
    inner = archive(tmp_path / "inner.zip", {"a.json": chatgpt("a")}).read_bytes()
    (tmp_path / "inner.zip").unlink()
    file = archive(tmp_path / "x.zip", {"inner.zip": inner, "b.json": chatgpt("b")})
    (done,), (refused,) = await gather(store, file)
    assert done.conversations[0].topic == "b"
    assert "an archive in an archive" in refused.error.what


@pytest.mark.parametrize("cut", [0.2, 0.5, 0.9])
async def test_a_damaged_archive_is_an_error(store: Store, tmp_path: Path, cut: float):
    file = archive(tmp_path / "x.zip", {"a.json": chatgpt("a")})
    raw = file.read_bytes()
    file.write_bytes(raw[: int(len(raw) * cut)])
    with pytest.raises(FormatError, match="damaged"):
        await gather(store, file)


async def test_flipped_bytes_are_an_error_or_no_harm(store: Store, tmp_path: Path):
    file = archive(tmp_path / "x.zip", {"a.json": chatgpt("a")})
    raw = file.read_bytes()
    for at in range(len(raw)):
        file.write_bytes(raw[:at] + bytes([raw[at] ^ 0x55]) + raw[at + 1 :])
        try:
            await gather(store, file)
        except FormatError:
            continue
    assert await store.check() == []


# --- files that are no text, in archives and folders ------------------------------------------


def goose(path: Path, text: str) -> Path:
    row = {"session_id": "s1", "role": "user", "content_json": [{"type": "text", "text": text}]}
    database(path, {"sessions": [{"id": "s1"}], "messages": [row | {"message_id": "m1"}]})
    return path


async def test_databases_and_packed_rollouts_in_an_archive_come_in(store: Store, tmp_path: Path):
    rollout = (FIXTURES.parent / "agents" / "codex.jsonl").read_bytes()
    members: dict[str, bytes | str] = {
        "goose/sessions.db": goose(tmp_path / "made.db", "Hi").read_bytes(),
        "codex/rollout.jsonl.zst": zstandard.ZstdCompressor().compress(rollout),
    }
    file = archive(tmp_path / "export.zip", members)
    (first, second), refused = await gather(store, file)
    assert (first.format, second.format, refused) == ("codex", "goose", [])
    assert (first.file, second.file) == (
        f"{file}/codex/rollout.jsonl.zst",
        f"{file}/goose/sessions.db",
    )
    assert [m.text async for m in second.conversations[0].iter_messages()] == ["Hi"]


@pytest.mark.parametrize("packed", [True, False], ids=["archive", "folder"])
async def test_what_is_newest_in_a_database_lies_beside_it_and_is_read_with_it(
    store: Store, tmp_path: Path, packed: bool
):
    folder = tmp_path / "goose"
    folder.mkdir()
    place = goose(folder / "sessions.db", "Hi")
    with closing(sqlite3.connect(place)) as writing, writing:
        writing.execute("PRAGMA journal_mode = WAL")
        said = json.dumps([{"type": "text", "text": "Newer"}])
        writing.execute("INSERT INTO messages VALUES ('s1', 'user', ?, 'm2')", (said,))
        writing.commit()
        held = {f"goose/{one.name}": one.read_bytes() for one in sorted(folder.iterdir())}
        assert "goose/sessions.db-wal" in held
        for name, content in held.items():  # as they lie there while the program runs
            (tmp_path / "copy" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "copy" / name).write_bytes(content)
    path = archive(tmp_path / "export.zip", held) if packed else tmp_path / "copy"
    (done,), refused = await gather(store, path)
    assert refused == []
    texts = [message.text async for message in done.conversations[0].iter_messages()]
    assert texts == ["Hi", "Newer"]


async def test_a_damaged_database_in_an_archive_is_refused(store: Store, tmp_path: Path):
    raw = goose(tmp_path / "made.db", "Hi").read_bytes()
    members: dict[str, bytes | str] = {"a.db": raw[:5000], "b.json": chatgpt("one")}
    done, refused = await gather(store, archive(tmp_path / "export.zip", members))
    assert [one.format for one in done] == ["chatgpt"]
    assert [Path(one.file).name for one in refused] == ["a.db"]
    assert "the database cannot be read" in str(refused[0].error)
