"""The short way by which codecs write a message that is one text gives what the long one does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessiontree import formats
from sessiontree.formats import shapes

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
