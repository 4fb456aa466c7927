"""What people hand to the handles, looked at before anything is done.

Without this SQLite would take ``True`` and ``"1"`` for message 1, and a lone surrogate or an
id of 70 bits would come back as an error of Python's own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeGuard, cast

from sessiontree import formats
from sessiontree.core import jsontext
from sessiontree.core.records import Graft
from sessiontree.errors import BadArgument, ConversationNotFound, MessageNotFound, shown

LARGEST = (1 << 63) - 1
"""The largest integer that a database holds."""


def string(value: object, what: str) -> str:
    """Any string; it goes into JSON."""
    if not isinstance(value, str):
        raise BadArgument(f"{what} is {_kind(value)}", hint="give a string")
    return value


def text(value: object, what: str, *, may_be_empty: bool = True) -> str:
    """A string that every database can hold."""
    given = string(value, what)
    if not given and not may_be_empty:
        raise BadArgument(f"{what} is empty", hint="give it at least one character")
    if "\0" in given:
        raise BadArgument(f"{what} has a NUL in it", hint="take it out")
    try:
        given.encode("utf-8")
    except UnicodeEncodeError:
        raise BadArgument(f"{what} has a lone surrogate in it", hint="take it out") from None
    return given


def text_or_none(value: object, what: str, *, may_be_empty: bool = True) -> str | None:
    return None if value is None else text(value, what, may_be_empty=may_be_empty)


def json_object(value: object, what: str) -> Mapping[str, Any] | None:
    """A mapping that JSON gives back, or None. FormatError names the place where it would not."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise BadArgument(f"{what} is {_kind(value)}", hint="give a mapping")
    jsontext.dump(cast("Mapping[str, Any]", value), what)
    return cast("Mapping[str, Any]", value)


def count(value: object, what: str) -> int | None:
    """How many, from 0; or None."""
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadArgument(f"{what} is {_kind(value)}", hint="give an integer")
    if value < 0:
        raise BadArgument(f"{what} is less than 0", hint="give 0 or more, or None for all")
    return min(value, LARGEST)


def format_name(value: object) -> None:
    """FormatError, naming those that there are, where no format has this name."""
    if value is not None:
        formats.codec(cast(str, value))


def key(value: object) -> str | None:
    """The caller's id of a message, or None."""
    return text_or_none(value, "a key", may_be_empty=False)


def keys(value: object) -> list[str | None]:
    """The keys of several messages."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise BadArgument(f"keys is {_kind(value)}", hint="give a list of strings")
    return [key(each) for each in cast("Iterable[object]", value)]


def message_id(value: object, conversation: int) -> int:
    """An id that can be looked up; MessageNotFound for what is no id at all."""
    if _is_id(value):
        return value
    raise MessageNotFound(value, conversation, hint="the id of a message is an integer")


def place(value: object, conversation: int) -> int | None:
    """As ``message_id``; or None, the place before every root."""
    return None if value is None else message_id(value, conversation)


def conversation_id(value: object) -> int:
    """An id that can be looked up; ConversationNotFound for what is no id at all."""
    if _is_id(value):
        return value
    hint = "the id of a conversation is an integer; conversation() finds one by its topic"
    raise ConversationNotFound(value, hint=hint)


def grafts(batch: Sequence[Graft]) -> list[Graft]:
    """A bulk write whose items hang on saved messages or on items before them."""
    for i, item in enumerate(batch):
        for other in (item.parent, item.ref):
            if other is not None and not (_is_id(other) and other >= -i):
                raise BadArgument(
                    f"item {i} speaks of {shown(other)}",
                    hint="give the id of a saved message, or -1 - j for an earlier item j",
                )
    return list(batch)


def path(value: object) -> str:
    """A file's name as a string; any that the system itself would give is taken."""
    given = value
    if isinstance(value, os.PathLike):
        given = os.fspath(cast("os.PathLike[str]", value))
    if not isinstance(given, str):
        raise BadArgument(f"the store is named by {_kind(given)}", hint="give a path")
    if not given or "\0" in given:
        raise BadArgument(f"the store is named by {shown(given)}", hint="give a path")
    try:
        os.fsencode(given)
    except UnicodeEncodeError:
        raise BadArgument(f"no file has the name {shown(given)}", hint="give a path") from None
    return given


def seconds(value: object, what: str) -> float:
    """A time to wait, from 0; what is longer than three weeks is three weeks."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise BadArgument(f"{what} is {_kind(value)}", hint="give a number of seconds")
    if not value >= 0:  # NaN neither
        raise BadArgument(f"{what} is {value}", hint="give 0 or more seconds")
    return float(min(value, 2_000_000))


def _is_id(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST


def _kind(value: Any) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"
