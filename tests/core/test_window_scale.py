"""Twice as much of anything is at most about twice as many steps: of the interpreter, so that no
clock takes part."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from paths import TARGETS, c_calls, c_result, path, user, window

from sessiontree import formats
from sessiontree.core.reclaim import Sight, elide


def steps_of(work: Callable[[], object]) -> int:
    """How many instructions of the interpreter it takes."""
    count = 0

    def trace(frame: Any, event: str, _: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def at_once(ids: list[str]) -> list[Any]:
    return [user("go"), c_calls(*ids), *[c_result(i) for i in reversed(ids)]]


def in_order(ids: list[str]) -> list[Any]:
    return [user("go"), c_calls(*ids), *[c_result(i) for i in ids]]


def between(ids: list[str]) -> list[Any]:
    return [user("go"), c_calls(*ids), *[m for i in ids for m in (user("well?"), c_result(i))]]


def apart(ids: list[str]) -> list[Any]:
    return [user("go"), *[c_calls(i) for i in ids], *[c_result(i) for i in ids]]


def again(ids: list[str]) -> list[Any]:
    return [user("go"), *[m for _ in ids for m in (c_calls("same"), c_result("same"))]]


def unanswered(ids: list[str]) -> list[Any]:
    return [user("go"), *[c_calls(i) for i in ids], user("well?")]


def users(ids: list[str]) -> list[Any]:
    return [user(i) for i in ids]


CASES = (at_once, in_order, between, apart, again, unanswered, users)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("made", CASES, ids=lambda made: made.__name__)
def test_a_window_takes_steps_by_the_number_of_messages(
    made: Callable[[list[str]], list[Any]], target: str
) -> None:
    few, many = (path(made([f"c{i}" for i in range(n)]), "openai_chat") for n in (60, 180))
    window(few, target)  # what is made once only
    once = steps_of(lambda: window(few, target))
    assert steps_of(lambda: window(many, target)) < 4 * once


@pytest.mark.parametrize("made", CASES, ids=lambda made: made.__name__)
def test_an_elision_is_planned_in_steps_by_the_number_of_results(
    made: Callable[[list[str]], list[Any]],
) -> None:
    def planned(messages: list[Any]) -> None:
        elide.plan(Sight(messages[::-1], "anthropic", formats.codec), protect=0, save=0)

    few, many = (path(made([f"c{i}" for i in range(n)]), "openai_chat") for n in (60, 180))
    planned(few)
    once = steps_of(lambda: planned(few))
    assert steps_of(lambda: planned(many)) < 4 * once
