"""Keys of requests, answers as bytes, and which requests are better not cached."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessiontree.core.caching import Packed, key_of, pack, refusal, unpack
from sessiontree.errors import FormatError

TEXT = st.text(st.characters(exclude_categories=()))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)
REQUESTS = st.dictionaries(st.text(max_size=8), JSON, max_size=5)


def shuffled(value: Any) -> Any:
    """The same with every object's keys the other way round."""
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in reversed(value)}
    return [shuffled(each) for each in value] if isinstance(value, list) else value


@given(REQUESTS)
def test_a_key_does_not_depend_on_the_order_of_keys_at_any_level(request: dict[str, Any]) -> None:
    assert key_of(shuffled(request)) == key_of(request)


@given(REQUESTS, JSON)
def test_a_change_anywhere_is_another_key(request: dict[str, Any], value: Any) -> None:
    variants = ([], [value], [[value]], [value, value], {"value": value}, repr(value) + ".")
    keys = {key_of(request | {"more": each}) for each in variants}
    assert len(keys) == len(variants)
    assert key_of({"in": request}) not in keys


def test_the_order_of_a_list_does_count() -> None:
    assert key_of({"messages": [1, 2]}) != key_of({"messages": [2, 1]})


def test_a_key_is_the_same_in_every_process() -> None:
    code = (
        "from sessiontree.core.caching import key_of;"
        "print(key_of({'b': {'y': 1.5, 'x': 'é\\ud800'}, 'a': [None, True, 10**30]}, 'camille'))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2", "random")
    }
    here = key_of({"a": [None, True, 10**30], "b": {"x": "é\ud800", "y": 1.5}}, "camille")
    assert found == {here}
    # What an older version kept is found by a newer one.
    assert here == "4a31952f5312fe706313b77c8b578e88200d218456e0fd10044b965e7493f471"


def test_scopes_have_keys_of_their_own_and_cannot_be_confused_with_requests() -> None:
    keys = {key_of({"a": 1}, scope) for scope in ("", "camille", 'camille"', "camille\0", "\0")}
    assert len(keys) == 5


class Sdk:
    """An object as SDKs put them into requests."""

    def model_dump(self, mode: str = "python") -> dict[str, Any]:
        return {"type": "text", "text": "hi", "mode": mode}


def test_an_sdks_object_and_a_mapping_count_for_what_is_sent() -> None:
    plain = {"content": [{"mode": "json", "text": "hi", "type": "text"}]}
    assert key_of({"content": [Sdk()]}) == key_of(plain)
    assert key_of(MappingProxyType({"content": (Sdk(),)})) == key_of(plain)


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), ..., b"x", {1, 2}, {"a": 1, 2: 3}, Sdk], ids=repr
)
def test_what_json_cannot_hold_has_no_key(value: Any) -> None:
    with pytest.raises(FormatError, match="request cannot be cached"):
        key_of({"messages": [value]})


def test_what_contains_itself_or_is_too_deep_has_no_key() -> None:
    around: dict[str, Any] = {}
    around["me"] = around
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for value in (around, {"deep": deep}):
        with pytest.raises(FormatError):
            key_of(value)


@given(st.binary() | TEXT | JSON)
def test_an_answer_comes_back_as_it_was(answer: Any) -> None:
    found = unpack(pack(answer))
    assert found == answer or repr(found) == repr(answer)
    assert type(found) is type(answer)


@pytest.mark.parametrize(
    "packed", [Packed("json", b"{"), Packed("text", b"\xff"), Packed("json", b"\xff")]
)
def test_a_damaged_answer_is_told(packed: Packed) -> None:
    with pytest.raises(FormatError, match="damaged"):
        unpack(packed)


FUNCTION = {"type": "function", "function": {"name": "send"}}
SAFE = {"name": "look", "annotations": {"readOnlyHint": True}}


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"temperature": 0},
        {"temperature": None},
        {"temperature": "hot"},
        {"generationConfig": {"temperature": 0.0}},
        {"generationConfig": None},
        {"tools": []},
        {"tools": None},
        {"tools": [SAFE]},
        {"tools": [{"type": "function", "function": SAFE}]},
        {"tools": [{"functionDeclarations": [SAFE, {"name": "read"}]}]},
        {"tools": [{"name": "read"}, {"function": {"name": "read"}}]},
    ],
)
def test_these_are_cached(request_: Mapping[str, Any]) -> None:
    assert refusal(request_, {"read"}) is None


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        ({"temperature": 0.1}, "0.1"),
        ({"temperature": 1}, "1"),
        ({"config": {"temperature": 2}}, "2"),
        ({"inferenceConfig": {"temperature": 0.5}}, "0.5"),
        ({"tools": [FUNCTION]}, "send"),
        ({"tools": [{"name": "send"}, SAFE]}, "send"),
        ({"tools": [{"type": "web_search"}]}, "web_search"),
        ({"tools": [{"google_search": {}}]}, "google_search"),
        ({"tools": [{"function_declarations": [SAFE, {"name": "send"}]}]}, "send"),
        ({"config": {"tools": [{"name": "send"}]}}, "send"),
        ({"toolConfig": {"tools": [{"toolSpec": {"name": "send"}}]}}, "send"),
        ({"functions": [{"name": "send"}]}, "send"),
        ({"tools": [len]}, "len"),
        ({"tools": [{"name": "send", "annotations": {"readOnlyHint": "yes"}}]}, "send"),
        ({"tools": ({"name": "send"},)}, "send"),
    ],
)
def test_these_are_not_cached_unless_asked(request_: Mapping[str, Any], told: str) -> None:
    why = refusal(request_, {"read"})
    assert why is not None
    assert told in why
