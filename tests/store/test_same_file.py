"""Files that go away, or give their names to others, while a store is open.

SQLite would write on into a file that nobody can open any more."""

# ruff: noqa: ASYNC240 - tests may block
from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from talk import user

import sessiontree
from sessiontree.store import samefile

SETTLED = 0.2
"""Seconds after which a folder that did not change is believed."""


def away(file: Path) -> None:
    file.unlink()


def moved(file: Path) -> None:
    file.rename(file.with_name("elsewhere.db"))


def replaced(file: Path) -> None:
    os.replace(file.parent.parent / "other.db", file)


def replaced_by_a_copy(file: Path) -> None:
    """As those do that restore a copy: the times are what they were."""
    before = os.stat(file.parent)
    replaced(file)
    os.utime(file.parent, ns=(before.st_atime_ns, before.st_mtime_ns))


def log_away(file: Path) -> None:
    Path(f"{file}-wal").unlink()


def log_replaced(file: Path) -> None:
    os.replace(file.parent.parent / "other.db", f"{file}-wal")


def folder_away(file: Path) -> None:
    shutil.rmtree(file.parent)


def folder_replaced(file: Path) -> None:
    file.parent.rename(file.parent.with_name("before"))
    file.parent.mkdir()
    replaced(file)


WAYS = [
    away,
    moved,
    replaced,
    replaced_by_a_copy,
    log_away,
    log_replaced,
    folder_away,
    folder_replaced,
]
Way = Callable[[Path], None]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """In a folder of its own, beside which another store lies."""
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder" / "sessions.db"


async def other_store(beside: Path) -> str:
    """Another store, and what its bytes are."""
    other = beside / "other.db"
    async with sessiontree.open_store(other) as store:
        await (await store.conversation("other")).append(user("of another store"))
    return digest(other)


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def is_digest_of_any(digest_: str, folder: Path) -> bool:
    return any(digest(file) == digest_ for file in folder.rglob("*") if file.is_file())


@pytest.mark.parametrize("wait", [0, SETTLED], ids=["at once", "later"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_a_file_that_is_not_there_any_more_acknowledges_nothing(
    file: Path, way: Way, wait: float
) -> None:
    before = await other_store(file.parent.parent)
    async with sessiontree.open_store(file) as store:
        chat = await store.conversation("chat")
        await chat.path()
        for number in range(8):
            await chat.append(user(f"kept {number}"))
            await asyncio.sleep(wait / 8)
        way(file)
        for _ in range(3):
            with pytest.raises(sessiontree.StoreUnavailable, match="removed or replaced"):
                await chat.append(user("lost"))
        assert is_digest_of_any(before, file.parent.parent), "the other store is as it was"


@pytest.mark.parametrize("wait", [0, SETTLED], ids=["at once", "later"])
@pytest.mark.parametrize("what", ["file", "folder"])
async def test_a_link_that_leads_elsewhere_now_acknowledges_nothing(
    tmp_path: Path, file: Path, what: str, wait: float
) -> None:
    """What is at the link's own place changes nothing in the folder that it led to."""
    other = tmp_path / "aside" / file.name
    other.parent.mkdir()
    async with sessiontree.open_store(other):
        pass
    link = tmp_path / "link"
    link.symlink_to(file if what == "file" else file.parent)
    async with sessiontree.open_store(link if what == "file" else link / file.name) as store:
        chat = await store.conversation("chat")
        for number in range(8):
            await chat.append(user(f"kept {number}"))
            await asyncio.sleep(wait / 8)
        link.unlink()
        link.symlink_to(other if what == "file" else other.parent)
        with pytest.raises(sessiontree.StoreUnavailable, match="removed or replaced"):
            await chat.append(user("lost"))


async def test_a_folder_in_which_other_files_come_and_go_is_no_fault(file: Path) -> None:
    async with sessiontree.open_store(file) as store:
        chat = await store.conversation("chat")
        for number in range(20):
            file.with_name(f"other {number}").touch()
            await chat.append(user(f"kept {number}"))
            await asyncio.sleep(SETTLED / 20)
            file.with_name(f"other {number}").unlink()
        assert len(await chat.path()) == 20


async def test_where_the_folder_did_not_change_no_file_is_looked_at(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    seen = os.stat

    def stat(path: str) -> os.stat_result:
        looked.append(path)
        return seen(path)

    async with sessiontree.open_store(file) as store:
        chat = await store.conversation("chat")
        await chat.path()
        await asyncio.sleep(SETTLED)
        await chat.append(user("this one finds that it did not"))
        monkeypatch.setattr(samefile.os, "stat", stat)
        await chat.append(user("this one knows"))
        monkeypatch.undo()
    assert looked == [str(file.parent)]


async def test_a_file_that_changes_behind_its_folder_is_seen_before_long(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where another is mounted over it: the folder knows nothing of that."""
    seen = os.stat

    def stat(path: str) -> os.stat_result:
        return seen(path if path != str(file) else __file__)

    monkeypatch.setattr(samefile, "BELIEVED", SETTLED)
    async with sessiontree.open_store(file) as store:
        chat = await store.conversation("chat")
        for number in range(8):
            await chat.append(user(f"kept {number}"))
            await asyncio.sleep(SETTLED / 8)
        monkeypatch.setattr(samefile.os, "stat", stat)
        await asyncio.sleep(SETTLED)
        with pytest.raises(sessiontree.StoreUnavailable, match="removed or replaced"):
            await chat.append(user("lost"))
        monkeypatch.undo()


SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("changed", "seen", "settled"),
    [
        (5 * SECOND + 7, 5 * SECOND + 20_000_000, False),
        (5 * SECOND + 7, 5 * SECOND + 60_000_000, True),
        (5 * SECOND, 7 * SECOND, False),
        (5 * SECOND, 9 * SECOND, True),
        (9 * SECOND + 7, 5 * SECOND, False),
    ],
)
def test_a_change_is_over_when_the_clock_of_the_file_system_has_gone_on(
    changed: int, seen: int, settled: bool
) -> None:
    """A clock that gives whole seconds may tick every two; one that was set back is not
    believed."""
    assert samefile._is_settled(changed, seen) is settled  # pyright: ignore[reportPrivateUsage]


async def test_a_reader_that_comes_later_makes_no_new_file(file: Path) -> None:
    async with sessiontree.open_store(file) as store:
        file.unlink()
        with pytest.raises(sessiontree.StoreUnavailable):
            [info async for info in store.conversations()]
        assert not file.exists()
