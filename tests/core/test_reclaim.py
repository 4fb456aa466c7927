"""Reclaiming: what each kind proposes, what it refuses, and the ladder."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paths import (
    TARGETS,
    a_calls,
    a_image,
    a_results,
    assistant,
    path,
    user,
    violations,
    window,
)
from random_paths import random_paths

from sessiontree import formats
from sessiontree.core import rules
from sessiontree.core.reclaim import (
    Ask,
    Proposal,
    Refused,
    Sight,
    climb,
    cut,
    elide,
    images,
    summary,
)
from sessiontree.errors import BudgetTooSmall, ReclaimRefused, WindowError

LOG = "error in module seven\n" * 200


def sight(messages, target="anthropic", **options):
    return Sight(messages[::-1], target, formats.codec, **options)


def busy(turns=6, output=LOG):
    """A path of turns with one long result each: about 1,700 tokens a turn for Claude."""
    natives = []
    for i in range(turns):
        natives += [user(f"question {i}"), a_calls(f"c{i}"), a_results(f"c{i}", output=output)]
        natives += [assistant(f"answer {i}")]
    return path([*natives, user("now")], "anthropic")


def under(found: Proposal, messages):
    """The path with the proposed mark appended, as a store would have it."""
    natives = [(m.native, {"format": m.format, "ref_id": m.ref_id}) for m in messages]
    return path([*natives, (found.mark, {"ref_id": found.ref_id})], "anthropic")


# --- Elide --------------------------------------------------------------------------------


def test_eliding_protects_the_newest_results_and_says_what_it_saves():
    messages = busy()
    found = elide.plan(sight(messages), protect=2_500, save=1_000)
    assert isinstance(found, Proposal)
    assert found.ref_id == 15  # the results of turns 5 and 6 are protected
    assert found.saves > 4 * 1_000
    said = window(under(found, messages), "anthropic")
    elided = [m for m in said.messages if "was elided" in json.dumps(m)]
    assert len(elided) == 4
    assert said.tokens == found.after
    assert json.dumps(found.mark)


def test_eliding_too_little_is_refused_with_how_little_it_is():
    found = elide.plan(sight(busy()))
    assert isinstance(found, Refused)
    assert "20000" in found.why


def test_eliding_where_nothing_is_to_be_saved_is_not_refused_as_less_than_nothing():
    found = elide.plan(sight(busy()), save=0)
    assert isinstance(found, Refused)
    assert "no old results" in found.why


def test_the_results_of_spared_tools_are_not_elided():
    found = elide.plan(sight(busy()), protect=0, save=1, spared=["read"])
    assert isinstance(found, Refused)


def test_what_is_elided_is_not_elided_again():
    messages = busy()
    found = elide.plan(sight(messages), protect=0, save=1)
    again = elide.plan(sight(under(found, messages)), protect=0, save=1)
    assert isinstance(again, Refused)


# --- Images -------------------------------------------------------------------------------


def test_images_before_the_newest_turn_are_dropped():
    seen = {"role": "user", "content": [a_image(800, 600)]}
    messages = path([seen, assistant("a"), seen, assistant("b"), seen], "anthropic")
    found = images.plan(sight(messages))
    assert (found.ref_id, found.kind) == (3, "images")
    sent = window(under(found, messages), "anthropic").messages
    assert ["image left out" in str(m) for m in sent] == [True, False, True, False, False]
    kept = images.plan(sight(messages), keep=1)
    assert kept.ref_id == 1
    assert isinstance(images.plan(sight(messages[4:])), Refused)


def test_dropping_an_image_that_costs_less_than_its_words_is_refused():
    seen = {"role": "user", "content": [a_image(20, 20)]}
    messages = path([seen, assistant("a"), user("b")], "anthropic")
    assert isinstance(images.plan(sight(messages)), Refused)


# --- Cut ------------------------------------------------------------------------------------


def test_a_cut_keeps_the_newest_turns_that_fit():
    messages = busy()
    found = cut.plan(sight(messages), keep=4_000)
    assert found.mark == {"role": "mark", "kind": "cut"}
    said = window(under(found, messages), "anthropic")
    assert said.ids[0] == found.ref_id
    assert messages[found.ref_id - 1].role == "user"
    assert 1_500 < said.tokens <= 4_000


def test_a_cut_to_less_than_the_newest_turn_keeps_the_newest_turn():
    assert cut.plan(sight(busy()), keep=1).ref_id == 25


def test_a_cut_of_what_fits_is_refused():
    assert isinstance(cut.plan(sight(busy()), keep=1_000_000), Refused)
    assert isinstance(cut.plan(sight(path([user("a")], "anthropic")), keep=1), Refused)


def test_a_cut_keeps_the_summary_in_force():
    mark = ({"role": "mark", "kind": "summary", "text": "so far"}, {"ref_id": 5})
    natives = [m.native for m in busy()]
    messages = path([*natives, mark, assistant("x"), user("y")], "anthropic")
    found = cut.plan(sight(messages), keep=4_000)
    assert found.mark == {"role": "mark", "kind": "summary", "text": "so far"}
    assert found.ref_id > 5


# --- Summary ----------------------------------------------------------------------------------


def test_a_summary_is_asked_for_with_what_it_will_stand_for():
    asked = summary.ask(sight(busy()), keep=4_000)
    assert isinstance(asked, Ask)
    assert "question 0" in asked.text
    assert "answered: error in module seven" in asked.text
    assert "characters …]" in asked.text
    assert "now" not in asked.text.split("<conversation>")[1]
    (message,) = asked.window.request()["messages"]
    assert message["content"] == [{"type": "text", "text": asked.text}]
    assert asked.window.ready


def test_a_summary_is_rolling():
    messages = busy()
    first = summary.accept(summary.ask(sight(messages), keep=6_000), "they asked", sight(messages))
    marked = under(first, messages)
    asked = summary.ask(sight(marked), keep=2_500)
    assert "<summary_so_far>\nthey asked\n</summary_so_far>" in asked.text
    assert "question 0" not in asked.text
    second = summary.accept(asked, "they asked more", sight(marked))
    said = window(under(second, marked), "anthropic")
    assert "they asked more" in str(said.messages[0])
    assert str(said.messages).count("they asked") == 1
    assert second.ref_id > first.ref_id


def test_the_request_for_a_summary_fits_its_limit():
    messages = busy(turns=30)
    small = summary.ask(sight(messages), keep=2_000, limit=2_000)
    assert isinstance(small, Ask)
    assert small.window.tokens <= 2_000
    assert small.turns < 29
    assert messages[small.ref_id - 1].role == "user"
    assert isinstance(summary.ask(sight(messages), keep=2_000, limit=50), Refused)


@pytest.mark.parametrize("answer", [None, "", "  ", 7, ["text"]])
def test_an_answer_that_is_no_summary_is_refused(answer):
    asked = summary.ask(sight(busy()), keep=4_000)
    with pytest.raises(ReclaimRefused, match="not a text"):
        summary.accept(asked, answer, sight(busy()))


def test_a_summary_longer_than_what_it_replaces_is_refused():
    asked = summary.ask(sight(busy()), keep=4_000)
    with pytest.raises(ReclaimRefused, match="no smaller"):
        summary.accept(asked, "word " * 20_000, sight(busy()))


# --- The ladder -------------------------------------------------------------------------------


def climbed(messages, budget, answer=None, **options):
    """Run the ladder; ``answer`` is what the summariser says."""
    climbing = climb(sight(messages), budget, can_summarise=answer is not None, **options)
    asked = []
    try:
        request = next(climbing)
        while True:
            asked.append(request)
            request = climbing.send(answer)
    except StopIteration as done:
        return done.value, asked


def test_below_the_threshold_nothing_happens():
    messages = busy()
    tokens = window(messages, "anthropic").tokens
    found, _ = climbed(messages, tokens * 2)
    assert found.proposals == found.refused == []
    assert found.fits


def test_the_cheapest_rung_that_is_enough_is_the_only_one():
    messages = busy()
    found, asked = climbed(messages, 12_000, "a summary")
    assert [p.kind for p in found.proposals] == ["elide"]
    assert asked == []
    assert found.fits
    assert found.after <= found.goal == 8_400


def test_a_rung_that_does_not_shrink_is_refused_and_the_next_is_tried():
    messages = path(
        [m for i in range(40) for m in (user("q " * 50), assistant("a " * 50))], "anthropic"
    )
    found, asked = climbed(messages, 2_000, "a summary")
    assert [(r.kind) for r in found.refused] == ["elide", "images", "snapshot"]
    assert {p.kind for p in found.proposals} == {"summary"}
    assert len(asked) == len(found.proposals) == 2  # one request does not hold all of it
    assert "<summary_so_far>" in asked[1].text
    assert found.fits


def test_without_a_summariser_the_last_rung_is_a_cut():
    messages = path(
        [m for i in range(40) for m in (user("q " * 50), assistant("a " * 50))], "anthropic"
    )
    found, _ = climbed(messages, 2_000)
    assert [p.kind for p in found.proposals] == ["cut"]
    assert found.fits


def test_a_summariser_that_says_nothing_stops_the_ladder():
    messages = path(
        [m for i in range(40) for m in (user("q " * 50), assistant("a " * 50))], "anthropic"
    )
    with pytest.raises(ReclaimRefused):
        climbed(messages, 2_000, " ")


def test_the_marks_of_the_ladder_do_what_they_promise():
    messages = busy(turns=12)
    found, _ = climbed(messages, 1_200)
    for proposal in found.proposals:
        messages = under(proposal, messages)
    said = window(messages, "anthropic", budget=1_200)
    assert said.tokens == found.after <= found.goal
    assert [p.kind for p in found.proposals] == ["elide", "extract"]


@pytest.mark.parametrize("threshold", [0, -1, 1.1])
def test_a_threshold_that_is_none_is_refused(threshold):
    with pytest.raises(WindowError, match="threshold"):
        climbed(busy(), 1_000, threshold=threshold)


# --- On any path --------------------------------------------------------------------------------

plans = st.sampled_from(
    [
        lambda s: elide.plan(s, protect=0, save=1),
        lambda s: images.plan(s),
        lambda s: cut.plan(s, keep=50),
        lambda s: asked_and_answered(s),
    ]
)


def asked_and_answered(seen):
    asked = summary.ask(seen, keep=50)
    if isinstance(asked, Refused):
        return asked
    assert rules.violations(asked.window.messages, seen.target, tools=False) == []
    try:
        return summary.accept(asked, "in short", seen)
    except ReclaimRefused:
        return Refused("summary", "")


@given(random_paths(), st.sampled_from(TARGETS), plans, st.one_of(st.none(), st.integers(50, 900)))
def test_after_any_reclaim_the_window_is_valid_and_smaller(messages, target, plan, budget):
    found = plan(sight(messages, target))
    if isinstance(found, Refused):
        return
    assert found.after < found.before
    marked = under(found, messages)
    whole = window(marked, target, system=None)
    assert whole.tokens == found.after
    assert violations(whole) == []
    try:
        said = window(marked, target, budget=budget)
    except BudgetTooSmall:
        return
    assert violations(said) == []
    assert budget is None or said.tokens <= budget
