"""A tree as the flat rows that every surface shows: terminal, web, export.

    user   Where is order LK-266415?
    assistant  It left on Monday.              a chain stays flat
    ├ user   And the other one?         1/2    what follows a branch point is indented,
    │ assistant  That one is lost.             the branch that holds the head first
    └ user   Thanks, close the ticket.  2/2

A row's ``level`` is the number of branch points above it. Its ``rail`` is the text that is
drawn left of it, two columns for each level. Each message is one row and is looked at a
fixed number of times, and a rail has a bounded length, so an outline costs the same per
row in a tree with 100,000 branch points as in a chain.

Filtering hides rows and keeps their descendants: these hang on the nearest ancestor that
is shown, and branch points, levels and "2/3" are those of what is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from sessiontree.core.tree import Node, Tree

RAIL_LEVELS = 20
"""Levels that a rail draws; of a deeper one, the innermost, behind a mark."""

BRANCH, LAST_BRANCH = "├ ", "└ "
PASSING, NOTHING = "│ ", "  "
DEEPER = "… "
"""Stands left of a rail whose outer levels are not drawn."""


@dataclass(slots=True)
class Row:
    """One line of an outline.

    ``index`` (from 1) and ``count``: it is sibling 2 of 3, oldest first wherever the head
    is; 1 of 1 when it has none. ``on_path``: the path of the head goes through it.
    ``hidden``: how many rows a fold hides below it, 0 when it is not folded.
    """

    node: Node
    level: int
    rail: str
    index: int
    count: int
    on_path: bool
    is_head: bool
    hidden: int


def outline(
    tree: Tree,
    *,
    show: Callable[[Node], bool] | None = None,
    folded: Collection[int] = (),
    rail_levels: int = RAIL_LEVELS,
) -> Iterator[Row]:
    """The rows of ``tree`` in display order.

    ``show`` says which messages have a row (by default all); those in ``folded`` hide
    what follows them. A folded message that is not shown hides nothing.
    """
    nodes = tree.nodes if show is None else [node for node in tree.nodes if show(node)]
    above = _shown_above(tree, nodes)
    siblings: dict[int | None, list[int]] = {}
    for node in nodes:
        siblings.setdefault(above[node.id], []).append(node.id)
    hidden = _hidden(nodes, above, folded)
    return _rows(tree, nodes, above, siblings, hidden, rail_levels)


def _shown_above(tree: Tree, nodes: list[Node]) -> dict[int, int | None]:
    """For each shown message, the nearest shown ancestor."""
    if len(nodes) == len(tree):
        return {node.id: node.parent_id for node in nodes}
    shown = {node.id for node in nodes}
    above: dict[int | None, int | None] = {None: None}
    for node in tree.nodes:  # a parent comes before its children
        parent = node.parent_id
        above[node.id] = parent if parent in shown else above[parent]
    return {node.id: above[node.id] for node in nodes}


def _hidden(
    nodes: list[Node], above: dict[int, int | None], folded: Collection[int]
) -> dict[int, int]:
    """For each folded message, how many shown messages descend from it."""
    if not folded:
        return {}
    below: dict[int | None, int] = {}
    for node in reversed(nodes):  # children before their parent
        parent = above[node.id]
        below[parent] = below.get(parent, 0) + 1 + below.get(node.id, 0)
    return {at: below[at] for at in folded if at in below}


def _rows(
    tree: Tree,
    nodes: list[Node],
    above: dict[int, int | None],
    siblings: dict[int | None, list[int]],
    hidden: dict[int, int],
    rail_levels: int,
) -> Iterator[Row]:
    on_path = tree.path_ids()
    places = _places(siblings)
    chains: dict[int | None, tuple[int, str]] = {None: (0, "")}  # level and rail of what follows
    at = 0
    while at < len(nodes):
        node = nodes[at]
        among = siblings[above[node.id]]
        level, rail = chains[above[node.id]]
        following = rail
        if len(among) > 1:
            level += 1
            is_last = node.id == among[-1]
            following = _bounded(rail + (NOTHING if is_last else PASSING), rail_levels)
            rail = _bounded(rail + (LAST_BRANCH if is_last else BRANCH), rail_levels)
        chains[node.id] = (level, following)
        below = hidden.get(node.id, 0)
        yield Row(
            node=node,
            level=level,
            rail=DEEPER + rail if level > rail_levels else rail,
            index=places.get(node.id, 1),
            count=len(among),
            on_path=node.id in on_path,
            is_head=node.id == tree.head,
            hidden=below,
        )
        at += 1 + below  # in display order, what descends from a message stands right after it


def _places(siblings: dict[int | None, list[int]]) -> dict[int, int]:
    """The index from 1 of each message that has siblings, oldest first."""
    return {
        message_id: place
        for among in siblings.values()
        if len(among) > 1
        for place, message_id in enumerate(sorted(among), 1)
    }


def _bounded(rail: str, rail_levels: int) -> str:
    """The innermost levels of a rail."""
    return rail[max(0, len(rail) - 2 * rail_levels) :]
