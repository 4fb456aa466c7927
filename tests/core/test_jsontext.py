"""JSON text: what goes in comes back, and what could not is refused before it is written."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import enum
import json
import math
import re
import types
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sessiontree.core import jsontext
from sessiontree.errors import FormatError, StoreCorrupt

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=20)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | ANY_TEXT
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=15,
)
OBJECTS = st.dictionaries(ANY_TEXT, VALUES, max_size=4)


class Colour(enum.Enum):
    """Not a string, though its value is one."""

    RED = "red"


@dataclasses.dataclass
class Point:
    """Not a mapping, though some write it as one."""

    x: int


UNSTORABLE = (
    st.binary()
    | st.sets(st.integers(), max_size=2)
    | st.just(math.nan)
    | st.sampled_from([math.inf, -math.inf])
    | st.dates()
    | st.datetimes()
    | st.times()
    | st.uuids()
    | st.sampled_from([Colour.RED, Point(1)])
    | st.complex_numbers()
    | st.decimals()
    | st.builds(object)
    | st.just(range(3))
    | st.just(iter(()))
    | st.dictionaries(st.integers() | st.none() | st.booleans(), st.none(), min_size=1, max_size=2)
)


def nested(depth: int) -> dict[str, Any]:
    """An object of ``depth`` levels, itself included."""
    value: Any = []
    for _ in range(depth - 2):
        value = [value]
    return {"a": value}


# ---- mappings ----------------------------------------------------------------------


@given(OBJECTS)
def test_a_mapping_reads_back_as_the_value_that_was_given(value: dict[str, Any]) -> None:
    if re.search("[\ud800-\udbff][\udc00-\udfff]", json.dumps(value, ensure_ascii=False)):
        with pytest.raises(FormatError, match="two surrogates"):
            jsontext.dump(value)
        return
    text = jsontext.dump(value)
    text.encode("utf-8")
    back = json.loads(text)
    assert back == value
    assert repr(back) == repr(value)  # -0.0, True for 1, and the order of keys


@given(VALUES, UNSTORABLE, st.booleans(), st.booleans())
def test_what_json_cannot_hold_is_refused_wherever_it_stands(
    beside: Any, culprit: Any, in_list: bool, is_long: bool
) -> None:
    beside = ["x" * 5_000, beside] if is_long else beside
    inner = [beside, culprit] if in_list else {"x": beside, "culprit": culprit}
    with pytest.raises(FormatError, match="cannot be stored"):
        jsontext.dump({"role": "user", "content": inner})


def test_the_refusal_names_the_place() -> None:
    with pytest.raises(FormatError, match=r"content\[1\]\.source is a bytes"):
        jsontext.dump({"content": [{"a": 1}, {"source": b"x"}]})
    with pytest.raises(FormatError, match="usage is nan"):
        jsontext.dump({"usage": math.nan})
    with pytest.raises(FormatError, match="it has a key that is not a string"):
        jsontext.dump({1: 2})  # type: ignore[dict-item]


def test_other_mappings_than_dict_are_written_as_objects() -> None:
    inner = types.MappingProxyType({"b": 1})
    outer = collections.ChainMap({"role": "user"}, {"content": inner})
    assert json.loads(jsontext.dump(outer)) == {"content": {"b": 1}, "role": "user"}
    assert json.loads(jsontext.dump(types.MappingProxyType({"a": inner}))) == {"a": {"b": 1}}
    assert jsontext.dump(collections.UserDict(a=(1, 2))) == '{"a":[1,2]}'


def test_enums_of_strings_and_numbers_are_their_values() -> None:
    class Role(enum.StrEnum):
        USER = "user"

    class Level(enum.IntEnum):
        HIGH = 3

    assert json.loads(jsontext.dump({"role": Role.USER, "n": Level.HIGH})) == {
        "role": "user",
        "n": 3,
    }


def test_integers_beyond_64_bits_and_lone_surrogates_come_back() -> None:
    value = {"n": 2**64, "m": -(2**200), "s": "a\ud800b", "t": "\udfff", "k\udc00": "\x00"}
    assert json.loads(jsontext.dump(value)) == value


@pytest.mark.parametrize("value", [{"s": "\ud83d\ude00"}, {"\ud83d\ude00": 1}])
def test_a_character_in_two_surrogates_is_refused_as_json_would_join_it(value: Any) -> None:
    with pytest.raises(FormatError, match="two surrogates"):
        jsontext.dump(value)


def test_an_integer_of_more_digits_than_python_prints_is_refused() -> None:
    with pytest.raises(FormatError, match="cannot be written"):
        jsontext.dump({"n": 10**5_000})
    with pytest.raises(FormatError, match="cannot be read"):
        jsontext.load('{"n": 1' + "0" * 5_000 + "}")


def test_nesting_is_stored_up_to_the_limit_and_refused_beyond() -> None:
    deepest = nested(jsontext.MAX_NESTING)
    text = jsontext.dump(deepest)
    assert json.loads(text) == deepest
    assert jsontext.check(text) == (text, deepest)
    with pytest.raises(FormatError, match="nested deeper than 500"):
        jsontext.dump(nested(jsontext.MAX_NESTING + 2))
    with pytest.raises(FormatError, match="nested deeper than 500"):
        jsontext.check(json.dumps(nested(jsontext.MAX_NESTING + 1)))


def test_what_contains_itself_is_refused_at_once() -> None:
    once: list[Any] = []
    once.append(once)
    many: list[Any] = []
    many.extend([many] * 10)  # would be 10**500 values to look at
    mapping: dict[str, Any] = {"b": {1, 2}}
    mapping["a"] = mapping
    for value in ({"a": once}, {"a": many}):
        with pytest.raises(FormatError, match="contains itself"):
            jsontext.dump(value)
    with pytest.raises(FormatError, match="b is a set"):
        jsontext.dump(mapping)


def test_tuples_are_as_deep_as_lists_and_what_contains_itself_through_one_is_refused() -> None:
    """The fast encoder does not count their levels: it would end the process."""
    deep: Any = ()
    for _ in range(1_200):
        deep = (deep,)
    itself: list[Any] = []
    itself.append((itself, itself))
    for value in ({"a": deep}, {"a": itself}, {"a": {"b": [deep]}}):
        with pytest.raises(FormatError, match="nested deeper than 500"):
            jsontext.dump(value)


def test_what_says_that_it_is_equal_to_everything_is_looked_into_all_the_same() -> None:
    class Agreeable(list[Any]):
        __hash__ = None  # type: ignore[assignment]

        def __eq__(self, other: object) -> bool:
            return True

    with pytest.raises(FormatError, match=r"a\[0\] is nan"):
        jsontext.dump({"a": Agreeable([math.nan])})


def test_a_deep_stack_is_no_reason_for_another_error() -> None:
    def at_depth(frames: int) -> str:
        return at_depth(frames - 1) if frames else jsontext.dump(nested(400))

    seen = set()
    for frames in range(0, 900, 20):
        try:
            seen.add(at_depth(frames))
        except FormatError:
            seen.add("refused")
        except RecursionError:  # the stack itself, before our code ran
            break
    assert len(seen - {"refused"}) == 1


# ---- text --------------------------------------------------------------------------


@given(OBJECTS, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_json_text_is_kept_to_the_byte(value: Any, indent: Any, ascii: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii)
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError:
        with pytest.raises(FormatError, match="lone surrogate outside an escape"):
            jsontext.check(text)
        return
    kept, native = jsontext.check(data)
    assert kept.encode("utf-8") == data
    assert repr(native) == repr(json.loads(text))
    assert jsontext.check(text) == jsontext.check(bytearray(data)) == (kept, native)


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":2,"b":{"x":1,"x":[]}}',
        '{"a": 1e400, "b": -1E+999, "c": 1.0000000000000000000001}',
        '{"a":"\\u0000","b":"\\ud800","c":"\\ud83d\\ude00"}',
        '  {\r\n"z" : 18446744073709551616 ,"a":-0 , "b": -0.0}\n\n',
        '{"":"","\\/":"\\u00e9é😀\u202eעברית"}',
    ],
)
def test_what_only_text_can_say_is_kept(text: str) -> None:
    assert jsontext.check(text) == (text, json.loads(text))
    assert jsontext.check(text.encode()) == (text, json.loads(text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("hello", "not JSON"),
        ("[1]", "a list, not a JSON object"),
        ("null", "null, not a JSON object"),
        ('"x"', "a string, not a JSON object"),
        ("1", "a number, not a JSON object"),
        ('{"a":NaN}', "NaN is not JSON"),
        ('{"a":-Infinity}', "-Infinity is not JSON"),
        ('{"a":1}{"b":2}', "Extra data at column 8"),
        ('{"a":\n "b\n"}', "line 2 column"),
        ('{"a":"b', "not JSON: Unterminated string starting at column 6"),
        ("{'a':1}", "not JSON"),
        ("\ufeff{}", "not JSON"),
        (b"\xff{}", "not UTF-8"),
        (b'{"a":"\xed\xa0\x80"}', "not UTF-8"),
        (b'{"a":"\xc3"}', "not UTF-8"),
        ('{"a":"\ud800"}', "lone surrogate"),
        ("[" * 100_000, "nested deeper"),
        ('{"a":' * 5_000 + "1" + "}" * 5_000, "nested deeper"),
    ],
)
def test_text_that_is_no_json_object_is_refused(text: str | bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        jsontext.check(text)


@given(st.text(max_size=30) | st.binary(max_size=30) | ANY_TEXT)
@example("[[[[")
@example('{"a":1,}')
@example(b"\x00")
def test_no_text_brings_out_another_error(text: str | bytes) -> None:
    try:
        kept, native = jsontext.check(text)
    except FormatError:
        return
    assert json.loads(kept) == native


def test_a_long_line_that_was_cut_off_is_refused_without_a_search_for_its_end() -> None:
    """Each of its quotes could begin a string that never ends: 10**5 times 10**5 steps."""
    line = json.dumps({"b": [[]] * 600, "a": '"x' * 400_000})[:-2]
    with pytest.raises(FormatError, match="not JSON"):
        jsontext.check(line)


def test_brackets_inside_strings_do_not_count_as_nesting() -> None:
    value = {"a": "[{" * 2_000_000 + '\\"[' * 10_000, "b": [[]] * 600}
    text = json.dumps(value)
    assert jsontext.check(text) == (text, value)


def test_a_dead_value_cannot_hide_nesting() -> None:
    deep = json.dumps(nested(600))
    with pytest.raises(FormatError, match="nested deeper"):
        jsontext.check(f'{{"a":{deep},"a":1}}')


@given(
    st.recursive(
        SCALARS | UNSTORABLE | st.just(datetime.timedelta(1)),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SCALARS, inner, max_size=3),
        max_leaves=10,
    )
)
def test_no_value_brings_out_another_error(value: Any) -> None:
    try:
        text = jsontext.dump({"value": value})
    except FormatError:
        return
    assert json.loads(text) == {"value": value}


# ---- reading back what was stored ----------------------------------------------------

NUMBERS = st.sampled_from(
    ["-0", "1e400", "-1E2", "1.0", "NaN", "-Infinity", "0e0", "18446744073709551615"]
) | st.integers(-(10**40), 10**40).map(str)


@given(OBJECTS, st.booleans())
def test_stored_text_is_read_as_the_standard_library_reads_it(
    value: dict[str, Any], is_ascii: bool
) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii)
    assert same(jsontext.stored(text, "it"), json.loads(text))


@given(st.lists(NUMBERS, max_size=4), st.integers(0, 3))
@example(["18446744073709551616"], 2)
@example(["-9223372036854775809"], 0)
def test_numbers_of_any_size_are_read_as_they_were_written(said: list[str], depth: int) -> None:
    text = '{"a": ' + "[" * depth + f"[{','.join(said)}]" + "]" * depth + ', "b": "é", "b": 1}'
    assert same(jsontext.stored(text, "it"), json.loads(text))


@given(ANY_TEXT | st.sampled_from(["", "[1]", '"a"', "{}x", "\ufeff{}", " {} ", "{", "null"]))
def test_what_is_no_object_any_more_is_said_to_be_damaged(text: str) -> None:
    try:
        expected = json.loads(text)
    except ValueError:
        expected = None
    if isinstance(expected, dict):
        assert jsontext.stored(text, "it") == expected
    else:
        with pytest.raises(StoreCorrupt, match="it is not what was saved"):
            jsontext.stored(text, "it")


def same(one: object, other: object) -> bool:
    """Equal in the types too: 1, 1.0 and True are not the same."""
    return repr(one) == repr(other)


@pytest.mark.parametrize(
    "text", ['{"a": [1.0, "é"]}', '{"a": "é"}', '{"a": [123456789012345678901]}']
)
def test_text_that_lies_as_bytes_in_a_damaged_file_is_read_all_the_same(text: str) -> None:
    assert same(jsontext.stored(text.encode(), "it"), json.loads(text))  # type: ignore[arg-type]
