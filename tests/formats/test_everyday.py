"""The short way of reading and the codec see the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessiontree import formats
from sessiontree.core.message import calls_of, results_of
from sessiontree.formats import everyday
from sessiontree.formats.glance import estimated_tokens, preview_of

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
ARGUMENTS = st.one_of(
    TEXT, st.dictionaries(TEXT, st.integers() | TEXT | st.none(), max_size=3).map(json.dumps)
)
CALLS = st.lists(
    st.fixed_dictionaries(
        {
            "id": TEXT,
            "type": st.sampled_from(["function", "function", "custom"]),
            "function": st.fixed_dictionaries(
                {"name": TEXT, "arguments": ARGUMENTS}, optional={"strict": st.booleans()}
            ),
        }
    ),
    max_size=3,
)
MESSAGES = st.one_of(
    st.fixed_dictionaries(
        {"role": st.just("tool"), "tool_call_id": TEXT, "content": TEXT | st.none()}
    ),
    st.fixed_dictionaries(
        {"role": st.just("assistant"), "content": TEXT | st.none(), "tool_calls": CALLS}
    ),
)


@given(MESSAGES)
def test_a_glance_sees_what_the_codec_sees(native: dict[str, Any]) -> None:
    seen = everyday.see(native)
    if seen is None:
        return
    role, parts = formats.codec(everyday.NAME).decode(native)
    calls = calls_of(parts)
    assert seen == (
        role,
        calls,
        results_of(parts),
        preview_of(parts, calls),
        estimated_tokens(parts),
    )


def test_everyday_messages_are_seen_at_a_glance() -> None:
    function = {"name": "look", "arguments": '{"a": 1}'}
    call = {"id": "c1", "type": "function", "function": function}
    assert everyday.see({"role": "assistant", "content": None, "tool_calls": [call]})
    assert everyday.see({"role": "tool", "tool_call_id": "c1", "content": "found"})
    assert everyday.see({"role": "tool", "tool_call_id": "c1", "content": ["found"]}) is None


@pytest.mark.parametrize(
    ("native", "preview"),
    [
        ({"role": "mark", "kind": "cut"}, "[cut]"),
        ({"role": "mark", "kind": "summary", "text": "All is well."}, "All is well."),
    ],
)
def test_a_mark_is_listed_by_its_words_or_by_what_it_does(native: dict[str, str], preview: str):
    assert preview_of(formats.codec("mark").decode(native).parts) == preview
