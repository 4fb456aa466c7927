"""Rows that stand beside the conversation, put onto its chain.

A snapshot, a title or a progress report has no place in the conversation, or one that
would make a branch or a leaf of it. It is kept all the same, so that an export gives every
row back: after the row that stands before it in the file, and before all that follows that.
Rows at the start of the file come before the roots.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence

from sessiontree.formats.skeleton import ROOT, Skeleton, ancestors_first, root_of
from sessiontree.formats.steps import Known


def insert(skeleton: Skeleton, parent: array[int], known: Mapping[int, Known]) -> None:
    """Change ``parent`` of such rows, and of what follows them; ``known`` rows stay."""
    after, on_top = _places(skeleton, parent)
    last: dict[int, int] = {}
    for above, beside in after.items():
        last[above] = _chain(parent, above, beside)
    for beside in on_top.values():
        _chain(parent, ROOT, beside)
    top = {topic: beside[-1] for topic, beside in on_top.items()}
    main = _main_sides(skeleton)
    for i, entry in enumerate(skeleton.entries):
        if not entry.is_inside or i in known:
            continue
        if parent[i] != ROOT:
            parent[i] = last.get(parent[i], parent[i])
        elif entry.side == main.get(skeleton.topic[i]):
            parent[i] = top.get(skeleton.topic[i], ROOT)


def _places(
    skeleton: Skeleton, parent: Sequence[int]
) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    """The rows beside, by the entry they come after; and those before all, by conversation."""
    after: dict[int, list[int]] = {}
    on_top: dict[int, list[int]] = {}
    root = root_of(parent, ancestors_first(parent))
    newest: dict[int, int] = {}
    for i, entry in enumerate(skeleton.entries):
        if entry.is_inside:
            newest[root[i]] = i
        elif entry.is_kept and parent[i] == ROOT:
            on_top.setdefault(skeleton.topic[i], []).append(i)
        elif entry.is_kept:
            place = newest.get(root[parent[i]], parent[i]) if entry.parent else parent[i]
            after.setdefault(place, []).append(i)
    return after, on_top


def _chain(parent: array[int], above: int, beside: Sequence[int]) -> int:
    for i in beside:
        parent[i] = above
        above = i
    return above


def _main_sides(skeleton: Skeleton) -> dict[int, str]:
    """The main chain of each conversation; the first sidechain where there is no other."""
    main: dict[int, str] = {}
    for i, entry in enumerate(skeleton.entries):
        if entry.is_inside and (not entry.side or skeleton.topic[i] not in main):
            main[skeleton.topic[i]] = entry.side
    return main
