"""Fork: a path under new ids, every reference remapped, nothing shared but large payloads."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from talk import assistant, call, examples, ids, result, step, system, texts, user

import sessiontree
from sessiontree import Conversation, Graft, Message, Store
from sessiontree.formats import read

LARGE = "x" * 20_000


def blobs(file: Path) -> int:
    with sqlite3.connect(file) as db:
        (count,) = db.execute("SELECT count(*) FROM blob").fetchone()
    db.close()
    return count


async def rich(store: Store) -> Conversation:
    """Branches, checkpoints on and off the path, prompts, a digest and a mark with references."""
    chat = await store.conversation("rich", owner="ada", system="be brief", title="Rich")
    await chat.append([user("q1"), *step(), assistant(LARGE)], keys=["k1", None, None, None])
    await chat.checkpoint("start", note="why")
    await chat.append([user("q2"), assistant("dead end")])
    await chat.checkpoint("off the path")
    await chat.rewind("start", digest="403 everywhere")
    await chat.append([system("be long"), user("q3")])
    kept = (await chat.path())[1]
    mark = read({"role": "mark", "kind": "cut", "before": kept.id})
    (at,) = await chat.graft([Graft(mark, chat.head, ref=kept.id)])
    await chat.branch(at)
    await chat.append([assistant("a3")])
    await chat.checkpoint("end")
    return chat


def seen(message: Message) -> Any:
    """What a copy must have in common with its original."""
    row = message.row
    same = row._replace(id=0, conversation_id=0, parent_id=0, system_id=0, ref_id=0)
    return same, message.raw


async def test_every_reference_is_remapped_and_none_is_shared(store: Store) -> None:
    chat = await rich(store)
    other = await chat.fork(topic="copy")
    path, copy = await chat.path(), await other.path()
    assert [seen(m) for m in copy] == [seen(m) for m in path]
    assert set(ids(copy)).isdisjoint(ids([m async for m in chat.iter_messages()]))
    assert all(m.conversation_id == other.id for m in copy)
    new = dict(zip(ids(path), ids(copy), strict=True))
    for old, fresh in zip(path, copy, strict=True):
        assert fresh.parent_id == (new[old.parent_id] if old.parent_id else None)
        assert fresh.row.system_id == (new[old.row.system_id] if old.row.system_id else None)
        if old.ref_id in new:
            assert fresh.ref_id == new[old.ref_id]
        else:
            assert fresh.ref_id is None, "what it speaks of is not in the fork"
    assert any(m.ref_id for m in copy)
    assert {c.label: c.message_id for c in await other.checkpoints()} == {
        c.label: new[c.message_id] for c in await chat.checkpoints() if c.label != "off the path"
    }
    assert [c.note for c in await other.checkpoints() if c.label == "start"] == ["why"]
    assert (other.head, other.forked_from) == (new[path[-1].id], chat.id)
    assert (other.owner, other.topic, other.title) == ("ada", "copy", "Rich")
    assert other.info.forked_at == path[-1].id
    assert await other.history() == []
    with pytest.raises(sessiontree.NothingToUndo):
        await other.undo()


async def test_both_go_on_independently(store: Store) -> None:
    chat = await rich(store)
    other = await chat.fork()
    await chat.append(user("only here"))
    await other.append([user("only there"), *step()])
    await other.rewind("start", digest="seen there")
    await chat.checkpoint("mine")
    await other.checkpoint("mine")
    assert "only there" not in texts([m async for m in chat.iter_messages()])
    assert "only here" not in texts([m async for m in other.iter_messages()])
    assert texts(await chat.path())[-1] == "only here"
    assert texts(await other.path())[-1] == "seen there"
    with pytest.raises(sessiontree.MessageNotFound):
        await other.branch(chat.head)
    await other.append(user("again"), keys=["k1"])
    assert (await other.path())[-1].key != "k1", "a key of the copied path is known there"


async def test_a_fork_may_be_taken_at_any_boundary_and_nowhere_else(store: Store) -> None:
    chat = await rich(store)
    for message in [m async for m in chat.iter_messages()]:
        if message.is_boundary:
            other = await chat.fork(message.id)
            assert [m.raw for m in await other.path()] == [
                m.raw for m in await chat.path(message.id)
            ]
            assert len(await other.tree()) == message.depth + 1
        else:
            with pytest.raises(sessiontree.NotABoundary):
                await chat.fork(message.id)
    count = len([info async for info in store.conversations()])
    with pytest.raises(sessiontree.MessageNotFound):
        await chat.fork(10**6)
    assert len([info async for info in store.conversations()]) == count


async def test_a_fork_of_a_fork_of_an_empty_one(store: Store, chat: Conversation) -> None:
    empty = await chat.fork()
    assert (empty.head, await empty.path(), empty.forked_from) == (None, [], chat.id)
    await empty.append([user("q"), *step()])
    second = await empty.fork()
    third = await second.fork((await second.path())[0].id)
    assert texts(await third.path()) == ["q"]
    assert (third.forked_from, second.forked_from) == (second.id, empty.id)
    await store.delete(second.id)
    assert texts(await third.path()) == ["q"]
    assert texts(await empty.path()) == ["q", "", ""]


async def test_large_contents_are_shared_and_go_with_their_last_user(
    store: Store, file: Path
) -> None:
    chat = await rich(store)
    await chat.append([assistant(LARGE), user(LARGE)])
    assert blobs(file) == 2
    other = await chat.fork()
    third = await other.fork()
    assert blobs(file) == 2
    await store.delete(chat.id)
    assert [m.text for m in await other.path()].count(LARGE) == 3
    await third.append(user(LARGE + "more"))
    assert blobs(file) == 3
    await store.delete(other.id)
    assert blobs(file) == 3
    await store.delete(third.id)
    assert blobs(file) == 0


async def test_a_topic_that_is_taken_is_refused_and_nothing_is_copied(
    store: Store, chat: Conversation
) -> None:
    await chat.append(user())
    with pytest.raises(sessiontree.ConversationExists, match="'chat'"):
        await chat.fork(topic="chat")
    assert (await chat.fork(owner="bob", topic="chat")).owner == "bob"
    assert len([info async for info in store.conversations()]) == 2


async def test_a_fork_of_thousands_of_messages_is_whole(chat: Conversation) -> None:
    await chat.append([user(str(n)) for n in range(4_000)])
    await chat.checkpoint("end")
    other = await chat.fork()
    assert [m.text async for m in other.iter_path()] == [str(n) for n in range(4_000)]
    assert [c.label for c in await other.checkpoints()] == ["end"]


@examples(25)
@given(
    parents=st.lists(st.integers(0, 30), min_size=1, max_size=12),
    labels=st.lists(st.integers(0, 30), max_size=4),
    at=st.integers(0, 30),
)
async def test_a_fork_of_any_tree_is_its_path(
    parents: list[int], labels: list[int], at: int
) -> None:
    async with sessiontree.open_store(":memory:") as store:
        chat = await store.conversation()
        ends: list[int | None] = [None]
        for number, parent in enumerate(parents):
            said = [user(f"q{number}"), call("c"), result("c")] if number % 2 else [user("q")]
            ends.append((await chat.append(said, parent=ends[parent % len(ends)]))[-1].id)
        for number, label in enumerate(labels):
            place = ends[label % len(ends)]
            if place is not None:
                await chat.checkpoint(f"l{number}", at=place)
        leaf = ends[1:][at % len(parents)]
        other = await chat.fork(leaf)
        path = await chat.path(leaf)
        assert [seen(m) for m in await other.path()] == [seen(m) for m in path]
        on_path = [c.label for c in await chat.checkpoints() if c.message_id in ids(path)]
        assert [c.label for c in await other.checkpoints()] == on_path
        assert len(await other.tree()) == len(path)
        assert await store.check() == []
