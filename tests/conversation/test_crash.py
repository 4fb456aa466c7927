"""A process that is killed: what it was told is saved is there, what was in flight is reported,
and nothing is half there. The processes are real, and so is SIGKILL."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from talk import assistant, call, ids, result, texts, user

import sessiontree
from sessiontree import Conversation

CHILDREN = Path(__file__).with_name("children.py")


@contextmanager
def child(name: str, file: Path, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, str(CHILDREN), name, str(file), *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def run_until_ready_and_kill(name: str, file: Path) -> None:
    with child(name, file) as process:
        assert line_of(process) == "ready"
        process.kill()
        assert process.wait() == -9


async def test_a_crash_between_call_and_result_resumes_at_the_boundary_before(file: Path) -> None:
    run_until_ready_and_kill("call_a_tool", file)
    async with sessiontree.open_store(file) as store:
        chat = await store.conversation("chat", create=False)
        assert texts(await chat.path()) == ["Where is order LK-266415?"]
        assert (await chat.path())[-1].is_boundary
        resume = await chat.resume()
        assert ids(resume.path) == ids(await chat.path())
        (interrupted,) = resume.interrupted
        assert (interrupted.id, interrupted.name) == ("call_7", "track_order")
        assert interrupted.arguments == {"n": 0}
        (draft,) = resume.draft
        assert (draft.id, draft.key, draft.native) == (
            0,
            "call",
            call("call_7", name="track_order"),
        )
        assert await store.check() == []


async def test_after_a_crash_the_next_append_works_and_lets_go_what_was_reported(
    file: Path,
) -> None:
    run_until_ready_and_kill("call_a_tool", file)
    async with sessiontree.open_store(file) as store:
        chat = await store.conversation("chat")
        (said,) = await chat.append(assistant("I could not look."))
        assert said.parent_id == (await chat.path())[0].id
        assert len((await chat.resume()).interrupted) == 1, "it was not reported before"
        await chat.append(user("and now?"))
        assert (await chat.resume()).interrupted == []
        assert (await chat.resume()).draft == []


async def test_a_draft_stays_until_the_handle_that_reported_it_saves(file: Path) -> None:
    run_until_ready_and_kill("call_a_tool", file)
    async with sessiontree.open_store(file) as store:
        first, second = await store.conversation("chat"), await store.conversation("chat")
        assert (await first.resume()).interrupted
        await second.append(user("from elsewhere"))
        assert (await second.resume()).interrupted, "the second had not told of it"
    async with sessiontree.open_store(file) as store:
        chat = await store.conversation("chat")
        assert (await chat.resume()).interrupted, "nobody who knew of it has saved"
        with pytest.raises(sessiontree.FormatError):
            await chat.append([])
        await chat.branch(None)
        await chat.undo()
        assert (await chat.resume()).interrupted, "a move is no save"


async def test_a_new_process_goes_on_with_the_step_that_was_in_flight(file: Path) -> None:
    run_until_ready_and_kill("call_a_tool", file)
    async with sessiontree.open_store(file) as store:
        chat = await store.conversation("chat")
        resume = await chat.resume()
        async with chat.turn(resume=resume) as turn:
            assert [c.id for c in turn.open_calls] == ["call_7"]
            again = await turn.add(call("call_7", name="track_order"), key="call")
            assert again.id == 0, "the key is known: it waits already"
            saved = await turn.add(result("call_7", "in Lyon"), key="result")
            assert (await turn.add(result("call_7", "in Lyon"), key="result")).id == saved.id
            await turn.add(assistant("It is in Lyon."))
        assert [m.role for m in await chat.path()] == ["user", "assistant", "tool", "assistant"]
        assert (await chat.resume()).draft == []
        assert await store.check() == []


async def test_after_a_crash_the_open_calls_can_be_closed_as_interrupted(file: Path) -> None:
    run_until_ready_and_kill("call_tools", file)
    async with sessiontree.open_store(file) as store:
        chat = await store.conversation("chat")
        resume = await chat.resume()
        assert [c.id for c in resume.interrupted] == ["a"], "b has its result"
        assert [m.role for m in resume.draft] == ["assistant", "tool"]
        async with chat.turn(resume=resume) as turn:
            (*_, closing) = await turn.interrupt("the program stopped")
        assert closing.meta == {"sessiontree": {"kind": "interrupted"}}
        assert closing.tool_results[0].id == "a"
        assert chat.head == closing.id
        assert await store.check() == []


async def test_a_draft_is_never_part_of_a_path_a_tree_or_a_fork(file: Path) -> None:
    run_until_ready_and_kill("call_tools", file)
    async with sessiontree.open_store(file) as store:
        chat = await store.conversation("chat")
        assert len(await chat.tree()) == 1
        assert len([m async for m in chat.iter_messages()]) == 1
        other = await chat.fork()
        assert (await other.resume()).draft == []
        await store.delete(chat.id)
        assert await store.check() == []


async def test_a_crash_after_the_save_and_before_the_acknowledgement_saves_nothing_twice(
    file: Path,
) -> None:
    with child("save_unheard", file) as process:
        assert line_of(process) == "saved"
        assert process.wait(60) == -9
    async with sessiontree.open_store(file) as store:
        chat = await store.conversation("chat")
        assert texts(await chat.path()) == ["before", "again", "once"]
        head = chat.head
        saved = await chat.append([user("again"), assistant("once")], keys=["u-1", "a-1"])
        assert texts(saved) == ["again", "once"]
        assert chat.head == head == saved[-1].id
        assert len(await chat.tree()) == 3
        await chat.append(user("next"))
        assert texts(await chat.path()) == ["before", "again", "once", "next"]


async def _everything_is_whole(chat: Conversation, acknowledged: list[int]) -> None:
    path = await chat.path()
    assert set(acknowledged) <= set(ids(path))
    assert path[-1].is_boundary


async def test_what_was_acknowledged_is_there_whenever_the_process_was_killed(file: Path) -> None:
    """A short form; the long one is the torture."""
    chance = random.Random(5)
    acknowledged: list[int] = []
    for _ in range(5):
        with child("talk_on", file) as process:
            assert process.stdout is not None
            acknowledged.append(int(line_of(process)))
            await asyncio.sleep(chance.uniform(0, 0.1))
            process.kill()
            acknowledged += [int(line) for line in process.stdout if line.endswith("\n")]
        async with sessiontree.open_store(file) as store:
            chat = await store.conversation("chat", create=False)
            await _everything_is_whole(chat, acknowledged)
            assert await store.check() == []
    assert len(acknowledged) > 5


@pytest.mark.parametrize("pause", [0.0, 0.01, 0.03, 0.1])
async def test_an_append_that_is_killed_is_there_whole_or_not_at_all(
    file: Path, pause: float
) -> None:
    with child("save_many", file, 800) as process:
        assert line_of(process) == "ready"
        await asyncio.sleep(pause)
        process.kill()
        assert process.stdout is not None
        saved = "saved" in process.stdout.read()
    async with sessiontree.open_store(file) as store:
        chat = await store.conversation("chat", create=False)
        count = len(await chat.tree())
        assert count in ((800,) if saved else (0, 800))
        assert len(await chat.path()) == count
        assert await store.check() == []


async def test_a_program_that_is_interrupted_closes_its_store_and_ends(file: Path) -> None:
    with child("talk_on", file) as process:
        line_of(process)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) != 0
    assert os.listdir(file.parent) == [file.name]
    async with sessiontree.open_store(file) as store:
        assert await store.check() == []
