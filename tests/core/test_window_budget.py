"""What fits: the worked examples of cutting, pinned messages, and bad budgets."""

from __future__ import annotations

import pytest
from paths import a_calls, a_results, assistant, path, user, violations, window

from sessiontree.core.window import Budget
from sessiontree.errors import BudgetTooSmall, WindowError

SYSTEM = 1_724
TURNS = (45, 86, 9, 77, 19)


def worked_example():
    messages = path(
        [{"role": "system", "content": "s"}, *[user(f"question {i}") for i in range(5)]],
        "anthropic",
    )
    for message, tokens in zip(messages, (SYSTEM, *TURNS), strict=True):
        message.tokens = tokens
    return messages


def planned(budget, **options):
    return window(worked_example(), "anthropic", budget=budget, count=lambda m: m.tokens, **options)


def test_a_budget_of_1900_sends_the_last_three_turns_and_drops_two():
    found = planned(1_900)
    assert found.ids == (4, 5, 6)
    assert len(found.dropped) == 2
    assert found.dropped.newest == 3
    assert found.tokens == SYSTEM + 9 + 77 + 19
    assert not found.complete


def test_a_budget_of_3000_sends_all_five():
    found = planned(3_000)
    assert found.ids == (2, 3, 4, 5, 6)
    assert (found.complete, len(found.dropped), found.tokens) == (True, 0, SYSTEM + sum(TURNS))


def test_a_budget_of_1800_sends_only_the_newest():
    assert planned(1_800).ids == (6,)


def test_with_the_first_turn_pinned_1800_sends_it_and_the_newest():
    found = planned(1_800, pinned=[2])
    assert found.ids == (2, 6)
    assert found.tokens == 1_788
    assert [m["content"] for m in found.messages] == ["question 0", "question 4"]
    assert len(found.dropped) == 3


def test_with_the_first_turn_pinned_1780_is_too_small_by_8():
    with pytest.raises(BudgetTooSmall) as error:
        planned(1_780, pinned=[2])
    assert (error.value.short, error.value.needed, error.value.unit) == (8, 1_788, "tokens")


def test_a_pinned_message_within_the_newest_turns_is_sent_once():
    assert planned(1_900, pinned=[5]).ids == (4, 5, 6)


def test_a_pinned_result_keeps_its_call_and_the_other_way_round():
    messages = path(
        [user("a"), a_calls("x", "y"), a_results("x", "y"), assistant("done"), user("b" * 4000)],
        "anthropic",
    )
    for pinned in (2, 3):
        found = window(messages, "anthropic", budget=390, pinned=[pinned], count=lambda m: 100)
        assert found.ids == (2, 3, 5)
        assert violations(found) == []


def test_trimming_never_leaves_half_a_question_and_answer():
    natives = [m for i in range(6) for m in (user(f"question {i}"), assistant(f"answer {i}"))]
    messages = path([*natives, user("now")], "anthropic")
    for budget in range(1, 14):
        found = window(messages, "anthropic", budget=budget, count=lambda m: 1)
        assert found.messages[0]["role"] == "user"
        assert found.tokens <= budget
        assert len(found.ids) % 2 == 1


def test_a_turn_of_many_steps_is_kept_or_left_out_whole():
    steps = [m for i in range(5) for m in (a_calls(f"c{i}"), a_results(f"c{i}"))]
    messages = path([user("old"), *steps, assistant("done"), user("new")], "anthropic")
    for budget in range(1, len(messages)):
        assert window(messages, "anthropic", budget=budget, count=lambda m: 1).ids == (13,)
    assert len(window(messages, "anthropic", budget=13, count=lambda m: 1).ids) == 13


@pytest.mark.parametrize("budget", [0, -1, 1.5, True, "100"])
def test_a_budget_that_is_none_is_refused(budget):
    with pytest.raises(WindowError, match="budget"):
        planned(budget)


def test_an_unknown_target_is_refused_with_those_that_exist():
    with pytest.raises(WindowError, match="openai_responses"):
        window(worked_example(), "cohere")


def test_an_unknown_policy_for_thinking_is_refused():
    with pytest.raises(WindowError, match="auto, keep, drop"):
        planned(3_000, thinking="maybe")


def test_the_newest_images_are_sent_and_older_ones_named():
    from paths import a_image

    messages = path(
        [
            {"role": "user", "content": [a_image(64, 48), {"type": "text", "text": "one"}]},
            assistant("seen"),
            {"role": "user", "content": [a_image(10, 20), a_image(30, 40)]},
        ],
        "anthropic",
    )
    found = window(messages, "anthropic", budget=Budget(images=1))
    kinds = [[b["type"] for b in m["content"]] for m in found.messages if m["role"] == "user"]
    assert kinds == [["text", "text"], ["text", "image"]]
    assert "64x48" in found.messages[0]["content"][0]["text"]
    assert [step.rule for step in found.steps] == ["images"]
    assert window(messages, "anthropic", budget=Budget(images=3)).steps == []


def test_a_budget_of_bytes_drops_old_images_first_and_turns_after_them():
    from paths import a_image

    big = a_image(size=40_000)
    messages = path(
        [
            {"role": "user", "content": [big]},
            assistant("seen"),
            {"role": "user", "content": "and " * 100},
        ],
        "anthropic",
    )
    found = window(messages, "anthropic", budget=Budget(bytes=2_000))
    assert found.ids == (1, 2, 3)
    assert found.bytes <= 2_000
    found = window(messages, "anthropic", budget=Budget(bytes=500))
    assert found.ids == (3,)
    with pytest.raises(BudgetTooSmall) as error:
        window(messages, "anthropic", budget=Budget(bytes=300))
    assert error.value.unit == "bytes"


def test_a_giant_old_turn_is_not_read_to_its_end():
    steps = [m for i in range(3000) for m in (a_calls(f"c{i}"), a_results(f"c{i}"))]
    messages = path([user("old"), *steps, assistant("done"), user("new")], "anthropic")
    read = 0

    def counted():
        nonlocal read
        for message in reversed(messages):
            read += 1
            yield message

    from sessiontree import formats
    from sessiontree.core.planner import plan

    found = plan(counted(), "anthropic", formats.codec, budget=500)
    assert found.ids == (6003,)
    assert read < 1000
    assert len(found.dropped) == 6002


@pytest.mark.parametrize("before", ["cut", "elide", None])
def test_a_newest_turn_far_too_large_right_after_a_mark_is_told_of(before: str | None):
    marks = [] if before is None else [{"role": "mark", "kind": before}]
    large = user("word " * 5_000)
    said = path(
        [
            user("short"),
            assistant("short"),
            *marks,
            {"role": "system", "content": "s"},
            large,
            *marks,
        ],
        "anthropic",
    )
    with pytest.raises(BudgetTooSmall) as refused:
        window(said, "anthropic", budget=100, model="claude-opus-5-5")
    assert refused.value.short > 1_000
