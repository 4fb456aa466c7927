"""A cache in a file: time, other processes, damage, and files that are something else."""

# ruff: noqa: ASYNC240 - tests may block
from __future__ import annotations

import asyncio
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sessiontree
from sessiontree.cache import Cache, open_cache
from sessiontree.core.caching import Entry, Packed, pack
from sessiontree.errors import (
    BadArgument,
    NotAStore,
    SessionTreeError,
    StoreClosed,
    StoreCorrupt,
    StoreTooNew,
    StoreUnavailable,
)
from sessiontree.store.caching import SQLiteCache
from sessiontree.store.statements import named, split

SECOND = 1_000_000


class Clock:
    """Time that a test moves. Microseconds."""

    def __init__(self) -> None:
        self.now = 1_800_000_000 * SECOND

    def __call__(self) -> int:
        return self.now

    def pass_(self, seconds: float) -> None:
        self.now += int(seconds * SECOND)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "answers.db"


def numbered(n: int) -> dict[str, Any]:
    return {"model": "m", "n": n}


# ---- time ----------------------------------------------------------------------------


async def test_an_answer_expires_and_is_a_miss_then(clock: Clock) -> None:
    async with open_cache(":memory:", ttl=10, clock=clock) as cache:
        await cache.put(numbered(1), {})
        clock.pass_(9.999)
        assert await cache.get(numbered(1)) is not None
        clock.pass_(10)
        assert await cache.get(numbered(1)) is None
        stats = await cache.stats()
        assert (stats.hits, stats.misses, stats.entries, stats.bytes) == (1, 1, 0, 0)


async def test_each_use_lets_it_live_longer(clock: Clock) -> None:
    async with open_cache(":memory:", ttl=10, clock=clock) as cache:
        await cache.put(numbered(1), {})
        await cache.put(numbered(2), {})
        for _ in range(5):
            clock.pass_(8)
            assert await cache.get(numbered(1)) is not None
        assert await cache.get(numbered(2)) is None


async def test_an_age_counts_from_when_it_was_stored_however_often_it_was_used(
    clock: Clock,
) -> None:
    async with open_cache(":memory:", ttl=None, clock=clock) as cache:
        await cache.put(numbered(1), {})
        clock.pass_(100)
        await cache.put(numbered(2), {})
        await cache.get(numbered(1))
        clock.pass_(50)
        assert await cache.invalidate(older_than=149) == 1
        assert await cache.get(numbered(1)) is None
        assert await cache.get(numbered(2)) is not None


async def test_without_an_end_an_answer_stays(clock: Clock) -> None:
    async with open_cache(":memory:", ttl=None, clock=clock) as cache:
        await cache.put(numbered(1), {})
        clock.pass_(1e9)
        assert await cache.get(numbered(1)) is not None


async def test_what_expired_makes_room_before_anything_that_lives_goes(clock: Clock) -> None:
    async with open_cache(":memory:", ttl=10, max_bytes=250, clock=clock) as cache:
        await cache.put(numbered(1), "x" * 100)
        clock.pass_(5)
        await cache.put(numbered(2), "x" * 100)
        clock.pass_(6)
        await cache.put(numbered(3), "x" * 100)
        assert await cache.get(numbered(2)) is not None
        assert await cache.get(numbered(3)) is not None


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "get", "trim", "drop", "talk", "wait", "older"]),
        st.integers(0, 7),
        st.integers(0, 400),
    ),
    max_size=40,
)


@settings(max_examples=30)
@given(OPERATIONS)
def test_whatever_is_done_the_totals_are_those_of_what_is_there(operations: list[Any]) -> None:
    asyncio.run(_hold_against_a_dictionary(operations))


async def _hold_against_a_dictionary(operations: list[tuple[str, int, int]]) -> None:
    """The model: key → [size, stored, used, expires, conversations]."""
    clock, model, most, ttl = Clock(), dict[str, list[Any]](), 1_000, 300
    cache = SQLiteCache(":memory:", 1, clock)
    await cache.open()
    for what, n, size in operations:
        clock.now += 1
        key = str(n)
        model = {k: e for k, e in model.items() if e[3] > clock.now}
        if what == "put":
            packed = Packed("text", b"x" * size)
            await cache.put(key, Entry(packed), ttl, most, str(size % 3))
            talks = {*model.get(key, [0, 0, 0, 0, ()])[4], str(size % 3)}
            model[key] = [size, clock.now, clock.now, clock.now + ttl, talks]
            _evict(model, most)
        elif what == "get":
            found = await cache.get(key, ttl)
            assert (found is not None) == (key in model)
            if found is not None:
                assert len(found.packed.body) == model[key][0]
                model[key][2:4] = clock.now, clock.now + ttl
        elif what == "trim":
            await cache.trim(size)
            _evict(model, size)
        elif what == "drop":
            assert await cache.drop(key) >= (key in model)
            model.pop(key, None)
        elif what == "talk":
            await cache.drop_conversation(str(n))
            model = {k: e for k, e in model.items() if str(n) not in e[4]}
        elif what == "older":
            await cache.drop_older(size)
            model = {k: e for k, e in model.items() if e[1] >= clock.now - size}
        else:
            clock.now += size
            model = {k: e for k, e in model.items() if e[3] > clock.now}
        totals = await cache.totals()
        assert totals.entries == len(model)
        assert totals.bytes == sum(each[0] for each in model.values())
    await cache.close()


def _evict(model: dict[str, list[Any]], most: int) -> None:
    for key in sorted(model, key=lambda k: model[k][2]):
        if sum(each[0] for each in model.values()) <= most:
            return
        del model[key]


# ---- others --------------------------------------------------------------------------

WORKER = """
import asyncio, sys
from sessiontree.cache import open_cache

async def main(target, name):
    async with open_cache(target, patience=60) as cache:
        for n in range(40):
            mine, ours = {"by": name, "n": n}, {"n": n}
            assert await cache.put(mine, {"by": name, "n": n}), cache.last_failure
            assert await cache.put(ours, {"n": n, "usage": {"prompt_tokens": 1}})
            for request, answer in ((mine, {"by": name, "n": n}), (ours, None)):
                hit = await cache.get(request)
                assert hit and (answer is None or hit.response == answer), cache.last_failure
        assert cache.failures == 0, cache.last_failure

asyncio.run(main(*sys.argv[1:]))
"""


def _start(target: str, name: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", WORKER, target, name])


async def test_processes_that_write_at_once_lose_nothing(target: str) -> None:
    if target == ":memory:":
        pytest.skip("a cache in memory has one process")
    workers = [_start(target, name) for name in "abcd"]
    assert [worker.wait(timeout=120) for worker in workers] == [0] * 4
    async with open_cache(target) as cache:
        stats = await cache.stats()
        assert (stats.entries, stats.hits, stats.misses) == (4 * 40 + 40, 4 * 80, 0)
        assert stats.input_tokens == 4 * 40
        for name in "abcd":
            for n in range(40):
                hit = await cache.get({"by": name, "n": n})
                assert hit is not None
                assert hit.response == {"by": name, "n": n}


async def test_tasks_that_write_at_once_lose_nothing(target: str) -> None:
    async with open_cache(target, patience=20) as cache:

        async def work(name: int) -> None:
            for n in range(20):
                request = {"name": name, "n": n}
                assert await cache.put(request, request)
                hit = await cache.get(request)
                assert hit is not None
                assert hit.response == request

        await asyncio.gather(*map(work, range(8)))
        assert (await cache.stats()).entries == 160
        assert cache.failures == 0


# ---- a cache that is down --------------------------------------------------------------


async def test_a_file_that_another_holds_delays_a_request_and_no_more(
    file: Path, asked: Any
) -> None:
    async with open_cache(file, patience=0.05, pause=0) as cache:
        await cache.put(numbered(1), {"n": 0})
        holder = sqlite3.connect(file, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        assert await cache.through(numbered(1), asked) == {"n": 1}
        assert isinstance(cache.last_failure, sessiontree.StoreBusy)
        holder.execute("ROLLBACK")
        holder.close()
        assert await cache.through(numbered(1), asked) == {"n": 0}


async def test_a_cache_that_failed_is_left_alone_for_a_while(file: Path, asked: Any) -> None:
    async with open_cache(file, patience=0.05, pause=3600) as cache:
        holder = sqlite3.connect(file, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        for n in range(5):
            assert await cache.through(numbered(n), asked)
        holder.execute("ROLLBACK")
        holder.close()
        assert cache.failures == 1
        assert await cache.get(numbered(1)) is None


async def test_a_file_that_is_removed_costs_its_answers_and_no_more(file: Path, asked: Any) -> None:
    async with open_cache(file, pause=0) as cache:
        await cache.through(numbered(1), asked)
        for each in file.parent.iterdir():
            each.unlink()
        assert await cache.through(numbered(1), asked) == {"n": 2}
        assert isinstance(cache.last_failure, StoreUnavailable)
        with pytest.raises(StoreUnavailable):
            await cache.stats()


async def test_a_file_that_is_damaged_meanwhile_costs_its_answers_and_no_more(
    file: Path, asked: Any
) -> None:
    async with open_cache(file) as cache:
        for n in range(200):
            await cache.put(numbered(n), "x" * 3_000)
    content = bytearray(file.read_bytes())
    content[8192:] = b"\xa5" * (len(content) - 8192)
    file.write_bytes(content)
    async with open_cache(file, pause=0) as cache:
        assert await cache.through(numbered(7), asked) == {"n": 1}
        assert isinstance(cache.last_failure, SessionTreeError)


async def test_an_answer_that_is_damaged_is_asked_for_again(file: Path, asked: Any) -> None:
    async with open_cache(file) as cache:
        await cache.put(numbered(1), {"n": 0})
        with sqlite3.connect(file) as db:
            db.execute("UPDATE entry SET body = x'7b22'")
        db.close()
        assert await cache.through(numbered(1), asked) == {"n": 1}
        assert "damaged" in str(cache.last_failure)
        assert await cache.through(numbered(1), asked) == {"n": 1}


async def test_a_disk_that_is_full_costs_a_place_in_the_cache_and_no_more(
    file: Path, asked: Any
) -> None:
    async with open_cache(file, pause=0) as cache:
        await cache.put(numbered(1), {"n": 0})
        await cache._backend._backend.write(  # type: ignore[attr-defined]
            lambda db: db.execute("PRAGMA max_page_count = 1")
        )
        assert not await cache.put(numbered(2), "x" * 100_000)
        assert isinstance(cache.last_failure, sessiontree.SessionTreeError)
        assert "full" in str(cache.last_failure)
        assert await cache.through(numbered(1), asked) == {"n": 0}


# ---- files that are something else -----------------------------------------------------


async def test_a_session_store_is_no_cache_and_a_cache_no_session_store(tmp_path: Path) -> None:
    sessions, answers = tmp_path / "sessions.db", tmp_path / "answers.db"
    async with sessiontree.open_store(sessions) as store:
        await store.conversation("T-80005")
    async with open_cache(answers) as cache:
        await cache.put(numbered(1), {})
    with pytest.raises(NotAStore, match="no response cache"):
        async with open_cache(sessions):
            pass
    with pytest.raises(NotAStore):
        async with sessiontree.open_store(answers):
            pass


async def test_a_cache_of_a_later_version_is_refused(file: Path) -> None:
    async with open_cache(file):
        pass
    with sqlite3.connect(file) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(StoreTooNew, match="version 99"):
        async with open_cache(file):
            pass


async def test_what_is_no_database_is_refused_and_left_as_it_is(file: Path) -> None:
    file.write_text("dear diary, " * 500)
    with pytest.raises((NotAStore, StoreCorrupt)):
        async with open_cache(file):
            pass
    assert file.read_text() == "dear diary, " * 500


async def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="there is no folder"):
        async with open_cache(tmp_path / "none" / "answers.db"):
            pass


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("", {}),
        (None, {}),
        (b"answers.db", {}),
        ("http://localhost", {}),
        ("a\0b", {}),
        (":memory:", {"ttl": -1}),
        (":memory:", {"ttl": "3600"}),
        (":memory:", {"ttl": float("nan")}),
        (":memory:", {"max_bytes": 1.5}),
        (":memory:", {"max_bytes": -1}),
        (":memory:", {"scope": None}),
        (":memory:", {"safe_tools": "read_file"}),
        (":memory:", {"patience": True}),
    ],
)
async def test_arguments_that_make_no_sense_are_refused(target: Any, options: Any) -> None:
    with pytest.raises(BadArgument):
        async with open_cache(target, **options):
            pass


async def test_after_closing_the_whole_cache_says_that_it_is_closed(file: Path) -> None:
    async with open_cache(file) as cache:
        assert isinstance(cache, Cache)
    with pytest.raises(StoreClosed):
        await cache.stats()


# ---- the file itself -------------------------------------------------------------------


async def test_room_that_is_freed_goes_back_to_the_disk(file: Path) -> None:
    async with open_cache(file) as cache:
        for n in range(50):
            await cache.put(numbered(n), "x" * 100_000)
        await cache.clear()
    assert file.stat().st_size < 200_000


def test_every_statement_prepares_against_the_schema() -> None:
    statements = dict(named("caching.sql"))
    db = sqlite3.connect(":memory:")
    for statement in split(statements.pop("schema")):
        db.execute(statement)
    for name, sql in statements.items():
        names = dict.fromkeys(re.findall(r":(\w+)", sql))
        assert db.execute(f"EXPLAIN {sql}", [None] if "?" in sql else names).fetchall(), name
    db.close()


def test_what_is_looked_up_for_each_request_reads_no_whole_table() -> None:
    statements = dict(named("caching.sql"))
    db = sqlite3.connect(":memory:")
    for statement in split(statements.pop("schema")):
        db.execute(statement)
    for name in ("get", "use", "drop_expired", "drop_key", "drop_conversation"):
        names = {"key": "k", "now": 1, "expires": 1, "conversation": "c"}
        plan = db.execute(f"EXPLAIN QUERY PLAN {statements[name]}", names).fetchall()
        assert not [row for row in plan if row[3].startswith("SCAN entry")], (name, plan)
    db.close()


def test_a_size_counts_what_is_kept() -> None:
    assert Entry(pack("x" * 10), usage='{"a":1}').size == 17
