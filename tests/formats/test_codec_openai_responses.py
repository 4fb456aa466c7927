"""OpenAI Responses: every documented input item, decoded and encoded again."""

from __future__ import annotations

from typing import Any

import pytest

from sessiontree.core.message import calls_of, results_of, text_of
from sessiontree.errors import FormatError
from sessiontree.formats import codec

RESPONSES = codec("openai_responses")
DATA_URL = "data:image/png;base64,iVBORw0KGgo="


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


CANONICAL: dict[str, dict[str, Any]] = {
    "text": {"role": "user", "content": "Hello"},
    "developer": {"role": "developer", "content": "Be brief."},
    "system": {"role": "system", "content": "Be brief."},
    "typed message": {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "Hello"}],
    },
    "image": user(
        {"type": "input_text", "text": "what is this?"},
        {"type": "input_image", "image_url": DATA_URL, "detail": "auto"},
    ),
    "image by address": user({"type": "input_image", "image_url": "https://a.example/b.png"}),
    "image by file": user({"type": "input_image", "file_id": "file-1", "detail": "low"}),
    "file by id": user({"type": "input_file", "file_id": "file-1"}),
    "file by data": user(
        {
            "type": "input_file",
            "filename": "a.pdf",
            "file_data": "data:application/pdf;base64,JVBERi0=",
        }
    ),
    "file by address": user({"type": "input_file", "file_url": "https://a.example/b.pdf"}),
    "file without a data url": user({"type": "input_file", "file_data": "JVBERi0="}),
    "part of tomorrow": user({"type": "input_hologram", "depth": 3}),
    "answer": {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [
            {"type": "output_text", "text": "Rain.", "annotations": [], "logprobs": []},
        ],
    },
    "refusal": {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "refusal", "refusal": "I will not."}],
    },
    "empty answer": {"type": "message", "role": "assistant", "content": []},
    "call": {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "get_weather",
        "arguments": '{"city":"Hanoi"}',
        "status": "completed",
    },
    "call with arguments that are no JSON": {
        "type": "function_call",
        "call_id": "call_1",
        "name": "get_weather",
        "arguments": '{"city": "Han',
    },
    "result": {"type": "function_call_output", "call_id": "call_1", "output": "31 °C"},
    "result with a status": {
        "type": "function_call_output",
        "id": "fco_1",
        "call_id": "call_1",
        "output": "31 °C",
        "status": "completed",
    },
    "result in parts": {
        "type": "function_call_output",
        "call_id": "call_1",
        "output": [
            {"type": "input_text", "text": "seen"},
            {"type": "input_image", "image_url": DATA_URL},
        ],
    },
    "custom call": {
        "type": "custom_tool_call",
        "call_id": "call_1",
        "name": "sh",
        "input": '{"a":1}',
    },
    "custom result": {"type": "custom_tool_call_output", "call_id": "call_1", "output": "done"},
    "reasoning": {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "2 and 2"}],
        "encrypted_content": "gAAA",
    },
    "open reasoning": {
        "type": "reasoning",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "2 and 2"}],
    },
    "shell call": {
        "type": "local_shell_call",
        "id": "lsh_1",
        "call_id": "call_1",
        "action": {"type": "exec", "command": ["ls"]},
        "status": "completed",
    },
    "shell result": {"type": "local_shell_call_output", "call_id": "call_1", "output": "a.txt"},
    "computer call": {
        "type": "computer_call",
        "id": "cu_1",
        "call_id": "call_1",
        "action": {"type": "screenshot"},
        "pending_safety_checks": [],
        "status": "completed",
    },
    "computer result": {
        "type": "computer_call_output",
        "call_id": "call_1",
        "output": {"type": "computer_screenshot", "image_url": DATA_URL},
    },
    "web search": {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "rain"},
    },
    "approval": {
        "type": "mcp_approval_response",
        "approval_request_id": "mcpr_1",
        "approve": True,
    },
    "compaction": {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"},
    "item of tomorrow": {"type": "hologram", "item": {"depth": 3}, "provider": "x"},
    "item of tomorrow, named like a neutral part": {"type": "text", "content": 5},
}


@pytest.mark.parametrize("native", CANONICAL.values(), ids=CANONICAL)
def test_a_documented_item_comes_back_as_it_was(native: dict[str, Any]) -> None:
    assert RESPONSES.encode(*RESPONSES.decode(native)) == [native]


def test_a_call_pairs_by_its_call_id_and_not_by_the_id_of_the_item() -> None:
    for name in ("call", "custom call", "shell call", "computer call"):
        decoded = RESPONSES.decode(CANONICAL[name])
        assert decoded.role == "assistant"
        assert [call.id for call in calls_of(decoded.parts)] == ["call_1"]
    for name in ("result", "custom result", "shell result", "computer result"):
        decoded = RESPONSES.decode(CANONICAL[name])
        assert decoded.role == "tool"
        assert [result.id for result in results_of(decoded.parts)] == ["call_1"]


def test_a_call_that_the_server_answers_itself_waits_for_nothing() -> None:
    assert calls_of(RESPONSES.decode(CANONICAL["web search"]).parts) == ()


def test_the_summary_of_reasoning_can_be_read() -> None:
    (part,) = RESPONSES.decode(CANONICAL["reasoning"]).parts
    assert (part["type"], part["content"]) == ("reasoning", "2 and 2")


def test_a_renamed_call_keeps_everything_else() -> None:
    for name in ("call", "shell call", "result", "computer result"):
        role, (part,) = RESPONSES.decode(CANONICAL[name])
        (item,) = RESPONSES.encode(role, [part | {"id": "call_9"}])
        assert item == CANONICAL[name] | {"call_id": "call_9"}


def test_a_turn_of_another_format_becomes_items_in_its_order() -> None:
    parts = [
        {"type": "reasoning", "content": "Hm.", "signature": "x", "provider": "anthropic"},
        {"type": "text", "content": "One moment."},
        {"type": "text", "content": "I look."},
        {"type": "tool_call", "id": "a", "name": "f", "arguments": {"x": 1}},
        {"type": "text", "content": "Meanwhile."},
    ]
    assert RESPONSES.encode("assistant", parts) == [
        {
            "role": "assistant",
            "content": [
                {"type": "output_text", "text": "One moment."},
                {"type": "output_text", "text": "I look."},
            ],
        },
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": '{"x":1}'},
        {"role": "assistant", "content": "Meanwhile."},
    ]


def test_an_error_is_told_in_the_output_and_an_image_shown() -> None:
    image = {"type": "blob", "mime_type": "image/png", "modality": "image", "content": "iVBO"}
    part = {"type": "tool_call_response", "id": "a", "response": [image], "is_error": True}
    (item,) = RESPONSES.encode("tool", [part])
    assert item["output"] == [
        {"type": "input_text", "text": "[error]"},
        {"type": "input_image", "image_url": "data:image/png;base64,iVBO"},
    ]


def test_a_refusal_is_text_that_everybody_can_read() -> None:
    assert text_of(RESPONSES.decode(CANONICAL["refusal"]).parts) == "I will not."


@pytest.mark.parametrize(
    ("native", "complaint"),
    [
        ({"output": []}, "it has no role (give each item of the output)"),
        ({"type": 5}, "its type is a number, not a string"),
        ({"role": "user"}, "it has no content"),
        ({"role": "tool", "content": ""}, "its role is 'tool'"),
        ({"type": "function_call", "name": "f", "arguments": "{}"}, "call_id is missing"),
        (
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": {}},
            "arguments is an object, not a string",
        ),
        ({"type": "function_call_output", "call_id": "a"}, "it has no output"),
        ({"type": "function_call_output", "call_id": "a", "output": 5}, "output is a number"),
        ({"type": "reasoning", "summary": "Hm."}, "summary is a string, not a list"),
        (user({"type": "input_text", "text": 5}), "content[0].text is a number"),
    ],
)
def test_what_is_no_item_is_refused_with_the_place(native: dict[str, Any], complaint: str) -> None:
    with pytest.raises(FormatError) as caught:
        RESPONSES.decode(native)
    assert complaint in str(caught.value)
