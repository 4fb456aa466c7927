"""The tools of the model itself: their definitions, and what a call of one is told."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessiontree.core.message import ToolCall
from sessiontree.core.model_tools import NAMES, Known, definitions, reply_to
from sessiontree.core.rules import PROVIDERS
from sessiontree.errors import WindowError

SOME = Known(["before", "schöne"], None)


def called(name: str, arguments: Any) -> ToolCall:
    return ToolCall("c", name, arguments)


def opened(provider: str, definition: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """(name, description, schema) as the provider's documentation says where they are."""
    if provider == "bedrock":
        definition = definition["toolSpec"]
        return definition["name"], definition["description"], definition["inputSchema"]["json"]
    if provider == "openai_chat":
        assert definition["type"] == "function"
        definition = definition["function"]
    if provider == "openai_responses":
        assert definition["type"] == "function"
    key = "input_schema" if provider == "anthropic" else "parameters"
    return definition["name"], definition["description"], definition[key]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_each_provider_gets_the_same_tools_in_its_own_shape(provider: str) -> None:
    found = [opened(provider, each) for each in definitions(provider)]
    assert [name for name, _, _ in found] == ["checkpoint", "rewind"]
    assert [schema["required"] for _, _, schema in found] == [["label"], ["label", "report"]]
    for _, about, schema in found:
        assert len(about) > 40
        assert schema["type"] == "object"
        assert schema["properties"].keys() == set(schema["required"])
        assert all(each["type"] == "string" for each in schema["properties"].values())
        assert ("additionalProperties" in schema) == (provider != "gemini")
    json.dumps(definitions(provider))


def test_definitions_are_made_anew_so_that_a_caller_may_change_them() -> None:
    definitions("anthropic")[0]["input_schema"]["properties"].clear()
    assert "label" in definitions("anthropic")[0]["input_schema"]["properties"]


def test_a_provider_without_a_shape_is_told_with_those_that_have_one() -> None:
    with pytest.raises(WindowError, match=r"'cohere'.*anthropic, openai_chat"):
        definitions("cohere")


def test_a_checkpoint_is_noted_for_the_end_of_the_step() -> None:
    reply = reply_to(called("checkpoint", {"label": "here", "mood": "any"}), SOME)
    assert (reply.is_error, reply.rewinds) == (False, None)
    assert reply.note == {"kind": "checkpoint", "label": "here"}
    assert "'here'" in reply.text


def test_a_rewind_is_noted_with_a_digest_that_says_what_it_is() -> None:
    call = called("rewind", '{"label": "before", "report": "403 for é"}')
    reply = reply_to(call, SOME)
    assert reply.rewinds == "before"
    assert reply.note is not None
    assert reply.note["digest"].endswith("\n\n403 for é")
    assert "'before'" in reply.note["digest"]


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("checkpoint", {"label": "before"}, "a checkpoint 'before' already"),
        ("rewind", {"label": "nope", "report": "x"}, "no checkpoint 'nope'. The checkpoints: 'be"),
        ("rewind", {"label": "before"}, "the report is missing"),
        ("rewind", {"label": "before", "report": " \n"}, "the report is empty"),
        ("rewind", {"report": "x"}, "the label is missing"),
        ("checkpoint", {"label": 7}, "the label is not a string"),
        ("checkpoint", {"label": None}, "the label is missing"),
        ("checkpoint", {"label": "a\0b"}, "cannot be stored"),
        ("checkpoint", {"label": "\ud800"}, "cannot be stored"),
        ("checkpoint", '{"label": ', "no JSON object"),
        ("checkpoint", '["here"]', "no JSON object"),
        ("checkpoint", None, "no JSON object"),
    ],
)
def test_what_cannot_be_done_is_told_to_the_model(name: str, arguments: Any, told: str) -> None:
    reply = reply_to(called(name, arguments), SOME)
    assert reply.is_error
    assert reply.note is None
    assert told in reply.text


def test_without_any_checkpoint_the_model_is_told_how_to_set_one() -> None:
    reply = reply_to(called("rewind", {"label": "x", "report": "y"}), Known([], None))
    assert "no checkpoints yet; `checkpoint` sets one" in reply.text


def test_a_step_goes_back_once() -> None:
    reply = reply_to(called("rewind", {"label": "before", "report": "y"}), Known(["before"], "b"))
    assert reply.is_error
    assert "goes back to 'b' already" in reply.text


ANY = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text() | st.sampled_from(["label", "before"]),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["label", "report"]), inner),
)


@given(st.sampled_from(NAMES), ANY)
def test_any_arguments_have_a_reply_that_is_either_an_error_or_a_note(
    name: str, arguments: Any
) -> None:
    reply = reply_to(called(name, arguments), SOME)
    assert reply.text
    assert reply.is_error == (reply.note is None)
    if reply.note is not None:
        assert json.dumps(reply.note).encode()
        assert reply.note["label"].encode()
