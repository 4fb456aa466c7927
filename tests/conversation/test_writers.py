"""Several writers: processes, handles and tasks. Nobody loses a message, and who came later
is told so."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from talk import assistant, call, ids, path_ids, result, step, texts, user

import sessiontree
from sessiontree import Conversation, HeadMoved, Store

CHILDREN = Path(__file__).with_name("children.py")


@contextmanager
def children(name: str, file: Path, who: list[str]) -> Iterator[list[subprocess.Popen[str]]]:
    started = [
        subprocess.Popen(
            [sys.executable, str(CHILDREN), name, str(file), one],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for one in who
    ]
    try:
        yield started
    finally:
        for process in started:
            process.kill()
            process.communicate()


def go_and_tell(processes: list[subprocess.Popen[str]]) -> list[list[str]]:
    """Let all go at once; the words that each said then."""
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return [process.communicate(timeout=60)[0].split() for process in processes]


# ---- processes -----------------------------------------------------------------------


async def test_two_processes_write_at_one_head_and_both_turns_are_in_the_tree(file: Path) -> None:
    async with sessiontree.open_store(file) as store:
        chat = await store.conversation("chat")
        (start,) = await chat.append(user("start"))
        with children("write_at_the_same_time", file, ["ada", "bob"]) as processes:
            for process in processes:
                assert process.stdout is not None
                assert process.stdout.readline().strip() == str(start.id)
            told = sorted(go_and_tell(processes))
        (moved, expected, actual, *kept), (saved, *first) = told
        assert (moved, saved) == ("moved", "saved")
        assert int(expected) == start.id
        assert actual == first[-1], "the later one is told of both leaves"
        await chat.refresh()
        assert chat.head == int(first[-1])
        leaves = await chat.leaves()
        assert ids(leaves) == sorted([int(first[-1]), int(kept[-1])])
        siblings = await chat.siblings(int(kept[0]))
        assert ids(siblings) == sorted([int(first[0]), int(kept[0])])
        for leaf in leaves:
            path = texts(await chat.path(leaf.id))
            name = path[1].split()[0]
            assert path == ["start", f"{name} asks", f"{name} answers"]
        assert await store.check() == []


async def test_processes_that_open_a_store_for_the_first_time_make_one_conversation(
    file: Path,
) -> None:
    with children("get_or_create", file, list("abcd")) as processes:
        told = go_and_tell(processes)
    assert told == [["1"]] * 4
    async with sessiontree.open_store(file) as store:
        chats = [info async for info in store.conversations("o")]
        assert [(info.id, info.messages) for info in chats] == [(1, 5)]
        chat = await store.open(1)
        assert len([n for n in (await chat.tree()).nodes if n.role == "system"]) == 1
        assert await store.check() == []


# ---- handles -------------------------------------------------------------------------


async def two_handles(store: Store) -> tuple[Conversation, Conversation]:
    first = await store.conversation("chat")
    await first.append([user("start")])
    return first, await store.conversation("chat")


async def test_the_later_writer_is_told_of_both_leaves_and_what_it_may_do(store: Store) -> None:
    first, second = await two_handles(store)
    start = first.head
    theirs = await first.append(user("theirs"))
    with pytest.raises(HeadMoved) as caught:
        await second.append([user("mine"), *step()], keys=["k", None, None])
    error = caught.value
    assert (error.expected, error.actual) == (start, theirs[-1].id)
    assert texts(error.saved) == ["mine", "", ""]
    assert error.saved[0].parent_id == start
    assert f"branch(to={error.saved[-1].id})" in str(error)
    assert second.head == first.head, "it has seen the other's head now"
    await second.append(user("after theirs"))
    assert texts(await second.path()) == ["start", "theirs", "after theirs"]
    await second.branch(error.saved[-1].id)
    await second.append(user("after mine"))
    assert [m.role for m in await second.path()][1:] == ["user", "assistant", "tool", "user"]


async def test_trying_again_after_head_moved_saves_nothing_twice(store: Store) -> None:
    first, second = await two_handles(store)
    await first.append(user("theirs"))
    with pytest.raises(HeadMoved) as caught:
        await second.append(user("mine"), keys=["k"])
    again = await second.append(user("mine"), keys=["k"])
    assert ids(again) == ids(caught.value.saved)
    assert len(await second.tree()) == 3


async def test_a_turn_goes_on_with_its_own_step_after_head_moved(store: Store) -> None:
    first, second = await two_handles(store)
    async with second.turn() as turn:
        await turn.add(call("c"))
        await first.append(user("theirs"))
        with pytest.raises(HeadMoved) as caught:
            await turn.add(result("c"))
        assert [m.role for m in caught.value.saved] == ["assistant", "tool"]
        assert turn.pending == []
        with pytest.raises(HeadMoved) as again:
            await turn.add(assistant("found it"))
        assert again.value.saved[0].parent_id == caught.value.saved[-1].id
        assert turn.head == again.value.saved[-1].id
    assert len(await first.leaves()) == 2


async def test_a_move_by_a_handle_that_lags_is_refused_where_it_depends_on_the_head(
    store: Store,
) -> None:
    first, second = await two_handles(store)
    for move in (second.undo, second.redo, second.retry):
        await first.append(user("theirs"))
        count = len(await first.tree())
        with pytest.raises(HeadMoved, match="nothing was changed"):
            await move()
        assert second.head == first.head
        assert len(await first.tree()) == count
        assert (await store.open(first.id)).head == first.head
    await second.undo()
    assert texts(await second.path()) == ["start", "theirs", "theirs"]


async def test_a_named_parent_is_a_branch_whatever_the_head_is(store: Store) -> None:
    first, second = await two_handles(store)
    start = second.head
    await first.append(user("theirs"))
    (mine,) = await second.append(user("mine"), parent=start)
    assert (await store.open(first.id)).head == mine.id == second.head
    (root,) = await second.append(user("another root"), parent=None)
    assert root.parent_id is None
    assert texts(await second.path()) == ["another root"]


async def test_a_conversation_deleted_by_another_says_so(store: Store) -> None:
    first, second = await two_handles(store)
    head = second.head
    await store.delete(first.id)
    for work in (
        second.append(user()),
        second.branch(None),
        second.undo(),
        second.retry(),
        second.fork(),
        second.refresh(),
        second.history(),
        second.tree(),
        second.resume(),
        second.rename("x"),
        second.rewind("x"),
    ):
        with pytest.raises(sessiontree.ConversationNotFound):
            await work
    for work in (second.path(), second.message(head or 0), second.checkpoint("x")):
        with pytest.raises(sessiontree.NotFound):
            await work


# ---- tasks ---------------------------------------------------------------------------


async def test_many_tasks_on_one_handle_lose_nothing(chat: Conversation) -> None:
    async def say(number: int) -> list[int]:
        try:
            return ids(await chat.append([user(f"q{number}"), *step(), assistant(f"a{number}")]))
        except HeadMoved as moved:
            return ids(moved.saved)

    saved = await asyncio.gather(*(say(number) for number in range(60)))
    assert len({i for four in saved for i in four}) == 240
    assert len(await chat.tree()) == 240
    for number, four in enumerate(saved):
        path = await chat.path(four[-1])
        assert ids(path)[-4:] == four
        assert texts(path)[-4:] == [f"q{number}", "", "", f"a{number}"]
    assert chat.head == (await chat.refresh()).head
    assert chat.head in await path_ids(chat)


async def test_many_tasks_on_handles_of_their_own_lose_nothing(store: Store) -> None:
    await store.conversation("chat")

    async def say(number: int) -> int:
        chat = await store.conversation("chat")
        for turn in range(5):
            try:
                await chat.append(user(f"{number}.{turn}"), keys=[f"{number}.{turn}"])
            except HeadMoved:
                continue
        return 5

    assert sum(await asyncio.gather(*(say(number) for number in range(20)))) == 100
    chat = await store.conversation("chat")
    said = {m.text async for m in chat.iter_messages()}
    assert said == {f"{number}.{turn}" for number in range(20) for turn in range(5)}


async def test_get_or_create_by_many_tasks_makes_one(store: Store) -> None:
    chats = await asyncio.gather(
        *(store.conversation("same", owner="o", system="be brief") for _ in range(30))
    )
    assert len({chat.id for chat in chats}) == 1
    assert len(await chats[0].tree()) == 1
    assert len([info async for info in store.conversations()]) == 1


async def test_parallel_tools_add_their_results_side_by_side(chat: Conversation) -> None:
    names = [f"c{number}" for number in range(40)]
    async with chat.turn() as turn:
        await turn.add(call(*names))
        added = await asyncio.gather(*(turn.add(result(name, name)) for name in reversed(names)))
    assert sorted(m.id for m in added)[:-1] == [0] * 39
    path = await chat.path()
    assert len(path) == 41
    assert sorted(m.tool_results[0].response for m in path[1:]) == sorted(names)
    assert [m.open_calls for m in path] == list(range(40, -1, -1))


# ---- group commit --------------------------------------------------------------------


async def test_one_that_fails_in_a_batch_fails_alone(store: Store) -> None:
    """The units that wait go into one transaction; each is in a savepoint of its own."""
    chats = [await store.conversation() for _ in range(40)]
    for chat in chats[::4]:
        await chat.append(user("start"))
    work = []
    for number, chat in enumerate(chats):
        match number % 4:
            case 0:
                work.append(chat.append([user("x"), *step()]))
            case 1:
                work.append(chat.append(user("x"), parent=999_999))
            case 2:
                work.append(chat.undo())
            case _:
                work.append(chat.append([user("y" * 9_000)]))
    done = await asyncio.gather(*work, return_exceptions=True)
    for number, (chat, outcome) in enumerate(zip(chats, done, strict=True)):
        if number % 4 == 1:
            assert isinstance(outcome, sessiontree.MessageNotFound)
        elif number % 4 == 2:
            assert isinstance(outcome, sessiontree.NothingToUndo)
        else:
            assert not isinstance(outcome, BaseException)
            assert ids(outcome) == (await path_ids(chat))[-len(outcome) :]
        expected = [4, 0, 0, 1][number % 4]
        assert len(await chat.tree()) == expected
        assert chat.head == (await store.open(chat.id)).head


async def test_a_batch_that_cannot_be_committed_fails_for_all_and_leaves_nothing(
    file: Path,
) -> None:
    async with sessiontree.open_store(file) as store:
        chats = [await store.conversation() for _ in range(10)]
        writer = store._backend._writer_connection
        assert writer is not None
        (pages,) = await writer.run(lambda db: db.execute("PRAGMA page_count").fetchone())
        await writer.run(lambda db: db.execute(f"PRAGMA max_page_count = {pages + 8}").fetchone())
        work = [chat.append(user("x" * 50_000 + str(n))) for n, chat in enumerate(chats)]
        done = await asyncio.gather(*work, return_exceptions=True)
        assert any(isinstance(outcome, sessiontree.StoreFull) for outcome in done)
        for chat, outcome in zip(chats, done, strict=True):
            failed = isinstance(outcome, BaseException)
            assert not failed or isinstance(outcome, sessiontree.StoreFull)
            assert chat.head == (await store.open(chat.id)).head
            assert (chat.head is None) == failed
        await writer.run(lambda db: db.execute("PRAGMA max_page_count = 1000000").fetchone())
        for chat in chats:
            await chat.append(user("there is room again"))
        assert await store.check() == []


async def test_a_full_disk_keeps_the_step_of_a_turn_for_another_try(file: Path) -> None:
    async with sessiontree.open_store(file) as store:
        chat = await store.conversation()
        writer = store._backend._writer_connection
        assert writer is not None
        async with chat.turn() as turn:
            await turn.add(call("c"))
            (pages,) = await writer.run(lambda db: db.execute("PRAGMA page_count").fetchone())
            await writer.run(lambda db: db.execute(f"PRAGMA max_page_count = {pages}").fetchone())
            with pytest.raises(sessiontree.StoreFull, match="make room"):
                await turn.add(result("c", "x" * 100_000))
            assert len(turn.pending) == 1
            await writer.run(lambda db: db.execute("PRAGMA max_page_count = 1000000").fetchone())
            await turn.add(result("c", "x" * 100_000))
        assert len(await chat.path()) == 2
        assert await store.check() == []
