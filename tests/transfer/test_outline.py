"""The outline in little memory says of each message what the outline of a tree says."""

from __future__ import annotations

import random
import sys

from hypothesis import given
from hypothesis import strategies as st

from sessiontree.core.outline import outline
from sessiontree.core.tree import SkeletonRow, Tree
from sessiontree.transfer.outline import Outline


def tree_of(parents: list[int], head: int | None) -> Tree:
    """Messages with ids from 1, of which each follows the one at this index before it, or none."""
    rows: list[SkeletonRow] = []
    for at, parent in enumerate(parents):
        depth = 0 if parent < 0 else rows[parent][4] + 1
        rows.append((at + 1, None if parent < 0 else parent + 1, "user", "", depth, 0, 0, 0))
    return Tree.build(rows, head)


def outline_of(tree: Tree, shown: set[int]) -> Outline:
    made = Outline()
    for node in sorted(tree.nodes, key=lambda node: node.id):
        made.add(node.id, node.parent_id, node.id in shown)
    made.see_head(tree.head)
    return made


@st.composite
def trees(draw: st.DrawFn) -> tuple[Tree, set[int]]:
    size = draw(st.integers(0, 30))
    parents = [draw(st.integers(max(-1, at - 4), at - 1)) if at else -1 for at in range(size)]
    head = draw(st.sampled_from([None, *range(1, size + 1)]))
    hidden = draw(st.sets(st.integers(1, size))) if size else set[int]()
    return tree_of(parents, head), set(range(1, size + 1)) - hidden


@given(trees())
def test_every_place_is_that_of_the_row(drawn: tuple[Tree, set[int]]):
    tree, shown = drawn
    made = outline_of(tree, shown)
    rows = list(outline(tree, show=lambda node: node.id in shown))
    number = {row.node.id: at for at, row in enumerate(rows)}
    for at, row in enumerate(rows):
        place = made.place(row.node.id)
        assert place is not None
        assert (place.row, place.level) == (at, row.level)
        assert (place.sibling, place.siblings) == (row.index, row.count)
        assert (place.on_path, place.is_head) == (row.on_path, row.is_head)
        above = next((node.id for node in tree.path(row.node.id)[-2::-1] if node.id in shown), None)
        assert (place.above, place.row_above) == (above, number.get(above or 0, -1))
    assert all(made.place(node.id) is None for node in tree if node.id not in shown)
    assert made.head_row() == max((at for at, row in enumerate(rows) if row.on_path), default=-1)
    assert {node.id for node in tree if made.is_fork(node.id)} == {
        node.id for node in tree if len(node.children) > 1
    }


def test_a_message_of_a_long_tree_costs_some_bytes():
    made, count, choose = Outline(), 50_000, random.Random(7)
    for at in range(1, count + 1):
        made.add(at, choose.randrange(max(1, at - 3), at) if at > 1 else None, at % 3 > 0)
    made.see_head(count)
    held = {id(each): sys.getsizeof(each) for each in vars(made).values()}
    assert sum(held.values()) < 45 * count
