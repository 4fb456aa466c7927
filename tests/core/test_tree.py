"""The skeleton: order, ways through it, and what it does with damaged rows."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessiontree.core.tree import Node, SkeletonRow, Tree
from sessiontree.errors import MessageNotFound, StoreCorrupt


def row(message_id: int, parent_id: int | None, **other: Any) -> SkeletonRow:
    values = {"role": "user", "preview": f"m{message_id}", "depth": 0, "open_calls": 0}
    values |= {"tokens": 1, "created_at": message_id, **other}
    return (message_id, parent_id, *values.values())  # type: ignore[return-value]


def tree_of(edges: dict[int, int | None], head: int | None = None, **other: Any) -> Tree:
    return Tree.build([row(*edge) for edge in edges.items()], head, **other)


def ids(nodes: list[Node]) -> list[int]:
    return [node.id for node in nodes]


#        1
#      / | \
#     2  3  4
#     |  |\
#     5  6 7
BUSH = {1: None, 2: 1, 3: 1, 4: 1, 5: 2, 6: 3, 7: 3}


@st.composite
def edges(draw: st.DrawFn) -> dict[int, int | None]:
    """Random trees, with some roots more than one, and gaps between the ids."""
    gaps = draw(st.lists(st.integers(1, 3), max_size=40))
    found: dict[int, int | None] = {}
    at = 0
    for gap in gaps:
        at += gap
        parent = draw(st.sampled_from([None, *found])) if found else None
        found[at] = parent
    return found


trees = edges().flatmap(lambda e: st.tuples(st.just(e), st.sampled_from([None, *e])))


def path_in(edges: dict[int, int | None], at: int | None) -> list[int]:
    path: list[int] = []
    while at is not None:
        path.insert(0, at)
        at = edges[at]
    return path


def test_without_a_head_siblings_are_displayed_oldest_first():
    assert ids(tree_of(BUSH).nodes) == [1, 2, 5, 3, 6, 7, 4]


def test_the_branch_of_the_head_is_displayed_first_at_every_branch_point():
    assert ids(tree_of(BUSH, head=7).nodes) == [1, 3, 7, 6, 2, 5, 4]


def test_siblings_are_oldest_first_wherever_the_head_is():
    for head in BUSH:
        tree = tree_of(BUSH, head)
        assert ids(tree.siblings(3)) == ids(tree.children(1)) == [2, 3, 4]
        assert tree.node(1).children == (2, 3, 4)


def test_the_path_without_a_message_is_that_of_the_head():
    assert ids(tree_of(BUSH, head=6).path()) == [1, 3, 6]
    assert tree_of(BUSH).path() == []


def test_leaves_are_in_display_order():
    assert ids(tree_of(BUSH, head=4).leaves()) == [4, 5, 6, 7]


def test_roots_have_each_other_as_siblings():
    tree = tree_of({1: None, 2: None, 3: 1})
    assert ids(tree.roots) == ids(tree.siblings(2)) == [1, 2]


def test_an_ancestor_is_its_own_common_ancestor():
    tree = tree_of(BUSH)
    assert tree.common_ancestor(6, 3) == tree.common_ancestor(3, 6) == tree.node(3)
    assert tree.common_ancestor(6, 6) == tree.node(6)


def test_messages_of_different_roots_have_no_common_ancestor():
    assert tree_of({1: None, 2: None}).common_ancestor(1, 2) is None


def test_an_empty_conversation_is_a_tree():
    tree = Tree.build([])
    assert (len(tree), tree.nodes, tree.roots, tree.leaves(), tree.path()) == (0, [], [], [], [])


def test_a_node_holds_its_row_and_its_labels():
    given_row = row(2, 1, role="assistant", depth=1, open_calls=1, tokens=9, created_at=5)
    tree = Tree.build([row(1, None), given_row], 2, {2: ["start", "here"]})
    node = tree.node(2)
    assert node == Node(*given_row, labels=("start", "here"), children=())
    assert not node.is_boundary
    assert tree.node(1).is_boundary
    assert 2 in tree
    assert 3 not in tree


@pytest.mark.parametrize(
    "ask",
    [
        lambda tree: tree.node(99),
        lambda tree: tree.path(99),
        lambda tree: tree.children(99),
        lambda tree: tree.siblings(99),
        lambda tree: tree.common_ancestor(1, 99),
        lambda tree: tree.common_ancestor(99, 1),
    ],
)
def test_an_unknown_message_is_not_found(ask: Callable[[Tree], object]):
    with pytest.raises(MessageNotFound, match="conversation 7 has no message 99"):
        ask(tree_of(BUSH, conversation_id=7))


@pytest.mark.parametrize(
    ("edges", "head", "why"),
    [
        ({1: None, 2: 9}, None, "messages 2 follow messages that are not there: 9"),
        ({1: None}, 5, "head is on message 5"),
        ({1: 1}, None, r"in a circle: 1 \("),
        ({1: None, 2: 4, 3: 2, 4: 3}, None, r"in a circle: [234], [234], [234] \("),
        ({1: 2, 2: 1, 3: 2}, 3, r"in a circle: [12], [12] \("),
    ],
)
def test_damaged_rows_are_refused_by_name(edges: dict[int, int | None], head: int | None, why: str):
    with pytest.raises(StoreCorrupt, match=why):
        tree_of(edges, head)


def test_a_message_given_twice_is_refused():
    with pytest.raises(StoreCorrupt, match="more than once: 2"):
        Tree.build([row(1, None), row(2, 1), row(2, None)])


def test_an_error_names_some_of_many_ids():
    with pytest.raises(StoreCorrupt, match=r"messages 1, 2, 3, 4, 5 and 95 more follow"):
        tree_of(dict.fromkeys(range(1, 101), 1000))


def test_a_parent_may_have_a_newer_id():
    assert ids(tree_of({1: 3, 2: 1, 3: None}, head=2).path()) == [3, 1, 2]


def test_a_long_chain_is_no_deeper_than_one_of_ten():
    length = 300_000
    tree = Tree.build(
        ((i, i - 1 or None, "user", "", i, 0, 0, 0) for i in range(1, length + 1)), length
    )
    assert len(tree.path_ids()) == length
    assert [leaf.id for leaf in tree.leaves()] == [length]
    assert tree.common_ancestor(length, 1) == tree.node(1)


@given(trees)
def test_display_order_is_depth_first_with_the_heads_path_unbroken_at_the_top(
    sample: tuple[dict[int, int | None], int | None],
):
    edges, head = sample
    tree = tree_of(edges, head)
    order = ids(tree.nodes)
    assert sorted(order) == sorted(edges)
    place = {message_id: i for i, message_id in enumerate(order)}
    for message_id, parent in edges.items():
        assert parent is None or place[parent] < place[message_id]
    for message_id in edges:  # what descends from a message stands right after it
        below = [i for i in edges if message_id in path_in(edges, i)]
        start = place[message_id]
        assert set(order[start : start + len(below)]) == set(below)
    assert order[: len(path_in(edges, head))] == path_in(edges, head)


@given(trees)
def test_every_way_through_the_tree_agrees_with_the_parents(
    sample: tuple[dict[int, int | None], int | None],
):
    edges, head = sample
    tree = tree_of(edges, head)
    for message_id, parent in edges.items():
        assert ids(tree.path(message_id)) == path_in(edges, message_id)
        assert ids(tree.siblings(message_id)) == [i for i in edges if edges[i] == parent]
        assert ids(tree.children(message_id)) == [i for i in edges if edges[i] == message_id]
    assert set(ids(tree.leaves())) == set(edges) - set(edges.values())
    for a in list(edges)[:6]:
        for b in list(edges)[-6:]:
            both = [i for i in path_in(edges, a) if i in path_in(edges, b)]
            ancestor = tree.common_ancestor(a, b)
            assert (ancestor and ancestor.id) == (both[-1] if both else None)


@given(edges(), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(
    edges: dict[int, int | None], shuffle: random.Random
):
    rows = [row(*edge) for edge in edges.items()]
    expected = Tree.build(rows).nodes
    shuffle.shuffle(rows)
    assert Tree.build(rows).nodes == expected


@given(st.dictionaries(st.integers(1, 12), st.none() | st.integers(1, 12), max_size=12))
def test_any_parents_make_a_tree_or_a_named_error(edges: dict[int, int | None]):
    def ends(at: int | None) -> bool:
        for _ in range(len(edges) + 1):
            if at is None:
                return True
            at = edges.get(at, at)
        return False

    sound = all(parent is None or parent in edges for parent in edges.values())
    if sound and all(ends(at) for at in edges):
        assert len(tree_of(edges).nodes) == len(edges)
    else:
        with pytest.raises(StoreCorrupt):
            tree_of(edges)
