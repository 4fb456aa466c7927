"""Our own two shapes: OpenTelemetry's parts, and marks."""

from __future__ import annotations

from typing import Any

import pytest

from sessiontree.core.message import calls_of, text_of
from sessiontree.errors import FormatError
from sessiontree.formats import codec

OTEL = codec("otel")
MARK = codec("mark")

CANONICAL: dict[str, dict[str, Any]] = {
    "text": {"role": "user", "parts": [{"type": "text", "content": "Hello"}]},
    "answer": {
        "role": "assistant",
        "parts": [
            {"type": "reasoning", "content": "Hm."},
            {"type": "tool_call", "id": "a", "name": "f", "arguments": {"x": 1}},
        ],
        "finish_reason": "tool_call",
    },
    "result": {
        "role": "tool",
        "parts": [{"type": "tool_call_response", "id": None, "response": [1, 2]}],
    },
    "media": {
        "role": "user",
        "parts": [
            {"type": "blob", "mime_type": "image/png", "modality": "image", "content": "iVBO"},
            {"type": "uri", "mime_type": None, "modality": "video", "uri": "gs://a/b"},
            {"type": "file", "modality": "audio", "file_id": "f1"},
        ],
    },
    "parts of others": {
        "role": "assistant",
        "parts": [
            {"type": "redacted_thinking", "data": "x", "provider": "anthropic"},
            {"type": "text", "content": "a", "provider": "x", "message": {"name": "n"}},
            {"type": "hologram"},
        ],
        "name": "agent",
    },
    "no parts, but a name": {"role": "user", "parts": [], "name": "camille"},
}


@pytest.mark.parametrize("native", CANONICAL.values(), ids=CANONICAL)
def test_an_otel_message_comes_back_as_it_was(native: dict[str, Any]) -> None:
    assert OTEL.encode(*OTEL.decode(native)) == [native]


def test_otel_parts_are_our_parts() -> None:
    decoded = OTEL.decode(CANONICAL["answer"])
    assert decoded.parts[:2] == CANONICAL["answer"]["parts"]
    assert calls_of(decoded.parts)[0].name == "f"


@pytest.mark.parametrize(
    ("native", "complaint"),
    [
        ({"role": "user"}, "it has no parts"),
        ({"role": "model", "parts": []}, "its role is 'model'"),
        ({"role": "user", "parts": {}}, "parts is an object, not a list"),
        ({"role": "user", "parts": [{"text": "x"}]}, "parts[0].type is missing"),
        ({"role": "user", "parts": [{"type": "text", "text": "x"}]}, "parts[0].content is missing"),
        (
            {"role": "user", "parts": [{"type": "tool_call", "id": 5, "name": "f"}]},
            "id is a number",
        ),
        ({"role": "user", "parts": [{"type": "uri", "uri": "x"}]}, "parts[0].modality is missing"),
    ],
)
def test_what_is_no_otel_message_is_refused(native: dict[str, Any], complaint: str) -> None:
    with pytest.raises(FormatError) as caught:
        OTEL.decode(native)
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    "native",
    [
        {"role": "mark", "kind": "cut"},
        {"role": "mark", "kind": "summary", "text": "They talked.", "upto": 12},
        {"role": "mark", "kind": "orphan_result", "text": None, "message": {"role": "tool"}},
        {"role": "mark", "kind": "note", "text": "", "type": "x", "content": 5},
    ],
)
def test_a_mark_comes_back_as_it_was(native: dict[str, Any]) -> None:
    decoded = MARK.decode(native)
    assert decoded.role == "mark"
    assert MARK.encode(*decoded) == [native]


def test_the_text_of_a_summary_can_be_read() -> None:
    native = {"role": "mark", "kind": "summary", "text": "They talked."}
    assert text_of(MARK.decode(native).parts) == "They talked."


@pytest.mark.parametrize("native", [{"role": "user", "kind": "cut"}, {"role": "mark"}, {}])
def test_what_is_no_mark_is_refused(native: dict[str, Any]) -> None:
    with pytest.raises(FormatError):
        MARK.decode(native)


def test_a_mark_holds_nothing_but_marks() -> None:
    assert MARK.encode("user", [{"type": "text", "content": "Hello"}]) == []
