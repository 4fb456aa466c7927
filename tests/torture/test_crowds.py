"""Hundreds that write at once: what they share, a transaction, must be nobody's undoing."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from machine.crowding import turn_of
from machine.faults import full, locked_by_another, small_disk
from machine.forks import Fact, Forks, forks
from machine.words import name_of

import sessiontree
from sessiontree import (
    Conversation,
    HeadMoved,
    Message,
    Store,
    StoreBusy,
    StoreClosed,
    StoreFull,
)
from sessiontree.store.writer import BATCH, Writer

PATIENCE = 60
"""Seconds after which a test says that something hangs; no test waits for it when all is well."""


def said(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


async def chats_of(store: Store, count: int) -> list[Conversation]:
    return await asyncio.gather(*(store.conversation(str(number)) for number in range(count)))


async def outcomes(tasks: list[asyncio.Task[Any]]) -> list[BaseException | None]:
    """What became of each: an error, or None; fails where one of them hangs."""
    _, waiting = await asyncio.wait(tasks, timeout=PATIENCE)
    assert not waiting, f"{len(waiting)} of {len(tasks)} hang"
    return [asyncio.CancelledError() if t.cancelled() else t.exception() for t in tasks]


def begin(chats: list[Conversation], text: str) -> list[asyncio.Task[Any]]:
    return [asyncio.ensure_future(chat.append(said(text))) for chat in chats]


async def words(target: Path) -> dict[str, list[str]]:
    """What the conversations of a sound store say, by topic."""
    async with sessiontree.open_store(target) as store:
        assert await store.check() == []
        chats = [await store.open(info.id) async for info in store.conversations()]
        return {chat.topic or "": [m.text for m in await chat.path()] for chat in chats}


# ---- one of them fails ---------------------------------------------------------------

ERRORS: list[Callable[[], BaseException]] = [
    lambda: sessiontree.TreeError("no"),
    lambda: ValueError("no"),
    lambda: RecursionError("no"),
    lambda: StopIteration("no"),
    lambda: GeneratorExit("no"),
    lambda: asyncio.CancelledError("no"),
    lambda: sqlite3.OperationalError("no"),
]


async def test_one_unit_among_300_fails_alone_whatever_it_raises(tmp_path: Path) -> None:
    def fails(db: sqlite3.Connection, error: BaseException) -> None:
        db.execute("UPDATE conversation SET title = 'half done'")
        raise error

    async with sessiontree.open_store(tmp_path / "s.db") as store:
        chats = await chats_of(store, 300)
        for make in ERRORS:
            tasks = begin(chats[:200], "more")
            bad = asyncio.ensure_future(store._backend.write(fails, make()))
            tasks += begin(chats[200:], "more")
            assert await outcomes(tasks) == [None] * 300
            assert (await outcomes([bad]))[0] is not None
        infos = [info async for info in store.conversations()]
        assert [info.title for info in infos] == [None] * 300
    assert await words(tmp_path / "s.db") == {str(n): ["more"] * len(ERRORS) for n in range(300)}


async def test_one_whose_result_nobody_can_take_holds_up_no_other(tmp_path: Path) -> None:
    """What is done with a result on the event loop may fail as well."""

    def then(_: None) -> None:
        raise MemoryError("no")

    async with sessiontree.open_store(tmp_path / "s.db") as store:
        chats = await chats_of(store, 40)
        tasks = begin(chats[:20], "one")
        bad = asyncio.ensure_future(store._backend.write_then(then, lambda db: None))
        tasks += begin(chats[20:], "one")
        assert await outcomes(tasks) == [None] * 40
        assert isinstance((await outcomes([bad]))[0], MemoryError)


@pytest.mark.parametrize("step", ["_begin", "_take", "_commit", "_commit_on_thread", "_gives_way"])
async def test_where_the_writer_itself_fails_all_are_told_and_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    works, failed = getattr(Writer, step), list[bool]()

    def fails_once(*args: Any) -> Any:
        if not failed:
            failed.append(True)
            raise MemoryError("no")
        return works(*args)

    async with sessiontree.open_store(tmp_path / "s.db") as store:
        chats = await chats_of(store, 100)
        monkeypatch.setattr(Writer, step, fails_once)
        told = await outcomes(begin(chats, "one"))
        assert failed
        assert {type(error) for error in told} <= {MemoryError, type(None)}
        assert await outcomes(begin(chats, "two")) == [None] * 100
    saved = await words(tmp_path / "s.db")
    for number, error in enumerate(told):
        assert saved[str(number)] == ["two"] if error else ["one", "two"]


async def test_a_writer_that_fails_when_it_has_just_begun_leaves_no_transaction_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begins, failed = Writer._begin_at_once, list[bool]()

    def begins_and_fails_once(*args: Any) -> Any:
        busy = begins(*args)
        if not failed:
            failed.append(True)
            raise MemoryError("no")
        return busy

    async with sessiontree.open_store(tmp_path / "s.db") as store:
        chats = await chats_of(store, 20)
        monkeypatch.setattr(Writer, "_begin_at_once", begins_and_fails_once)
        told = await outcomes(begin(chats, "one"))
        assert MemoryError in map(type, told)
        assert await outcomes(begin(chats, "two")) == [None] * 20
    saved = await words(tmp_path / "s.db")
    for number, error in enumerate(told):
        assert saved[str(number)] == ["two"] if error else ["one", "two"]


async def test_a_group_whose_callers_were_all_cancelled_leaves_the_writer_at_work(
    tmp_path: Path,
) -> None:
    """It has begun when they are dropped, and finds nobody."""
    target = tmp_path / "s.db"
    async with sessiontree.open_store(target) as store:
        chats = await chats_of(store, 20)
        for _ in range(5):
            with locked_by_another(target):
                tasks = begin(chats, "dropped")
                await asyncio.sleep(0.02)
                for task in tasks:
                    task.cancel()
                assert all(isinstance(e, asyncio.CancelledError) for e in await outcomes(tasks))
        assert await outcomes(begin(chats, "saved")) == [None] * 20
    assert await words(target) == {str(n): ["saved"] for n in range(20)}


async def test_what_is_durable_is_told_though_one_of_the_next_fails_while_the_store_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The group begins again, and another process may have come between."""
    target, held = tmp_path / "s.db", threading.Event()
    together, apart = Writer._run_together, Writer._run_apart
    with contextlib.closing(
        sqlite3.connect(target, isolation_level=None, check_same_thread=False)
    ) as other:

        def fail_after_the_first(self: Writer, db: Any, jobs: Any, ended: Any) -> bool:
            return together(self, db, jobs, ended) if not ended.jobs else False

        def after_another(self: Writer, db: sqlite3.Connection, *rest: Any) -> None:
            db.execute("ROLLBACK")
            other.execute("BEGIN IMMEDIATE")
            held.set()
            monkeypatch.undo()
            apart(self, db, *rest)

        async with sessiontree.open_store(target) as store:
            chats = await chats_of(store, 40)
            monkeypatch.setattr(Writer, "_run_together", fail_after_the_first)
            monkeypatch.setattr(Writer, "_run_apart", after_another)
            tasks = begin(chats, "one")
            done, _ = await asyncio.wait(
                tasks, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED
            )
            assert done
            assert await asyncio.to_thread(held.wait, PATIENCE)  # told first, held a moment later
            other.execute("ROLLBACK")
            assert await outcomes(tasks) == [None] * 40
    assert await words(target) == {str(n): ["one"] for n in range(40)}


# ---- some of them go -----------------------------------------------------------------


async def test_a_crowd_of_which_many_are_cancelled_at_any_time_knows_what_was_saved(
    tmp_path: Path,
) -> None:
    await cancel_some(tmp_path / "s.db", seed=1, rounds=6)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
async def test_crowds_of_which_many_are_cancelled_at_any_time_know_what_was_saved(
    tmp_path: Path, seed: int
) -> None:
    await cancel_some(tmp_path / "s.db", seed=100 + seed, rounds=400)


async def cancel_some(target: Path, *, seed: int, rounds: int) -> None:
    rng = random.Random(seed)
    count = 300
    expected: dict[str, list[str]] = {str(number): [] for number in range(count)}
    seen = {"saved": 0, "cancelled": 0, "cancelled and saved": 0}
    async with sessiontree.open_store(target, durability="normal") as store:
        chats = await chats_of(store, count)
        for turn in range(rounds):
            before = [chat.head for chat in chats]
            tasks = begin(chats, str(turn))
            for task in rng.sample(tasks, 150):
                if rng.random() < 0.2:
                    await asyncio.sleep(rng.choice([0, 0, 0.0005]))
                task.cancel()
            for error, chat, was in zip(await outcomes(tasks), chats, before, strict=True):
                fate = "saved" if error is None else "cancelled"
                assert error is None or isinstance(error, asyncio.CancelledError)
                if chat.head != was:  # this handle says that it was saved
                    expected[chat.topic or ""].append(str(turn))
                    fate += "" if error is None else " and saved"
                seen[fate] += 1
    assert await words(target) == expected
    assert min(seen.values()) > 0, seen


# ---- the store is closed, or the loop ------------------------------------------------


@pytest.mark.parametrize("turns", [0, 3, 30])
async def test_a_store_that_is_closed_while_a_crowd_waits_saves_or_refuses_each(
    tmp_path: Path, turns: int
) -> None:
    saved: dict[str, list[str]] = {}

    async def go_on(chat: Conversation) -> None:
        number = 0
        while True:
            await chat.append(said(str(number)))
            saved[chat.topic or ""].append(str(number))
            number += 1

    async with sessiontree.open_store(tmp_path / "s.db") as store:
        chats = await chats_of(store, 300)
        saved = {chat.topic or "": [] for chat in chats}
        tasks = [asyncio.ensure_future(go_on(chat)) for chat in chats]
        for _ in range(turns):
            await asyncio.sleep(0.001)
    assert {type(error) for error in await outcomes(tasks)} == {StoreClosed}
    assert await words(tmp_path / "s.db") == saved


def test_a_loop_that_is_closed_while_a_group_commits_leaves_a_store_that_another_can_use(
    tmp_path: Path,
) -> None:
    """Nobody hears then that it was saved; what waited is saved all the same."""
    opened = sessiontree.open_store(tmp_path / "s.db")
    committing, go_on = threading.Event(), threading.Event()
    tasks: list[asyncio.Task[Any]] = []

    def slow(db: sqlite3.Connection) -> None:
        committing.set()
        assert go_on.wait(PATIENCE)

    async def in_the_first() -> list[Conversation]:
        store = await opened.__aenter__()
        chats = await chats_of(store, 40)
        tasks.append(asyncio.ensure_future(store._backend.write(slow)))
        tasks.extend(begin(chats, "one"))
        while not committing.is_set():  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        return chats

    async def in_the_second(chats: list[Conversation]) -> None:
        await chats[0]._anchor.backend.write(lambda db: None)  # after all that waited
        assert await outcomes([asyncio.ensure_future(chat.refresh()) for chat in chats])
        assert await outcomes(begin(chats, "two")) == [None] * 40
        await opened.__aexit__(None, None, None)

    first = asyncio.new_event_loop()
    chats = first.run_until_complete(in_the_first())
    for task in tasks:
        task._log_destroy_pending = False  # pyright: ignore
    first.close()
    go_on.set()
    asyncio.run(asyncio.wait_for(in_the_second(chats), PATIENCE))
    assert asyncio.run(words(tmp_path / "s.db")) == {str(n): ["one", "two"] for n in range(40)}


async def test_threads_with_loops_of_their_own_are_each_told_by_their_own(tmp_path: Path) -> None:
    """Whoever it was that woke the writer."""
    threads, times = 4, 50
    failed: list[BaseException] = []

    async def crowd(chats: list[Conversation]) -> None:
        for turn in range(times):
            assert await outcomes(begin(chats, str(turn))) == [None] * len(chats)

    def run(chats: list[Conversation]) -> None:
        try:
            asyncio.run(crowd(chats))
        except BaseException as error:
            failed.append(error)

    async with sessiontree.open_store(tmp_path / "s.db", durability="normal") as store:
        chats = await chats_of(store, 20 * threads)
        shares = [chats[start::threads] for start in range(threads)]
        running = [asyncio.to_thread(run, share) for share in shares[1:]]
        await asyncio.gather(crowd(shares[0]), *running)
    assert failed == []
    turns = [str(turn) for turn in range(times)]
    assert await words(tmp_path / "s.db") == {str(n): turns for n in range(20 * threads)}


async def test_a_writer_that_comes_too_late_is_refused_and_does_not_hang(tmp_path: Path) -> None:
    async with sessiontree.open_store(tmp_path / "s.db") as store:
        chats = await chats_of(store, 1)
        writer = store._backend._writer
    assert writer is not None
    late = asyncio.ensure_future(writer.run(lambda db: None, (), None))
    assert isinstance((await outcomes([late, *begin(chats, "late")]))[0], StoreClosed)


# ---- many, and much ------------------------------------------------------------------


async def test_10_000_appends_at_once_are_all_saved(tmp_path: Path) -> None:
    """A hundred handles, each asked for a hundred at once: a row, and branches beside it."""
    async with sessiontree.open_store(tmp_path / "s.db") as store:
        chats = await chats_of(store, 100)
        tasks = [task for turn in range(100) for task in begin(chats, str(turn))]
        errors = await outcomes(tasks)
        assert errors[:100] == [None] * 100
        assert {type(error) for error in errors[100:]} == {HeadMoved}
        assert [len(await chat.leaves()) for chat in chats] == [100] * 100
        assert await store.check() == []
        found = [[m.text async for m in chat.iter_messages()] for chat in chats]
    assert found == [[str(turn) for turn in range(100)]] * 100


async def test_huge_messages_in_a_crowd_come_back_to_the_byte(tmp_path: Path) -> None:
    """One of them is as large as all others together."""
    sizes = [20_000_000 if number == 20 else 200_000 for number in range(100)]
    texts = [random.Random(n).randbytes(size // 2).hex() for n, size in enumerate(sizes)]
    async with sessiontree.open_store(tmp_path / "s.db") as store:
        chats = await chats_of(store, 100)
        tasks = [
            asyncio.ensure_future(chat.append([said("small"), said(text)]))
            for chat, text in zip(chats, texts, strict=True)
        ]
        assert await outcomes(tasks) == [None] * 100
    found = await words(tmp_path / "s.db")
    assert all(found[str(number)] == ["small", text] for number, text in enumerate(texts))


async def test_a_reader_of_a_store_in_memory_comes_between_writers_that_never_rest() -> None:
    """It has but one connection. Here each unit waits until another waits behind it."""
    loop, turns = asyncio.get_running_loop(), 0
    tasks: list[asyncio.Task[Any]] = []

    async with sessiontree.open_store(":memory:") as store:
        (chat,) = await chats_of(store, 1)

        def ask(asked: threading.Event) -> None:
            tasks.append(asyncio.ensure_future(store._backend.write(never_rests)))
            loop.call_soon(asked.set)

        def never_rests(db: sqlite3.Connection) -> None:
            nonlocal turns
            turns += 1
            if turns < 1_000:
                asked = threading.Event()
                loop.call_soon_threadsafe(ask, asked)
                assert asked.wait(PATIENCE)

        ask(threading.Event())
        await asyncio.sleep(0)
        await chat.path()
        assert turns < 1_000
        turns = 1_000
    assert {type(error) for error in await outcomes(tasks)} <= {type(None), StoreClosed}


# ---- the machine ---------------------------------------------------------------------


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", "24m") as folder:
        yield folder


async def test_a_disk_that_fills_in_the_middle_of_a_crowd_costs_only_what_was_refused(
    disk: Path,
) -> None:
    expected: dict[str, list[str]] = {}

    async def go_on(chat: Conversation) -> None:
        for number in range(1_000):
            await chat.append(said(f"{number} " + "x" * 3_000))
            expected[chat.topic or ""].append(str(number))

    async with sessiontree.open_store(disk / "s.db") as store:
        chats = await chats_of(store, 200)
        expected |= {chat.topic or "": [] for chat in chats}
        tasks = [asyncio.ensure_future(go_on(chat)) for chat in chats]
        assert {type(error) for error in await outcomes(tasks)} == {StoreFull}
        with full(disk):
            errors = await outcomes(begin(chats, "no"))
            assert {type(error) for error in errors} <= {StoreFull, type(None)}
            for chat, error in zip(chats, errors, strict=True):
                expected[chat.topic or ""] += ["no"] if error is None else []
        assert sum(map(len, expected.values())) > 200
        found = {chat.topic: [m.text.split()[0] for m in await chat.path()] for chat in chats}
        assert found == expected
    found = {
        topic: [t.split()[0] for t in texts]
        for topic, texts in (await words(disk / "s.db")).items()
    }
    assert found == expected


async def test_a_crowd_that_another_process_keeps_out_is_refused_together_and_not_by_shares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the last of 10,000 would wait forty times for as long as the first."""
    target, waits = tmp_path / "s.db", 0
    all_wait = threading.Event()
    begin_waiting = Writer._begin

    def counted(self: Writer, ended: Any) -> BaseException | None:
        nonlocal waits
        waits += 1
        assert all_wait.wait(PATIENCE)
        return begin_waiting(self, ended)

    async with sessiontree.open_store(target, busy_timeout=0.2) as store:
        chats = await chats_of(store, 3 * BATCH)
        monkeypatch.setattr(Writer, "_begin", counted)
        with locked_by_another(target):
            tasks = begin(chats, "no")
            await asyncio.sleep(0)
            all_wait.set()
            assert {type(error) for error in await outcomes(tasks)} == {StoreBusy}
            assert waits == 2  # the first had begun to wait when the others came
        assert await outcomes(begin(chats, "yes")) == [None] * len(chats)
    assert await words(target) == {str(n): ["yes"] for n in range(3 * BATCH)}


async def test_a_writer_that_is_kept_out_looks_often_for_its_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two groups of another process the store is free for a part of a millisecond."""
    target, tries = tmp_path / "s.db", 0
    at_once = Writer._begin_at_once
    with contextlib.closing(
        sqlite3.connect(target, isolation_level=None, check_same_thread=False)
    ) as other:

        def counted(self: Writer, db: sqlite3.Connection) -> sqlite3.OperationalError | None:
            nonlocal tries
            tries += 1
            if tries == 100:
                other.execute("ROLLBACK")
            return at_once(self, db)

        async with sessiontree.open_store(target) as store:
            chats = await chats_of(store, 1)
            other.execute("BEGIN IMMEDIATE")
            monkeypatch.setattr(Writer, "_begin_at_once", counted)
            async with asyncio.timeout(PATIENCE):
                await chats[0].append(said("my turn"))
            assert tries == 100


async def test_a_store_that_is_closed_while_another_process_keeps_a_crowd_out_refuses_all_of_it(
    tmp_path: Path,
) -> None:
    target = tmp_path / "s.db"
    async with sessiontree.open_store(target, busy_timeout=0.2) as store:
        chats = await chats_of(store, 300)
        lock = locked_by_another(target)
        lock.__enter__()
        tasks = begin(chats, "no")
        await asyncio.sleep(0)
    lock.__exit__(None, None, None)  # only now: it was held while the store was closed
    assert {type(error) for error in await outcomes(tasks)} <= {StoreBusy, StoreClosed}
    assert await words(target) == {str(n): [] for n in range(300)}


# ---- kill -9 -------------------------------------------------------------------------


@pytest.fixture
def victims() -> Iterator[Forks]:
    with forks("machine.crowding") as found:
        yield found


async def test_a_crowd_that_is_killed_loses_nothing_acknowledged(
    tmp_path: Path, victims: Forks
) -> None:
    await kill_crowds(tmp_path, victims, kills=12, tasks=64, seed=1)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
async def test_crowds_that_are_killed_lose_nothing_acknowledged(
    tmp_path: Path, victims: Forks, seed: int
) -> None:
    await kill_crowds(
        tmp_path, victims, kills=(500, 100)[seed], tasks=(64, 300)[seed], seed=10 + seed
    )


async def kill_crowds(folder: Path, victims: Forks, *, kills: int, tasks: int, seed: int) -> None:
    rng = random.Random(seed)
    for number in range(kills):
        target = folder / f"{number // 4}.db"
        job = {"store": str(target), "tasks": tasks}
        await assert_nothing_is_lost(target, kill_one(victims, job, rng))


def kill_one(victims: Forks, job: Fact, rng: random.Random) -> list[Fact]:
    """Let a crowd work, kill it at some instant; what it said until then."""
    pid = victims.start(job)
    said = [victims.hear() for _ in range(rng.randint(1, 5 * job["tasks"]))]
    time.sleep(rng.random() * 0.01)
    return said + victims.end(pid, kill=True)


async def assert_nothing_is_lost(target: Path, said: list[Fact]) -> None:
    """What was acknowledged is there, and at most one append more of each task, in one piece."""
    acknowledged = {str(fact["task"]): fact["saved"] for fact in said if "saved" in fact}
    async with sessiontree.open_store(target) as store:
        assert await store.check() == []
        infos = [info async for info in store.conversations()]
        for info in infos:
            path = await (await store.open(info.id)).path()
            count = count_of(path, int(info.topic or ""))
            assert count - acknowledged.pop(info.topic or "", count) in (0, 1)
            assert info.messages == len(path)
    assert acknowledged == {}


def count_of(path: list[Message], task: int) -> int:
    """How many appends a path holds, each of them whole and in order."""
    count, rest = divmod(len(path), 4)
    assert rest == 0
    expected = [name for number in range(count) for name in turn_of(task, number + 1)]
    assert [name_of(message) for message in path] == expected
    return count
