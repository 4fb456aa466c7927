"""JSON text that comes back as it was given.

A message may be given as a mapping or as JSON text. Text is kept to the byte. A mapping
is written once, and only when reading it back gives an equal value: what JSON cannot
hold (bytes, a date, a key that is no string, NaN) is refused here, before anything is
written, with the place where it stands.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, NoReturn, cast

import orjson

from sessiontree.errors import FormatError, StoreCorrupt

MAX_NESTING = 500
"""Deepest nesting that is stored. Readers in other languages, and Python's own, stop
soon after: beyond this a message could be written that cannot be read."""

_SHALLOW = 8
"""Levels below which a message hardly ever has any."""

_MANY = 1_000
"""Values on one level from which on each of them is looked at once only."""

_PUNCTUATION = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}]', re.DOTALL)
"""Possessive: a string of any length is passed over without memory of the way."""

_SPLIT_CHARACTER = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def dump(value: Mapping[str, Any], what: str = "message") -> str:
    """``value`` as JSON text; FormatError where JSON could not give it back."""
    try:
        if _is_plain(value):
            return orjson.dumps(value).decode()
    except TypeError:
        pass
    return _dump_with_care(value, what)


def _is_plain(value: Any, levels: int = _SHALLOW) -> bool:
    """Whether it is of those types alone that JSON gives back as they are, on a few levels; what
    else there could be of these (keys that are no strings, large integers, half a character) the
    fast encoder refuses. Of tuples it does not count the levels: what contains itself through one,
    or is very deep, would end the process."""
    kind = type(value)  # pyright: ignore[reportUnknownVariableType]
    if kind is not dict and kind is not list:
        return False
    inside: Collection[Any] = value.values() if kind is dict else value
    if _SCALARS.issuperset(map(type, inside)):
        return True
    if not levels or len(inside) > _MANY:
        return False
    for each in inside:
        if type(each) not in _SCALARS and not _is_plain(each, levels - 1):
            return False
    return True


def _dump_with_care(value: Mapping[str, Any], what: str) -> str:
    """What is long; what the fast encoder does not know, or would change."""
    _refuse_what_json_changes(value, what)
    try:
        return orjson.dumps(value, default=dict).decode()
    except TypeError:
        return _dump_at_length(value, what)


def _dump_at_length(value: Mapping[str, Any], what: str) -> str:
    """What the fast encoder will not write: integers over 64 bits, lone surrogates (as
    escapes, since UTF-8 has no place for them), more than 254 levels."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=dict)
    except (ValueError, RecursionError) as error:  # more digits than Python prints, deep stacks
        raise FormatError(f"the {what} cannot be written as JSON: {error}") from error
    if _is_encodable(text):
        return text
    if _SPLIT_CHARACTER.search(text):
        raise FormatError(
            f"the {what} has one character as two surrogates, which JSON gives back as one",
            hint='join them: text.encode("utf-16", "surrogatepass").decode("utf-16")',
        )
    return json.dumps(value, separators=(",", ":"), default=dict)


def check(text: str | bytes | bytearray, what: str = "message") -> tuple[str, dict[str, Any]]:
    """JSON text given by the caller, and the object it holds; FormatError if it is none."""
    if not isinstance(text, str):
        try:
            text = bytes(text).decode("utf-8")
        except UnicodeDecodeError as error:
            raise FormatError(f"the {what} is not UTF-8: {error}") from error
    if not _is_encodable(text):
        raise FormatError(f"the {what} has a lone surrogate outside an escape")
    value = load(text, what)
    if not isinstance(value, dict):
        raise FormatError(f"the {what} is {_kind(value)}, not a JSON object")
    return text, cast("dict[str, Any]", value)


def load(text: str, what: str = "message") -> Any:
    """The value in ``text``. FormatError names the place where it stops being JSON."""
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        hint = 'give {"role": "user", "content": "…"}' if text.lstrip()[:1] != "{" else ""
        where = f"line {error.lineno} column" if "\n" in text else "column"
        problem = error.msg.removesuffix(" at")  # Python's own words end so now and then
        raise FormatError(
            f"the {what} is not JSON: {problem} at {where} {error.colno}", hint=hint
        ) from error
    except RecursionError as error:
        raise _too_deep(what) from error
    except ValueError as error:
        raise FormatError(f"the {what} cannot be read as JSON: {error}") from error
    _refuse_deep_text(text, what)
    return value


def flat(text: str) -> dict[str, Any] | None:
    """The object in ``text``, where strings, integers and the like alone are in it: the fast
    reader gives these as the standard library does. None for all else."""
    try:
        value: Any = orjson.loads(text)
    except ValueError:
        return None
    return value if _is_flat(value) else None


def stored(text: str, where: str | Callable[[], str]) -> dict[str, Any]:
    """An object that was written by the store; StoreCorrupt when it is none any more. ``where``
    it stands is for that error, and asked for then."""
    try:
        value: Any = orjson.loads(text)
    except ValueError:
        value = None
    return value if _is_flat(value) else _stored_with_care(text, value, where)


def _stored_with_care(text: str, value: object, where: str | Callable[[], str]) -> dict[str, Any]:
    """``value`` is what the fast reader found. It refuses lone surrogates, NaN and the like, and
    makes floats of integers beyond 64 bits: those texts are read again."""
    if value is None or not _is_exact(value, text):
        try:
            value = json.loads(text)
        except (ValueError, TypeError) as error:  # the second: no text, in a damaged file
            raise _damaged(where, error) from error
    if type(value) is not dict:
        raise _damaged(where, f"it is {_kind(value)}")
    return cast("dict[str, Any]", value)


def _damaged(where: str | Callable[[], str], problem: object) -> StoreCorrupt:
    place = where() if callable(where) else where
    return StoreCorrupt(f"{place} is not what was saved: {problem}")


def _is_exact(value: object, text: str) -> bool:
    """Whether ``value`` is what the standard library would have read. The first question is
    cheap, and its answer nearly always yes."""
    try:
        if orjson.dumps(value) == text.encode():  # which wrote most of what is stored
            return True
    except (TypeError, AttributeError):  # deeper than it writes; no text, in a damaged file
        pass
    return not _may_have_rounded(value)


def _may_have_rounded(root: object) -> bool:
    """Whether a float stands in it that is as large as integers beyond 64 bits are."""
    level: list[object] = [root]
    while level:
        deeper: list[object] = []
        for value in level:
            inside = _inside(value)
            if not _SCALARS.issuperset(map(type, inside)):
                if any(type(each) is float and abs(each) >= _ROUNDED for each in inside):
                    return True
                deeper += [each for each in inside if type(each) is dict or type(each) is list]
        level = deeper
    return False


def _inside(value: object) -> Collection[object]:
    if type(value) is dict:
        return cast("dict[str, object]", value).values()
    return cast("list[object]", value) if type(value) is list else (value,)


_SCALARS: set[type[Any]] = {str, int, bool, type(None)}
_STRINGS: set[type[Any]] = {str}
_LISTS = (list, tuple)
_VALUES = (str, int, float)
_ROUNDED = 2.0**63
"""The fast reader gives integers of 64 bits, signed or not, as they are."""


def _refuse_what_json_changes(root: object, what: str) -> None:
    """Walk ``root`` without recursion; the path is only built when there is an error."""
    level: list[object] = [root]
    for _ in range(MAX_NESTING + 1):
        deeper: list[object] = []
        for value in level:
            children = _children(root, value, what)
            deeper += [child for child in children if type(child) not in _SCALARS]
        if not deeper:
            return
        level = deeper if len(deeper) < _MANY else _each_once(deeper)
    raise _too_deep(what, " or contains itself")


def _is_flat(value: Any) -> bool:
    """Whether it is an object of strings, integers and the like alone, as most messages are."""
    return type(value) is dict and _SCALARS.issuperset(map(type, value.values()))  # pyright: ignore


def _each_once(values: list[object]) -> list[object]:
    """What contains itself twice would double with every level."""
    return list({id(value): value for value in values}.values())


def _children(root: object, value: object, what: str) -> Collection[object]:
    """The values inside ``value``; FormatError where it is nothing that JSON has."""
    if type(value) is dict or isinstance(value, Mapping):  # the first is the cheaper question
        mapping = cast("Mapping[object, object]", value)
        if not _STRINGS.issuperset(map(type, mapping)):
            _refuse_other_keys(root, mapping, what)
        return mapping.values()
    if isinstance(value, _LISTS):
        return cast("list[object]", value)
    if not isinstance(value, _VALUES) or (isinstance(value, float) and not math.isfinite(value)):
        _refuse(root, value, what)
    return ()


def _refuse_other_keys(root: object, mapping: Mapping[object, object], what: str) -> None:
    if not all(isinstance(key, str) for key in mapping):
        _refuse(root, mapping, what)


def _refuse(root: object, culprit: object, what: str) -> NoReturn:
    place = _place(root, culprit)
    if isinstance(culprit, Mapping):
        problem = "has a key that is not a string"
    elif isinstance(culprit, float):
        problem = f"is {culprit}, which JSON cannot hold"
    else:
        problem = f"is {_kind(culprit)}, which JSON cannot hold"
    raise FormatError(f"the {what} cannot be stored: {place} {problem}")


def _place(root: object, culprit: object) -> str:
    """Where ``culprit`` stands in ``root``, as ``content[2].source``."""
    stack: list[tuple[object, str]] = [(root, "")]
    seen: set[int] = set()
    while stack:
        value, path = stack.pop()
        if value is culprit:
            return path or "it"
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, Mapping):
            mapping = cast("Mapping[object, object]", value)
            stack.extend((v, f"{path}.{k}" if path else str(k)) for k, v in mapping.items())
        elif isinstance(value, list | tuple):
            stack.extend((v, f"{path}[{i}]") for i, v in enumerate(cast("list[object]", value)))
    return "a value"


def _refuse_deep_text(text: str, what: str) -> None:
    """For text that is JSON: a string without an end would be looked for at every quote."""
    if text.count("[") + text.count("{") <= MAX_NESTING:
        return
    depth = 0
    for match in _PUNCTUATION.finditer(text):
        mark = match[0]
        depth += (mark in "[{") - (mark in "]}") if len(mark) == 1 else 0
        if depth > MAX_NESTING:
            raise _too_deep(what)


def _too_deep(what: str, or_else: str = "") -> FormatError:
    return FormatError(
        f"the {what} is nested deeper than {MAX_NESTING} levels{or_else}",
        hint="give deep data as a string of JSON text",
    )


def _is_encodable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _kind(value: object) -> str:
    names = {
        type(None): "null",
        list: "a list",
        str: "a string",
        bool: "true or false",
        int: "a number",
        float: "a number",
    }
    return names.get(cast("type[Any]", type(value)), f"a {type(value).__name__}")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)
"""One for all: json.loads makes a new one at every call that has an option."""
