"""Every rule of every provider: a request that trips it, and one like it that does not."""

from __future__ import annotations

from typing import Any

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
    png,
    r_call,
    r_output,
    r_reasoning,
    user,
    window,
)

from sessiontree.core import rules
from sessiontree.errors import FormatError, WindowError

GO = user("go")


def said(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def shown(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def thought(**more: Any) -> dict[str, Any]:
    return {"type": "thinking", "thinking": "hm", "signature": "sig", **more}


CACHED = text("x", cache_control={"type": "ephemeral"})
A_PAIR = [a_calls("x"), a_results("x")]
B_PAIR = [b_calls("x"), b_results("x")]
SERVER_CALL = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
SERVER_RESULT = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}
FAILED = {"type": "tool_result", "tool_use_id": "x", "is_error": True}
CUT_OFF = png(8, 6, size=600)[:400]


def chat_image(data: str) -> dict[str, Any]:
    url = f"data:image/png;base64,{data}"
    return shown({"type": "image_url", "image_url": {"url": url}})


def responses_image(data: str) -> dict[str, Any]:
    return shown({"type": "input_image", "image_url": f"data:image/png;base64,{data}"})


def gemini_image(data: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": data}}]}


def bedrock_image(data: str) -> dict[str, Any]:
    return shown({"image": {"format": "png", "source": {"bytes": data}}})


def anthropic_image(data: str) -> dict[str, Any]:
    block = a_image()
    block["source"]["data"] = data
    return shown(block)


WHOLE = png(8, 6, size=600)

CASES: dict[str, tuple[list[Any], list[Any], dict[str, Any]]] = {
    # rule: (tripped, not tripped, facts of the request)
    "A0": ([assistant("hi"), GO], [GO, assistant("hi"), GO], {}),
    "A1": ([GO, a_calls("x", "y"), a_results("x")], [GO, *A_PAIR], {}),
    "A2": ([GO, *A_PAIR, assistant("ok"), a_results("x")], [GO, *A_PAIR, assistant("ok")], {}),
    "A3": (
        [GO, a_calls("x"), shown(text("so"), *a_results("x")["content"])],
        [GO, a_calls("x"), a_results("x", text="so")],
        {},
    ),
    "A4": (
        [GO, said(*a_calls("x")["content"], text("so")), a_results("x")],
        [GO, a_calls("x", text="so"), a_results("x")],
        {},
    ),
    "A5": (
        [GO, *A_PAIR, assistant("ok"), GO, *A_PAIR],
        [GO, *A_PAIR, a_calls("y"), a_results("y")],
        {},
    ),
    "A6": ([GO, said(SERVER_RESULT)], [GO, said(SERVER_CALL, SERVER_RESULT)], {}),
    "A7": (
        [GO, *A_PAIR],
        [GO, a_calls("x", thinking=True), a_results("x"), a_calls("y"), a_results("y")],
        {"thinking": True},
    ),
    "A8": ([GO, said(text("so"), thought())], [GO, said(thought(), text("so"))], {}),
    "A9": (
        [GO, said(thought(signature=""), text("so"))],
        [GO, said({"type": "redacted_thinking", "data": "xx"}, text("so"))],
        {},
    ),
    "A11": ([GO, said(thought())], [GO, said(thought()), GO], {"thinking": False}),
    "A12": ([GO, assistant("hi")], [GO, assistant("hi"), GO], {}),
    "A13": ([GO, shown(text("a"), text(" "))], [GO, shown(text("a"))], {}),
    "A14": ([shown(*[CACHED] * 5)], [shown(*[CACHED] * 4)], {}),
    "A15": (
        [shown(a_image(3000, 10)), shown(*[a_image()] * 20)],
        [shown(a_image(3000, 10)), shown(*[a_image()] * 19)],
        {},
    ),
    "A16": (
        [said({"type": "compaction", "content": ""}), GO],
        [said({"type": "compaction", "content": None}), GO],
        {},
    ),
    "A17": ([GO, a_calls("a b"), a_results("a b")], [GO, *A_PAIR], {}),
    "A18": (
        [GO, a_calls("x"), shown(FAILED)],
        [GO, a_calls("x"), shown(FAILED | {"content": "no"})],
        {},
    ),
    "A19": ([GO, assistant("hi") | {"id": "msg_1"}, GO], [GO, assistant("hi"), GO], {}),
    "A20": ([anthropic_image(CUT_OFF)], [anthropic_image(WHOLE)], {}),
    "C1": ([GO, c_result("x")], [GO, c_calls("x"), c_result("x")], {}),
    "C2": (
        [GO, c_calls("x", "y"), c_result("x"), GO],
        [GO, c_calls("x", "y"), c_result("y"), c_result("x"), GO],
        {},
    ),
    "C3": (
        [GO, c_calls("x", "x"), c_result("x"), c_result("x")],
        [GO, c_calls("x"), c_result("x"), c_calls("x"), c_result("x")],
        {},
    ),
    "C4": (
        [GO, {"role": "assistant", "content": None}, GO],
        [GO, {"role": "assistant", "content": None, "refusal": "no"}, GO],
        {},
    ),
    "C5": (
        [GO, c_calls("x" * 41), c_result("x" * 41)],
        [GO, c_calls("x" * 40), c_result("x" * 40)],
        {},
    ),
    "C6": ([chat_image(CUT_OFF)], [chat_image(WHOLE)], {}),
    "R1": ([GO, r_call("x"), GO], [GO, r_call("x"), r_output("x"), GO], {}),
    "R2": ([GO, r_output("x"), r_call("x")], [GO, r_call("x"), GO, r_output("x")], {}),
    "R3": (
        [GO, r_reasoning("rs_1"), GO],
        [GO, r_reasoning("rs_1"), r_call("x", "fc_1"), r_output("x"), GO],
        {},
    ),
    "R4": (
        [GO, r_call("x", "fc_1"), r_output("x")],
        [GO, r_reasoning("rs_1"), r_call("x", "fc_1"), r_output("x")],
        {"model": "gpt-5.4"},
    ),
    "R5": (
        [GO, r_call("x", "custom"), r_output("x")],
        [GO, r_call("x", "fc_1"), r_output("x")],
        {},
    ),
    "R7": (
        [GO, r_call("x"), r_output("x"), r_call("x"), r_output("x")],
        [GO, r_call("x"), r_output("x"), r_call("y"), r_output("y")],
        {},
    ),
    "R9": (
        [GO, r_call("x" * 65), r_output("x" * 65)],
        [GO, r_call("x" * 64), r_output("x" * 64)],
        {},
    ),
    "R8": ([responses_image(CUT_OFF)], [responses_image(WHOLE)], {}),
    "G1": (
        [g_user("go"), g_calls("a", "b"), g_results("a")],
        [g_user("go"), g_calls("a", "b"), g_results("a", "b")],
        {},
    ),
    "G2": (
        [g_user("go"), g_model("so"), g_calls("a"), g_results("a")],
        [g_user("go"), g_calls("a"), g_results("a")],
        {},
    ),
    "G3": ([g_user("go"), g_results("a")], [g_user("go"), g_calls("a"), g_results("a")], {}),
    "G4": (
        [g_user("go"), g_calls("a"), g_results("a", text="and")],
        [g_user("go"), g_calls("a"), g_results("a"), g_user("and")],
        {},
    ),
    "G5": ([g_user("go"), g_model("hi")], [g_user("go")], {}),
    "G6": (
        [g_user("go"), g_calls("a", signed=False), g_results("a")],
        [g_user("go"), g_calls("a", signed=False), g_results("a"), g_model("ok"), g_user("x")],
        {"model": "gemini-3-pro"},
    ),
    "G7": (
        [{"role": "user", "parts": []}],
        [g_user("go"), {"role": "model", "parts": [{"text": "", "thoughtSignature": "s"}]}],
        {},
    ),
    "G8": ([gemini_image(CUT_OFF)], [gemini_image(WHOLE)], {}),
    "B1": ([b_text("assistant", "hi")], [b_text("user", "hi")], {}),
    "B2": (
        [b_text("user", "a"), b_text("user", "b")],
        [b_text("user", "a"), b_text("assistant", "b"), b_text("user", "c")],
        {},
    ),
    "B3": (
        [b_text("user", "go"), b_calls("x", "y"), b_results("x")],
        [b_text("user", "go"), b_calls("x", "y"), b_results("y", "x")],
        {},
    ),
    "B4": (
        [b_text("user", "go"), b_calls("x"), b_results("x", "y")],
        [b_text("user", "go"), *B_PAIR],
        {},
    ),
    "B5": ([b_text("user", "go"), *B_PAIR], [b_text("user", "go")], {"tools": False}),
    "B6": (
        [b_text("user", "go"), b_calls("x"), shown(*b_results("x")["content"], {"text": "and"})],
        [b_text("user", "go"), *B_PAIR],
        {"model": "meta.llama3-1-70b-instruct-v1:0"},
    ),
    "B7": (
        [b_text("user", "go"), b_calls("x"), b_results("x", status="error", content=[])],
        [b_text("user", "go"), b_calls("x"), b_results("x", status="error")],
        {},
    ),
    "B8": ([b_text("user", " ")], [b_text("user", "go")], {}),
    "B9": ([b_text("user", "go"), b_calls("a.b"), b_results("a.b")], [b_text("user", "x")], {}),
    "B10": ([b_text("user", "go") | {"id": "1"}], [b_text("user", "go")], {}),
    "B12": (
        [b_text("user", "go"), *B_PAIR, *B_PAIR],
        [b_text("user", "go"), *B_PAIR, b_calls("y"), b_results("y")],
        {},
    ),
    "B13": ([bedrock_image(CUT_OFF)], [bedrock_image(WHOLE)], {}),
}

PROVIDER = {"A": "anthropic", "C": "openai_chat", "R": "openai_responses", "G": "gemini"}

OF_AN_EDIT = {"A10", "B11"}
"""Tripped by what was done to the messages, which they do not show; see below."""


def provider_of(rule: str) -> str:
    return PROVIDER.get(rule[0], "bedrock")


def tripped(rule: str, messages: list[Any], facts: dict[str, Any]) -> bool:
    found = rules.violations(messages, provider_of(rule), **facts)
    return rule in {v.rule for v in found}


@pytest.mark.parametrize("rule", CASES)
def test_what_breaks_a_rule_is_found_by_it(rule):
    bad, _, facts = CASES[rule]
    assert tripped(rule, bad, facts)


@pytest.mark.parametrize("rule", CASES)
def test_what_keeps_a_rule_is_not_found_by_it(rule):
    _, good, facts = CASES[rule]
    assert not tripped(rule, good, facts)


def test_every_rule_of_every_table_is_tried_here():
    known = [rule.id for target in TARGETS for rule in rules.table(target)]
    assert sorted(known) == sorted(CASES | dict.fromkeys(OF_AN_EDIT))
    assert len(known) == len(set(known))


@pytest.mark.parametrize("rule", CASES)
def test_a_window_mends_what_breaks_a_rule(rule):
    bad, _, facts = CASES[rule]
    options = {k: v for k, v in facts.items() if k in ("model", "tools")}
    found = window(path(bad, provider_of(rule)), provider_of(rule), **options)
    left = {v.rule for v in rules.violations(found.messages, provider_of(rule), **facts)}
    assert left <= {"A12", "G5", "A7", "A11"}
    assert found.ready or left <= {"A12", "G5", "A11"}


@pytest.mark.parametrize("rule", CASES)
def test_what_keeps_all_rules_is_sent_as_it_is_stored(rule):
    _, good, facts = CASES[rule]
    if rules.violations(good, provider_of(rule), **facts):
        return
    found = window(path(good, provider_of(rule)), provider_of(rule), model=facts.get("model"))
    assert found.messages == good or rule == "G6"


@pytest.mark.parametrize(("provider", "rule"), [("anthropic", "A10"), ("bedrock", "B11")])
def test_thinking_behind_an_edit_is_found(provider, rule):
    thinking = said(thought(), text("so"))
    if provider == "bedrock":
        body = {"reasoningText": {"text": "hm", "signature": "sig"}}
        thinking = said({"reasoningContent": body}, {"text": "so"})
    messages = [GO if provider == "anthropic" else b_text("user", "go"), thinking]

    def ids(**facts: Any) -> set[str]:
        return {v.rule for v in rules.violations(messages, provider, **facts)}

    assert rule in ids(edited_before=2)
    assert rule not in ids()
    assert rule not in ids(edited_before=1)


def test_the_system_prompts_cache_marks_count_too():
    messages = [shown(*[CACHED] * 4)]
    assert not tripped("A14", messages, {})
    assert tripped("A14", messages, {"system": [CACHED]})


def test_more_than_a_hundred_images_are_too_many():
    messages = [shown(*[a_image()] * 101)]
    found = rules.violations(messages, "anthropic")
    assert [(v.rule, v.part) for v in found] == [("A15", 0)]


def test_more_than_32_megabytes_of_images_are_too_many():
    big = a_image(size=5_500_000)
    messages = [shown(*[big] * 5)]
    found = rules.violations(messages, "anthropic")
    assert [(v.rule, v.part) for v in found] == [("A15", 0)]
    assert "32,000,000" in found[0].what


def test_a_violation_says_what_where_and_why():
    found = rules.violations([GO, a_calls("x"), GO], "anthropic")
    (violation,) = found
    assert (violation.rule, violation.at, violation.ids) == ("A1", 1, ("x",))
    assert str(violation) == "anthropic A1, message 1: no result in the next message for x"
    assert "without `tool_result` blocks immediately after" in violation.error
    assert violation.why == "every tool_use is answered in the next message"


def test_violations_stand_in_the_order_of_the_messages():
    bad = [assistant("hi"), a_results("x"), a_calls("y"), shown(text(""))]
    found = rules.violations(bad, "anthropic")
    assert [v.at for v in found] == sorted(v.at for v in found)
    assert len(found) > 3


def test_the_rules_of_an_unknown_provider_are_asked_for_in_vain():
    with pytest.raises(WindowError, match="bedrock"):
        rules.violations([], "cohere")
    with pytest.raises(WindowError, match="Z9"):
        rules.rule("Z9")
    assert rules.rule("A1").why == "every tool_use is answered in the next message"


def test_a_message_that_is_no_object_is_an_error_not_a_violation():
    with pytest.raises(FormatError, match="message 1"):
        rules.violations([GO, "hello"], "anthropic")


def test_no_messages_break_no_rule():
    assert [rules.violations([], target) for target in TARGETS] == [[]] * 5
