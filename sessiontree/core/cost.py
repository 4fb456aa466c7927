"""What a conversation cost: by model, by turn and by branch, on the whole tree and on the
path of its head.

A *request* is one answer of a model. What its provider reported holds; where nothing was
reported it is estimated, from the tokens of the messages before it on its path, and marked
so. An estimate knows neither the definitions of tools nor what the provider had cached, and
goes on from the newest report on the path.

Some programs write one answer as several messages and repeat the report with each (Claude
Code does, one line for each block). Reports that bear the same id are one request, with
the largest output of them: it grows while the answer streams.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple, cast

from sessiontree.core import marks
from sessiontree.core.marks import Item
from sessiontree.core.usage import Usage, read

Price = Callable[[str | None, Usage, int, str], Decimal | None]
"""(model, usage, time in microseconds, format) → US dollars, or None where it is unknown."""


@dataclass(slots=True)
class Spend:
    """What some requests used. ``money`` is in US dollars, of the requests whose price is
    known; ``unpriced`` counts the others. ``estimated`` counts those without a report."""

    requests: int = 0
    estimated: int = 0
    unpriced: int = 0
    input: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0
    money: Decimal = Decimal(0)

    @property
    def tokens(self) -> int:
        return self.input + self.cached + self.written + self.output

    def add(self, request: Request) -> None:
        usage = request.usage
        self.requests += 1
        self.estimated += request.is_estimated
        self.unpriced += request.money is None
        self.input += usage.input
        self.cached += usage.cached
        self.written += usage.written
        self.output += usage.output
        self.money += request.money or 0

    def __add__(self, other: Spend) -> Spend:
        return Spend(
            self.requests + other.requests,
            self.estimated + other.estimated,
            self.unpriced + other.unpriced,
            self.input + other.input,
            self.cached + other.cached,
            self.written + other.written,
            self.output + other.output,
            self.money + other.money,
        )


class Request(NamedTuple):
    """One answer of a model. ``message_id`` is its first message, ``turn_id`` the user
    message that it answers (None where there is none)."""

    message_id: int
    turn_id: int | None
    model: str | None
    usage: Usage
    is_estimated: bool
    money: Decimal | None


@dataclass(slots=True)
class Turn:
    """What one turn cost. ``message_id`` is its user message, ``is_on_path`` whether that
    is on the path of the head."""

    message_id: int | None
    is_on_path: bool
    spend: Spend = field(default_factory=Spend)


@dataclass(slots=True)
class Branch:
    """What one branch cost: the path of a leaf. ``own`` is what it does not share with any
    other branch, which begins after message ``since`` (None: at its root)."""

    leaf: int
    since: int | None
    is_head: bool
    own: Spend
    path: Spend


@dataclass(slots=True)
class Bill:
    """What a conversation cost. ``inherited`` is the part of ``total`` that was spent before
    it was forked, in the conversation that it was forked from."""

    total: Spend
    path: Spend
    inherited: Spend
    models: dict[str | None, Spend]
    models_on_path: dict[str | None, Spend]
    turns: list[Turn]
    branches: list[Branch]
    requests: list[Request]


@dataclass(slots=True)
class _Open:
    """A request that may still grow."""

    message_id: int
    turn_id: int | None
    model: str | None
    format: str
    at: int
    usage: Usage
    is_estimated: bool


class _Place(NamedTuple):
    """What is known of a message once it was met."""

    parent_id: int | None
    turn_id: int | None
    request: int | None
    """Of an assistant message: which request it belongs to."""
    context: int
    """Tokens that a request after this message would send, about."""
    before: int
    """Tokens of all messages up to and with this one, as they were estimated."""
    open_calls: int


_NOWHERE = _Place(None, None, None, 0, 0, 0)


class Ledger:
    """Takes the messages of a conversation, parents before children, and makes the bill.

    Keeps a few numbers for each message, none of its content.
    """

    def __init__(self, *, model: str | None = None) -> None:
        """``model``: taken for answers that do not tell theirs."""
        self._model = model
        self._places: dict[int, _Place] = {}
        self._requests: list[_Open] = []
        self._by_report: dict[tuple[Any, ...], int] = {}
        self._parents: set[int] = set()

    def add(self, item: Item, *, parent_id: int | None, at: int) -> None:
        """Take note of a message: the one it follows, and when it was said (microseconds)."""
        above = self._places[parent_id] if parent_id is not None else _NOWHERE
        begins = item.role == "user" and above.open_calls == 0
        turn = item.id if begins else above.turn_id
        before = above.before + (0 if item.role == "mark" else item.tokens)
        request = self._request(item, above, turn, at) if item.role == "assistant" else None
        context = self._context(item, above, request)
        place = _Place(parent_id, turn, request, context, before, item.open_calls)
        self._places[item.id] = place
        if parent_id is not None:
            self._parents.add(parent_id)

    def _context(self, item: Item, above: _Place, request: int | None) -> int:
        if item.role == "mark":
            return self._after_mark(item, above)
        if request is not None and not self._requests[request].is_estimated:
            usage = self._requests[request].usage
            if usage.sent:
                return usage.sent + usage.output
        return above.context + item.tokens

    def _after_mark(self, item: Item, above: _Place) -> int:
        """Cuts, and marks whose text stands for what came before, leave out what comes before
        the message they name; what elided results and images saved is not known. The pages of
        a snapshot are taken to cost what their text would: they are made where they cost less."""
        mark = marks.read(item)
        stands = mark is not None and mark.kind in marks.STANDING
        if mark is None or not (stands or mark.kind == "cut"):
            return above.context
        first = self._places.get(mark.ref_id or 0)
        left_out = above.before if mark.ref_id is None else 0
        if first is not None:
            left_out = self._places[first.parent_id].before if first.parent_id is not None else 0
        kept = above.before - left_out
        return min(above.context, kept + (item.tokens if stands else 0))

    def _request(self, item: Item, above: _Place, turn: int | None, at: int) -> int:
        """Which request an assistant message belongs to; a new one where it begins it."""
        said = read(item.usage)
        if said is not None:
            return self._reported(item, said, above, turn, at)
        if above.request is not None:  # goes on where the message before it stopped
            self._lengthen(self._requests[above.request], item.tokens)
            return above.request
        return self._begin(item, Usage(above.context, output=item.tokens), turn, at, True)

    def _reported(self, item: Item, said: Usage, above: _Place, turn: int | None, at: int) -> int:
        report = _report_of(item, said)
        known = self._by_report.get(report) if report else None
        if known is None:
            known = self._unreported(above.request)
        if known is None:
            known = self._begin(item, said, turn, at, False)
        else:
            self._settle(self._requests[known], item, said)
        if report:
            self._by_report[report] = known
        return known

    def _unreported(self, request: int | None) -> int | None:
        """The request of the message before, where the report came with the last part only."""
        if request is None or not self._requests[request].is_estimated:
            return None
        return request

    def _begin(
        self, item: Item, usage: Usage, turn: int | None, at: int, is_estimated: bool
    ) -> int:
        model = item.model or self._model
        made = _Open(item.id, turn, model, item.format, at, usage, is_estimated)
        self._requests.append(made)
        return len(self._requests) - 1

    def _settle(self, request: _Open, item: Item, said: Usage) -> None:
        if not request.is_estimated and request.usage.output > said.output:
            return
        request.usage, request.is_estimated = said, False
        request.model = item.model or request.model

    def _lengthen(self, request: _Open, tokens: int) -> None:
        if request.is_estimated:
            usage = request.usage
            request.usage = usage._replace(output=usage.output + tokens)

    def bill(self, head: int | None, price: Price, *, forked: int | None = None) -> Bill:
        """The bill. ``forked``: when the conversation was forked from another (microseconds):
        what was said before was spent there."""
        made = [_priced(each, price) for each in self._requests]
        on_path = self._path(head)
        is_old = [forked is not None and each.at < forked for each in self._requests]
        return Bill(
            total=_sum(made),
            path=_sum([each for each in made if each.message_id in on_path]),
            inherited=_sum([each for each, old in zip(made, is_old, strict=True) if old]),
            models=_by_model(made),
            models_on_path=_by_model([each for each in made if each.message_id in on_path]),
            turns=_by_turn(made, on_path),
            branches=self._branches(made, head),
            requests=made,
        )

    def _path(self, leaf: int | None) -> set[int]:
        found: set[int] = set()
        while leaf is not None:
            found.add(leaf)
            leaf = self._places[leaf].parent_id
        return found

    def _branches(self, made: list[Request], head: int | None) -> list[Branch]:
        """One for each leaf. Sums along the paths are kept where paths part, so that each
        message is walked once."""
        forks = self._forks()
        first = {each.message_id: each for each in made}
        sums: dict[int | None, Spend] = {None: Spend()}
        found: list[Branch] = []
        for leaf in self._places:  # parents come before children
            if leaf in self._parents and leaf not in forks:
                continue
            own, since = self._stretch(leaf, forks, first)
            path = sums[since] + own
            if leaf in forks:
                sums[leaf] = path
            else:
                found.append(Branch(leaf, since, leaf == head, own, path))
        return found

    def _forks(self) -> set[int]:
        """The messages with more than one child."""
        seen: set[int] = set()
        forks: set[int] = set()
        for place in self._places.values():
            if place.parent_id is not None:
                (forks if place.parent_id in seen else seen).add(place.parent_id)
        return forks

    def _stretch(
        self, end: int, forks: set[int], first: Mapping[int, Request]
    ) -> tuple[Spend, int | None]:
        """What was spent from the last fork before ``end``, and that fork."""
        spend = Spend()
        at: int | None = end
        while at is not None:
            if at in first:
                spend.add(first[at])
            at = self._places[at].parent_id
            if at in forks:
                break
        return spend, at


def _report_of(item: Item, said: Usage) -> tuple[Any, ...] | None:
    """What two messages of one answer have in common: the id of the response."""
    native = item.native
    inner = native.get("message")
    holder = cast("Mapping[str, Any]", inner) if isinstance(inner, Mapping) else native
    found = holder.get("id")
    if not isinstance(found, str) or not found:
        return None
    return found, native.get("requestId"), item.model, said.input, said.cached, said.written


def _priced(request: _Open, price: Price) -> Request:
    money = request.usage.cost
    if money is None:
        money = price(request.model, request.usage, request.at, request.format)
    return Request(
        request.message_id,
        request.turn_id,
        request.model,
        request.usage,
        request.is_estimated,
        money,
    )


def _sum(requests: list[Request]) -> Spend:
    spend = Spend()
    for request in requests:
        spend.add(request)
    return spend


def _by_model(requests: list[Request]) -> dict[str | None, Spend]:
    """The dearest first, then the one of most tokens."""
    found: dict[str | None, Spend] = {}
    for request in requests:
        found.setdefault(request.model, Spend()).add(request)
    order = sorted(found.items(), key=lambda each: (each[1].money, each[1].tokens), reverse=True)
    return dict(order)


def _by_turn(requests: list[Request], on_path: set[int]) -> list[Turn]:
    """In the order they were asked."""
    found: dict[int | None, Turn] = {}
    for request in requests:
        turn = found.setdefault(request.turn_id, Turn(request.turn_id, request.turn_id in on_path))
        turn.spend.add(request)
    return list(found.values())
