"""Whatever a file of JSON documents is like: it imports, or it is an error that says why."""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from chats import FILES, FIXTURES, bytes_of, chats, fixture
from hypothesis import given, settings
from hypothesis import strategies as st

from sessiontree.core import rules
from sessiontree.errors import FormatError
from sessiontree.formats import codec, jsonvalues, transcripts
from sessiontree.formats.document import Place, moment, newest_leaf, outline
from sessiontree.formats.jsonvalues import values
from sessiontree.formats.transcript import Notes, Source, Tells

FORMATS = sorted(FILES)
NODES = [name for name in FORMATS if name not in rules.PROVIDERS]
"""The formats that have a codec of their own for their nodes."""


def read(content: object) -> tuple[list[Any], list[str]]:
    """The values of a file, and what is told of it."""
    skipped = Notes()
    source = Source(io.BytesIO(bytes_of(content)), "x.json")
    return [value for value, _ in values(source, skipped)], list(map(str, skipped))


# --- values -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("[1, 2]", [1, 2]),
        ('{"a": 1}', [{"a": 1}]),
        ('{"a": 1}\n{"b": 2}\n', [{"a": 1}, {"b": 2}]),
        ('{"a": 1}\r\n\r\n{"b": 2}', [{"a": 1}, {"b": 2}]),
        ('\ufeff[{"a": "é"}]', [{"a": "é"}]),
        ("[]", []),
        ("", []),
        (" \n ", []),
        ('[{"a": "\\ud800"}]', [{"a": "\ud800"}]),
    ],
)
def test_a_file_is_a_list_or_one_value_after_the_other(content: str, expected: list[Any]):
    assert read(content) == (expected, [])


@pytest.mark.parametrize("piece", [1, 2, 3, 7])
def test_a_file_is_the_same_in_pieces_of_any_size(monkeypatch: pytest.MonkeyPatch, piece: int):
    monkeypatch.setattr(jsonvalues, "PIECE", piece)
    expected = [{"text": 'é "quoted" \\ 🙂', "n": [-1.5e10, True, None]}, {}, {"b": {"c": []}}]
    assert read(json.dumps(expected, ensure_ascii=False)) == (expected, [])
    assert read("\n".join(map(json.dumps, expected))) == (expected, [])


def test_a_damaged_line_is_told_and_the_next_is_read():
    found, told = read('{"a": 1}\n{"b": \n{"c": 3}\n\0\0\n{"d": 4}')
    assert found == [{"a": 1}, {"c": 3}, {"d": 4}]
    assert [one.split(":")[0] for one in told] == ["line 2", "line 4"]


def test_a_list_that_is_cut_off_gives_what_is_whole():
    found, told = read('[{"a": 1}, {"b": [1, 2')
    assert found == [{"a": 1}]
    assert told == ["line 2: it stops being JSON at character 23: Expecting ',' delimiter"]


def test_a_value_that_is_not_utf8_is_told_and_the_others_are_read():
    found, told = read(b'[{"a": "\xff\xfe"}, {"b": 2}]')
    assert found == [{"b": 2}]
    assert "it is not UTF-8" in told[0]


def test_a_value_of_more_than_the_limit_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(jsonvalues, "MAX_VALUE", 1 << 20)
    found, told = read('[{"a": "' + "x" * (5 << 20))
    assert (found, told) == ([], ["line 1: one value in it is longer than 1 MiB"])


@pytest.mark.parametrize(
    "content", ["[" * 100_000, '{"a":' * 100_000, "[" * 300_000 + "]" * 300_000]
)
def test_deep_nesting_is_an_error_or_a_value_and_never_a_crash(content: str):
    found, told = read(content)
    assert (found, len(told)) == ([], 1)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(
    value=st.lists(json_values, max_size=3) | st.dictionaries(st.text(), json_values, max_size=3)
)
def test_what_is_read_without_recursion_is_the_same(value: Any):
    text = json.dumps(value)
    assert jsonvalues._decoded_deep(text + " 1", 0) == (json.loads(text), len(text))
    with pytest.raises(json.JSONDecodeError):
        jsonvalues._decoded_deep(text[:-1], 0)


# --- telling formats --------------------------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
def test_each_format_is_told_from_its_file(format: str):
    raw = (FIXTURES / FILES[format]).read_bytes()
    assert transcripts.detect(raw[: 64 << 10], FILES[format]) == format
    if FILES[format].endswith(".json"):
        minified = json.dumps(json.loads(raw)).encode()
        assert transcripts.detect(minified, FILES[format]) == format


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b"hello", b"\x00" * 100, b'{"a": 1}', b"PK\x03\x04"]
)
def test_what_is_of_no_format_is_an_error(content: bytes):
    with pytest.raises(FormatError):
        transcripts.detect(content, "x")


def test_the_outline_of_a_file_is_its_keys():
    text = '[{"a": {"b": [{"c": "x: \\"y\\": {"}]}}, {"d": 1}]'
    assert outline(text) == {"a", "a.b", "a.b[].c", "d"}
    assert outline("]]}}{{,:") == frozenset()


# --- what conversations share -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        (1750000000.25, 1_750_000_000_250_000),
        (1750000000250, 1_750_000_000_250_000),
        (1750000000250000, 1_750_000_000_250_000),
        ("2025-06-15T15:06:40.25Z", 1_750_000_000_250_000),
        (0, None),
        (True, None),
        (float("inf"), None),
        (float("nan"), None),
        (10**30, None),
        ("soon", None),
        ([], None),
    ],
)
def test_times_are_read_by_their_size(time: object, expected: int | None):
    assert moment(time) == expected


def test_the_newest_leaf_takes_the_time_of_its_parent_where_it_has_none():
    places = [
        Place("a", created_at=5),
        Place("b", "a", created_at=9),
        Place("c", "b"),
        Place("d", "a", created_at=8),
    ]
    assert newest_leaf(places) == "c"
    assert newest_leaf([Place("a", tells=Tells(skip="empty"))]) is None


def test_a_node_that_json_cannot_hold_again_is_told():
    found, _ = chats(
        '[{"uuid": "c", "chat_messages": [{"uuid": "a", "sender": "human", "text": "Hi"},'
        ' {"uuid": "b", "sender": "human", "text": NaN}]}]',
        "claude_ai",
    )
    assert found[0].paths == ["a"]
    assert "JSON cannot hold" in found[0].skips[0]


@pytest.mark.parametrize("format", NODES)
def test_codecs_of_nodes_write_what_they_read_and_no_marks(format: str):
    for role in ("user", "assistant", "system"):
        (native,) = codec(format).encode(role, [{"type": "text", "content": "Hi"}])
        json.dumps(native)
        assert codec(format).decode(native).parts[0]["content"] == "Hi"
    assert codec(format).encode("mark", [{"type": "text", "content": "Hi"}]) == []
    assert codec(format).encode("user", []) == []


# --- damage -----------------------------------------------------------------------------------

KEYS = [
    *("id", "parent", "message", "children", "content", "parts", "role", "author", "mapping"),
    *("uuid", "sender", "text", "type", "chat_messages", "history", "messages", "currentId"),
    *("parentId", "messageId", "mes", "swipes", "replies", "rank", "from", "value", "system"),
    *("tool_call", "output", "metadata", "conversations", "files", "url", "extra", "prompt"),
]
odd = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from(KEYS),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in items:
        yield from places(inner, (*path, key))


def loaded(format: str) -> Any:
    text = (FIXTURES / FILES[format]).read_text()
    return (
        [json.loads(line) for line in text.splitlines()]
        if FILES[format].endswith("l")
        else json.loads(text)
    )


def dumped(value: Any, format: str) -> str:
    return "\n".join(map(json.dumps, value)) if FILES[format].endswith("l") else json.dumps(value)


@pytest.mark.parametrize("format", FORMATS)
@given(data=st.data())
@settings(max_examples=60)
def test_wrong_values_anywhere_are_kept_or_told(format: str, data: st.DataObject):
    changed = copy.deepcopy(loaded(format))
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from([path for path in places(changed) if path]))
        around = changed
        for key in path[:-1]:
            around = around[key]
        around[path[-1]] = data.draw(odd)
    chats(dumped(changed, format), format)


@pytest.mark.parametrize("format", FORMATS)
@given(
    flips=st.lists(st.tuples(st.integers(0), st.integers(0, 255)), max_size=6), cut=st.integers(0)
)
@settings(max_examples=40)
def test_flipped_bytes_and_cuts_are_a_repair_a_skip_or_an_error(
    format: str, flips: list[tuple[int, int]], cut: int
):
    raw = bytearray((FIXTURES / FILES[format]).read_bytes())
    for at, value in flips:
        raw[at % len(raw)] = value
    chats(bytes(raw[: cut % (4 * len(raw))]), format)
    with suppress(FormatError):
        transcripts.detect(bytes(raw), "x")


NOTHING = b" \r\n\t,[]\xef\xbb\xbf"
"""Bytes of which a file without a value may be made."""
AN_EMPTY_LIST = b'"conversations": []'


@pytest.mark.parametrize("format", FORMATS)
@given(raw=st.binary(max_size=100), value=odd)
@settings(max_examples=40)
def test_what_is_no_export_at_all_gives_no_conversation(format: str, raw: bytes, value: Any):
    for content in (raw, json.dumps(value).encode()):
        found, told = chats(content, format)
        assert found or told or not content.strip(NOTHING) or AN_EMPTY_LIST in content


@pytest.mark.parametrize("format", FORMATS)
def test_the_same_file_gives_the_same_keys_each_time(format: str):
    first, second = fixture(format)[0], fixture(format)[0]
    for one, other in zip(first, second, strict=True):
        keys = [entry.key for entry in one.skeleton.entries]
        assert keys == [entry.key for entry in other.skeleton.entries]
        assert len(set(keys)) == len(keys)
        assert one.document.opening == other.document.opening
