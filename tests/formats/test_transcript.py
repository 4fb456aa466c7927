"""Reading transcript files: lines, damage, ids, and what each row follows."""

from __future__ import annotations

import io
import json

import pytest
from planted import Planted, answer, read, result, row, user

from sessiontree.errors import FormatError
from sessiontree.formats import transcript, transcripts
from sessiontree.formats.transcript import Entry, Note, Notes, Source, microseconds

A_CHAIN = [user("u1", None), answer("a1", "u1"), user("u2", "a1"), answer("a2", "u2")]


# --- lines ------------------------------------------------------------------------------------


def lines(*parts: str | bytes | dict[str, object]) -> bytes:
    """A file with these lines, JSON where it is an object."""
    raw = [json.dumps(part) if isinstance(part, dict) else part for part in parts]
    return b"".join((r.encode() if isinstance(r, str) else r) + b"\n" for r in raw)


def test_a_sound_file_is_read_as_it_is():
    tree = Planted(A_CHAIN)
    tree.check()
    assert tree.paths == ["u1 a1 u2 a2"]
    assert (tree.head, tree.repairs, tree.skips) == ("a2", [], [])


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"type": "user", "uu', "the line is not JSON: Unterminated string"),
        (b"", "it is blank"),
        (b"   \t", "it is blank"),
        (b"\0\0\0\0", "it holds nothing but NUL bytes, as a crash leaves them"),
        (b"[1, 2]", "the line is a list, not a JSON object"),
        (b"17", "the line is a number, not a JSON object"),
        (b'{"type": "user\xff"}', "the line is not UTF-8"),
        (b'{"a": NaN}', "the line cannot be read as JSON: NaN is not JSON"),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested deeper than 500 levels"),
        (b'{"no": "type"}', "not a message of format claude_code: it.type is missing"),
        (b'{"a": "\0"}', "the line is not JSON: Invalid control character"),
    ],
)
def test_a_line_that_is_no_row_is_skipped_with_its_number_and_reason(line: bytes, why: str):
    first, *rest = A_CHAIN
    tree = Planted(lines(first, line, *rest))
    tree.check()
    assert tree.paths == ["u1 a1 u2 a2"]
    (note,) = tree.skeleton.skipped
    assert (note.line, note.last) == (2, 2)
    assert why in note.what


def test_a_last_line_that_is_cut_off_is_told_as_that():
    tree = Planted(lines(*A_CHAIN) + b'{"type": "user", "uuid": "u3", "parent')
    tree.check()
    assert tree.head == "a2"
    assert tree.skips[0].startswith("line 5: the file ends in the middle of it (")


def test_a_last_line_without_a_line_end_is_read():
    assert Planted(lines(*A_CHAIN).rstrip(b"\n")).paths == ["u1 a1 u2 a2"]


def test_a_byte_order_mark_and_windows_line_ends_do_not_matter():
    raw = b"\xef\xbb\xbf" + lines(*A_CHAIN).replace(b"\n", b"\r\n")
    tree = Planted(raw)
    tree.check()
    assert (tree.paths, tree.repairs, tree.skips) == (["u1 a1 u2 a2"], [], [])
    first = tree.skeleton.entries[0]
    assert tree.skeleton.source.text(first) == json.dumps(A_CHAIN[0])


def test_a_line_longer_than_can_be_held_is_skipped_and_the_next_is_read(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(transcript, "MAX_ROW", 1 << 20)
    raw = lines(A_CHAIN[0], '{"type": "' + "x" * (3 << 20) + '"}', *A_CHAIN[1:])
    tree = Planted(raw)
    tree.check()
    assert tree.skips == ["line 2: it is longer than 1 MiB"]
    assert tree.paths == ["u1 a1 u2 a2"]


def test_the_same_about_lines_in_a_row_is_one_note():
    notes = Notes()
    for line in (2, 3, 4, 6):
        notes.add(line, "it is blank")
    notes.add(7, "it is torn")
    assert notes == [
        Note(2, "it is blank", 4),
        Note(6, "it is blank", 6),
        Note(7, "it is torn", 7),
    ]
    assert str(notes[0]) == "lines 2-4: it is blank"


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "it is empty"),
        (b"\n\n", "lines 1-2: it is blank"),
        (b"not JSON\n", "the line is not JSON"),
        (lines({"type": "summary", "summary": "Nothing else"}), "notes of the program only"),
    ],
)
def test_a_file_of_which_nothing_can_be_imported_is_an_error(content: bytes, what: str):
    with pytest.raises(FormatError, match=what) as caught:
        read(content)
    assert caught.value.file == "session.jsonl"


def test_a_row_is_read_again_where_it_stands_and_a_rewritten_file_is_told():
    file = io.BytesIO(lines(*A_CHAIN))
    source = Source(file, "session.jsonl")
    entry = Entry(2, len(lines(A_CHAIN[0])), len(json.dumps(A_CHAIN[1])))
    assert json.loads(source.text(entry)) == A_CHAIN[1]
    file.truncate(100)
    with pytest.raises(FormatError, match=r"session\.jsonl: line 2: the file was rewritten"):
        source.text(entry)


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ("1970-01-01T00:00:01.5Z", 1_500_000),
        ("2025-09-07T09:52:03.071+02:00", 1_757_231_523_071_000),
        ("2025-09-07T07:52:03.071", 1_757_231_523_071_000),
        (1_765_233_665_292, 1_765_233_665_292_000),
        ("yesterday", None),
        (None, None),
        (True, None),
        (float("1e300"), None),
        ({}, None),
    ],
)
def test_times_are_microseconds_and_nonsense_is_none(time: object, expected: int | None):
    assert microseconds(time) == expected


# --- which format -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (lines(*A_CHAIN), "claude_code"),
        (b"\xef\xbb\xbf" + lines(*A_CHAIN), "claude_code"),
        (lines("torn", *A_CHAIN), "claude_code"),
        (b'{\n "loglines": [\n', "claude_code"),
        (lines({"type": "session", "version": 3, "id": "x"}), "pi"),
        (lines({"type": "message", "id": "a", "message": {"role": "user"}}), "pi"),
        (lines({"sessiontree": 1, "head": None}), "jsonl"),
    ],
)
def test_a_format_is_told_from_the_start_of_a_file(head: bytes, name: str):
    assert transcripts.detect(head, "whatever.txt") == name


@pytest.mark.parametrize("head", [b"hello", lines({"a": 1}), b"\x89PNG\r\n\x1a\n\0\0"])
def test_an_unknown_file_is_an_error_that_lists_the_formats(head: bytes):
    with pytest.raises(FormatError, match="formats: jsonl, claude_code, pi"):
        transcripts.detect(head, "picture.png")


def test_a_reader_that_does_not_exist_is_an_error_that_lists_those_that_do():
    for name in ("markdown", "word", ""):
        with pytest.raises(FormatError, match="formats: jsonl, claude_code, pi"):
            transcripts.reader(name)


def test_a_first_row_longer_than_the_head_is_no_reason_not_to_know_the_file():
    long = user("u1", None, "x" * (transcript.HEAD * 2))
    raw = lines(long, answer("a1", "u1"))
    assert transcripts.detect(raw[: transcript.HEAD], "s.jsonl") == "claude_code"


# --- ids --------------------------------------------------------------------------------------


def test_a_row_that_is_there_twice_is_skipped_the_second_time():
    tree = Planted([*A_CHAIN, A_CHAIN[1]])
    tree.check()
    assert tree.paths == ["u1 a1 u2 a2"]
    assert tree.skips == ["line 5: it is line 2 again"]


def test_another_row_with_an_id_that_is_taken_is_kept_apart():
    tree = Planted([*A_CHAIN, user("u2", "a1", "something else")])
    tree.check()
    assert tree.skeleton.entries[4].key == "u2#2"
    assert tree.links["a2"] == "u2"
    assert tree.repairs == ["line 5: it has the id of line 3; it is kept apart"]


def test_rows_without_an_id_have_the_same_key_each_time():
    rows = [*A_CHAIN, {"type": "summary", "summary": "x"}, {"type": "summary", "summary": "x"}]
    keys = [entry.key for entry in read(rows).entries]
    assert keys == [entry.key for entry in read(rows).entries]
    assert len(set(keys)) == 6
    assert keys[5] == f"{keys[4]}#2"


# --- what each row follows --------------------------------------------------------------------


def test_keys_of_rows_without_an_id_come_in_the_order_of_their_times():
    times = ["2026-01-01T09:59:59.999Z", "2026-01-01T10:00:00Z", "2026-11-01T00:00:00Z"]
    rows = [{"type": "event_msg", "timestamp": t, "payload": {"n": 1}} for t in times]
    said = {"type": "message", "role": "user", "content": "hi"}
    rows.append({"type": "response_item", "timestamp": "2027-01-01T00:00:00Z", "payload": said})
    rows.append({"type": "response_item", "payload": said})
    keys = [entry.key or "" for entry in read(rows, "codex").entries]
    assert keys[:4] == sorted(keys[:4])
    assert len(set(keys)) == 5
    assert keys == [entry.key for entry in read(rows, "codex").entries]


def test_the_order_of_the_rows_does_not_matter():
    tree = Planted([A_CHAIN[3], A_CHAIN[0], A_CHAIN[2], A_CHAIN[1]])
    tree.check()
    assert tree.paths == ["u1 a1 u2 a2"]
    assert tree.repairs == []


def test_a_row_older_than_what_it_follows_is_no_damage():
    rows = [
        user("u1", None, timestamp="2025-01-02T00:00:00Z"),
        answer("a1", "u1", timestamp="2025-01-01T00:00:00Z"),
    ]
    assert Planted(rows).repairs == []


def test_a_parent_that_is_not_in_the_file_does_not_cut_the_path():
    tree = Planted([*A_CHAIN[:2], user("u2", "phantom"), answer("a2", "u2")])
    tree.check()
    assert tree.paths == ["u1 a1 u2 a2"]
    assert tree.repairs == [
        "line 3: it follows 'phantom', which is not in the file; it is put after the row before it"
    ]


def test_a_first_row_whose_parent_is_missing_is_a_root():
    tree = Planted([user("u1", "in another file"), answer("a1", "u1")])
    assert tree.paths == ["u1 a1"]
    assert tree.repairs[0].endswith("which is not in the file; it is put first")


def test_what_follows_a_row_that_cannot_be_read_goes_on_where_it_stands():
    tree = Planted(lines(A_CHAIN[0], json.dumps(A_CHAIN[1])[:-5], *A_CHAIN[2:]))
    tree.check()
    assert tree.paths == ["u1 u2 a2"]


def test_rows_that_follow_each_other_in_a_circle_are_cut_where_the_first_stands():
    rows = [A_CHAIN[0], answer("a1", "a2"), user("u2", "a1"), answer("a2", "u2")]
    tree = Planted(rows)
    tree.check()
    assert tree.paths == ["u1 a1 u2 a2"]
    assert tree.repairs == [
        "line 2: lines 2, 3, 4 follow each other in a circle; this one is put after the row "
        "before it"
    ]


def test_a_circle_at_the_start_of_a_file_becomes_a_root():
    tree = Planted([user("u1", "a1"), answer("a1", "u1")])
    tree.check()
    assert tree.paths == ["u1 a1"]
    assert tree.repairs[0].endswith("this one is made a root")


def test_a_row_that_follows_itself_is_put_after_the_row_before_it():
    tree = Planted([*A_CHAIN[:3], answer("a2", "a2")])
    tree.check()
    assert tree.paths == ["u1 a1 u2 a2"]
    assert "it follows itself" in tree.repairs[0]


def test_a_chain_of_which_no_row_names_a_parent_is_the_order_of_the_file():
    tree = Planted([user("u1", None), answer("a1", None, "c1"), result("r1", None, "c1")])
    tree.check()
    assert tree.paths == ["u1 a1 r1"]
    assert tree.repairs == [
        "lines 2-3: no row of the file names a parent; it follows the row before"
    ]


def test_roots_beside_each_other_are_roots_where_other_rows_name_parents():
    tree = Planted([*A_CHAIN, user("u9", None, "asked again"), answer("a9", "u9")])
    tree.check()
    assert tree.paths == ["u1 a1 u2 a2", "u9 a9"]
    assert tree.head == "a9"


def test_a_sidechain_does_not_follow_the_main_chain():
    rows = [
        A_CHAIN[0],
        user("s1", None, isSidechain=True),
        A_CHAIN[1],
        answer("s2", "phantom", isSidechain=True),
    ]
    tree = Planted(rows)
    tree.check()
    assert sorted(tree.paths) == ["s1 s2", "u1 a1"]
    assert tree.head == "a1"


def test_a_chain_of_many_rows_is_read_without_recursion():
    rows = [user("u0", None)]
    rows += [user(f"u{i}", f"u{i - 1}") for i in range(1, 20_000)]
    tree = Planted(rows[::-1])
    assert tree.head == "u0"
    assert len(tree.paths[0].split()) == 20_000


# --- conversations ----------------------------------------------------------------------------


def test_each_session_of_a_file_is_a_conversation():
    rows = [*A_CHAIN, {**user("v1", None), "sessionId": "s2"}]
    skeleton = read(rows)
    assert skeleton.topics == ["s1", "s2"]
    assert list(skeleton.topic) == [0, 0, 0, 0, 1]


def test_a_row_that_continues_another_session_is_in_the_conversation_that_it_continues():
    rows = [*A_CHAIN, {**user("v1", "a2"), "sessionId": "s2"}]
    skeleton = read(rows)
    assert skeleton.topics == ["s1"]


def test_rows_of_two_sessions_that_write_one_file_do_not_mix():
    rows = [
        user("u1", None),
        {**user("v1", None), "sessionId": "s2"},
        answer("a1", "gone"),
        {**answer("b1", "gone"), "sessionId": "s2"},
        row("file-history-snapshot", "", None),
    ]
    tree = Planted(rows)
    tree.check()
    assert tree.links["a1"] == "u1"
    assert tree.links["b1"] == "v1"


def test_a_file_without_a_session_is_named_after_the_file_and_its_first_row():
    rows = [{k: v for k, v in r.items() if k != "sessionId"} for r in A_CHAIN]
    (topic,) = read(rows).topics
    assert topic.startswith("session-")
    assert read(rows).topics == [topic]
    rows[0]["message"] = {"role": "user", "content": "another beginning"}
    assert read(rows).topics != [topic]


def test_names_that_no_database_holds_are_held_as_escapes():
    rows = [user("a\0b", None), answer("\ud800", "a\0b"), user("é", "\ud800")]
    rows = [{**made, "sessionId": "\ud801"} for made in rows]
    tree = Planted(rows)
    tree.check()
    assert tree.paths == ["a\\u0000b \\ud800 é"]
    assert tree.skeleton.topics == ["\\ud801"]
