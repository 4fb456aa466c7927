"""What holds for every window: of any path, for any provider, within any budget."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from paths import TARGETS, path, user, violations, window
from random_paths import random_paths

from sessiontree.core import rules
from sessiontree.core.meter import Meter
from sessiontree.errors import BudgetTooSmall

targets = st.sampled_from(TARGETS)
thinkings = st.sampled_from(["auto", "keep", "drop"])


@given(random_paths(), targets, thinkings)
def test_no_window_breaks_a_rule(messages, target, thinking):
    assert violations(window(messages, target, thinking=thinking)) == []


@given(random_paths(), targets, st.integers(1, 2000))
def test_a_window_is_within_its_budget_and_valid_or_says_by_how_much_not(messages, target, budget):
    try:
        found = window(messages, target, budget=budget)
    except BudgetTooSmall as error:
        found, short = None, error.needed - budget
    if found is None:
        assert short > 0
        return
    assert found.tokens <= budget
    assert violations(found) == []
    shape = rules.shape_of(target)
    meter = Meter(shape, None, None, None)
    again = meter.entries([shape.open(message) for message in found.messages])
    assert again <= budget


@given(random_paths(), targets, st.integers(1, 2000))
def test_the_newest_turn_is_always_sent(messages, target, budget):
    try:
        found = window(messages, target, budget=budget)
    except BudgetTooSmall:
        return
    newest = next((m.id for m in reversed(messages) if m.role == "user"), None)
    cut_inside = any(m.role == "mark" and (m.ref_id or m.id) > (newest or 0) for m in messages)
    if newest is not None and not cut_inside:
        assert newest in found.ids


@given(random_paths(), targets, st.integers(200, 2000), st.data())
def test_pinned_messages_are_sent_in_their_place(messages, target, budget, data):
    users = [m.id for m in messages if m.role == "user"]
    if not users:
        return
    pinned = data.draw(st.lists(st.sampled_from(users), max_size=2))
    try:
        found = window(messages, target, budget=budget, pinned=pinned)
    except BudgetTooSmall:
        return
    assert set(pinned) <= set(found.ids)
    assert list(found.ids) == sorted(found.ids)
    assert violations(found) == []


@given(random_paths(), targets, st.one_of(st.none(), st.integers(1, 2000)))
def test_a_window_is_the_same_each_time_and_changes_nothing(messages, target, budget):
    before = json.dumps([m.native for m in messages])

    def planned():
        try:
            return window(messages, target, budget=budget)
        except BudgetTooSmall as error:
            return str(error)

    assert planned() == planned()
    assert json.dumps([m.native for m in messages]) == before


@given(random_paths(), targets)
def test_the_next_turns_window_begins_with_the_bytes_of_this_one(messages, target):
    asked = path(
        [*[(m.native, {"format": m.format, "ref_id": m.ref_id}) for m in messages], user("and?")],
        "openai_chat",
    )
    ours = window(asked, target)
    if not ours.ready:
        return
    answered = {"role": "assistant", "content": "so"}
    later = path(
        [
            *[(m.native, {"format": m.format, "ref_id": m.ref_id}) for m in asked],
            (answered, {}),
            (user("go on"), {}),
        ],
        "openai_chat",
    )
    theirs = window(later, target)
    assert theirs.system == ours.system
    assert bare(theirs.messages[: len(ours.messages)]) == bare(ours.messages)


def bare(messages):
    return [json.dumps(m) for m in messages]


@given(targets.flatmap(lambda t: st.tuples(st.just(t), random_paths(t))))
def test_a_step_is_told_for_every_message_that_is_not_sent_as_stored(given_path):
    target, messages = given_path
    found = window(messages, target, thinking="keep")
    natives = [m.native for m in messages if m.role not in ("mark", "system")]
    if found.messages != natives:
        assert found.steps


@given(random_paths(), targets)
def test_every_window_of_a_path_begins_with_the_one_before_it(messages, target):
    """Until a mark or another system prompt comes, and at boundaries: each request holds the
    one before it, then the answer that it got."""
    before = None
    for at in range(1, len(messages)):
        if messages[at - 1].role in ("mark", "system") or messages[at - 1].open_calls:
            before = None
            continue
        if messages[at].role != "assistant":
            continue
        found = window(messages[:at], target, system=None)
        if before is not None and found.ready:
            assert bare(found.messages[: len(before)]) == before
        before = bare(found.messages) if found.ready else None
