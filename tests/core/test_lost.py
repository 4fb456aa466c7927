"""Where lost messages stood: told by what is left, and never guessed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sessiontree.core.lost import Bone, Places

SYSTEM = 1


def bone(
    at: int,
    parent: int | None,
    depth: int,
    *,
    open_calls: int = 0,
    system: int | None = SYSTEM,
) -> Bone:
    return Bone(at, parent, depth, open_calls, "user", system, None)


def parents(
    *bones: Bone,
    lost: Iterable[int] = (),
    came_from: Mapping[int, int | None] | None = None,
    known: Mapping[int, int | None] | None = None,
) -> dict[int, int | None]:
    by_id = {each.id: each for each in bones}
    return Places(by_id, lost, came_from or {}, known or {}).parents()


def test_a_lost_message_followed_the_only_one_of_the_depth_before():
    chain = [bone(1, None, 0), bone(2, 1, 1), bone(4, 3, 3)]
    assert parents(*chain, lost=[3]) == {3: 2}


def test_where_all_of_a_depth_are_gone_the_next_depth_that_is_there_is_taken():
    chain = [bone(1, None, 0), bone(5, 4, 4), bone(6, 5, 5)]
    assert parents(*chain, lost=[4]) == {4: 1}


def test_where_two_could_be_meant_none_is_taken():
    tree = [bone(1, None, 0), bone(2, 1, 1), bone(3, 1, 1), bone(5, 4, 3)]
    assert parents(*tree, lost=[4]) == {4: None}


def test_the_system_prompt_tells_two_branches_apart():
    tree = [bone(1, None, 0), bone(2, 1, 1), bone(3, 1, 1, system=3), bone(5, 4, 3, system=3)]
    assert parents(*tree, lost=[4]) == {4: 3}


def test_a_half_step_was_followed_by_what_is_lost():
    """Only whole steps are saved: something did come after the open call."""
    tree = [bone(1, None, 0), bone(2, 1, 1), bone(3, 1, 1, open_calls=1), bone(5, 4, 3)]
    assert parents(*tree, lost=[4]) == {4: 3}
    assert parents(*tree[:3], lost=[4]) == {4: 3}


def test_a_lost_root_has_no_parent():
    assert parents(bone(2, 1, 1), bone(3, 2, 2), lost=[1]) == {1: None}


def test_a_lost_leaf_followed_what_the_head_came_from():
    tree = [bone(1, None, 0), bone(2, 1, 1), bone(3, 1, 1)]
    assert parents(*tree, lost=[4], came_from={4: 2}) == {4: 2}


def test_a_lost_leaf_followed_what_was_saved_with_it():
    """The head went from 1 to 4; 2 and 3 were saved in the same append."""
    chain = [bone(1, None, 0), bone(2, 1, 1), bone(3, 2, 2)]
    assert parents(*chain, lost=[4], came_from={4: 1}) == {4: 3}
    beside = [bone(1, None, 0), bone(2, 1, 1), bone(3, 1, 1)]
    assert parents(*beside, lost=[5], came_from={5: 1}) == {5: 1}


def test_of_a_leaf_that_nothing_else_speaks_of_nothing_is_known():
    assert parents(bone(1, None, 0), bone(2, 1, 1), lost=[9]) == {9: None}


def test_what_an_index_knows_goes_before_all_else():
    chain = [bone(1, None, 0), bone(2, 1, 1), bone(5, 4, 4)]
    assert parents(*chain, lost=[3, 4], known={3: 2, 4: 3}) == {3: 2, 4: 3}
    assert parents(*chain, lost=[4], known={4: 77}) == {4: 2}  # 77 is nowhere


def test_a_message_whose_parent_cannot_be_its_own_is_placed_by_its_depth():
    circle = [bone(1, None, 0), bone(2, 4, 1), bone(3, 2, 2), bone(4, 3, 3)]
    assert parents(*circle) == {2: 1}
    stranger = [bone(1, None, 0), bone(2, 1, 1), bone(3, 999, 2)]
    assert parents(*stranger) == {3: 2}


def test_a_sound_tree_has_nothing_to_place():
    assert parents(bone(1, None, 0), bone(2, 1, 1), bone(3, 1, 1)) == {}
