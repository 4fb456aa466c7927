"""Invariant 9: through a store that is scoped to one owner, nobody reaches another's."""

from __future__ import annotations

from typing import Any

import pytest
from talk import assistant, call, ids, step, user

import sessiontree
from sessiontree import ConversationNotFound, OwnerMismatch, Store


@pytest.fixture
async def theirs(store: Store) -> Any:
    """What belongs to bob: a topic, a branch, a checkpoint."""
    chat = await store.conversation("secret", owner="bob", system="be brief", title="Secret")
    await chat.append(
        [user("the code is 1234"), *step(), assistant("noted")], keys=["k", None, None, None]
    )
    await chat.checkpoint("start")
    return chat


async def test_a_scoped_store_opens_lists_and_deletes_its_owners_conversations_only(
    store: Store, theirs: Any
) -> None:
    ada = store.for_owner("ada")
    mine = await ada.conversation("mine")
    assert (mine.owner, ada.scope) == ("ada", "ada")
    for work in (ada.open(theirs.id), ada.delete(theirs.id)):
        with pytest.raises(ConversationNotFound) as caught:
            await work
        assert "Secret" not in str(caught.value)
        assert "bob" not in str(caught.value)
    assert [info.id async for info in ada.conversations()] == [mine.id]
    assert len(await theirs.path()) == 5
    assert (await ada.open(mine.id)).id == mine.id


async def test_it_is_not_told_whether_a_conversation_of_another_is_there(
    store: Store, theirs: Any
) -> None:
    ada = store.for_owner("ada")
    said = []
    for number in (theirs.id, 10**6):
        for work in (ada.open(number), ada.delete(number)):
            with pytest.raises(ConversationNotFound) as caught:
                await work
            said.append(str(caught.value).replace(str(number), "N"))
    assert len(set(said)) == 1


async def test_a_topic_of_another_owner_is_another_topic(store: Store, theirs: Any) -> None:
    ada = store.for_owner("ada")
    mine = await ada.conversation("secret")
    assert mine.id != theirs.id
    assert await mine.path() == []
    with pytest.raises(ConversationNotFound):
        await ada.conversation("other", create=False)


async def test_naming_another_owner_is_refused_in_every_way(store: Store, theirs: Any) -> None:
    ada = store.for_owner("ada")
    mine = await ada.conversation("mine")
    await mine.append(user())
    for owner in ("bob", "", "ADA", "ada "):
        for work in (
            ada.conversation("secret", owner=owner),
            ada.conversation("secret", owner=owner, create=False),
            anext(ada.conversations(owner)),  # type: ignore[arg-type]
            mine.fork(owner=owner),
        ):
            with pytest.raises(OwnerMismatch):
                await work
        with pytest.raises(OwnerMismatch):
            ada.for_owner(owner)
    assert ada.for_owner("ada").scope == "ada"
    assert len([info async for info in store.conversations()]) == 2


async def test_handles_of_a_scoped_store_stay_in_their_conversation(
    store: Store, theirs: Any
) -> None:
    """Ids are one space for all: no method takes one of another conversation."""
    mine = await store.for_owner("ada").conversation("mine")
    await mine.append([user("mine"), *step()])
    for at in ids(await theirs.path()):
        for work in (
            mine.message(at), mine.path(at), mine.branch(at), mine.fork(at), mine.children(at),
            mine.siblings(at), mine.edit(at, user()), mine.checkpoint("x", at=at),
            mine.append(user(), parent=at), anext(mine.iter_path(at)),  # type: ignore[arg-type]
        ):  # fmt: skip
            with pytest.raises(sessiontree.MessageNotFound):
                await work
    assert await mine.find_keys(["k"]) == {}
    with pytest.raises(sessiontree.CheckpointNotFound) as caught:
        await mine.rewind("start")
    assert caught.value.labels == ()
    other = await mine.fork()
    assert other.owner == "ada"
    with pytest.raises(OwnerMismatch):
        await other.fork(owner="bob")


async def test_the_turns_of_another_are_not_reported(store: Store, theirs: Any) -> None:
    with pytest.raises(sessiontree.UnsettledTurn):
        async with theirs.turn() as turn:
            await turn.add(call("c", name="pay"))
    mine = await store.for_owner("ada").conversation("mine")
    assert (await mine.resume()).interrupted == []
    with pytest.raises(sessiontree.BadArgument):
        mine.turn(resume=await theirs.resume())


async def test_a_scoped_store_checks_what_is_its_owners(store: Store, file: Any) -> None:
    """The problems of others speak of their conversations."""
    import sqlite3

    mine = await store.conversation("mine", owner="ada")
    theirs = await store.conversation("secret", owner="bob")
    for chat in (mine, theirs):
        await chat.append([user(), *step()])
    with sqlite3.connect(file) as db:
        db.execute("UPDATE message SET open_calls = 7 WHERE role = 'user'")
    db.close()
    everybody = await store.check()
    assert {p.conversation_id for p in everybody} == {mine.id, theirs.id}
    assert {p.conversation_id for p in await store.for_owner("ada").check()} == {mine.id}
    assert await store.for_owner("nobody").check() == []
    with sqlite3.connect(file) as db:
        db.execute("UPDATE message SET open_calls = 0 WHERE role = 'user'")
    db.close()


async def test_the_owner_without_a_name_is_an_owner_like_others(store: Store, theirs: Any) -> None:
    nobody = store.for_owner("")
    mine = await nobody.conversation("mine")
    assert (mine.owner, nobody.scope) == ("", "")
    assert [info.id async for info in nobody.conversations()] == [mine.id]
    with pytest.raises(ConversationNotFound):
        await nobody.open(theirs.id)
    with pytest.raises(OwnerMismatch):
        await nobody.conversation("secret", owner="bob")
    with pytest.raises(OwnerMismatch):
        nobody.for_owner("bob")
