"""append, branch, fork, edit, checkpoint, rewind, undo, redo: each says where the head is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

Run = Callable[..., Result]
AsJson = Callable[..., Any]


def head(as_json: AsJson) -> int | None:
    return as_json("show", 1)["conversation"]["head"]


def texts(as_json: AsJson, name: object = 1) -> list[str]:
    return [message["text"] for message in as_json("path", name)]


def test_branch_moves_the_head_and_says_so(run: Run, as_json: AsJson, ids: dict[str, int]):
    result = run("branch", 1, ids["no"])
    assert result.stdout == f"conversation 1: the head is message {ids['no']}  No.\n"
    assert head(as_json) == ids["no"]


def test_branch_to_the_start_leaves_everything_in_the_tree(
    run: Run, as_json: AsJson, ids: dict[str, int]
):
    assert as_json("branch", 1, "--start") == {"conversation": 1, "head": None}
    assert run("path", 1).stdout == ""
    assert len(as_json("tree", 1)["nodes"]) == 7


@pytest.mark.parametrize("wrong", [[], [3, "--start"], ["three"]])
def test_branch_wants_exactly_one_place(run: Run, ids: dict[str, int], wrong: list[object]):
    result = run("branch", 1, *wrong)
    assert result.exit_code == 2


def test_branch_into_the_middle_of_a_step_is_refused(
    run: Run, as_json: AsJson, ids: dict[str, int]
):
    result = run("branch", 1, ids["call"])
    assert result.exit_code == 1
    assert "is not a boundary" in result.stderr
    assert head(as_json) == ids["calmer"]


def test_undo_and_redo_follow_the_moves(run: Run, as_json: AsJson, ids: dict[str, int]):
    run("branch", 1, ids["no"])
    assert as_json("undo", 1)["head"] == ids["calmer"]
    assert as_json("redo", 1)["head"] == ids["no"]
    result = run("redo", 1)
    assert result.exit_code == 1
    assert result.stderr.startswith("sessiontree: ")


def test_edit_makes_a_sibling_with_the_text_of_the_argument(
    run: Run, as_json: AsJson, ids: dict[str, int]
):
    assert run("edit", 1, ids["wish"], "Refund half of it.").exit_code == 0
    assert texts(as_json)[-1] == "Refund half of it."
    assert len(as_json("tree", 1)["nodes"]) == 8


def test_edit_reads_stdin_and_keeps_its_lines(run: Run, as_json: AsJson, ids: dict[str, int]):
    assert run("edit", 1, ids["wish"], stdin="two\nlines — ⚠\n").exit_code == 0
    assert texts(as_json)[-1] == "two\nlines — ⚠"


@pytest.mark.parametrize(
    ("stdin", "why"), [("", "no text"), (" \n", "no text"), (b"\xff\xfe", "not UTF-8")]
)
def test_edit_without_text_is_refused(
    run: Run, as_json: AsJson, ids: dict[str, int], stdin: str | bytes, why: str
):
    result = run("edit", 1, ids["wish"], stdin=stdin)
    assert result.exit_code == 1
    assert why in result.stderr
    assert len(as_json("tree", 1)["nodes"]) == 7


def test_a_whole_message_is_kept_to_the_byte(run: Run, as_json: AsJson, ids: dict[str, int]):
    text = '{"content" : "b\\u00e4r",  "role":"user", "n": 12345678901234567890123}'
    assert run("append", 1, "--message", text).exit_code == 0
    assert as_json("show", 1, head(as_json))["raw"] == text


@pytest.mark.parametrize("text", ["{", "[]", '{"role": "wizard", "content": "x"}', "3"])
def test_what_is_no_message_is_refused(run: Run, as_json: AsJson, ids: dict[str, int], text: str):
    result = run("append", 1, "--message", text)
    assert result.exit_code == 1
    assert result.stderr.startswith("sessiontree: ")
    assert head(as_json) == ids["calmer"]


def test_append_follows_the_head(as_json: AsJson, ids: dict[str, int]):
    as_json("append", 1, "Done.", "--role", "assistant")
    assert texts(as_json)[-2:] == ["Please refund it.", "Done."]


def test_append_with_a_key_saves_once(as_json: AsJson, ids: dict[str, int]):
    first = as_json("append", 1, "Thanks!", "--key", "k1")
    assert as_json("append", 1, "Thanks!", "--key", "k1")["head"] == first["head"]
    assert texts(as_json).count("Thanks!") == 1


def test_append_begins_a_conversation_only_when_told(run: Run, as_json: AsJson, store: Path):
    assert run("append", "camille/new", "hello").exit_code == 1
    assert not store.exists()
    assert run("append", "camille/new", "hello", "--new").exit_code == 0
    assert run("append", "camille/new", "again", "--new").exit_code == 0
    assert texts(as_json, "camille/new") == ["hello", "again"]
    assert "'ben/new' (--new begins it; " in run("append", "ben/new", "hello").stderr
    for name in ("77", "", "camille/"):
        result = run("append", name, "hello", "--new")
        assert result.exit_code == 1
        assert "give owner/topic" in result.stderr


def test_fork_is_a_conversation_of_its_own(run: Run, as_json: AsJson, ids: dict[str, int]):
    made = as_json("fork", 1, ids["reply"], "--owner", "ben", "--topic", "copy")
    assert made["conversation"] != 1
    assert texts(as_json, "ben/copy") == texts(as_json)[:4]
    assert head(as_json) == ids["calmer"]
    again = run("fork", 1, "--owner", "ben", "--topic", "copy")
    assert again.exit_code == 1
    assert "already" in again.stderr


def test_checkpoint_sets_lists_and_moves_a_label(run: Run, as_json: AsJson, ids: dict[str, int]):
    assert run("checkpoint", 1, "here", "--note", "all well").exit_code == 0
    found = {each["label"]: each for each in as_json("checkpoint", 1)}
    assert found["here"]["message_id"] == ids["calmer"]
    assert found["here"]["note"] == "all well"
    taken = run("checkpoint", 1, "here", "--at", ids["no"])
    assert taken.exit_code == 1
    assert run("checkpoint", 1, "here", "--at", ids["no"], "--replace").exit_code == 0
    assert f"here  message {ids['no']}" in run("checkpoint", 1).stdout


def test_rewind_goes_to_the_label_and_brings_the_digest(
    run: Run, as_json: AsJson, ids: dict[str, int]
):
    assert as_json("rewind", 1, "before-refund")["head"] == ids["reply"]
    assert (
        run("rewind", 1, "before-refund", "--digest", "the refund API answers 403").exit_code == 0
    )
    assert "the refund API answers 403" in texts(as_json)[-1]


def test_rewind_to_no_label_names_those_that_exist(run: Run, as_json: AsJson, ids: dict[str, int]):
    result = run("rewind", 1, "after-refund")
    assert result.exit_code == 1
    assert "before-refund" in result.stderr
    assert head(as_json) == ids["calmer"]


def test_only_words_can_be_said_in_other_words(run: Run, as_json: AsJson, ids: dict[str, int]):
    result = run("edit", 1, ids["answer"], "lost")
    assert result.exit_code == 1
    assert "--message" in result.stderr
    assert run("append", 1, "lost", "--role", "tool").exit_code == 2
    assert len(as_json("tree", 1)["nodes"]) == 7
