"""OpenAssistant's trees."""

from __future__ import annotations

from pathlib import Path

from chats import chats, fixture

from sessiontree.core.message import text_of


def test_each_line_is_a_tree_and_a_conversation():
    (first, second), told = fixture("oasst")
    assert told == []
    assert first.paths == ["o1 o2 o4", "o1 o3"]
    assert (second.paths, second.head) == (["p1"], "p1")
    assert (first.document.opening.topic, first.document.opening.meta) == (
        "o1",
        {"tree_state": "ready_for_export"},
    )


def test_the_head_is_at_the_end_of_the_best_replies():
    assert fixture("oasst")[0][0].head == "o3"


def test_a_node_is_stored_without_its_replies():
    tree = fixture("oasst")[0][0]
    assert tree.native("o4") == {
        "message_id": "o4",
        "parent_id": "o2",
        "text": "Hm",
        "role": "prompter",
        "lang": "en",
        "deleted": False,
        "rank": 0,
    }
    decoded = tree.decoded("o4")
    assert (decoded.role, text_of(decoded.parts)) == ("user", "Hm")


def test_a_line_that_is_no_tree_is_told_and_the_others_come_in():
    lines = '{"message_tree_id": "x"}\nnot json\n\n{"prompt": {"role": "prompter", "text": "Hi"}}\n'
    (tree,), told = chats(lines, "oasst")
    assert tree.links == {"line 1": None}
    assert [one.split(":")[0] for one in told] == ["line 1", "line 2"]


def test_real_trees_import_whole(corpus: Path):
    found, told = chats((corpus / "oasst" / "en_100_tree.jsonl").read_bytes(), "oasst")
    assert (len(found), told) == (100, [])
    assert sum(len(tree.plan.order) for tree in found) == 1167
    points = 0
    for tree in found:
        parents = [parent for parent in tree.links.values() if parent is not None]
        points += sum(parents.count(parent) > 1 for parent in set(parents))
    assert points == 260
