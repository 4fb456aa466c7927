"""Results that are made here, for calls of any format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from sessiontree import formats
from sessiontree.core.message import META, NewMessage, Part, results_of
from sessiontree.core.pairing import OpenCall, pair, take
from sessiontree.errors import TreeError, shown


class Answer(NamedTuple):
    """The result of one open call."""

    opened: OpenCall
    response: Any
    is_error: bool = False


def results(
    step: Sequence[NewMessage], answers: Sequence[Answer], note: Mapping[str, Any] | None = None
) -> list[NewMessage]:
    """Results for open calls of ``step``, each in the format of its call; ``note`` is ours,
    for their meta. TreeError where a result could not be told from that of another call."""
    by_format: dict[str, list[Part]] = {}
    waiting = pair(step).open
    for answer in answers:
        name = step[answer.opened.at].format
        part = _part(answer, name)
        _require_its_own(answer.opened, part, waiting)
        by_format.setdefault(name, []).append(part)
    meta = None if note is None else {META: dict(note)}
    return [
        formats.read(native, format=name, meta=meta)
        for name, parts in by_format.items()
        for native in formats.codec(name).encode("tool", parts)
    ]


def _part(answer: Answer, format: str) -> Part:
    call = answer.opened.call
    part: Part = {
        "type": "tool_call_response",
        "id": call.id if call.given or not _takes_no_id(format) else None,
        "name": call.name,
        "response": answer.response,
    }
    return part | ({"is_error": True} if answer.is_error else {})


def _require_its_own(opened: OpenCall, part: Part, waiting: list[OpenCall]) -> None:
    """A result without id belongs to the oldest call of its name, whatever we mean by it."""
    (result,) = results_of([part])
    took = take(waiting, result)
    if not result.given and took != opened:
        raise TreeError(
            f"a call of {shown(opened.call.name)} bears no id, and an older one of that name "
            "has no result yet",
            hint="answer them in the order in which they were made",
        )


@cache
def _takes_no_id(format: str) -> bool:
    """Whether a result may be without an id in this format. Elsewhere it bears the one that
    was made for its call: its codec would make one from another position."""
    codec = formats.codec(format)
    bare: Part = {"type": "tool_call_response", "id": None, "name": "f", "response": "x"}
    (native,) = codec.encode("tool", [bare])
    return not results_of(codec.decode(native).parts)[0].given
