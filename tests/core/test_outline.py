"""Rows of a tree: chains, rails, siblings, folding, filtering."""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sessiontree.core.outline import Row, outline
from sessiontree.core.tree import Node, SkeletonRow, Tree

Edges = dict[int, int | None]


def tree_of(edges: Edges, head: int | None = None) -> Tree:
    rows: list[SkeletonRow] = [(i, p, "user", "", 0, 0, 0, 0) for i, p in edges.items()]
    return Tree.build(rows, head)


def drawn(
    edges: Edges,
    head: int | None = None,
    *,
    show: Callable[[Node], bool] | None = None,
    folded: Collection[int] = (),
    rail_levels: int = 20,
) -> str:
    rows = outline(tree_of(edges, head), show=show, folded=folded, rail_levels=rail_levels)
    return "\n".join(_line(row) for row in rows)


def _line(row: Row) -> str:
    place = f" {row.index}/{row.count}" if row.count > 1 else ""
    head = " <" if row.is_head else ""
    hidden = f" +{row.hidden}" if row.hidden else ""
    return f"{row.rail}{row.node.id}{place}{head}{hidden}"


def text(*lines: str) -> str:
    return "\n".join(lines)


BUSH: Edges = {1: None, 2: 1, 3: 1, 4: 1, 5: 2, 6: 3, 7: 3, 8: 7}


@st.composite
def samples(draw: st.DrawFn) -> tuple[Edges, int | None, set[int], set[int]]:
    """Random edges, a head, the ids that are shown, the ids that are folded."""
    edges: Edges = {}
    for at in range(1, draw(st.integers(0, 40)) + 1):
        edges[at] = draw(st.sampled_from([None, *edges])) if edges else None
    head = draw(st.sampled_from([None, *edges]))
    some = st.sets(st.sampled_from(list(edges))) if edges else st.just(set[int]())
    return edges, head, draw(some), draw(some)


def ancestors(edges: Edges, at: int | None) -> list[int]:
    """From the parent up."""
    found: list[int] = []
    while at is not None and (at := edges[at]) is not None:
        found.append(at)
    return found


def test_a_chain_stays_flat():
    assert drawn({1: None, 2: 1, 3: 2}, head=3) == text("1", "2", "3 <")


def test_what_follows_a_branch_point_is_indented_with_the_heads_branch_first():
    assert drawn(BUSH, head=8) == text(
        "1",
        "├ 3 2/3",
        "│ ├ 7 2/2",
        "│ │ 8 <",
        "│ └ 6 1/2",
        "├ 2 1/3",
        "│ 5",
        "└ 4 3/3",
    )


def test_more_than_one_root_is_a_branch_point_before_the_first_message():
    assert drawn({1: None, 2: None, 3: 1}, head=2) == text("├ 2 2/2 <", "└ 1 1/2", "  3")


def test_a_folded_message_hides_what_follows_it_and_says_how_much():
    assert drawn(BUSH, head=4, folded={3}) == text("1", "├ 4 3/3 <", "├ 2 1/3", "│ 5", "└ 3 2/3 +3")


def test_a_fold_inside_a_fold_counts_once():
    assert drawn(BUSH, folded={1, 3}) == "1 +7"


def test_a_folded_leaf_hides_nothing():
    assert drawn({1: None, 2: 1}, folded={2}) == text("1", "2")


def test_hidden_messages_hand_their_descendants_to_the_nearest_shown_ancestor():
    assert drawn(BUSH, show=lambda node: node.id not in {2, 3}) == text(
        "1", "├ 5 2/4", "├ 6 3/4", "├ 7 4/4", "│ 8", "└ 4 1/4"
    )


def test_hiding_all_but_one_sibling_leaves_a_chain():
    assert drawn(BUSH, show=lambda node: node.id in {1, 3, 6}) == text("1", "3", "6")


def test_a_fold_on_a_message_that_is_not_shown_hides_nothing():
    assert drawn({1: None, 2: 1, 3: 2}, show=lambda node: node.id != 2, folded={2}) == text(
        "1", "3"
    )


def test_a_fold_counts_shown_rows_only():
    assert drawn(BUSH, show=lambda node: node.id != 7, folded={3}) == text(
        "1", "├ 2 1/3", "│ 5", "├ 3 2/3 +2", "└ 4 3/3"
    )


def test_an_empty_tree_has_no_rows():
    assert drawn({}) == ""


def test_rows_off_the_path_of_the_head_are_told_apart():
    rows = list(outline(tree_of(BUSH, head=3)))
    assert {row.node.id for row in rows if row.on_path} == {1, 3}
    assert [row.node.id for row in rows if row.is_head] == [3]


def test_a_rail_draws_the_innermost_levels_behind_a_mark():
    comb: Edges = {1: None, 2: 1, 3: 1, 4: 3, 5: 3, 6: 5, 7: 5}
    assert drawn(comb, head=7, rail_levels=2) == text(
        "1", "├ 3 2/2", "│ ├ 5 2/2", "… │ ├ 7 2/2 <", "… │ └ 6 1/2", "│ └ 4 1/2", "└ 2 1/2"
    )
    assert drawn(comb, head=7, rail_levels=0).splitlines()[:3] == ["1", "… 3 2/2", "… 5 2/2"]


def test_a_hundred_thousand_nested_branch_points_stay_small():
    edges: Edges = {1: None}
    for at in range(2, 200_000, 2):
        edges[at] = edges[at + 1] = max(1, at - 1)
    deepest = max(outline(tree_of(edges, head=max(edges))), key=lambda row: row.level)
    assert deepest.level == 99_999
    assert len(deepest.rail) == 42


def test_a_chain_of_a_hundred_thousand_can_be_filtered_and_folded():
    edges: Edges = {at: at - 1 or None for at in range(1, 100_001)}
    rows = list(outline(tree_of(edges), show=lambda node: node.id % 2 == 0, folded={50_000}))
    assert len(rows) == 25_000
    assert rows[-1].hidden == 25_000


@given(samples())
def test_each_shown_message_is_one_row_or_under_one_fold(
    sample: tuple[Edges, int | None, set[int], set[int]],
):
    edges, head, shown, folded = sample
    tree = tree_of(edges, head)
    rows = list(outline(tree, show=lambda node: node.id in shown, folded=folded))
    found = [row.node.id for row in rows]
    closed = shown & folded
    assert found == [
        node.id
        for node in tree.nodes
        if node.id in shown and not closed & set(ancestors(edges, node.id))
    ]
    assert len(found) + sum(row.hidden for row in rows) == len(shown)
    for row in rows:
        below = [i for i in shown if row.node.id in ancestors(edges, i)]
        assert row.hidden == (len(below) if row.node.id in folded else 0)


@given(samples())
def test_levels_and_places_are_those_of_the_shown_tree(
    sample: tuple[Edges, int | None, set[int], set[int]],
):
    edges, head, shown, _ = sample

    def above(at: int) -> int | None:
        return next((i for i in ancestors(edges, at) if i in shown), None)

    def siblings(at: int) -> list[int]:
        return [i for i in sorted(shown) if above(i) == above(at)]

    def level(at: int) -> int:
        parent = above(at)
        outer = level(parent) if parent is not None else 0
        return outer + (len(siblings(at)) > 1)

    for row in outline(tree_of(edges, head), show=lambda node: node.id in shown):
        at = row.node.id
        assert (row.index, row.count) == (siblings(at).index(at) + 1, len(siblings(at)))
        assert row.level == level(at)
        assert len(row.rail) == 2 * min(row.level, 20) + 2 * (row.level > 20)


@given(samples())
def test_rails_connect(sample: tuple[Edges, int | None, set[int], set[int]]):
    """A rail that goes on downwards meets another rail in the next row; one that comes
    from above had one above it; and every branch drawn ends in a last one."""
    edges, head, shown, folded = sample
    rows = list(outline(tree_of(edges, head), show=lambda n: n.id in shown, folded=folded))
    for upper, lower in pairwise([*(row.rail for row in rows), ""]):
        for column in range(0, max(len(upper), len(lower)), 2):
            goes_down = upper[column : column + 1] in {"├", "│"}
            comes_down = lower[column : column + 1] in {"│", "└"}
            assert not goes_down or lower[column : column + 1] in {"├", "│", "└"}
            assert not comes_down or goes_down


@given(samples())
def test_moving_the_head_renumbers_nothing(
    sample: tuple[Edges, int | None, set[int], set[int]],
):
    edges, head, shown, _ = sample
    places = [
        {
            row.node.id: (row.index, row.count, row.level)
            for row in outline(tree_of(edges, at), show=lambda node: node.id in shown)
        }
        for at in (None, head)
    ]
    assert places[0] == places[1]
