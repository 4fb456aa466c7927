"""What resume tells is of one moment, whoever writes meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from talk import assistant, call, result, user

import sessiontree
from sessiontree import Conversation
from sessiontree.store import reads

STATEMENTS = ["conversation", "path", "drafts", "checkpoints"]


async def in_flight(chat: Conversation) -> sessiontree.Turn:
    """A turn that waits for the result of a call."""
    turn = chat.turn()
    await turn.__aenter__()
    await turn.add(user("go"))
    await turn.add(call("a"))
    return turn


async def settle(turn: sessiontree.Turn) -> None:
    await turn.add(result("a"))
    await turn.add(assistant("done"))
    await turn.__aexit__(None, None, None)


@pytest.mark.parametrize("statement", STATEMENTS)
async def test_a_turn_of_another_process_that_ends_meanwhile_is_in_flight_or_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    """Never neither, never both."""
    file, loop = tmp_path / "a.db", asyncio.get_running_loop()
    reading: Any = getattr(reads, statement)
    done = asyncio.Event()

    async with sessiontree.open_store(file) as store, sessiontree.open_store(file) as other:
        chat = await store.conversation("t")
        theirs = await other.conversation("t")
        turn = await in_flight(theirs)

        async def end() -> None:
            await settle(turn)
            await theirs.checkpoint("end")
            done.set()

        def meanwhile(*args: Any) -> Any:
            if not done.is_set():
                asyncio.run_coroutine_threadsafe(end(), loop).result(20)
            return reading(*args)

        monkeypatch.setattr(reads, statement, meanwhile)
        found = await chat.resume()
        monkeypatch.undo()
        assert done.is_set()
        is_there = len(found.path) == 4
        assert is_there != bool(found.draft)
        assert is_there == [each.label == "end" for each in found.checkpoints].count(True)


async def test_a_turn_of_this_process_that_ends_meanwhile_was_not_in_flight_after_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with sessiontree.open_store(tmp_path / "a.db") as store:
        chat = await store.conversation("t")
        turn = await in_flight(chat)
        reading, loop = reads.checkpoints, asyncio.get_running_loop()

        def meanwhile(*args: Any) -> Any:
            found = reading(*args)
            asyncio.run_coroutine_threadsafe(settle(turn), loop).result(20)
            return found

        monkeypatch.setattr(reads, "checkpoints", meanwhile)
        found = await (await store.open(chat.id)).resume()
        monkeypatch.undo()
        assert found.draft == []
        assert len(await chat.path()) == 4
