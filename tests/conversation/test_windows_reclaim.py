"""Reclaims of a stored conversation: marks that are appended together or not at all, and that
a move of the head undoes; recovery from a refusal; and resuming within a budget."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from talk import assistant, call, ids, result, user
from windowing import LOG, busy, count, picture, said, violations, work

import sessiontree
from sessiontree import (
    BadArgument,
    Budget,
    Conversation,
    HeadMoved,
    ReclaimRefused,
    Store,
    WindowError,
)
from sessiontree.core.reclaim import Ask


async def brief(ask: Ask) -> str:
    return f"a summary of {ask.turns} turns"


async def shown(chat: Conversation) -> None:
    """Turns with a large image each, and a question that waits."""
    for number in range(4):
        await chat.append([picture(text=f"look {number}"), assistant("grey")])
    await chat.append(user("now"))


# --- Each kind --------------------------------------------------------------------------------


async def test_eliding_leaves_a_line_in_the_place_of_old_results(chat: Conversation) -> None:
    await busy(chat)
    before = await chat.window()
    done = await chat.reclaim("elide", protect=2_500, save=1_000)
    after = await chat.window()
    assert [mark.role for mark in done.marks] == ["mark"]
    assert said(after).count("was elided") == 4
    assert (done.before, done.after) == (before.tokens, after.tokens)
    assert violations(after) == []


async def test_images_before_the_newest_turn_become_a_line_each(chat: Conversation) -> None:
    await shown(chat)
    done = await chat.reclaim("images", keep=1)
    after = await chat.window()
    assert len(done.marks) == 1
    assert said(after).count("data:image/png") == 1
    assert said(after).count("image left out") == 3
    assert done.after == after.tokens < done.before


async def test_cutting_begins_later_windows_with_the_newest_turns(chat: Conversation) -> None:
    await busy(chat)
    done = await chat.reclaim("cut", keep=3_000)
    after = await chat.window()
    assert done.after == after.tokens <= 3_000
    assert after.ids[0] == done.marks[0].row.ref_id
    assert "a cut" in after.dropped.why


async def test_a_summary_stands_for_old_turns_and_the_next_one_for_it(chat: Conversation) -> None:
    await busy(chat)
    asked: list[Ask] = []

    async def summarise(ask: Ask) -> str:
        asked.append(ask)
        return f"summary {len(asked)}"

    await chat.reclaim("summarise", keep=1_500, summarise=summarise)
    first = await chat.window()
    assert "summary 1" in said(first)
    for number in range(10, 14):
        await chat.append([assistant("so"), *work(number), user("and?")])
    await chat.reclaim("summarise", keep=1_500, summarise=summarise)
    second = await chat.window()
    assert "summary 2" in said(second)
    assert "summary 1" not in said(second)
    assert "summary 1" in asked[1].text
    assert "question 11" in asked[1].text
    assert violations(asked[1].window) == violations(second) == []


async def test_a_summariser_may_be_a_plain_function(chat: Conversation) -> None:
    await busy(chat)
    await chat.reclaim("summarise", keep=10, summarise=lambda ask: f"{ask.turns} turns")
    assert "6 turns" in said(await chat.window())


async def test_what_is_not_worth_it_is_refused_with_why_and_nothing_is_written(
    chat: Conversation,
) -> None:
    await chat.append([user("a"), assistant("b"), user("c")])
    before = await chat.history()
    for kind in ("elide", "images", "cut"):
        done = await chat.reclaim(kind)
        assert done.marks == []
        assert done.refused[0].why
        assert done.before == done.after > 0
    done = await chat.reclaim("summarise", summarise=brief)
    assert (done.marks, len(done.refused)) == ([], 1)
    assert await chat.history() == before


async def test_an_empty_conversation_has_nothing_to_reclaim(chat: Conversation) -> None:
    for kind in ("elide", "images", "cut", "auto"):
        done = await chat.reclaim(kind, target="anthropic", budget=100)
        assert done.marks == []
    assert chat.head is None


# --- The ladder -------------------------------------------------------------------------------


async def ladder(chat: Conversation) -> None:
    """Old results, old images and much talk."""
    await busy(chat, 3)
    await chat.append(assistant("so"))
    await shown(chat)
    for number in range(20):
        await chat.append([assistant("talk " * 40), user(f"more {number}")])


async def test_the_ladder_appends_its_marks_in_one_transaction_and_one_undo_takes_all_back(
    chat: Conversation,
) -> None:
    await ladder(chat)
    head, before, moves = chat.head, await chat.window(), len(await chat.history())
    done = await chat.reclaim("auto", budget=1_200, summarise=brief)
    kinds = [mark.native["kind"] for mark in done.marks]
    assert kinds == ["elide", "images", "summary"]
    after = await chat.window(1_200)
    assert after.tokens == done.after <= 0.7 * 1_200
    assert violations(after) == []
    assert "a summary of" in said(after)
    (move,) = (await chat.history())[moves:]
    assert (move.cause, move.from_id, move.to_id) == ("reclaim", head, done.marks[-1].id)
    assert (await chat.undo()).id == head
    assert (await chat.window()).messages == before.messages
    assert (await chat.redo()).id == done.marks[-1].id
    assert (await chat.window(1_200)).messages == after.messages


async def test_below_the_threshold_nothing_happens(chat: Conversation) -> None:
    await busy(chat)
    tokens = (await chat.window()).tokens
    done = await chat.reclaim("auto", budget=int(tokens / 0.7) + 2)
    assert (done.marks, done.refused) == ([], [])
    done = await chat.reclaim("auto", budget=int(tokens / 0.7) - 50)
    assert done.marks


async def test_a_summary_is_asked_for_only_when_cheaper_steps_were_not_enough(
    chat: Conversation,
) -> None:
    await busy(chat)

    async def never(ask: Ask) -> str:
        raise AssertionError("it was asked")

    done = await chat.reclaim("auto", budget=5_000, summarise=never)
    assert [mark.native["kind"] for mark in done.marks] == ["elide"]


async def test_without_a_summariser_an_extract_stands_for_what_is_cut(
    chat: Conversation,
) -> None:
    await chat.append([user("We decided to use SQLite for all of it."), assistant("I agree.")])
    await ladder(chat)
    done = await chat.reclaim("auto", budget=800)
    assert done.marks[-1].native["kind"] == "extract"
    found = await chat.window(800)
    assert found.tokens <= 560
    assert "Extract of" in said(found)
    assert "We decided to use SQLite" in said(found)
    assert "Summary of the conversation" not in said(found)


async def test_where_word_lists_find_nothing_the_ladder_ends_with_a_cut(
    chat: Conversation,
) -> None:
    for number in range(40):
        await chat.append([user(f"{number} " * 60), assistant("1 2 3")])
    await chat.append(user("now"))
    done = await chat.reclaim("auto", budget=800)
    assert [mark.native["kind"] for mark in done.marks] == ["cut"]
    assert (await chat.window(800)).tokens <= 560


# --- Snapshot and extract -------------------------------------------------------------------------

READER = "claude-opus-4-8"


async def talk(chat: Conversation, turns: int, start: int = 0, words: int = 400) -> None:
    """Turns of much talk, each different; the model that answers sees images."""
    for number in range(start, start + turns):
        async with chat.turn() as turn:
            await turn.add(
                user(f"question {number}: " + f"where is LK-{number} now, " * (words // 6))
            )
            await turn.add(
                assistant(f"answer {number}: " + "it waits in Lyon. " * 20), model=READER
            )
    await chat.append(user("now"))


def pages(window: sessiontree.Window) -> list[str]:
    """The data of the images that are sent."""
    blocks = [b for m in window.messages if isinstance(m["content"], list) for b in m["content"]]
    return [b["source"]["data"] for b in blocks if b["type"] == "image"]


async def test_a_snapshot_sends_old_turns_as_pages_and_undo_takes_them_back(
    chat: Conversation,
) -> None:
    await talk(chat, 30)
    before = await chat.window(target="anthropic")
    done = await chat.reclaim("snapshot", target="anthropic", keep=2_000)
    after = await chat.window(target="anthropic")
    assert [mark.native["kind"] for mark in done.marks] == ["snapshot"]
    assert pages(after)
    assert done.after == after.tokens < before.tokens
    assert (after.ready, violations(after)) == (True, [])
    assert [step.rule for step in after.steps if "page(s)" in step.what] == ["snapshot"]
    await chat.undo()
    assert (await chat.window(target="anthropic")).messages == before.messages


async def test_pages_of_a_conversation_that_went_on_begin_with_the_same_bytes(
    chat: Conversation,
) -> None:
    await talk(chat, 60)
    await chat.reclaim("snapshot", target="anthropic", keep=2_000)
    first = pages(await chat.window(target="anthropic"))
    for number in range(3):
        await chat.append([assistant("so"), user(f"and {number}?")])
        assert pages(await chat.window(target="anthropic")) == first
    await chat.append(assistant("so"))
    await talk(chat, 20, start=60)
    await chat.reclaim("snapshot", target="anthropic", keep=2_000)
    again = pages(await chat.window(target="anthropic"))
    assert len(again) > len(first) > 1
    assert again[: len(first) - 1] == first[:-1]


async def test_a_model_that_sees_no_images_is_sent_the_text_of_a_snapshot(
    chat: Conversation,
) -> None:
    await talk(chat, 30)
    await chat.reclaim("snapshot", target="anthropic", keep=2_000)
    for target, model in (("openai_chat", "gpt-3.5-turbo"), ("openai_chat", "some-model")):
        found = await chat.window(target=target, model=model)
        assert "data:image" not in said(found)
        assert "question 0" in said(found)
        assert violations(found) == []
    unseen = await chat.window(Budget(images=0), target="anthropic")
    assert pages(unseen) == []
    assert "question 0" in said(unseen)


async def test_the_ladder_makes_pages_only_for_a_model_that_is_known_to_see_them(
    chat: Conversation,
) -> None:
    await talk(chat, 60)
    tokens = (await chat.window(target="anthropic")).tokens
    done = await chat.reclaim("auto", budget=tokens, target="anthropic")
    assert [mark.native["kind"] for mark in done.marks] == ["snapshot"]
    await chat.undo()
    done = await chat.reclaim("auto", budget=5_000, target="openai_chat", model="gpt-3.5-turbo")
    assert "snapshot" not in [mark.native["kind"] for mark in done.marks]
    assert "takes no images" in str([each.why for each in done.refused])


async def test_a_refusal_is_recovered_from_by_pages_where_they_are_seen(
    chat: Conversation,
) -> None:
    await talk(chat, 60)
    sent = await chat.window(target="anthropic")
    error = f"prompt is too long: {sent.tokens} tokens > {int(sent.tokens * 0.7)} maximum"
    done = await chat.recover(sent, error)
    again = await chat.window(sent.recover(error).as_budget(sent.budget), target="anthropic")
    assert [mark.native["kind"] for mark in done.marks] == ["snapshot"]
    assert pages(again)
    assert again.tokens <= sent.tokens * 0.7
    assert (again.ready, violations(again)) == (True, [])


async def test_an_extract_is_told_to_be_one_and_keeps_the_summary_before_it(
    chat: Conversation,
) -> None:
    await busy(chat)
    await chat.reclaim("summarise", keep=10, summarise=lambda ask: "the summary so far")
    await chat.append([assistant("so"), user("We decided to use PostgreSQL. " + "words " * 400)])
    await chat.append([assistant("I prefer SQLite."), user("go on")])
    done = await chat.reclaim("extract", keep=10)
    found = await chat.window()
    assert [mark.native["kind"] for mark in done.marks] == ["extract"]
    assert "We decided to use PostgreSQL." in said(found)
    assert "the summary so far" in said(found)
    text = found.messages[0]["content"]
    assert text.index("the summary so far") < text.index("[Extract of")
    assert text.count("Summary of the conversation") == 1
    assert violations(found) == []
    await chat.append([assistant("so"), user("We agreed on Friday. " + "words " * 400)])
    await chat.append([assistant("yes"), user("go on")])
    await chat.reclaim("extract", keep=10)
    again = said(await chat.window())
    for kept in ("the summary so far", "use PostgreSQL", "We agreed on Friday"):
        assert kept in again
    await chat.append([assistant("words " * 400), user("and?")])
    await chat.reclaim("cut", keep=10)
    assert "We agreed on Friday" in said(await chat.window())
    asked: list[str] = []
    await chat.append([assistant("words " * 400), user("and?")])
    await chat.reclaim(
        "summarise", keep=10, summarise=lambda ask: asked.append(ask.text) or "all of it"
    )
    assert "the summary so far" in asked[0]
    assert "use PostgreSQL" in asked[0]


async def test_a_snapshot_in_force_is_not_lost_by_what_comes_later(chat: Conversation) -> None:
    await talk(chat, 30)
    await chat.reclaim("snapshot", target="anthropic", keep=1_000)
    await chat.append(assistant("so"))
    await talk(chat, 10, start=30, words=60)
    refused = await chat.reclaim("extract", target="anthropic", keep=500)
    assert "a snapshot is in force" in refused.refused[0].why
    done = await chat.reclaim("cut", target="anthropic", keep=500)
    assert [mark.native["kind"] for mark in done.marks] == ["snapshot"]
    assert pages(await chat.window(target="anthropic"))
    assert "question 0" in said(await chat.window(target="openai_chat", model="gpt-3.5-turbo"))


async def test_a_forked_snapshot_is_sent_as_in_its_original(chat: Conversation) -> None:
    await talk(chat, 30)
    await chat.reclaim("snapshot", target="anthropic", keep=2_000)
    other = await chat.fork()
    ours, theirs = [await each.window(target="anthropic") for each in (chat, other)]
    assert theirs.messages == ours.messages
    assert pages(ours)


async def test_the_window_after_a_reclaim_stays_the_beginning_of_the_next_ones(
    chat: Conversation,
) -> None:
    await ladder(chat)
    await chat.reclaim("auto", budget=1_200, summarise=brief)
    now = await chat.window()
    for number in range(3):
        await chat.append(assistant(f"so {number}"))
        await chat.append(work(100 + number))
        await chat.append(user("next"))
        later = await chat.window()
        assert later.messages[: len(now.messages)] == now.messages
        now = later


# --- Another writer -------------------------------------------------------------------------


async def test_a_reclaim_whose_head_has_moved_is_kept_as_a_branch_and_told(
    chat: Conversation, store: Store
) -> None:
    await busy(chat)
    planned = chat.head
    other = await store.open(chat.id)

    async def meanwhile(ask: Ask) -> str:
        await other.append(assistant("I was faster"))
        return "too late"

    with pytest.raises(HeadMoved) as told:
        await chat.reclaim("summarise", keep=10, summarise=meanwhile)
    assert told.value.actual == other.head == chat.head
    (mark,) = told.value.saved
    assert (mark.parent_id, mark.native["text"]) == (planned, "too late")
    assert "too late" not in said(await chat.window())
    await chat.branch(mark.id)
    assert "too late" in said(await chat.window())


async def test_a_reclaim_lands_where_it_was_planned_when_its_own_handle_has_gone_elsewhere(
    chat: Conversation,
) -> None:
    await busy(chat)
    planned, first = chat.head, (await chat.path())[0]

    async def meanwhile(ask: Ask) -> str:
        await chat.branch(first.id)
        return "elsewhere"

    with pytest.raises(HeadMoved) as told:
        await chat.reclaim("summarise", keep=10, summarise=meanwhile)
    assert told.value.saved[0].parent_id == planned
    assert chat.head == first.id


# --- A summariser that fails ------------------------------------------------------------------


async def unchanged(chat: Conversation, before: Any) -> bool:
    await chat.refresh()
    return (chat.head, await count(chat), await chat.history()) == before


@pytest.mark.parametrize("kind", ["summarise", "auto"])
@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        ("", ReclaimRefused, "returned nothing"),
        ("  \n", ReclaimRefused, "not a text"),
        (None, ReclaimRefused, "returned nothing"),
        (7, ReclaimRefused, "returned a int"),
        ("more and more " * 10_000, ReclaimRefused, "no smaller"),
        (RuntimeError("the model is down"), RuntimeError, "is down"),
        (asyncio.CancelledError("gone"), asyncio.CancelledError, "gone"),
        (TimeoutError("slow"), TimeoutError, "slow"),
    ],
)
async def test_a_summariser_that_fails_writes_nothing(
    chat: Conversation, kind: Any, answer: Any, error: type[BaseException], words: str
) -> None:
    await ladder(chat)
    before = (chat.head, await count(chat), await chat.history())

    async def summarise(ask: Ask) -> Any:
        await asyncio.sleep(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    with pytest.raises(error, match=words):
        await chat.reclaim(kind, budget=1_500, keep=100, summarise=summarise)
    assert await unchanged(chat, before)


async def test_a_summary_that_is_cancelled_while_it_is_made_writes_nothing(
    chat: Conversation,
) -> None:
    await ladder(chat)
    before = (chat.head, await count(chat), await chat.history())
    asked = asyncio.Event()

    async def summarise(ask: Ask) -> str:
        asked.set()
        await asyncio.sleep(3600)
        raise AssertionError

    task = asyncio.create_task(chat.reclaim("auto", budget=1_200, summarise=summarise))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await unchanged(chat, before)


# --- Recovery -----------------------------------------------------------------------------------


async def test_a_refusal_by_tokens_is_recovered_from_without_a_model(chat: Conversation) -> None:
    await ladder(chat)
    sent = await chat.window(target="anthropic")
    limit = sent.tokens // 3
    error = f"prompt is too long: {sent.tokens * 2} tokens > {limit * 2} maximum"
    done = await chat.recover(sent, error)
    again = await chat.window(sent.recover(error).as_budget(sent.budget), target="anthropic")
    assert done.marks
    assert again.tokens <= limit
    assert (again.ready, violations(again)) == (True, [])
    assert again.ids[-1] == sent.ids[-1]
    await chat.undo()
    assert (await chat.window(target="anthropic")).messages == sent.messages


async def test_a_refusal_by_bytes_drops_images_before_anything_else(chat: Conversation) -> None:
    await chat.append([picture(2_000), assistant("grey"), picture(2_000), assistant("grey")])
    await busy(chat, 2)
    sent = await chat.window()
    error = {"error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}
    done = await chat.recover(sent, error)
    again = await chat.window(sent.recover(error).as_budget(sent.budget))
    assert [mark.native["kind"] for mark in done.marks] == ["images"]
    assert again.bytes <= 0.8 * sent.bytes
    assert (again.ready, violations(again)) == (True, [])


async def test_a_refusal_by_bytes_without_images_elides_and_cuts(chat: Conversation) -> None:
    await ladder(chat)
    sent = await chat.window()
    limit = sent.bytes // 20
    error = f"413 payload too large: {sent.bytes} bytes > {limit} bytes"
    done = await chat.recover(sent, error)
    again = await chat.window(sent.recover(error).as_budget(sent.budget))
    assert [mark.native["kind"] for mark in done.marks] == ["images", "elide", "cut"]
    assert again.bytes <= limit
    assert violations(again) == []


async def test_an_error_about_something_else_is_no_refusal(chat: Conversation) -> None:
    await busy(chat)
    before = await count(chat)
    sent = await chat.window()
    for error in ("rate limit exceeded", ValueError("overloaded"), {"error": "529"}, "", b"no"):
        assert await chat.recover(sent, error) is None
    assert await count(chat) == before


# --- Resume -------------------------------------------------------------------------------------


async def test_a_resumed_run_is_cut_at_a_boundary_and_tells_what_lies_outside(
    store: Store, file: Path
) -> None:
    chat = await store.conversation("run", system="be brief")
    landed = {}
    for number in range(6):
        await chat.append(work(number))
        await chat.checkpoint(f"after {number}")
        landed[f"after {number}"] = chat.head
    async with sessiontree.open_store(file) as again:
        found = await (await again.conversation("run")).resume(3_000)
    window = found.window
    assert window is not None
    assert window.tokens <= 3_000
    assert window.messages[0] == {"role": "user", "content": "question 4"}
    assert [each.label for each in found.outside] == ["after 0", "after 1", "after 2", "after 3"]
    assert violations(window) == []
    for each in found.outside:
        assert (await chat.rewind(each.label)).id == landed[each.label]
        assert (await chat.window()).ids[-1] == landed[each.label]


async def test_everything_is_inside_when_nothing_was_left_out(store: Store) -> None:
    chat = await store.conversation("run", system="be brief")
    await chat.checkpoint("at the prompt")
    await busy(chat, 2)
    await chat.reclaim("elide", protect=0, save=0)
    await chat.checkpoint("at a mark")
    assert (await chat.resume(100_000)).outside == []
    assert (await chat.resume()).outside == []


async def test_a_checkpoint_at_a_mark_lies_outside_only_when_the_mark_does(
    chat: Conversation,
) -> None:
    await busy(chat, 2)
    await chat.checkpoint("far back")
    await chat.append(assistant("so"))
    await chat.reclaim("cut", keep=10)
    await chat.checkpoint("at a mark")
    await chat.append([user("more " * 20), assistant("yes")])
    assert (await chat.resume(100_000)).outside == []
    small = await chat.resume((await chat.window()).tokens - 1)
    assert [each.label for each in small.outside] == ["far back", "at a mark"]


async def test_a_checkpoint_on_another_branch_lies_outside_and_is_landed_on_exactly(
    chat: Conversation,
) -> None:
    first = (await chat.append([user("a"), assistant("b")]))[-1]
    await chat.append([user("left"), assistant("dead end")])
    await chat.checkpoint("left")
    left = chat.head
    await chat.branch(first.id)
    await chat.append([user("right"), assistant("on")])
    found = await chat.resume(100_000)
    assert [(each.label, each.message_id) for each in found.outside] == [("left", left)]
    assert (await chat.rewind("left")).id == left


async def test_a_checkpoint_goes_with_its_conversation_and_moves_to_no_other(
    store: Store,
) -> None:
    kept, gone = await store.conversation("kept"), await store.conversation("gone")
    for chat in (gone, kept):
        await chat.append([user("a"), assistant("b")])
        await chat.checkpoint("here")
    place = (await kept.checkpoints())[0]
    await store.delete(gone.id)
    fresh = await store.conversation("gone")
    await fresh.append([user("a"), assistant("b")])
    assert (await fresh.resume(1_000)).checkpoints == []
    with pytest.raises(sessiontree.CheckpointNotFound):
        await fresh.rewind("here")
    assert await kept.checkpoints() == [place]


async def test_a_resumed_window_ends_before_the_step_that_was_in_flight(
    chat: Conversation, file: Path
) -> None:
    async with chat.turn() as turn:
        await turn.add(user("go"))
        await turn.add(call("a"))
        async with sessiontree.open_store(file) as after_the_crash:
            found = await (await after_the_crash.open(chat.id)).resume(1_000)
        await turn.add(result("a"))
        await turn.add(assistant())
    assert found.window is not None
    assert [each.name for each in found.interrupted] == ["search"]
    assert found.window.messages == [user("go")]
    assert found.window.ready


# --- Bad input ----------------------------------------------------------------------------------


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"kind": "snip"}, WindowError, "auto, elide"),
    ({"kind": None}, WindowError, "no reclaim"),
    ({"kind": ["cut"]}, WindowError, "no reclaim"),
    ({"kind": "auto"}, WindowError, "needs a budget"),
    ({"kind": "summarise"}, WindowError, "needs a summariser"),
    ({"kind": "summarise", "summarise": "gpt"}, BadArgument, "no function"),
    ({"budget": 0}, WindowError, "a budget of"),
    ({"budget": -5}, WindowError, "a budget of"),
    ({"budget": True}, WindowError, "a budget of"),
    ({"budget": "9"}, WindowError, "a budget of"),
    ({"budget": 100, "threshold": 0}, WindowError, "a threshold of"),
    ({"budget": 100, "threshold": 1.01}, WindowError, "a threshold of"),
    ({"budget": 100, "threshold": float("nan")}, WindowError, "a threshold of"),
    ({"budget": 100, "threshold": "half"}, WindowError, "a threshold of"),
    ({"budget": 100, "threshold": True}, WindowError, "a threshold of"),
    ({"budget": 100, "target": "claude"}, WindowError, "anthropic"),
    ({"kind": "cut", "keep": -1}, BadArgument, "keep is less"),
    ({"kind": "cut", "keep": "all"}, BadArgument, "keep is a value"),
    ({"kind": "elide", "protect": -1}, BadArgument, "protect is less"),
    ({"kind": "elide", "save": 1.5}, BadArgument, "save is a value"),
    ({"kind": "elide", "spared": "read"}, BadArgument, "list of names"),
    ({"kind": "elide", "spared": [1]}, BadArgument, "a name in spared"),
    ({"kind": "summarise", "summarise": brief, "instructions": 1}, BadArgument, "instructions"),
]


@pytest.mark.parametrize(("wish", "error", "words"), BAD)
async def test_a_reclaim_that_makes_no_sense_is_refused_and_writes_nothing(
    chat: Conversation, wish: dict[str, Any], error: type[Exception], words: str
) -> None:
    await busy(chat, 2)
    before = (chat.head, await count(chat), await chat.history())
    with pytest.raises(error, match=words):
        await chat.reclaim(**wish)
    assert await unchanged(chat, before)


async def test_recovering_and_resuming_refuse_what_makes_no_sense(chat: Conversation) -> None:
    await chat.append(user(LOG))
    with pytest.raises(BadArgument, match="list of names"):
        await chat.recover(await chat.window(), "prompt is too long", spared="read")
    for budget in (0, True, "all"):
        with pytest.raises(WindowError):
            await chat.resume(budget)
    with pytest.raises(WindowError):
        await chat.resume(100_000, target="claude")
    assert (await chat.resume(Budget(tokens=100_000, images=0))).window is not None
    assert len(ids(await chat.path())) == 1
