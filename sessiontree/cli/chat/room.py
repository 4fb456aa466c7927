"""What is done when a request would be, or was, too large; each time in a line that says so.

All of it is the library's: budgets of windows, reclaims, and recovery from a refusal.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sessiontree.cli.chat.endpoint import EndpointError
from sessiontree.cli.wording import why_in_chat
from sessiontree.core.window import Budget, Window
from sessiontree.errors import BudgetTooSmall, ReclaimRefused

if TYPE_CHECKING:
    from sessiontree.cli.chat.loop import Session
    from sessiontree.conversation.windows import Reclaimed, Summarise
    from sessiontree.core.reclaim import Ask
    from sessiontree.core.recover import Recovery

    Reclaim = Callable[[Summarise | None], Awaitable[Reclaimed]]

TURN = 3
"""Messages that stay as they are at least when older ones are summarised, where the limit
lets them: the exchange before, and the prompt."""

_WORDS = {
    "elide": "old results of tools are a line each",
    "images": "old images are named in words",
    "snapshot": "pages of print stand for old turns",
    "summary": "a summary stands for old turns",
    "extract": "sentences of old turns stand for them",
    "cut": "old turns are no longer sent",
}

_STANDING = {
    "summary": "a summary stands",
    "snapshot": "pages stand",
    "extract": "an extract stands",
}


@dataclass(slots=True)
class Limits:
    """What a request may be. ``budget`` becomes smaller when a provider refuses one."""

    budget: Budget
    messages: int | None = None
    summarises: bool = False

    @property
    def for_window(self) -> Budget:
        """With a place kept for the summary, where there may be one."""
        most = self.messages
        if most is not None and self.summarises:
            most = max(1, most - 1)
        return replace(self.budget, messages=most)

    @property
    def kept(self) -> Budget:
        """What stays as it is when the rest is summarised: about half, so that not every
        line asks for a summary."""
        most = self.for_window.messages or 1
        return Budget(messages=max(min(most, TURN), (self.messages or 1) // 2))


def told(done: Reclaimed) -> str:
    """What a reclaim did, in words."""
    did = "; ".join(_WORDS[mark.native["kind"]] for mark in done.marks)
    return f"{did}: about {done.before:,} tokens, now {done.after:,}"


async def make_room(session: Session) -> None:
    """Before a request: bring it within the limits by marks, as far as they are needed."""
    if session.is_stateless:
        return
    budget = session.limits.budget
    if budget.tokens is not None or budget.bytes is not None:
        await _reclaim(session)
    if session.limits.messages is not None and session.limits.summarises:
        await _summarise_old(session)


async def _reclaim(session: Session) -> None:
    """The ladder, with a summary among its rungs where one was asked for."""

    async def climb(summarise: Summarise | None) -> Reclaimed:
        return await session.reclaim("auto", budget=session.limits.budget, summarise=summarise)

    done = await _summarised(session, climb) if session.limits.summarises else None
    done = done or await climb(None)
    if done.marks:
        session.terminal.note(f"(made room: {told(done)}; /undo takes it back)")


async def _summarise_old(session: Session) -> None:
    """Have the messages that are too many summarised."""
    limits = session.limits
    window = await session.window(Budget(messages=limits.for_window.messages))
    if window.dropped.newest is None:
        return

    async def summarise(summary: Summarise | None) -> Reclaimed:
        return await session.reclaim(
            "summarise", keep=limits.kept, budget=limits.budget.tokens, summarise=summary
        )

    done = await _summarised(session, summarise)
    for refusal in done.refused if done else ():
        session.terminal.note(f"(no summary: {why_in_chat(refusal.why)})")


async def _summarised(session: Session, reclaim: Reclaim) -> Reclaimed | None:
    """Do a reclaim that asks the model. None when there is no summary to be had, which is
    told."""
    try:
        return await _asking(session, reclaim)
    except (EndpointError, ReclaimRefused) as error:
        session.terminal.refuse(f"no summary: {error}")
        return None


async def _asking(session: Session, reclaim: Reclaim) -> Reclaimed:
    """Do a reclaim that asks the model; again, while the provider refuses the request for the
    summary as too large and tells by how much: see ``Session.summary``."""
    while True:
        before = session.limits.budget
        try:
            return await reclaim(session.summary)
        except EndpointError:
            if session.limits.budget == before:
                raise


async def recover(session: Session, window: Window, error: EndpointError) -> bool:
    """After a refusal: marks that make the next request small enough, without a model. False
    when it was refused for something else; an error when no request is small enough."""
    if error.cause is None:
        return False
    found = window.recover(error.cause)
    if found and found.limit is not None and found.limit < 1:
        raise EndpointError(
            error.what,
            hint="the answer's share leaves no room for a prompt: lower --max-tokens",
            status=error.status,
            cause=error.cause,
        )
    done = await session.chat.recover(window, error.cause) if found else None
    if found is None or done is None:
        return False
    budget = found.as_budget(session.limits.budget)
    await _require_room(session, budget, done)
    session.limits.budget = budget
    did = told(done) if done.marks else "older turns are left out"
    session.terminal.note(f"(refused as {_how_large(found)}; {did}; asking again)")
    return True


async def _require_room(session: Session, budget: Budget, done: Reclaimed) -> None:
    """BudgetTooSmall when the marks did not help, for the prompt alone is too large: they are
    taken back then."""
    try:
        await session.window(replace(budget, messages=session.limits.messages))
    except BudgetTooSmall:
        if done.marks:
            await session.chat.undo()
        raise


def _how_large(found: Recovery) -> str:
    if found.over is None:
        return f"too large, by its {found.kind}"
    return f"too large: {found.actual:,} {found.kind} of {found.limit:,}"


async def left_out(session: Session, window: Window) -> str:
    """How much of the conversation a window does not send, and why; "" for none."""
    if window.complete or session.is_stateless:
        return ""
    tree = await session.chat.tree()  # without contents
    sent = set(window.ids)
    asked = (node for node in tree.path() if node.id < min(sent, default=0))
    count = sum(node.role not in ("mark", "system") for node in asked)
    if not count:
        return ""
    messages = f"{count:,} older message{'s' if count > 1 else ''}"
    standing = next((_STANDING[s.rule] for s in window.steps if s.rule in _STANDING), None)
    if standing is not None:
        return f"{standing} for {messages}"
    return f"{messages} not sent{_why(window, session.limits)}"


def _why(window: Window, limits: Limits) -> str:
    if window.dropped.newest is None:
        return ": they were cut"
    found = [f"--max-messages {limits.messages}"] if limits.messages is not None else []
    for unit in ("tokens", "bytes"):
        most = getattr(limits.budget, unit)
        found += [f"a budget of {most:,} {unit}"] if most is not None else []
    return f": {', '.join(found)}"


async def compact(session: Session, focus: str) -> Reclaimed:
    """Have all but the newest turn summarised; ``focus`` is what the summary is to keep above
    all."""
    from sessiontree.core.reclaim.summary import INSTRUCTIONS

    wish = f"{INSTRUCTIONS} Keep above all: {focus}" if focus else INSTRUCTIONS

    async def summarise(summary: Summarise | None) -> Reclaimed:
        budget = session.limits.budget.tokens
        return await session.reclaim(
            "summarise", keep=1, budget=budget, summarise=summary, instructions=wish
        )

    return await _asking(session, summarise)


def in_words(asked: Ask, spent: object) -> str:
    """A summary that was made, and what it cost."""
    turns = f"{asked.turns:,} turn{'s' if asked.turns > 1 else ''}"
    return f"(summarised {turns}: {spent})"
