"""Appending for a crowd: what is done for all at once is what would be done one by one."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sessiontree
from sessiontree import formats
from sessiontree.core.message import NewMessage
from sessiontree.core.pairing import settle
from sessiontree.errors import SessionTreeError
from sessiontree.store import writer as engine
from sessiontree.store.appending import Append, Appended, append
from sessiontree.store.driver import Opening

CONVERSATIONS = 4
CALL = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
TURN = [
    {"role": "user", "content": "look"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c", "content": "x" * 5000},
    {"role": "assistant", "content": "done"},
]

WISHES = st.tuples(
    st.integers(1, CONVERSATIONS + 1),  # the last is nowhere
    st.integers(0, 4),  # how many messages
    st.sampled_from([None, "a", "b"]),  # a key for the first of them
    st.sampled_from(["seen", "stale", "named", "root", "missing"]),
    st.sampled_from([None, "label", "other"]),
)


def _messages(count: int, key: str | None) -> list[NewMessage]:
    natives = (
        TURN if count == 4 else [{"role": "user", "content": f"say {i}"} for i in range(count)]
    )
    made = [formats.read(native, key=key if i == 0 else None) for i, native in enumerate(natives)]
    settle(made)
    return made


def _wish(heads: dict[int, int | None], given: Sequence[Any]) -> tuple[int, Append]:
    conversation, count, key, where, label = given
    seen = heads.get(conversation)
    return conversation, Append(
        _messages(count, key),
        now=7,
        at_head=where in ("seen", "stale"),
        expected=seen if where != "stale" else None,
        parent={"named": seen, "missing": 10_000}.get(where),
        labels=[(label, None, True)] if label and count else (),
    )


def _store(file: Path) -> sqlite3.Connection:
    db = Opening(str(file)).connect()
    for _ in range(CONVERSATIONS):
        db.execute("INSERT INTO conversation (created_at, updated_at) VALUES (1, 1)")
    return db


def _dump(db: sqlite3.Connection) -> list[str]:
    """Everything but the log of ids: a failed append may have used some."""
    return [line for line in db.iterdump() if "sqlite_sequence" not in line]


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rounds=st.lists(st.lists(WISHES, min_size=1, max_size=8), min_size=1, max_size=3))
def test_a_crowd_is_served_as_if_one_came_after_the_other(
    rounds: list[list[Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("crowd")
    with (
        contextlib.closing(_store(folder / "one.db")) as one_by_one,
        contextlib.closing(_store(folder / "all.db")) as all_at_once,
    ):
        heads: dict[int, int | None] = dict.fromkeys(range(1, CONVERSATIONS + 1))
        for wishes in rounds:
            calls = [_wish(heads, given) for given in wishes]
            expected = _each(one_by_one, calls)
            if any(isinstance(done, SessionTreeError) for done in expected):
                with pytest.raises(SessionTreeError), _transaction(all_at_once):
                    append.everyone(all_at_once, calls, lambda: None)
                assert _each(all_at_once, calls) == expected
            else:
                with _transaction(all_at_once):
                    assert append.everyone(all_at_once, calls, lambda: None) == expected
            assert _dump(all_at_once) == _dump(one_by_one)
            heads = dict(one_by_one.execute("SELECT id, head_id FROM conversation"))


class _Failure(SessionTreeError):
    """An error that equals another of its kind and words."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Failure) and str(other) == str(self)

    __hash__ = SessionTreeError.__hash__


def _each(db: sqlite3.Connection, calls: list[tuple[int, Append]]) -> list[Appended | _Failure]:
    done: list[Appended | _Failure] = []
    for conversation, wish in calls:
        try:
            with _transaction(db):
                done.append(append(db, conversation, wish))
        except SessionTreeError as error:
            done.append(_Failure(f"{type(error).__name__}: {error}"))
    return done


@contextlib.contextmanager
def _transaction(db: sqlite3.Connection) -> Any:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


async def test_what_is_durable_is_told_while_another_process_holds_the_store(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    in_turn = engine.Writer._begin_in_turn  # pyright: ignore[reportPrivateUsage]

    def somebody_was_first(self: engine.Writer, ended: Any) -> None:
        if ended.jobs and not other.in_transaction:
            other.execute("BEGIN IMMEDIATE")
        in_turn(self, ended)

    async with sessiontree.open_store(file) as store:
        chats = [await store.conversation() for _ in range(2 * engine.CROWD)]
        monkeypatch.setattr(engine.Writer, "_begin_in_turn", somebody_was_first)
        said = {"role": "user", "content": "hello"}
        tasks = [asyncio.ensure_future(chat.append(said)) for chat in chats]
        done, waiting = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.sleep(0.05)
        assert len(done) >= 1
        assert any(not task.done() for task in waiting)
        monkeypatch.undo()
        other.execute("ROLLBACK")
        await asyncio.gather(*tasks)
        assert [(await chat.path())[0].text for chat in chats] == ["hello"] * len(chats)
    other.close()


async def test_a_crowd_on_one_conversation_is_a_row_and_its_branches(file: Path) -> None:
    async with sessiontree.open_store(file) as store:
        chat = await store.conversation()
        handles = [await store.open(chat.id) for _ in range(3 * engine.CROWD)]
        told = await asyncio.gather(
            *(handle.append(TURN) for handle in handles), return_exceptions=True
        )
        assert sum(isinstance(answer, sessiontree.HeadMoved) for answer in told) == len(told) - 1
        assert len(await chat.leaves()) == len(handles)
        assert not await store.check()
