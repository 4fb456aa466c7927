"""Dropping images: old ones become a line that names them."""

from __future__ import annotations

from sessiontree.core.reclaim.sight import Json, Proposal, Refused, Sight
from sessiontree.core.rules.images import inside_of


def plan(sight: Sight, *, keep: int = 0) -> Proposal | Refused:
    """The mark that drops all images before the newest turn, but for the newest ``keep``."""
    seen: list[int] = []
    for _, entries in sight.turns()[1:]:
        for entry in reversed(entries):
            seen += [entry.sources[-1]] * len(list(inside_of(entry, sight.shape)))
    old = seen[keep:]
    while keep and old and old[0] in seen[:keep]:  # of one message all are kept or none
        old = old[1:]
    if not old:
        return Refused("images", "there are no images before the newest turn")
    mark: Json = {"role": "mark", "kind": "images"}
    return sight.propose("images", mark, old[0], f"{len(old)} old image(s) are named in words")
