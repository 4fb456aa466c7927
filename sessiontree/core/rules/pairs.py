"""Calls and results in a request: what is wrong with them, and settling it.

``settle`` is the one repair for all of it. It lays a request out anew: each message of
calls, then the results of exactly these calls, then whatever was said meanwhile. Which
result answers which call is ``core.pairing``'s to say. A message that already stands
right is left as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from sessiontree.core.message import ToolCall, ToolResult
from sessiontree.core.pairing import OpenCall, Waiting
from sessiontree.core.rules.model import ONE_KIND, Block, Entry, Fault, Kind, Request, Shape

INTERRUPTED = (
    "[No result: the call was interrupted before a result was recorded. "
    "Whether it took effect is not known.]"
)

# --- Checks -----------------------------------------------------------------------------


def unanswered_next(request: Request) -> Iterator[Fault]:
    """Calls that the next message does not answer (A1, B3)."""
    entries = request.entries
    for at, entry in request.holding("call"):
        after = entries[at + 1] if at + 1 < len(entries) else None
        answered = {result.id for result in after.results} if after else set[str]()
        missing = tuple(call.id for call in entry.calls if call.id not in answered)
        if missing:
            yield Fault(at, f"no result in the next message for {', '.join(missing)}", ids=missing)


def stray_results(request: Request) -> Iterator[Fault]:
    """Results that answer no call of the previous message, or one already answered (A2, B4)."""
    entries = request.entries
    for at, entry in request.holding("result"):
        open_ids = Counter(call.id for call in entries[at - 1].calls) if at else Counter[str]()
        for part, block in enumerate(entry.blocks):
            if block.kind != "result":
                continue
            if open_ids[block.id]:
                open_ids[block.id] -= 1
            else:
                what = f"the previous message has no open call {block.id!r}"
                yield Fault(at, what, part, (block.id,))


def results_not_first(request: Request) -> Iterator[Fault]:
    """Results behind something else in their message (A3)."""
    for at, entry in request.holding("result"):
        leading = len(entry.results)
        late = tuple(b.id for b in entry.blocks[leading:] if b.kind == "result")
        if late:
            yield Fault(at, f"results stand behind other blocks: {', '.join(late)}", ids=late)


def said_after_call(request: Request) -> Iterator[Fault]:
    """Something other than a call behind the first call of a message (A4)."""
    for at, entry in request.holding("call"):
        if len(entry.calls) == len(entry.blocks):
            continue
        kinds = [block.kind for block in entry.blocks]
        first = kinds.index("call")
        for part in range(first, len(kinds)):
            if kinds[part] != "call":
                yield Fault(at, f"a block of kind {kinds[part]} follows a call", part)
                break


def repeated_ids(request: Request) -> Iterator[Fault]:
    """Call ids that were used by an earlier message of the request (A5)."""
    seen: set[str] = set()
    for at, entry in request.holding("call"):
        for part, block in enumerate(entry.blocks):
            if block.kind == "call" and block.given:
                if block.id in seen:
                    yield Fault(at, f"the id {block.id!r} was used before", part, (block.id,))
                seen.add(block.id)


def repeated_ids_in_message(request: Request) -> Iterator[Fault]:
    """Call ids used twice in one message (C3)."""
    for at, entry in request.holding("call"):
        ids = [call.id for call in entry.calls]
        if len(set(ids)) == len(ids):
            continue
        twice = tuple(sorted({i for i in ids if ids.count(i) > 1}))
        if twice:
            yield Fault(at, f"ids used twice: {', '.join(twice)}", ids=twice)


def illegal_ids(request: Request) -> Iterator[Fault]:
    """Ids in a form that the provider does not take (A17, B9, C5)."""
    legal = request.shape.legal_id
    kinds: tuple[Kind, Kind] = ("call", "result")
    for kind in kinds:
        for at, entry in request.holding(kind):
            for part, block in enumerate(entry.blocks):
                if block.kind == kind and legal(block.id) != block.id:
                    yield Fault(at, f"the id {block.id!r} is not allowed", part, (block.id,))


# --- Which result answers which call ------------------------------------------------------


class Matches(NamedTuple):
    """``answers`` by the call's block; each with the entry that its result stands in."""

    answers: dict[Block, tuple[Block, Entry]]
    orphans: list[tuple[Block, Entry]]


def match(entries: Sequence[Entry]) -> Matches:
    """Pair the calls and results of a request, oldest first."""
    found = Matches({}, [])
    waiting = Waiting()
    blocks: dict[int, Block] = {}
    for at, entry in enumerate(entries):
        for block in entry.calls:
            call = ToolCall(block.id, block.name, None, block.given)
            blocks[id(call)] = block
            waiting.add(OpenCall(at, call))
        for block in entry.results:
            result = ToolResult(block.id, None, block.name or None, given=block.given)
            opened = waiting.take(result)
            if opened is None:
                found.orphans.append((block, entry))
            else:
                found.answers[blocks[id(opened.call)]] = (block, entry)
    return found


def matches_of(request: Request) -> Matches:
    """The same of a request, until its entries change."""
    found = request.found.get("matches")
    if found is None:
        found = request.found["matches"] = match(request.entries)
    return found


# --- Settling -----------------------------------------------------------------------------


def settle(request: Request) -> None:
    """Every call followed by its result, and no result without its call."""
    shape = request.shape
    entries = join_calls(_split(request.entries, shape))
    matches = match(entries)
    for block, entry in matches.orphans:
        what = f"the result {block.id!r} was left out: no call before it is open under this id"
        request.note(shape.codes["orphan"], what, entry, id=block.id)
    laid = _Layout(request, entries, matches)
    request.entries = laid.lay()
    if laid.moved:
        what = "results were put right behind their calls"
        request.note(shape.codes["order"], what, *laid.moved)


def join_calls(entries: Sequence[Entry]) -> list[Entry]:
    """A message of nothing but calls made one with the message of calls before it: the two
    were one response, and together they wait for their results."""

    def were_one(first: Entry, kinds: frozenset[str], entry: Entry) -> bool:
        waits = first.sender == "assistant" and "call" in kinds and "result" not in kinds
        return waits and entry.kinds == ONE_KIND["call"]

    return [join(*run) for run in runs(entries, were_one)]


Together = Callable[[Entry, frozenset[str], Entry], bool]
"""Whether an entry goes on a run: the run's first entry, the kinds in the run, the entry."""


def runs(entries: Iterable[Entry], together: Together) -> list[list[Entry]]:
    """Entries that belong together, oldest first. A run of thousands is joined once."""
    found: list[list[Entry]] = []
    kinds = frozenset[str]()
    for entry in entries:
        if found and together(found[-1][0], kinds, entry):
            found[-1].append(entry)
            kinds |= entry.kinds
        else:
            found.append([entry])
            kinds = entry.kinds
    return found


def join(first: Entry, *others: Entry) -> Entry:
    """Messages of one sender as one; a single one as it is."""
    if not others:
        return first
    entries = (first, *others)
    joined = first.having([block for entry in entries for block in entry.blocks])
    joined.shell = {key: value for entry in entries for key, value in entry.shell.items()}
    joined.sources = tuple(dict.fromkeys([i for entry in entries for i in entry.sources]))
    joined.is_stale = any(entry.is_stale for entry in entries)
    joined.is_carried = all(entry.is_carried for entry in entries)
    if all(entry.tokens >= 0 for entry in entries):
        joined.tokens = sum(entry.tokens for entry in entries)
    return joined


def _split(entries: Sequence[Entry], shape: Shape) -> list[Entry]:
    """Where a provider wants calls last, what was said after a call begins a new message."""
    if "split" not in shape.codes:
        return list(entries)
    return [piece for entry in entries for piece in _pieces(entry)]


def _pieces(entry: Entry) -> list[Entry]:
    if "call" not in entry.kinds or len(entry.kinds) == 1:
        return [entry]
    edges = [
        at
        for at in range(1, len(entry.blocks))
        if entry.blocks[at - 1].kind == "call" and entry.blocks[at].kind != "call"
    ]
    if not edges:
        return [entry]
    spans = zip([0, *edges], [*edges, len(entry.blocks)], strict=True)
    return [entry.having(entry.blocks[start:end]) for start, end in spans]


class _Layout:
    """Lays entries out anew: calls, their results, and then the rest."""

    def __init__(self, request: Request, entries: list[Entry], matches: Matches) -> None:
        self.request = request
        self.shape = request.shape
        self.entries = entries
        self.matches = matches
        self.out: list[Entry] = []
        self.taken: set[int] = set()
        self.moved: list[Entry] = []
        self.homes = dict(matches.answers.values())

    def lay(self) -> list[Entry]:
        for at, entry in enumerate(self.entries):
            if at in self.taken:
                continue
            said = self._said(entry)
            if said is not None:
                self.out.append(said)
            if "call" in entry.kinds and said is not None:
                self._answer(at, said)
        return self.out

    def _said(self, entry: Entry) -> Entry | None:
        """What an entry holds besides results, which stand with their calls."""
        if "result" not in entry.kinds:
            return entry
        rest = [block for block in entry.blocks if block.kind != "result"]
        return entry.having(rest) if rest else None

    def _answer(self, at: int, entry: Entry) -> None:
        results: list[Block] = []
        sources: list[Entry] = []
        for call in entry.calls:
            answer = self.matches.answers.get(call)
            if answer is None:
                self._interrupt(call, entry, results)
            else:
                results.append(answer[0])
                sources.append(answer[1])
        standing = self._standing(at, results)
        if standing:
            self.out += [self.entries[i] for i in standing]
            self.taken.update(standing)
        elif results:
            self._place(results, sources)

    def _interrupt(self, call: Block, entry: Entry, results: list[Block]) -> None:
        made = self.shape.interrupted(call, INTERRUPTED)
        code = self.shape.codes["unanswered"]
        if made is not None:
            results.append(made)
            what = f"the call {call.name or call.id!r} has no result: one was added that says so"
            self.request.note(code, what, entry, id=call.id, name=call.name)
            return
        what = f"the call {call.name or call.id!r} was left out: no text can answer it"
        self.request.note(code, what, entry, id=call.id, name=call.name)
        rest = [block for block in self.out[-1].blocks if block is not call]
        self.out[-1:] = [self.out[-1].having(rest)] if rest else []

    def _standing(self, at: int, results: list[Block]) -> list[int]:
        """The entries right behind ``at`` that hold exactly these results, as wanted."""
        wanted = set(results)
        found: list[int] = []
        for i in range(at + 1, len(self.entries)):
            entry = self.entries[i]
            there = entry.results
            if not there or not wanted.issuperset(there) or not self._is_in_order(entry, there):
                break
            wanted -= set(there)
            found.append(i)
            if len(entry.blocks) > len(there):
                break
        complete = not wanted and found and len(found) == len(self.shape.answers(results))
        return found if complete else []

    def _is_in_order(self, entry: Entry, results: list[Block]) -> bool:
        if self.shape.results_stand_alone:
            return len(results) == len(entry.blocks)
        return list(entry.blocks[: len(results)]) == results

    def _place(self, results: list[Block], sources: list[Entry]) -> None:
        made = self.shape.answers(results)
        for i, entry in enumerate(made):
            of = sources if len(made) == 1 else [self.homes.get(results[i])]
            entry.sources = tuple(dict.fromkeys(s for e in of if e for s in e.sources))
            entry.position = min((e.position for e in of if e), default=self.out[-1].position)
        self.out += made
        self.moved += sources


# --- Ids ------------------------------------------------------------------------------------


def rename(request: Request) -> None:
    """Ids legal, and each used once. A new id is made from the old one and the message's
    place on the path, so that it is the same in every window."""
    shape = request.shape
    answers = matches_of(request).answers
    seen: set[str] = set()
    new_ids: dict[Block, str] = {}
    tried: dict[tuple[str, int], int] = {}
    for entry in request.entries:
        if shape.unique_in == "message":
            seen, tried = set(), {}
        for nth, call in enumerate(entry.calls):
            new = shape.legal_id(call.id)
            if new in seen:
                new = _fresh(shape, f"{new[:24]}_{entry.position}", nth, seen, tried)
            seen.add(new)
            result = answers[call][0] if call in answers else None
            new_ids |= {b: new for b in (call, result) if b is not None and b.id != new}
    request.entries = [_renamed(request, entry, new_ids) for entry in request.entries]


def _fresh(
    shape: Shape, stem: str, nth: int, taken: set[str], tried: dict[tuple[str, int], int]
) -> str:
    """An id that is not taken. ``tried`` tells how far was looked before, from the same place."""
    new = shape.legal_id(f"{stem}_{nth}" if nth else stem)
    at = tried.get((stem, nth), nth)
    while new in taken:
        at += 1
        new = shape.legal_id(f"{stem}_{at}x")
    tried[stem, nth] = at
    return new


def _renamed(request: Request, entry: Entry, new_ids: dict[Block, str]) -> Entry:
    if new_ids.keys().isdisjoint(entry.blocks):
        return entry
    shape = request.shape
    blocks = [shape.with_id(b, new_ids[b]) if b in new_ids else b for b in entry.blocks]
    renamed = entry.having(blocks)
    renamed.tokens = entry.tokens
    for old, new in zip(entry.calls, renamed.calls, strict=True):
        if old.id != new.id:
            code = shape.codes["unique" if shape.legal_id(old.id) == old.id else "form"]
            request.note(code, f"the call id {old.id!r} was sent as {new.id!r}", entry)
    return renamed
