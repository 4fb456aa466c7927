"""What a test runs in a process of its own: ``python children.py NAME FILE [ARGUMENT…]``.

A child says a line when it has come to the point that matters, and waits there to be killed.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sqlite3
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from talk import asks, assistant, call, result, user

import sessiontree


def say(*words: object) -> None:
    print(*words, flush=True)


async def wait_to_be_killed() -> None:
    say("ready")
    await asyncio.sleep(600)


async def call_a_tool(file: str) -> None:
    """Killed between a call and its result."""
    async with sessiontree.open_store(file) as store:
        chat = await store.conversation("chat")
        async with chat.turn() as turn:
            await turn.add(user("Where is order LK-266415?"), key="prompt")
            await turn.add(call("call_7", name="track_order"), key="call")
            await wait_to_be_killed()


async def call_tools(file: str) -> None:
    """Killed when one of two parallel calls has its result."""
    async with sessiontree.open_store(file) as store:
        chat = await store.conversation("chat")
        async with chat.turn() as turn:
            await turn.add(user())
            await turn.add(call("a", "b", name="pay"))
            await turn.add(result("b", "paid"))
            await wait_to_be_killed()


async def go_back_beside_another_call(file: str) -> None:
    """Killed when the model has been told that it goes back, and another call of its message
    has no result yet."""
    async with sessiontree.open_store(file) as store:
        chat = await store.conversation("chat")
        await chat.append([user("go"), assistant("first")])
        await chat.checkpoint("before")
        async with chat.turn() as turn:
            await turn.add(user("explore"))
            reply = await turn.add(
                asks(("pay", {}), ("rewind", {"label": "before", "report": "a dead end"}))
            )
            answer = await sessiontree.ModelTools(chat).call(reply.tool_calls[1], turn)
            assert answer.rewinds == "before"
            await wait_to_be_killed()


async def explore_and_go_back(file: str) -> None:
    """Killed at any time while the model goes back again and again, beside another call."""
    async with sessiontree.open_store(file) as store:
        chat = await store.conversation("chat")
        tools = sessiontree.ModelTools(chat)
        await chat.append(user("go"))
        await chat.checkpoint("start")
        say("ready")
        async with chat.turn() as turn:
            for number in itertools.count():
                back = {"label": "start", "report": f"report {number}"}
                mark = {"label": f"mark {number}"}
                reply = await turn.add(asks(("read", {}), ("rewind", back), ("checkpoint", mark)))
                read, rewind, checkpoint = reply.tool_calls
                await tools.call(rewind, turn)
                await tools.call(checkpoint, turn)
                await turn.answer(read, "text " * 50)


async def save_unheard(file: str) -> None:
    """Killed when the messages are saved and nobody was told: the event loop stands still from
    the moment the unit of work is on its way."""
    async with sessiontree.open_store(file) as store:
        chat = await store.conversation("chat")
        before = await chat.append(user("before"))
        task = asyncio.create_task(
            chat.append([user("again"), assistant("once")], keys=["u-1", "a-1"])
        )
        await asyncio.sleep(0)
        while _count(file) == len(before):
            time.sleep(0.001)  # noqa: ASYNC251
        assert not task.done()
        say("saved")
        os.kill(os.getpid(), signal.SIGKILL)


def _count(file: str) -> int:
    db = sqlite3.connect(file)
    (count,) = db.execute("SELECT count(*) FROM message").fetchone()
    db.close()
    return count


async def talk_on(file: str) -> None:
    """Turns without end; says the head after each that was acknowledged."""
    async with sessiontree.open_store(file) as store:
        chat = await store.conversation("chat")
        for number in range(1_000_000):
            async with chat.turn() as turn:
                await turn.add(user(f"turn {number}"))
                await turn.add(call("call_0"))
                last = await turn.add(result("call_0", "x" * 5_000))
            say(last.id)


async def save_many(file: str, count: str) -> None:
    """One append of many messages."""
    async with sessiontree.open_store(file) as store:
        chat = await store.conversation("chat")
        batch = [user(f"{number} " + "x" * 6_000) for number in range(int(count))]
        say("ready")
        await chat.append(batch)
        say("saved")


async def write_at_the_same_time(file: str, name: str) -> None:
    """One of several writers of one conversation: all look at its head, then all write."""
    async with sessiontree.open_store(file) as store:
        chat = await store.conversation("chat")
        say(chat.head)
        await asyncio.to_thread(sys.stdin.readline)  # until the test lets everybody go
        try:
            saved = await chat.append([user(f"{name} asks"), assistant(f"{name} answers")])
        except sessiontree.HeadMoved as moved:
            say("moved", moved.expected, moved.actual, *(m.id for m in moved.saved))
        else:
            say("saved", *(m.id for m in saved))


async def get_or_create(file: str, name: str) -> None:
    """One of several that open the same store and conversation for the first time."""
    await asyncio.to_thread(sys.stdin.readline)
    async with sessiontree.open_store(file) as store:
        chat = await store.conversation("chat", owner="o", system="be brief")
        await chat.append(user(name), parent=chat.head)
        say(chat.id)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it for jobs
    asyncio.run(globals()[sys.argv[1]](*sys.argv[2:]))
