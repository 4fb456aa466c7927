"""ChatGPT's export: its tree, its hidden nodes, its tools without ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chats import FIXTURES, Chat, chats, fixture, only

from sessiontree.core.message import calls_of, results_of, text_of


def harbour() -> Chat:
    return fixture("chatgpt")[0][0]


def node(name: str, parent: str | None, role: str, text: str = "Hi", **more: Any) -> dict[str, Any]:
    content = {"content_type": "text", "parts": [text]}
    message = {"author": {"role": role}, "content": content, "recipient": "all", **more}
    return {"id": name, "parent": parent, "children": [], "message": message}


def mapping(*nodes: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": "c", "mapping": {made["id"]: made for made in nodes}, **more}


def test_the_tree_is_that_of_the_mapping_without_its_empty_root():
    tree = harbour()
    begin = "h c u1 th call r1 r2 r2* rec a1 u2"
    assert tree.paths == [f"{begin} a2", f"{begin} a3 u3"]
    assert tree.skips == ["line 1: it holds no message: it only holds the tree together"]


def test_a_node_whose_parent_is_missing_follows_the_one_that_names_it_as_its_child():
    assert harbour().links["u3"] == "a3"


def test_the_head_is_the_current_node():
    assert harbour().head == "a2"


def test_without_a_current_node_the_head_is_the_newest_leaf():
    assert fixture("chatgpt")[0][1].head == "y"


def test_a_current_node_that_is_no_message_is_the_nearest_above_that_is_one():
    empty = {"id": "e", "parent": "u", "children": [], "message": None}
    assert only([mapping(node("u", None, "user"), empty, current_node="e")], "chatgpt").head == "u"


def test_a_current_node_that_is_missing_is_told():
    tree = only([mapping(node("u", None, "user"), current_node="gone")], "chatgpt")
    assert tree.head == "u"
    assert "the head is on 'gone', which is not in the file" in tree.repairs[0]


def test_the_conversation_has_its_id_title_time_and_all_its_other_fields():
    opening = harbour().document.opening
    assert (opening.topic, opening.title) == ("conv-1", "Harbour")
    assert opening.created_at == 1_750_000_000_250_000
    assert opening.meta == {"update_time": 1750000011.0, "gizmo_id": None, "is_archived": False}


def test_hidden_nodes_are_marks_and_the_users_instructions_are_the_system_prompt():
    tree = harbour()
    assert tree.role("h") == "mark"
    decoded = tree.decoded("c")
    assert (decoded.role, text_of(decoded.parts)) == ("system", "I am Ada.\n\nBe short.")


def test_pictures_and_files_are_named_beside_the_text():
    role, parts = harbour().decoded("u1")
    assert (role, text_of(parts)) == ("user", "What is the harbour in this picture?")
    assert [(p["modality"], p["file_id"]) for p in parts if p["type"] == "file"] == [
        ("image", "sediment://file_1"),
        ("document", "file_2"),
    ]


def test_a_message_to_a_tool_is_a_call_and_the_tools_message_its_result():
    tree = harbour()
    (call,) = calls_of(tree.decoded("call").parts)
    assert (call.name, call.arguments, call.given) == ("web.search", {"query": "two piers"}, False)
    (result,) = results_of(tree.decoded("r1").parts)
    assert (result.name, result.response) == ("web.search", "A page about piers")
    assert "!call_0" not in tree.links


def test_a_second_result_of_one_call_is_kept_and_said():
    tree = harbour()
    assert tree.links["r2*"] == "r2"
    assert "answers no open call before it" in tree.repairs[0]


def test_a_call_without_a_result_is_closed():
    call = node("a", "u", "assistant", "1 + 1", recipient="python")
    tree = only([mapping(node("u", None, "user"), call, node("v", "a", "user"))], "chatgpt")
    assert tree.paths == ["u a !call_0 v"]


@pytest.mark.parametrize(
    ("name", "text"), [("th", "Looking\n\nTwo piers."), ("rec", "Thought for 3s")]
)
def test_thoughts_are_reasoning(name: str, text: str):
    (part,) = harbour().decoded(name).parts
    assert (part["type"], part["content"]) == ("reasoning", text)


def test_times_and_models_are_those_of_the_messages():
    tree = harbour()
    entries = {entry.id: entry for entry in tree.skeleton.entries}
    assert (entries["a1"].created_at, entries["a1"].model) == (1_750_000_006_000_000, "gpt-5")
    assert (entries["u2"].created_at, entries["a3"].model) == (1_740_000_000_000_000, "gpt-5-mini")


def test_a_node_is_stored_as_it_is():
    (conversation, *_) = json.loads((FIXTURES / "chatgpt.json").read_text())
    tree = harbour()
    for name, native in conversation["mapping"].items():
        if native["message"] is not None:
            assert tree.native(name) == native


def test_a_conversation_without_a_mapping_is_told_and_the_others_come_in():
    found, told = fixture("chatgpt")
    assert [chat.document.opening.topic for chat in found] == ["conv-1", "conv-3"]
    assert told == ["line 2: it is no conversation: it has no mapping, so it holds no messages"]


def test_conversations_may_share_ids_of_nodes():
    one = mapping(node("client-created-root", None, "user", "one"))
    two = {**mapping(node("client-created-root", None, "user", "two")), "id": "d"}
    found, told = chats([one, two], "chatgpt")
    assert [chat.paths for chat in found] == [["client-created-root"]] * 2
    assert told == []


@pytest.mark.parametrize("wrap", [lambda c: c, lambda c: [c], lambda c: {"conversations": [c]}])
def test_it_may_be_one_conversation_a_list_or_an_object_with_a_list(wrap: Any):
    assert only(wrap(mapping(node("u", None, "user"))), "chatgpt").paths == ["u"]


@pytest.mark.parametrize(
    "message",
    [
        {},
        "text",
        {"author": None, "content": {}},
        {"author": {"role": "robot"}, "content": {"content_type": "text", "parts": ["x"]}},
        {"author": {"role": "user"}, "content": None},
        {"author": {"role": "user"}, "content": {"parts": ["x"]}, "metadata": ["list"]},
    ],
)
def test_a_message_of_another_shape_is_kept(message: Any):
    odd = {"id": "o", "parent": "u", "message": message}
    tree = only([mapping(node("u", None, "user"), odd)], "chatgpt")
    assert tree.paths == ["u o"]
    assert tree.native("o") == odd


def test_ids_that_no_database_could_hold_are_written_another_way():
    raw = mapping(node("a\0", None, "user"), node("b\ud800", "a\0", "assistant"))
    tree = only([{**raw, "id": "c\0", "current_node": "a\0"}], "chatgpt")
    names = [entry.key for entry in tree.skeleton.entries[1:]]
    assert not [name for name in names if name is None or not name.isprintable()]
    assert (tree.head, tree.links) == (names[0], {names[0]: None, names[1]: names[0]})
    assert str(tree.document.opening.topic).isprintable()


def test_nodes_in_a_circle_are_cut_and_told():
    tree = only([mapping(node("a", "b", "user"), node("b", "a", "assistant"))], "chatgpt")
    assert tree.paths == ["a b"]
    assert "in a circle" in tree.repairs[0]


CORPUS = {
    "export.json": ([16, 5], [0, 0]),
    "tree.json": ([12], [2]),
    "example.json": ([12], [0]),
}


@pytest.mark.parametrize("name", CORPUS)
def test_real_exports_import_whole(corpus: Path, name: str):
    found, told = chats((corpus / "chatgpt" / name).read_bytes(), "chatgpt")
    assert told == []
    kept = [sum(entry.is_kept for entry in chat.skeleton.entries) for chat in found]
    assert (kept, [branch_points(chat) for chat in found]) == CORPUS[name]
    given = json.loads((corpus / "chatgpt" / name).read_text())
    assert [chat.head for chat in found] == [one["current_node"] for one in given]


def branch_points(chat: Chat) -> int:
    parents = [parent for parent in chat.links.values() if parent is not None]
    return sum(parents.count(parent) > 1 for parent in set(parents))
