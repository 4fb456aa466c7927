"""Turns: what is drafted, what is saved, when, and under which keys."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from talk import assistant, call, ids, result, step, texts, user

import sessiontree
from sessiontree import Conversation, Store


def drafts(file: Path) -> int:
    db = sqlite3.connect(file)
    (count,) = db.execute("SELECT count(*) FROM draft").fetchone()
    db.close()
    return count


async def test_a_prompt_is_saved_at_once_and_a_step_when_its_last_result_has_come(
    chat: Conversation, file: Path
) -> None:
    async with chat.turn() as turn:
        prompt = await turn.add(user("q"))
        assert prompt.id == chat.head == turn.head
        calling = await turn.add(call("a", "b"))
        assert (calling.id, calling.open_calls) == (0, 2)
        assert [c.id for c in turn.open_calls] == ["a", "b"]
        first = await turn.add(result("b"))
        assert (first.id, drafts(file)) == (0, 2)
        assert await chat.path() == [prompt]
        assert [m.role for m in turn.pending] == ["assistant", "tool"]
        last = await turn.add(result("a"))
        assert (last.id, turn.head, turn.pending) == (chat.head, chat.head, [])
        assert drafts(file) == 0
        await turn.add(assistant("done"))
    assert [m.open_calls for m in await chat.path()] == [0, 2, 1, 0, 0]
    assert [m.cause for m in await chat.history()] == ["append"] * 3


async def test_a_user_message_between_a_call_and_its_result_waits_with_them(
    chat: Conversation,
) -> None:
    async with chat.turn() as turn:
        await turn.add(call("a"))
        between = await turn.add(user("hurry"))
        assert between.id == 0
        await turn.add(result("a"))
    assert [m.role for m in await chat.path()] == ["assistant", "user", "tool"]
    inner = (await chat.path())[1]
    with pytest.raises(sessiontree.NotABoundary):
        await chat.branch(inner.id)


async def test_ids_may_be_used_again_from_turn_to_turn_and_within_one(chat: Conversation) -> None:
    for _ in range(3):
        async with chat.turn() as turn:
            await turn.add(call("call_0"))
            await turn.add(result("call_0"))
            await turn.add(call("call_0", "call_0"))
            await turn.add(result("call_0"))
            await turn.add(result("call_0"))
    assert [m.open_calls for m in await chat.path()] == [1, 0, 2, 1, 0] * 3


async def test_calls_without_ids_are_answered_by_name(chat: Conversation) -> None:
    async with chat.turn() as turn:
        await turn.add(call(None, name="f"))
        await turn.add(result(None, name="f"))
        await turn.add(call(None, None, name="g"))
        await turn.add(result(None, name="g"))
        await turn.add(result(None, name="g"))
    assert (await chat.path())[-1].is_boundary


async def test_an_interruption_answers_each_open_call_in_the_format_of_the_call(
    store: Store,
) -> None:
    anthropic = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}],
    }
    chat = await store.conversation(format="anthropic")
    async with chat.turn() as turn:
        await turn.add(anthropic)
        await turn.add(call("call_1", "call_2"), format="openai_chat")
        await turn.add(result("call_2"), format="openai_chat")
        saved = await turn.interrupt()
        assert await turn.interrupt() == []
    assert [m.format for m in saved] == [
        "anthropic", "openai_chat", "openai_chat", "anthropic", "openai_chat",
    ]  # fmt: skip
    ours = saved[3:]
    assert [m.meta for m in ours] == [{"sessiontree": {"kind": "interrupted"}}] * 2
    assert [r.id for m in ours for r in m.tool_results] == ["toolu_1", "call_1"]
    assert all("nterrupted" in m.raw for m in ours)
    assert chat.head == saved[-1].id


async def test_what_an_interruption_says_may_be_given(chat: Conversation) -> None:
    async with chat.turn() as turn:
        await turn.add(call("c"))
        *_, said = await turn.interrupt("stopped by the user 🛑")
    assert "stopped by the user 🛑" in said.native["content"]


async def test_a_checkpoint_of_a_turn_is_there_with_its_step_or_not_at_all(
    chat: Conversation,
) -> None:
    async with chat.turn() as turn:
        await turn.add(user())
        await turn.checkpoint("asked", "why")
        (asked,) = await chat.checkpoints()
        assert (asked.message_id, asked.note) == (turn.head, "why")
        await turn.add(call("c"))
        await turn.checkpoint("done")
        assert len(await chat.checkpoints()) == 1
        await turn.add(result("c"))
    assert {c.label: c.message_id for c in await chat.checkpoints()}["done"] == chat.head


async def test_a_label_that_is_taken_is_told_when_it_is_asked_for(chat: Conversation) -> None:
    await chat.append(user())
    await chat.checkpoint("taken")
    async with chat.turn() as turn:
        for message in (call("c"), result("c")):
            with pytest.raises(sessiontree.CheckpointExists):
                await turn.checkpoint("taken")
            await turn.add(message)
        await turn.checkpoint("taken", replace=True)
    assert [c.message_id for c in await chat.checkpoints()] == [chat.head]


async def test_a_label_that_another_takes_meanwhile_costs_the_label_and_not_the_step(
    chat: Conversation,
) -> None:
    await chat.append(user())
    async with chat.turn() as turn:
        await turn.add(call("c"))
        await turn.checkpoint("wanted")
        with pytest.raises(sessiontree.CheckpointExists):
            await turn.checkpoint("wanted")
        await chat.checkpoint("wanted")
        with pytest.raises(sessiontree.CheckpointExists):
            await turn.add(result("c"))
        assert len(turn.pending) == 1
        await turn.add(result("c"))
    assert len(await chat.path()) == 3


async def test_leaving_a_turn_with_open_calls_tells_them_and_drops_nothing(
    chat: Conversation, file: Path
) -> None:
    turn = chat.turn()
    await turn.__aenter__()
    await turn.add(user("kept"))
    await turn.add(call("c"))
    with pytest.raises(sessiontree.UnsettledTurn, match="resume"):
        await turn.__aexit__(None, None, None)
    assert texts(await chat.path()) == ["kept"]
    assert drafts(file) == 1


async def test_turns_that_go_on_are_not_taken_for_crashed_ones(store: Store) -> None:
    chat, other = await store.conversation("chat"), await store.conversation("chat")
    async with chat.turn() as turn:
        await turn.add(call("c"))
        assert (await other.resume()).interrupted == []
        await other.append(user("elsewhere"))
        assert len(turn.pending) == 1
        with pytest.raises(sessiontree.HeadMoved):
            await turn.add(result("c"))


async def test_the_newest_of_several_crashed_turns_goes_on_and_the_others_are_let_go(
    chat: Conversation, file: Path
) -> None:
    for name in ("first", "second", "third"):
        with pytest.raises(sessiontree.UnsettledTurn):
            async with chat.turn() as turn:
                await turn.add(call(name))
    resume = await chat.resume()
    assert [c.id for c in resume.interrupted] == ["first", "second", "third"]
    async with chat.turn(resume=resume) as turn:
        assert [c.id for c in turn.open_calls] == ["third"]
        await turn.add(call("fourth"))
        assert drafts(file) == 4
        await turn.add(result("fourth"))
        await turn.add(result("third"))
    assert drafts(file) == 0
    assert len(await chat.path()) == 4


# ---- keys ----------------------------------------------------------------------------


SAID = [user("q"), call("a", "b"), result("b"), result("a"), assistant("done")]


@pytest.mark.parametrize("stop", [0, 1, 4, 5])
async def test_a_whole_turn_that_is_played_again_saves_nothing_twice(
    store: Store, stop: int
) -> None:
    """As a harness does that crashed after a save and begins its turn again."""
    chat = await store.conversation("chat")
    async with chat.turn() as turn:
        for number, message in enumerate(SAID[:stop]):
            await turn.add(message, key=str(number))
    chat = await store.conversation("chat")
    async with chat.turn() as turn:
        for number, message in enumerate(SAID):
            saved = await turn.add(message, key=str(number))
    assert saved.id == chat.head == turn.head
    assert [m.key for m in await chat.path()] == list("01234")
    assert len(await chat.tree()) == 5


@pytest.mark.parametrize("stop", [2, 3])
async def test_a_call_that_was_closed_as_interrupted_is_not_answered_again(
    chat: Conversation, stop: int
) -> None:
    async with chat.turn() as turn:
        for number, message in enumerate(SAID[:stop]):
            await turn.add(message, key=str(number))
        await turn.interrupt()
    count = len(await chat.tree())
    async with chat.turn() as turn:
        for number, message in enumerate(SAID[:stop]):
            assert (await turn.add(message, key=str(number))).key == str(number)
        with pytest.raises(sessiontree.OrphanToolResult):
            await turn.add(SAID[3], key="3")
        assert turn.pending == []
    assert len(await chat.tree()) == count


async def test_a_known_key_is_the_first_message_of_that_key(chat: Conversation) -> None:
    (first,) = await chat.append(user("one"), keys=["k"])
    await chat.append(user("two"))
    head = chat.head
    assert await chat.append(user("other words"), keys=["k"]) == [first]
    async with chat.turn() as turn:
        assert await turn.add(user("other words again"), key="k") == first
    assert (chat.head, len(await chat.tree())) == (head, 2)
    assert await chat.find_keys(["k", "none"]) == {"k": first.id}


async def test_what_is_new_goes_on_after_what_was_known(chat: Conversation) -> None:
    saved = await chat.append([user("q"), *step()], keys=["q", "c", "r"])
    again = await chat.append([user("q"), *step(), assistant("a")], keys=["q", "c", "r", "a"])
    assert ids(again)[:3] == ids(saved)
    assert again[3].parent_id == saved[2].id == (await chat.path())[2].id
    assert len(await chat.tree()) == 4


async def test_what_is_new_goes_on_after_what_was_known_wherever_the_head_is(
    chat: Conversation,
) -> None:
    (first,) = await chat.append(user("q"), keys=["q"])
    await chat.append(user("further on"))
    head = chat.head
    _, answer = await chat.append([user("q"), assistant("a")], keys=["q", None])
    assert answer.parent_id == first.id
    assert chat.head == answer.id, "nobody else moved it"
    await chat.undo()
    assert chat.head == head


async def test_what_is_new_is_whole_without_what_was_known(chat: Conversation) -> None:
    await chat.append([user("q"), *step()], keys=["q", "c", "r"])
    before = ids([m async for m in chat.iter_messages()])
    with pytest.raises(sessiontree.OrphanToolResult):
        await chat.append([user("new"), *step()], keys=[None, "c", None])
    with pytest.raises(sessiontree.UnsettledTurn):
        await chat.append([user("new"), *step()], keys=[None, None, "r"])
    assert ids([m async for m in chat.iter_messages()]) == before


async def test_the_head_goes_to_the_last_that_was_saved_not_to_one_that_was_known(
    chat: Conversation,
) -> None:
    await chat.append([user("q"), *step()], keys=["q", "c", "r"])
    saved = await chat.append([user("new"), user("known")], keys=[None, "c"])
    assert saved[1].open_calls == 1, "the call of that key, inside its step"
    assert chat.head == saved[0].id
    assert (await chat.path())[-1].is_boundary


async def test_a_key_belongs_to_its_conversation(store: Store) -> None:
    chats = [await store.conversation(owner=owner) for owner in ("ada", "bob")]
    for chat in chats:
        await chat.append(user(chat.owner), keys=["k"])
    assert [texts(await chat.path()) for chat in chats] == [["ada"], ["bob"]]


async def test_the_same_key_from_many_tasks_saves_once(store: Store) -> None:
    chats = [await store.conversation("chat") for _ in range(20)]
    done = await asyncio.gather(
        *(chat.append([user(), *step()], keys=["u", "c", "r"]) for chat in chats)
    )
    assert len({tuple(ids(saved)) for saved in done}) == 1
    assert len(await chats[0].tree()) == 3
    assert {chat.head for chat in chats} == {done[0][-1].id}


async def test_a_retry_by_a_handle_that_has_seen_the_head_keeps_it(chat: Conversation) -> None:
    await chat.append(user("one"), keys=["k"])
    (last,) = await chat.append(user("two"))
    await chat.append(user("one"), keys=["k"])
    assert chat.head == last.id
    (third,) = await chat.append(user("three"))
    assert third.parent_id == last.id


async def test_a_retry_by_a_handle_that_missed_its_own_save_goes_on_after_it(
    store: Store,
) -> None:
    chat, stale = await store.conversation("chat"), await store.conversation("chat")
    (saved,) = await chat.append(user("one"), keys=["k"])
    assert stale.head is None
    await stale.append(user("one"), keys=["k"])
    assert stale.head == saved.id
    (after,) = await stale.append(user("two"))
    assert after.parent_id == saved.id


# ---- facts that ride along -----------------------------------------------------------


async def test_usage_and_model_are_kept_also_through_a_draft(chat: Conversation) -> None:
    usage = {"input_tokens": 12, "cache": {"read": 3}}
    async with chat.turn() as turn:
        drafted = await turn.add(call("c"), usage=usage, model="m-1", key="k")
        assert (drafted.usage, drafted.model, drafted.key) == (usage, "m-1", "k")
        await turn.add(result("c"))
    first = (await chat.path())[0]
    assert (first.usage, first.model, first.key) == (usage, "m-1", "k")


async def test_the_answer_of_a_provider_brings_its_own_usage_and_model(
    chat: Conversation,
) -> None:
    answer: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": [{"type": "text", "text": "hi"}],
        "usage": {"input_tokens": 5, "output_tokens": 1},
    }
    (saved,) = await chat.append(answer)
    assert (saved.model, saved.usage) == ("claude-x", answer["usage"])
    assert saved.native == answer


# ---- drafts that others see ----------------------------------------------------------


async def test_a_clock_that_steps_back_does_not_turn_a_draft_around(
    chat: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(10**15, 0, -1_000_000))
    monkeypatch.setattr("sessiontree.conversation.turn.now", lambda: next(clock))
    for names in (["a", "b"], ["c", "d"]):
        turn = chat.turn()
        await turn.__aenter__()
        await turn.add(call(*names))
        await turn.add(result(names[0]))
        with pytest.raises(sessiontree.UnsettledTurn):
            await turn.__aexit__(None, None, None)
    resume = await chat.resume()
    assert [m.role for m in resume.draft] == ["assistant", "tool"] * 2
    assert [c.id for c in resume.interrupted] == ["d", "b"], "by the clock, as far as it goes"
    async with chat.turn(resume=resume) as turn:
        await turn.interrupt()
    assert (await chat.path())[-1].is_boundary


async def test_a_draft_that_another_process_let_go_is_kept_again_with_what_comes_next(
    store: Store, file: Path
) -> None:
    """The other took the turn for a crashed one: it cannot know that it goes on."""
    chat = await store.conversation("chat")
    async with sessiontree.open_store(file) as elsewhere, chat.turn() as turn:
        await turn.add(user("q"))
        await turn.add(call("a", "b"))
        other = await elsewhere.conversation("chat")
        assert len((await other.resume()).interrupted) == 2
        await other.append(user("elsewhere"))
        assert drafts(file) == 0
        await turn.add(result("a"))
        assert [c.id for c in (await other.resume()).interrupted] == ["b"]
        assert [m.role for m in (await other.resume()).draft] == ["assistant", "tool"]
        with pytest.raises(sessiontree.HeadMoved):
            await turn.add(result("b"))
    assert drafts(file) == 0
