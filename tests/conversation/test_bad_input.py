"""Arguments that make no sense: a named error that says what, to what, and what to do now, and
nothing half done."""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from talk import assistant, call, examples, ids, result, step, user

import sessiontree
from sessiontree import BadArgument, Conversation, FormatError, Graft, MessageNotFound, Store
from sessiontree.formats import read

NO_IDS: list[Any] = [
    True, False, 1.0, "1", b"1", -1, 0, 10**6, 2**63 - 1, 2**63, -(2**63), 2**70, 10**5_000,
    math.nan, [], {}, (), object(), int,
]  # fmt: skip

NO_TEXTS: list[Any] = [5, True, b"x", [], {}, object(), "a\0b", "\ud800", 1.5]
no_texts = pytest.mark.parametrize("bad", NO_TEXTS, ids=lambda bad: str(type(bad).__name__))


async def state(chat: Conversation) -> Any:
    """All that may not have changed."""
    messages = [m.row async for m in chat.iter_messages()]
    return (messages, chat.head, await chat.history(), await chat.checkpoints(), chat.title)


@pytest.fixture
async def told(chat: Conversation) -> Conversation:
    """A conversation with a step, two branches and a checkpoint."""
    await chat.append([user("q"), *step(), assistant("a")])
    await chat.checkpoint("start")
    await chat.append([user("q2"), assistant("a2")])
    return chat


def clear(error: sessiontree.SessionTreeError) -> None:
    """It says what happened and what to do now."""
    assert error.what
    assert error.hint, error
    assert len(str(error)) < 500


async def refused(
    work: Awaitable[Any], kind: type[sessiontree.SessionTreeError], chat: Conversation
) -> None:
    before = await state(chat)
    with pytest.raises(kind) as caught:
        await work
    clear(caught.value)
    assert await state(chat) == before


# ---- ids -----------------------------------------------------------------------------

BY_ID: dict[str, Callable[[Conversation, Any], Awaitable[Any]]] = {
    "message": lambda chat, bad: chat.message(bad),
    "children": lambda chat, bad: chat.children(bad),
    "siblings": lambda chat, bad: chat.siblings(bad),
    "path": lambda chat, bad: chat.path(bad),
    "iter_path": lambda chat, bad: anext(chat.iter_path(bad)),  # type: ignore[arg-type]
    "branch": lambda chat, bad: chat.branch(bad),
    "fork": lambda chat, bad: chat.fork(bad),
    "edit": lambda chat, bad: chat.edit(bad, user()),
    "checkpoint": lambda chat, bad: chat.checkpoint("x", at=bad),
    "append": lambda chat, bad: chat.append(user(), parent=bad),
}


@pytest.mark.parametrize("method", BY_ID)
async def test_what_is_no_id_of_this_conversation_is_not_found(
    told: Conversation, method: str
) -> None:
    for bad in NO_IDS:
        await refused(BY_ID[method](told, bad), MessageNotFound, told)


@pytest.mark.parametrize("method", BY_ID)
async def test_the_id_of_another_conversation_is_not_found(
    store: Store, told: Conversation, method: str
) -> None:
    other = await store.conversation("other")
    (theirs,) = await other.append(user("theirs"))
    await refused(BY_ID[method](told, theirs.id), MessageNotFound, told)


@pytest.mark.parametrize("method", ["branch", "fork", "checkpoint", "append"])
async def test_a_place_inside_a_step_is_no_boundary(told: Conversation, method: str) -> None:
    inner = (await told.path())[1]
    assert inner.open_calls == 1
    await refused(BY_ID[method](told, inner.id), sessiontree.NotABoundary, told)


async def test_what_follows_a_call_cannot_be_edited_alone(told: Conversation) -> None:
    inner = (await told.path())[2]
    await refused(told.edit(inner.id, user("x")), sessiontree.NotABoundary, told)
    await refused(told.edit(inner.id, result("call_1")), sessiontree.OrphanToolResult, told)


async def test_what_is_no_id_of_a_conversation_is_not_found(store: Store) -> None:
    await store.conversation("one")
    for method in (store.open, store.delete):
        for bad in NO_IDS:
            with pytest.raises(sessiontree.ConversationNotFound) as caught:
                await method(bad)
            clear(caught.value)
    assert len([info async for info in store.conversations()]) == 1


# ---- messages ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("batch", "kind"),
    [
        ([], FormatError),
        ((), FormatError),
        (iter([]), FormatError),
        (5, FormatError),
        ([[user()]], FormatError),
        ([None], FormatError),
        (user() | {"role": "boss"}, FormatError),
        (result("nope"), sessiontree.OrphanToolResult),
        ([*step(), result("call_1")], sessiontree.OrphanToolResult),
        ([result("c"), call("c")], sessiontree.OrphanToolResult),
        (call("c"), sessiontree.UnsettledTurn),
        ([call("a", "b"), result("a")], sessiontree.UnsettledTurn),
        ([call("a"), result("a"), call("a")], sessiontree.UnsettledTurn),
        ({"role": "tool", "content": "x"}, sessiontree.OrphanToolResult),
    ],
)
async def test_messages_that_break_a_rule_are_refused(
    told: Conversation, batch: Any, kind: type[sessiontree.SessionTreeError]
) -> None:
    await refused(told.append(batch), kind, told)


async def test_a_result_for_a_call_in_a_step_that_is_whole_is_an_orphan(
    told: Conversation,
) -> None:
    await refused(told.append(result("call_1")), sessiontree.OrphanToolResult, told)
    async with told.turn() as turn:
        with pytest.raises(sessiontree.OrphanToolResult) as caught:
            await turn.add(result("call_1"))
        clear(caught.value)
        assert caught.value.call_id == "call_1"


async def test_an_unsettled_append_names_the_calls(told: Conversation) -> None:
    with pytest.raises(sessiontree.UnsettledTurn, match=r"search\(b\)") as caught:
        await told.append([call("a", "b"), result("a")])
    assert [c.id for c in caught.value.calls] == ["b"]


@pytest.mark.parametrize("bad", ["nonsense", "", 5, [], "OpenAI_Chat"])
async def test_an_unknown_format_is_refused_with_the_names_of_those_there_are(
    told: Conversation, store: Store, bad: Any
) -> None:
    for work in (told.append(user(), format=bad), store.conversation("new", format=bad)):
        await refused(work, FormatError, told)
    assert [info.topic async for info in store.conversations()] == ["chat"]


# ---- keys ----------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [5, True, "k", b"k", {1: 2}, [5], [b"k"], [[]], [""], ["\ud800"]])
async def test_keys_are_a_list_of_strings(told: Conversation, bad: Any) -> None:
    await refused(told.append([user()], keys=bad), BadArgument, told)
    with pytest.raises(BadArgument):
        await told.find_keys(bad)


async def test_keys_and_messages_are_as_many_and_no_key_is_given_twice(
    told: Conversation,
) -> None:
    for bad in ([], ["a"], ["a", "b", "c"], ["a", "a"]):
        before = await state(told)
        with pytest.raises(FormatError):
            await told.append([user(), user()], keys=bad)
        assert await state(told) == before


# ---- texts ---------------------------------------------------------------------------


@no_texts
async def test_what_is_no_text_that_a_database_holds_is_refused(
    store: Store, told: Conversation, bad: Any
) -> None:
    for work in (
        told.checkpoint(bad),
        told.checkpoint("x", note=bad),
        told.rewind(bad),
        told.rename(bad),
        told.fork(owner=bad),
        told.fork(topic=bad),
        store.conversation(bad),
        store.conversation("x", owner=bad),
        store.conversation("x", title=bad),
        store.conversation("x", owner=bad, create=False),
        anext(store.conversations(bad)),  # type: ignore[arg-type]
    ):
        await refused(work, BadArgument, told)
    with pytest.raises(BadArgument):
        store.for_owner(bad)
    async with told.turn() as turn:
        for work in (
            turn.add(user(), key=bad),
            turn.add(user(), model=bad),
            turn.checkpoint(bad),
            turn.checkpoint("x", bad),
        ):
            await refused(work, BadArgument, told)
    assert [info.topic async for info in store.conversations()] == ["chat"]


async def test_nobody_is_no_owner(store: Store) -> None:
    """``for_owner(user.get("id"))`` must not open everybody's conversations."""
    with pytest.raises(BadArgument):
        store.for_owner(None)  # type: ignore[arg-type]


async def test_empty_labels_and_keys_are_refused_and_other_empty_texts_are_taken(
    store: Store, told: Conversation
) -> None:
    await refused(told.checkpoint(""), BadArgument, told)
    await refused(told.append(user(), keys=[""]), BadArgument, told)
    chat = await store.conversation("", owner="", title="")
    assert (chat.topic, chat.owner, chat.title) == ("", "", "")
    assert (await store.conversation("")).id == chat.id
    assert (await store.conversation(None)).id != (await store.conversation(None)).id


async def test_a_megabyte_is_a_long_topic_and_a_topic_all_the_same(store: Store) -> None:
    topic, owner = "t" * 1_000_000, "o" * 1_000_000
    chat = await store.conversation(topic, owner=owner, title="x" * 1_000_000)
    await chat.append(user(), keys=["k" * 1_000_000])
    await chat.checkpoint("l" * 1_000_000)
    again = await store.conversation(topic, owner=owner, create=False)
    assert again.id == chat.id
    assert (await again.rewind("l" * 1_000_000)) is not None
    with pytest.raises(sessiontree.ConversationExists) as caught:
        await chat.fork(topic=topic)
    clear(caught.value)
    with pytest.raises(sessiontree.CheckpointNotFound) as missing:
        await chat.rewind("m" * 1_000_000)
    clear(missing.value)


@pytest.mark.parametrize("bad", [5, True, [], "{}", [("a", 1)], object()])
async def test_notes_are_mappings(store: Store, told: Conversation, bad: Any) -> None:
    await refused(store.conversation("x", meta=bad), BadArgument, told)
    async with told.turn() as turn:
        await refused(turn.add(user(), usage=bad), BadArgument, told)


@pytest.mark.parametrize("bad", [{"a": {1}}, {"a": math.nan}, {1: 2}, {"a": b""}])
async def test_notes_hold_what_json_holds(store: Store, told: Conversation, bad: Any) -> None:
    for work in (store.conversation("x", meta=bad),):
        with pytest.raises(FormatError, match="meta"):
            await work
    async with told.turn() as turn:
        with pytest.raises(FormatError, match="usage"):
            await turn.add(user(), usage=bad)
    assert [info.topic async for info in store.conversations()] == ["chat"]


@pytest.mark.parametrize("bad", [5, [], b"x", user(), 1.5, True])
async def test_a_digest_and_a_note_of_an_interruption_are_strings(
    told: Conversation, bad: Any
) -> None:
    await refused(told.rewind("start", digest=bad), BadArgument, told)
    async with told.turn() as turn:
        await turn.add(call("c"))
        await refused(turn.interrupt(bad), BadArgument, told)
        await turn.interrupt("\ud800 any \0 string")


@pytest.mark.parametrize("bad", [5, [], True, user("I am no prompt"), {"role": "system"}])
async def test_a_system_prompt_is_text_or_a_system_message(
    store: Store, told: Conversation, bad: Any
) -> None:
    for topic in ("chat", "new"):
        before = await state(told)
        with pytest.raises(FormatError):
            await store.conversation(topic, system=bad)
        assert await state(told) == before
    assert [info.topic async for info in store.conversations()] == ["chat"]


# ---- counts, labels, resumes, grafts -------------------------------------------------


@pytest.mark.parametrize("bad", [-1, True, 1.0, "1", [], math.nan])
async def test_a_count_is_an_integer_from_0(store: Store, told: Conversation, bad: Any) -> None:
    await refused(told.path(newest=bad), BadArgument, told)
    await refused(anext(store.conversations(limit=bad)), BadArgument, told)  # type: ignore[arg-type]


async def test_large_counts_are_all_and_0_is_none(store: Store, told: Conversation) -> None:
    assert await told.path(newest=10**30) == await told.path()
    assert await told.path(newest=0) == []
    assert len([info async for info in store.conversations(limit=10**30)]) == 1
    assert [info async for info in store.conversations(limit=0)] == []


async def test_a_label_twice_is_refused_and_says_where_it_is(told: Conversation) -> None:
    before = await state(told)
    with pytest.raises(sessiontree.CheckpointExists) as caught:
        await told.checkpoint("start")
    clear(caught.value)
    assert caught.value.message_id == (await told.checkpoints())[0].message_id
    assert await state(told) == before
    moved = await told.checkpoint("start", replace=True)
    assert moved.message_id == told.head
    assert len(await told.checkpoints()) == 1


async def test_an_unknown_label_is_refused_with_the_labels_there_are(told: Conversation) -> None:
    await told.checkpoint("middle")
    before = await state(told)
    with pytest.raises(sessiontree.CheckpointNotFound, match="'start', 'middle'") as caught:
        await told.rewind("Start", digest="x")
    assert caught.value.labels == ("start", "middle")
    assert await state(told) == before


async def test_an_empty_conversation_has_nothing_to_go_back_to(chat: Conversation) -> None:
    for move, kind in (
        (chat.undo, sessiontree.NothingToUndo),
        (chat.redo, sessiontree.NothingToUndo),
        (chat.retry, sessiontree.NothingToRetry),
    ):
        await refused(move(), kind, chat)
    await refused(chat.checkpoint("x"), MessageNotFound, chat)
    await refused(chat.rewind("x"), sessiontree.CheckpointNotFound, chat)
    assert await chat.branch(None) is None
    assert await chat.path() == await chat.leaves() == await chat.children(None) == []
    assert len(await chat.tree()) == 0


async def test_nothing_to_retry_leaves_the_head_where_it_is(chat: Conversation) -> None:
    (only,) = await chat.append(assistant("I begin"))
    await refused(chat.retry(), sessiontree.NothingToRetry, chat)
    assert chat.head == only.id
    await chat.append(user())


@pytest.mark.parametrize("bad", [5, True, "resume", [], {}])
async def test_a_turn_takes_up_a_resume_only(told: Conversation, bad: Any) -> None:
    with pytest.raises(BadArgument):
        told.turn(resume=bad)


async def test_the_resume_of_another_conversation_is_refused(
    store: Store, told: Conversation
) -> None:
    other = await store.conversation("other")
    with pytest.raises(sessiontree.UnsettledTurn):
        async with other.turn() as turn:
            await turn.add(call("c"))
    resume = await other.resume()
    with pytest.raises(BadArgument) as caught:
        told.turn(resume=resume)
    clear(caught.value)
    assert (await other.resume()).interrupted


@pytest.mark.parametrize("parent", [-2, -1, -100, 2**63, True, "1", 1.0, 10**6, 0])
@pytest.mark.parametrize("side", ["parent", "ref"])
async def test_a_graft_hangs_on_what_is_there_before_it(
    told: Conversation, parent: Any, side: str
) -> None:
    first = Graft(read(user("a")), None)
    place = {"parent": None, "ref": None} | {side: parent}
    bad = Graft(read(user("b")), **place)
    before = await state(told)
    if parent == -1 and parent is not True:
        assert len(await told.graft([first, bad])) == 2
        return
    with pytest.raises(sessiontree.SessionTreeError):
        await told.graft([first, bad])
    assert await state(told) == before


# ---- turns ---------------------------------------------------------------------------


async def test_a_turn_is_used_between_its_beginning_and_its_end(told: Conversation) -> None:
    turn = told.turn()
    for work in (turn.add(user()), turn.interrupt(), turn.checkpoint("x")):
        await refused(work, sessiontree.TreeError, told)
    async with turn:
        await turn.add(user())
    for work in (turn.add(user()), turn.interrupt(), turn.checkpoint("x")):
        await refused(work, sessiontree.TreeError, told)


async def test_an_error_inside_a_turn_goes_on_and_the_draft_stays(told: Conversation) -> None:
    async def agent() -> None:
        async with told.turn() as turn:
            await turn.add(call("c"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await agent()
    assert [c.id for c in (await told.resume()).interrupted] == ["c"]


# ---- a closed store ------------------------------------------------------------------


async def test_everything_on_a_closed_store_says_that_it_is_closed(file: Path) -> None:
    async with sessiontree.open_store(file) as store:
        chat = await store.conversation("chat")
        await chat.append([user(), assistant()])
        turn = chat.turn()
        await turn.__aenter__()
    head = chat.head
    works: list[Awaitable[Any]] = [
        chat.append(user()), chat.path(), chat.message(head), chat.children(None),
        chat.siblings(head), chat.leaves(), chat.tree(), chat.branch(None), chat.fork(),
        chat.edit(head, user()), chat.retry(), chat.checkpoint("x"), chat.checkpoints(),
        chat.rewind("x"), chat.undo(), chat.redo(), chat.history(), chat.resume(), chat.refresh(),
        chat.rename("x"), chat.find_keys(["x"]), chat.graft([]), anext(chat.iter_path()),
        anext(chat.iter_messages()), store.conversation("x"), store.open(1), store.delete(1),
        store.check(), anext(store.conversations()), store.for_owner("x").open(1),
        turn.add(user()), turn.checkpoint("x"),
    ]  # fmt: skip
    for work in works:
        with pytest.raises(sessiontree.StoreClosed) as caught:
            await work
        clear(caught.value)


# ---- anything ------------------------------------------------------------------------

ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=2**62),
    st.floats(),
    st.text(st.characters(exclude_categories=()), max_size=8),
    st.binary(max_size=4),
    st.lists(st.integers() | st.text(max_size=3), max_size=3),
    st.dictionaries(st.text(max_size=3) | st.integers(), st.integers(), max_size=2),
    st.builds(object),
    st.sampled_from([int, print, Ellipsis, NotImplemented, range(3), sessiontree.HEAD]),
)
NOT_HERE = ("window", "reclaim", "recover", "resume", "graft")
"""Windows have tests of their own; resume plans one, too."""
METHODS = [
    (name, [p for p in inspect.signature(found).parameters if p != "self"])
    for name, found in inspect.getmembers(Conversation, inspect.iscoroutinefunction)
    if not name.startswith("_") and name not in NOT_HERE
]


@examples(200)
@given(st.sampled_from(METHODS), st.data())
async def test_no_argument_brings_out_an_error_of_another_kind(
    method: tuple[str, list[str]], data: st.DataObject
) -> None:
    name, parameters = method
    given_ = {each: data.draw(ANYTHING, each) for each in parameters}
    async with sessiontree.open_store(":memory:") as store:
        chat = await store.conversation("chat")
        await chat.append([user("q"), *step(), assistant("a")])
        await chat.checkpoint("start")
        try:
            await getattr(chat, name)(**given_)
        except sessiontree.SessionTreeError as error:
            shown = str(error)
        else:
            shown = "done"
        assert shown
        assert chat.head == (await store.open(chat.id)).head
        assert await store.check() == []
        assert ids(await chat.path()) is not None
