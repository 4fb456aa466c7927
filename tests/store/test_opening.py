"""Opening a store: what the path may be, what the file may be, and what becomes of it."""

# ruff: noqa: ASYNC240 - tests may block
from __future__ import annotations

import asyncio
import hashlib
import os
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from talk import assistant, result, step, user

import sessiontree
from sessiontree import SessionTreeError
from sessiontree.store.migrations import APPLICATION_ID, VERSION

BAD_TARGETS: list[Any] = [None, 5, True, b"sessions.db", [], ..., "", "a\0b", "\ud800.db"]


async def open_and_close(target: Any, **how: Any) -> None:
    async with sessiontree.open_store(target, **how) as store:
        await store.check()


async def open_and_look(file: Path) -> None:
    """StoreCorrupt also where only check finds the damage."""
    async with sessiontree.open_store(file) as store:
        problems = await store.check()
        if problems:
            raise sessiontree.StoreCorrupt(problems[0].detail)


async def filled(file: Path, turns: int = 3) -> None:
    async with sessiontree.open_store(file) as store:
        chat = await store.conversation("chat", system="be brief")
        for number in range(turns):
            await chat.append([user(f"q{number}"), *step(), assistant("x" * 5_000 + str(number))])


async def refused(kind: type[SessionTreeError], target: Any, **how: Any) -> SessionTreeError:
    """It is refused, by a clear error, and no thread stays behind."""
    threads = threading.active_count()
    with pytest.raises(kind) as caught:
        await open_and_close(target, **how)
    assert type(caught.value) is kind
    assert caught.value.what
    assert caught.value.hint
    await no_more_threads_than(threads)
    return caught.value


async def no_more_threads_than(count: int) -> None:
    async with asyncio.timeout(20):
        while threading.active_count() > count:  # noqa: ASYNC110
            await asyncio.sleep(0.002)


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


# ---- paths ---------------------------------------------------------------------------


@pytest.mark.parametrize("target", BAD_TARGETS, ids=repr)
async def test_what_is_no_path_is_refused_and_no_file_is_made(
    target: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    await refused(sessiontree.BadArgument, target)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "how",
    [
        {"durability": "some"},
        {"durability": None},
        {"durability": ["full"]},
        {"busy_timeout": "x"},
        {"busy_timeout": None},
        {"busy_timeout": True},
        {"busy_timeout": -0.1},
        {"busy_timeout": float("nan")},
    ],
    ids=str,
)
async def test_options_that_make_no_sense_are_refused(file: Path, how: dict[str, Any]) -> None:
    await refused(sessiontree.BadArgument, file, **how)
    assert not file.exists()


@pytest.mark.parametrize("patience", [0, 1e300, float("inf"), 10**400])
async def test_any_time_from_0_may_be_waited(file: Path, patience: float) -> None:
    await open_and_close(file, busy_timeout=patience)


async def test_a_folder_that_is_missing_or_is_the_file_itself(tmp_path: Path) -> None:
    await refused(sessiontree.StoreUnavailable, tmp_path / "no" / "a.db")
    await refused(sessiontree.NotAStore, tmp_path)
    (tmp_path / "text").write_text("x")
    await refused(sessiontree.StoreUnavailable, tmp_path / "text" / "a.db")
    await refused(sessiontree.StoreUnavailable, tmp_path / ("n" * 300))
    assert os.listdir(tmp_path) == ["text"]


async def test_a_server_is_for_later(tmp_path: Path) -> None:
    await refused(sessiontree.StoreUnavailable, "postgresql://localhost/sessions")


@pytest.mark.parametrize(
    "name",
    ["a b.db", "a%41?x=1&mode=ro#frag.db", "ünï 🙂.db", "a'b\"c;.db", "a\\b.db", "\udc80\udcff.db"],
)
async def test_a_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    await filled(tmp_path / name)
    assert os.listdir(tmp_path) == [name]
    async with sessiontree.open_store(str(tmp_path / name), read_only=True) as store:
        assert len([info async for info in store.conversations()]) == 1


async def test_a_url_names_a_file_as_a_path_does(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(file)
    monkeypatch.chdir(file.parent)
    for target in (f"sqlite:///{file}", "sqlite:///sessions.db", "sessions.db", file):
        async with sessiontree.open_store(target) as store:
            assert await store.conversation("chat", create=False)


async def test_a_relative_path_stays_where_it_was_when_the_process_goes_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers are opened later than the writer."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    async with sessiontree.open_store("sessions.db") as store:
        monkeypatch.chdir(tmp_path / "elsewhere")
        chat = await store.conversation("chat")
        await chat.append(user())
        assert len(await chat.path()) == 1
    assert os.listdir(tmp_path / "elsewhere") == []


async def test_memory_is_a_store_of_its_own_each_time() -> None:
    for target in (":memory:", "sqlite:///:memory:"):
        async with sessiontree.open_store(target) as store:
            assert [info async for info in store.conversations()] == []
            chat = await store.conversation("chat")
            await asyncio.gather(chat.append([user(), *step()]), chat.path(), store.check())
            assert len(await chat.path()) == 3
            assert await store.check() == []


# ---- files of another kind -----------------------------------------------------------


async def test_an_empty_file_becomes_a_store(file: Path) -> None:
    file.touch()
    await refused(sessiontree.StoreReadOnly, file, read_only=True)
    assert file.read_bytes() == b""
    await filled(file)


@pytest.mark.parametrize(
    "content",
    [b"xy", b"hello world\n" * 500, b"SQLite format 3\0" + b"\xff" * 4_000, b"\0" * 8_192],
    ids=["two bytes", "text", "a header and nothing after it", "zeros"],
)
async def test_a_file_that_is_no_database_is_refused_and_left_alone(
    file: Path, content: bytes
) -> None:
    file.write_bytes(content)
    with pytest.raises((sessiontree.NotAStore, sessiontree.StoreCorrupt)) as caught:
        await open_and_close(file)
    assert str(file) in str(caught.value)
    assert caught.value.hint
    assert file.read_bytes() == content
    assert os.listdir(file.parent) == [file.name]


async def test_the_database_of_another_program_is_refused_and_left_alone(file: Path) -> None:
    for statement in (
        "CREATE TABLE message (id)",
        "PRAGMA user_version = 1",
        "PRAGMA application_id = 7",
    ):
        file.unlink(missing_ok=True)
        with sqlite3.connect(file) as db:
            db.execute(statement)
        db.close()
        before = digest(file)
        for read_only in (False, True):
            error = await refused(sessiontree.NotAStore, file, read_only=read_only)
            assert "another program" in str(error)
        assert digest(file) == before


async def test_a_store_of_a_newer_version_is_refused_and_left_alone(file: Path) -> None:
    await filled(file)
    with sqlite3.connect(file) as db:
        db.execute(f"PRAGMA user_version = {VERSION + 1}")
    db.close()
    before = digest(file)
    for read_only in (False, True):
        error = await refused(sessiontree.StoreTooNew, file, read_only=read_only)
        assert f"version {VERSION + 1}, this sessiontree knows {VERSION}" in str(error)
        assert "upgrade" in error.hint
    assert digest(file) == before


async def test_a_store_whose_making_was_cut_off_is_made_again(file: Path) -> None:
    """All of it is one transaction; here its file is there, and nothing in it."""
    with sqlite3.connect(file) as db:
        db.execute("PRAGMA journal_mode = WAL")
    db.close()
    await filled(file)
    with sqlite3.connect(file) as db:
        assert db.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    db.close()


# ---- damaged files -------------------------------------------------------------------


async def test_a_damaged_header_is_no_store_or_a_damaged_one(file: Path) -> None:
    await filled(file)
    whole = file.read_bytes()
    for at, length in ((0, 16), (16, 2), (18, 2), (20, 80), (0, 100)):
        file.write_bytes(whole[:at] + b"\xff" * length + whole[at + length :])
        with pytest.raises(sessiontree.StoreError) as caught:
            await open_and_close(file)
        assert caught.value.hint, (at, str(caught.value))
    file.write_bytes(whole[:5_000])
    with pytest.raises(sessiontree.StoreCorrupt):
        await open_and_look(file)


async def everything(store: sessiontree.Store) -> None:
    """Whatever a program may ask of a store."""
    async for info in store.conversations():
        chat = await store.open(info.id)
        for message in await chat.path():
            assert message.native
            assert message.parts is not None
        await chat.tree()
        await chat.leaves()
        await chat.history()
        await chat.checkpoints()
        await chat.resume()
        await chat.append([user("and on"), *step()])
        await chat.undo()
        await chat.fork()
        await chat.rename("x")
        await chat.checkpoint("here")
        await store.delete(chat.id)


@pytest.mark.parametrize("fill", [b"\0", b"\xff", b"\x0a"], ids=["zeros", "ones", "lines"])
async def test_a_damaged_page_anywhere_is_told_as_damage_and_by_no_other_error(
    file: Path, fill: bytes
) -> None:
    await filled(file, turns=30)
    whole = file.read_bytes()
    pages = len(whole) // 4_096
    found = 0
    for page in range(1, pages):
        start = page * 4_096
        file.write_bytes(whole[: start + 40] + fill * 3_000 + whole[start + 3_040 :])
        try:
            async with sessiontree.open_store(file, durability="normal") as store:
                problems = await store.check()
                assert all(problem.detail for problem in problems)
                found += bool(problems)
                await everything(store)
        except SessionTreeError:
            found += 1
        for log in ("-wal", "-shm"):
            Path(f"{file}{log}").unlink(missing_ok=True)
    assert found >= pages // 2


async def test_content_that_is_damaged_inside_a_sound_page_is_told(file: Path) -> None:
    await filled(file)
    with sqlite3.connect(file) as db:
        db.execute('UPDATE message SET content = \'{"role": "us\' WHERE id = 2')
        db.execute("UPDATE message SET content = CAST(x'ff7b7d' AS TEXT) WHERE id = 3")
        db.execute("UPDATE blob SET content = x'7b7d' WHERE id = 1")
    db.close()
    async with sessiontree.open_store(file) as store:
        chat = await store.open(1)
        second = await chat.message(2)
        with pytest.raises(sessiontree.StoreCorrupt, match="message 2"):
            second.native  # noqa: B018
        with pytest.raises(sessiontree.StoreCorrupt):
            second.parts  # noqa: B018
        with pytest.raises(sessiontree.StoreCorrupt):
            await chat.message(3)
        with pytest.raises(sessiontree.StoreCorrupt):
            await chat.path()


async def test_check_names_what_is_wrong_with_the_tree(file: Path) -> None:
    """Each kind of damage that SQL can do to a sound file."""
    cases = {
        "bad_head": "UPDATE conversation SET head_id = 999",
        "wrong_depth": "UPDATE message SET depth = depth + 1 WHERE id > 4",
        "wrong_open_calls": "UPDATE message SET open_calls = 5 WHERE id = 3",
        "wrong_system": "UPDATE message SET system_id = NULL WHERE id = 4",
        "missing_parent": "UPDATE message SET parent_id = 4000 WHERE id = 5",
        "cycle": "UPDATE message SET parent_id = 7 WHERE id = 5",
        "missing_blob": "UPDATE message SET content = NULL, blob_id = 99 WHERE id = 2",
        "changed_blob": "UPDATE blob SET content = x'7b7d' WHERE id = 1",
        "no_conversation": "DELETE FROM conversation",
        "unreadable_content": "UPDATE message SET content = '{' WHERE id = 2",
        "orphan_result": 'UPDATE message SET content = \'{"role":"user","content":""}\' '
        "WHERE id = 3",
        "bad_checkpoint": "UPDATE checkpoint SET message_id = 3",
    }
    await filled(file)
    async with sessiontree.open_store(file) as store:
        await (await store.open(1)).checkpoint("here")
    whole = file.read_bytes()
    for kind, damage in cases.items():
        file.write_bytes(whole)
        with sqlite3.connect(file) as db:
            db.execute("PRAGMA ignore_check_constraints = ON")
            db.execute(damage)
        db.close()
        async with sessiontree.open_store(file) as store:
            problems = await store.check()
        assert kind in {problem.kind for problem in problems}, (kind, problems)
        assert all(problem.detail for problem in problems)


async def test_a_move_that_is_missing_is_damage(file: Path) -> None:
    await filled(file)
    with sqlite3.connect(file) as db:
        db.execute("DELETE FROM move")
    db.close()
    async with sessiontree.open_store(file) as store:
        chat = await store.open(1)
        with pytest.raises(sessiontree.StoreCorrupt):
            await chat.undo()
        await chat.append(user())
        await chat.undo()


async def test_a_walk_over_a_circle_ends(file: Path) -> None:
    await filled(file)
    with sqlite3.connect(file) as db:
        db.execute("PRAGMA ignore_check_constraints = ON")
        db.execute("UPDATE message SET parent_id = 9 WHERE id = 3")
    db.close()
    async with sessiontree.open_store(file) as store:
        chat = await store.open(1)
        for work in (chat.path(), chat.fork(), chat.tree(), chat.resume()):
            with pytest.raises(sessiontree.StoreCorrupt):
                await work
        with pytest.raises(sessiontree.StoreCorrupt):
            async for _ in chat.iter_path():
                pass


# ---- read only -----------------------------------------------------------------------


async def test_a_read_only_store_reads_everything_and_writes_nothing(file: Path) -> None:
    await refused(sessiontree.StoreUnavailable, file, read_only=True)
    assert not file.exists()
    await filled(file)
    before = digest(file)
    async with sessiontree.open_store(file, read_only=True) as store:
        chat = await store.conversation("chat", create=False)
        assert await store.conversation("chat", system="be brief")
        path = await chat.path()
        assert await store.check() == []
        assert (await chat.resume()).path == path
        await asyncio.gather(chat.tree(), chat.leaves(), chat.history(), chat.checkpoints())
        turn = chat.turn()
        async with turn:
            for work in (
                chat.append(user()), chat.branch(None), chat.undo(), chat.redo(), chat.retry(),
                chat.fork(), chat.checkpoint("x"), chat.rewind("x"), chat.rename("x"),
                chat.edit(path[1].id, user()), store.delete(chat.id), store.conversation("new"),
                store.conversation(), store.conversation("chat", system="be long"),
                turn.add(user()), turn.checkpoint("x"), chat.graft([]),
            ):  # fmt: skip
                with pytest.raises(sessiontree.StoreReadOnly) as caught:
                    await work
                assert caught.value.hint
        assert chat.head == path[-1].id
    assert digest(file) == before


async def test_a_read_only_store_sees_what_a_writer_saves_meanwhile(file: Path) -> None:
    await filled(file)
    async with (
        sessiontree.open_store(file) as writer,
        sessiontree.open_store(file, read_only=True) as reader,
    ):
        chat = await writer.conversation("chat")
        (last,) = await chat.append(user("new"))
        assert (await reader.open(chat.id)).head == last.id


async def test_files_and_folders_that_may_not_be_written(as_anybody: Path) -> None:
    file = as_anybody / "sessions.db"
    await filled(file)
    file.chmod(0o444)
    as_anybody.chmod(0o555)
    try:
        error = await refused(sessiontree.StoreReadOnly, as_anybody / "new.db")
        assert str(as_anybody) in str(error)
        async with sessiontree.open_store(file, read_only=True) as store:
            assert len(await (await store.open(1)).path()) == 13
        await refused(sessiontree.StoreReadOnly, file)
    finally:
        as_anybody.chmod(0o777)
    file.chmod(0o000)
    with pytest.raises(sessiontree.StoreError) as caught:
        await open_and_close(file)
    assert caught.value.hint


# ---- what opening leaves behind ------------------------------------------------------


async def test_a_closed_store_is_one_file_and_no_thread(file: Path) -> None:
    threads = threading.active_count()
    await filled(file)
    assert os.listdir(file.parent) == ["sessions.db"]
    await no_more_threads_than(threads)


async def test_a_store_may_be_open_many_times_in_one_process(file: Path) -> None:
    async with sessiontree.open_store(file) as one, sessiontree.open_store(file) as two:
        first, second = await one.conversation("chat"), await two.conversation("chat")
        await first.append(user("one"))
        with pytest.raises(sessiontree.HeadMoved):
            await second.append(user("two"))
        assert len(await first.leaves()) == 2


@pytest.mark.parametrize(("durability", "level"), [("full", 2), ("normal", 1)])
async def test_durability_is_what_was_asked_for(file: Path, durability: Any, level: int) -> None:
    async with sessiontree.open_store(file, durability=durability) as store:
        writer = store._backend._writer_connection
        assert writer is not None

        def pragmas(db: sqlite3.Connection) -> list[Any]:
            names = ("synchronous", "journal_mode", "foreign_keys")
            return [db.execute(f"PRAGMA {name}").fetchone()[0] for name in names]

        assert await writer.run(pragmas) == [level, "wal", 1]


async def test_results_that_reach_no_call_are_refused_by_the_store_too(file: Path) -> None:
    """Whoever calls the unit of work itself with counts that cannot be."""
    from sessiontree import Graft
    from sessiontree.formats import read

    async with sessiontree.open_store(file) as store:
        chat = await store.conversation("chat")
        bad = read(result("nope"))
        bad.open_calls = -1
        with pytest.raises(sessiontree.TreeError, match="no_orphan_result"):
            await chat.graft([Graft(bad, None)])
        assert len(await chat.tree()) == 0
