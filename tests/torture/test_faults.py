"""What the machine does to a store: each fault has a name, leaves nothing half written, and when
it is over the store goes on: with the same handle, unless a test says otherwise."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from machine.choosing import Chooser
from machine.faults import (
    full,
    locked_by_another,
    no_file_grows,
    no_more_files,
    nobody,
    small_disk,
)
from machine.hands import Hands, look
from machine.world import World, differences

import sessiontree
from sessiontree import (
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)

Fault = Callable[[], AbstractContextManager[Any]]


def said(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


async def words(target: Path, **how: Any) -> list[str]:
    """What the conversation "t" of a store says, from its first message to its head."""
    async with sessiontree.open_store(target, **how) as store:
        chat = await store.conversation("t", create=False)
        assert await store.check() == []
        return [message.text for message in await chat.path()]


async def goes_through(target: Path, fault: Fault, error: type[StoreError], **how: Any) -> int:
    """Random operations before, during and after a fault, all with one handle. During it each
    is done whole or refused as ``error``; returns how many were refused."""
    world, refused = World(), 0
    chooser = Chooser(random.Random(str(target)), most=3, large=120)

    async def operate(hands: Hands, times: int) -> None:
        nonlocal refused
        for _ in range(times):
            op = chooser.choose(world)
            out = await hands.perform(op)
            if out == error.__name__:
                refused += 1
            else:
                assert out == world.apply(op), op

    async with sessiontree.open_store(target, **how) as store:
        hands = Hands(store)
        await operate(hands, 60)
        for _ in range(3):
            before = refused
            with fault():
                await operate(hands, 30)
                for _ in range(30):  # a log that is written over again has room for a while
                    if refused == before:
                        await operate(hands, 30)
            during = refused
            assert during > before
            await operate(hands, 60)
            assert refused == during
        await hands.close()
    world.crash()
    async with sessiontree.open_store(target) as store:
        assert not differences(await look(store), world.facts())
        assert await store.check() == []
    return refused


# ---- no room -------------------------------------------------------------------------


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", "8m") as folder:
        yield folder


async def test_a_full_disk_is_named_and_the_store_goes_on_when_there_is_room(disk: Path) -> None:
    assert await goes_through(disk / "s.db", lambda: full(disk), StoreFull) > 20


async def test_a_store_is_neither_made_nor_lost_on_a_full_disk(disk: Path) -> None:
    async with sessiontree.open_store(disk / "s.db") as store:
        chat = await store.conversation("t")
        await chat.append(said("kept"))
        with full(disk):
            with pytest.raises(StoreFull):
                await chat.append(said("x" * 10_000))
            with pytest.raises(StoreFull):
                await words(disk / "new.db")
            assert [message.text for message in await chat.path()] == ["kept"]
    with full(disk), pytest.raises(StoreFull):  # there is no room for the index of the log
        await words(disk / "s.db", read_only=True)
    assert await words(disk / "s.db") == ["kept"]
    async with sessiontree.open_store(disk / "new.db") as store:
        assert await store.check() == []


async def test_a_disk_that_is_full_when_the_store_is_closed_loses_nothing(disk: Path) -> None:
    async with sessiontree.open_store(disk / "s.db") as store:
        chat = await store.conversation("t")
        texts = [f"{number} " + "x" * 3_000 for number in range(100)]
        await chat.append([said(text) for text in texts])
        filler = full(disk)
        filler.__enter__()
    filler.__exit__(None, None, None)  # only now: what was in the log could not be folded
    assert await words(disk / "s.db") == texts


def quota(db: sqlite3.Connection, pages: int) -> None:
    """It is the connection's own: no public name reaches it."""
    db.execute(f"PRAGMA max_page_count = {pages}")


async def test_a_store_that_may_have_no_more_pages_is_full(tmp_path: Path) -> None:
    async with sessiontree.open_store(tmp_path / "s.db") as store:
        chat = await store.conversation("t")
        await chat.append(said("kept"))
        await store._backend.write(quota, 1)  # that is: no more than it has
        outcomes = await asyncio.gather(
            *(chat.append(said("x" * 100_000), parent=None) for _ in range(5)),
            return_exceptions=True,
        )
        assert [type(outcome) for outcome in outcomes] == [StoreFull] * 5
        await store._backend.write(quota, 1_000_000)
        await chat.append(said("after"))
    assert await words(tmp_path / "s.db") == ["kept", "after"]


# ---- errors of the disk --------------------------------------------------------------


async def test_an_io_error_is_named_and_the_store_goes_on_when_it_is_over(tmp_path: Path) -> None:
    target = tmp_path / "s.db"
    log = Path(f"{target}-wal")
    fault = lambda: no_file_grows(log.stat().st_size)  # noqa: E731
    assert await goes_through(target, fault, StoreUnavailable) > 20


async def test_a_file_that_is_cut_beneath_is_damaged_and_nothing_is_added_to_it(
    tmp_path: Path,
) -> None:
    target = tmp_path / "s.db"
    async with sessiontree.open_store(target) as store:
        chat = await store.conversation("t")
        await chat.append([said("x" * 3_000) for _ in range(50)])
    async with sessiontree.open_store(target) as store:
        chat = await store.conversation("t")
        os.truncate(target, 40_960)
        with pytest.raises(StoreCorrupt):
            await chat.path()
        with pytest.raises(StoreCorrupt):
            await chat.append(said("more"))
    with pytest.raises(StoreCorrupt):
        await words(target)


# ---- no permission -------------------------------------------------------------------


@pytest.fixture
def public(open_to_all: None) -> Iterator[Path]:
    """A folder that everybody can reach, with a store in it."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    asyncio.run(_fill(folder / "s.db"))
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def allow(folder: Path, mode: int, of_files: int | None = None) -> None:
    folder.chmod(mode)
    for file in folder.iterdir() if of_files is not None else ():
        file.chmod(of_files)


async def _fill(target: Path) -> None:
    async with sessiontree.open_store(target) as store:
        await (await store.conversation("t")).append(said("kept"))


async def add(target: Path) -> None:
    async with sessiontree.open_store(target) as store:
        await (await store.conversation("t")).append(said("more"))


@pytest.mark.parametrize(("file", "folder"), [(0o444, 0o777), (0o666, 0o555), (0o444, 0o555)])
async def test_a_read_only_file_or_folder_can_be_read_and_says_that_it_cannot_be_written(
    public: Path, file: int, folder: int
) -> None:
    target = public / "s.db"
    target.chmod(file)
    allow(public, folder)
    with nobody():
        with pytest.raises(StoreReadOnly, match="may not be written"):
            await add(target)
        assert await words(target, read_only=True) == ["kept"]
    allow(public, 0o777, 0o666)  # the log as well: it has the permissions that the file had
    with nobody():
        await add(target)
        assert await words(target) == ["kept", "more"]


async def test_a_store_cannot_be_made_in_a_read_only_folder(public: Path) -> None:
    with nobody(), pytest.raises(StoreReadOnly, match=r"new\.db"):
        await add(public / "new.db")
    assert os.listdir(public) == ["s.db"]


async def test_a_file_that_may_not_be_read_is_unavailable(public: Path) -> None:
    (public / "s.db").chmod(0)
    with nobody(), pytest.raises(StoreUnavailable, match=r"s\.db"):
        await words(public / "s.db", read_only=True)
    allow(public, 0)
    with nobody(), pytest.raises(StoreUnavailable, match="Permission denied"):
        await words(public / "s.db")


# ---- somebody else has it ------------------------------------------------------------


async def test_a_store_that_another_process_holds_is_busy_and_goes_on_afterwards(
    tmp_path: Path,
) -> None:
    target = tmp_path / "s.db"
    fault = lambda: locked_by_another(target)  # noqa: E731
    refused = await goes_through(target, fault, StoreBusy, busy_timeout=0.01)
    assert refused > 20


async def test_a_held_store_can_be_read_but_not_made_busy_for_ever(tmp_path: Path) -> None:
    target = tmp_path / "s.db"
    await _fill(target)
    with locked_by_another(target):
        assert await words(target, busy_timeout=0.1) == ["kept"]
        with pytest.raises(StoreBusy):
            async with sessiontree.open_store(target, busy_timeout=0.1) as store:
                await store.conversation("new")


async def test_a_writer_waits_for_another_process_within_its_patience(tmp_path: Path) -> None:
    target = tmp_path / "s.db"
    await _fill(target)
    async with sessiontree.open_store(target) as store:
        chat = await store.conversation("t")
        with locked_by_another(target) as other:
            waiting = asyncio.create_task(chat.append(said("more")))
            await asyncio.sleep(0.3)
            assert not waiting.done()
            assert other.stdin is not None
            other.stdin.close()
            await waiting
    assert await words(target) == ["kept", "more"]


# ---- too many files ------------------------------------------------------------------


async def test_too_many_open_files_are_told_and_the_store_goes_on_with_fewer(
    tmp_path: Path,
) -> None:
    target = tmp_path / "s.db"
    async with sessiontree.open_store(target) as store:
        chat = await store.conversation("t")
        with no_more_files():
            await chat.append(said("kept"))  # needs none
            with pytest.raises(StoreUnavailable, match="Too many open files"):
                await chat.path()  # would open a reader
            with pytest.raises(StoreUnavailable, match="Too many open files"):
                await words(target)
        assert [message.text for message in await chat.path()] == ["kept"]
        await chat.append(said("more"))
    assert await words(target) == ["kept", "more"]


# ---- it is not there any more --------------------------------------------------------


@pytest.mark.parametrize("name", ["s.db", "s.db-wal"])
async def test_a_file_that_vanished_takes_nothing_more_and_goes_on_when_it_is_back(
    tmp_path: Path, name: str
) -> None:
    """What is written to a removed file is gone with the process: it must not be said to be
    saved. What the handle can still read it does read, so that it can be rescued."""
    target = tmp_path / "s.db"
    async with sessiontree.open_store(target) as store:
        chat = await store.conversation("t")
        await chat.append(said("kept"))
        assert [message.text for message in await chat.path()] == ["kept"]
        (tmp_path / name).rename(tmp_path / "away")
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match="removed or replaced"):
                await chat.append(said("lost?"))
        assert [message.text for message in await chat.path()] == ["kept"]
        (tmp_path / "away").rename(tmp_path / name)
        await chat.append(said("more"))
    assert await words(target) == ["kept", "more"]


def remove(target: Path) -> None:
    for part in ("", "-wal", "-shm"):
        Path(f"{target}{part}").unlink()


async def test_a_replaced_file_is_not_written_to_and_can_be_opened_again(tmp_path: Path) -> None:
    """With a new handle: the old one holds a file that is nowhere any more."""
    target, other = tmp_path / "s.db", tmp_path / "other.db"
    await _fill(other)
    async with sessiontree.open_store(target) as store:
        chat = await store.conversation("t")
        await chat.append(said("of the old file"))
        remove(target)
        other.rename(target)
        with pytest.raises(StoreUnavailable, match="removed or replaced"):
            await chat.append(said("lost?"))
    await add(target)
    assert await words(target) == ["kept", "more"]


async def test_a_folder_that_vanished_is_told(tmp_path: Path) -> None:
    """With a new handle: open_store makes a new store once there is a folder again."""
    folder = tmp_path / "folder"
    folder.mkdir()
    async with sessiontree.open_store(folder / "s.db") as store:
        chat = await store.conversation("t")
        await chat.append(said("gone"))
        shutil.rmtree(folder)
        with pytest.raises(StoreUnavailable, match="removed or replaced"):
            await chat.append(said("lost?"))
        with pytest.raises(StoreUnavailable, match="there is no folder"):
            await words(folder / "s.db")
    folder.mkdir()
    await _fill(folder / "s.db")
    assert await words(folder / "s.db") == ["kept"]
