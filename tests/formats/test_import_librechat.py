"""LibreChat's export: recursive, flat and linear."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chats import FIXTURES, Chat, fixture, only

from sessiontree.core.message import calls_of, results_of, text_of


def tides() -> Chat:
    return fixture("librechat")[0][0]


def test_the_children_in_a_message_are_messages_of_their_own():
    assert tides().paths == ["system l1 l2 l4", "system l1 l3"]
    assert "children" not in tides().native("l1")


def test_a_flat_list_gives_the_same_tree_in_any_order():
    given = json.loads((FIXTURES / "librechat_tree.json").read_text())
    tree = tides()
    given["messages"] = [tree.native(name) for name in ("l4", "l3", "l2", "l1")]
    flat = only(given, "librechat")
    assert (flat.links, flat.head) == (tree.links, tree.head)


def test_the_head_is_the_newest_leaf():
    assert tides().head == "l4"


def test_without_parents_the_order_of_the_list_is_the_chain():
    linear = only((FIXTURES / "librechat_linear.json").read_bytes(), "librechat")
    assert (linear.paths, linear.head, linear.repairs) == (["x1 x2"], "x2", [])


def test_the_prompt_prefix_is_the_system_prompt():
    decoded = tides().decoded("system")
    assert (decoded.role, text_of(decoded.parts)) == ("system", "Be short.")
    assert tides().document.opening.meta["options"]["model"] == "gpt-4o"


def test_a_message_holds_its_calls_with_their_results():
    role, parts = tides().decoded("l2")
    ((call,), (result,)) = calls_of(parts), results_of(parts)
    assert (role, text_of(parts)) == ("assistant", "Let me look.\nAt noon.")
    assert (call.id, call.name, call.arguments) == ("tc1", "tides", {"port": "Whitby"})
    assert (result.id, result.response) == ("tc1", "High at noon")
    assert (parts[0]["type"], parts[0]["content"]) == ("reasoning", "Hm.")


def test_a_call_without_an_output_is_closed():
    piece = {"type": "tool_call", "tool_call": {"id": "x", "name": "f", "args": ""}}
    message = {"messageId": "a", "isCreatedByUser": False, "text": "", "content": [piece]}
    assert only({"conversationId": "c", "messages": [message]}, "librechat").paths == ["a !x"]


def test_an_error_is_the_programs_word_and_a_mark():
    assert tides().role("l3") == "mark"


@pytest.mark.parametrize("odd", [{"messageId": "o"}, {"messageId": "o", "sender": 5, "text": []}])
def test_a_message_of_another_shape_is_kept(odd: dict[str, Any]):
    first = {"messageId": "a", "sender": "User", "text": "Hi", "parentMessageId": None}
    odd["parentMessageId"] = "a"
    found = only({"conversationId": "c", "messages": [first, odd]}, "librechat")
    assert (found.paths, found.role("o"), found.native("o")) == (["a o"], "mark", odd)


@pytest.mark.parametrize("depth", [3, 5_000])
def test_messages_may_hold_each_other_as_deep_as_they_like(depth: int):
    opens = "".join(
        f'{{"messageId": "m{i}", "isCreatedByUser": true, "text": "x", "children": ['
        for i in range(depth)
    )
    content = f'{{"conversationId": "c", "messages": [{opens}{"]}" * depth}]}}'
    found = only(content, "librechat")
    assert len(found.plan.order) == depth
    assert len(found.paths) == 1


@pytest.mark.parametrize(
    ("name", "messages", "roots", "leaves"),
    [("tree.json", 10, 1, 3), ("flat-branches.json", 5, 2, 3)],
)
def test_real_exports_import_whole(corpus: Path, name: str, messages: int, roots: int, leaves: int):
    found = only((corpus / "librechat" / name).read_bytes(), "librechat")
    assert (len(found.plan.order), len(found.paths)) == (messages, leaves)
    assert list(found.links.values()).count(None) == roots
    assert (found.repairs, found.skips) == ([], [])
