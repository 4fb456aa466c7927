"""The main file itself is damaged: check says what is missing, repair gets out what is there."""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from machine.choosing import Chooser
from machine.forks import Forks, forks
from machine.hands import Hands, look
from machine.world import World, differences

import sessiontree
from sessiontree import StoreBusy, StoreCorrupt
from sessiontree.store.pages import Pages

PAGE = 4096


async def fill(target: Path, seed: int = 1, operations: int = 400) -> dict[str, Any]:
    """A random store, folded into its main file; what is in it."""
    world, chooser = World(), Chooser(random.Random(seed), most=5, large=200)
    async with sessiontree.open_store(target, durability="normal") as store:
        hands = Hands(store)
        for _ in range(operations):
            op = chooser.choose(world)
            assert await hands.perform(op) == world.apply(op)
        await hands.close()
    return world.facts()


def contents(target: Path) -> dict[int, str]:
    with closing(sqlite3.connect(target)) as db:
        return dict(
            db.execute(
                "SELECT m.id, coalesce(m.content, CAST(b.content AS TEXT))"
                " FROM message m LEFT JOIN blob b ON b.id = m.blob_id"
            )
        )


def pages_of(target: Path) -> dict[int, str]:
    """Page → the table or index that it is of, where SQLite can tell."""
    with closing(sqlite3.connect(target)) as db:
        count = db.execute("PRAGMA page_count").fetchone()[0]
        try:
            named = dict(db.execute("SELECT pageno, name FROM dbstat"))
        except sqlite3.OperationalError:  # built without it
            named = {}
    return {number: named.get(number, "?") for number in range(1, count + 1)}


def spoil(target: Path, number: int, page: bytes) -> None:
    with target.open("r+b") as file:
        file.seek((number - 1) * PAGE)
        file.write(page)


def copy(original: Path, target: Path) -> None:
    target.write_bytes(original.read_bytes())
    for part in ("-wal", "-shm"):
        Path(f"{target}{part}").unlink(missing_ok=True)


async def what_is_there(target: Path) -> dict[int, str]:
    """Every message that can be reached in a sound store; and each conversation goes on."""
    found: dict[int, str] = {}
    async with sessiontree.open_store(target) as store:
        for info in [info async for info in store.conversations()]:
            chat = await store.open(info.id)
            for leaf in await chat.leaves():
                found |= {message.id: message.raw for message in await chat.path(leaf.id)}
            await chat.append({"role": "user", "content": "and on"})
        assert all(problem.kind in STAYS for problem in await store.check())
    return found


STAYS = ("changed_blob", "unreadable_content")
"""What is really lost, and stays told."""


async def check_and_repair(target: Path) -> tuple[set[str], sessiontree.Repair]:
    async with sessiontree.open_store(target, damaged=True) as store:
        kinds = {problem.kind for problem in await store.check()}
        done = await store.repair()
        assert {problem.kind for problem in done.left} <= set(STAYS), done.left
    return kinds, done


# ---- one page ------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["zeros", "garbage"])
async def test_any_page_may_be_damaged_and_all_else_is_got_out(tmp_path: Path, how: str) -> None:
    await spoil_pages(tmp_path, how, seed=1, step=15)


@pytest.mark.long
@pytest.mark.parametrize("how", ["zeros", "garbage"])
@pytest.mark.parametrize("seed", range(10))
async def test_every_page_of_many_stores_may_be_damaged(
    tmp_path: Path, how: str, seed: int
) -> None:
    await spoil_pages(tmp_path, how, seed=seed, step=1)


async def spoil_pages(folder: Path, how: str, *, seed: int, step: int) -> None:
    """The first page as well: then SQLite itself does not know the file any more."""
    original, target = folder / f"{seed}.db", folder / "s.db"
    facts = await fill(original, seed)
    whole, pages = contents(original), pages_of(original)
    for number in [*range(1, 10), *range(10 + seed % step, len(pages) + 1, step)]:
        copy(original, target)
        page = bytes(PAGE) if how == "zeros" else random.Random(number).randbytes(PAGE)
        spoil(target, number, page)
        kinds, done = await check_and_repair(target)
        if not kinds:  # it was a page that is not in use: all is as it was
            async with sessiontree.open_store(target) as store:
                assert not differences(await look(store), facts)
            continue
        assert done.backup is not None
        found = await what_is_there(target)
        kept = [at for at, raw in whole.items() if found.get(at) == raw]
        assert len(kept) >= len(whole) - 60, (number, pages[number])  # a page holds so many
        if pages[number] not in ("message", "blob", "?"):
            assert len(kept) == len(whole), (number, pages[number])


async def test_messages_on_a_damaged_page_are_named_and_leave_marks_where_they_stood(
    tmp_path: Path,
) -> None:
    target = tmp_path / "s.db"
    async with sessiontree.open_store(target) as store:
        chat = await store.conversation("t")
        for number in range(100):
            await chat.append({"role": "user", "content": f"{number} " + "x" * 300})
    pages = [number for number, name in pages_of(target).items() if name == "message"]
    if not pages:
        pytest.skip("this SQLite is built without dbstat, which tells the pages of a table")
    before = contents(target)
    spoil(target, pages[5], bytes(PAGE))  # the first is the one that leads to the others
    async with sessiontree.open_store(target) as store:
        problems = await store.check()
        lost = [problem.message_id for problem in problems if problem.kind == "lost_message"]
        assert 5 < len(lost) < 30
        assert lost == list(range(lost[0] or 0, (lost[-1] or 0) + 1))
        chat = await store.conversation("t", create=False)
        with pytest.raises(StoreCorrupt):
            await chat.path()
        done = await store.repair()
        assert done.left == []
        path = await chat.path()  # the same handle goes on
    assert [message.id for message in path] == list(before)
    assert [message.id for message in path if message.role == "mark"] == lost
    assert all(message.raw == before[message.id] for message in path if message.role != "mark")


# ---- the end of the file -------------------------------------------------------------


async def test_a_file_that_ends_too_early_gives_back_what_is_left_of_it(tmp_path: Path) -> None:
    original, target = tmp_path / "original.db", tmp_path / "s.db"
    await fill(original, 2)
    whole, size = contents(original), len(pages_of(original))
    for part in (0.4, 0.7, 0.99):
        copy(original, target)
        os.truncate(target, int(size * part) * PAGE)
        with pytest.raises(StoreCorrupt):
            async with sessiontree.open_store(target):
                pass
        kinds, _ = await check_and_repair(target)
        assert "damaged_file" in kinds
        found = await what_is_there(target)
        kept = [at for at, raw in whole.items() if found.get(at) == raw]
        assert len(kept) > len(whole) * (part - 0.4)


async def test_a_file_with_nothing_in_it_is_left_as_it_is(tmp_path: Path) -> None:
    target = tmp_path / "s.db"
    await fill(target, 3)
    os.truncate(target, 3 * PAGE)  # header and schema
    before = contents_of_file(target)
    async with sessiontree.open_store(target, damaged=True) as store:
        assert {problem.kind for problem in await store.check()} == {"damaged_file"}
        with pytest.raises(StoreCorrupt, match="no message can be found"):
            await store.repair()
    assert contents_of_file(target) == before
    assert not [name for name in os.listdir(tmp_path) if ".salvage-" in name]


def contents_of_file(target: Path) -> bytes:
    return target.read_bytes()


async def test_a_damaged_file_that_another_process_writes_to_is_busy(tmp_path: Path) -> None:
    target = tmp_path / "s.db"
    await fill(target, 4, 100)
    pages = pages_of(target)
    spoil(target, max(number for number, name in pages.items() if name == "move"), bytes(PAGE))
    with closing(sqlite3.connect(target, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        async with sessiontree.open_store(target, busy_timeout=0.1, damaged=True) as store:
            with pytest.raises(StoreBusy):
                await store.repair()
    assert (await check_and_repair(target))[1].left == []


async def test_a_killed_repair_leaves_the_store_as_it_was_or_mended(tmp_path: Path) -> None:
    await kill_repairs(tmp_path, kills=6)


@pytest.mark.long
async def test_many_killed_repairs_leave_the_store_as_it_was_or_mended(tmp_path: Path) -> None:
    await kill_repairs(tmp_path, kills=500)


def kill_after(processes: Forks, target: Path, seconds: float) -> None:
    pid = processes.start({"store": str(target)})
    time.sleep(seconds)
    processes.end(pid, kill=True)


async def kill_repairs(folder: Path, kills: int) -> None:
    """At instants spread over the time that a whole repair takes. A repair of what is left
    gets out the same."""
    original, target = folder / "original.db", folder / "s.db"
    await fill(original, 5, 80)
    leads_to_all = next(n for n, name in pages_of(original).items() if name in ("message", "?"))
    spoil(original, leads_to_all, bytes(PAGE))
    copy(original, target)
    begun = time.monotonic()
    await check_and_repair(target)
    took, whole = time.monotonic() - begun, await what_is_there(target)
    seen: Counter[bool] = Counter()
    with forks("machine.mending") as processes:
        for number in range(kills):
            copy(original, target)
            kill_after(processes, target, took * number / kills)
            kinds, _ = await check_and_repair(target)
            seen[not kinds] += 1
            assert await what_is_there(target) == whole
    assert seen[False] > 0


# ---- text ----------------------------------------------------------------------------


async def test_text_that_is_none_any_more_is_told_and_can_be_read_again(tmp_path: Path) -> None:
    target = tmp_path / "s.db"
    async with sessiontree.open_store(target) as store:
        chat = await store.conversation("t", title="naïve")
        await chat.append({"role": "user", "content": "naïve"})
        await chat.append({"role": "user", "content": "ü" * 5000})
    with closing(sqlite3.connect(target)) as db:
        broken = "CAST(replace(CAST(content AS BLOB), x'c3af', x'ff') AS TEXT)"
        db.execute(f"UPDATE message SET content = {broken} WHERE id = 1")
        db.execute("UPDATE conversation SET title = CAST(x'6eff' AS TEXT)")
        db.execute(
            "UPDATE blob SET content = CAST(replace(content, x'c3bcc3bc', x'c3bcff') AS BLOB)"
        )
        db.commit()
    async with sessiontree.open_store(target) as store:
        kinds = {problem.kind for problem in await store.check()}
        assert "broken_text" in kinds
        done = await store.repair()
        assert done.left == []
        chat = await store.conversation("t", create=False)
        assert chat.title == "n\ufffd"
        first, second = await chat.path()
        assert first.text == "na\ufffdve"
        assert set(second.text) == {"ü", "\ufffd"}


# ---- the reader of pages -------------------------------------------------------------


def test_pages_give_the_rows_that_sqlite_gives(tmp_path: Path) -> None:
    """Integers of every width, floats, texts and blobs of every length around the limits where
    a row flows over to other pages; with rowids and without."""
    target, rng = tmp_path / "any.db", random.Random(1)
    widths = [0, 1, -1, 127, -128, 2**15, -(2**23), 2**31, 2**47 - 1, -(2**47), 2**63 - 1, -(2**63)]
    with closing(sqlite3.connect(target)) as db:
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a, b, c)")
        db.execute("CREATE TABLE w (k INTEGER PRIMARY KEY, a, b, c, d) WITHOUT ROWID")
        for at in range(1, 600):
            length = rng.choice([0, 1, 100, 900, 4050, 4061, 4062, 4080, 8200, 20_000])
            values = (rng.choice(widths), rng.random(), rng.randbytes(length))
            db.execute("INSERT INTO t VALUES (?, ?, ?, ?)", (at * 7, *values))
            db.execute("INSERT INTO w VALUES (?, ?, ?, ?, ?)", (at, None, *values))
        db.commit()
        tables = {row[0]: list(row[1:]) for row in db.execute("SELECT * FROM t")}
        without = [list(row) for row in db.execute("SELECT * FROM w")]
    rows = list(Pages(str(target)).rows())
    assert {row.rowid: row.values[1:] for row in rows if len(row.values) == 4} == tables
    assert (
        sorted(row.values for row in rows if len(row.values) == 5 and row.rowid is None) == without
    )


async def test_what_was_deleted_is_not_got_out_again(tmp_path: Path) -> None:
    target = tmp_path / "s.db"
    async with sessiontree.open_store(target) as store:
        for topic in ("kept", "deleted"):
            chat = await store.conversation(topic)
            await chat.append([{"role": "user", "content": f"{topic} " * 300}] * 40)
        await store.delete(chat.id)
    spoil(target, max(n for n, name in pages_of(target).items() if name == "move"), bytes(PAGE))
    await check_and_repair(target)
    assert not any("deleted" in raw for raw in (await what_is_there(target)).values())


def test_garbage_has_no_rows_and_breaks_nothing(tmp_path: Path) -> None:
    for seed in range(200):
        rng = random.Random(seed)
        page = bytearray(rng.randbytes(PAGE))
        page[0] = rng.choice([2, 10, 13])
        file = tmp_path / "garbage"
        file.write_bytes(rng.choice([b"", bytes(PAGE)]) + bytes(page) + rng.randbytes(seed))
        for row in Pages(str(file)).rows():
            assert len(row.values) < PAGE
