"""Cutting: what comes before a turn is no longer sent. What stands for older turns stays."""

from __future__ import annotations

from sessiontree.core.reclaim.sight import Json, Proposal, Refused, Sight
from sessiontree.core.turns import Turn
from sessiontree.core.window import Budget
from sessiontree.errors import BudgetTooSmall


def plan(sight: Sight, *, keep: Budget | int) -> Proposal | Refused:
    """The mark that keeps the newest turns of at most ``keep`` tokens, the newest always."""
    first = first_kept(sight, keep)
    if first is None:
        return Refused("cut", all_fits(keep))
    standing = sight.standing
    mark: Json = {"role": "mark", "kind": "cut"} if standing is None else standing.native
    return sight.propose("cut", mark, first, "what comes before is no longer sent")


def all_fits(keep: Budget | int) -> str:
    """Why there is nothing to leave out."""
    room = f"{keep} tokens"
    if isinstance(keep, Budget):
        most = keep.messages
        room = f"{keep.tokens} tokens" if most is None else f"{most} messages"
    return f"all that is sent fits {room}, or is one turn"


def first_kept(sight: Sight, keep: Budget | int) -> int | None:
    """The first message of the newest turns that fit ``keep`` tokens, the newest always;
    None when these are all that is sent."""
    parted = old_turns(sight, keep)
    return None if parted is None else parted[0]


def old_turns(sight: Sight, keep: Budget | int) -> tuple[int, list[Turn]] | None:
    """The same, and the turns before it, oldest first."""
    turns = sight.turns()
    try:
        room = keep if isinstance(keep, Budget) else max(1, keep)
        window = sight.window(room, anchored=False)
    except BudgetTooSmall:
        kept = 1
    else:
        sent = set(window.ids)
        kept = next(
            (at for at, (turn, _) in enumerate(turns) if sent.isdisjoint(turn.ids)), len(turns)
        )
    if kept >= len(turns):
        return None
    return turns[kept - 1][0].ids[0], [turn for turn, _ in reversed(turns[kept:])]
