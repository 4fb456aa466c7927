"""Calls and results: the table of what may follow what, held against a plain second reading."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessiontree.core.message import NewMessage, ToolCall, ToolResult, calls_of, results_of
from sessiontree.core.pairing import RESULT_RULES, WHY, OpenCall, Violation, pair, settle, take
from sessiontree.errors import OrphanToolResult, UnsettledTurn


@dataclass
class Step:
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()


def calling(*ids: str, name: str = "f") -> Step:
    return Step(calls=tuple(ToolCall(i, name, {}) for i in ids))


def answering(*ids: str) -> Step:
    return Step(results=tuple(ToolResult(i, "ok") for i in ids))


def nameless(*names: str) -> Step:
    return Step(calls=tuple(ToolCall(f"call_{i}", n, {}, False) for i, n in enumerate(names)))


def nameless_answer(name: str | None = None) -> Step:
    return Step(results=(ToolResult("call_0", "ok", name, given=False),))


TALK = Step()


# ---- the table ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "kinds", "open_counts"),
    [
        ([calling("a"), answering("a")], [], [1, 0]),
        ([calling("a", "b"), answering("b"), answering("a")], [], [2, 1, 0]),
        ([calling("a", "b"), answering("b", "a")], [], [2, 0]),
        ([calling("a"), TALK, TALK, answering("a")], [], [1, 1, 1, 0]),
        ([calling("a"), answering("a"), calling("a"), answering("a")], [], [1, 0, 1, 0]),
        ([calling("a"), answering("a"), answering("a")], ["result_given_twice"], [1, 0, 0]),
        ([answering("a"), calling("a")], ["result_before_call", "unanswered_call"], [0, 1]),
        ([TALK, answering("a")], ["orphan_result"], [0, 0]),
        ([calling("a")], ["unanswered_call"], [1]),
        ([calling("a", "a"), answering("a")], ["unanswered_call"], [2, 1]),
        ([calling("a", "a"), answering("a", "a")], [], [2, 0]),
        ([], [], []),
    ],
)
def test_what_a_sequence_leaves_open_and_what_is_wrong_with_it(
    steps: list[Step], kinds: list[str], open_counts: list[int]
) -> None:
    pairing = pair(steps)
    assert [violation.kind for violation in pairing.violations] == kinds
    assert pairing.open_counts == open_counts
    assert pairing.boundaries == [i for i, count in enumerate(open_counts) if count == 0]


def test_every_fault_of_the_table_says_why() -> None:
    assert {*RESULT_RULES.values(), "unanswered_call"} - {None} == set(WHY)
    assert Violation("orphan_result", 0, "a").why == "no call before it has this id"


def test_a_result_answers_the_newest_open_call_of_its_id() -> None:
    pairing = pair([calling("a"), calling("a"), answering("a")])
    assert [(at, of) for at, of, _ in pairing.answers] == [(2, 1)]
    assert [opened.at for opened in pairing.open] == [0]


def test_a_message_may_call_and_answer_and_its_own_call_is_open_first() -> None:
    both = Step(calls=(ToolCall("a", "f", {}),), results=(ToolResult("a", "ok"),))
    assert pair([both]).violations == []
    assert pair([both]).answers == [(0, 0, ToolCall("a", "f", {}))]


def test_calls_that_were_open_before_are_answered_and_counted() -> None:
    waiting = [OpenCall(-1, ToolCall("a", "f", {})), OpenCall(-1, ToolCall("b", "g", {}))]
    pairing = pair([TALK, answering("b")], waiting)
    assert pairing.open_counts == [2, 1]
    assert [opened.call.id for opened in pairing.open] == ["a"]
    assert len(waiting) == 2, "the caller's list is the caller's"


# ---- ids that are missing ----------------------------------------------------------


def test_a_result_without_id_answers_the_oldest_open_call_of_its_name() -> None:
    pairing = pair([nameless("f", "g", "f"), nameless_answer("f"), nameless_answer("g")])
    assert [call.id for _, _, call in pairing.answers] == ["call_0", "call_1"]
    assert [opened.call.id for opened in pairing.open] == ["call_2"]


def test_a_result_with_neither_id_nor_name_answers_the_oldest_call_without_id() -> None:
    pairing = pair([calling("a"), nameless("f", "g"), nameless_answer(), nameless_answer()])
    assert [call.name for _, _, call in pairing.answers] == ["f", "g"]
    assert [opened.call.id for opened in pairing.open] == ["a"]


def test_a_result_with_an_id_answers_a_call_without_where_no_call_has_that_id() -> None:
    pairing = pair([nameless("f"), answering("toolu_1")])
    assert pairing.violations == []
    assert pairing.open_counts == [1, 0]


def test_a_result_without_id_never_answers_a_call_of_another_name_that_has_an_id() -> None:
    named = Step(calls=(ToolCall("x", "f", {}),))
    pairing = pair([named, nameless_answer("g")])
    assert [violation.kind for violation in pairing.violations] == [
        "orphan_result",
        "unanswered_call",
    ]


def test_codecs_parts_become_calls_and_results_with_ids_by_position() -> None:
    parts = [
        {"type": "tool_call", "name": "f", "arguments": {}},
        {"type": "text", "content": "…"},
        {"type": "tool_call", "id": "", "name": "g", "arguments": {}},
        {"type": "tool_call", "id": "z", "name": "h", "arguments": {}},
        {"type": "tool_call_response", "id": None, "response": 1},
        {"type": "tool_call_response", "id": "z", "response": 2, "is_error": True, "name": "h"},
    ]
    assert [(c.id, c.given) for c in calls_of(parts)] == [
        ("call_0", False),
        ("call_1", False),
        ("z", True),
    ]
    assert results_of(parts) == (
        ToolResult("call_0", 1, None, False, False),
        ToolResult("z", 2, "h", True, True),
    )


# ---- properties --------------------------------------------------------------------

IDS = st.sampled_from(["a", "b", "c"])
EVENTS = st.lists(st.tuples(st.booleans(), IDS), max_size=25)


def plain_reading(events: list[tuple[bool, str]]) -> tuple[list[int], list[tuple[str, int]]]:
    """Open counts and faults by a count per id: for given ids it does not matter which of
    several open calls of one id is answered."""
    open_of: dict[str, int] = {}
    answered: set[str] = set()
    counts: list[int] = []
    faults: list[tuple[str, int]] = []
    for at, (is_call, name) in enumerate(events):
        if is_call:
            open_of[name] = open_of.get(name, 0) + 1
        elif open_of.get(name, 0):
            open_of[name] -= 1
            answered.add(name)
        elif name in answered:
            faults.append(("result_given_twice", at))
        elif (True, name) in events[at + 1 :]:
            faults.append(("result_before_call", at))
        else:
            faults.append(("orphan_result", at))
        counts.append(sum(open_of.values()))
    return counts, faults


@given(EVENTS)
def test_pairing_agrees_with_a_count_per_id(events: list[tuple[bool, str]]) -> None:
    pairing = pair([calling(i) if is_call else answering(i) for is_call, i in events])
    counts, faults = plain_reading(events)
    assert pairing.open_counts == counts
    assert [(v.kind, v.at) for v in pairing.violations if v.kind != "unanswered_call"] == faults
    assert len(pairing.open) == (counts[-1] if counts else 0)


@given(EVENTS, st.integers(0, 25))
def test_pairing_in_two_pieces_is_pairing_in_one(events: list[tuple[bool, str]], cut: int) -> None:
    steps = [calling(i) if is_call else answering(i) for is_call, i in events]
    first, whole = pair(steps[:cut]), pair(steps)
    second = pair(steps[cut:], first.open)
    assert first.open_counts + second.open_counts == whole.open_counts
    assert [o.call.id for o in second.open] == [o.call.id for o in whole.open]
    assert len(first.answers) + len(second.answers) == len(whole.answers)


@given(EVENTS)
def test_each_call_is_answered_at_most_once_and_only_by_what_comes_after(
    events: list[tuple[bool, str]],
) -> None:
    pairing = pair([calling(i) if is_call else answering(i) for is_call, i in events])
    called = [of for _, of, _ in pairing.answers]
    assert len(called) == len(set(called))
    assert all(of < at for at, of, _ in pairing.answers)
    assert len(called) + len(pairing.open) == sum(is_call for is_call, _ in events)


@given(st.lists(st.sampled_from(["f", "g", None]), max_size=6), st.sampled_from(["f", "g", None]))
def test_take_gives_back_the_call_that_it_took_away(
    names: list[str | None], wanted: str | None
) -> None:
    waiting = [OpenCall(i, ToolCall(f"call_{i}", n or "", {}, False)) for i, n in enumerate(names)]
    before = list(waiting)
    taken = take(waiting, ToolResult("call_9", "ok", wanted, given=False))
    assert sorted([*waiting, *([taken] if taken else [])], key=lambda o: o.at) == before
    first = names.index(wanted) if wanted in names and wanted else 0
    assert taken == (before[first] if before else None)


def test_many_faults_in_a_long_sequence_are_found_in_one_reading() -> None:
    """20,000 results of a file whose calls are lost, or come too late."""
    late = [calling(f"late{i}") for i in range(10_000)]
    steps = [answering(f"lost{i}", f"late{i}") for i in range(10_000)] + late
    kinds = [violation.kind for violation in pair(steps).violations]
    assert kinds.count("orphan_result") == kinds.count("result_before_call") == 10_000
    assert len(pair([answering(f"lost{i}") for i in range(20_000)]).violations) == 20_000


# ---- settling ----------------------------------------------------------------------


@given(
    st.lists(st.lists(st.tuples(st.booleans(), st.sampled_from("abc"), st.booleans()), max_size=3))
)
def test_settling_counts_and_refuses_as_pairing_does(
    story: list[list[tuple[bool, str, bool]]],
) -> None:
    batch = [
        NewMessage(
            "{}",
            "otel",
            "assistant",
            tuple(ToolCall(i, "f", {}, given) for calls, i, given in events if calls),
            tuple(
                ToolResult(i, "ok", None, False, given) for calls, i, given in events if not calls
            ),
        )
        for events in story
    ]
    pairing = pair(batch)
    try:
        settle(batch)
    except (OrphanToolResult, UnsettledTurn):
        assert pairing.violations
    else:
        assert not pairing.violations
        assert [message.open_calls for message in batch] == pairing.open_counts
