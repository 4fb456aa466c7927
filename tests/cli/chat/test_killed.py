"""Killed at any moment: nothing half is history, and the next start says where it stands."""

from __future__ import annotations

import signal
import subprocess

from tests.cli.chat.conftest import Talking
from tests.cli.chat.talking import MAIN, SLOW, Talk, asked, texts

SLOW_TOOL = f"""
import asyncio
from sessiontree.conversation.tools import ModelTools

async def call(self, call, turn):
    print("the tool runs", flush=True)
    await asyncio.sleep(3_600)

ModelTools.call = call
{MAIN}
"""
"""The program, with a tool that takes its time."""


def kill(process: subprocess.Popen[bytes], sign: int = signal.SIGKILL) -> None:
    process.send_signal(sign)
    process.communicate()


def given(process: subprocess.Popen[bytes], *lines: str) -> subprocess.Popen[bytes]:
    assert process.stdin is not None
    process.stdin.write("".join(f"{line}\n" for line in lines).encode())
    return process


def wait_for(process: subprocess.Popen[bytes], words: bytes, *, beside: bool = False) -> None:
    """Read what the program says until these words come."""
    stream = process.stderr if beside else process.stdout
    assert stream is not None
    seen = b""
    while words not in seen:
        piece = stream.read(1)
        assert piece, seen
        seen += piece


def test_killed_while_an_answer_comes(talking: Talking):
    talk = talking(["first", SLOW, "ok"])
    process = given(talk.start("--topic", "T-1"), "hi", "tell me")
    wait_for(process, b"first\none ")
    kill(process)
    assert talk.path() == [("user", "hi"), ("assistant", "first"), ("user", "tell me")]
    said = talk("/retry\n", "--topic", "T-1")
    assert "3 messages on the path; it goes on after message 3 (user)" in said.notes
    assert "(the last prompt was not answered; /retry asks again)" in said.notes
    assert said.out == "ok\n"
    assert texts(talk.server.requests[-1])[-1] == ("user", "tell me")
    _is_sound(talk)


def test_killed_while_a_tool_runs(talking: Talking):
    call = {"name": "checkpoint", "arguments": {"label": "here"}}
    talk = talking([{"text": "I mark it.", "calls": [call]}, "Marked.", "Now?"])
    process = given(talk.start("--topic", "T-1", "--tools", main=SLOW_TOOL), "mark this")
    wait_for(process, b"the tool runs")
    kill(process)
    assert talk.path() == [("user", "mark this")]
    said = talk("/retry\n", "--topic", "T-1", "--tools")
    assert "in flight when it ended; whether these had an effect is unknown:" in said.notes
    assert any(note.startswith("→ checkpoint") for note in said.notes)
    assert any("closed as interrupted" in note for note in said.notes)
    assert said.out == "Marked.\n"
    assert talk.path() == [("user", "mark this"), ("assistant", "Marked.")]
    leaves = talk.on("T-1", lambda chat: chat.leaves())
    assert [leaf.role for leaf in leaves] == ["tool", "assistant"]
    assert talk("and?\n", "--topic", "T-1").out == "Now?\n"
    _is_sound(talk)


def test_killed_while_a_tool_runs_and_the_next_prompt_tells_the_model(talking: Talking):
    call = {"name": "checkpoint", "arguments": {"label": "here"}}
    talk = talking([{"calls": [call]}, "I see."])
    process = given(talk.start("--topic", "T-1", "--tools", main=SLOW_TOOL), "mark this")
    wait_for(process, b"the tool runs")
    kill(process)
    assert talk("go on\n", "--topic", "T-1", "--tools").out == "I see.\n"
    assert "the result of this call is unknown" in str(talk.server.requests[-1].body["messages"])


def test_killed_while_a_summary_is_made(talking: Talking):
    talk = talking([{"when": "^Below", **SLOW}, "a", "b", {"when": "^Below", "text": "S."}, "c"])
    options = ["--topic", "T-1", "--max-messages", 4, "--summarize"]
    process = given(talk.start(*options), "one", "two", "three")
    wait_for(process, b"(summarising", beside=True)
    kill(process)
    assert talk.path() == [
        ("user", "one"),
        ("assistant", "a"),
        ("user", "two"),
        ("assistant", "b"),
        ("user", "three"),
    ]
    while any(step.when for step in talk.server.script.left):
        talk.server.script.take("Below")
    # always: the request of the killed may have been heard before, or be heard only now
    talk.server.script.add([{"when": "^Below", "text": "S.", "always": True}])
    said = talk("/retry\n", *options)
    assert (said.code, said.out) == (0, "c\n")
    assert "a summary stands for 2 older messages" in said.err
    last = texts(asked(talk.server.requests)[-1])
    assert last[0][1].endswith("S.")
    assert [text for _, text in last[1:]] == ["two", "b", "three"]
    _is_sound(talk)


def test_ctrl_c_ends_a_pipe_and_keeps_nothing_half(talking: Talking):
    talk = talking([SLOW])
    process = given(talk.start("--topic", "T-1"), "hi", "never asked")
    wait_for(process, b"one ")
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130
    assert said.decode().splitlines()[-1].startswith("(interrupted: ")
    assert talk.path() == [("user", "hi")]
    assert len(talk.server.requests) == 1


def test_another_program_that_goes_on_meanwhile_is_told_of_and_nothing_is_lost(
    only_openai: Talking,
):
    talk = only_openai(["a", "c"])
    process = given(talk.start("--topic", "T-1"), "one")
    wait_for(process, b"a\n")
    wait_for(process, b" out 1\n", beside=True)
    talk.on("T-1", lambda chat: chat.append({"role": "user", "content": "from elsewhere"}))
    _, told = given(process, "two", "/branch 4", "/retry").communicate()
    assert process.returncode == 1
    assert told.decode().splitlines()[0] == (
        "sessiontree: another program went on with this conversation; yours is kept as message 4: "
        "/branch 4 goes on with it"
    )
    assert talk.path() == [("user", "one"), ("assistant", "a"), ("user", "two"), ("assistant", "c")]
    leaves = talk.on("T-1", lambda chat: chat.leaves())
    assert sorted(leaf.text for leaf in leaves) == ["c", "from elsewhere"]


def _is_sound(talk: Talk) -> None:
    import asyncio

    import sessiontree

    async def check() -> list[sessiontree.Problem]:
        async with sessiontree.open_store(talk.store) as store:
            return await store.check()

    assert asyncio.run(check()) == []
