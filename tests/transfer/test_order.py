"""The display order in little memory is that of the tree."""

from __future__ import annotations

import random
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from sessiontree.core.tree import SkeletonRow, Tree
from sessiontree.transfer.order import RUN, Order


def tree_of(parents: list[int | None], head: int | None) -> Tree:
    """Messages with ids 3, 6, 9, …, of which each follows the one at this index before it."""
    rows: list[SkeletonRow] = []
    for at, parent in enumerate(parents):
        above = None if parent is None else 3 * parent + 3
        depth = 0 if parent is None else rows[parent][4] + 1
        rows.append((3 * at + 3, above, "user", "", depth, 0, 0, 0))
    return Tree.build(rows, head)


def order_of(tree: Tree) -> Order:
    order = Order()
    for node in sorted(tree.nodes, key=lambda node: node.id):
        order.add(node.id, node.parent_id)
    order.see_head(tree.head)
    return order


def ids_of(order: Order, tree: Tree) -> list[int]:
    """The ids of all runs, each walked back from its last message."""
    found: list[int] = []
    for last, count in order.runs():
        assert 1 <= count <= RUN
        run: list[int] = []
        at: int | None = last
        for _ in range(count):
            assert at is not None
            run.append(at)
            at = tree.node(at).parent_id
        found += reversed(run)
    return found


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    size = draw(st.integers(0, 40))
    parents: list[int | None] = []
    for at in range(size):
        above = draw(st.integers(max(-1, at - 4), at - 1)) if at else -1
        parents.append(None if above < 0 else above)
    heads = [None, *(3 * at + 3 for at in range(size))]
    return tree_of(parents, draw(st.sampled_from(heads)))


@given(trees())
def test_runs_are_the_nodes_of_the_tree_in_its_order(tree: Tree):
    order = order_of(tree)
    nodes = [node.id for node in tree.nodes]
    assert ids_of(order, tree) == nodes
    assert len(order) == len(nodes)
    assert order.leaves() == len(tree.leaves())
    assert {at for at in nodes if order.is_on_path(at)} == tree.path_ids()
    assert all(at in order for at in nodes)
    assert not any(at + 1 in order for at in [0, *nodes])


def test_a_long_chain_is_read_in_runs_of_bounded_length():
    tree = tree_of([None, *range(3 * RUN)], 3)
    runs = list(order_of(tree).runs())
    assert [count for _, count in runs] == [RUN, RUN, RUN, 1]


def test_a_large_tree_costs_little_memory():
    chosen = random.Random(7)
    tracemalloc.start()
    order = Order()
    order.add(1, None)
    for at in range(2, 50_001):
        order.add(at, at - 1 if chosen.random() < 0.9 else chosen.randrange(1, at))
    order.see_head(50_000)
    count = sum(count for _, count in order.runs())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 50_000
    assert peak < 45 * 50_000
