"""ls, show, tree, path, history, resume, check: what they print, for people and for programs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

import sessiontree

Run = Callable[..., Result]
AsJson = Callable[..., Any]


def test_ls_lists_conversations_by_name(run: Run, ids: dict[str, int]):
    result = run("ls")
    assert result.exit_code == 0
    header, line = result.stdout.splitlines()
    assert header.split() == ["id", "name", "messages", "changed", "title"]
    assert line.split()[:3] == [str(ids["chat"]), "camille/T-80005", "7"]
    assert line.endswith("Draft replies")


def test_ls_in_json_holds_every_fact(as_json: AsJson, ids: dict[str, int]):
    (found,) = as_json("ls")
    assert found["id"] == ids["chat"]
    assert (found["owner"], found["topic"], found["title"]) == (
        "camille",
        "T-80005",
        "Draft replies",
    )
    assert (found["head"], found["messages"]) == (ids["calmer"], 7)


def test_ls_of_another_owner_is_empty(run: Run, as_json: AsJson, ids: dict[str, int]):
    assert as_json("ls", "--owner", "nobody") == []
    assert run("ls", "--owner", "nobody").stdout == "no conversations\n"


def test_ls_takes_no_more_than_asked(as_json: AsJson, run: Run, ids: dict[str, int]):
    run("fork", ids["chat"])
    assert len(as_json("ls")) == 2
    assert len(as_json("ls", "--limit", 1)) == 1


@pytest.mark.parametrize("name", ["1", "camille/T-80005"])
def test_a_conversation_is_named_by_id_or_by_owner_and_topic(
    as_json: AsJson, ids: dict[str, int], name: str
):
    assert as_json("show", name)["conversation"]["id"] == ids["chat"]


@pytest.mark.parametrize("name", ["99", "T-80005", "camille/other", "camille", "", "9" * 40])
def test_an_unknown_name_is_not_found_in_one_line(run: Run, ids: dict[str, int], name: str):
    result = run("show", name)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith(f"sessiontree: there is no conversation {name!r}")
    assert "ls" in result.stderr
    assert result.stderr.count("\n") == 1


def test_topics_and_owners_with_slashes_are_found_and_ambiguity_is_refused(
    run: Run, as_json: AsJson, store: Path
):
    async def make() -> list[int]:
        async with sessiontree.open_store(store) as opened:
            made = [("a/b", "c"), ("", "x/y"), ("a", "b/d"), ("a/b", "d")]
            return [(await opened.conversation(t, owner=o)).id for o, t in made]

    made = asyncio.run(make())
    assert as_json("show", "a/b/c")["conversation"]["id"] == made[0]
    assert as_json("show", "x/y")["conversation"]["id"] == made[1]
    result = run("show", "a/b/d")
    assert result.exit_code == 1
    assert f"{made[2]}, {made[3]}" in result.stderr or f"{made[3]}, {made[2]}" in result.stderr


def test_show_tells_facts_checkpoints_and_leaves(run: Run, as_json: AsJson, ids: dict[str, int]):
    found = as_json("show", ids["chat"])
    assert [leaf["id"] for leaf in found["leaves"]] == [ids["no"], ids["calmer"]]
    assert [(each["label"], each["message_id"]) for each in found["checkpoints"]] == [
        ("before-refund", ids["reply"])
    ]
    text = run("show", ids["chat"]).stdout
    assert "camille/T-80005" in text
    assert "before-refund" in text
    assert "nothing was paid back yet" in text
    assert "Please refund it.  ← head" in text


def test_show_prints_one_message_to_the_byte(run: Run, as_json: AsJson, ids: dict[str, int]):
    found = as_json("show", ids["chat"], ids["call"])
    assert found["calls"] == [
        {"id": "call_1", "name": "find_order", "arguments": {"id": "LK-266415"}}
    ]
    assert json.loads(found["raw"])["tool_calls"][0]["id"] == "call_1"
    assert found["open_calls"] == 1
    assert run("show", ids["chat"], ids["answer"]).stdout.count("shipped") == 30


def test_a_message_of_no_one_is_not_found(run: Run, ids: dict[str, int]):
    for command in (["show", 1, 999], ["path", 1, "--leaf", 999], ["branch", 1, 999]):
        result = run(*command)
        assert (result.exit_code, result.stdout) == (1, "")
        assert "no message 999" in result.stderr


def test_the_tree_has_the_heads_branch_first(run: Run, ids: dict[str, int]):
    lines = run("tree", ids["chat"]).stdout.splitlines()
    assert [line.split()[0] for line in lines] == [
        str(ids[name]) for name in ("prompt", "call", "answer", "reply", "calmer", "wish", "no")
    ]
    assert lines[3].endswith("It left on Monday.  [before-refund]")
    assert lines[4] == f"{ids['calmer']} ● ├ user      Please refund it.  2/2  ← head"
    assert lines[5] == f"{ids['wish']}   └ user      Refund it!  1/2"
    assert lines[6] == f"{ids['no']}     assistant No."


def test_the_tree_can_be_folded_and_filtered(run: Run, ids: dict[str, int]):
    folded = run("tree", ids["chat"], "--fold", ids["reply"]).stdout.splitlines()
    assert folded[-1].endswith("[before-refund]  +3 hidden")
    users = run("tree", ids["chat"], "--only", "user").stdout.splitlines()
    assert len(users) == 3
    assert len(run("tree", ids["chat"], "--only", "talk").stdout.splitlines()) == 6
    assert len(run("tree", ids["chat"], "--only", "labels").stdout.splitlines()) == 1
    assert run("tree", ids["chat"], "--fold", 999).exit_code == 1


def test_the_tree_in_json_holds_what_a_display_needs(as_json: AsJson, ids: dict[str, int]):
    found = as_json("tree", ids["chat"])
    assert found["head"] == ids["calmer"]
    nodes = {node["id"]: node for node in found["nodes"]}
    assert nodes[ids["reply"]]["children"] == [ids["wish"], ids["calmer"]]
    assert nodes[ids["reply"]]["labels"] == ["before-refund"]
    calmer = nodes[ids["calmer"]]
    assert (calmer["level"], calmer["index"], calmer["count"]) == (1, 2, 2)
    assert (calmer["is_head"], calmer["on_path"], calmer["hidden"]) == (True, True, 0)
    assert not nodes[ids["wish"]]["on_path"]


def test_the_path_is_printed_for_reading(run: Run, ids: dict[str, int]):
    text = run("path", ids["chat"]).stdout
    order = ["Where is order", "find_order", '"LK-266415"', "shipped", "It left", "Please refund"]
    places = [text.index(each) for each in order]
    assert places == sorted(places)
    assert "Refund it!" not in text


def test_the_path_cuts_long_answers_unless_all_is_asked_for(run: Run, ids: dict[str, int]):
    text = run("path", ids["chat"]).stdout
    assert text.count("shipped") == 20
    assert "80 more characters; --full shows them" in text
    assert run("path", ids["chat"], "--full").stdout.count("shipped") == 30


def test_the_path_may_end_elsewhere_and_begin_late(as_json: AsJson, ids: dict[str, int]):
    found = as_json("path", ids["chat"], "--leaf", ids["no"], "--newest", 2)
    assert [message["id"] for message in found] == [ids["wish"], ids["no"]]
    whole = as_json("path", ids["chat"])
    assert [message["id"] for message in whole][-1] == ids["calmer"]
    assert len(whole) == 5


def test_history_lists_the_moves_of_the_head(run: Run, as_json: AsJson, ids: dict[str, int]):
    run("branch", ids["chat"], ids["no"])
    moves = as_json("history", ids["chat"])
    assert {(move["from_id"], move["to_id"], move["cause"]) for move in moves} >= {
        (ids["calmer"], ids["no"], "branch")
    }
    assert [move["to_id"] for move in moves if move["is_current"]] == [ids["no"]]
    assert f"{ids['calmer']} → {ids['no']}" in run("history", ids["chat"]).stdout


def test_resume_reports_the_call_that_was_in_flight(
    run: Run, as_json: AsJson, store: Path, ids: dict[str, int]
):
    call = {"name": "refund", "arguments": '{"sum": 10}'}
    calls = [{"id": "call_9", "type": "function", "function": call}]

    async def break_off() -> None:
        async with sessiontree.open_store(store) as opened:
            chat = await opened.open(ids["chat"])
            async with chat.turn() as turn:
                await turn.add({"role": "assistant", "tool_calls": calls})
                raise RuntimeError("the harness fell over")

    with pytest.raises(RuntimeError):
        asyncio.run(break_off())
    found = as_json("resume", ids["chat"])
    assert found["head"] == ids["calmer"]
    assert found["interrupted"] == [{"id": "call_9", "name": "refund", "arguments": {"sum": 10}}]
    text = run("resume", ids["chat"]).stdout
    assert "refund" in text
    assert '"sum":10' in text.replace(" ", "")
    assert "unknown" in text


def test_resume_without_anything_in_flight_says_so(run: Run, as_json: AsJson, ids: dict[str, int]):
    assert as_json("resume", ids["chat"])["interrupted"] == []
    assert "no call was in flight" in run("resume", ids["chat"]).stdout


def test_check_of_a_sound_store_finds_nothing(run: Run, as_json: AsJson, ids: dict[str, int]):
    assert run("check").stdout == "the store is sound\n"
    assert as_json("check") == []


def test_looking_changes_no_byte_of_the_store(run: Run, store: Path, ids: dict[str, int]):
    before = store.read_bytes()
    for command in (["ls"], ["show", 1], ["tree", 1], ["path", 1], ["history", 1], ["resume", 1]):
        assert run(*command).exit_code == 0
    assert store.read_bytes() == before


def test_looking_into_a_store_that_is_not_there_makes_none(run: Run, store: Path):
    result = run("ls")
    assert result.exit_code == 1
    assert f"there is no store at {store}" in result.stderr
    assert not store.exists()


def test_a_file_without_a_byte_becomes_a_store_when_it_is_looked_at(run: Run, store: Path):
    store.touch()
    assert run("ls").stdout == "no conversations\n"


def test_an_empty_conversation_can_be_looked_at(run: Run, as_json: AsJson, store: Path):
    async def make() -> None:
        async with sessiontree.open_store(store) as opened:
            await opened.conversation("empty")

    asyncio.run(make())
    assert as_json("tree", "empty") == {"conversation": 1, "head": None, "nodes": []}
    assert as_json("path", "empty") == []
    assert run("tree", "empty").stdout == "no messages\n"
    assert "before the first message" in run("show", "empty").stdout
    assert run("history", "empty").stdout == "the head has not moved\n"
    assert run("resume", "empty").exit_code == 0


def test_a_fork_of_nothing_is_told_in_words(run: Run, ids: dict[str, int]):
    run("append", "mia/empty", "hi", "--new")
    run("branch", "mia/empty", "--start")
    run("fork", "mia/empty", "--topic", "none")
    shown = run("show", "mia/none").stdout
    assert "before its first message" in shown
    assert "None" not in shown
