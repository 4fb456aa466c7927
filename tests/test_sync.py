"""The blocking face: the same names, results and errors as the async handles, and no logic."""

from __future__ import annotations

import asyncio
import inspect
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import sessiontree
from sessiontree import sync

USER: dict[str, Any] = {"role": "user", "content": "q"}
ANSWER: dict[str, Any] = {"role": "assistant", "content": "a"}


def call(call_id: str) -> dict[str, Any]:
    made = {"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}}
    return {"role": "assistant", "content": None, "tool_calls": [made]}


def result(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "found"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


# ---- the same names ------------------------------------------------------------------


def public(face: type) -> set[str]:
    return {name for name in dir(face) if not name.startswith("_")}


@pytest.mark.parametrize("name", ["Store", "Conversation", "Turn", "ModelTools"])
def test_each_name_of_a_handle_is_there(name: str) -> None:
    blocking = public(getattr(sync, name)) - {"portal", "handle"}
    assert blocking == public(getattr(sessiontree, name))


@pytest.mark.parametrize("name", ["Store", "Conversation", "Turn", "ModelTools"])
def test_each_method_is_explained_as_the_async_one_is(name: str) -> None:
    for method, found in inspect.getmembers(getattr(sync, name), inspect.isfunction):
        if not method.startswith("_"):
            assert inspect.getdoc(found), method


def test_a_store_is_opened_with_the_same_options() -> None:
    assert inspect.signature(sync.open_store).parameters.keys() == (
        inspect.signature(sessiontree.open_store).parameters.keys()
    )


# ---- the same results ----------------------------------------------------------------


def plain(value: Any) -> Any:
    """A result without what differs between two stores: times, handles."""
    if isinstance(value, sessiontree.Message):
        return ("message", value.row._replace(created_at=0))
    if isinstance(value, sessiontree.Conversation | sync.Conversation):
        return ("conversation", value.id, value.owner, value.topic, value.title, value.head,
                value.forked_from, value.meta)  # fmt: skip
    if isinstance(value, sessiontree.Tree):
        return [(n.id, n.parent_id, n.preview, n.labels, n.children) for n in value.nodes]
    if isinstance(value, sessiontree.Resume):
        return (plain(value.path), plain(value.draft), value.interrupted, len(value.checkpoints))
    if isinstance(value, sessiontree.ConversationInfo):
        return value._replace(created_at=0, updated_at=0)
    if isinstance(value, sessiontree.Checkpoint | sessiontree.Move):
        return value._replace(created_at=0)
    if isinstance(value, sessiontree.Window):
        return (value.messages, value.system, value.ids)
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


SCRIPT: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("append", ([USER, call("c"), result("c"), ANSWER],), {"keys": ["k", None, None, None]}),
    ("append", (USER,), {"keys": ["k"]}),
    ("checkpoint", ("start",), {"note": "why"}),
    ("checkpoint", ("start",), {}),
    ("checkpoints", (), {}),
    ("append", ({"role": "user", "content": "q2"},), {}),
    ("path", (), {}),
    ("path", (4,), {"newest": 2}),
    ("iter_path", (), {}),
    ("iter_messages", (), {}),
    ("iter_path", (99,), {}),
    ("message", (2,), {}),
    ("message", (99,), {}),
    ("children", (1,), {}),
    ("siblings", (1,), {}),
    ("leaves", (), {}),
    ("tree", (), {}),
    ("branch", (1,), {}),
    ("branch", (2,), {}),
    ("edit", (1, {"role": "user", "content": "edited"}), {}),
    ("rewind", ("start",), {"digest": "dead end"}),
    ("rewind", ("nowhere",), {}),
    ("retry", (), {}),
    ("undo", (), {}),
    ("redo", (), {}),
    ("redo", (), {}),
    ("history", (), {}),
    ("fork", (), {"topic": "copy"}),
    ("fork", (2,), {}),
    ("find_keys", (["k", "x"],), {}),
    ("rename", ("Title",), {}),
    ("refresh", (), {}),
    ("resume", (), {}),
    ("window", (100_000,), {"target": "openai_chat"}),
    ("append", (result("nope"),), {}),
    ("append", ([],), {}),
]


def compared(error: Exception) -> Any:
    return (type(error), str(error).replace("async ", ""))


async def by_async(file: Path) -> list[Any]:
    seen: list[Any] = []
    async with sessiontree.open_store(file) as store:
        chat = await store.conversation("t", owner="o", system="be brief", meta={"a": 1})
        for name, args, kwargs in SCRIPT:
            try:
                found = getattr(chat, name)(*args, **kwargs)
                if name.startswith("iter_"):
                    seen.append(plain([each async for each in found]))
                else:
                    seen.append(plain(await found))
            except sessiontree.SessionTreeError as error:
                seen.append(compared(error))
            seen.append(chat.head)
        seen.append([plain(info) async for info in store.conversations()])
        seen.append(plain(await store.open(1)))
        await store.delete(2)
        seen.append(await store.check())
    return seen


def by_sync(file: Path) -> list[Any]:
    seen: list[Any] = []
    with sync.open_store(file) as store:
        chat = store.conversation("t", owner="o", system="be brief", meta={"a": 1})
        for name, args, kwargs in SCRIPT:
            try:
                found = getattr(chat, name)(*args, **kwargs)
                seen.append(plain(list(found) if name.startswith("iter_") else found))
            except sessiontree.SessionTreeError as error:
                seen.append(compared(error))
            seen.append(chat.head)
        seen.append([plain(info) for info in store.conversations()])
        seen.append(plain(store.open(1)))
        store.delete(2)
        seen.append(store.check())
    return seen


def test_the_same_calls_give_the_same_results_and_errors(tmp_path: Path) -> None:
    blocking = by_sync(tmp_path / "a.db")
    awaited = asyncio.run(by_async(tmp_path / "a2.db"))
    for (name, *_), one, two in zip(
        [step for step in SCRIPT for _ in range(2)], blocking, awaited, strict=False
    ):
        assert one == two, name
    assert blocking == awaited


def test_every_awaitable_method_of_a_conversation_is_in_the_script() -> None:
    tried = {name for name, *_ in SCRIPT}
    methods = {
        name
        for name, found in inspect.getmembers(sessiontree.Conversation, inspect.isfunction)
        if not name.startswith("_")
    }
    assert methods - tried == {"turn", "graft", "reclaim", "recover"}


# ---- turns ---------------------------------------------------------------------------


def test_a_turn_is_a_with_block(file: Path) -> None:
    with sync.open_store(file) as store:
        chat = store.conversation("t")
        with chat.turn() as turn:
            turn.add(USER)
            assert turn.add(call("c")).id == 0
            assert [c.id for c in turn.open_calls] == ["c"]
            assert len(turn.pending) == 1
            window = chat.window(100_000, target="openai_chat", turn=turn)
            assert len(window.messages) == 3, "a placeholder stands for the result"
            turn.checkpoint("done")
            turn.add(result("c"))
            assert turn.head == chat.head
        assert [m.role for m in chat.path()] == ["user", "assistant", "tool"]
        assert [c.message_id for c in chat.checkpoints()] == [chat.head]


def test_errors_of_a_turn_and_in_a_turn_pass_through(file: Path) -> None:
    def stop(error: Exception | None) -> None:
        with chat.turn() as turn:
            turn.add(call("c"))
            if error:
                raise error

    with sync.open_store(file) as store:
        chat = store.conversation("t")
        with pytest.raises(sessiontree.UnsettledTurn):
            stop(None)
        with pytest.raises(ZeroDivisionError, match="mine"):
            stop(ZeroDivisionError("mine"))
        assert len(chat.resume().interrupted) == 2
        with chat.turn(resume=chat.resume()) as turn:
            turn.interrupt("stopped")
        assert len(chat.path()) == 2


def test_a_scoped_store_is_scoped(file: Path) -> None:
    with sync.open_store(file) as store:
        theirs = store.conversation("t", owner="bob")
        ada = store.for_owner("ada")
        assert (ada.scope, store.scope) == ("ada", None)
        with pytest.raises(sessiontree.ConversationNotFound):
            ada.open(theirs.id)


# ---- threads and loops ---------------------------------------------------------------


def test_an_iterator_may_be_left_unfinished(file: Path) -> None:
    with sync.open_store(file) as store:
        chat = store.conversation("t")
        chat.append([USER] * 1_200)
        messages = chat.iter_path()
        assert next(messages).id == 1
        for _ in chat.iter_messages():
            break
        assert len(chat.path()) == 1_200
        messages.close()  # type: ignore[attr-defined]


def test_many_threads_may_share_a_store(file: Path) -> None:
    with sync.open_store(file) as store, ThreadPoolExecutor(8) as threads:

        def say(number: int) -> int:
            chat = store.conversation(f"t{number}")
            for _ in range(5):
                chat.append([USER, call("c"), result("c")])
            return len(chat.path())

        assert list(threads.map(say, range(16))) == [15] * 16
        assert store.check() == []


async def test_it_works_where_a_loop_is_running_already(file: Path) -> None:
    """As in a notebook."""
    with sync.open_store(file) as store:
        assert store.conversation("t").append(USER)[0].id == 1


def test_nothing_stays_behind_when_the_block_is_left(file: Path) -> None:
    before = threading.active_count()

    def use() -> None:
        with sync.open_store(file) as store:
            store.conversation("t").append(USER)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        use()
    assert threading.active_count() == before


def test_errors_of_opening_pass_through(tmp_path: Path) -> None:
    for target, kind in (
        (tmp_path, sessiontree.NotAStore),
        (tmp_path / "no" / "a.db", sessiontree.StoreUnavailable),
        (None, sessiontree.BadArgument),
    ):
        with pytest.raises(kind), sync.open_store(target):  # type: ignore[arg-type]
            pass


def test_everything_on_a_closed_store_says_that_it_is_closed(file: Path) -> None:
    with sync.open_store(file) as store:
        chat = store.conversation("t")
        turn = chat.turn()
    for use in (
        lambda: chat.append(USER),
        chat.path,
        lambda: list(chat.iter_path()),
        lambda: store.conversation("x"),
        lambda: list(store.conversations()),
        lambda: turn.add(USER),
        turn.__enter__,
    ):
        with pytest.raises(sessiontree.StoreClosed, match="use it inside"):
            use()


def test_a_handle_shows_what_it_holds(file: Path) -> None:
    with sync.open_store(file) as store:
        chat = store.conversation("t", owner="o", title="T", meta={"a": 1})
        assert repr(chat) == "<Conversation 1 o/t head=None>"
        assert (chat.owner, chat.topic, chat.title, chat.meta) == ("o", "t", "T", {"a": 1})
        assert chat.info.id == chat.id == 1
        assert chat.forked_from is None
