"""What sessions will cost in a month, with and without a reclaim ladder.

One session is played turn by turn, since what a request sends grows with each: the system
prompt, all turns so far, and the new one. With a ladder a window over its share of the
budget is made smaller as ``core.reclaim.ladder`` does it: old results of tools become a
line, then a summary stands for old turns (its request is paid for as well), and without a
summary they are cut. What a provider has cached is read again at its price; a reclaim
changes what is sent, so that the request after it is written to the cache anew.

All sessions are taken to be alike: multiply, do not simulate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple

from sessiontree.core.reclaim import elide, summary
from sessiontree.core.reclaim.ladder import THRESHOLD
from sessiontree.core.usage import Usage
from sessiontree.errors import BadArgument, shown

PriceOf = Callable[[Usage], Decimal]


class Load(NamedTuple):
    """What is expected. Tokens of one turn: ``prompt`` from the user, ``answer`` from the
    model in each of ``calls`` requests, ``results`` from tools in all. ``cache``: whether
    the provider caches prompts."""

    users: int = 1_000
    sessions: int = 20
    """Of one user in a month."""
    turns: int = 40
    prompt: int = 200
    answer: int = 300
    calls: int = 4
    """Requests in a turn: one, and one more for each round of tools."""
    results: int = 6_000
    system: int = 4_000
    cache: bool = True


class Ladder(NamedTuple):
    """How a window is kept small. ``summary`` is the size of a summary in tokens; 0 for a
    ladder without a model, which cuts instead."""

    budget: int = 100_000
    threshold: float = THRESHOLD
    summary: int = 1_000


@dataclass(slots=True)
class Month:
    """What a month comes to. ``ends`` is the turn whose request no longer fits the model's
    window (sessions end before it), None when all fit."""

    requests: int = 0
    input: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0
    money: Decimal = Decimal(0)
    reclaims: int = 0
    largest: int = 0
    """Tokens of the largest request."""
    ends: int | None = None

    @property
    def tokens(self) -> int:
        return self.input + self.cached + self.written + self.output


@dataclass(slots=True)
class _Said:
    """One turn in the window: what was said, and what tools answered."""

    talk: int
    results: int


@dataclass(slots=True)
class _Session:
    load: Load
    turns: list[_Said] = field(default_factory=list[_Said])
    summary: int = 0
    known: int = 0
    """Tokens that the provider has cached: a prefix of what is sent next."""

    @property
    def size(self) -> int:
        return self.load.system + self.summary + sum(t.talk + t.results for t in self.turns)

    def ask(self, output: int) -> Usage:
        """A request with the window as it is, and an answer."""
        sent = self.size
        if not self.load.cache:
            return Usage(sent, output=output)
        usage = Usage(0, self.known, sent - self.known, output)
        self.known = sent
        return usage


def month(
    load: Load, price: PriceOf, *, ladder: Ladder | None = None, window: int | None = None
) -> Month:
    """A month of sessions. ``window``: how many tokens the model can read."""
    require(load, ladder)
    found = Month()
    session = _Session(load)
    for number in range(1, load.turns + 1):
        session.turns.append(_Said(load.prompt, 0))
        if ladder is not None:
            _count(found, _reclaim(session, found, ladder), price)
        for usage in _requests(session):
            if window is not None and usage.sent + usage.output > window:
                found.ends = number
                return _times(found, load)
            _count(found, [usage], price)
    return _times(found, load)


def _requests(session: _Session) -> Iterator[Usage]:
    """The requests of a turn: an answer, its tool's results, the next answer, …"""
    load, turn = session.load, session.turns[-1]
    rounds = load.calls - 1
    for at in range(load.calls):
        yield session.ask(load.answer)
        turn.talk += load.answer
        if at < rounds:
            turn.results += _share(load.results, rounds, at)


def _share(whole: int, parts: int, at: int) -> int:
    return whole * (at + 1) // parts - whole * at // parts


def _count(found: Month, usages: list[Usage], price: PriceOf) -> None:
    for usage in usages:
        found.requests += 1
        found.input += usage.input
        found.cached += usage.cached
        found.written += usage.written
        found.output += usage.output
        found.money += price(usage)
        found.largest = max(found.largest, usage.sent)


def _times(found: Month, load: Load) -> Month:
    many = load.users * load.sessions
    for name in ("requests", "input", "cached", "written", "output", "money", "reclaims"):
        setattr(found, name, getattr(found, name) * many)
    return found


def _reclaim(session: _Session, found: Month, ladder: Ladder) -> list[Usage]:
    """Climb until the window costs no more than its share; the requests this takes."""
    goal = int(ladder.budget * ladder.threshold)
    if session.size <= goal:
        return []
    before = session.size
    _elide(session, goal)
    asked = _summarise(session, goal, ladder) if session.size > goal and ladder.summary else []
    if session.size > goal:
        session.turns = _newest(session, goal - session.load.system - session.summary)
    if session.size < before:
        found.reclaims += 1
        session.known = min(session.known, session.load.system)  # the system prompt stays
    return asked


def _elide(session: _Session, goal: int) -> None:
    """Old results but the newest ``protect`` tokens of them, where it is worth it."""
    protect, save = min(elide.PROTECT, goal // 2), min(elide.SAVE, goal // 10)
    newer, old = 0, list[_Said]()
    for turn in reversed(session.turns):
        newer += turn.results
        if newer > protect:
            old.append(turn)
    lines = max(session.load.calls - 1, 1) * elide.LINE
    worth = [turn for turn in old if turn.results > lines]
    if sum(turn.results - lines for turn in worth) >= save:
        for turn in worth:
            turn.results = lines


def _summarise(session: _Session, goal: int, ladder: Ladder) -> list[Usage]:
    """A summary in place of all but the newest turns. Nobody has cached its request."""
    kept = _newest(session, min(summary.KEEP, goal // 2))
    old = session.turns[: len(session.turns) - len(kept)]
    sent = session.summary + sum(turn.talk + turn.results for turn in old)
    if sent <= ladder.summary:
        return []
    session.turns, session.summary = kept, ladder.summary
    return [Usage(sent, output=ladder.summary)]


def _newest(session: _Session, room: int) -> list[_Said]:
    """The newest turns that fit, the newest always."""
    kept = 1
    used = session.turns[-1].talk + session.turns[-1].results
    for turn in reversed(session.turns[:-1]):
        used += turn.talk + turn.results
        if used > room:
            break
        kept += 1
    return session.turns[-kept:]


def require(load: Load, ladder: Ladder | None) -> None:
    """BadArgument for numbers that no month has."""
    for name in ("users", "sessions", "turns", "calls"):
        if getattr(load, name) < 1:
            raise BadArgument(f"{name} is {shown(getattr(load, name))}", hint="give at least 1")
    for name in ("prompt", "answer", "results", "system"):
        if getattr(load, name) < 0:
            raise BadArgument(f"{name} is {shown(getattr(load, name))}", hint="give 0 or more")
    if load.turns > MOST_TURNS:
        raise BadArgument(f"a session of {load.turns} turns", hint=f"at most {MOST_TURNS}")
    if ladder is not None and ladder.budget * ladder.threshold <= load.system + ladder.summary:
        raise BadArgument(
            f"a budget of {ladder.budget} tokens leaves no room beside the system prompt and a "
            "summary",
            hint="raise the budget",
        )


MOST_TURNS = 1_000
