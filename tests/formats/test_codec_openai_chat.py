"""OpenAI Chat Completions: every documented shape, decoded and encoded again."""

from __future__ import annotations

from typing import Any

import pytest

from sessiontree.core.message import calls_of, results_of, text_of
from sessiontree.errors import FormatError
from sessiontree.formats import codec

CHAT = codec("openai_chat")
PNG = "iVBORw0KGgo="
CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city":"Hanoi"}'},
}

CANONICAL: dict[str, dict[str, Any]] = {
    "system": {"role": "system", "content": "Be brief."},
    "developer": {"role": "developer", "content": "Be brief."},
    "user": {"role": "user", "content": "Hello"},
    "empty text": {"role": "user", "content": ""},
    "named user": {"role": "user", "name": "camille", "content": "Hello"},
    "several texts": {
        "role": "user",
        "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
    },
    "cache control of a gateway": {
        "role": "user",
        "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}],
    },
    "image by data": {
        "role": "user",
        "content": [
            {"type": "text", "text": "what is this?"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
        ],
    },
    "image by address": {
        "role": "user",
        "content": [
            {"type": "image_url", "image_url": {"url": "https://a.example/b.png", "detail": "low"}}
        ],
    },
    "audio": {
        "role": "user",
        "content": [{"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}],
    },
    "mp3": {
        "role": "user",
        "content": [{"type": "input_audio", "input_audio": {"data": "SUQz", "format": "mp3"}}],
    },
    "file by id": {"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}]},
    "file by data": {
        "role": "user",
        "content": [
            {
                "type": "file",
                "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
            }
        ],
    },
    "file without a data url": {
        "role": "user",
        "content": [{"type": "file", "file": {"filename": "a.pdf", "file_data": "JVBERi0="}}],
    },
    "unknown part": {
        "role": "user",
        "content": [{"type": "video_url", "video_url": {"url": "https://a.example/v.mp4"}}],
    },
    "unknown part named like a neutral one": {
        "role": "user",
        "content": [{"type": "blob", "content": 7, "provider": "x"}],
    },
    "answer": {"role": "assistant", "content": "It rains."},
    "answer as the library dumps it": {
        "role": "assistant",
        "content": "It rains.",
        "refusal": None,
        "annotations": [],
        "audio": None,
        "function_call": None,
        "tool_calls": None,
    },
    "refusal": {"role": "assistant", "content": None, "refusal": "I will not."},
    "refusal beside text": {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "Sorry."},
            {"type": "refusal", "refusal": "I will not."},
        ],
    },
    "spoken answer": {"role": "assistant", "content": None, "audio": {"id": "audio_1"}},
    "reasoning": {"role": "assistant", "content": "4", "reasoning_content": "2 and 2"},
    "call": {"role": "assistant", "content": None, "tool_calls": [CALL]},
    "call beside text": {"role": "assistant", "content": "One moment.", "tool_calls": [CALL]},
    "parallel calls": {
        "role": "assistant",
        "content": None,
        "tool_calls": [CALL, {**CALL, "id": "call_2", "index": 1}],
    },
    "call with arguments that are no JSON": {
        "role": "assistant",
        "content": None,
        "tool_calls": [{**CALL, "function": {"name": "f", "arguments": '{"city": "Han'}}],
    },
    "call with a thought signature of a gateway": {
        "role": "assistant",
        "content": None,
        "tool_calls": [{**CALL, "extra_content": {"google": {"thought_signature": "abc"}}}],
    },
    "custom call": {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "call_1", "type": "custom", "custom": {"name": "sh", "input": '{"a":1}'}}
        ],
    },
    "legacy call": {
        "role": "assistant",
        "content": None,
        "function_call": {"name": "f", "arguments": "{}"},
    },
    "result": {"role": "tool", "tool_call_id": "call_1", "content": "31 °C"},
    "named result": {"role": "tool", "tool_call_id": "c", "name": "f", "content": "31 °C"},
    "result in parts": {
        "role": "tool",
        "tool_call_id": "call_1",
        "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
    },
    "legacy result": {"role": "function", "name": "f", "content": "31 °C"},
}


@pytest.mark.parametrize("native", CANONICAL.values(), ids=CANONICAL)
def test_a_documented_shape_comes_back_as_it_was(native: dict[str, Any]) -> None:
    assert CHAT.encode(*CHAT.decode(native)) == [native]


def test_an_image_in_a_data_url_is_a_blob_and_its_address_a_uri() -> None:
    (_, blob) = CHAT.decode(CANONICAL["image by data"]).parts
    assert blob == {
        "type": "blob",
        "mime_type": "image/png",
        "modality": "image",
        "content": PNG,
    }
    (uri,) = CHAT.decode(CANONICAL["image by address"]).parts
    assert (uri["type"], uri["uri"], uri["detail"]) == ("uri", "https://a.example/b.png", "low")


def test_arguments_are_parsed_and_what_is_no_object_stays_as_text() -> None:
    def arguments(text: str) -> Any:
        native = {
            "role": "assistant",
            "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": text}}],
        }
        return calls_of(CHAT.decode(native).parts)[0].arguments

    assert arguments('{"city":"Hanoi"}') == {"city": "Hanoi"}
    for text in ('{"city": "Han', "", '"text"', "5", '{"x": NaN}', '{"x": 1e400}', "[" * 100_000):
        assert arguments(text) == text


def test_arguments_given_as_an_object_are_taken_as_one() -> None:
    native = {
        "role": "assistant",
        "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}],
    }
    (call,) = calls_of(CHAT.decode(native).parts)
    assert (call.arguments, call.given) == ({"a": 1}, False)


def test_a_refusal_is_text_that_everybody_can_read() -> None:
    assert text_of(CHAT.decode(CANONICAL["refusal"]).parts) == "I will not."


def test_a_legacy_call_and_its_result_have_no_id() -> None:
    (call,) = calls_of(CHAT.decode(CANONICAL["legacy call"]).parts)
    (result,) = results_of(CHAT.decode(CANONICAL["legacy result"]).parts)
    assert not call.given
    assert not result.given
    assert call.name == result.name == "f"


def test_each_result_is_a_message_of_its_own_and_text_comes_after() -> None:
    parts = [
        {"type": "text", "content": "and now?"},
        {"type": "tool_call_response", "id": "a", "response": "1"},
        {"type": "tool_call_response", "id": "b", "response": {"x": 2}},
    ]
    assert CHAT.encode("tool", parts) == [
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": '{"x":2}'},
        {"role": "user", "content": "and now?"},
    ]


def test_an_error_and_an_image_in_a_result_are_named_in_text() -> None:
    image = {"type": "blob", "mime_type": "image/png", "modality": "image", "content": "A" * 16_000}
    parts = [
        {"type": "tool_call_response", "id": "a", "response": "no such file", "is_error": True},
        {"type": "tool_call_response", "id": "b", "response": [image]},
    ]
    failed, shown = CHAT.encode("tool", parts)
    assert failed["content"] == "[error] no such file"
    assert shown["content"] == [
        {
            "type": "text",
            "text": "[image image/png, 12 kB, not sent: openai_chat cannot take it here]",
        }
    ]


@pytest.mark.parametrize(
    ("native", "complaint"),
    [
        ({"content": "hi"}, "it has no role"),
        ({"choices": [{}]}, "choices"),
        ({"role": "robot", "content": "hi"}, "its role is 'robot'"),
        ({"role": ["user"], "content": "hi"}, "its role is"),
        ({"role": "user"}, "needs content"),
        ({"role": "user", "content": None}, "content is null, not a list"),
        ({"role": "user", "content": 5}, "content is a number, not a list"),
        ({"role": "user", "content": ["hi"]}, "content[0] is a string, not an object"),
        ({"role": "user", "content": [{"text": "hi"}]}, "content[0].type is missing"),
        ({"role": "user", "content": [{"type": "text"}]}, "content[0].text is missing"),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": 5}]},
            "content[0].image_url is a number, not an object",
        ),
        ({"role": "assistant", "tool_calls": {}}, "tool_calls is an object, not a list"),
        ({"role": "assistant", "tool_calls": [{"id": "a"}]}, "tool_calls[0].function is missing"),
        (
            {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": [1]}}]},
            "tool_calls[0].function.arguments is a list, not a string",
        ),
        ({"role": "tool", "tool_call_id": 5, "content": ""}, "tool_call_id is a number"),
    ],
)
def test_what_is_no_message_is_refused_with_the_place(
    native: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(FormatError) as caught:
        CHAT.decode(native)
    assert complaint in str(caught.value)
