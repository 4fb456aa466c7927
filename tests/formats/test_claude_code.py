"""Claude Code's rows: what each is to us, and where it stands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from planted import Planted, answer, read, result, row, user

from sessiontree.core.message import calls_of, results_of, text_of
from sessiontree.errors import FormatError
from sessiontree.formats import codec, recognise
from sessiontree.formats import read as read_message
from sessiontree.formats.claude_code import READER

QUIRKS = Path(__file__).parents[1] / "fixtures" / "claude_code" / "quirks.jsonl"
CODEC = codec("claude_code")


def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in QUIRKS.read_text().splitlines()]


def by_uuid(uuid: str) -> dict[str, Any]:
    return next(made for made in rows() if made.get("uuid") == uuid)


# --- the codec --------------------------------------------------------------------------------


def test_a_row_is_looked_into_by_the_codec_of_anthropic():
    for made in rows():
        if made["type"] in ("user", "assistant") and not made.get("isApiErrorMessage"):
            assert CODEC.decode(made) == codec("anthropic").decode(made["message"])


@pytest.mark.parametrize(
    ("uuid", "role"),
    [
        ("u-01", "user"),
        ("u-05", "user"),
        ("a-03", "assistant"),
        ("r-01", "tool"),
        ("r-03", "tool"),
        ("s-01", "mark"),
        ("s-02", "mark"),
        ("x-01", "mark"),
        ("p-01", "mark"),
        ("a-08", "mark"),
    ],
)
def test_roles(uuid: str, role: str):
    assert CODEC.decode(by_uuid(uuid)).role == role


def test_a_mark_shows_its_text_and_keeps_its_row():
    summary = rows()[-1]
    parts = CODEC.decode(summary).parts
    assert text_of(parts) == "Harbour page reads both tide tables"
    assert parts[1]["native"] == summary


def test_a_row_whose_message_is_broken_is_a_mark_and_not_an_error():
    for message in ({"role": "user"}, {"role": "robot", "content": "x"}, "text", None, 7):
        broken = {**user("u1", None), "message": message}
        assert CODEC.decode(broken).role == "mark"
    tree = Planted([user("u1", None), {**answer("a1", "u1"), "message": {"content": 9}}])
    tree.check()
    assert tree.paths == ["u1 a1"]
    assert "its message is not one of format anthropic" in tree.repairs[0]


def test_something_without_a_type_is_no_row():
    with pytest.raises(FormatError, match="type is missing"):
        CODEC.decode({"uuid": "x"})


def test_rows_are_recognised_and_messages_of_others_are_not():
    assert {recognise(made) for made in rows() if "sessionId" in made and "uuid" in made} == {
        "claude_code"
    }
    assert not CODEC.recognises({"role": "user", "content": "hi", "type": "message"})
    assert not CODEC.recognises({"type": "user", "content": "hi"})


def test_parts_are_written_as_rows():
    decoded = CODEC.decode(by_uuid("a-07"))
    (made,) = CODEC.encode(*decoded)
    assert made["type"] == "assistant"
    again = CODEC.decode(made)
    assert (text_of(again.parts), calls_of(again.parts)) == (
        "Both, with a test.",
        calls_of(decoded.parts),
    )
    assert CODEC.encode("mark", decoded.parts) == []


def test_a_row_read_as_a_message_is_its_line_with_usage_model_and_preview():
    line = json.dumps(by_uuid("a-07"))
    message = read_message(line)
    assert (message.content, message.format, message.model) == (
        line,
        "claude_code",
        "claude-opus-4-5",
    )
    assert message.usage == {
        "input_tokens": 12,
        "output_tokens": 40,
        "cache_read_input_tokens": 800,
    }
    assert message.preview == "Both, with a test."
    assert results_of(CODEC.decode(by_uuid("r-03")).parts)[0].is_error


# --- the reader -------------------------------------------------------------------------------


def test_the_session_of_quirks_is_one_readable_tree():
    tree = Planted(QUIRKS.read_bytes())
    tree.check()
    begin = "line 1 u-01 u-02 a-01 a-02 a-03 a-04 p-01 r-02 r-01 a-05 s-01"
    assert sorted(tree.paths) == [
        f"{begin} u-03 a-06 r-03",
        f"{begin} u-04 line 17 a-07 r-04 s-02 u-05 a-08 u-06 x-01 a-09 line 28 !toolu_05",
        "t-01 t-02",
    ]
    assert tree.head == "!toolu_05"
    assert tree.repairs == [
        "line 10: it is put after the row before it in its step, line 9",
    ]
    assert (tree.skeleton.topics, tree.skips) == (["0b8f4c1e-0000-4000-8000-00000000cafe"], [])


def test_a_compaction_follows_what_it_compacted_so_that_the_history_stays():
    tree = Planted(QUIRKS.read_bytes())
    assert tree.links["s-02"] == "r-04"
    entry = next(e for e in tree.skeleton.entries if e.id == "s-02")
    assert entry.tells is not None
    assert entry.tells.kind == "compaction"


def test_a_compaction_whose_history_is_in_another_file_begins_a_tree():
    boundary = row("system", "b", None, subtype="compact_boundary", logicalParentUuid="gone")
    tree = Planted([boundary, user("u", "b"), answer("a", "u")])
    tree.check()
    assert tree.paths == ["b u a"]
    assert "it follows 'gone', which is not in the file; it is put first" in tree.repairs[0]


def test_sidechains_of_several_agents_are_trees_of_their_own():
    made = [
        user("u", None),
        user("s1", None, isSidechain=True, agentId="x"),
        user("s2", None, isSidechain=True, agentId="y"),
        answer("b1", "lost", isSidechain=True, agentId="x"),
        answer("b2", "lost", isSidechain=True, agentId="y"),
        answer("a", "u"),
    ]
    tree = Planted(made)
    tree.check()
    assert sorted(tree.paths) == ["s1 b1", "s2 b2", "u a"]
    assert (tree.head, tree.plan.sidechains) == ("a", set())


def test_a_file_of_a_subagent_has_only_sidechains_and_says_so():
    made = [
        user("s1", None, isSidechain=True, agentId="x"),
        answer("b1", "s1", isSidechain=True, agentId="x"),
    ]
    tree = Planted(made)
    assert (tree.head, tree.plan.sidechains, tree.skeleton.topics) == ("b1", {0}, ["s1"])


def test_a_snapshot_whose_message_id_is_the_id_of_a_row_is_another_thing():
    snapshot = {"type": "file-history-snapshot", "messageId": "u", "snapshot": {}}
    tree = Planted([user("u", None), snapshot, answer("a", "u")])
    tree.check()
    assert (tree.paths, tree.skips, tree.repairs) == (["u line 2 a"], [], [])


def test_a_row_of_an_unknown_type_is_kept_where_it_stands():
    tree = Planted([user("u", None), row("from the future", "x", "u"), answer("a", "x")])
    tree.check()
    assert tree.paths == ["u x a"]


def test_a_title_is_told_by_a_summary_or_a_title_row():
    made = [
        user("u", None),
        {"type": "custom-title", "customTitle": "Mine", "sessionId": "s1"},
        {"type": "ai-title", "aiTitle": "Its", "sessionId": "s1"},
    ]
    titles = [entry.tells.title for entry in read(made).entries if entry.tells is not None]
    assert titles == ["Mine", "Its"]


# --- documents --------------------------------------------------------------------------------

DOCUMENT = """{
  "loglines": [
    {
      "type": "user",
      "timestamp": "2025-12-24T10:00:00.000Z",
      "message": {"role": "user", "content": "Grüße 🐚"}
    },
    {"type": "assistant", "message": {"role": "assistant", "content": [
      {"type": "tool_use", "id": "c1", "name": "n", "input": {}}]}},
    {"type": "user", "message": {"role": "user", "content": [
      {"type": "tool_result", "tool_use_id": "c1", "content": "ok"}]}}
  ],
  "version": 2
}
"""


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_document_of_rows_is_read_and_each_row_is_stored_as_it_stands_there(mark: bytes):
    tree = Planted(mark + DOCUMENT.encode())
    tree.check()
    assert tree.paths == ["line 3 line 8 line 10"]
    assert tree.repairs == []
    texts = [tree.skeleton.source.text(entry) for entry in tree.skeleton.entries]
    assert [json.loads(text) for text in texts] == json.loads(DOCUMENT)["loglines"]
    assert all(text in DOCUMENT for text in texts)


def test_a_document_that_is_cut_off_gives_the_rows_before():
    cut = DOCUMENT[: DOCUMENT.index('"ok"')]
    tree = Planted(cut)
    tree.check()
    assert tree.paths == ["line 3 line 8 !c1"]
    assert tree.skips[0].startswith("line 10: the document stops being JSON here")


def test_a_row_of_a_document_that_is_no_object_is_skipped():
    tree = Planted(DOCUMENT.replace("[\n    {", "[\n  17, [1],\n  {", 1))
    tree.check()
    assert [note.what for note in tree.skeleton.skipped] == [
        "the row is a number, not a JSON object",
        "the row is a list, not a JSON object",
    ]
    assert len(tree.skeleton.entries) == 3


def test_a_document_nested_too_deep_to_read_is_no_crash():
    deep = '{"loglines": [' + "[" * 200_000
    with pytest.raises(FormatError, match="there is no message"):
        Planted(deep)


# --- real files -------------------------------------------------------------------------------

FIGURES = {
    "representative-messages.jsonl": (12, 2, 2, 0, 1),
    "sample-session.json": (33, 12, 12, 0, 1),
    "session-5c0375b4.jsonl": (53, 21, 21, 22, 3),
    "session-fe5e1c67.jsonl": (438, 167, 167, 405, 6),
}
"""Rows, calls, results, rows of sidechains, roots."""


@pytest.mark.parametrize("name", FIGURES)
def test_real_sessions_import_whole(corpus: Path, name: str):
    tree = Planted((corpus / "claude-code" / name).read_bytes())
    tree.check()
    entries = tree.skeleton.entries
    figures = (
        len(entries),
        sum(len(entry.calls) for entry in entries),
        sum(len(entry.results) for entry in entries),
        sum(1 for entry in entries if entry.side),
        list(tree.links.values()).count(None),
    )
    assert figures == FIGURES[name]
    assert (tree.skips, tree.plan.orphans, tree.plan.ours) == ([], {}, [])
    assert tree.head == (entries[-1].id or f"line {entries[-1].line}")


def test_every_file_of_the_corpus_is_in_the_table(corpus: Path):
    assert {file.name for file in (corpus / "claude-code").iterdir()} == set(FIGURES)


def test_a_reader_makes_the_message_of_a_row():
    skeleton = read([user("u", None), result("r", "u", "c")])
    entry = skeleton.entries[0]
    message = READER.message(skeleton.source.text(entry), entry)
    assert (message.key, message.role, message.preview) == ("u", "user", "hi")
