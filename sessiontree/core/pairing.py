"""Calls and results: which result answers which call, and what is left open.

One table says what a call or a result does, by where the call with its id stands:

    ==========  =================  ====================
    event       its call is        what it is
    ==========  =================  ====================
    call        (anywhere)         opens
    result      open               answers
    result      answered           ``result_given_twice``
    result      ahead              ``result_before_call``
    result      nowhere            ``orphan_result``
    ==========  =================  ====================

A result answers the *newest* open call with its id, because providers use an id again in
a later turn (``call_0``); a call that was given the id comes before one whose id was made
from its position. A result that bears no id answers the oldest open call of its name, else
the oldest open call that bears no id either. Anything may stand between a call and its
result. What is still open at the end is an ``unanswered_call``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from sessiontree.core.message import NewMessage, ToolCall, ToolResult
from sessiontree.errors import OrphanToolResult, UnsettledTurn

Where = Literal["open", "answered", "ahead", "nowhere"]
Fault = Literal["result_given_twice", "result_before_call", "orphan_result", "unanswered_call"]

RESULT_RULES: dict[Where, Fault | None] = {
    "open": None,
    "answered": "result_given_twice",
    "ahead": "result_before_call",
    "nowhere": "orphan_result",
}

WHY: dict[Fault, str] = {
    "result_given_twice": "its call was answered before",
    "result_before_call": "its call comes after it",
    "orphan_result": "no call before it has this id",
    "unanswered_call": "no result answers it",
}


class Paired(Protocol):
    """What pairing needs of a message."""

    @property
    def calls(self) -> tuple[ToolCall, ...]: ...
    @property
    def results(self) -> tuple[ToolResult, ...]: ...


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call that waits for its result. ``at`` is the index of its message."""

    at: int
    call: ToolCall


@dataclass(frozen=True, slots=True)
class Violation:
    """One fault: what, in which message (an index), about which call id."""

    kind: Fault
    at: int
    call_id: str

    @property
    def why(self) -> str:
        return WHY[self.kind]


@dataclass(slots=True)
class Pairing:
    """What pairing finds in a sequence.

    ``open_counts[i]`` is the number of calls open after message i. ``answers`` are the
    pairs (index of the result's message, index of its call's message, call).
    """

    open_counts: list[int] = field(default_factory=list[int])
    answers: list[tuple[int, int, ToolCall]] = field(
        default_factory=list[tuple[int, int, ToolCall]]
    )
    violations: list[Violation] = field(default_factory=list[Violation])
    open: list[OpenCall] = field(default_factory=list[OpenCall])

    @property
    def boundaries(self) -> list[int]:
        """Indexes of the messages after which nothing is open."""
        return [i for i, count in enumerate(self.open_counts) if count == 0]


def take(waiting: list[OpenCall], result: ToolResult) -> OpenCall | None:
    """Remove from ``waiting`` the call that ``result`` answers, and return it."""
    found = _find(waiting, result)
    if found is None:
        return None
    return waiting.pop(found)


def pair(messages: Sequence[Paired], waiting: Iterable[OpenCall] = ()) -> Pairing:
    """Pair a sequence, oldest first. ``waiting`` are calls open before it."""
    pairing = Pairing(open=list(waiting))
    answered: set[str] = set()
    last_call: dict[str, int] | None = None
    for at, message in enumerate(messages):
        pairing.open.extend(OpenCall(at, call) for call in message.calls)
        for result in message.results:
            opened = take(pairing.open, result)
            if opened is not None:
                answered.add(opened.call.id)
                pairing.answers.append((at, opened.at, opened.call))
                continue
            if last_call is None:
                last_call = _last_calls(messages)
            fault = RESULT_RULES[_where(at, result, answered, last_call)]
            assert fault is not None
            pairing.violations.append(Violation(fault, at, result.id))
        pairing.open_counts.append(len(pairing.open))
    pairing.violations.extend(
        Violation("unanswered_call", opened.at, opened.call.id) for opened in pairing.open
    )
    return pairing


def settle(batch: Sequence[NewMessage]) -> None:
    """Count the open calls of messages that begin and must end at a boundary.

    OrphanToolResult, UnsettledTurn.
    """
    if _settles_by_ids(batch):
        return
    pairing = pair(batch)
    refuse_orphans(pairing)
    if pairing.open:
        raise UnsettledTurn(
            [opened.call for opened in pairing.open],
            hint="append the results with the calls; turn() keeps calls until they are answered",
        )
    for message, count in zip(batch, pairing.open_counts, strict=True):
        message.open_calls = count


def _settles_by_ids(batch: Sequence[NewMessage]) -> bool:
    """Settle what nearly every step is: each id is called once and answered once, after it.
    False for anything else, which ``pair`` looks at: it costs several times more."""
    waiting: set[str] = set()
    for message in batch:
        for call in message.calls:
            if not call.given or call.id in waiting:
                return False
            waiting.add(call.id)
        for result in message.results:
            if not result.given or result.id not in waiting:
                return False
            waiting.remove(result.id)
        message.open_calls = len(waiting)
    return not waiting


def refuse_orphans(pairing: Pairing) -> None:
    """OrphanToolResult for the first result that answers no open call."""
    for violation in pairing.violations:
        if violation.kind != "unanswered_call":
            raise OrphanToolResult(violation.call_id, reason=violation.why)


def _find(waiting: list[OpenCall], result: ToolResult) -> int | None:
    if result.given:
        found = _newest(waiting, result.id)
        return _oldest(waiting, result, lambda call: not call.given) if found is None else found
    by_name = _oldest(waiting, result, lambda call: True) if result.name else None
    if by_name is not None:
        return by_name
    nameless = ToolResult(result.id, None, None, given=False)
    return _oldest(waiting, nameless, lambda call: not call.given)


def _newest(waiting: list[OpenCall], call_id: str) -> int | None:
    """Of those that were given the id, else of those whose id was made."""
    made: int | None = None
    for i in range(len(waiting) - 1, -1, -1):
        call = waiting[i].call
        if call.id == call_id and call.given:
            return i
        if call.id == call_id and made is None:
            made = i
    return made


def _oldest(
    waiting: list[OpenCall], result: ToolResult, fits: Callable[[ToolCall], bool]
) -> int | None:
    for i, opened in enumerate(waiting):
        if fits(opened.call) and result.name in (None, opened.call.name):
            return i
    return None


def _last_calls(messages: Sequence[Paired]) -> dict[str, int]:
    """Call id → the index of the last message that makes a call of that id."""
    return {call.id: at for at, message in enumerate(messages) for call in message.calls}


def _where(at: int, result: ToolResult, answered: set[str], last_call: dict[str, int]) -> Where:
    if result.id in answered:
        return "answered"
    return "ahead" if last_call.get(result.id, -1) > at else "nowhere"
