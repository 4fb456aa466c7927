"""The bill of a conversation: each request once, by model, by turn, by branch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessiontree.core.cost import Bill, Ledger, Spend
from sessiontree.core.marks import STANDING
from sessiontree.core.message import Part, Role
from sessiontree.core.usage import Usage

PRICES = {"cheap": Decimal(1), "dear": Decimal(100)}
"""Dollars for each token, of whatever kind."""


def price(model: str | None, usage: Usage, at: int, format: str) -> Decimal | None:
    each = PRICES.get(model or "")
    return None if each is None else each * (usage.sent + usage.output)


@dataclass
class Said:
    """A message, as far as a bill looks at it."""

    id: int
    role: Role
    parent: int | None = None
    tokens: int = 10
    usage: Mapping[str, Any] | None = None
    model: str | None = None
    native: Mapping[str, Any] = field(default_factory=dict)
    open_calls: int = 0
    ref_id: int | None = None
    at: int = 0
    format: str = "anthropic"
    depth: int = 0
    parts: list[Part] = field(default_factory=list)
    meta: Mapping[str, Any] = field(default_factory=dict)


def used(sent: int, output: int, **more: Any) -> dict[str, Any]:
    return {"input_tokens": sent, "output_tokens": output, **more}


def bill_of(
    *messages: Said, head: int | None = None, model: str | None = None, **more: Any
) -> Bill:
    ledger = Ledger(model=model)
    for each in messages:
        ledger.add(each, parent_id=each.parent, at=each.at)
    return ledger.bill(messages[-1].id if head is None and messages else head, price, **more)


def user(id: int, parent: int | None = None, **more: Any) -> Said:
    return Said(id, "user", parent, **more)


def reply(id: int, parent: int, **more: Any) -> Said:
    return Said(id, "assistant", parent, **{"model": "cheap"} | more)


def test_nothing_said_costs_nothing() -> None:
    bill = bill_of()
    assert (bill.total, bill.path, bill.models, bill.turns, bill.branches) == (
        Spend(), Spend(), {}, [], [],
    )  # fmt: skip


def test_what_was_reported_holds() -> None:
    report = used(100, 20, cache_read_input_tokens=50, cache_creation_input_tokens=5)
    bill = bill_of(user(1), reply(2, 1, usage=report))
    assert bill.total == Spend(1, 0, 0, 100, 50, 5, 20, Decimal(175))


def test_a_cost_that_was_reported_holds_over_any_price() -> None:
    bill = bill_of(user(1), reply(2, 1, usage=used(100, 20) | {"cost": 0.5}))
    assert bill.total.money == Decimal("0.5")
    bill = bill_of(user(1), reply(2, 1, model="nobody's", usage=used(100, 20) | {"cost": 0.5}))
    assert (bill.total.money, bill.total.unpriced) == (Decimal("0.5"), 0)


def test_without_a_report_it_is_estimated_from_the_path_and_marked() -> None:
    bill = bill_of(
        user(1, tokens=7), reply(2, 1, tokens=5), user(3, 2, tokens=3), reply(4, 3, tokens=2)
    )
    assert [(r.usage.input, r.usage.output, r.is_estimated) for r in bill.requests] == [
        (7, 5, True),
        (15, 2, True),
    ]
    assert (bill.total.requests, bill.total.estimated) == (2, 2)


def test_an_estimate_goes_on_from_the_newest_report() -> None:
    bill = bill_of(
        user(1), reply(2, 1, usage=used(5_000, 40)), user(3, 2, tokens=3), reply(4, 3, tokens=2)
    )
    assert bill.requests[1].usage == Usage(5_043, output=2)
    assert (bill.total.requests, bill.total.estimated) == (2, 1)


def test_a_report_of_zeros_is_no_request_to_go_on_from() -> None:
    bill = bill_of(
        user(1), reply(2, 1, usage=used(500, 40)), user(3, 2), reply(4, 3, usage=used(0, 0)),
        user(5, 4), reply(6, 5, tokens=1),
    )  # fmt: skip
    assert bill.requests[2].usage == Usage(540 + 10 + 10 + 10, output=1)


@pytest.mark.parametrize("kind", ["cut", *sorted(STANDING)])
def test_an_estimate_leaves_out_what_a_mark_leaves_out(kind: str) -> None:
    mark = Said(
        5, "mark", 4, native={"role": "mark", "kind": kind, "text": "s"}, ref_id=3, tokens=2
    )
    bill = bill_of(
        user(1, tokens=1_000), reply(2, 1, tokens=500), user(3, 2), reply(4, 3), mark,
        user(6, 5), reply(7, 6, tokens=1),
    )  # fmt: skip
    kept = 10 + 10 + 10 + (2 if kind in STANDING else 0)
    assert bill.requests[-1].usage == Usage(kept, output=1)


def test_marks_that_are_not_sent_add_nothing_to_an_estimate() -> None:
    bill = bill_of(
        user(1),
        Said(2, "mark", 1, native={"role": "mark", "kind": "label"}, tokens=900),
        reply(3, 2),
    )
    assert bill.requests[0].usage.input == 10


def block(id: int, parent: int, output: int, response: str = "msg_1", **more: Any) -> Said:
    """One of the lines as which Claude Code writes an answer."""
    native = {"requestId": "req_1", "message": {"id": response}}
    report = used(4, output, cache_read_input_tokens=18_764)
    return reply(id, parent, usage=report, native=native, **more)


def test_reports_that_one_answer_repeats_are_one_request_with_its_largest_output() -> None:
    result = Said(4, "tool", 3)
    bill = bill_of(
        user(1), block(2, 1, 25), block(3, 2, 25, open_calls=1), result, block(5, 4, 302)
    )
    assert [r.usage for r in bill.requests] == [Usage(4, 18_764, 0, 302)]
    assert bill.requests[0].message_id == 2
    bill = bill_of(user(1), block(2, 1, 302), block(3, 2, 25))
    assert bill.total.output == 302


def test_answers_with_other_ids_are_other_requests_even_when_they_used_as_much() -> None:
    bill = bill_of(user(1), block(2, 1, 5), block(3, 2, 5, "msg_2"), reply(4, 3, usage=used(4, 5)))
    assert bill.total.requests == 3


def test_an_answer_that_is_told_as_several_messages_is_one_request() -> None:
    """As the items of a response: one of them bears the report, or none."""
    bill = bill_of(user(1), reply(2, 1, tokens=3), reply(3, 2, tokens=4))
    assert [r.usage for r in bill.requests] == [Usage(10, output=7)]
    bill = bill_of(user(1), reply(2, 1), reply(3, 2, usage=used(100, 9)))
    assert [(r.usage, r.is_estimated) for r in bill.requests] == [(Usage(100, output=9), False)]
    bill = bill_of(user(1), reply(2, 1, usage=used(100, 9)), reply(3, 2))
    assert [(r.usage, r.is_estimated) for r in bill.requests] == [(Usage(100, output=9), False)]


def test_a_turn_is_a_prompt_and_all_that_answers_it() -> None:
    bill = bill_of(
        user(1), reply(2, 1, usage=used(1, 1), open_calls=1), Said(3, "tool", 2),
        reply(4, 3, usage=used(2, 2)), user(5, 4), reply(6, 5, usage=used(3, 3)),
    )  # fmt: skip
    assert [(t.message_id, t.spend.requests, t.spend.input) for t in bill.turns] == [
        (1, 2, 3),
        (5, 1, 3),
    ]


def test_what_a_user_says_while_a_call_is_open_begins_no_turn() -> None:
    bill = bill_of(
        user(1), reply(2, 1, usage=used(1, 1), open_calls=1), user(3, 2, open_calls=1),
        Said(4, "tool", 3), reply(5, 4, usage=used(2, 2)),
    )  # fmt: skip
    assert [t.message_id for t in bill.turns] == [1]


TREE = [
    user(1),
    reply(2, 1, usage=used(10, 0)),
    user(3, 2),
    reply(4, 3, usage=used(100, 0)),
    user(5, 2),
    reply(6, 5, usage=used(1_000, 0), model="dear"),
    reply(7, 5, usage=used(10_000, 0)),
]
"""1 ─ 2 ┬ 3 ─ 4
         └ 5 ┬ 6
             └ 7"""


def test_the_whole_tree_and_the_path_of_the_head_are_told_apart() -> None:
    bill = bill_of(*TREE, head=4)
    assert (bill.total.input, bill.path.input) == (11_110, 110)
    assert {m: s.input for m, s in bill.models.items()} == {"dear": 1_000, "cheap": 10_110}
    assert list(bill.models) == ["dear", "cheap"]  # the dearest first
    assert {m: s.input for m, s in bill.models_on_path.items()} == {"cheap": 110}
    assert [(t.message_id, t.is_on_path) for t in bill.turns] == [(1, True), (3, True), (5, False)]


def test_a_branch_is_told_with_what_it_shares_and_what_is_its_own() -> None:
    bill = bill_of(*TREE, head=7)
    assert [(b.leaf, b.since, b.is_head, b.own.input, b.path.input) for b in bill.branches] == [
        (4, 2, False, 100, 110),
        (6, 5, False, 1_000, 1_010),
        (7, 5, True, 10_000, 10_010),
    ]


def test_a_price_that_is_unknown_is_counted_and_costs_nothing() -> None:
    bill = bill_of(
        user(1), reply(2, 1, usage=used(5, 5), model="nobody's"), reply(3, 2, usage=used(1, 1))
    )
    assert (bill.total.unpriced, bill.total.money) == (1, Decimal(2))
    assert bill.models["nobody's"].unpriced == 1


def test_a_model_can_be_named_for_answers_that_do_not_tell_theirs() -> None:
    quiet = reply(2, 1, usage=used(5, 5), model=None)
    assert bill_of(user(1), quiet).models.keys() == {None}
    assert bill_of(user(1), quiet, model="dear").total.money == 1_000


def test_what_was_spent_before_a_fork_is_told_apart() -> None:
    bill = bill_of(
        user(1), reply(2, 1, usage=used(5, 0), at=99),
        user(3, 2), reply(4, 3, usage=used(7, 0), at=100),
        forked=100,
    )  # fmt: skip
    assert (bill.total.input, bill.inherited.input) == (12, 5)
    assert bill_of(user(1), reply(2, 1, at=99)).inherited == Spend()


@st.composite
def trees(draw: st.DrawFn) -> list[Said]:
    said: list[Said] = []
    for at in range(1, draw(st.integers(1, 25)) + 1):
        parent = draw(st.sampled_from([None, *(each.id for each in said)]))
        if parent is None:
            said.append(user(at))
            continue
        role = draw(st.sampled_from(["user", "assistant", "assistant", "tool", "mark"]))
        report = draw(st.none() | st.builds(used, st.integers(0, 99), st.integers(0, 99)))
        model = draw(st.sampled_from(["cheap", "dear", "nobody's", None]))
        said.append(Said(at, role, parent, usage=report, model=model))
    return said


@given(trees(), st.data())
def test_on_any_tree_every_way_to_add_up_comes_to_the_same(said: list[Said], data: Any) -> None:
    head = data.draw(st.sampled_from([each.id for each in said]))
    bill = bill_of(*said, head=head)
    total = sum(bill.models.values(), Spend())
    assert total == bill.total == sum((t.spend for t in bill.turns), Spend())
    assert bill.path == sum(bill.models_on_path.values(), Spend())
    parents = {each.parent for each in said}
    assert [b.leaf for b in bill.branches] == [each.id for each in said if each.id not in parents]
    by_id = {each.id: each for each in said}
    for branch in bill.branches:
        path, at = set[int](), branch.leaf
        while at is not None:
            path.add(at)
            at = by_id[at].parent
        expected = Spend()
        for request in bill.requests:
            if request.message_id in path:
                expected.add(request)
        assert branch.path == expected
        if branch.is_head:
            assert branch.path == bill.path


def test_a_path_of_any_length_is_walked_without_recursion_and_once() -> None:
    count = 60_000
    said = [user(1)]
    for at in range(2, count, 2):
        said += [reply(at, at - 1, usage=used(1, 1)), user(at + 1, at)]
    bill = bill_of(*said)
    assert bill.total.requests == bill.branches[0].path.requests == count // 2 - 1
