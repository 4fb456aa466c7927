"""OpenAssistant's trees."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from chats import FIXTURES, chats, fixture

from sessiontree.core.message import text_of
from sessiontree.formats import oasst, transcripts


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


# --- flat -------------------------------------------------------------------------------------

FLAT = (FIXTURES / "oasst_flat.jsonl").read_bytes()


def test_rows_with_parents_are_trees_too():
    assert transcripts.detect(FLAT, "x") == "oasst"
    (first, second), told = chats(FLAT, "oasst")
    assert told == []
    assert (first.paths, first.head) == (["f1 f2", "f1 f3 f4"], "f4")
    assert (second.paths, second.head) == (["g1"], "g1")
    opening = first.document.opening
    assert (opening.topic, opening.meta) == ("f1", {"tree_state": "ready_for_export"})
    assert first.decoded("f3").role == "assistant"


def test_rows_of_a_tree_may_stand_anywhere_in_a_small_file():
    lines = FLAT.splitlines(keepends=True)
    Random(3).shuffle(lines)
    trees = {tree.document.opening.topic: tree for tree in chats(b"".join(lines), "oasst")[0]}
    assert set(trees) == {"f1", "g1"}
    assert (sorted(trees["f1"].paths), trees["f1"].head) == (["f1 f2", "f1 f3 f4"], "f4")


def test_a_large_file_is_read_a_tree_at_a_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(oasst, "MAX_HELD", 0)
    found, told = chats(FLAT, "oasst")
    assert [tree.paths for tree in found] == [["f1 f2", "f1 f3 f4"], ["g1"]]
    assert told == []


def test_rows_that_follow_each_other_in_a_circle_end():
    rows = [
        f'{{"message_tree_id": "t", "message_id": "{a}", "parent_id": "{b}", "text": "x", '
        f'"role": "prompter"}}'
        for a, b in (("a", "b"), ("b", "a"), ("c", None))
    ]
    (tree,), _ = chats("\n".join(rows).replace('"None"', "null"), "oasst")
    assert sorted(tree.links) == ["a", "b", "c"]
