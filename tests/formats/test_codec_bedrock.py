"""Bedrock Converse: every documented block, decoded and encoded again."""

from __future__ import annotations

from typing import Any

import pytest

from sessiontree.core.message import calls_of, results_of
from sessiontree.errors import FormatError
from sessiontree.formats import codec

BEDROCK = codec("bedrock")
IMAGE = {"image": {"format": "png", "source": {"bytes": "iVBORw0KGgo="}}}
USE = {"toolUse": {"toolUseId": "tooluse_1", "name": "get_weather", "input": {"city": "Hanoi"}}}
RESULT: dict[str, Any] = {"toolUseId": "tooluse_1", "content": [{"text": "31 °C"}]}


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def result(**fields: Any) -> dict[str, Any]:
    return user({"toolResult": RESULT | fields})


def document(**fields: Any) -> dict[str, Any]:
    return user({"document": {"format": "pdf", "name": "a"} | fields}, {"text": "read it"})


CANONICAL: dict[str, dict[str, Any]] = {
    "text": user({"text": "Hello"}),
    "system": {"role": "system", "content": [{"text": "Be brief."}, {"cachePoint": {}}]},
    "cache point": user({"text": "Hello"}, {"cachePoint": {"type": "default"}}),
    "image": user(IMAGE, {"text": "what is this?"}),
    "image on s3": user(
        {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://a/b.png"}}}}
    ),
    "image on s3 of another": user(
        {
            "image": {
                "format": "png",
                "source": {"s3Location": {"uri": "s3://a/b.png", "bucketOwner": "1"}},
            }
        }
    ),
    "document": document(source={"bytes": "JVBERi0="}, context="mail", citations={"enabled": True}),
    "text document": document(format="txt", source={"text": "once"}),
    "document of blocks": document(source={"content": [{"text": "once"}]}),
    "video": user({"video": {"format": "mp4", "source": {"bytes": "AAAA"}}}),
    "audio": user({"audio": {"format": "wav", "source": {"bytes": "UklGRg=="}}}),
    "image of a format of tomorrow": user({"image": {"format": "x", "source": {"bytes": "AAAA"}}}),
    "guarded text": user({"guardContent": {"text": {"text": "Hello"}}}),
    "call": assistant({"text": "One moment."}, USE),
    "call of a server tool": assistant({"toolUse": USE["toolUse"] | {"type": "server_tool_use"}}),
    "result": result(),
    "result of no blocks": result(content=[]),
    "failed result": result(status="error"),
    "result that says it did not fail": result(status="success"),
    "result as json": result(content=[{"json": {"celsius": 31}}]),
    "result as a json list": result(content=[{"json": [31, {"type": "text"}]}]),
    "result of several": result(content=[{"text": "seen"}, {"json": {"a": 1}}, IMAGE]),
    "result with a document": result(
        content=[{"document": {"format": "md", "name": "a", "source": {"bytes": "IyBoaQ=="}}}]
    ),
    "reasoning": assistant(
        {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "EqQB"}}},
        {"text": "Yes."},
    ),
    "redacted reasoning": assistant({"reasoningContent": {"redactedContent": "EmwK"}}, USE),
    "citations": assistant(
        {"citationsContent": {"content": [{"text": "Rain."}], "citations": []}},
    ),
    "block of tomorrow": assistant({"hologram": {"depth": 3}}),
    "block of tomorrow, named like a neutral part": assistant({"file": 1, "content": 2}),
}


@pytest.mark.parametrize("native", CANONICAL.values(), ids=CANONICAL)
def test_a_documented_shape_comes_back_as_it_was(native: dict[str, Any]) -> None:
    assert BEDROCK.encode(*BEDROCK.decode(native)) == [native]


def test_a_call_and_its_result_are_seen_as_such() -> None:
    (call,) = calls_of(BEDROCK.decode(CANONICAL["call"]).parts)
    assert (call.id, call.name, call.arguments) == ("tooluse_1", "get_weather", {"city": "Hanoi"})
    decoded = BEDROCK.decode(CANONICAL["failed result"])
    (answer,) = results_of(decoded.parts)
    assert decoded.role == "tool"
    assert (answer.id, answer.response, answer.is_error) == ("tooluse_1", "31 °C", True)
    (answer,) = results_of(BEDROCK.decode(CANONICAL["result as json"]).parts)
    assert answer.response == {"celsius": 31}


def test_images_and_documents_have_their_mime_types() -> None:
    (image, _) = BEDROCK.decode(CANONICAL["image"]).parts
    assert (image["mime_type"], image["modality"]) == ("image/png", "image")
    (paper, _) = BEDROCK.decode(CANONICAL["document"]).parts
    assert (paper["mime_type"], paper["modality"]) == ("application/pdf", "document")


def test_results_of_one_turn_stand_in_one_message_before_the_text() -> None:
    parts = [
        {"type": "text", "content": "go on"},
        {"type": "tool_call_response", "id": "a", "response": "1", "is_error": True},
        {"type": "tool_call_response", "id": "b", "response": {"x": 1}},
    ]
    assert BEDROCK.encode("tool", parts) == [
        user(
            {"toolResult": {"toolUseId": "a", "content": [{"text": "1"}], "status": "error"}},
            {"toolResult": {"toolUseId": "b", "content": [{"json": {"x": 1}}]}},
            {"text": "go on"},
        )
    ]


def test_a_document_gets_a_name_that_bedrock_takes() -> None:
    paper = {
        "type": "blob",
        "mime_type": "application/pdf",
        "modality": "document",
        "content": "JVBERi0=",
        "title": "a/b  (final).pdf",
    }
    (sent,) = BEDROCK.encode("user", [paper])
    assert sent["content"][0]["document"]["name"] == "a b (final) pdf"


def test_what_bedrock_cannot_take_is_named_or_left_out() -> None:
    parts = [
        {"type": "uri", "modality": "image", "mime_type": "image/png", "uri": "https://a.example"},
        {"type": "reasoning", "content": "Hm.", "signature": "x", "provider": "anthropic"},
        {"type": "redacted_thinking", "data": "x", "provider": "anthropic"},
    ]
    assert BEDROCK.encode("user", parts) == [
        user(
            {"text": "[image image/png, https://a.example, not sent: bedrock cannot take it here]"}
        )
    ]


@pytest.mark.parametrize(
    ("native", "complaint"),
    [
        ({"content": [{"text": "hi"}]}, "it has no role"),
        ({"role": "tool", "content": []}, "its role is 'tool'"),
        ({"role": "user"}, "it has no content"),
        ({"role": "user", "content": "hi"}, "content is a string, not a list"),
        (user({}), "content[0] is empty"),
        (user({"type": "text", "text": "hi"}), "content[0] has a type"),
        (user({"text": None}), "content[0].text is null"),
        (assistant({"toolUse": {"name": "f"}}), "content[0].toolUse.toolUseId is missing"),
        (user({"toolResult": {"toolUseId": "a", "content": "x"}}), "content is a string"),
        (user({"image": "x"}), "content[0].image is a string, not an object"),
    ],
)
def test_what_is_no_message_is_refused_with_the_place(
    native: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(FormatError) as caught:
        BEDROCK.decode(native)
    assert complaint in str(caught.value)
