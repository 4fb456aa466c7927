"""Anthropic Messages: every documented block, decoded and encoded again."""

from __future__ import annotations

from typing import Any

import pytest

from sessiontree.core.message import calls_of, results_of
from sessiontree.errors import FormatError
from sessiontree.formats import codec

ANTHROPIC = codec("anthropic")
PNG = "iVBORw0KGgo="
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
CACHED = {"cache_control": {"type": "ephemeral"}}
USE = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Hanoi"}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "31 °C"}
THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "EqQB"}


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def document(source: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"type": "document", "source": source} | fields


CANONICAL: dict[str, dict[str, Any]] = {
    "text": {"role": "user", "content": "Hello"},
    "system": {"role": "system", "content": "Be brief."},
    "empty text": {"role": "user", "content": ""},
    "cached text": user({"type": "text", "text": "Hello"} | CACHED),
    "several texts": user({"type": "text", "text": "a"}, {"type": "text", "text": "b"}),
    "citations": assistant(
        {
            "type": "text",
            "text": "Rain.",
            "citations": [{"type": "char_location", "cited_text": "rain", "document_index": 0}],
        }
    ),
    "image": user(IMAGE, {"type": "text", "text": "what is this?"}),
    "cached image": user(IMAGE | CACHED),
    "image by url": user(
        {"type": "image", "source": {"type": "url", "url": "https://a.example/b.png"}}
    ),
    "image by file": user({"type": "image", "source": {"type": "file", "file_id": "file_1"}}),
    "pdf": user(
        document(
            {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
            title="a.pdf",
            context="from the mail",
            citations={"enabled": True},
        )
    ),
    "pdf by url": user(document({"type": "url", "url": "https://a.example/b.pdf"})),
    "file": user(document({"type": "file", "file_id": "file_1"}, title="b")),
    "text document": user(
        document({"type": "text", "media_type": "text/plain", "data": "once"}, title="tale")
    ),
    "document of blocks": user(
        document({"type": "content", "content": [{"type": "text", "text": "once"}]})
    ),
    "source with a field of tomorrow": user(
        {"type": "image", "source": {"type": "url", "url": "https://a.example", "ttl": 5}}
    ),
    "call": assistant({"type": "text", "text": "One moment."}, USE),
    "parallel calls": assistant(USE, USE | {"id": "toolu_2"} | CACHED),
    "call with its caller": assistant(USE | {"caller": {"type": "direct"}}),
    "result": user(RESULT),
    "results, then text": user(
        RESULT, RESULT | {"tool_use_id": "toolu_2"}, {"type": "text", "text": "go on"}
    ),
    "empty result": user({"type": "tool_result", "tool_use_id": "toolu_1"}),
    "result of no blocks": user({**RESULT, "content": []}),
    "failed result": user(RESULT | {"is_error": True}),
    "result that says it did not fail": user(RESULT | {"is_error": False}),
    "result of blocks": user(
        {**RESULT, "content": [{"type": "text", "text": "seen"}, IMAGE]} | CACHED
    ),
    "result with a reference to a tool": user(
        {**RESULT, "content": [{"type": "tool_reference", "tool_name": "get_weather"}]}
    ),
    "thinking": assistant(THINKING, {"type": "text", "text": "Yes."}),
    "thinking, text, thinking, call": assistant(
        THINKING, {"type": "text", "text": "Yes."}, THINKING, USE
    ),
    "redacted thinking": assistant({"type": "redacted_thinking", "data": "EmwK"}, USE),
    "server tool": assistant(
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"q": "x"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": [
                {"type": "web_search_result", "url": "https://a.example", "encrypted_content": "Eo"}
            ],
        },
        {"type": "text", "text": "Found."},
    ),
    "search result": user(
        {
            "type": "search_result",
            "source": "https://a.example",
            "title": "A",
            "content": [{"type": "text", "text": "a"}],
        }
    ),
    "block of tomorrow": assistant({"type": "hologram", "depth": 3}),
    "block of tomorrow, named like a neutral part": assistant(
        {"type": "reasoning", "content": 5, "extra": {}, "native": 1}
    ),
}


@pytest.mark.parametrize("native", CANONICAL.values(), ids=CANONICAL)
def test_a_documented_shape_comes_back_as_it_was(native: dict[str, Any]) -> None:
    assert ANTHROPIC.encode(*ANTHROPIC.decode(native)) == [native]


def test_a_user_message_with_a_result_has_the_role_tool() -> None:
    assert ANTHROPIC.decode(CANONICAL["results, then text"]).role == "tool"
    assert ANTHROPIC.decode(CANONICAL["image"]).role == "user"


def test_a_call_and_its_result_are_seen_as_such() -> None:
    (call,) = calls_of(ANTHROPIC.decode(CANONICAL["call"]).parts)
    assert (call.id, call.name, call.arguments) == ("toolu_1", "get_weather", {"city": "Hanoi"})
    (result,) = results_of(ANTHROPIC.decode(CANONICAL["failed result"]).parts)
    assert (result.id, result.response, result.is_error) == ("toolu_1", "31 °C", True)


def test_a_server_tool_is_no_call_that_waits_for_a_result() -> None:
    decoded = ANTHROPIC.decode(CANONICAL["server tool"])
    assert calls_of(decoded.parts) == ()
    assert results_of(decoded.parts) == ()
    assert decoded.role == "assistant"


def test_results_come_first_whatever_their_place_was() -> None:
    native = user({"type": "text", "text": "go on"}, RESULT)
    (sent,) = ANTHROPIC.encode(*ANTHROPIC.decode(native))
    assert sent == user(RESULT, {"type": "text", "text": "go on"})


def test_the_fields_of_a_response_are_kept_in_parts_and_not_sent_back() -> None:
    fields = {"id": "msg_1", "type": "message", "model": "m", "stop_reason": "end_turn"}
    native = {"role": "assistant", "content": [{"type": "text", "text": "Yes."}]} | fields
    decoded = ANTHROPIC.decode(native)
    assert decoded.parts[0]["message"] == fields
    assert ANTHROPIC.encode(*decoded) == [{"role": "assistant", "content": "Yes."}]


def test_the_fields_of_a_response_without_content_are_kept() -> None:
    native = {"role": "assistant", "content": [], "stop_reason": "end_turn"}
    decoded = ANTHROPIC.decode(native)
    assert decoded.parts == [
        {"type": "message", "provider": "anthropic", "message": {"stop_reason": "end_turn"}}
    ]
    assert ANTHROPIC.encode(*decoded) == []


def test_thinking_that_anthropic_did_not_sign_is_left_out() -> None:
    parts = [
        {"type": "reasoning", "content": "Hm."},
        {"type": "reasoning", "content": "Hm.", "signature": "x", "provider": "bedrock"},
        {"type": "redacted_thinking", "data": "x", "provider": "bedrock"},
        {"type": "text", "content": "Yes."},
    ]
    assert ANTHROPIC.encode("assistant", parts) == [{"role": "assistant", "content": "Yes."}]


def test_arguments_that_are_text_are_sent_in_an_object() -> None:
    parts = [{"type": "tool_call", "id": "a", "name": "sh", "arguments": "ls"}]
    (sent,) = ANTHROPIC.encode("assistant", parts)
    assert sent["content"][0]["input"] == {"input": "ls"}


def test_a_text_file_is_sent_as_a_text_document_and_a_sound_named() -> None:
    text = {
        "type": "blob",
        "mime_type": "text/markdown",
        "modality": "document",
        "content": "IyBoaQ==",
    }
    sound = {"type": "blob", "mime_type": "audio/wav", "modality": "audio", "content": "UklGRg=="}
    (sent,) = ANTHROPIC.encode("user", [text, sound])
    assert sent["content"] == [
        document({"type": "text", "media_type": "text/plain", "data": "# hi"}),
        {
            "type": "text",
            "text": "[audio audio/wav, 6 B, not sent: anthropic cannot take it here]",
        },
    ]


@pytest.mark.parametrize(
    ("native", "complaint"),
    [
        ({"content": "hi"}, "it has no role"),
        ({"role": "tool", "content": "hi"}, "its role is 'tool'"),
        ({"role": "user"}, "it has no content"),
        ({"role": "user", "content": None}, "content is null, not a list"),
        (user({"text": "hi"}), "content[0].type is missing"),
        (user({"type": 5}), "content[0].type is a number"),
        (user({"type": "text", "text": None}), "content[0].text is null"),
        (user({"type": "image"}), "content[0].source is missing"),
        (
            user(
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": 5},
                }
            ),
            "content[0].source.data is a number",
        ),
        (assistant({"type": "tool_use", "name": "f", "input": {}}), "content[0].id is missing"),
        (user({"type": "tool_result", "content": ""}), "content[0].tool_use_id is missing"),
        (
            user({"type": "tool_result", "tool_use_id": "a", "content": 5}),
            "content[0].content is a number, not a list",
        ),
        (assistant({"type": "thinking", "signature": "x"}), "content[0].thinking is missing"),
    ],
)
def test_what_is_no_message_is_refused_with_the_place(
    native: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(FormatError) as caught:
        ANTHROPIC.decode(native)
    assert complaint in str(caught.value)
