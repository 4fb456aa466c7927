"""The short way by which codecs write a message that is one text gives what the long one does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessiontree import formats
from sessiontree.errors import FormatError
from sessiontree.formats import openai_chat, shapes

CODECS = ("anthropic", "openai_chat", "openai_responses", "gemini", "bedrock")
ROLES = ("system", "user", "assistant", "tool")


def at_length(name: str, role: Any, parts: list[dict[str, Any]]) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shapes, "plain_text", lambda parts: None)
        return formats.codec(name).encode(role, parts)


@given(st.sampled_from(CODECS), st.sampled_from(ROLES), st.text())
def test_a_plain_text_is_written_the_same_either_way(name: str, role: Any, text: str) -> None:
    parts = [shapes.text_part(text)]
    assert shapes.plain_text(parts) == text
    assert formats.codec(name).encode(role, parts) == at_length(name, role, parts)


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [{"type": "text", "content": "a"}, {"type": "text", "content": "b"}],
        [{"type": "text", "content": "a", "provider": "anthropic"}],
        [{"type": "text", "content": None}],
        [{"type": "text", "text": "a"}],
        [{"type": "reasoning", "content": "a"}],
    ],
)
def test_anything_beside_one_text_takes_the_long_way(parts: list[dict[str, Any]]) -> None:
    assert shapes.plain_text(parts) is None


@st.composite
def calls(draw: st.DrawFn) -> dict[str, Any]:
    """Calls of openai_chat, most of them plain, some with a field more, less or of another kind."""
    function = {"name": draw(st.text()), "arguments": draw(st.one_of(st.text(), st.just("{}")))}
    call: dict[str, Any] = {"id": draw(st.text()), "type": "function", "function": function}
    odd = draw(st.sampled_from(["", "", "id", "type", "name", "arguments", "more", "further"]))
    if odd in ("id", "type"):
        call[odd] = draw(st.sampled_from([None, "other"]))
    elif odd in ("name", "arguments"):
        del function[odd]
    elif odd == "more":
        call["index"] = 0
    elif odd == "further":
        function["strict"] = True
    return call


def decoded(native: dict[str, Any]) -> Any:
    try:
        return formats.codec("openai_chat").decode(native)
    except FormatError as error:
        return str(error)


@given(st.lists(calls(), max_size=3), st.one_of(st.none(), st.text()))
def test_a_message_of_calls_is_read_the_same_either_way(made: list[Any], content: Any) -> None:
    native = {"role": "assistant", "content": content, "tool_calls": made}
    short = decoded(native)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(openai_chat, "_CALLING", frozenset())
        patch.setattr(openai_chat, "_PLAIN_CALL", frozenset())
        assert decoded(native) == short
