"""What the page on the chat program shows is what the program prints."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.cli.chat.conftest import Talking
from tests.cli.chat.talking import Talk, environment

if sys.platform != "win32":
    from tests.cli.chat.terminals import Shown
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are a Unix thing")

PAGE = Path(__file__).parents[3] / "docs" / "chat.md"
FIRST = "It takes a wh"
SLOW = {"text": FIRST * 9_000, "piece": len(FIRST), "delay": 0.3}
SUMMARY = "The customer asked for LK-266415; it left Lyon on Monday."
ANSWERS = (
    [
        "It left the depot in Lyon on Monday.",
        "A parcel that travels cannot be paid back.",
        "Wait until Thursday; after that it can be paid back.",
    ],
    [SLOW],
    [],
    ["Paris.", "Rome."],
    [
        {"when": "^Below", "text": SUMMARY},
        "It left Lyon on Monday.",
        "On Thursday.",
        "Yes, by post.",
    ],
)
"""What the model says in each of the page's examples."""


def examples() -> list[str]:
    return re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def replay(talk: Talk, example: str) -> str:
    """The example as it looks today."""
    command, *rest = example.splitlines()
    typed = [
        (line.removeprefix("> "), after.endswith("^C"))
        for line, after in pairwise([*rest, ""])
        if line.startswith("> ")
    ]
    shown = _piped(talk, command) if "|" in command else _typed(talk, command, typed)
    shown = re.sub(rf"({FIRST})+\^C", rf"{FIRST}^C", shown)  # more pieces of it may have come
    return f"{command}\n{shown}"


def _piped(talk: Talk, command: str) -> str:
    """Run it by the shell, with a ``sessiontree`` that knows the server and the store."""
    program = shlex.join(talk.command())
    names, _, line = command.removeprefix("$ ").rpartition("sessiontree chat")
    done = subprocess.run(
        ["bash", "-c", f"{names}{program}{line} 2>&1"],
        env=environment(**talk.more),
        capture_output=True,
        check=False,
    )
    return done.stdout.decode()


def _typed(talk: Talk, command: str, lines: list[tuple[str, bool]]) -> str:
    """Type the lines into a terminal, each at a prompt; and Ctrl-C where an answer to one is
    interrupted, once its first piece shows."""
    args = shlex.split(command.removeprefix("$ sessiontree chat"))
    with Shown(talk, *args, NO_COLOR="1") as screen:
        for line, stops in lines:
            screen.until("> ")
            screen.type(f"{line}\r")
            if stops:
                screen.until(FIRST)
                screen.type("\x03")
        screen.ends()
        return screen.plain


def test_every_example_of_the_page_is_what_the_program_prints(only_openai: Talking):
    found = examples()
    assert len(found) == len(ANSWERS)
    talk = only_openai()
    talk.model = "stand-in"
    for example, answers in zip(found, ANSWERS, strict=True):
        talk.server.script.add(answers)
        assert replay(talk, example) == example
        assert talk.server.left == []
