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

from collections.abc import Iterable, Iterator, Sequence
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


class Waiting:
    """Calls that wait for their results, oldest first. To find the one that a result answers
    takes the same time among thousands."""

    __slots__ = ("_by_id", "_ids_made", "_open", "_serial")

    def __init__(self, calls: Iterable[OpenCall] = ()) -> None:
        self._open: dict[int, OpenCall] = {}
        self._by_id: dict[str, list[int]] = {}
        self._ids_made = 0
        """How many of them have an id that was made from their position."""
        self._serial = 0
        for opened in calls:
            self.add(opened)

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[OpenCall]:
        return iter(self._open.values())

    def add(self, opened: OpenCall) -> None:
        self._serial += 1
        self._open[self._serial] = opened
        self._by_id.setdefault(opened.call.id, []).append(self._serial)
        self._ids_made += not opened.call.given

    def take(self, result: ToolResult) -> OpenCall | None:
        """Remove the call that ``result`` answers, and return it."""
        found = self._find(result)
        if found is None:
            return None
        opened = self._open.pop(found)
        self._by_id[opened.call.id].remove(found)
        self._ids_made -= not opened.call.given
        return opened

    def _find(self, result: ToolResult) -> int | None:
        if result.given:
            of_id = self._by_id.get(result.id)
            if of_id:
                given = (n for n in reversed(of_id) if self._open[n].call.given)
                return next(given, of_id[-1])
            return self._oldest_made(result.name)
        if result.name:
            for serial, opened in self._open.items():
                if opened.call.name == result.name:
                    return serial
        return self._oldest_made(None)

    def _oldest_made(self, name: str | None) -> int | None:
        """The oldest call whose id was made from its position; of a name, where one is told."""
        if self._ids_made:
            for serial, opened in self._open.items():
                if not opened.call.given and name in (None, opened.call.name):
                    return serial
        return None


def is_answer(call: ToolCall, result: ToolResult) -> bool:
    """True for a result that answers an only call, whatever else is known: they share an id that
    both were given."""
    return call.id == result.id and call.given and result.given


def take(waiting: list[OpenCall], result: ToolResult) -> OpenCall | None:
    """Remove from ``waiting`` the call that ``result`` answers, and return it."""
    if len(waiting) == 1 and is_answer(waiting[0].call, result):  # as nearly always
        return waiting.pop()
    opened = Waiting(waiting).take(result)
    if opened is not None:
        del waiting[next(i for i, each in enumerate(waiting) if each is opened)]
    return opened


def pair(messages: Sequence[Paired], waiting: Iterable[OpenCall] = ()) -> Pairing:
    """Pair a sequence, oldest first. ``waiting`` are calls open before it."""
    pairing = Pairing()
    still_open = Waiting(waiting)
    answered: set[str] = set()
    last_call: dict[str, int] | None = None
    for at, message in enumerate(messages):
        for call in message.calls:
            still_open.add(OpenCall(at, call))
        for result in message.results:
            opened = still_open.take(result)
            if opened is not None:
                answered.add(opened.call.id)
                pairing.answers.append((at, opened.at, opened.call))
                continue
            if last_call is None:
                last_call = _last_calls(messages)
            fault = RESULT_RULES[_where(at, result, answered, last_call)]
            assert fault is not None
            pairing.violations.append(Violation(fault, at, result.id))
        pairing.open_counts.append(len(still_open))
    pairing.open = list(still_open)
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
        if (message.calls or message.results) and not _opens_and_answers(message, waiting):
            return False
        message.open_calls = len(waiting)
    return not waiting


def _opens_and_answers(message: NewMessage, waiting: set[str]) -> bool:
    """Whether its calls are new and its results are waited for; ``waiting`` follows."""
    for call in message.calls:
        if not call.given or call.id in waiting:
            return False
        waiting.add(call.id)
    for result in message.results:
        if not result.given or result.id not in waiting:
            return False
        waiting.remove(result.id)
    return True


def refuse_orphans(pairing: Pairing) -> None:
    """OrphanToolResult for the first result that answers no open call."""
    for violation in pairing.violations:
        if violation.kind != "unanswered_call":
            raise OrphanToolResult(violation.call_id, reason=violation.why)


def _last_calls(messages: Sequence[Paired]) -> dict[str, int]:
    """Call id → the index of the last message that makes a call of that id."""
    return {call.id: at for at, message in enumerate(messages) for call in message.calls}


def _where(at: int, result: ToolResult, answered: set[str], last_call: dict[str, int]) -> Where:
    if result.id in answered:
        return "answered"
    return "ahead" if last_call.get(result.id, -1) > at else "nowhere"
