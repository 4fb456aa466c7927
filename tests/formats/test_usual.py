"""Rows that are looked at without their codec, and without parsing them a second time."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessiontree import formats
from sessiontree.core.message import NewMessage
from sessiontree.errors import FormatError
from sessiontree.formats import claude_code, codex, transcripts, usual
from sessiontree.formats.transcript import Entry, Notes, Source
from sessiontree.store.messages import json_or_null

LOOKS = {"claude_code": claude_code._seen, "pi": usual.pi, "codex": codex._seen}

texts = st.sampled_from(["", "a", " \n x\ny", "\0", "ü→🙂", "a" * 300, "{}", '{"a": 1}', "[1]"])
odd = st.sampled_from([None, True, 0, 1.5, 10**12, [], {}, [[]], "x", {"type": "text"}])
values = st.one_of(texts, odd)
objects = st.dictionaries(texts, st.one_of(values, st.lists(values, max_size=2)), max_size=3)


def block(kind: str, **fields: Any) -> st.SearchStrategy[Any]:
    """A block with fields in their usual shape, or odd, or missing."""
    given = {key: st.one_of(value, value, value, values) for key, value in fields.items()}
    return st.fixed_dictionaries({"type": st.just(kind)}, optional=given)


text = block("text", text=texts)
blocks = st.one_of(
    text,
    block("input_text", text=texts),
    block("output_text", text=texts, annotations=values),
    block("thinking", thinking=texts, signature=texts),
    block("tool_use", id=texts, name=texts, input=objects),
    block("toolCall", id=texts, name=texts, arguments=objects),
    block("tool_result", tool_use_id=texts, content=texts, is_error=st.booleans()),
    block("tool_result", tool_use_id=texts, content=st.lists(text, max_size=2)),
    block("image", source=objects),
    odd,
)
contents = st.one_of(texts, st.lists(blocks, max_size=3), odd)
roles = st.sampled_from(
    ["user", "assistant", "toolResult", "system", "developer", "tool", "custom"]
)
usages = st.one_of(st.none(), objects, st.just({"input_tokens": 2**70, "cost": 5e-06}))
messages = st.fixed_dictionaries(
    {"role": roles, "content": contents},
    optional={
        "usage": usages,
        "model": values,
        "toolCallId": texts,
        "toolName": values,
        "isError": values,
        "id": values,
    },
)
items = st.one_of(
    st.builds(lambda message: {"type": "message"} | message, messages),
    block("function_call", call_id=texts, name=texts, arguments=texts, status=values),
    block("function_call_output", call_id=texts, output=st.one_of(texts, contents)),
    block("reasoning", summary=st.lists(text, max_size=2), encrypted_content=texts),
    block(
        "reasoning",
        summary=st.lists(block("summary_text", text=texts), max_size=2),
        content=st.lists(text, max_size=1),
    ),
)
inside = st.recursive(
    values, lambda inner: st.one_of(st.lists(inner), st.dictionaries(texts, inner))
)
notes = st.dictionaries(st.sampled_from(["message", "content", "summary", "x", "y"]), inside)
marks = {
    "claude_code": st.builds(
        lambda kind, note: note | {"type": kind},
        st.one_of(st.sampled_from(["system", "summary", "progress", "file-history"]), texts),
        notes,
    ),
    "codex": st.builds(
        lambda kind, note: {"type": kind, "payload": note},
        st.one_of(st.sampled_from(["event_msg", "turn_context", "compacted"]), texts),
        st.one_of(notes, values),
    ),
}
rows = {
    "claude_code": st.one_of(
        st.fixed_dictionaries(
            {"type": st.sampled_from(["user", "assistant", "system"]), "message": messages},
            optional={"uuid": texts, "isApiErrorMessage": st.booleans(), "timestamp": values},
        ),
        marks["claude_code"],
    ),
    "pi": st.fixed_dictionaries(
        {"type": st.sampled_from(["message", "custom"]), "id": texts, "message": messages},
        optional={"timestamp": values, "parentId": values},
    ),
    "codex": st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("response_item"), "payload": items}, optional={"timestamp": values}
        ),
        marks["codex"],
    ),
}


@pytest.mark.parametrize("format", LOOKS)
@given(data=st.data())
@settings(max_examples=400)
def test_what_is_seen_without_the_codec_is_what_the_codec_sees(format: str, data: st.DataObject):
    row = data.draw(rows[format])
    seen = LOOKS[format](row)
    if seen is not None:
        assert seen == usual.see(*formats.codec(format).decode(row))


@pytest.mark.parametrize("format", LOOKS)
def test_usual_rows_are_seen_without_the_codec(format: str):
    said = {"role": "assistant", "content": [{"type": "text", "text": "hello"}]}
    row: dict[str, Any] = {"type": "assistant", "message": said}
    if format == "pi":
        row = {"type": "message", "id": "a", "message": said}
    elif format == "codex":
        spoken = [{"type": "output_text", "text": "hello"}]
        row = {"type": "response_item", "payload": {"type": "message", **said, "content": spoken}}
    seen = LOOKS[format](row)
    assert seen is not None
    assert (seen.role, seen.preview, seen.tokens) == ("assistant", "hello", 2)


@pytest.mark.parametrize(
    ("format", "row", "preview", "tokens"),
    [
        ("codex", {"type": "event_msg", "payload": {"type": "note", "n": [1, "x"]}}, None, 7),
        ("claude_code", {"type": "system", "content": "tidied up"}, "tidied up", 11),
    ],
)
def test_notes_of_the_program_are_seen_without_the_codec(
    format: str, row: dict[str, Any], preview: str | None, tokens: int
):
    seen = LOOKS[format](row)
    assert seen is not None
    assert seen == ("mark", (), (), False, preview or "[codex:event_msg]", tokens)


def test_a_text_that_is_long_and_without_spaces_is_counted_where_the_codec_finds_a_text():
    row = {"type": "system", "content": "x" * 5000}
    assert LOOKS["claude_code"](row) == usual.see(*claude_code.CODEC.decode(row))


@given(items)
@settings(max_examples=400)
def test_an_item_begins_a_turn_or_not_whatever_way_its_text_is_read(item: Any):
    item = item if isinstance(item, dict) else {}
    for prefix in ("", " <skill>", "# AGENTS.md instructions for x"):
        for part in item.get("content", []) if isinstance(item.get("content"), list) else []:
            if isinstance(part, dict) and isinstance(part.get("text"), str):
                part["text"] = prefix + part["text"]
        begins = item.get("role") == "user" and not codex._text(item).lstrip().startswith(
            codex.CONTEXT
        )
        assert codex._begins_turn(item) == begins


def read_twice(raw: bytes, format: str) -> tuple[list[NewMessage], list[NewMessage]]:
    """Each message of a file as an import makes it, and as it is read by itself."""
    source, reader = Source(io.BytesIO(raw), "x"), transcripts.reader(format)
    made: list[NewMessage] = []
    alone: list[NewMessage] = []
    for row in list(reader.rows(source, Notes())):
        try:
            entry: Entry = reader.entry(row)
        except FormatError:
            continue
        made.append(reader.message(source.text(entry), entry))
        alone.append(formats.read(row.raw, format=format))
    return made, alone


@pytest.mark.parametrize("format", LOOKS)
@given(data=st.data())
@settings(max_examples=200)
def test_an_imported_message_is_the_same_as_one_that_is_read_by_itself(
    format: str, data: st.DataObject
):
    some = data.draw(st.lists(rows[format], max_size=3))
    raw = b"".join(json.dumps(row).encode() + b"\n" for row in some)
    for made, alone in zip(*read_twice(raw, format), strict=True):
        assert (made.content, made.format, made.role) == (alone.content, alone.format, alone.role)
        assert (made.preview, made.tokens) == (alone.preview, alone.tokens)
        assert made.model == alone.model
        assert json_or_null(made.usage) == json_or_null(alone.usage)


@pytest.mark.parametrize(
    "usage",
    [
        '{"input_tokens": 123456789012345678901234567890}',
        '{"cost": 5e-06, "input_tokens": 7, "server": null}',
        '{"cost": 1e400}',
        '{"note": "\\ud800"}',
        "{}",
        "null",
    ],
)
def test_the_reported_usage_is_kept_as_the_store_would_write_it(usage: str):
    said = f'{{"role": "assistant", "content": "x", "usage": {usage}}}'
    raw = f'{{"type": "assistant", "uuid": "a", "message": {said}}}\n'.encode()
    (made,), (alone,) = read_twice(raw, "claude_code")
    assert json_or_null(made.usage) == json_or_null(alone.usage)


def test_a_row_that_is_another_by_now_is_not_stored_under_what_was_seen_of_it():
    row = {"type": "user", "uuid": "a", "message": {"role": "user", "content": "yes"}}
    file = io.BytesIO(json.dumps(row).encode() + b"\n")
    source, reader = Source(file, "x"), transcripts.reader("claude_code")
    (read,) = reader.rows(source, Notes())
    entry = reader.entry(read)
    file.getbuffer()[:] = file.getvalue().replace(b"yes", b"no!")
    with pytest.raises(FormatError, match="rewritten while it was read"):
        source.text(entry)
