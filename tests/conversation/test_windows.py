"""Windows of a stored conversation, whatever its tree went through."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from talk import assistant, call, ids, result, step, system, user
from windowing import TARGETS, said, violations, work

import sessiontree
from sessiontree import (
    BadArgument,
    Budget,
    BudgetTooSmall,
    Conversation,
    MessageNotFound,
    Store,
    WindowError,
    sync,
)
from sessiontree.conversation import windows as planning
from sessiontree.core import planner
from sessiontree.core.reclaim import draw
from sessiontree.formats import codec
from sessiontree.store import reads


async def whole(chat: Conversation, target: str, **options: Any) -> sessiontree.Window:
    """The window as it is planned with the whole path at hand."""
    path = await chat.path()
    prompt = next((each for each in reversed(path) if each.role == "system"), None)
    return planner.plan(reversed(path), target, codec, system=prompt, draw=draw, **options)


async def long(chat: Conversation, messages: int) -> list[int]:
    """A long path of questions and answers; its ids."""
    batch: list[dict[str, Any]] = [user("the ticket: refund LK-266415")]
    for number in range(messages // 2):
        batch += [assistant(f"answer {number}"), user(f"question {number}")]
    return ids(await chat.append(batch))


# --- Whatever the tree went through -----------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
async def test_after_a_branch_only_the_new_branch_is_sent(chat: Conversation, target: str) -> None:
    asked, *_ = await chat.append([user("where?"), *step(), assistant("there"), user("left")])
    await chat.branch(asked.parent_id)
    await chat.append([user("what?"), assistant("that"), user("right")])
    found = await chat.window(target=target)
    assert "left" not in said(found)
    assert "right" in said(found)
    assert (found.ready, violations(found)) == (True, [])


@pytest.mark.parametrize("target", TARGETS)
async def test_after_a_rewind_the_digest_is_sent_and_the_dead_end_is_not(
    chat: Conversation, target: str
) -> None:
    await chat.append([user("refund it"), assistant("I look")])
    await chat.checkpoint("before")
    await chat.append([user("try the API"), *step("c2"), assistant("403 everywhere")])
    await chat.rewind("before", digest="the refund API answers 403")
    found = await chat.window(target=target)
    assert "the refund API answers 403" in said(found)
    assert "403 everywhere" not in said(found)
    assert (found.ready, violations(found)) == (True, [])


@pytest.mark.parametrize("target", TARGETS)
async def test_an_interrupted_call_is_sent_with_a_result_that_says_so(
    chat: Conversation, target: str
) -> None:
    async with chat.turn() as turn:
        await turn.add(user("go"))
        await turn.add(call("a", "b"))
        await turn.add(result("a", "done"))
        await turn.interrupt("the user pressed stop")
    await chat.append(user("go on"))
    found = await chat.window(target=target)
    assert "the user pressed stop" in said(found)
    assert (found.ready, violations(found)) == (True, [])


@pytest.mark.parametrize("target", TARGETS)
async def test_a_call_in_flight_has_a_placeholder_and_the_window_is_not_ready(
    chat: Conversation, target: str
) -> None:
    async with chat.turn() as turn:
        await turn.add(user("go"))
        await turn.add(call("a", "b"))
        await turn.add(result("b", "half of it"))
        waiting = await chat.window(target=target, turn=turn)
        await turn.add(result("a", "the rest"))
        ready = await chat.window(target=target, turn=turn)
        await turn.add(assistant("done"))
    assert not waiting.ready
    assert "search" in waiting.why
    assert "half of it" in said(waiting)
    assert violations(waiting) == []
    assert (ready.ready, violations(ready)) == (True, [])
    assert "the rest" in said(ready)


async def test_messages_in_flight_count_as_the_newest_turn(chat: Conversation) -> None:
    await chat.append([*work(0), *work(1)])
    async with chat.turn() as turn:
        await turn.add(user("go"))
        await turn.add(call("x"))
        found = await chat.window(200, turn=turn)
        assert found.dropped.count == 8
        assert [m["role"] for m in found.messages] == ["user", "assistant", "tool"]
        await turn.add(result("x"))
        await turn.add(assistant())


async def test_a_fork_sends_what_its_original_sends_and_its_marks_reach_the_copies(
    chat: Conversation,
) -> None:
    for number in range(4):
        await chat.append(work(number))
    await chat.append(user("now"))
    await chat.reclaim("elide", protect=0, save=0)
    await chat.reclaim("cut", keep=150)
    other = await chat.fork(topic="copy")
    ours, theirs = await chat.window(), await other.window()
    assert theirs.messages == ours.messages
    assert not theirs.complete
    assert "was elided" in said(theirs)
    assert set(theirs.ids).isdisjoint(ours.ids)
    path = dict(zip(ids(await chat.path()), ids(await other.path()), strict=True))
    assert theirs.ids == tuple(path[each] for each in ours.ids)


@pytest.mark.parametrize("target", TARGETS)
async def test_every_path_of_an_imported_session_is_valid_for_every_provider(
    store: Store, target: str
) -> None:
    from sessiontree.transfer import import_file

    folder = Path(__file__).parents[1] / "fixtures"
    for name in ("claude_code/quirks.jsonl", "pi/v3.jsonl"):
        await import_file(store, folder / name)
    leaves = 0
    async for info in store.conversations():
        chat = await store.open(info.id)
        for leaf in await chat.leaves():
            if leaf.open_calls:
                continue
            await chat.branch(leaf.id)
            assert violations(await chat.window(target=target)) == []
            leaves += 1
    assert leaves >= 4


async def test_behind_a_cut_nothing_is_read_or_sent_and_undo_brings_it_back(
    chat: Conversation,
) -> None:
    for number in range(3):
        await chat.append(work(number))
    await chat.append(user("now"))
    before = await chat.window()
    await chat.reclaim("cut", keep=10)
    cut = await chat.window()
    assert [m["content"] for m in cut.messages] == ["now"]
    assert cut.dropped.count == 12
    assert (await chat.undo()) is not None
    assert (await chat.window()).messages == before.messages


@pytest.mark.parametrize("target", TARGETS)
async def test_a_branch_has_its_own_system_prompt(store: Store, target: str) -> None:
    chat = await store.conversation(system="Answer in English.")
    await chat.append([user("hello"), assistant("hello")])
    fork_at = chat.head
    await chat.append([system("Answer in French."), user("bonjour")])
    french = await chat.window(target=target)
    await chat.branch(fork_at)
    await chat.append(user("again"))
    english = await chat.window(target=target)
    assert "French" in said(french)
    assert "English" not in said(french)
    assert "English" in said(english)
    assert "French" not in said(english)
    assert violations(french) == violations(english) == []


async def test_an_empty_conversation_has_an_empty_window(chat: Conversation) -> None:
    found = await chat.window(target="anthropic")
    assert (found.messages, found.ids, found.ready, found.complete) == ([], (), False, True)


# --- Target -----------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
async def test_the_target_is_told_by_what_the_conversation_is_written_in(
    store: Store, target: str
) -> None:
    (native,) = codec(target).encode("user", [{"type": "text", "content": "hello"}])
    named = await store.conversation(format=target)
    await named.append(native)
    assert (await named.window()).target == target
    nameless = await store.conversation()
    await nameless.append(native, format=target)
    assert (await nameless.window()).target == target


async def test_a_conversation_that_does_not_tell_its_provider_must_be_told(store: Store) -> None:
    chat = await store.conversation()
    with pytest.raises(WindowError, match="does not tell"):
        await chat.window()


# --- Pinned ------------------------------------------------------------------------------------


@pytest.mark.parametrize("messages", [100, 5_000])
async def test_a_message_pinned_pages_back_is_sent_in_its_place(
    chat: Conversation, messages: int
) -> None:
    path = await long(chat, messages)
    found = await chat.window(300, pinned=[path[0], path[0]])
    assert found.ids[0] == path[0]
    assert found.messages[0]["content"].startswith("the ticket")
    assert found.ids[1:] == tuple(path[-len(found.ids) + 1 :])
    assert found.tokens <= 300
    assert found == await whole(chat, "openai_chat", budget=300, pinned=[path[0]])


async def test_what_lies_between_a_window_and_what_is_pinned_is_not_read(
    chat: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = await long(chat, 5_000)
    contents: list[int] = []

    def counted(rows: Callable[..., Any]) -> Callable[..., Any]:
        def read(*args: Any) -> Any:
            found = rows(*args)
            flat = [r for each in found for r in (each if isinstance(each, list) else [each])]
            contents.extend(row.id for row in flat)
            return found

        return read

    monkeypatch.setattr(planning.reads, "path", counted(reads.path))
    monkeypatch.setattr(planning.reads, "steps", counted(reads.steps))
    found = await chat.window(300, pinned=[path[0], path[1000]])
    assert found.ids[:2] == (path[0], path[1000])
    assert len(set(contents)) < 200


async def test_a_pinned_call_brings_its_results_and_a_pinned_result_its_call(
    chat: Conversation,
) -> None:
    first = await chat.append([user("q"), call("a", "b"), result("b"), result("a"), assistant()])
    second = await chat.append([user("q"), *step("c"), assistant()])
    await long(chat, 300)
    pinned = [first[2].id, second[1].id]
    found = await chat.window(300, pinned=pinned)
    assert found.ids[:5] == (*ids(first[1:4]), *ids(second[1:3]))
    assert found == await whole(chat, "openai_chat", budget=300, pinned=pinned)
    assert violations(found) == []


@pytest.mark.parametrize("between", [0, 300])
async def test_marks_do_not_reach_what_is_pinned(chat: Conversation, between: int) -> None:
    pinned = (await chat.append(work(0)))[2].id
    await chat.append([*work(1), user("now")])
    await chat.reclaim("elide", protect=0, save=0)
    if between:
        await long(chat, between)
    found = await chat.window(2_500, pinned=[pinned])
    assert pinned in found.ids
    assert said(found).count("error in module seven") >= 200
    assert ("was elided" in said(found)) == (not between)
    assert found == await whole(chat, "openai_chat", budget=2_500, pinned=[pinned])


async def test_what_is_pinned_behind_a_cut_is_sent(chat: Conversation) -> None:
    path = await long(chat, 300)
    await chat.reclaim("cut", keep=50)
    found = await chat.window(pinned=[path[0]])
    assert found.ids[0] == path[0]
    assert not found.complete
    assert found == await whole(chat, "openai_chat", pinned=[path[0]])


async def test_a_pinned_message_of_the_turn_that_did_not_fit_is_found(chat: Conversation) -> None:
    await chat.append(user("begin"))
    async with chat.turn() as turn:
        await turn.add(user("a long turn"))
        for number in range(40):
            await turn.add(call(f"c{number}"))
            await turn.add(result(f"c{number}", "x" * 2_000))
        await turn.add(assistant("done"))
    pinned = (await chat.path())[20].id
    await chat.append(user("now"))
    found = await chat.window(1_000, pinned=[pinned])
    assert pinned in found.ids
    assert len(found.ids) == 3
    assert found == await whole(chat, "openai_chat", budget=1_000, pinned=[pinned])


async def test_a_pinned_system_prompt_or_mark_changes_nothing(store: Store) -> None:
    chat = await store.conversation(system="Be brief.")
    await long(chat, 200)
    await chat.reclaim("cut", keep=200)
    path = await chat.path()
    plain = await chat.window(300)
    assert await chat.window(300, pinned=[path[0].id, path[-1].id]) == plain


async def test_a_pin_and_the_newest_turn_that_do_not_fit_are_told_by_how_much(
    chat: Conversation,
) -> None:
    path = await long(chat, 200)
    fits = await chat.window(60, pinned=[path[0]])
    least = (await chat.window(Budget(images=0), pinned=[path[0], *path[-1:]])).tokens
    assert fits.tokens <= 60 < least
    with pytest.raises(BudgetTooSmall) as told:
        await chat.window(15, pinned=[path[0]])
    assert told.value.short == told.value.needed - 15 > 0
    assert (await chat.window(told.value.needed, pinned=[path[0]])).ids == (path[0], path[-1])


async def test_a_pinned_message_that_is_not_there_or_not_on_the_path_is_refused(
    chat: Conversation, store: Store
) -> None:
    path = await long(chat, 200)
    await chat.branch(path[10])
    await chat.append(user("beside"))
    aside = chat.head
    await chat.branch(path[-1])
    other = await store.conversation("other")
    stranger = (await other.append(user("elsewhere")))[0].id
    for budget in (None, 300):
        with pytest.raises(WindowError, match=f"{aside} are not on the path"):
            await chat.window(budget, pinned=[path[0], aside])
        for absent in (stranger, 10**12, 0, "1", True, None):
            with pytest.raises(MessageNotFound):
                await chat.window(budget, pinned=[path[0], absent])
    for nothing in (7, "7", None):
        with pytest.raises(BadArgument):
            await chat.window(pinned=nothing)


# --- Bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [0, -1, True, False, "100", 1.5, Budget])
async def test_a_budget_that_is_none_is_refused(chat: Conversation, budget: Any) -> None:
    await chat.append(user("hello"))
    with pytest.raises(WindowError, match="a budget of"):
        await chat.window(budget)


@pytest.mark.parametrize("target", ["claude", "", "mark", "pi", 5, ["anthropic"], "../x"])
async def test_an_unknown_target_is_refused_with_those_there_are(
    chat: Conversation, target: Any
) -> None:
    await chat.append(user("hello"))
    with pytest.raises(WindowError, match="anthropic") as told:
        await chat.window(target=target)
    assert "openai_chat" in str(told.value)


async def test_an_unknown_policy_of_thinking_is_refused(chat: Conversation) -> None:
    await chat.append(user("hello"))
    with pytest.raises(WindowError, match="auto, keep, drop"):
        await chat.window(thinking="maybe")


# --- Without async --------------------------------------------------------------------------------


def test_windows_and_reclaims_block_in_sync(tmp_path: Path) -> None:
    with sync.open_store(tmp_path / "s.db") as store:
        chat = store.conversation("t")
        for number in range(4):
            chat.append(work(number))
        chat.append(user("now"))
        before = chat.window()
        done = chat.reclaim("summarise", keep=10, summarise=lambda ask: "all was well")
        after = chat.window()
        assert [mark.role for mark in done.marks] == ["mark"]
        assert "all was well" in said(after)
        assert after.tokens < before.tokens
        with chat.turn() as turn:
            turn.add(user("more"))
            assert chat.window(turn=turn).messages[-1] == user("more")
        assert chat.resume(10_000).window == chat.window(10_000)
