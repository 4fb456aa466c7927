"""What errors advise fits where it is read: no word of the library's at the shell or in a chat."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import Result

import sessiontree
from sessiontree.cli.wording import for_chat, for_shell, why_in_chat
from sessiontree.core.reclaim.readers import blindness
from sessiontree.errors import SessionTreeError

Run = Callable[..., Result]

PYTHON = re.compile(r"\w\(|(?<![\w-])[a-z_]+=|\b(None|True|False)\b")
"""A call, an argument by name, or a value of Python's."""

NEVER_ASKED = (
    "the id of a conversation is an integer",  # commands take integers only
    "give 0 or more, or None for all",
    "ask this one's own resume()",  # turns are the chat's own
    "what was added is kept as a draft",
    "use it inside `",
    "ask handles(name) first",
    "create=True would make it",  # told otherwise by cli/opening
    "say what has to fit: budget=",  # reclaims are asked for by the chat itself
    "pass summarise=an async function",
    "give one key for each message",  # one message, one key
    "join them: text.encode",  # no text from outside has half a character
    "give its name, or None",
    "give a function of a message",
    "one of True, False, None",
)
"""Hints that no command and no line of a chat leads to."""


def hints() -> Iterator[str]:
    """Every hint in the source that says something in Python; 7 stands for what is put in."""
    root = Path(sessiontree.__file__).parent
    for file in sorted(root.rglob("*.py")):
        if not {"cli", "cache"} & set(file.relative_to(root).parts):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                yield from filter(PYTHON.search, _texts(node))


def _texts(node: ast.AST) -> Iterator[str]:
    is_hint = (isinstance(node, ast.keyword) and node.arg == "hint") or (
        isinstance(node, ast.Assign)
        and any(isinstance(name, ast.Name) and name.id == "hint" for name in node.targets)
    )
    inside = list(ast.walk(node.value)) if is_hint else []  # type: ignore[attr-defined]
    parts = {part for each in inside if isinstance(each, ast.JoinedStr) for part in each.values}
    for each in inside:
        if isinstance(each, ast.JoinedStr):
            yield "".join(
                part.value if isinstance(part, ast.Constant) else "7" for part in each.values
            )
        elif isinstance(each, ast.Constant) and isinstance(each.value, str) and each not in parts:
            yield each.value


ASKED = sorted({hint for hint in hints() if not hint.startswith(NEVER_ASKED)})


def test_there_are_hints_to_look_at():
    assert len(ASKED) >= 8
    known = set(hints())
    assert all(any(hint.startswith(start) for hint in known) for start in NEVER_ASKED)


@pytest.mark.parametrize("hint", ASKED)
@pytest.mark.parametrize("place", [for_shell, for_chat])
def test_no_hint_speaks_python_to_a_person(place: Callable[[SessionTreeError], str], hint: str):
    told = place(SessionTreeError("it was refused", hint=hint))
    assert told.startswith("it was refused")
    assert not PYTHON.search(told)
    assert not told.endswith(("()", ", )", "; )"))


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["checkpoint", 1, "before-refund"], "choose another label; --replace moves it"),
        (["branch", 1, 999], "`sessiontree tree` shows those that do"),
        (["redo", 1], "`sessiontree history` tells the moves there were"),
        (["window", 1, "--budget", 1], "raise the budget, or pin less"),
        (["window", 1, "--budget", 0], "from 1 up, or leave it out"),
    ],
)
def test_a_command_is_advised_by_commands_and_options(
    run: Run, ids: dict[str, int], command: list[object], told: str
):
    result = run(*command)
    assert result.exit_code == 1
    assert told in result.stderr
    assert not PYTHON.search(result.stderr)


def test_what_is_quoted_stays_as_it_was():
    quoted = SessionTreeError("there is no label 'see tree()'", hint="see tree()")
    assert for_chat(quoted) == "there is no label 'see tree()' (/tree shows those that do)"


def test_a_hint_that_is_for_callers_only_leaves_no_empty_brackets():
    assert for_chat(SessionTreeError("no", hint=", or open it with read_only=True")) == "no"


def test_why_no_pages_were_made_names_no_argument():
    why = blindness("some-model", "openai_chat", None)
    assert "vision=True" in why
    assert why_in_chat(why) == "it is not known whether some-model takes images"
