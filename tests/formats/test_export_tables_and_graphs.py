"""Rows for spreadsheets, drawings for people, records for collectors; how much is shown."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from written import TIME, answering, calling, chain, info, message, said, tree_of

from sessiontree import FormatError
from sessiontree.core.message import Message
from sessiontree.formats import markdown
from sessiontree.formats.writing import detail, graph, otel, table, times
from sessiontree.formats.writing.lines import as_json, pretty, sayable

# --- csv --------------------------------------------------------------------------------------


def rows_of(*messages: Message, **options: Any) -> list[dict[str, str]]:
    told = {"on_path": True, "is_head": False} | options
    text = table.header() + "".join(table.row(each, **told) for each in messages)
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_a_row_says_where_a_message_stands_and_what_it_says():
    one, call, result, _ = chain(
        said("list"),
        calling("c1", text="I look.", command="ls"),
        answering("c1", "a\nb"),
        said("x"),
    )
    first, second, third = rows_of(one, call, result, labels=["a", "b"], is_head=True)
    assert set(first) == set(table.COLUMNS)
    assert first["parent_id"] == ""
    assert (first["role"], first["text"], first["calls"]) == ("user", "list", "")
    assert (first["on_path"], first["is_head"], first["labels"]) == ("yes", "yes", "a; b")
    assert first["created_at"] == "2023-11-14T22:13:20.000Z"
    assert (second["parent_id"], second["text"]) == ("1", "I look.")
    assert json.loads(second["calls"]) == [
        {"id": "c1", "name": "Bash", "arguments": {"command": "ls"}}
    ]
    assert json.loads(third["results"]) == [{"id": "c1", "text": "a\nb"}]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\tx", '=HYPERLINK("http://x",1)'])
def test_no_cell_is_a_formula(text: str):
    (row,) = rows_of(message(said(text), model=text, key=text), labels=[text])
    assert row["text"] == f"'{text}"
    assert {row[name][0] for name in ("text", "model", "key", "labels")} == {"'"}


@given(st.text(st.characters(), max_size=40))
def test_any_text_comes_back_from_its_cell(text: str):
    (row,) = rows_of(message(said(text)))
    expected = sayable(text.replace("\0", "\N{SYMBOL FOR NULL}"))
    assert row["text"].removeprefix("'") == expected.removeprefix("'")


# --- mermaid and dot --------------------------------------------------------------------------


def bushy(branches: int, length: int) -> list[Message]:
    """A root with so many branches of such a length."""
    found = [message(said("root"), 1)]
    for at in range(branches):
        above = 1
        for depth in range(1, length + 1):
            made = message(
                said(f"branch {at}, message {depth}"), len(found) + 1, above, depth=depth
            )
            found.append(made)
            above = made.id
    return found


def edges(drawing: str) -> int:
    return len(re.findall(r" (?:-->|-\.->) ", drawing))


def test_a_small_tree_is_drawn_message_by_message():
    found = [*chain(said("a"), said("b", "assistant")), message(said("c", "assistant"), 3, 1)]
    drawing = graph.mermaid(tree_of(found, 2, {3: ["kept"]}), "the whole tree, 3 messages")
    assert drawing == (
        "flowchart TD\n"
        "%% the whole tree, 3 messages\n"
        '  m1["1 user<br/>a"]\n'
        '  m2["2 assistant ← head<br/>b"]\n'
        "  m1 --> m2\n"
        '  m3["3 assistant<br/>c<br/>⚑ kept"]\n'
        "  m1 --> m3\n"
        "  classDef path stroke-width:3px\n"
        "  class m1,m2 path\n"
    )


def test_chains_are_one_box_where_a_box_for_each_would_be_too_many():
    drawing = graph.mermaid(tree_of(bushy(3, 400), 401), "x")
    assert 'm2["2…401 (400 messages) user ← head<br/>branch 0, message 1"]' in drawing
    assert edges(drawing) == 3


@pytest.mark.parametrize(("branches", "length"), [(600, 1), (5_000, 2), (490, 1), (2, 3_000)])
def test_a_drawing_stays_in_mermaids_bounds_and_counts_what_it_leaves_out(
    branches: int, length: int
):
    found = bushy(branches, length)
    drawing = graph.mermaid(tree_of(found, found[-1].id), "x")
    assert edges(drawing) <= graph.MAX_EDGES
    assert len(drawing) <= graph.MAX_CHARACTERS
    left = sum(map(int, re.findall(r'\["?(\d+) more', drawing)))
    drawn = sum(int(found or 1) for found in re.findall(r'm\d+\["\d+(?:…\d+ \((\d+))?', drawing))
    assert drawn + left == len(found)
    assert "← head" in drawing


def test_many_roots_and_a_path_with_many_branches_stay_in_bounds_too():
    roots = [message(said("x" * 200), at) for at in range(1, 3_000)]
    comb = chain(*(said(f"message {at}") for at in range(2_000)))
    comb += [message(said("twig"), 3_000 + at, at, depth=at) for at in range(1, 2_000)]
    for found, head in ((roots, 2_999), (comb, 2_000)):
        drawing = graph.mermaid(tree_of(found, head), "x")
        assert edges(drawing) <= graph.MAX_EDGES
        assert len(drawing) <= graph.MAX_CHARACTERS
        assert "more" in drawing


@given(st.text(max_size=40), st.text(min_size=1, max_size=10))
def test_no_words_break_out_of_a_box(words: str, label: str):
    tree = tree_of(chain(said(words)), 1, {1: [label]})
    _, _, box, *rest = graph.mermaid(tree, words).splitlines()
    inside = re.fullmatch(r'  m1\["(.*)"\]', box)
    assert inside
    assert not set(re.sub(r"<br/>|#\d+;", "", inside[1])) & set('"<>[]{}#;`&|\\')
    assert rest == ["  classDef path stroke-width:3px", "  class m1 path"]
    text = "".join(graph.dot(tree, words))
    (drawn,) = re.findall(r'label="((?:[^"\\]|\\.)*)"', text)
    assert "\n" not in drawn
    assert text.endswith("];\n}\n")


def test_dot_has_every_message_and_can_be_read_by_graphviz():
    found = bushy(600, 2)
    text = "".join(graph.dot(tree_of(found, 3), 'says "so"\\'))
    assert text.count("[label=") == 1_201
    assert text.count("->") == 1_200
    if shutil.which("dot"):
        subprocess.run(["dot", "-Tcanon"], input=text, text=True, check=True, capture_output=True)


# --- otel -------------------------------------------------------------------------------------


def record_of(given: Message, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    told: dict[str, Any] = {"shows": "tree", "on_path": True, "labels": []} | options
    (logs,) = json.loads(otel.record_line(given, info(), **told))["resourceLogs"]
    (record,) = logs["scopeLogs"][0]["logRecords"]
    return record, {pair["key"]: plain(pair["value"]) for pair in record["attributes"]}


def plain(value: dict[str, Any]) -> Any:
    """An AnyValue as JSON."""
    ((kind, inside),) = value.items() or (("null", None),)
    if kind == "kvlistValue":
        return {pair["key"]: plain(pair["value"]) for pair in inside["values"]}
    if kind == "arrayValue":
        return [plain(one) for one in inside["values"]]
    return int(inside) if kind == "intValue" else inside


def test_a_message_is_a_record_in_the_words_of_the_conventions():
    call = chain(said("x"), calling("c1", command="ls"))[1]
    record, facts = record_of(call, labels=["a"])
    assert record["eventName"] == "gen_ai.client.inference.operation.details"
    assert record["timeUnixNano"] == str(TIME * 1000)
    (output,) = facts["gen_ai.output.messages"]
    assert output["role"] == "assistant"
    assert output["finish_reason"] == "tool_call"
    assert output["parts"][0] | {"extra": 0} == {
        "type": "tool_call", "id": "c1", "name": "Bash", "arguments": {"command": "ls"}, "extra": 0
    }  # fmt: skip
    assert facts["sessiontree.message.parent_id"] == 1
    assert facts["sessiontree.message.labels"] == ["a"]
    assert facts["gen_ai.conversation.id"] == "T-1"


@pytest.mark.parametrize(
    ("native", "format", "name"),
    [
        (said("x"), None, "gen_ai.input.messages"),
        (answering("c1"), None, "gen_ai.input.messages"),
        (said("x", "assistant"), None, "gen_ai.output.messages"),
        ({"role": "system", "content": "x"}, "openai_chat", "gen_ai.system_instructions"),
        ({"role": "mark", "kind": "cut"}, "mark", "sessiontree.message.parts"),
    ],
)
def test_each_role_has_its_attribute(native: dict[str, Any], format: str | None, name: str):
    _, facts = record_of(message(native, format=format))
    assert name in facts


def test_usage_and_numbers_beyond_64_bits_are_told():
    usage = json.dumps({"input_tokens": 5, "output_tokens": 7})
    given = message(calling("c1", big=1 << 70, small=-1, real=0.5, no=None, yes=True), usage=usage)
    _, facts = record_of(given)
    assert (facts["gen_ai.usage.input_tokens"], facts["gen_ai.usage.output_tokens"]) == (5, 7)
    arguments = facts["gen_ai.output.messages"][0]["parts"][0]["arguments"]
    assert arguments == {"big": str(1 << 70), "small": -1, "real": 0.5, "no": None, "yes": True}


def test_deep_data_is_text_in_a_record():
    deep: Any = "x"
    for _ in range(240):
        deep = {"a": [deep]}
    record, _ = record_of(message(calling("c1", deep=deep)))
    assert "stringValue" in json.dumps(record)


# --- how much is shown ------------------------------------------------------------------------


def sections(level: detail.Detail) -> str:
    long = "\n".join(f"line {at}" for at in range(500))
    thought = {"type": "thinking", "thinking": "I wonder", "signature": "s"}
    path = chain(
        {"role": "system", "content": "Be brief."},
        said("list"),
        {"role": "assistant", "content": [thought, {"type": "text", "text": "I look."}]},
        calling("c1", command="ls"),
        answering("c1", long),
        said("Done.", "assistant"),
    )
    path.append(message({"role": "mark", "kind": "note", "text": "a mark"}, 7, 6, format="mark"))
    return "".join(markdown.section(each, detail=level) for each in path)


@pytest.mark.parametrize(
    ("level", "there", "gone"),
    [
        ("full", ["Be brief.", "I wonder", "ls", "line 499", "a mark"], []),
        ("high", ["Be brief.", "ls", "line 29", "more char"], ["line 31", "I wonder", "a mark"]),
        ("low", ["list", "I look.", "**Call** `Bash`"], ["Be brief.", "line", "ls`", "I wonder"]),
        ("user-only", ["list"], ["I look.", "Bash", "Done.", "line", "Be brief."]),
    ],
)  # fmt: skip
def test_a_level_shows_so_much(level: detail.Detail, there: list[str], gone: list[str]):
    text = sections(level)
    for words in there:
        assert words in text
    for words in gone:
        assert words not in text


def test_each_level_shows_less_than_the_one_before():
    sizes = [len(sections(level)) for level in detail.DETAILS]
    assert sizes == sorted(sizes, reverse=True)
    assert 0 < sizes[-1] < sizes[0] // 20


def test_a_level_that_there_is_not_lists_those_that_there_are():
    with pytest.raises(FormatError, match="levels: full, high, low, user-only"):
        detail.checked("minimal")


# --- text and times ---------------------------------------------------------------------------


def test_json_text_is_json_whatever_a_message_holds():
    value = {"lone": "\ud800", "word": "Infinity, NaN", "huge": float("inf"), "less": -float("inf")}
    text = as_json(value)
    assert json.loads(text, parse_constant=lambda name: pytest.fail(name)) == value
    text.encode()
    deep: Any = 1
    for _ in range(900):
        deep = [deep]
    assert json.loads(as_json(deep)) == json.loads(pretty(deep)) == deep


@given(st.text(st.characters() | st.sampled_from("\ud800\udfff"), max_size=20))
def test_sayable_text_has_no_lone_surrogate_and_else_stays(text: str):
    said = sayable(text)
    said.encode()
    assert len(said) <= len(text)
    if not re.search("[\ud800-\udfff]", text):
        assert said == text


@pytest.mark.parametrize("time", [0, TIME, -1, 1 << 62, -(1 << 62), 10**17])
def test_times_beyond_the_calendar_are_told_all_the_same(time: int):
    assert times.iso(time)
    assert times.minute(time)
