"""The program in a real terminal."""

from __future__ import annotations

import sys

import pytest

from tests.cli.chat.conftest import Talking
from tests.cli.chat.talking import SLOW

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are a Unix thing")
if sys.platform != "win32":
    from tests.cli.chat.terminals import Shown


def test_a_person_talks_and_leaves(talking: Talking):
    talk = talking([{"text": "Hello there.", "thinking": "A greeting."}])
    with Shown(talk, "--topic", "T-1", "--owner", "camille") as screen:
        screen.until("m1 · conversation 1, camille/T-1 · /help tells what can be done")
        screen.until("> ")
        screen.type("hi\r")
        shown = screen.until("> ")
        assert shown.startswith("hi\nA greeting.\nHello there.\nin ")
        screen.type("\x04")
        assert screen.ends() == 0
    assert talk.path(owner="camille") == [("user", "hi"), ("assistant", "Hello there.")]
    assert "\x1b[" in screen.text


def test_ctrl_c_interrupts_the_answer_and_not_the_program(talking: Talking):
    talk = talking([SLOW, "ok"])
    with Shown(talk, "--topic", "T-1") as screen:
        screen.until("> ")
        screen.type("hi\r")
        screen.until("one ")
        screen.type("\x03")
        screen.until("(interrupted: nothing half is kept; /retry asks again)\n> ")
        assert talk.path() == [("user", "hi")]
        screen.type("/retry\r")
        screen.until("ok\n")
        screen.until("> ")
        screen.type("/quit\r")
        assert screen.ends() == 0
    assert talk.path() == [("user", "hi"), ("assistant", "ok")]


def test_ctrl_c_interrupts_a_summary_and_nothing_of_it_is_kept(only_openai: Talking):
    talk = only_openai([{"when": "^Below", **SLOW}, "a", "b"])
    with Shown(talk, "--topic", "T-1", "--max-messages", "2", "--summarize") as screen:
        for line in ("one", "two"):
            screen.until("> ")
            screen.type(f"{line}\r")
        screen.until("(summarising what is no longer sent …)")
        screen.type("\x03")
        screen.until("(interrupted: ")
        screen.until("> ")
        screen.type("/quit\r")
        assert screen.ends() == 0
    assert talk.path() == [("user", "one"), ("assistant", "a"), ("user", "two")]


def test_ctrl_c_at_the_prompt_clears_the_line(only_openai: Talking):
    talk = only_openai(["ok"])
    with Shown(talk, "--topic", "T-1") as screen:
        screen.until("> ")
        screen.type("never said")
        screen.until("never said")
        screen.press("\x03", "Ctrl-D or /quit ends it\n> ")
        screen.type("said\r")
        screen.until("ok\n")
        screen.until("> ")
        screen.type("\x04")
        assert screen.ends() == 0
    assert talk.path()[0] == ("user", "said")


def test_earlier_prompts_come_back_by_the_arrow_key(only_openai: Talking):
    talk = only_openai(["a", "b"])
    talk("what I said\n", "--topic", "T-1")
    with Shown(talk, "--topic", "T-1") as screen:
        screen.until("it goes on after message 2 (assistant)")
        screen.until("> ")
        screen.type("\x1b[A")
        screen.until("what I said")
        screen.type("\r")
        screen.until("b\n")
        screen.until("> ")
        screen.type("/he\t\r")
        screen.until("/quit ")
        screen.until("> ")
        screen.type("\x04")
        assert screen.ends() == 0
    assert [text for role, text in talk.path() if role == "user"] == ["what I said"] * 2


def test_an_error_leaves_the_prompt_and_no_error_code(only_openai: Talking):
    talk = only_openai([{"error": 401}])
    with Shown(talk, "--topic", "T-1", NO_COLOR="1") as screen:
        screen.until("> ")
        screen.type("hi\r")
        screen.until("401: Incorrect API key provided. (look at the key in OPENAI_API_KEY)\n")
        screen.until("> ")
        screen.type("/tre\r")
        screen.until("there is no /tre (do you mean /tree? ")
        screen.until("> ")
        screen.type("\x04")
        assert screen.ends() == 0


def test_a_line_that_ends_with_a_backslash_goes_on_in_the_next(only_openai: Talking):
    talk = only_openai(["ok"])
    with Shown(talk, "--topic", "T-1") as screen:
        screen.until("> ")
        screen.type("one\\\r")
        screen.until("| ")
        screen.type("two\r")
        screen.until("ok\n")
        screen.until("> ")
        screen.type("\x04")
        assert screen.ends() == 0
    assert talk.path()[0] == ("user", "one\ntwo")


def test_letters_of_any_script_are_typed_and_kept(only_openai: Talking):
    talk = only_openai(["好的 👍"])
    with Shown(talk, "--topic", "T-1", LC_ALL="C.UTF-8") as screen:
        screen.until("> ")
        screen.type("où est 荷物?\r")
        screen.until("好的 👍\n")
        screen.until("> ")
        screen.type("\x04")
        assert screen.ends() == 0
    assert talk.path() == [("user", "où est 荷物?"), ("assistant", "好的 👍")]
