"""Claude.ai's export: lists with and without parents, calls and results in one message."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chats import FIXTURES, Chat, chats, fixture, only

from sessiontree.core.message import calls_of, results_of, text_of


def flat() -> Chat:
    return fixture("claude_ai")[0][0]


def tree() -> Chat:
    return fixture("claude_ai")[0][1]


def message(name: str, sender: str, text: str = "Hi", **more: Any) -> dict[str, Any]:
    return {"uuid": name, "sender": sender, "content": [{"type": "text", "text": text}], **more}


def chat(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"uuid": "c", "chat_messages": list(messages), **more}


def test_without_parents_the_order_of_the_list_is_the_chain_whatever_the_times_say():
    assert flat().paths == ["m1 m2 !t2 m3 m4"]
    assert (flat().head, flat().repairs) == ("m4", [])


def test_with_parents_it_is_a_tree_and_the_head_its_current_leaf():
    assert tree().paths == ["b0 b2", "b0 b1 b3"]
    assert tree().head == "b2"


def test_with_parents_and_no_current_leaf_the_head_is_the_newest_leaf():
    root = message("a", "human", parent_message_uuid=None, created_at="2025-01-01T00:00:00Z")
    old = message("b", "assistant", parent_message_uuid="a", created_at="2025-01-01T00:00:01Z")
    new = message("c", "assistant", parent_message_uuid="a", created_at="2025-01-01T00:00:09Z")
    assert only(chat(root, new, old), "claude_ai").head == "c"


def test_a_chat_without_messages_is_told():
    assert fixture("claude_ai")[1] == ["line 2: it is no conversation: it has no messages"]


def test_the_conversation_keeps_all_its_fields():
    opening = tree().document.opening
    assert (opening.topic, opening.title, opening.meta) == (
        "tree",
        "Branches",
        {"model": "claude-x"},
    )
    assert flat().document.opening.created_at == 1_740_823_200_000_000


def test_the_text_is_read_where_the_content_says_nothing():
    assert text_of(flat().decoded("m3").parts) == "Only the old field"
    assert text_of(flat().decoded("m4").parts) == "Also here"


def test_attachments_are_read_and_files_named():
    parts = flat().decoded("m1").parts
    assert text_of(parts) == "When is high water?\n[notes.txt]\nPort: Whitby"
    assert [part["filename"] for part in parts if part["type"] == "file"] == ["map.png"]


def test_calls_and_results_without_ids_pair_inside_their_message():
    parts = flat().decoded("m2").parts
    first, second = calls_of(parts)
    (result,) = results_of(parts)
    assert (first.name, first.given, second.id) == ("web_search", False, "t2")
    assert (result.name, result.given) == ("web_search", False)
    assert text_of(result.response) == "High at noon"
    (entry,) = (e for e in flat().skeleton.entries if e.id == "m2")
    assert [call.id for call in entry.calls] == ["t2"]
    assert entry.results == ()


def test_a_result_of_no_call_in_its_message_is_text():
    assert "stray" in text_of(flat().decoded("m2").parts)


def test_thinking_is_reasoning():
    assert flat().decoded("m2").parts[0]["content"] == "I shall search."


def test_a_message_is_stored_as_it_is():
    given = json.loads((FIXTURES / "claude_ai.json").read_text())
    for conversation, found in zip(given[::2], (flat(), tree()), strict=True):
        for native in conversation["chat_messages"]:
            assert found.native(native["uuid"]) == native


@pytest.mark.parametrize("odd", [None, 5, "text", [], {"uuid": "o", "sender": "robot"}])
def test_a_message_of_another_shape_is_kept_or_told(odd: Any):
    found = only(chat(message("a", "human"), odd, message("b", "assistant")), "claude_ai")
    if isinstance(odd, dict):
        assert (found.paths, found.role("o")) == (["a o b"], "mark")
    else:
        assert found.paths == ["a b"]
        assert "not an object" in found.skips[0]


@pytest.mark.parametrize(
    "content", [None, "text", [None], [5], [{}], [{"type": "text", "text": 5}]]
)
def test_content_of_another_shape_is_kept(content: Any):
    native = {"uuid": "a", "sender": "human", "content": content, "text": ""}
    assert only(chat(native), "claude_ai").native("a") == native


def test_a_real_export_imports_whole(corpus: Path):
    found, told = chats((corpus / "claude-ai" / "example.json").read_bytes(), "claude_ai")
    assert len(found) == 83
    assert told == ["lines 12-13: it is no conversation: it has no messages"]
    assert sum(len(one.plan.order) for one in found) == 557
    assert all(len(one.paths) == 1 and one.repairs == [] for one in found)


def test_a_real_chat_with_parents_imports_whole(corpus: Path):
    found = only((corpus / "claude-ai" / "bakery-chat.json").read_bytes(), "claude_ai")
    assert (len(found.plan.order), len(found.paths)) == (4, 1)
    assert found.head == "47e6dd5f-0e09-4063-8ab3-f155765ac9a1"
