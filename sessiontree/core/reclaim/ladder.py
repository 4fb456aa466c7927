"""The ladder: the cheapest reclaim first, until the window fits.

    elide       costs nothing, loses old output that can be had again
    images      costs nothing, loses old pictures
    snapshot    costs nothing, keeps the words: only where the model is known to see images,
                and where pages of print cost less than the text
    summary     costs a call of a model, keeps the meaning
    extract     costs nothing, keeps sentences that word lists find
    cut         costs nothing, loses the meaning: only where nothing else is to be had

A rung that does not make the window smaller is refused, and the next is tried.
"""

from __future__ import annotations

from collections.abc import Collection, Generator
from dataclasses import dataclass, field

from sessiontree.core.defaults import PROTECT, SAVE, THRESHOLD
from sessiontree.core.reclaim import cut, elide, images, middle, summary
from sessiontree.core.reclaim.sight import Proposal, Refused, Sight
from sessiontree.core.reclaim.summary import Ask
from sessiontree.errors import WindowError, shown

SUMMARIES = 4
"""How often a summary is asked for at most: each stands for the turns that one request
holds, and for the summary before."""


@dataclass(slots=True)
class Climb:
    """What came of climbing: the marks to append, in order, and what was refused."""

    proposals: list[Proposal] = field(default_factory=list[Proposal])
    refused: list[Refused] = field(default_factory=list[Refused])
    before: int = 0
    """Tokens of the window at first, by the provider's report where there is one."""
    after: int = 0
    goal: int = 0

    @property
    def fits(self) -> bool:
        return self.after <= self.goal


Climbing = Generator[Ask, str, Climb]


def climb(
    sight: Sight,
    budget: int,
    *,
    threshold: float = THRESHOLD,
    spared: Collection[str] = (),
    can_summarise: bool = False,
) -> Climbing:
    """Climb until the window costs at most ``threshold`` of ``budget`` tokens.

    A generator, so that it waits for nothing itself: it yields an ``Ask`` when it wants a
    summary (only with ``can_summarise``), is sent the answer, and returns a ``Climb``.

    WindowError: a threshold that is none. ReclaimRefused: an answer that is no summary, or
    no smaller than what it stands for.
    """
    require_threshold(threshold)
    found = Climb(goal=max(1, int(budget * threshold)))
    found.before = found.after = sight.window().tokens
    for rung in (_elide, _images, _snapshot):
        if not found.fits:
            sight = _take(found, sight, rung(sight, found.goal, spared))
    for _ in range(SUMMARIES if can_summarise else 0):
        if not found.fits:
            sight = yield from _summarise(found, sight, budget)
    for rung in (_extract, _cut):
        if not found.fits:
            sight = _take(found, sight, rung(sight, found.goal, spared))
    return found


def require_threshold(value: object) -> None:
    """WindowError for what is no share of a budget."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise WindowError(f"a threshold of {shown(value)} is none", hint="above 0, at most 1")


def _take(found: Climb, sight: Sight, result: Proposal | Refused) -> Sight:
    """The path under the mark, when it was proposed."""
    if isinstance(result, Refused):
        found.refused.append(result)
        return sight
    found.proposals.append(result)
    found.after -= result.saves
    return sight.under(result.mark, result.ref_id)


def _elide(sight: Sight, goal: int, spared: Collection[str]) -> Proposal | Refused:
    """With small budgets the defaults would protect everything."""
    protect, save = min(PROTECT, goal // 2), min(SAVE, goal // 10)
    return elide.plan(sight, protect=protect, save=save, spared=spared)


def _images(sight: Sight, goal: int, spared: Collection[str]) -> Proposal | Refused:
    return images.plan(sight)


def _snapshot(sight: Sight, goal: int, spared: Collection[str]) -> Proposal | Refused:
    """Fewer of the newest turns as they are, until they and the pages fit. Pages that do not
    are refused: no later rung but a summary could make them fewer."""
    best = middle.snapshot(sight, keep=_kept(goal), known=True)
    for share in (4, 8, 16):
        if isinstance(best, Refused) or best.after <= goal:
            break
        found = middle.snapshot(sight, keep=max(1, goal // share), known=True)
        if isinstance(found, Refused) or found.after >= best.after:
            break
        best = found
    if isinstance(best, Proposal) and best.after > goal:
        return Refused("snapshot", f"with its pages {best.after} tokens would be sent, not {goal}")
    return best


def _extract(sight: Sight, goal: int, spared: Collection[str]) -> Proposal | Refused:
    """An eighth of the goal is for the extract itself."""
    room = max(1, goal // 8)
    return middle.extract(sight, keep=goal - room, room=room)


def _cut(sight: Sight, goal: int, spared: Collection[str]) -> Proposal | Refused:
    return cut.plan(sight, keep=goal)


def _kept(goal: int) -> int:
    """Tokens of the newest turns that stay as they are."""
    return max(1, min(summary.KEEP, goal // 2))


def _summarise(found: Climb, sight: Sight, budget: int) -> Generator[Ask, str, Sight]:
    asked = summary.ask(sight, keep=_kept(found.goal), limit=budget)
    if isinstance(asked, Refused):
        found.refused.append(asked)
        return sight
    answer = yield asked
    return _take(found, sight, summary.accept(asked, answer, sight))
