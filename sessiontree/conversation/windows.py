"""Windows and reclaims of a conversation: reads the path, newest first, for the planners of
core/, and appends the marks that they propose."""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import Any, Literal, Protocol, cast, get_args

from sessiontree import formats
from sessiontree.conversation import arguments
from sessiontree.conversation.anchor import Anchor, wrap
from sessiontree.conversation.shelf import copied
from sessiontree.core import rules
from sessiontree.core.marks import Item
from sessiontree.core.message import Message
from sessiontree.core.planner import Planner
from sessiontree.core.reclaim import (
    Ask,
    Climb,
    Proposal,
    Refused,
    Sight,
    climb,
    cut,
    draw,
    elide,
    images,
    middle,
    summary,
)
from sessiontree.core.reclaim.ladder import require_threshold
from sessiontree.core.recover import Recovery
from sessiontree.core.window import Budget, Window
from sessiontree.errors import BadArgument, WindowError, shown
from sessiontree.store import reads

ReclaimKind = Literal["auto", "elide", "images", "snapshot", "summarise", "extract", "cut"]
KINDS: tuple[str, ...] = get_args(ReclaimKind)
Summarise = Callable[[Ask], Awaitable[str] | str]
"""The caller's summariser: gets a request (``ask.window.request()``, or ``ask.text``), returns the
summary. Async; a plain function in scripts, where nothing else waits."""

FIRST_PAGE = 64
"""Messages read at first; each further page is twice as long."""
LONGEST_PAGE = 2_048
NEWS = 8
"""Messages read at first where an earlier window read the path: two turns, or so."""

PROVIDER_OF: Mapping[str, str] = {"claude_code": "anthropic", "pi": "anthropic"}
"""What a session of a program was sent to, where its messages do not say it themselves."""


class Going(Protocol):
    """A turn that goes on, blocking or not."""

    @property
    def head(self) -> int | None: ...
    @property
    def pending(self) -> list[Message]: ...


@dataclass(slots=True)
class Reclaimed:
    """What a reclaim did. Tokens are those of the window before and after."""

    marks: list[Message] = field(default_factory=list[Message])
    """The marks that were appended, oldest first; none when nothing was to be done."""
    refused: list[Refused] = field(default_factory=list[Refused])
    """What was tried and was not worth it."""
    before: int = 0
    after: int = 0


async def newest_first(
    anchor: Anchor, leaf: int | None, pending: Sequence[Message] = ()
) -> AsyncIterator[Message]:
    """The messages of a path from its end, read in pages that grow: a window costs what it
    sends, not what the conversation holds. What an earlier window read is at hand still, its
    newest page apart, which is always read. ``pending`` come after the leaf."""
    shelf = anchor.shelf
    page, size = [], NEWS if len(shelf) else FIRST_PAGE
    if leaf is not None:
        page = await anchor.backend.read(reads.path, anchor.id, leaf, size)
    depth = page[-1].depth if page else -1
    for place, message in reversed(list(enumerate(pending, 1))):
        row = message.row._replace(id=-place, depth=depth + place)
        yield wrap(row)
    while page:
        for row in reversed(page):
            yield shelf.take(row)
        parent = page[0].parent_id
        while parent is not None and (known := shelf.find(parent)) is not None:
            yield known
            parent = known.parent_id
        if parent is None:
            return
        size = min(max(2 * size, FIRST_PAGE), LONGEST_PAGE)
        page = await anchor.backend.read(reads.path, anchor.id, parent, size)


async def system_of(anchor: Anchor, leaf: int | None) -> Item | None:
    """The system prompt in force at ``leaf``."""
    row = await anchor.backend.read(reads.system_message, anchor.id, leaf)
    return wrap(row) if row else None


async def target_of(anchor: Anchor, leaf: int | None, target: str | None) -> str:
    """The provider that a window is for: as asked, else as the conversation or its newest
    message is written."""
    if target is not None:
        rules.shape_of(target if target.__class__ is str else shown(target))
        return target
    names = [anchor.info.format]
    if leaf is not None:
        rows = await anchor.backend.read(reads.path, anchor.id, leaf, FIRST_PAGE)
        names += [row.format for row in reversed(rows)]
    for name in names:
        provider = PROVIDER_OF.get(name or "", name)
        if provider in rules.PROVIDERS:
            return provider
    raise WindowError(
        f"conversation {anchor.id} does not tell which provider it is for",
        hint=f"name a target: {', '.join(rules.PROVIDERS)}",
    )


async def plan(
    anchor: Anchor,
    leaf: int | None,
    budget: Budget | int | None,
    target: str | None,
    pending: Sequence[Message] = (),
    **options: Any,
) -> Window:
    """The window of a path; reads no further back than it reaches, and renders only what the
    windows before it did not."""
    anchor.shelf.turn_over()
    planner = Planner(
        await target_of(anchor, leaf, target),
        formats.codec,
        budget=budget,
        system=await system_of(anchor, leaf),
        draw=draw,
        memory=anchor.shelf,
        **options,
    )
    async for item in newest_first(anchor, leaf, pending):
        planner.feed(item)
        if planner.is_done:
            await _jump(anchor, planner, leaf, item)
            break
    for absent in planner.missing:  # MessageNotFound where it is nowhere at all
        await anchor.backend.read(reads.message, anchor.id, absent)
    return _to_be_changed(planner.finish())


def _to_be_changed(window: Window) -> Window:
    """The window as its caller gets it. Callers add to what they send (a mark of a cache, a
    note): that must not be in the windows after it."""
    window.messages = list(map(copied, window.messages))
    window.system = copied(window.system)
    return window


async def _jump(anchor: Anchor, planner: Planner, leaf: int | None, last: Message) -> None:
    """Feed the steps that are pinned before ``last``, without reading what lies between."""
    start = last.parent_id if planner.unread is None else planner.unread
    if last.id < 0 or (start is not None and start < 0):  # in flight still
        start = leaf
    if start is None or not planner.missing:
        return
    wanted = planner.missing
    for step in await anchor.backend.read(reads.steps, anchor.id, start, wanted):
        planner.jump([wrap(row) for row in step])


async def sight(anchor: Anchor, leaf: int | None, target: str | None, **options: Any) -> Sight:
    """The path of ``leaf`` as reclaims see it: back to a cut or a summary in force."""
    provider = await target_of(anchor, leaf, target)
    system = await system_of(anchor, leaf)
    planner = Planner(provider, formats.codec, system=system, **options)
    items: list[Item] = []
    async for item in newest_first(anchor, leaf):
        items.append(item)
        if not planner.feed(item):
            break
    return Sight(items, provider, formats.codec, system=system, **options)


def pinned_ids(given: object, conversation: int) -> list[int]:
    """The ids that a caller pins. MessageNotFound for what is no id."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise BadArgument(f"pinned is {shown(given)}", hint="give a list of ids of messages")
    found = cast("Iterable[object]", given)
    return [arguments.message_id(each, conversation) for each in found]


@dataclass(frozen=True, slots=True)
class Wish:
    """What a caller of ``reclaim`` asked for; see there."""

    kind: ReclaimKind
    budget: Budget | int | None
    threshold: float
    keep: Budget | int | None
    protect: int
    save: int
    spared: Collection[str]
    summarise: Summarise | None
    instructions: str | None

    def __post_init__(self) -> None:
        """WindowError, BadArgument: before anything is read or asked."""
        if self.kind not in KINDS:
            raise WindowError(
                f"no reclaim is called {shown(self.kind)}", hint=f"one of {', '.join(KINDS)}"
            )
        require_threshold(self.threshold)
        room = Budget.of(self.budget)
        if self.kind == "auto" and room.tokens is None and room.bytes is None:
            raise WindowError(
                "reclaim 'auto' needs a budget", hint="say what has to fit: budget=100_000"
            )
        if self.kind == "summarise" and self.summarise is None:
            raise WindowError(
                "a summary needs a summariser",
                hint="pass summarise=an async function of the request",
            )
        if self.summarise is not None and not callable(self.summarise):
            raise BadArgument("summarise is no function", hint="pass an async function")
        for name in ("keep", "protect", "save"):
            if name != "keep" or not isinstance(self.keep, Budget):
                arguments.count(getattr(self, name), name)
        if self.instructions is not None:
            arguments.string(self.instructions, "instructions")
        names(self.spared, "spared")


def names(given: object, what: str) -> None:
    """BadArgument for what is no collection of strings."""
    if isinstance(given, str) or not isinstance(given, Collection):
        raise BadArgument(f"{what} is {shown(given)}", hint="give a list of names")
    for each in cast("Collection[object]", given):
        arguments.string(each, f"a name in {what}")


async def proposals(view: Sight, wish: Wish) -> Climb:
    """The marks that the wish comes to, not appended yet."""
    if wish.kind == "auto":
        return await _climbed(view, wish)
    found = Climb(before=view.tokens)
    result = await _single(view, wish)
    if isinstance(result, Refused):
        found.refused.append(result)
    else:
        found.proposals.append(result)
    found.after = found.before - sum(proposal.saves for proposal in found.proposals)
    return found


async def _single(view: Sight, wish: Wish) -> Proposal | Refused:
    if wish.kind == "elide":
        return elide.plan(view, protect=wish.protect, save=wish.save, spared=wish.spared)
    if wish.kind == "images":
        spared = wish.keep.images if isinstance(wish.keep, Budget) else wish.keep
        return images.plan(view, keep=spared or 0)
    keep = summary.KEEP if wish.keep is None else wish.keep
    if wish.kind == "cut":
        return cut.plan(view, keep=keep)
    if wish.kind == "snapshot":
        return middle.snapshot(view, keep=keep)
    if wish.kind == "extract":
        return middle.extract(view, keep=keep)
    asked = summary.ask(
        view,
        keep=keep,
        limit=Budget.of(wish.budget).tokens,
        instructions=wish.instructions or summary.INSTRUCTIONS,
    )
    if isinstance(asked, Refused):
        return asked
    return summary.accept(asked, await _answer(wish, asked), view)


async def _climbed(view: Sight, wish: Wish) -> Climb:
    """Climb the ladder by tokens, and then by bytes, where the budget has both."""
    room = Budget.of(wish.budget)
    found = Climb(before=view.tokens, after=view.tokens)
    if room.tokens is not None:
        found = await _climbed_by_tokens(view, wish, room.tokens)
    if room.bytes is not None:
        for proposal in found.proposals:
            view = view.under(proposal.mark, proposal.ref_id)
        lighter = _lighter(view, max(1, int(room.bytes * wish.threshold)), wish.spared)
        found.proposals += lighter.proposals
        found.refused += lighter.refused
        found.after = lighter.after if lighter.proposals else found.after
    return found


async def _climbed_by_tokens(view: Sight, wish: Wish, budget: int) -> Climb:
    """Climb the ladder, asking the caller's summariser where a summary is wanted."""
    climbing = climb(
        view,
        budget,
        threshold=wish.threshold,
        spared=wish.spared,
        can_summarise=wish.summarise is not None,
    )
    answer: str | None = None
    try:
        while True:
            asked = next(climbing) if answer is None else climbing.send(answer)
            answer = await _answer(wish, asked)
    except StopIteration as end:
        return end.value


async def _answer(wish: Wish, asked: Ask) -> str:
    """What the caller's summariser says."""
    assert wish.summarise is not None
    said = wish.summarise(asked)
    return await said if isawaitable(said) else said


def recovered(view: Sight, found: Recovery, spared: Collection[str]) -> Climb:
    """The marks that bring a window under what a provider would take; no model is asked."""
    if found.kind == "tokens":
        climbing = climb(view, found.budget, threshold=1.0, spared=spared)
        try:
            next(climbing)
        except StopIteration as end:
            return end.value
        raise AssertionError("the ladder asked for a summary that was not offered")
    return _lighter(view, found.budget, spared)


def _lighter(view: Sight, budget: int, spared: Collection[str]) -> Climb:
    """Bytes: images first, for they weigh most; then old results; then old turns, for which
    an extract stands where there is one. Pages would weigh more than their text."""
    climbed = Climb(before=view.tokens, after=view.tokens)

    def rung(result: Proposal | Refused) -> None:
        nonlocal view
        if isinstance(result, Refused):
            climbed.refused.append(result)
            return
        climbed.proposals.append(result)
        climbed.after -= result.saves
        view = view.under(result.mark, result.ref_id)

    if view.window().bytes > budget:
        rung(images.plan(view))
    if view.window().bytes > budget:
        rung(elide.plan(view, protect=0, save=0, spared=spared))
    keep = max(1, view.tokens * budget // max(1, view.window().bytes))
    if view.window().bytes > budget:
        room = max(1, keep // 8)
        rung(middle.extract(view, keep=max(1, keep - room), room=room))
    if view.window().bytes > budget:
        rung(cut.plan(view, keep=keep))
    return climbed
