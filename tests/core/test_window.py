"""What a window sends: as stored where it can, mended where it must, and told."""

from __future__ import annotations

import json

import pytest
from paths import (
    TARGETS,
    Msg,
    a_calls,
    a_results,
    assistant,
    b_calls,
    b_results,
    b_text,
    c_calls,
    c_result,
    g_calls,
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

from sessiontree.core import rules
from sessiontree.core.rules.pairs import INTERRUPTED
from sessiontree.core.rules.thinking import SKIP_SIGNATURE

HISTORIES = {
    "anthropic": [
        user("go"),
        a_calls("x", thinking=True),
        a_results("x"),
        assistant("ok"),
        user("x"),
    ],
    "openai_chat": [user("go"), c_calls("x"), c_result("x"), assistant("ok"), user("x")],
    "openai_responses": [
        user("go"),
        r_reasoning("rs_1"),
        r_call("x", "fc_1"),
        r_output("x"),
        {"type": "message", "role": "user", "content": "x"},
    ],
    "gemini": [g_user("go"), g_calls("read"), g_results("read"), g_user("x")],
    "bedrock": [b_text("user", "go"), b_calls("x"), b_results("x"), b_text("assistant", "ok")],
}


@pytest.mark.parametrize("target", TARGETS)
def test_the_same_format_in_and_out_is_the_stored_message_itself(target):
    messages = path(HISTORIES[target], target)
    found = window(messages, target)
    assert [a is b.native for a, b in zip(found.messages, messages, strict=True)] == [True] * len(
        messages
    )
    assert (found.steps, found.complete) == ([], True)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("stored", TARGETS)
def test_every_format_is_sent_to_every_provider(stored, target):
    found = window(path(HISTORIES[stored], stored), target)
    assert violations(found) == []
    said = json.dumps(found.messages)
    assert "go" in said
    assert "read" in said
    if stored != target:
        assert "sig" not in said.replace(SKIP_SIGNATURE, "")
        assert "rs_1" not in said
        assert "fc_1" not in said


def test_a_request_is_what_the_providers_call_takes():
    messages = path([{"role": "system", "content": "Be brief."}, user("hi")], "anthropic")
    asked = {target: window(messages, target).request() for target in TARGETS}
    assert asked == {
        "anthropic": {"system": "Be brief.", "messages": [user("hi")]},
        "openai_chat": {"messages": [{"role": "system", "content": "Be brief."}, user("hi")]},
        "openai_responses": {"instructions": "Be brief.", "input": [user("hi")]},
        "gemini": {
            "system_instruction": {"parts": [{"text": "Be brief."}]},
            "contents": [g_user("hi")],
        },
        "bedrock": {"system": [{"text": "Be brief."}], "messages": [b_text("user", "hi")]},
    }


@pytest.mark.parametrize("target", TARGETS)
def test_without_a_system_prompt_there_is_no_place_for_one(target):
    asked = window(path([user("hi")], "openai_chat"), target).request()
    assert len(asked) == 1
    assert "system" not in str(asked)


def test_the_newest_system_prompt_is_sent_and_no_older_one_stays_in_the_messages():
    system = {"role": "system", "content": [{"type": "text", "text": "new"}]}
    messages = path(
        [{"role": "system", "content": "old"}, user("a"), assistant("b"), system, user("c")],
        "anthropic",
    )
    found = window(messages, "anthropic")
    assert found.system == [{"type": "text", "text": "new"}]
    assert found.ids == (2, 3, 5)
    assert window(messages, "openai_chat").system == {"role": "system", "content": "new"}


def test_an_empty_path_is_no_request():
    found = window([], "anthropic")
    assert (found.messages, found.ids, found.ready, found.complete) == ([], (), False, True)
    assert "no message" in found.why


# --- Calls and results ----------------------------------------------------------------------


def test_an_unanswered_call_in_the_history_gets_a_result_that_says_so():
    found = window(path([user("go"), a_calls("x"), user("next")], "anthropic"), "anthropic")
    (block,) = found.messages[2]["content"]
    assert block == {
        "type": "tool_result",
        "tool_use_id": "x",
        "content": INTERRUPTED,
        "is_error": True,
    }
    (step,) = found.steps
    assert (step.rule, step.messages, step.data) == ("A1", (2,), {"id": "x", "name": "read"})
    assert found.ready


@pytest.mark.parametrize("target", TARGETS)
def test_calls_that_still_wait_make_the_window_not_ready(target):
    for answered in ("x", "y"):
        messages = path([user("go"), a_calls("x", "y"), a_results(answered)], "anthropic")
        found = window(messages, target)
        assert not found.ready
        assert "read" in found.why
        assert violations(found) == []


def test_results_are_put_before_what_the_user_said_meanwhile():
    messages = path([user("go"), c_calls("x"), user("hurry"), c_result("x")], "openai_chat")
    found = window(messages, "openai_chat")
    assert found.messages == [user("go"), c_calls("x"), c_result("x"), user("hurry")]
    assert [m["role"] for m in window(messages, "gemini").messages] == [
        "user",
        "model",
        "user",
        "user",
    ]
    (last,) = [m for m in window(messages, "bedrock").messages if "toolResult" in str(m)]
    assert [next(iter(block)) for block in last["content"]] == ["toolResult", "text"]


def test_parallel_results_stored_apart_are_sent_in_one_message():
    messages = path(
        [user("go"), a_calls("x", "y"), a_results("y"), a_results("x"), user("b")], "anthropic"
    )
    found = window(messages, "anthropic")
    assert [b["tool_use_id"] for b in found.messages[2]["content"]] == ["x", "y"]
    assert found.ids == (1, 2, 3, 4, 5)


def test_an_orphan_result_is_left_out_and_what_stands_beside_it_is_kept():
    messages = path([user("go"), a_results("x", text="and this")], "anthropic")
    found = window(messages, "anthropic")
    assert found.messages[1]["content"] == [{"type": "text", "text": "and this"}]
    assert found.steps[0].messages == (2,)


def test_a_call_that_no_text_can_answer_is_left_out():
    screen = {"type": "computer_call", "id": "cu_1", "call_id": "c", "action": {"type": "wait"}}
    found = window(path([user("go"), screen, user("stop")], "openai_responses"), "openai_responses")
    assert found.messages == [user("go"), user("stop")]
    assert found.steps[0].rule == "R1"


def test_pieces_of_one_answer_stored_apart_are_sent_as_one_message():
    pieces = [r_reasoning("rs_1"), r_call("x"), r_call("y"), r_output("x"), r_output("y")]
    found = window(path([user("go"), *pieces], "openai_responses"), "anthropic")
    assert [m["role"] for m in found.messages] == ["user", "assistant", "user"]
    assert [b["id"] for b in found.messages[1]["content"]] == ["x", "y"]
    chat = window(path([user("go"), *pieces], "openai_responses"), "openai_chat")
    assert [m["role"] for m in chat.messages] == ["user", "assistant", "tool", "tool"]


# --- Ids --------------------------------------------------------------------------------------


def repeated(times: int) -> list[Msg]:
    turn = [user("go"), c_calls("call_0"), c_result("call_0"), assistant("ok")]
    return path([*turn * times, user("now")], "openai_chat")


def test_ids_that_providers_use_again_are_made_unique_where_they_must_be():
    found = window(repeated(3), "anthropic")
    ids = [
        b["id"] for m in found.messages for b in m["content"] if isinstance(b, dict) and "id" in b
    ]
    assert ids == ["call_0", "call_0_5", "call_0_9"]
    assert violations(found) == []
    assert window(repeated(3), "openai_chat").messages[5] == c_calls("call_0")


def test_a_new_id_stays_the_same_from_turn_to_turn():
    shorter, longer = window(repeated(2), "anthropic"), window(repeated(6), "anthropic")
    assert longer.messages[: len(shorter.messages) - 1] == shorter.messages[:-1]


def test_calls_without_ids_get_one_from_their_place_and_their_results_the_same():
    history = [g_user("go"), g_calls("read", "list"), g_results("read", "list"), g_user("x")]
    found = window(path(history * 2, "gemini"), "anthropic")
    calls = [b["id"] for m in found.messages for b in m["content"] if b_type(b) == "tool_use"]
    results = [
        b["tool_use_id"] for m in found.messages for b in m["content"] if b_type(b) == "tool_result"
    ]
    assert calls == results == ["call_1_0", "call_1_1", "call_5_0", "call_5_1"]


def b_type(block):
    return block.get("type") if isinstance(block, dict) else None


def test_results_learn_the_name_of_their_call_where_the_target_wants_it():
    found = window(path(HISTORIES["anthropic"], "anthropic"), "gemini")
    (response,) = [p for m in found.messages for p in m["parts"] if "functionResponse" in p]
    assert response["functionResponse"]["name"] == "read"


# --- Thinking -----------------------------------------------------------------------------------


def thoughts(found):
    return [m for m in found.messages if "thinking" in json.dumps(m)]


def long_thinking_path():
    turn = [user("q " * 50), a_calls("x", thinking=True), a_results("x"), assistant("ok")]
    turns = [json.loads(json.dumps(turn).replace('"x"', f'"x{i}"')) for i in range(5)]
    return path([m for t in turns for m in t] + [user("now")], "anthropic")


def test_thinking_is_left_out_of_a_window_that_had_to_be_cut():
    messages = long_thinking_path()
    whole = window(messages, "anthropic", model="claude-opus-5.5")
    cut = window(messages, "anthropic", model="claude-opus-5.5", budget=300)
    assert (len(thoughts(whole)), len(thoughts(cut))) == (5, 0)
    assert not cut.complete


def test_models_that_do_not_bind_thinking_keep_it():
    found = window(long_thinking_path(), "anthropic", model="claude-opus-4-6", budget=200)
    assert not found.complete
    assert thoughts(found)


def test_the_policy_keep_keeps_and_drop_drops():
    messages = long_thinking_path()
    assert thoughts(window(messages, "anthropic", thinking="keep", budget=300))
    assert not thoughts(window(messages, "anthropic", thinking="drop"))


def test_dropping_thinking_in_an_open_loop_tells_to_ask_without():
    messages = path([user("go"), a_calls("x", thinking=True), a_results("x")], "anthropic")
    found = window(messages, "anthropic", thinking="drop")
    told = {step.rule: step for step in found.steps}
    assert told["A7"].data == {"thinking": "off"}
    assert told["thinking"].messages == (2,)


def test_dropped_reasoning_takes_the_item_ids_that_need_it_along():
    found = window(
        path(HISTORIES["openai_responses"], "openai_responses"), "openai_responses", thinking="drop"
    )
    assert found.messages[1] == r_call("x")
    assert violations(found, model="gpt-5.4") == []


def test_dropped_reasoning_of_other_makers_goes_from_chat_messages():
    calls = c_calls("x") | {"reasoning_content": "hm"}
    messages = path([user("go"), calls, c_result("x")], "openai_chat")
    assert window(messages, "openai_chat").messages[1] == calls
    assert window(messages, "openai_chat", thinking="drop").messages[1] == c_calls("x")


def test_an_empty_text_beside_thinking_is_filled_so_that_nothing_moves():
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": ""},
    ]
    messages = path([user("go"), {"role": "assistant", "content": blocks}, user("x")], "anthropic")
    (first, second) = window(messages, "anthropic").messages[1]["content"]
    assert first == blocks[0]
    assert second["text"] == "(no text)"


# --- By provider --------------------------------------------------------------------------------


def test_fields_of_a_response_are_not_sent_back():
    stored = assistant("hi") | {"id": "msg_1", "stop_reason": "end_turn", "usage": {}}
    found = window(path([user("go"), stored, user("x")], "anthropic"), "anthropic")
    assert found.messages[1] == assistant("hi")
    assert found.steps == []


def test_calls_of_other_models_are_marked_as_unsigned_in_every_turn():
    history = HISTORIES["anthropic"]
    found = window(path(history, "anthropic"), "gemini")
    assert [SKIP_SIGNATURE in str(m) for m in found.messages] == [False, True, False, False, False]
    older = window(path(history, "anthropic"), "gemini", model="gemini-2.5-pro")
    assert SKIP_SIGNATURE not in str(older.messages)


def test_only_the_newest_four_cache_marks_are_sent():
    marked = [
        {
            "role": r,
            "content": [{"type": "text", "text": t, "cache_control": {"type": "ephemeral"}}],
        }
        for r, t in [("user", "1"), ("assistant", "2")] * 3
    ]
    found = window(path([*marked, user("x")], "anthropic"), "anthropic")
    assert ["cache_control" in str(m) for m in found.messages] == [False, False, *[True] * 4, False]
    system = {"role": "system", "content": marked[0]["content"]}
    found = window(path([system, *marked, user("x")], "anthropic"), "anthropic")
    assert sum("cache_control" in str(m) for m in found.messages) == 3


def test_users_in_a_row_are_one_message_for_bedrock():
    found = window(
        path([user("a"), user("b"), assistant("c"), user("d")], "openai_chat"), "bedrock"
    )
    assert [m["role"] for m in found.messages] == ["user", "assistant", "user"]
    assert found.ids == (1, 2, 3, 4)


def test_llama_gets_no_text_beside_results():
    history = [b_text("user", "go"), b_calls("x"), b_results("x"), b_text("user", "and")]
    found = window(path(history, "bedrock"), "bedrock", model="meta.llama3-1-70b")
    assert [m["role"] for m in found.messages] == ["user", "assistant", "user", "assistant", "user"]
    assert violations(found, model="meta.llama3-1-70b") == []


def test_a_path_that_the_assistant_begins_keeps_its_words():
    messages = path([assistant("Welcome!"), user("hi")], "openai_chat")
    for target in ("anthropic", "bedrock"):
        found = window(messages, target)
        assert [m["role"] for m in found.messages] == ["user", "assistant", "user"]
        assert "Welcome!" in str(found.messages[1])
        assert found.ids == (1, 2)


# --- The whole ---------------------------------------------------------------------------------


def test_the_window_tells_the_bytes_of_its_messages():
    found = window(path([user("é")], "anthropic"), "anthropic")
    assert found.bytes == len('[{"role":"user","content":"é"}]'.encode())


def test_reading_stops_where_the_window_is_full():
    messages = path([user(f"question {i}") for i in range(2000)], "anthropic")
    from sessiontree import formats
    from sessiontree.core.planner import Planner

    planner = Planner("anthropic", formats.codec, budget=100, count=lambda m: 10)
    read = next(i for i, m in enumerate(reversed(messages)) if not planner.feed(m))
    found = planner.finish()
    assert read == 11
    assert len(found.ids) == 10
    assert len(found.dropped) == 1990
    assert found.dropped.newest == 1990


def test_rules_are_the_same_table_for_checking_and_mending():
    for target in TARGETS:
        for rule in rules.table(target):
            assert rule.why
            assert rule.error
