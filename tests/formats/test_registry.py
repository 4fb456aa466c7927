"""The registry, and ``read``: any message, made ready for the store."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessiontree.core.tokens import estimate
from sessiontree.errors import FormatError
from sessiontree.formats import NAMES, codec, glance, names, read, recognise

USE = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "sky"}}],
}
RESULT = {
    "role": "user",
    "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "\n blue \n"}],
}
PNG = "iVBORw0KGgo" * 20_000


def shapes_of(fmt: str) -> list[dict[str, Any]]:
    path = Path(__file__).with_name(f"test_codec_{fmt}.py")
    return list(runpy.run_path(str(path), run_name="shapes")["CANONICAL"].values())


OWN_SHAPES = {
    "openai_chat": shapes_of("openai_chat"),
    "openai_responses": shapes_of("openai_responses"),
    "anthropic": shapes_of("anthropic"),
    "gemini": shapes_of("gemini"),
    "bedrock": shapes_of("bedrock"),
    "otel": shapes_of("otel_and_mark"),
    "mark": [{"role": "mark", "kind": "cut"}],
    "claude_code": [
        {
            "type": "assistant",
            "uuid": "a",
            "parentUuid": None,
            "sessionId": "s",
            "message": USE | {"model": "m", "usage": {"input_tokens": 3}},
        }
    ],
    "pi": [
        {
            "type": "message",
            "id": "a",
            "parentId": None,
            "timestamp": "2026-01-01T00:00:00.000Z",
            "message": {"role": "user", "content": [{"type": "text", "text": "Hello"}]},
        }
    ],
}


class Model:
    """What the providers' libraries return: an object that can write itself down."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def model_dump(self, *, mode: str, exclude_unset: bool) -> dict[str, Any]:
        assert (mode, exclude_unset) == ("json", True)
        return self.fields


# --- Finding codecs ---------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_every_format_has_a_codec_of_its_name(name: str) -> None:
    assert codec(name).name == name
    assert codec(name) is codec(name)


@pytest.mark.parametrize("name", ["opnai", "", "shapes", "../core"])
def test_an_unknown_format_is_refused_with_those_that_exist(name: str) -> None:
    with pytest.raises(FormatError) as caught:
        codec(name)
    assert repr(name) in str(caught.value)
    assert all(known in str(caught.value) for known in names())


def test_no_codec_is_imported_before_it_is_needed() -> None:
    program = (
        "import sys, sessiontree.formats as f\n"
        "f.read({'role': 'user', 'content': 'Hello'})\n"
        "print([n for n in f.NAMES if 'sessiontree.formats.' + n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


# --- Recognising ------------------------------------------------------------------------


@pytest.mark.parametrize("fmt", OWN_SHAPES)
def test_no_shape_bears_the_mark_of_another_format(fmt: str) -> None:
    for native in OWN_SHAPES[fmt]:
        claims = {name for name in NAMES if codec(name).recognises(native)}
        assert claims <= {fmt}, native
        assert recognise(native) in (None, fmt)


@pytest.mark.parametrize("fmt", OWN_SHAPES)
def test_the_most_of_every_format_is_recognised(fmt: str) -> None:
    told = [recognise(native) == fmt for native in OWN_SHAPES[fmt]]
    assert sum(told) * 2 >= len(told)


@pytest.mark.parametrize(
    "native",
    [
        {"role": "user", "content": "Hello"},
        {"role": "user", "content": [{"type": "text", "text": "Hello"}]},
        {"role": "assistant", "content": None},
        {"role": "user", "parts": []},
        {"role": ["user"], "content": 5, "type": {}, "parts": 5},
        {},
    ],
)
def test_what_could_be_of_several_formats_is_not_guessed(native: dict[str, Any]) -> None:
    assert recognise(native) is None


# --- Reading ----------------------------------------------------------------------------


def test_plain_text_needs_no_format() -> None:
    message = read({"role": "user", "content": "Where is my order?"})
    assert message.content == '{"role":"user","content":"Where is my order?"}'
    assert (message.format, message.role) == ("openai_chat", "user")
    assert message.preview == "Where is my order?"
    assert message.tokens == estimate("Where is my order?")


@pytest.mark.parametrize("role", ["system", "user", "assistant"])
@pytest.mark.parametrize("fmt", ["openai_chat", "anthropic", "openai_responses"])
@given(text=st.text())
def test_the_short_way_for_plain_text_says_what_the_codec_says(
    fmt: str, role: str, text: str
) -> None:
    native = {"role": role, "content": text}
    short = read(native, format=fmt)
    at_length = read(native | {"name": None} if fmt == "openai_chat" else native, format=fmt)
    decoded = codec(fmt).decode(native)
    assert short.role == decoded.role
    assert (short.preview, short.tokens) == (at_length.preview, at_length.tokens)
    assert short.preview or not any(char.isalnum() for char in text)


def test_json_text_is_kept_to_the_byte() -> None:
    text = '{ "role":"user",  "content":"caf\\u00e9 \\ud800",\n "content":"b" }'
    assert read(text).content == text
    assert read(text.encode()).content == text
    assert read(bytearray(text.encode())).preview == "b"


def test_the_marks_of_a_format_go_before_the_default() -> None:
    assert read(USE, default="gemini").format == "anthropic"
    assert read({"role": "mark", "kind": "cut"}, default="anthropic").role == "mark"


def test_the_default_decides_where_there_is_no_mark() -> None:
    native = {"role": "user", "content": [{"type": "text", "text": "Hello"}]}
    assert read(native, default="anthropic").format == "anthropic"
    assert read(native).format == "openai_chat"


@pytest.mark.parametrize("default", ["gemini", "bedrock", "otel", "mark"])
def test_plain_text_is_taken_where_the_default_writes_it_otherwise(default: str) -> None:
    message = read({"role": "user", "content": "Hello"}, default=default)
    assert (message.format, message.preview) == ("openai_chat", "Hello")


def test_a_message_of_no_format_is_refused_by_the_default() -> None:
    with pytest.raises(FormatError, match="not a message of format gemini: its role is 'robot'"):
        read({"role": "robot", "content": "Hello"}, default="gemini")


def test_a_format_that_is_named_is_held_to() -> None:
    with pytest.raises(FormatError, match="format bedrock: content is a string, not a list"):
        read({"role": "user", "content": "Hello"}, format="bedrock")
    with pytest.raises(FormatError, match="there is no message format 'x'"):
        read({"role": "user", "content": "Hello"}, format="x")
    with pytest.raises(FormatError, match="there is no message format 'x'"):
        read({"role": "user", "content": [{"type": "text", "text": "a"}]}, default="x")


@pytest.mark.parametrize("message", [5, None, [], "Hello", "[]", b"\xff", {1: 2}, {"role": "user"}])
def test_what_is_no_message_is_refused(message: Any) -> None:
    with pytest.raises(FormatError):
        read(message)


def test_calls_and_results_are_found() -> None:
    (call,) = read(USE).calls
    assert (call.id, call.name, call.arguments) == ("toolu_1", "look", {"at": "sky"})
    message = read(RESULT)
    assert (message.role, message.results[0].id) == ("tool", "toolu_1")


def test_usage_and_model_come_from_the_message_or_the_caller() -> None:
    native = USE | {"model": "m-1", "usage": {"output_tokens": 7}, "stop_reason": "tool_use"}
    message = read(native)
    assert (message.model, message.usage) == ("m-1", {"output_tokens": 7})
    message = read(native, model="m-2", usage={"output_tokens": 8})
    assert (message.model, message.usage) == ("m-2", {"output_tokens": 8})


def test_usage_and_model_are_found_inside_a_transcripts_envelope() -> None:
    message = read(OWN_SHAPES["claude_code"][0])
    assert (message.format, message.role) == ("claude_code", "assistant")
    assert (message.model, message.usage) == ("m", {"input_tokens": 3})


def test_what_the_caller_adds_is_passed_on() -> None:
    for native in ({"role": "user", "content": "Hello"}, USE):
        message = read(native, key="k", meta={"a": 1}, created_at=5)
        assert (message.key, message.meta, message.created_at) == ("k", {"a": 1}, 5)


def test_an_object_of_a_providers_library_is_read() -> None:
    answer = Model(role="assistant", content="It rains.", refusal=None)
    assert read(answer).preview == "It rains."


def test_a_list_of_a_providers_objects_inside_a_message_is_read() -> None:
    native = {"role": "assistant", "content": [Model(**block) for block in USE["content"]]}
    message = read(native)
    assert json.loads(message.content) == USE
    assert message.calls[0].name == "look"


def test_an_object_that_cannot_write_itself_down_is_refused() -> None:
    with pytest.raises(FormatError, match="a SimpleNamespace cannot be written down"):
        read(SimpleNamespace(model_dump=lambda: {"role": "user"}))
    with pytest.raises(FormatError, match=r"content\[0\].*bytes"):
        read({"role": "user", "content": [b"x"]})


# --- Previews and estimates -------------------------------------------------------------


def preview(text: str) -> str:
    return read({"role": "user", "content": text}).preview


def test_a_preview_is_the_first_line_that_says_something() -> None:
    assert preview("\n  \r\n  first  \nsecond") == "first"
    assert preview("") == preview(" \n ") == ""
    assert preview("a" * 120) == "a" * 120
    assert preview("a" * 121) == "a" * 119 + "…"
    assert preview("a" * 5_000_000) == "a" * 119 + "…"


@given(text=st.text(st.characters()))
def test_a_preview_is_one_line_that_every_database_takes(text: str) -> None:
    line = preview(text)
    line.encode("utf-8")
    assert "\0" not in line
    assert len(line.splitlines()) <= 1
    assert len(line) <= 120


@given(
    st.text(st.sampled_from("\n\r\t \x1c\x85\xa0\u2028\0"), max_size=4),
    st.text(st.characters() | st.sampled_from("ab \n")),
    st.integers(0, 130),
)
def test_the_usual_first_line_is_found_as_any_other_is(gap: str, text: str, more: int) -> None:
    whole = gap + "x" * more + text
    assert glance.first_line(whole) == glance._first_shown(whole)  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(
    ("native", "line"),
    [
        (USE, "look"),
        ({"role": "assistant", "content": [*USE["content"], *USE["content"]]}, "look, look"),
        (RESULT, "→ blue"),
        (
            {"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "u"}}]},
            "[image]",
        ),
        (
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.\nSo"}]},
            "(Hm.",
        ),
        ({"role": "assistant", "content": [{"type": "redacted_thinking"}]}, "[redacted_thinking]"),
    ],
)
def test_a_message_without_text_is_described(native: dict[str, Any], line: str) -> None:
    assert read(native).preview == line


def test_images_are_not_counted_by_their_bytes() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    odd = {"type": "image", "source": {"type": "base64", "data": PNG}}
    text = {"type": "text", "text": "look at this"}
    result = {"type": "tool_result", "tool_use_id": "a", "content": [text, image, odd]}
    for blocks in ([text, image], [text, odd], [result]):
        assert read({"role": "user", "content": blocks}).tokens < 30
    url = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    assert read({"role": "user", "content": [text, url]}).tokens < 30


def test_text_arguments_and_results_are_counted() -> None:
    words = "The rain in Spain stays mainly in the plain. " * 100
    expected = estimate(words)
    for native in (
        {"role": "user", "content": words},
        {"role": "tool", "tool_call_id": "a", "content": words},
        {"role": "user", "content": [{**RESULT["content"][0], "content": words}]},
        {"role": "assistant", "content": [{**USE["content"][0], "input": {"text": words}}]},
        {"role": "user", "content": [{"type": "search_result", "content": [{"text": words}]}]},
    ):
        assert expected <= read(native).tokens <= expected * 1.3
