"""The public reports of histories that a provider refused, each built and windowed.

The numbers and names are those of the list in the project's facts on provider rules. Where
the report tells of a request, that request is checked first: it must be found wrong, by the
rule that the provider named.
"""

from __future__ import annotations

import pytest
from paths import (
    TARGETS,
    a_calls,
    a_image,
    a_results,
    assistant,
    b_calls,
    b_results,
    b_text,
    c_calls,
    c_result,
    g_calls,
    g_model,
    g_results,
    g_user,
    path,
    r_call,
    r_output,
    r_reasoning,
    user,
    violations,
    window,
)

from sessiontree import formats
from sessiontree.core import rules
from sessiontree.core.reclaim import Sight, summary
from sessiontree.core.rules.pairs import INTERRUPTED

SPLIT_CALLS = a_calls("a")
SPLIT_CALLS["content"] += [{"type": "text", "text": "again"}, *a_calls("b")["content"]]

REQUESTS = {
    "01 pi 2796 head moved back onto a call, new user there": (
        "anthropic",
        [user("go"), a_calls("x"), user("other")],
        "A1",
    ),
    "03 qwen-code 4579 user text in one entry with the response": (
        "gemini",
        [g_user("go"), g_calls("read"), g_results("read", text="and this"), g_model("ok")],
        "G4",
    ),
    "04 openclaw 8525 summary eats the call, keeps the result": (
        "anthropic",
        [user("summary"), assistant("ok"), a_results("x"), assistant("done"), user("next")],
        "A2",
    ),
    "05 openclaw 15691 compaction drops the call of a synthetic result": (
        "anthropic",
        [a_results("x", output=INTERRUPTED), user("go on")],
        "A2",
    ),
    "06 OpenHarness 191 the last messages keep a call never answered": (
        "anthropic",
        [a_calls("x"), user("hello")],
        "A1",
    ),
    "07 inspect_ai 3108 trimming leaves a call alone": (
        "anthropic",
        [user("go"), a_calls("x"), assistant("so"), user("next")],
        "A1",
    ),
    "08 litellm 4931 the call is trimmed, the tool message kept": (
        "openai_chat",
        [user("go"), c_result("x"), user("next")],
        "C1",
    ),
    "09 litellm 6505 the result is stripped though it fits": (
        "openai_chat",
        [user("go"), c_calls("x"), user("next")],
        "C2",
    ),
    "10 langchain 33245 strategy last begins with a tool message": (
        "openai_chat",
        [c_result("x"), assistant("done"), user("next")],
        "C1",
    ),
    "11 langchain 34282 keep six of ten parallel calls": (
        "openai_responses",
        [*[r_output(f"call_{i}") for i in range(4, 10)], user("next")],
        "R2",
    ),
    "12 langchain 38352 results of two messages, one summarised": (
        "openai_chat",
        [user("summary"), c_result("a"), c_calls("b"), c_result("b"), user("next")],
        "C1",
    ),
    "13 langchainjs 9272 order after a summary": (
        "gemini",
        [g_calls("read"), g_results("read"), g_model("summary"), g_user("next")],
        "G2",
    ),
    "14 deepagents 270 the assistant between human and tool is removed": (
        "openai_chat",
        [user("go"), c_result("x"), assistant("done"), user("next")],
        "C1",
    ),
    "15 Roo-Code 10379 condensed while the tool runs": (
        "anthropic",
        [user("summary"), a_calls("x"), user("go on")],
        "A1",
    ),
    "16 kimi-code 269 terminal killed while the tool runs": (
        "openai_chat",
        [user("go"), c_calls("x"), user("go on")],
        "C2",
    ),
    "17 OpenHarness 240 network died after four parallel calls": (
        "openai_chat",
        [user("go"), c_calls("a", "b", "c", "d"), c_result("a"), c_result("c"), user("continue")],
        "C2",
    ),
    "18 crush 862 interrupted, then a new prompt": (
        "openai_chat",
        [user("go"), c_calls("x", text="let me look"), user("no, this")],
        "C2",
    ),
    "19 ellmer 459 interrupted in the middle of parallel calls": (
        "openai_chat",
        [user("go"), c_calls("a", "b"), user("what happened")],
        "C2",
    ),
    "20 opencode 5750 the retry is appended to the same message": (
        "anthropic",
        [user("go"), SPLIT_CALLS, a_results("b"), assistant("done"), user("next")],
        "A4",
    ),
    "21 goose 2951 resumed with a dangling call in the middle": (
        "anthropic",
        [user("hi"), assistant("hello"), a_calls("x"), user("still there?")],
        "A1",
    ),
    "23 gemini-cli 3814 compressed history has fewer responses than calls": (
        "gemini",
        [g_user("go"), g_calls("read", "list"), g_results("read"), g_model("ok"), g_user("next")],
        "G1",
    ),
    "24 gemini-cli 4141 the kept slice begins with a response": (
        "gemini",
        [g_results("read"), g_model("ok"), g_user("next")],
        "G3",
    ),
    "25 gemini-cli 11814 the kept slice begins with a call": (
        "gemini",
        [g_calls("read"), g_results("read"), g_model("ok"), g_user("next")],
        "G2",
    ),
    "26 ChatdollKit 371 the turn cap drops the call before its response": (
        "openai_chat",
        [c_result("x"), c_result("y"), assistant("done"), user("next")],
        "C1",
    ),
    "27 Curie 16 pruning leaves more results than calls": (
        "bedrock",
        [b_text("user", "go"), b_calls("a"), b_results("a", "b"), b_text("assistant", "ok")],
        "B4",
    ),
    "30 openai-agents-python 2317 compacted between call and output": (
        "openai_responses",
        [user("summary"), r_call("x"), user("next")],
        "R1",
    ),
    "31 codex 5385 compact command after a call": (
        "openai_responses",
        [user("go"), r_call("x"), r_call("y"), r_output("y"), user("next")],
        "R1",
    ),
    "32 OpenMinis 222 the boundary falls between a pair": (
        "openai_responses",
        [r_output("x"), assistant("done"), user("next")],
        "R2",
    ),
    "38 claude-code 55302 a persisted empty text block": (
        "anthropic",
        [
            user("go"),
            {"role": "assistant", "content": [{"type": "text", "text": ""}]},
            user("next"),
        ],
        "A13",
    ),
    "39 goose 11871 the 21st image makes an old one illegal": (
        "anthropic",
        [
            {"role": "user", "content": [a_image(3000, 1200)]},
            assistant("seen"),
            {"role": "user", "content": [a_image() for _ in range(20)]},
        ],
        "A15",
    ),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_the_request_of_the_report_is_found_wrong(name):
    provider, messages, rule = REQUESTS[name]
    assert rule in {v.rule for v in rules.violations(messages, provider)}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", REQUESTS)
def test_the_history_of_the_report_is_windowed_validly(name, target):
    provider, messages, _ = REQUESTS[name]
    found = window(path(messages, provider), target)
    assert violations(found) == []
    assert found.ready is (path(messages, provider)[-1].role in ("user", "tool"))


@pytest.mark.parametrize("name", REQUESTS)
def test_what_was_done_to_the_history_of_the_report_is_told(name):
    provider, messages, _ = REQUESTS[name]
    found = window(path(messages, provider), provider)
    assert found.steps
    assert all(step.what and str(step).startswith(step.rule) for step in found.steps)


# --- Those that are not one request ---------------------------------------------------------


def a_path_with_a_cut(first_kept, before=None):
    natives = [
        user("one"),
        a_calls("x", "y"),
        a_results("x", "y"),
        assistant("done"),
        user("two"),
        ({"role": "mark", "kind": "summary", "text": "they read x and y"}, {"ref_id": first_kept}),
        user("three"),
    ]
    return path(natives[:before], "anthropic")


def test_02_codex_32851_going_back_before_a_compaction_brings_the_whole_back():
    with_it, without = a_path_with_a_cut(5), a_path_with_a_cut(5, before=5)
    found = window(with_it, "anthropic")
    assert found.ids == (5, 7)
    assert "they read x and y" in found.messages[0]["content"][0]["text"]
    assert window(without, "anthropic").messages == [m.native for m in without]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("first_kept", [1, 2, 3, 4, 5, 6])
def test_04_05_12_a_compaction_that_cuts_anywhere_leaves_no_half_step(first_kept, target):
    found = window(a_path_with_a_cut(first_kept), target)
    assert violations(found) == []
    assert found.ready


def test_22_claude_code_1642_a_dangling_call_does_not_reach_the_summary_request():
    messages = path([user("go"), a_calls("x"), user("next"), user("now")], "anthropic")
    asked = summary.ask(Sight(messages[::-1], "anthropic", formats.codec), keep=1)
    assert rules.violations(asked.window.messages, "anthropic", tools=False) == []
    assert "No result" in asked.text


@pytest.mark.parametrize("target", TARGETS)
def test_28_strands_998_the_summary_request_needs_no_tools(target):
    messages = path(
        [user("go"), a_calls("x"), a_results("x"), assistant("done"), user("now")], "anthropic"
    )
    asked = summary.ask(Sight(messages[::-1], target, formats.codec), keep=1)
    assert rules.violations(asked.window.messages, target, tools=False) == []
    assert len(asked.window.messages) == 1


def test_29_zot_18_a_side_chat_without_tools_over_a_history_of_calls():
    messages = path(
        [b_text("user", "go"), b_calls("x"), b_results("x"), b_text("user", "by the way")],
        "bedrock",
    )
    plain = window(messages, "bedrock")
    assert violations(plain, tools=False) == ["bedrock B5, the request: " + NO_TOOLS]
    without = window(messages, "bedrock", tools=False)
    assert violations(without, tools=False) == []
    assert "read" in str(without.messages[1])


NO_TOOLS = "the history has tool blocks, and no tools are sent"


def test_33_mastra_8738_an_fc_id_whose_reasoning_is_gone():
    messages = path([user("go"), r_call("c", "fc_1"), r_output("c"), user("x")], "openai_responses")
    natives = [m.native for m in messages]
    assert "R4" in {v.rule for v in rules.violations(natives, "openai_responses", model="gpt-5")}
    found = window(messages, "openai_responses", model="gpt-5")
    assert violations(found, model="gpt-5") == []
    assert "id" not in found.messages[1]
    assert found.messages[1]["call_id"] == "c"


def thinking_path(*marks):
    return path(
        [
            user("one"),
            a_calls("x", thinking=True),
            a_results("x", output="line " * 200),
            {"role": "assistant", "content": a_calls(thinking=True, text="done")["content"]},
            user("two"),
            *marks,
            a_calls("y", thinking=True),
            a_results("y"),
        ],
        "anthropic",
    )


def test_34_opencode_41738_no_thinking_is_left_behind_an_edit():
    mark = ({"role": "mark", "kind": "elide"}, {"ref_id": 3})
    found = window(thinking_path(mark), "anthropic", model="claude-opus-5.5")
    thoughts = [[b["type"] for b in m["content"]].count("thinking") for m in found.messages[1::2]]
    assert thoughts == [0, 0, 1]
    stale = len(found.messages) - 2
    assert violations(found, edited_before=stale) == []
    assert "A10" in {step.rule for step in found.steps}


def test_34_thinking_is_untouched_where_nothing_was_edited():
    messages = thinking_path()
    found = window(messages, "anthropic", model="claude-opus-5.5")
    assert found.messages == [m.native for m in messages]
    assert found.steps == []


def test_35_hermes_106426_another_system_prompt_takes_older_thinking_away():
    changed = {"role": "system", "content": "now in French"}
    found = window(thinking_path(changed), "anthropic", model="claude-opus-5.5")
    thoughts = [[b["type"] for b in m["content"]].count("thinking") for m in found.messages[1::2]]
    assert thoughts == [0, 0, 1]
    assert found.system == "now in French"


@pytest.mark.parametrize("target", TARGETS)
def test_36_eve_80_a_path_that_ends_with_the_answer_is_no_request_yet(target):
    found = window(path([user("hi"), assistant("hello")], "anthropic"), target)
    assert not found.ready
    assert "answer" in found.why
    assert len(found.messages) == 2


def test_37_cliproxyapi_5358_trailing_reasoning_is_left_out():
    messages = path([user("hi"), r_reasoning("rs_1")], "openai_responses")
    natives = [m.native for m in messages]
    assert {v.rule for v in rules.violations(natives, "openai_responses")} == {"R3"}
    for target in TARGETS:
        found = window(messages, target)
        assert violations(found) == []
        assert not found.ready


def test_40_dotcraft_260_reasoning_is_passed_back_when_the_turn_was_edited():
    calls = c_calls("a") | {"reasoning_content": "I should read"}
    mark = ({"role": "mark", "kind": "elide"}, {"ref_id": 3})
    messages = path(
        [user("go"), calls, c_result("a", "line " * 200), mark, c_calls("b"), c_result("b")],
        "openai_chat",
    )
    found = window(messages, "openai_chat")
    assert found.messages[1] == calls
    assert found.messages[2]["content"].startswith("[The output of read was elided")
    assert violations(found) == []


def test_41_strands_4087_pinned_messages_outlast_a_restore():
    natives = [user("ticket"), *[m for i in range(9) for m in (user(f"q{i}"), assistant("a"))]]
    messages = path([*natives, user("now")], "anthropic")
    found = window(messages, "anthropic", budget=30, pinned=[1], count=lambda m: 10)
    assert found.ids == (1, 19, 20) or found.ids == (1, 20)
    assert found.messages[0]["content"] == "ticket"
    again = window(
        path([*natives, user("now")], "anthropic"),
        "anthropic",
        budget=30,
        pinned=[1],
        count=lambda m: 10,
    )
    assert again.messages == found.messages


@pytest.mark.parametrize("target", TARGETS)
def test_42_oh_my_pi_9901_an_image_that_was_cut_off_is_named_in_words(target):
    image = a_image(800, 600, size=3000)
    image["source"]["data"] = image["source"]["data"][:2000]
    messages = path([{"role": "user", "content": [image]}, assistant("?"), user("x")], "anthropic")
    assert "A20" in {v.rule for v in rules.violations([messages[0].native], "anthropic")}
    found = window(messages, target)
    assert violations(found) == []
    assert "800x600" in str(found.messages[0])
