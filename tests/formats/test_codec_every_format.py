"""What holds for every codec: nothing breaks it, nothing is lost, and others can read it."""

from __future__ import annotations

import copy
import json
import runpy
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessiontree.core.message import ROLES, Decoded, Part, calls_of, results_of, text_of
from sessiontree.errors import FormatError
from sessiontree.formats import codec

PROVIDERS = ("openai_chat", "openai_responses", "anthropic", "gemini", "bedrock")
FORMATS = (*PROVIDERS, "otel", "mark")


def canonical(fmt: str) -> dict[str, dict[str, Any]]:
    """The shapes that the format's own test lists."""
    file = "otel_and_mark" if fmt in ("otel", "mark") else fmt
    path = Path(__file__).with_name(f"test_codec_{file}.py")
    return runpy.run_path(str(path), run_name="shapes")["CANONICAL"] if fmt != "mark" else MARKS


MARKS = {"summary": {"role": "mark", "kind": "summary", "text": "They talked.", "upto": 12}}
SHAPES = {fmt: canonical(fmt) for fmt in FORMATS}
ALL = [(fmt, name) for fmt in FORMATS for name in SHAPES[fmt]]

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
keys = st.sampled_from(
    [
        *("role", "content", "parts", "type", "text", "id", "name", "input", "args", "call_id"),
        *("tool_calls", "function", "arguments", "tool_call_id", "function_call", "custom"),
        *("source", "media_type", "data", "tool_use_id", "is_error", "thinking", "kind"),
        *("toolUse", "toolResult", "toolUseId", "status", "json", "functionCall", "image"),
        *("functionResponse", "inlineData", "provider", "message", "extra", "native", "item"),
    ]
)
words = st.sampled_from(
    [
        *(*ROLES, "model", "function", "developer", "text", "tool_use", "tool_result", "image"),
        *("image_url", "input_text", "function_call", "function_call_output", "reasoning"),
        *("base64", "url", "tool_call", "tool_call_response", "blob", "thinking", "document"),
    ]
)
lookalikes = st.recursive(
    json_values | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=6),
    max_leaves=15,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value inside ``value``."""
    yield path
    items = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    for key, inner in items:
        yield from places(inner, (*path, key))


def with_value(native: Any, path: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(native)
    at = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return changed


def at(native: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        native = native[key]
    return native


def tried(fmt: str, native: Any) -> Decoded | None:
    """Decoded and encoded by everybody; None when it was refused as it should be."""
    try:
        decoded = codec(fmt).decode(native)
    except FormatError:
        return None
    assert decoded.role in ROLES
    calls_of(decoded.parts)
    results_of(decoded.parts)
    text_of(decoded.parts)
    for target in FORMATS:
        for message in codec(target).encode(*decoded):
            json.dumps(message)
    return decoded


def named(parts: list[Part]) -> list[tuple[str, str]]:
    return [(call.id, call.name) for call in calls_of(parts)]


@pytest.mark.parametrize("fmt", FORMATS)
@given(native=st.dictionaries(keys, lookalikes, max_size=6))
def test_whatever_is_given_is_decoded_or_refused(fmt: str, native: dict[str, Any]) -> None:
    tried(fmt, native)
    codec(fmt).recognises(native)


@pytest.mark.parametrize("fmt", FORMATS)
@given(data=st.data())
def test_a_wrong_value_anywhere_is_kept_or_refused(fmt: str, data: st.DataObject) -> None:
    native = data.draw(st.sampled_from(list(SHAPES[fmt].values())))
    path = data.draw(st.sampled_from([path for path in places(native) if path]))
    changed = with_value(native, path, data.draw(lookalikes))
    codec(fmt).recognises(changed)
    decoded = tried(fmt, changed)
    if decoded is not None:
        again = [codec(fmt).decode(message) for message in codec(fmt).encode(*decoded)]
        parts = list(chain.from_iterable(each.parts for each in again))
        assert named(parts) == named(decoded.parts)
        assert set(text_of(decoded.parts).split("\n")) <= {"", *text_of(parts).split("\n")}


@pytest.mark.parametrize(("fmt", "name"), ALL)
def test_a_field_of_tomorrow_is_seen_in_the_parts(fmt: str, name: str) -> None:
    native = SHAPES[fmt][name]
    for path in places(native):
        if not isinstance(at(native, path), dict):
            continue
        for key in ("tomorrow", "content", "name", "id", "provider", "function", "native"):
            if key in at(native, path):
                continue
            changed = with_value(native, (*path, key), "MARKER")
            decoded = tried(fmt, changed)
            assert decoded is None or "MARKER" in json.dumps(decoded.parts), (path, key)


@pytest.mark.parametrize(("fmt", "name"), ALL)
def test_decoding_changes_nothing_in_what_was_given(fmt: str, name: str) -> None:
    native = SHAPES[fmt][name]
    before = copy.deepcopy(native)
    decoded = codec(fmt).decode(native)
    parts = copy.deepcopy(decoded.parts)
    for target in FORMATS:
        codec(target).encode(*decoded)
    assert native == before
    assert decoded.parts == parts


@pytest.mark.parametrize("target", PROVIDERS)
@pytest.mark.parametrize(("fmt", "name"), ALL)
def test_another_format_says_the_same_without_what_is_bound(
    fmt: str, name: str, target: str
) -> None:
    if fmt == target or fmt == "mark":
        return
    decoded = codec(fmt).decode(SHAPES[fmt][name])
    sent = codec(target).encode(*decoded)
    seen = [codec(target).decode(message) for message in sent]
    parts = list(chain.from_iterable(each.parts for each in seen))
    given_text = text_of(decoded.parts)
    for line in filter(None, given_text.split("\n")):
        assert line in text_of(parts)
    pairs = list(zip(calls_of(parts), calls_of(decoded.parts), strict=True))
    assert all(there.name == here.name for there, here in pairs)
    assert all(there.id == here.id for there, here in pairs if here.given)
    assert len(results_of(parts)) == len(results_of(decoded.parts))
    for secret in ("EqQB", "EmwK", "CvcB", "gAAA", "Eo", "cache_control", "cachePoint"):
        assert f'"{secret}"' not in json.dumps(sent)


# --- Neutral parts, through each provider's shape and back -------------------------------

ids = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=8)
names = st.sampled_from(["get_weather", "sh", "tìm_kiếm"])
objects = st.dictionaries(st.text(max_size=5), json_values, max_size=3)
texts = st.builds(lambda text: {"type": "text", "content": text}, st.text())
images = st.builds(
    lambda data: {
        "type": "blob",
        "mime_type": "image/png",
        "modality": "image",
        "content": data,
    },
    st.sampled_from(["iVBORw0KGgo=", "AAAA"]),
)
calls = st.builds(
    lambda call_id, name, arguments: {
        "type": "tool_call",
        "id": call_id,
        "name": name,
        "arguments": arguments,
    },
    ids,
    names,
    objects,
)
results = st.builds(
    lambda call_id, response: {
        "type": "tool_call_response",
        "id": call_id,
        "response": response,
    },
    ids,
    st.text(min_size=1),
)
said = (
    st.tuples(st.just("user"), st.lists(texts | images, min_size=1, max_size=4))
    | st.tuples(
        st.just("assistant"),
        st.builds(
            lambda first, then: first + then,
            st.lists(texts, min_size=1, max_size=2),
            st.lists(calls, max_size=3),
        ),
    )
    | st.tuples(st.just("tool"), st.lists(results, min_size=1, max_size=3))
    | st.tuples(st.just("system"), st.lists(texts, min_size=1, max_size=2))
)


def bare(part: Part, fmt: str) -> Part:
    """A part without what Gemini adds: the tool's name, and the object around its answer."""
    if fmt != "gemini" or part["type"] != "tool_call_response":
        return part
    return {
        "type": part["type"],
        "id": part["id"],
        "response": part["response"]["output"],
    }


@pytest.mark.parametrize("fmt", [*PROVIDERS, "otel"])
@given(message=said)
def test_role_and_parts_survive_the_way_out_and_back(
    fmt: str, message: tuple[Any, list[Part]]
) -> None:
    role, parts = message
    back = [codec(fmt).decode(native) for native in codec(fmt).encode(role, parts)]
    assert {each.role for each in back} == {role}
    assert [bare(part, fmt) for each in back for part in each.parts] == parts


@pytest.mark.parametrize("fmt", PROVIDERS)
def test_nothing_becomes_no_message_and_a_mark_is_never_sent(fmt: str) -> None:
    for role in ROLES:
        assert codec(fmt).encode(role, []) == []
    assert codec(fmt).encode("mark", [{"type": "text", "content": "Hello"}]) == []


@pytest.mark.parametrize("fmt", PROVIDERS)
def test_a_call_without_an_id_gets_one_that_its_result_gets_too(fmt: str) -> None:
    if fmt == "gemini":
        return
    calls = [{"type": "tool_call", "name": "f", "arguments": {}} for _ in range(2)]
    results = [{"type": "tool_call_response", "name": "f", "response": "x"} for _ in range(2)]
    sent = codec(fmt).encode("assistant", calls) + codec(fmt).encode("tool", results)
    parts = [part for native in sent for part in codec(fmt).decode(native).parts]
    assert [call.id for call in calls_of(parts)] == ["call_0", "call_1"]
    assert [result.id for result in results_of(parts)] == ["call_0", "call_1"]


@pytest.mark.parametrize(("fmt", "name"), ALL)
def test_otel_carries_every_message_of_every_format(fmt: str, name: str) -> None:
    decoded = codec(fmt).decode(SHAPES[fmt][name])
    if decoded.role == "mark" or not decoded.parts:
        return
    (carried,) = codec("otel").encode(*decoded)
    back = codec("otel").decode(json.loads(json.dumps(carried)))
    assert codec(fmt).encode(*back) == codec(fmt).encode(*decoded)
