"""Planning a window: the newest turns of a path that fit, made valid for the target.

``plan`` is the whole of it for a path at hand. For one that is read from a store, feed a
``Planner`` one message at a time, newest first, until it wants no more; it reads no
further back than the window reaches.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sessiontree.core import marks, render, rules, stand_in
from sessiontree.core.marks import Item
from sessiontree.core.message import Codecs, Part, text_of
from sessiontree.core.meter import Count, Memory, Meter, Rendered, Reports, scaled
from sessiontree.core.rules import Entry, Facts, Request, Shape, Step, limits
from sessiontree.core.rules import images as pictures
from sessiontree.core.rules.pairs import match
from sessiontree.core.rules.thinking import binds_thinking
from sessiontree.core.tokens import family_of
from sessiontree.core.turns import Reader, Turn, pinned_of, spare
from sessiontree.core.window import Budget, Dropped, Window
from sessiontree.errors import BudgetTooSmall, WindowError, shown

Thinking = Literal["auto", "keep", "drop"]


@dataclass(slots=True)
class _Kept:
    """A turn that is sent, and what it costs."""

    turn: Turn
    entries: list[Entry]
    tokens: int


class Planner:
    """Plans a window from messages that are fed newest first.

    target      a provider: anthropic, openai_chat, openai_responses, gemini, bedrock
    codecs      finds the codec of a format by its name
    budget      tokens, or a Budget; None for no limit
    system      the system prompt in force
    pinned      ids that are always sent, in their place, each with the whole of its step;
                marks do not reach them
    thinking    auto: left out where a model would refuse it, because what comes before it
                was edited; keep: never; drop: always
    model       its name, for counting and for rules that hold for some models only; by
                default that of the newest answer of a model that the target serves
    count       the caller's own count of a message
    exact       whether to count by tokenizer; see ``tokens.counter``
    tools       whether the request offers tools; False where a provider refuses a history of
                calls without (rule B5)
    anchored    whether what the provider reported corrects the count
    draw        draws the pages of a snapshot (``reclaim.draw``); else its text is sent
    memory      what was rendered for earlier windows of the conversation

    WindowError: an unknown target, a budget that is none, a pinned message off the path.
    """

    def __init__(
        self,
        target: str,
        codecs: Codecs,
        *,
        budget: Budget | int | None = None,
        system: Item | None = None,
        pinned: Collection[int] = (),
        thinking: Thinking = "auto",
        model: str | None = None,
        count: Count | None = None,
        exact: bool | None = None,
        tools: bool | None = None,
        anchored: bool = True,
        draw: stand_in.Draw | None = None,
        memory: Memory | None = None,
    ) -> None:
        _refuse_nonsense(thinking, model, count, exact, tools)
        self.shape: Shape = rules.shape_of(target)
        self.codecs = codecs
        self.budget = Budget.of(budget)
        self.system_item = system
        self.system = None if system is None else render.system_of(system, target)
        self.thinking = thinking
        self.model = model
        self._count, self._exact, self._tools = count, exact, tools
        self._draw = draw
        self._memory = memory if count is None else None
        self._is_anchored = anchored and count is None
        self._meter: Meter | None = None
        self._reports: Reports | None = None
        self._system_tokens = 0
        self._overhead = 0
        """What the newest report counts more than we do, once that was told by a whole path:
        it is sent with fewer messages too."""
        self._reader = Reader()
        self._kept: list[_Kept] = []
        self._pins: list[_Kept] = []
        self._missing = set(pinned)
        self._pinned = frozenset(pinned)
        self._planned = 0
        self._many = 0
        self._is_full = False
        self._passed: int | None = None
        """The newest message that is left out because the budget is full."""
        self._held: Turn | None = None
        """The newest turn, while it is not known which model answers."""

    # --- Reading ------------------------------------------------------------------------

    def feed(self, item: Item) -> bool:
        """Take the next older message. False when no more are wanted."""
        if self.model is None and self._meter is None and self._answers_here(item):
            self.model = item.model
        if self._missing and item.role in ("mark", "system"):  # never sent from where they stand
            self._missing.discard(item.id)
        if self.is_done and item.role == "mark":  # what is pinned is sent as it was said
            return bool(self._missing)
        for turn in self._reader.feed(item):
            self._take(turn)
        if self.budget.tokens is not None and not self._is_full and self._is_hopeless():
            self._release()
            self._fill(self._reader.items[0].id)
        return not self.is_done or bool(self._missing)

    @property
    def missing(self) -> frozenset[int]:
        """The pinned messages that were not met yet."""
        return frozenset(self._missing)

    @property
    def is_done(self) -> bool:
        """True when no more is wanted but what is pinned."""
        return self._reader.is_cut or self._is_full

    @property
    def unread(self) -> int | None:
        """The newest message of the turn that is being read; None between turns."""
        return self._reader.items[0].id if self._reader.items else None

    def jump(self, step: Sequence[Item]) -> None:
        """Take a step that is pinned, newest message first, without what lies between it and
        what was fed before."""
        self._reader.jump(step[0].id)
        for item in step:
            self.feed(item)
        for turn in self._reader.end():
            self._take(turn)

    def _answers_here(self, item: Item) -> bool:
        """True when the message is of a model that the target serves."""
        if not item.model:
            return False
        ours, theirs = family_of(None, self.shape.name).name, family_of(item.model).name
        return item.format == self.shape.name or theirs.startswith(ours)

    def _is_hopeless(self) -> bool:
        """True when the turn being read is too large by far to be sent: it need not be read
        to its end. (Estimates of the store and of the window may differ by a factor.)
        Between turns, before a mark or a system prompt, there is none."""
        limit = self.budget.tokens
        if limit is None or not self._reader.items or not (self._kept or self._held):
            return False
        return self._reader.weight > 4 * (limit - self._planned) + 4000

    def _fill(self, passed: int) -> None:
        self._is_full = True
        self._passed = self._passed or passed

    def _take(self, turn: Turn) -> None:
        """The newest turn is held until the one before it told which model answers."""
        if self._meter is None and self._held is None and self.model is None:
            self._held = turn
            return
        self._release()
        self._keep(turn)

    def _release(self) -> None:
        if self._meter is None:
            self._begin()
        held, self._held = self._held, None
        if held is not None:
            self._keep(held)

    def _begin(self) -> None:
        self._meter = Meter(self.shape, self.model, self._count, self._exact)
        self._reports = Reports(self._meter.family.name)
        self._system_tokens = self._meter.system(self.system_item, self.system)
        self._planned = self._system_tokens

    def _keep(self, turn: Turn) -> None:
        """Take the turn if it still fits, else what is pinned of it."""
        if self._pinned and not self._pinned.isdisjoint(turn.ids):
            spare(turn, self._pinned)
        if self._is_full or turn.is_past_cut:
            self._pin_from(turn)
            return
        entries, cost, notes = self._rendered(turn)
        if self._kept and not self._fits(cost, len(turn.items)):
            self._fill(turn.ids[-1])
            self._pin_from(turn)
            return
        self._kept.append(_Kept(turn, entries, cost))
        self._planned += cost
        self._many += len(turn.items)
        if self._missing:
            self._missing.difference_update(turn.ids)
        assert self._reports is not None
        for note in notes:
            self._reports.add(note)

    def _rendered(self, turn: Turn) -> Rendered:
        """The turn as it is sent, from memory where it is there."""
        key = turn.key if self._memory is not None else None
        if self._memory is None or key is None:
            return self._render(turn)
        key = (self.shape.name, self.model, self._exact, self._is_anchored, *key)
        found = self._memory.get(key)
        if found is None:
            found = self._render(turn)
            self._memory.put(key, turn.items[-1].id, found)
        return found

    def _render(self, turn: Turn) -> Rendered:
        assert self._meter is not None
        assert self._reports is not None
        entries = render.entries_of(turn, self.shape, self.codecs)
        cost = self._meter.turn(turn, entries)
        notes = self._reports.notes(turn, entries) if self._is_anchored else []
        return Rendered(entries, cost, notes)

    def _fits(self, cost: int, many: int) -> bool:
        most = self.budget.messages
        if most is not None and many + self._many > most:
            return False
        limit = self.budget.tokens
        return limit is None or scaled(self._planned + cost, self._factor) <= limit

    @property
    def _factor(self) -> float:
        return self._reports.factor if self._reports is not None and self._is_anchored else 1.0

    def _pin_from(self, turn: Turn) -> None:
        """Keep the pinned messages of a turn that is not sent."""
        if self._pinned.isdisjoint(turn.ids):
            return
        self._missing.difference_update(turn.ids)
        kept = pinned_of(turn, self._pinned)
        entries, cost, _ = self._rendered(kept)
        self._pins.append(_Kept(kept, entries, cost))

    # --- Planning -----------------------------------------------------------------------

    def finish(self) -> Window:
        """The window. BudgetTooSmall when system, pinned messages and newest turn do not
        fit, with by how much."""
        for turn in self._reader.end():
            self._take(turn)
        self._release()
        if self._missing:
            absent = ", ".join(map(str, sorted(self._missing)))
            raise WindowError(
                f"pinned message(s) {absent} are not on the path",
                hint="pin messages between the root and the one that the window ends with",
            )
        self._pins.sort(key=lambda kept: kept.turn.items[0].depth)
        while True:
            request = self._assembled()
            total = self._total(request)
            over = self._over(request, total)
            if over is None:
                return self._window(request, total)
            self._let_go(*over)

    def _assembled(self) -> Request:
        """The request of what is kept now, mended."""
        kept = [*self._pins, *self._kept[::-1]]
        front = sum(len(k.entries) for k in self._pins if k.turn.is_past_cut)
        entries = [entry for k in kept for entry in k.entries]
        standing, told = self._standing(entries)
        entries[front:front] = standing
        if self._is_full:  # where it begins may change from turn to turn
            entries = [entry.as_stale() for entry in entries]
        binds = self.thinking == "auto" and binds_thinking(self.model)
        facts = Facts(self.system, self.model, None, self._tools, binds)
        request = Request(self.shape, entries, facts)
        request.steps += told
        if self.budget.images is not None:
            pictures.keep_newest(request, self.budget.images)
        if self.budget.bytes is not None:
            limits.fit_bytes(request, self.budget.bytes)
        if self.thinking == "drop":
            rules.drop_thinking(request)
        rules.mend(request)
        return request

    def _standing(self, kept: list[Entry]) -> tuple[list[Entry], list[Step]]:
        """What stands for the turns before a mark, and how that is told."""
        mark = self._reader.standing
        if mark is None or self._is_whole:
            return [], []
        seen = 0
        if mark.kind == "snapshot":  # images that are newer go before its pages
            seen = sum(len(list(pictures.inside_of(entry, self.shape))) for entry in kept)
        reader = stand_in.Reader(self.shape.name, self.model, self.budget, seen, self._draw)
        found = stand_in.of_mark(mark, reader)
        entries = self._encoded(found.parts)
        for entry in entries:
            entry.sources = (mark.at,)
            entry.position = self._kept[-1].turn.items[0].depth if self._kept else 0
        return entries, [Step(mark.kind, found.told, (mark.at,))]

    def _encoded(self, parts: list[Part]) -> list[Entry]:
        """A user message of these parts."""
        if len(parts) == 1:
            return [self.shape.message("user", [self.shape.text(text_of(parts), "user")])]
        natives = self.codecs(self.shape.name).encode("user", parts)
        return [self.shape.open(native) for native in natives]

    def _total(self, request: Request) -> int:
        assert self._meter is not None
        counted = self._system_tokens + self._meter.entries(request.entries)
        return scaled(counted, self._factor) + self._beside(request)

    def _beside(self, request: Request) -> int:
        """What the newest report counts more (or less) than we do for the same messages:
        definitions of tools, and what our estimate is off by. Only a whole path can tell."""
        reports = self._reports
        if reports is None or reports.anchor is None or not self._is_anchored:
            return 0
        if not self._is_whole:
            return self._overhead
        at, report = reports.anchor
        assert self._meter is not None
        order = [i for k in reversed(self._kept) for i in k.turn.ids]
        known = set(order[: order.index(at) + 1])
        ours = [e for e in request.entries if not known.isdisjoint(e.sources)]
        guess = scaled(self._system_tokens + self._meter.entries(ours), self._factor)
        told = report.input + report.output
        beside = told - guess if told * 2 >= guess else 0
        self._overhead = max(0, beside)
        return beside

    @property
    def _is_whole(self) -> bool:
        return not (self._is_full or self._reader.is_cut)

    def _over(self, request: Request, total: int) -> tuple[int, int, str] | None:
        """(needed, budget, unit) of what the request exceeds; None when it fits."""
        budget = self.budget
        if budget.tokens is not None and total > budget.tokens:
            return total, budget.tokens, "tokens"
        if budget.bytes is not None:
            size = limits.bytes_of(request.entries, self.shape)
            if size > budget.bytes:
                return size, budget.bytes, "bytes"
        return None

    def _let_go(self, needed: int, budget: int, unit: str) -> None:
        """Leave out the oldest turns, as many as are over; BudgetTooSmall when the newest
        is the last."""
        if len(self._kept) <= 1:
            raise BudgetTooSmall(needed, budget, unit=unit)
        excess = needed - budget
        while excess > 0 and len(self._kept) > 1:
            gone = self._kept.pop()
            if unit == "tokens":
                excess -= max(1, scaled(gone.tokens, self._factor))
            else:
                excess -= max(1, limits.bytes_of(gone.entries, self.shape))
            self._is_full, self._passed = True, gone.turn.ids[-1]
            self._pin_from(gone.turn)
        self._pins.sort(key=lambda kept: kept.turn.items[0].depth)

    # --- The result -----------------------------------------------------------------------

    def _window(self, request: Request, total: int) -> Window:
        ready, why = self._readiness(request)
        dropped = self._dropped()
        entries = request.entries
        messages = [
            entry.native if entry.native is not None else self.shape.close(entry)
            for entry in entries
        ]
        sources = {i for entry in entries for i in entry.sources}
        ordered = [i for k in [*self._pins, *self._kept[::-1]] for i in k.turn.ids]
        return Window(
            target=self.shape.name,
            messages=messages,
            system=self.system,
            ids=tuple(i for i in ordered if i in sources),
            dropped=dropped,
            tokens=total,
            steps=[*self._mark_steps(dropped), *request.steps],
            complete=self._is_whole,
            ready=ready,
            why=why,
            budget=self.budget,
        )

    def _readiness(self, request: Request) -> tuple[bool, str]:
        newest = self._reader.newest
        if newest is None or not request.entries:
            return False, "the path has no message to answer"
        if newest.role == "assistant" and not newest.open_calls:
            return False, "the path ends with the assistant's answer: nothing waits for one"
        waiting = self._waiting()
        if waiting:
            names = ", ".join(waiting)
            return False, f"calls wait for their results ({names}); placeholders stand for them"
        if newest.role == "assistant" or request.entries[-1].sender == "assistant":
            return False, "what is sent ends with the assistant's message"
        return True, ""

    def _waiting(self) -> list[str]:
        """Calls of the path's last step that have no result yet."""
        entries = self._kept[0].entries if self._kept else []
        end = len(entries)
        while end and entries[end - 1].kinds == frozenset({"result"}):
            end -= 1
        start = end
        while start and entries[start - 1].sender == "assistant":
            start -= 1
        answers = match(entries).answers
        calls = [call for entry in entries[start:end] for call in entry.calls]
        return [call.name or call.id for call in calls if call not in answers]

    def _dropped(self) -> Dropped:
        if self._is_whole or not self._kept:
            return Dropped()
        first = self._kept[-1].turn.items[0]
        pinned = sum(len(k.turn.items) for k in self._pins)
        system = self.system_item is not None and self.system_item.depth < first.depth
        count = first.depth - pinned - system
        by_mark = not self._is_full
        why = "a cut or a summary on the path" if by_mark else "the budget"
        return Dropped(max(0, count), self._passed, why)

    def _mark_steps(self, dropped: Dropped) -> list[Step]:
        steps: list[Step] = []
        if dropped.count:
            what = f"{dropped.count} message(s) before the first were left out: {dropped.why}"
            steps.append(Step("cut", what, data={"count": dropped.count}))
        if self._pins:
            ids = tuple(i for k in self._pins for i in k.turn.ids)
            steps.append(Step("pinned", f"{len(ids)} pinned message(s) were kept in place", ids))
        return steps + self._edit_steps()

    def _edit_steps(self) -> list[Step]:
        """What marks put words in the place of."""
        elided: set[int] = set()
        bare = False
        for kept in self._kept:
            bare = bare or any(edits.drops_images for edits in kept.turn.edits)
            for entry in kept.entries:
                if entry.native is None and marks.has_elided(entry, self.shape):
                    elided.update(entry.sources)
        steps: list[Step] = []
        if elided:
            what = f"results in {len(elided)} message(s) were elided, as a mark says"
            steps.append(Step("elide", what, tuple(sorted(elided))))
        if bare:
            steps.append(Step("images", "old images were named in words, as a mark says"))
        return steps


def _refuse_nonsense(
    thinking: object, model: object, count: object, exact: object, tools: object
) -> None:
    """WindowError, before anything is read."""
    if thinking not in ("auto", "keep", "drop"):
        raise WindowError(f"thinking is {shown(thinking)}", hint="one of auto, keep, drop")
    if not (model is None or isinstance(model, str)):
        raise WindowError(f"the model is {shown(model)}", hint="give its name, or None")
    if not (count is None or callable(count)):
        raise WindowError(f"count is {shown(count)}", hint="give a function of a message, or None")
    for name, value in (("exact", exact), ("tools", tools)):
        if not (value is None or isinstance(value, bool)):
            raise WindowError(f"{name} is {shown(value)}", hint="one of True, False, None")


def plan(path: Iterable[Item], target: str, codecs: Codecs, **options: Any) -> Window:
    """The window of a path that is at hand, newest message first. See ``Planner``."""
    planner = Planner(target, codecs, **options)
    for item in path:
        if not planner.feed(item):
            break
    return planner.finish()
