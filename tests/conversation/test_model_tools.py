"""A model that sets checkpoints and goes back to them, driven as a harness drives it."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from talk import asks, assistant, examples, result, texts, user
from test_crash import child, line_of, run_until_ready_and_kill

import sessiontree
from sessiontree import (
    BadArgument,
    CheckpointExists,
    Conversation,
    HeadMoved,
    ModelTools,
    OrphanToolResult,
    Store,
    Turn,
    violations,
)
from sessiontree.core.rules import PROVIDERS
from sessiontree.formats import codec
from sessiontree.store import conversations

MARK = ("checkpoint", {"label": "before"})
BACK = ("rewind", {"label": "before", "report": "a dead end: 403"})


async def settle(
    chat: Conversation, turn: Turn, message: dict[str, Any], format: str | None = None
) -> list[sessiontree.conversation.tools.ToolAnswer]:
    """What a harness does with an answer of the model: run its calls, one after the other."""
    tools = ModelTools(chat)
    reply = await turn.add(message, format=format)
    answers: list[Any] = []
    for call in reply.tool_calls:
        if tools.handles(call.name):
            answers.append(await tools.call(call, turn))
        else:
            await turn.answer(call, f"{call.name} ran")
    return answers


async def labels(chat: Conversation) -> dict[str, int]:
    return {each.label: each.message_id for each in await chat.checkpoints()}


async def refused_by(chat: Conversation) -> list[str]:
    """What any provider would refuse in a window of the head."""
    found: list[str] = []
    for target in PROVIDERS:
        window = await chat.window(target=target)
        for each in violations(window.messages, target, system=window.system, thinking=False):
            found.append(str(each))
    return found


# --- The way it goes --------------------------------------------------------------------------


async def test_a_model_marks_a_place_explores_and_goes_back_with_its_report(
    chat: Conversation,
) -> None:
    async with chat.turn() as turn:
        await turn.add(user("refund it"))
        await settle(chat, turn, asks(MARK))
        marked = turn.head
        assert await labels(chat) == {"before": marked}
        await settle(chat, turn, asks(("read", {"file": "a"})))
        await settle(chat, turn, asks(("read", {"file": "b"})))
        (answer,) = await settle(chat, turn, asks(BACK))
        left = answer.message.id
        assert (answer.rewinds, answer.is_error) == ("before", False)
        assert turn.head == chat.head != left
        digest = await chat.message(chat.head or 0)
        assert (digest.parent_id, digest.ref_id) == (marked, left)
        assert digest.meta == {"sessiontree": {"kind": "digest"}}
        assert digest.text.endswith("a dead end: 403")
        assert await refused_by(chat) == []
        await turn.add(assistant("Refused: 403."))
    assert texts(await chat.path())[-2:] == [digest.text, "Refused: 403."]
    assert [c.name for m in await chat.path(left) for c in m.tool_calls] == [
        "checkpoint", "read", "read", "rewind",
    ]  # fmt: skip


async def test_going_back_can_be_undone(chat: Conversation) -> None:
    async with chat.turn() as turn:
        await settle(chat, turn, asks(MARK))
        (answer,) = await settle(chat, turn, asks(BACK))
    back = chat.head
    assert (await chat.undo()) == answer.message
    redone = await chat.redo()
    assert redone is not None
    assert redone.id == back


async def test_a_window_of_the_turn_shows_the_path_it_has_come_back_to(chat: Conversation) -> None:
    async with chat.turn() as turn:
        await turn.add(user("go"))
        await settle(chat, turn, asks(MARK))
        await settle(chat, turn, asks(("read", {})))
        before = await chat.window(target="anthropic", turn=turn)
        await settle(chat, turn, asks(BACK))
        after = await chat.window(target="anthropic", turn=turn)
        assert "read ran" in str(before.messages)
        assert "read ran" not in str(after.messages)
        assert "a dead end" in str(after.messages[-1])
        assert after.ready


# --- Beside other calls -------------------------------------------------------------------------


async def test_a_checkpoint_beside_other_calls_is_set_where_the_step_ends(
    chat: Conversation,
) -> None:
    tools = ModelTools(chat)
    async with chat.turn() as turn:
        await turn.add(user())
        reply = await turn.add(asks(MARK, ("read", {})))
        answer = await tools.call(reply.tool_calls[0], turn)
        assert (answer.message.id, await labels(chat)) == (0, {})
        last = await turn.answer(reply.tool_calls[1], "text")
    assert await labels(chat) == {"before": last.id}


async def test_the_head_moves_back_when_every_call_beside_it_has_its_result(
    chat: Conversation,
) -> None:
    tools = ModelTools(chat)
    async with chat.turn() as turn:
        await settle(chat, turn, asks(MARK))
        marked = turn.head
        reply = await turn.add(asks(("read", {}), BACK, ("write", {})))
        read, back, write = reply.tool_calls
        await tools.call(back, turn)
        await turn.add(result("c2", "written"))
        assert (turn.head, chat.head) == (marked, marked)
        last = await turn.answer(read, "text")
        del write
        assert turn.head == chat.head != last.id
    left = await chat.path(last.id)
    assert [r.id for m in left for r in m.tool_results] == ["c0", "c1", "c2", "c0"]
    assert (await chat.message(chat.head or 0)).parent_id == marked


async def test_calls_that_run_at_the_same_time_are_all_answered_before_the_move(
    chat: Conversation,
) -> None:
    tools = ModelTools(chat)
    async with chat.turn() as turn:
        await settle(chat, turn, asks(MARK))
        again = ("checkpoint", {"label": "again"})
        reply = await turn.add(asks(BACK, again, again, BACK, ("read", {})))
        *ours, read = reply.tool_calls
        done = await asyncio.gather(
            turn.answer(read, "text"), *(tools.call(call, turn) for call in ours)
        )
    answers = done[1:]
    assert sorted(a.rewinds or "" for a in answers) == ["", "", "", "before"]
    assert sum(a.is_error for a in answers) == 2, "the second of each is refused"
    assert (await labels(chat)).keys() == {"before", "again"}
    assert (await chat.message(chat.head or 0)).meta["sessiontree"]["kind"] == "digest"


async def test_a_place_marked_and_left_in_one_message_is_the_end_of_that_step(
    chat: Conversation,
) -> None:
    async with chat.turn() as turn:
        *_, answer = await settle(chat, turn, asks(MARK, BACK))
    assert not answer.is_error
    digest = await chat.message(chat.head or 0)
    assert digest.parent_id == answer.message.id == (await labels(chat))["before"]


async def test_a_step_that_is_interrupted_after_the_answer_still_goes_back(
    chat: Conversation,
) -> None:
    async with chat.turn() as turn:
        await settle(chat, turn, asks(MARK))
        reply = await turn.add(asks(BACK, ("sleep", {})))
        await ModelTools(chat).call(reply.tool_calls[0], turn)
        await turn.interrupt()
    assert (await chat.message(chat.head or 0)).text.endswith("a dead end: 403")


# --- What cannot be done --------------------------------------------------------------------------


async def test_an_unknown_label_is_told_with_the_labels_there_are_and_nothing_moves(
    chat: Conversation,
) -> None:
    await chat.append(user())
    await chat.checkpoint("other")
    async with chat.turn() as turn:
        (answer,) = await settle(chat, turn, asks(BACK))
        assert (answer.is_error, answer.rewinds) == (True, None)
        assert "no checkpoint 'before'. The checkpoints: 'other'" in answer.text
        assert answer.text in answer.message.raw
        assert turn.head == chat.head == answer.message.id


async def test_a_label_that_is_taken_stays_where_it_is_and_the_model_is_told(
    chat: Conversation,
) -> None:
    async with chat.turn() as turn:
        await settle(chat, turn, asks(MARK))
        before = await labels(chat)
        twice = await settle(chat, turn, asks(MARK, MARK))
    assert [answer.is_error for answer in twice] == [True, True]
    assert "already" in twice[0].text
    assert await labels(chat) == before


async def test_of_two_equal_labels_in_one_message_the_first_is_set(chat: Conversation) -> None:
    async with chat.turn() as turn:
        answers = await settle(chat, turn, asks(MARK, MARK))
    assert [answer.is_error for answer in answers] == [False, True]
    assert await labels(chat) == {"before": chat.head}


async def test_a_label_that_waits_for_the_model_is_taken_for_the_caller(
    chat: Conversation,
) -> None:
    async with chat.turn() as turn:
        reply = await turn.add(asks(MARK, ("read", {})))
        await ModelTools(chat).call(reply.tool_calls[0], turn)
        with pytest.raises(CheckpointExists):
            await turn.checkpoint("before")
        await turn.answer(reply.tool_calls[1], "text")


@pytest.mark.parametrize("arguments", ["", "null", "{", '"x"', "[]", '{"label": []}', "{}"])
async def test_garbage_arguments_are_told_and_the_step_is_saved(
    chat: Conversation, arguments: str
) -> None:
    async with chat.turn() as turn:
        calls = asks(("rewind", arguments), ("checkpoint", arguments))
        answers = await settle(chat, turn, calls)
    assert all(answer.is_error for answer in answers)
    assert chat.head == answers[-1].message.id
    assert await chat.checkpoints() == []


async def test_a_call_of_another_tool_or_turn_or_time_is_the_harness_mistake(
    store: Store, chat: Conversation
) -> None:
    tools = ModelTools(chat)
    other = await store.conversation("other")
    async with chat.turn() as turn, other.turn() as foreign:
        reply = await turn.add(asks(MARK, ("read", {})))
        with pytest.raises(BadArgument, match="none of these tools"):
            await tools.call(reply.tool_calls[1], turn)
        with pytest.raises(BadArgument, match=f"conversation {other.id}"):
            await tools.call(reply.tool_calls[0], foreign)
        await tools.call(reply.tool_calls[0], turn)
        with pytest.raises(OrphanToolResult):
            await tools.call(reply.tool_calls[0], turn)
        await turn.interrupt()


# --- Other writers, crashes --------------------------------------------------------------------


async def test_where_another_writer_was_first_the_step_is_a_branch_and_the_head_its(
    store: Store, chat: Conversation
) -> None:
    await chat.append(user())
    await chat.checkpoint("before")
    async with chat.turn() as turn:
        reply = await turn.add(asks(BACK))
        (theirs,) = await (await store.open(chat.id)).append(user("me first"))
        with pytest.raises(HeadMoved) as moved:
            await ModelTools(chat).call(reply.tool_calls[0], turn)
    assert (await chat.refresh()).head == theirs.id
    assert [m.role for m in moved.value.saved] == ["assistant", "tool"]


async def test_a_label_that_is_gone_by_the_end_of_the_step_leaves_the_head_there(
    chat: Conversation, file: Path
) -> None:
    tools = ModelTools(chat)
    async with chat.turn() as turn:
        await settle(chat, turn, asks(MARK))
        reply = await turn.add(asks(BACK, ("read", {})))
        await tools.call(reply.tool_calls[0], turn)
        with sqlite3.connect(file) as db:
            assert db.execute("DELETE FROM checkpoint").rowcount == 1
        db.close()
        last = await turn.answer(reply.tool_calls[1], "text")
        assert turn.head == chat.head == last.id


async def test_a_label_that_another_takes_meanwhile_is_told_once_and_the_step_is_saved_then(
    store: Store, chat: Conversation
) -> None:
    await chat.append(user())
    tools = ModelTools(chat)
    async with chat.turn() as turn:
        reply = await turn.add(asks(MARK, ("read", {})))
        await tools.call(reply.tool_calls[0], turn)
        await (await store.open(chat.id)).checkpoint("before")
        with pytest.raises(CheckpointExists):
            await turn.answer(reply.tool_calls[1], "text")
        last = await turn.answer(reply.tool_calls[1], "text")
    assert chat.head == last.id
    assert (await labels(chat))["before"] != last.id


async def test_when_going_back_fails_the_step_is_not_saved_either(
    chat: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with chat.turn() as turn:
        await settle(chat, turn, asks(MARK))
        marked = turn.head
        reply = await turn.add(asks(BACK))

        def fails(*_: object) -> None:
            raise sessiontree.StoreFull("no room")

        monkeypatch.setattr(conversations, "rewind", fails)
        with pytest.raises(sessiontree.StoreFull):
            await ModelTools(chat).call(reply.tool_calls[0], turn)
        assert (await chat.refresh()).head == turn.head == marked
        assert len(await chat.leaves()) == 1
        monkeypatch.undo()
        answer = await ModelTools(chat).call(reply.tool_calls[0], turn)
        assert answer.rewinds == "before"
    assert (await chat.message(chat.head or 0)).parent_id == marked


async def test_a_crash_after_the_answer_goes_back_when_the_other_call_is_settled(
    file: Path,
) -> None:
    run_until_ready_and_kill("go_back_beside_another_call", file)
    async with sessiontree.open_store(file) as store:
        chat = await store.conversation("chat", create=False)
        marked = (await labels(chat))["before"]
        assert texts(await chat.path())[-1] == "explore"
        resume = await chat.resume()
        assert [call.name for call in resume.interrupted] == ["pay"]
        async with chat.turn(resume=resume) as turn:
            *_, last = await turn.interrupt()
        assert (await chat.path(last.id))[-1].is_boundary
        digest = (await chat.path())[-1]
        assert (digest.parent_id, digest.ref_id) == (marked, last.id)
        assert digest.text.endswith("a dead end")
        assert await refused_by(chat) == []
        assert await store.check() == []


@pytest.mark.parametrize("seed", range(6))
async def test_killed_at_any_time_no_step_stands_that_tells_of_a_rewind_which_never_came(
    file: Path, seed: int
) -> None:
    with child("explore_and_go_back", file) as process:
        assert line_of(process) == "ready"
        await asyncio.sleep(random.Random(seed).uniform(0.0, 0.25))
        process.kill()
        assert process.wait() == -9
    async with sessiontree.open_store(file) as store:
        chat = await store.conversation("chat", create=False)
        assert await store.check() == []
        tree = await chat.tree()
        messages = {node.id: await chat.message(node.id) for node in tree.nodes}
        came = {m.ref_id for m in messages.values() if kind_of(m) == "digest"}
        ends = {m.id for m in messages.values() if m.role == "tool" and m.is_boundary}
        assert came == ends
        assert set((await labels(chat)).values()) - ends == {(await chat.path())[0].id}
        assert len(await chat.checkpoints()) == len(ends) + 1
        resume = await chat.resume()
        async with chat.turn(resume=resume) as turn:
            closed = await turn.interrupt()
        went = [m for m in resume.draft if kind_of(m) == "rewind"]
        if went:
            assert (await chat.path())[-1].ref_id == closed[-1].id
        elif closed:
            assert chat.head == closed[-1].id
        assert await refused_by(chat) == []


def kind_of(message: sessiontree.Message) -> str | None:
    return message.meta.get("sessiontree", {}).get("kind")


# --- Any story ------------------------------------------------------------------------------------

LABELS = st.sampled_from(["a", "b", "c"])
CALLS = st.one_of(
    st.tuples(st.just("checkpoint"), st.fixed_dictionaries({"label": LABELS})),
    st.tuples(st.just("rewind"), st.fixed_dictionaries({"label": LABELS, "report": st.just("r")})),
    st.tuples(st.just("read"), st.just({"file": "f"})),
    st.tuples(st.sampled_from(["checkpoint", "rewind"]), st.just({"label": 1})),
)
STEPS = st.tuples(
    st.lists(CALLS, min_size=1, max_size=4), st.booleans(), st.sampled_from(PROVIDERS)
)


class Told:
    """What a conversation should be after a story: message ids by label, and the head."""

    def __init__(self) -> None:
        self.labels: dict[str, int] = {}

    def step(self, calls: list[tuple[str, Any]], end: int) -> int | None:
        """The labels that a step sets; where the head should go back to."""
        known = set(self.labels)
        back: str | None = None
        fresh: list[str] = []
        for name, asked in calls:
            label = asked.get("label")
            if name == "checkpoint" and label not in known and isinstance(label, str):
                known.add(label)
                fresh.append(label)
            elif name == "rewind" and back is None and label in known and "report" in asked:
                back = label
        self.labels |= dict.fromkeys(fresh, end)
        return None if back is None else self.labels[back]


async def tell(folder: str, story: list[Any]) -> None:
    told = Told()
    path = Path(folder) / "story.db"
    async with sessiontree.open_store(path, durability="normal") as store:
        chat = await store.conversation("chat", system="Be brief.")
        async with chat.turn() as turn:
            await turn.add(user("go"))
            for calls, at_once, format in story:
                end = await one_step(chat, turn, calls, at_once, format)
                back = told.step(calls, end)
                at = await chat.message(chat.head or 0)
                assert turn.head == at.id
                assert (at.id if back is None else at.parent_id) == (end if back is None else back)
                assert await labels(chat) == told.labels
                assert await refused_by(chat) == []
        assert await store.check() == []


async def one_step(
    chat: Conversation, turn: Turn, calls: list[tuple[str, Any]], at_once: bool, format: str
) -> int:
    """Say it in a provider's own format, answer in order; the id of the message that ends it."""
    parts = [
        {"type": "tool_call", "id": f"c{at}", "name": name, "arguments": given}
        for at, (name, given) in enumerate(calls)
    ]
    before = {message.id for message in await chat.leaves()}
    natives = codec(format).encode("assistant", parts)
    made = [
        call for native in natives for call in (await turn.add(native, format=format)).tool_calls
    ]
    tools = ModelTools(chat)
    work = [
        tools.call(call, turn) if tools.handles(call.name) else turn.answer(call, "ran")
        for call in made
    ]
    if at_once:
        await asyncio.gather(*work)
    else:
        for each in work:
            await each
    fresh = [m for m in await chat.leaves() if m.id not in before]
    ends = [m for m in fresh if m.role == "tool"] or [await chat.message(fresh[-1].ref_id or 0)]
    return ends[-1].id


@given(st.lists(STEPS, min_size=1, max_size=6))
@examples(25)
def test_after_any_story_labels_head_and_windows_are_right(story: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(tell(folder, story))
