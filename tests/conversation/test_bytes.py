"""A message comes back byte for byte as it was given, after the store was closed and opened
again; what could not is refused before anything is written, and only ever by FormatError."""

from __future__ import annotations

import json
import math
import sqlite3
import types
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from talk import assistant, call, examples, result, step, user

import sessiontree
from sessiontree import Conversation, Message

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=30)


async def kept(file: Path, *given: Any, **how: Any) -> list[Message]:
    """The messages as a later process finds them."""
    async with sessiontree.open_store(file) as store:
        saved = await (await store.conversation("chat")).append(list(given), **how)
    async with sessiontree.open_store(file, read_only=True) as store:
        chat = await store.conversation("chat", create=False)
        found = await chat.path()
        assert [m.row for m in found] == [m.row for m in saved]
        assert [await chat.message(m.id) for m in found] == found
        assert [m async for m in chat.iter_path()] == found
        assert [m async for m in chat.iter_messages()] == found
    return found


TEXTS = {
    "duplicate keys": '{"role":"user","content":"a","content":"b","x":1,"x":2}',
    "key order": '{"zz":1,"content":"a","aa":2,"role":"user"}',
    "white space": ' {\r\n\t"role" : "user" ,"content": "a" }\n\n',
    "NUL": '{"role":"user","content":"a\\u0000b"}',
    "lone surrogates": '{"role":"user","content":"\\ud800 \\udfff \\uDBFF"}',
    "a pair of escapes": '{"role":"user","content":"\\ud83d\\ude00"}',
    "escapes that need none": '{"role":"user","content":"\\u0061\\/\\u00e9"}',
    "infinite numbers": '{"role":"user","content":"a","x":[1e400,-1E999]}',
    "large": '{"role":"user","content":"a","x":[18446744073709551616,-99999999999999999999]}',
    "decimals": '{"role":"user","content":"a","x":[0.10,1.0000000000000000000001,-0,-0.0,1E5]}',
    "empty": '{"role":"user","content":""}',
    "emoji and right to left": '{"role":"user","content":"👩‍👩‍👧 \u202e עברית العربية \u200f"}',
    "line separators": '{"role":"user","content":"\u2028\u2029\u0085\ufeff"}',
    "a long number": '{"role":"user","content":"a","x":' + "9" * 4_000 + "}",
    "a string usage": '{"role":"assistant","content":"a","usage":"none"}',
    "usage beyond JSON": '{"role":"assistant","content":"a","usage":{"n":1e400}}',
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("as_bytes", [False, True], ids=["str", "bytes"])
async def test_json_text_is_kept_to_the_byte(file: Path, text: str, as_bytes: bool) -> None:
    (message,) = await kept(file, text.encode() if as_bytes else text)
    assert message.raw == text
    assert message.native == json.loads(text)
    message.usage, message.meta, message.parts  # noqa: B018 - they can be read


MAPPINGS = {
    "NUL": {"role": "user", "content": "a\x00b"},
    "lone surrogates": {"role": "user", "content": "\ud800 \udfff"},
    "large numbers": {"role": "user", "content": "a", "x": [2**64, -(2**200), 2**63]},
    "floats": {"role": "user", "content": "a", "x": [0.1, -0.0, 5e-324, 1.7976931348623157e308]},
    "true is not 1": {"role": "user", "content": "a", "x": [True, 1, False, 0, None]},
    "empty": {"role": "user", "content": "", "": {"": []}},
    "key order": {"z": 1, "role": "user", "a": 1, "content": "a"},
    "right to left": {"role": "user", "content": "👩‍👩‍👧 \u202e עברית \u2028"},
    "odd keys": {"role": "user", "content": "a", "\ud800": 1, "a\x00": 2, "🙂": 3},
    "JSON in a string": {"role": "user", "content": '{"a": NaN}'},
}


@pytest.mark.parametrize("native", MAPPINGS.values(), ids=MAPPINGS)
async def test_a_mapping_comes_back_equal(file: Path, native: dict[str, Any]) -> None:
    (message,) = await kept(file, native)
    assert repr(message.native) == repr(native)
    assert message.raw.encode("utf-8")


async def test_five_megabytes_come_back(file: Path) -> None:
    text = 'é[\\"\n' * 1_000_000
    (message, *_) = await kept(file, user(text), call("c"), result("c", text), assistant(text[1:]))
    assert message.native["content"] == text
    assert len(message.preview) <= 120
    with sqlite3.connect(file) as db:
        assert db.execute("SELECT count(*) FROM blob").fetchone() == (3,)
    db.close()


async def test_contents_around_the_size_of_a_blob_come_back(file: Path) -> None:
    given = [user("é" * size) for size in range(4_040, 4_080)]
    found = await kept(file, *given)
    assert [m.native for m in found] == given


async def test_nesting_up_to_the_limit_comes_back(file: Path) -> None:
    inner: Any = "x"
    for level in range(491):  # an object outside: only that is read as arguments
        inner = [inner] if level % 2 else {"a": inner}
    message = {"role": "user", "content": "a", "x": inner}
    assert (await kept(file, message))[0].native == message
    arguments = json.dumps(inner)
    calling = call("c")
    calling["tool_calls"][0]["function"]["arguments"] = arguments
    other = file.with_name("other.db")
    found = await kept(other, calling, result("c"))
    assert found[0].tool_calls[0].arguments == inner


async def test_arguments_that_do_not_parse_are_kept_as_text(file: Path) -> None:
    calling = call("c")
    calling["tool_calls"][0]["function"]["arguments"] = '{"cut of'
    found = await kept(file, calling, result("c"))
    assert found[0].tool_calls[0].arguments == '{"cut of'
    assert found[0].native == calling


async def test_drafts_are_kept_to_the_byte_as_well(file: Path) -> None:
    text = json.dumps(call("c"), indent=3) + "\n"
    async with sessiontree.open_store(file) as store:
        chat = await store.conversation("chat")
        with pytest.raises(sessiontree.UnsettledTurn):
            async with chat.turn() as turn:
                await turn.add(text, key="k", usage={"n": 2**70}, model="m")
    async with sessiontree.open_store(file) as store:
        chat = await store.conversation("chat")
        resume = await chat.resume()
        async with chat.turn(resume=resume) as turn:
            await turn.add(result("c"))
        first, _ = await chat.path()
        assert (first.raw, first.key, first.usage, first.model) == (text, "k", {"n": 2**70}, "m")


async def test_notes_beside_a_message_come_back(file: Path) -> None:
    meta = {"a": [1, "\ud800", 2**70], "b": types.MappingProxyType({"c": None})}
    async with sessiontree.open_store(file) as store:
        chat = await store.conversation("t", owner="o\u202e", title="Ti\ntle", meta=meta)
        await chat.append(user())
        await chat.checkpoint("🙂", note="a\nb")
        async with chat.turn() as turn:
            await turn.add(assistant(), key="k\u200f", usage=meta, model="m")
    async with sessiontree.open_store(file) as store:
        chat = await store.conversation("t", owner="o\u202e")
        assert (chat.title, chat.meta) == ("Ti\ntle", {"a": [1, "\ud800", 2**70], "b": {"c": None}})
        (point,) = await chat.checkpoints()
        assert (point.label, point.note) == ("🙂", "a\nb")
        last = (await chat.path())[-1]
        assert (last.key, last.usage, last.model) == ("k\u200f", chat.meta, "m")


# ---- refused -------------------------------------------------------------------------

SELF: list[Any] = []
SELF.append(SELF)
DEEP: Any = []
for _ in range(600):
    DEEP = [DEEP]

REFUSED: dict[str, Any] = {
    "NaN": user("a") | {"x": math.nan},
    "infinity": user("a") | {"x": [math.inf]},
    "bytes": user("a") | {"x": b"a"},
    "a set": user("a") | {"x": {1}},
    "an object": user("a") | {"x": object()},
    "a key that is a number": user("a") | {"x": {1: 2}},
    "a key that is None": {**user("a"), None: 1},
    "a list in itself": user("a") | {"x": SELF},
    "too deep": user("a") | {"x": DEEP},
    "too deep text": json.dumps(user("a"))[:-1] + ',"x":' + "[" * 600 + "]" * 600 + "}",
    "endless digits": user("a") | {"x": 10**5_000},
    "endless digits in text": '{"role":"user","content":"a","x":1' + "0" * 5_000 + "}",
    "split character": user("\ud83d\ude00"),
    "not UTF-8": b'{"role":"user","content":"\xff"}',
    "a surrogate in UTF-8": b'{"role":"user","content":"\xed\xa0\x80"}',
    "no JSON": "hello",
    "cut off": '{"role":"user","content":"a',
    "two values": '{"role":"user","content":"a"}{}',
    "NaN in text": '{"role":"user","content":"a","x":NaN}',
    "a list": "[]",
    "empty text": "",
    "a number": 5,
    "None": None,
    "no role": {"content": "a"},
    "an unknown role": {"role": "boss", "content": "a"},
    "a role that is a list": {"role": [], "content": "a"},
    "no content": {"role": "user"},
    "content that is a number": {"role": "user", "content": 5},
    "empty": {},
    "a whole response": {"choices": [{"message": user("a")}]},
}


@pytest.mark.parametrize("given", REFUSED.values(), ids=REFUSED)
async def test_what_cannot_be_kept_is_refused_before_anything_is_written(
    chat: Conversation, given: Any
) -> None:
    await chat.append([user("before"), *step()])
    head, history = chat.head, await chat.history()
    with pytest.raises(sessiontree.FormatError) as caught:
        await chat.append([user("good"), given])
    assert str(caught.value)
    with pytest.raises(sessiontree.FormatError):
        await chat.edit((await chat.path())[0].id, given)
    async with chat.turn() as turn:
        with pytest.raises(sessiontree.FormatError):
            await turn.add(given)
        assert turn.pending == []
    assert len(await chat.tree()) == 3
    assert (chat.head, await chat.history()) == (head, history)


FIELDS = [
    "role", "content", "type", "text", "tool_calls", "tool_call_id", "id", "name", "function",
    "arguments", "input", "message", "usage", "model", "parts", "output", "tool_use_id",
    "image_url", "source", "call_id", "function_call", "kind", "uuid",
]  # fmt: skip
WORDS = ["user", "assistant", "tool", "system", "text", "tool_use", "tool_result"]
JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | ANY_TEXT
    | st.binary(max_size=5)
    | st.sampled_from(WORDS)
    | st.builds(object),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(FIELDS) | ANY_TEXT | st.integers(), inner, max_size=4)
    ),
    max_leaves=12,
)
MESSAGES = st.one_of(
    JUNK,
    st.builds(
        lambda role, content, more: {"role": role, "content": content, **more},
        st.sampled_from(["user", "assistant", "tool", "system", "mark", "developer", "function"]),
        JUNK,
        st.dictionaries(
            st.sampled_from(["tool_calls", "tool_call_id", "name", "usage", "model", "type", "id"]),
            JUNK,
            max_size=3,
        ),
    ),
)
FORMATS = st.sampled_from(
    [None, None, "openai_chat", "anthropic", "openai_responses", "gemini", "bedrock", "otel",
     "mark", "claude_code", "pi", "nonsense", "", 5]
)  # fmt: skip


@examples(300)
@given(given_=MESSAGES, format=FORMATS, as_text=st.booleans())
async def test_nothing_that_is_given_brings_out_another_error(
    given_: Any, format: Any, as_text: bool
) -> None:
    """And what is taken comes back."""
    if as_text:
        try:
            given_ = json.dumps(given_)
        except (TypeError, ValueError):
            as_text = False
    async with sessiontree.open_store(":memory:") as store:
        chat = await store.conversation()
        try:
            saved = await chat.append([given_], format=format)
        except sessiontree.SessionTreeError:
            assert len(await chat.tree()) == 0
            return
        (message,) = await chat.path()
        assert [message] == saved
        if as_text:
            assert message.raw == given_
        else:
            assert message.native == given_
        assert (message.parts, message.usage, message.text) is not None
        assert await store.check() == []
