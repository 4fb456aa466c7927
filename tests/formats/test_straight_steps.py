"""Steps that are one chain already are told at a glance: the plan is the one of the long way."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planted import Planted, answer, result, row, user

from sessiontree.core import pairing
from sessiontree.formats import planting, steps

CALLS = ["c1", "c2"]


@st.composite
def files(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Rows of Claude Code's: mostly a chain, with notes on it and beside it, and branches."""
    rows = [user("u", None)]
    for i in range(draw(st.integers(1, 9))):
        names = [str(row["uuid"]) for row in rows if "uuid" in row]
        back = draw(st.sampled_from([0, 0, 0, 1, 2]))
        rows.append(draw(any_row(f"r{i}", names[max(0, len(names) - 1 - back)])))
    return rows


def any_row(name: str, parent: str) -> st.SearchStrategy[dict[str, Any]]:
    calls = st.lists(st.sampled_from(CALLS), max_size=2)
    group = st.sampled_from([None, "m1"])
    return st.one_of(
        st.builds(lambda ids, of: answer(name, parent, *ids, of=of), calls, group),
        st.builds(lambda ids: result(name, parent, *(ids or ["c1"])), calls),
        st.builds(lambda: user(name, parent)),
        st.builds(lambda: row("system", name, parent)),
        st.builds(lambda: row("progress", name, parent)),
        st.builds(lambda: {"type": "file-history-snapshot", "snapshot": name}),
    )


def planted(rows: list[dict[str, Any]], format: str) -> tuple[object, ...]:
    tree = Planted(rows, format)
    tree.check()
    counts = {tree.name(at): count for at, count in tree.plan.open_calls.items()}
    return tree.links, list(tree.plan.order), counts, tree.head, tree.repairs, tree.plan.orphans


def planted_the_long_way(rows: list[dict[str, Any]], format: str) -> tuple[object, ...]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps, "_is_straight", lambda *_: False)
        for module in (steps, pairing):
            patch.setattr(module, "is_answer", lambda *_: False)
        patch.setattr(planting._Planting, "find_unanswered", _search_everywhere)
        return planted(rows, format)


def _search_everywhere(planting_: Any) -> None:
    """Go through all rows, where the short way knows that nothing is to be found."""
    planting_.unsettled = planting_.unsettled or {-2: ()}
    _find_unanswered(planting_)


_find_unanswered = planting._Planting.find_unanswered


@given(files())
@settings(max_examples=400)
def test_a_plan_is_the_same_whether_its_steps_are_told_at_a_glance_or_not(
    rows: list[dict[str, Any]],
):
    assert planted(rows, "claude_code") == planted_the_long_way(rows, "claude_code")


ITEMS = {
    "ask": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
    "call": {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
    "other": {"type": "function_call", "call_id": "c2", "name": "f", "arguments": "{}"},
    "result": {"type": "function_call_output", "call_id": "c1", "output": "x"},
}


@given(st.lists(st.sampled_from([*ITEMS, "note", "rolled_back"]), min_size=1, max_size=12))
@settings(max_examples=400)
def test_notes_between_a_call_and_its_result_do_not_change_the_plan(kinds: list[str]):
    rows: list[dict[str, Any]] = [{"type": "response_item", "payload": ITEMS["ask"]}]
    for i, kind in enumerate(kinds):
        time = f"2026-01-01T00:00:{i:02d}Z"
        if kind in ITEMS:
            rows.append({"type": "response_item", "timestamp": time, "payload": ITEMS[kind]})
            continue
        about = "token_count" if kind == "note" else "thread_rolled_back"
        payload = {"type": about, "num_turns": 1}
        rows.append({"type": "event_msg", "timestamp": time, "payload": payload})
    assert planted(rows, "codex") == planted_the_long_way(rows, "codex")
