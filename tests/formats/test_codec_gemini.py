"""Gemini generateContent: every documented part, decoded and encoded again."""

from __future__ import annotations

from typing import Any

import pytest

from sessiontree.core.message import calls_of, results_of
from sessiontree.errors import FormatError
from sessiontree.formats import codec

GEMINI = codec("gemini")
CALL = {"functionCall": {"name": "get_weather", "args": {"city": "Hanoi"}}}
RESULT = {"functionResponse": {"name": "get_weather", "response": {"output": "31 °C"}}}
IMAGE = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}


def user(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "parts": list(parts)}


def model(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "model", "parts": list(parts)}


CANONICAL: dict[str, dict[str, Any]] = {
    "text": user({"text": "Hello"}),
    "system": {"role": "system", "parts": [{"text": "Be brief."}]},
    "several texts": user({"text": "a"}, {"text": ""}),
    "image": user(IMAGE, {"text": "what is this?"}),
    "named data": user({"inlineData": IMAGE["inlineData"] | {"displayName": "a.png"}}),
    "pdf": user({"inlineData": {"mimeType": "application/pdf", "data": "JVBERi0="}}),
    "video with an excerpt": user(
        {
            "fileData": {"mimeType": "video/mp4", "fileUri": "https://a.example/v"},
            "videoMetadata": {"startOffset": "1s"},
        }
    ),
    "file without a type": user({"fileData": {"fileUri": "https://youtu.be/x"}}),
    "thought": model({"text": "Hm.", "thought": True}, {"text": "Yes."}),
    "signed text": model({"text": "", "thoughtSignature": "CvcB"}),
    "signed thought": model({"text": "Hm.", "thought": True, "thoughtSignature": "CvcB"}),
    "call": model(CALL),
    "signed call": model(CALL | {"thoughtSignature": "CvcB"}, CALL),
    "call with id": model({"functionCall": CALL["functionCall"] | {"id": "fc-1"}}),
    "call with a field of tomorrow": model(
        {"functionCall": CALL["functionCall"] | {"willContinue": True}}
    ),
    "result": user(RESULT),
    "result with id": user({"functionResponse": RESULT["functionResponse"] | {"id": "fc-1"}}),
    "failed result": user({"functionResponse": {"name": "f", "response": {"error": "gone"}}}),
    "result with its own keys": user(
        {"functionResponse": {"name": "f", "response": {"a": [1, {"b": None}]}, "scheduling": "x"}}
    ),
    "result with an image": user(
        {"functionResponse": {"name": "f", "response": {"seen": True}, "parts": [IMAGE]}}
    ),
    "code": model(
        {"executableCode": {"language": "PYTHON", "code": "1+1"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}},
    ),
    "signature alone": model({"thoughtSignature": "CvcB"}),
    "part of tomorrow": model({"hologram": {"depth": 3}, "thoughtSignature": "CvcB"}),
    "part of tomorrow, named like a neutral one": model({"blob": 1, "content": 2}),
}


@pytest.mark.parametrize("native", CANONICAL.values(), ids=CANONICAL)
def test_a_documented_shape_comes_back_as_it_was(native: dict[str, Any]) -> None:
    assert GEMINI.encode(*GEMINI.decode(native)) == [native]


def test_calls_and_results_without_ids_pair_by_name() -> None:
    (call,) = calls_of(GEMINI.decode(CANONICAL["call"]).parts)
    decoded = GEMINI.decode(CANONICAL["result"])
    (result,) = results_of(decoded.parts)
    assert decoded.role == "tool"
    assert (call.given, result.given) == (False, False)
    assert call.name == result.name == "get_weather"


def test_a_result_that_tells_an_error_failed() -> None:
    (result,) = results_of(GEMINI.decode(CANONICAL["failed result"]).parts)
    assert result.is_error


def test_a_signature_rides_on_the_part_that_it_belongs_to() -> None:
    first, second = GEMINI.decode(CANONICAL["signed call"]).parts
    assert first["thought_signature"] == "CvcB"
    assert "thought_signature" not in second


def test_the_names_of_the_python_library_are_read() -> None:
    native = {
        "role": "model",
        "parts": [
            {"text": "x", "thought": None, "function_call": None},
            {"function_call": {"name": "f", "args": {}, "id": None}, "thought_signature": "CvcB"},
            {"inline_data": {"mime_type": "image/png", "data": "iVBO"}},
        ],
    }
    assert GEMINI.encode(*GEMINI.decode(native)) == [
        model(
            {"text": "x"},
            {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "CvcB"},
            {"inlineData": {"mimeType": "image/png", "data": "iVBO"}},
        )
    ]


def test_a_legacy_function_message_is_a_result() -> None:
    native = {"role": "function", "parts": [RESULT]}
    decoded = GEMINI.decode(native)
    assert decoded.role == "tool"
    assert GEMINI.encode(*decoded) == [user(RESULT)]


def test_results_of_other_formats_become_objects() -> None:
    image = {"type": "blob", "mime_type": "image/png", "modality": "image", "content": "iVBO"}
    parts = [
        {"type": "tool_call_response", "id": "a", "name": "f", "response": "31 °C"},
        {"type": "tool_call_response", "id": "b", "response": "gone", "is_error": True},
        {
            "type": "tool_call_response",
            "id": "c",
            "name": "f",
            "response": [{"type": "text", "content": "seen"}, image],
        },
        {"type": "tool_call_response", "id": "d", "name": "f", "response": {"x": 1}},
    ]
    (sent,) = GEMINI.encode("tool", parts)
    assert [part["functionResponse"] for part in sent["parts"]] == [
        {"id": "a", "name": "f", "response": {"output": "31 °C"}},
        {"id": "b", "name": "b", "response": {"error": "gone"}},
        {
            "id": "c",
            "name": "f",
            "response": {"output": "seen"},
            "parts": [{"inlineData": {"mimeType": "image/png", "data": "iVBO"}}],
        },
        {"id": "d", "name": "f", "response": {"x": 1}},
    ]


def test_an_address_gets_its_type_from_its_end_or_is_named() -> None:
    parts = [
        {"type": "uri", "modality": "image", "uri": "https://a.example/b.PNG"},
        {"type": "uri", "modality": "image", "uri": "https://a.example/b"},
    ]
    (sent,) = GEMINI.encode("user", parts)
    assert sent["parts"] == [
        {"fileData": {"mimeType": "image/png", "fileUri": "https://a.example/b.PNG"}},
        {"text": "[image, https://a.example/b, not sent: gemini cannot take it here]"},
    ]


@pytest.mark.parametrize(
    ("native", "complaint"),
    [
        ({"parts": [{"text": "hi"}]}, "it has no role"),
        ({"candidates": []}, "candidates[0].content"),
        ({"role": "assistant", "parts": []}, "its role is 'assistant'"),
        ({"role": "user"}, "it has no parts"),
        ({"role": "user", "parts": "hi"}, "parts is a string, not a list"),
        (user({}), "parts[0] is empty"),
        (user({"type": "text", "text": "hi"}), "parts[0] has a type"),
        (user({"text": 5}), "parts[0].text is a number"),
        (model({"functionCall": "f"}), "parts[0].functionCall is a string"),
        (model({"functionCall": {"args": {}}}), "parts[0].functionCall.name is missing"),
        (model({"functionCall": {"name": "f", "args": "x"}}), "functionCall.args is a string"),
        (user({"functionResponse": {"name": "f", "response": "x"}}), "response is a string"),
        (user({"inlineData": {"data": "x"}}), "parts[0].inlineData.mimeType is missing"),
    ],
)
def test_what_is_no_message_is_refused_with_the_place(
    native: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(FormatError) as caught:
        GEMINI.decode(native)
    assert complaint in str(caught.value)
