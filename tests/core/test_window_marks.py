"""What marks on the path do to a window, and that nothing else of them is sent."""

from __future__ import annotations

import json

import pytest
from paths import (
    TARGETS,
    a_calls,
    a_results,
    assistant,
    path,
    user,
    violations,
    window,
)


def mark(kind, ref, **more):
    return {"role": "mark", "kind": kind, **more}, {"ref_id": ref}


LOG = "error in module seven\n" * 40


@pytest.mark.parametrize("target", TARGETS)
def test_an_elided_result_names_its_tool_and_what_was_there(target):
    messages = path(
        [
            user("go"),
            a_calls("x"),
            a_results("x", output=LOG),
            a_calls("y"),
            a_results("y", output=LOG),
            mark("elide", 3),
            user("now"),
        ],
        "anthropic",
    )
    found = window(messages, target)
    said = json.dumps(found.messages)
    assert "The output of read was elided: about" in said
    assert "error in module seven" in said
    assert said.count("error in module seven") < 45
    assert [s.messages for s in found.steps if s.rule == "elide"] == [(3,)]
    assert violations(found) == []


def test_spared_tools_and_small_results_are_not_elided():
    messages = path(
        [
            user("go"),
            a_calls("x"),
            a_results("x", output=LOG),
            a_calls("y"),
            a_results("y"),
            mark("elide", 5, spared=["read"]),
            user("now"),
        ],
        "anthropic",
    )
    assert window(messages, "anthropic").messages == [
        m.native for m in messages if m.role != "mark"
    ]


def test_a_mark_without_a_reference_reaches_all_before_it():
    messages = path(
        [user("go"), a_calls("x"), a_results("x", output=LOG), mark("elide", None), user("now")],
        "anthropic",
    )
    assert "was elided" in str(window(messages, "anthropic").messages)


def test_a_mark_whose_message_was_pruned_changes_nothing():
    messages = path([user("a"), assistant("b"), mark("cut", 99), user("c")], "anthropic")
    found = window(messages, "anthropic")
    assert found.ids == (1, 2, 4)
    assert found.complete


def test_notes_of_programs_that_are_no_marks_of_ours_are_passed_over():
    note = ({"role": "mark", "kind": "label", "text": "here"}, {})
    found = window(path([user("a"), note, user("c")], "anthropic"), "anthropic")
    assert found.messages == [user("a"), user("c")]
    assert found.steps == []


def test_a_compaction_of_another_program_is_a_summary():
    line = {"type": "compaction", "id": "c", "parentId": "b", "summary": "what came before"}
    fields = {"ref_id": 3, "meta": {"sessiontree": {"kind": "compaction"}}, "format": "pi"}
    messages = path([user("a"), assistant("b"), user("c"), (line, fields), user("d")], "anthropic")
    found = window(messages, "anthropic")
    assert "what came before" in str(found.messages[0])
    assert found.ids == (3, 5)


def test_a_cut_that_would_leave_nothing_leaves_the_newest_turn():
    messages = path([user("a"), assistant("b"), user("c"), mark("cut", None)], "anthropic")
    assert window(messages, "anthropic").ids == (3,)


def test_a_summary_stands_before_what_is_kept_and_behind_what_is_pinned():
    messages = path(
        [user("ticket"), assistant("b"), user("c"), mark("summary", 3, text="so far"), user("d")],
        "anthropic",
    )
    found = window(messages, "anthropic", pinned=[1])
    assert found.messages[0] == user("ticket")
    assert "so far" in str(found.messages[1])
    assert found.ids == (1, 3, 5)


def test_a_summary_is_kept_when_the_budget_cuts_behind_what_it_reaches():
    natives = [user("a"), user("b " * 200), mark("summary", 2, text="so far"), user("c")]
    found = window(path(natives, "anthropic"), "anthropic", budget=150)
    assert "so far" in str(found.messages[0])
    assert found.ids == (4,)


def test_going_back_before_a_mark_undoes_it():
    natives = [user("go"), a_calls("x"), a_results("x", output=LOG), user("now")]
    marked = path([*natives, mark("elide", 3)], "anthropic")
    assert window(marked, "anthropic").messages != natives
    assert window(marked[:-1], "anthropic").messages == natives


def test_images_behind_a_mark_are_named_in_words():
    image = {"type": "image", "source": {"type": "url", "url": "https://example.com/cat.png"}}
    seen = {"role": "user", "content": [image]}
    messages = path([seen, assistant("a cat"), mark("images", 1), seen], "anthropic")
    found = window(messages, "anthropic")
    assert "cat.png" in found.messages[0]["content"][0]["text"]
    assert found.messages[2] == seen
    assert [s.rule for s in found.steps] == ["images"]
