"""Calls and results of a file on the paths of its tree: parallel calls, open calls, orphans."""

from __future__ import annotations

import pytest
from planted import Planted, answer, read, result, row, user

from sessiontree.formats.planting import plan
from sessiontree.formats.skeleton import ROOT
from sessiontree.formats.steps import Known
from sessiontree.formats.transcript import Entry

PROMPT = user("u", None)


def planted(*rows: dict[str, object]) -> Planted:
    tree = Planted(list(rows))
    tree.check()
    return tree


# --- parallel calls ---------------------------------------------------------------------------


def test_a_step_that_is_a_chain_already_stays_as_it_is():
    tree = planted(
        PROMPT,
        answer("a", "u", "c1", of="m"),
        answer("b", "a", "c2", of="m"),
        result("r1", "b", "c1"),
        result("r2", "r1", "c2"),
        answer("next", "r2"),
    )
    assert tree.paths == ["u a b r1 r2 next"]
    assert tree.repairs == []


def test_a_result_beside_the_next_row_of_its_answer_is_put_on_the_chain():
    tree = planted(
        PROMPT,
        answer("a", "u", "c1", of="m"),
        answer("b", "a", "c2", of="m"),
        result("r1", "a", "c1"),
        result("r2", "b", "c2"),
        answer("next", "r2"),
    )
    assert tree.paths == ["u a b r1 r2 next"]
    assert tree.repairs == [
        "line 4: it is put after the row before it in its step, line 3",
        "line 5: it is put after the row before it in its step, line 4",
    ]


@pytest.mark.parametrize("after", ["r1", "r2", "a", "b"])
def test_whichever_row_of_a_spread_step_the_conversation_goes_on_from_nothing_is_lost(after: str):
    tree = planted(
        PROMPT,
        answer("a", "u", "c1", of="m"),
        answer("b", "a", "c2", of="m"),
        result("r2", "b", "c2"),
        result("r1", "a", "c1"),
        answer("next", after),
    )
    assert tree.paths == ["u a b r2 r1 next"]


def test_pieces_of_one_answer_that_are_siblings_are_one_chain():
    tree = planted(
        PROMPT,
        answer("a", "u", of="m"),
        answer("b", "a", "c1", of="m"),
        answer("c", "a", "c2", of="m"),
        result("r1", "b", "c1"),
        result("r2", "c", "c2"),
        answer("next", "r1"),
    )
    assert tree.paths == ["u a b c r1 r2 next"]


def test_many_results_that_all_hang_on_their_call_are_one_chain():
    calls = [f"c{i}" for i in range(300)]
    results = [result(f"r{i}", "a", call) for i, call in enumerate(calls)]
    tree = planted(PROMPT, answer("a", "u", *calls), *results, answer("next", "r7"))
    assert tree.paths == [f"u a {' '.join(f'r{i}' for i in range(300))} next"]


def test_a_result_that_nothing_follows_does_not_become_a_branch_of_a_queued_prompt():
    tree = planted(
        PROMPT,
        answer("a", "u", "c1"),
        user("queued", "a"),
        result("r1", "a", "c1"),
        answer("next", "queued"),
    )
    assert tree.paths == ["u a r1 queued next"]


def test_a_prompt_between_a_call_and_its_result_stays_there():
    tree = planted(
        PROMPT, answer("a", "u", "c1"), user("queued", "a"), result("r1", "queued", "c1")
    )
    assert tree.paths == ["u a queued r1"]
    assert tree.repairs == []


def test_a_branch_that_leaves_a_step_which_goes_on_elsewhere_is_closed_where_it_leaves():
    tree = planted(
        PROMPT,
        answer("a", "u", "c1"),
        result("r1", "a", "c1"),
        answer("next", "r1"),
        user("other", "a"),
    )
    assert tree.paths == ["u a r1 next", "u a !c1 other"]


def test_another_answer_to_the_same_prompt_is_a_branch():
    tree = planted(
        PROMPT,
        answer("a", "u", "c1"),
        result("r1", "a", "c1"),
        answer("b", "u", "c2"),
        result("r2", "b", "c2"),
    )
    assert tree.paths == ["u a r1", "u b r2"]
    assert tree.repairs == []


def test_a_call_that_was_answered_twice_beside_each_other_is_two_branches():
    tree = planted(
        PROMPT,
        answer("a", "u", "c1"),
        result("r1", "a", "c1"),
        result("again", "a", "c1"),
        answer("next", "again"),
    )
    assert tree.paths == ["u a r1", "u a again next"]


def test_an_id_that_is_used_again_pairs_with_the_newest_open_call():
    tree = planted(
        PROMPT,
        answer("a", "u", "c"),
        result("r1", "a", "c"),
        answer("b", "r1", "c"),
        result("r2", "b", "c"),
    )
    assert tree.paths == ["u a r1 b r2"]
    assert tree.plan.ours == []


# --- calls that nothing answers ---------------------------------------------------------------


def test_a_call_at_the_end_of_a_file_is_closed_and_the_head_is_after_that():
    tree = planted(PROMPT, answer("a", "u", "c1", "c2"), result("r1", "a", "c1"))
    assert tree.paths == ["u a r1 !c2"]
    assert tree.head == "!c2"


def test_a_call_that_the_next_prompt_leaves_open_is_closed_before_it():
    tree = planted(PROMPT, answer("a", "u", "c1"), user("v", "a"), answer("b", "v"))
    assert tree.paths == ["u a !c1 v b"]


def test_calls_are_closed_after_the_results_of_their_step():
    tree = planted(
        PROMPT, answer("a", "u", "c1", "c2", "c3"), result("r2", "a", "c2"), user("v", "r2")
    )
    assert tree.paths == ["u a r2 !c1 !c3 v"]


def test_pieces_of_one_answer_are_not_parted_by_a_closing():
    tree = planted(
        PROMPT,
        answer("a", "u", "c1", of="m"),
        answer("b", "a", "c2", of="m"),
        result("r2", "b", "c2"),
        user("v", "r2"),
    )
    assert tree.paths == ["u a b r2 !c1 v"]


def test_branches_that_leave_the_same_calls_open_share_the_closing():
    tree = planted(PROMPT, answer("a", "u", "c1"), user("v", "a"), user("w", "a"))
    assert tree.paths == ["u a !c1 v", "u a !c1 w"]


def test_a_call_is_closed_on_the_branch_that_has_no_result_only():
    tree = planted(
        PROMPT,
        answer("a", "u", "c1"),
        user("queued", "a"),
        result("r1", "queued", "c1"),
        user("w", "queued", "instead"),
    )
    assert tree.paths == ["u a queued r1", "u a queued !c1 w"]


def test_a_call_made_twice_in_one_row_is_answered_or_closed_twice():
    tree = planted(PROMPT, answer("a", "u", "c", "c"), result("r", "a", "c"), user("v", "r"))
    assert tree.paths == ["u a r !c v"]


# --- results of no call -----------------------------------------------------------------------


def test_a_result_of_no_call_is_kept_as_a_mark():
    tree = planted(PROMPT, result("r", "u", "c9"), answer("a", "r"))
    assert tree.paths == ["u r a"]
    assert tree.plan.orphans == {1: "orphan_result"}
    assert tree.repairs == [
        "line 2: the result of c9 answers no open call before it; it is kept as a mark"
    ]


def test_a_second_result_on_the_path_is_kept_as_a_mark():
    tree = planted(PROMPT, answer("a", "u", "c"), result("r", "a", "c"), result("s", "r", "c"))
    assert tree.paths == ["u a r s"]
    assert tree.plan.orphans == {3: "orphan_result"}


def test_what_a_row_says_beside_a_result_of_no_call_goes_on_as_a_message():
    tree = planted(PROMPT, result("r", "u", "c9", text="and go on"), answer("a", "r"))
    assert tree.paths == ["u r r* a"]


def test_a_row_with_a_good_and_a_bad_result_still_answers_the_good_one():
    tree = planted(PROMPT, answer("a", "u", "c1"), result("r", "a", "c9", "c1"), answer("b", "r"))
    assert tree.paths == ["u a r r* b"]
    assert tree.plan.orphans == {2: "orphan_result"}


# --- rows beside the conversation ---------------------------------------------------------------


def snapshot() -> dict[str, object]:
    return {"type": "file-history-snapshot", "messageId": "u", "snapshot": {}}


def test_rows_without_a_place_stand_on_the_chain_where_they_stand_in_the_file():
    tree = planted(PROMPT, snapshot(), answer("a", "u"), snapshot(), snapshot(), user("v", "a"))
    assert tree.paths == ["u line 2 a line 4 line 5 v"]


def test_rows_without_a_place_at_the_start_come_before_the_roots_of_the_main_chain():
    tree = planted(
        {"type": "summary", "summary": "x", "leafUuid": "a"},
        PROMPT,
        user("s", None, isSidechain=True),
        answer("a", "u"),
        user("u2", None, "again"),
        answer("a2", "u2"),
    )
    assert sorted(tree.paths) == ["line 1 u a", "line 1 u2 a2", "s"]


def test_the_head_is_after_the_rows_without_a_place_that_end_a_file():
    tree = planted(PROMPT, answer("a", "u"), snapshot(), snapshot())
    assert tree.paths == ["u a line 3 line 4"]
    assert tree.head == "line 4"


def test_progress_does_not_fork_the_chain():
    tree = planted(
        PROMPT,
        answer("a", "u", "c1"),
        row("progress", "p1", "a"),
        row("progress", "p2", "p1"),
        result("r1", "a", "c1"),
        row("progress", "p3", "a"),
        answer("next", "p2"),
    )
    assert tree.paths == ["u a p1 p2 r1 p3 next"]


def test_marks_with_a_place_of_their_own_stay_there():
    tree = planted(PROMPT, answer("a", "u"), row("system", "s", "a"), user("v", "s"))
    assert tree.paths == ["u a s v"]


def test_a_branch_point_stays_one_when_a_row_stands_beside_it():
    tree = planted(PROMPT, answer("a", "u"), snapshot(), user("v", "a"), user("w", "a"))
    assert tree.paths == ["u a line 3 v", "u a line 3 w"]


# --- what is stored already -------------------------------------------------------------------


def regrown(first: list[dict[str, object]], more: list[dict[str, object]]) -> list[str]:
    """Paths after importing ``first``, and then the file grown by ``more``. What is stored
    is named as in ``Planted``."""
    old = Planted(first)
    skeleton = read([*first, *more])
    index: dict[int, int] = {}
    foreign: list[Entry] = []
    for at in old.plan.order:
        ours = old.plan.ours_at(at)
        index[at] = at if ours is None else len(skeleton.entries) + len(foreign)
        if ours is not None:
            foreign.append(Entry(0, 0, 0, id=old.name(at), results=old._said(at).results))
    known: dict[int, Known] = {}
    for at in old.plan.order:
        above = old.plan.parent[at]
        depth = 0 if above == ROOT else known[index[above]].depth + 1
        place = ROOT if above == ROOT else index[above]
        known[index[at]] = Known(place, depth, old.plan.open_calls.get(at, 0))
    tree = Planted.__new__(Planted)
    tree.skeleton = skeleton
    tree.plan = plan(skeleton, known, foreign)
    names = {len(skeleton.entries) + i: str(entry.id) for i, entry in enumerate(foreign)}
    parent = tree.plan.parent
    followed = set(parent)
    paths: list[str] = []
    for leaf in [*names, *tree.plan.order]:
        path: list[str] = []
        at = leaf
        while leaf not in followed and at != ROOT:
            path.append(names.get(at) or tree.name(at))
            at = parent[at]
        paths += [" ".join(path[::-1])] if path else []
    return sorted(set(paths))


def test_a_file_that_grew_goes_on_where_it_ended():
    first = [PROMPT, answer("a", "u"), snapshot()]
    assert regrown(first, [user("v", "a"), answer("b", "v")]) == ["u a line 3 v b"]


def test_a_result_that_came_late_is_beside_the_closing():
    first = [PROMPT, answer("a", "u", "c1", "c2"), result("r1", "a", "c1")]
    more = [result("r2", "a", "c2"), answer("next", "r2")]
    assert regrown(first, more) == ["u a r1 !c2", "u a r1 r2 next"]


def test_a_step_that_was_stored_half_goes_on_after_what_is_stored():
    first = [PROMPT, answer("a", "u", "c1", of="m"), result("r1", "a", "c1")]
    more = [answer("b", "a", "c2", of="m"), result("r2", "b", "c2"), answer("next", "r2")]
    assert regrown(first, more) == ["u a r1 b r2 next"]


def test_results_of_parallel_calls_that_came_one_by_one_are_one_chain():
    first = [
        PROMPT,
        answer("a", "u", "c1", of="m"),
        answer("b", "a", "c2", of="m"),
        result("r2", "b", "c2"),
    ]
    more = [result("r1", "a", "c1"), answer("next", "r1")]
    assert regrown(first, more) == ["u a b r2 !c1", "u a b r2 r1 next"]
