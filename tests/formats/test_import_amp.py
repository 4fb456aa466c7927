"""Amp's threads: Anthropic's messages with numbers, and results as runs of tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agents import FIXTURES, brought, damaged, objects, roles, sent, survives
from hypothesis import given, settings

import sessiontree
from sessiontree.core.message import calls_of, results_of, text_of
from sessiontree.formats import codec, transcripts

THREAD = FIXTURES / "T-5b1f6c1e-0000-4000-8000-00000000cafe.json"
RAW = THREAD.read_bytes()
CODEC = codec("amp")


@pytest.fixture
async def store():
    async with sessiontree.open_store(":memory:") as opened:
        yield opened


def messages() -> list[dict[str, Any]]:
    return json.loads(RAW)["messages"]


def test_a_thread_is_told_by_its_content_whatever_the_file_is_called():
    assert transcripts.detect(RAW, "x") == "amp"
    assert all(CODEC.recognises(message) for message in messages())


def test_a_result_is_how_the_run_of_the_tool_went():
    decoded = CODEC.decode(messages()[2])
    assert decoded.role == "tool"
    read, made, removed = results_of(decoded.parts)
    assert (read.id, read.response, read.is_error) == (
        "toolu_1",
        '{"content":"def tide(): ..."}',
        False,
    )
    assert (made.response, made.is_error) == ('{"message":"no rule"}', True)
    assert (removed.response, removed.is_error) == ("(rejected-by-user)", True)


def test_an_answer_is_as_anthropic_s():
    decoded = CODEC.decode(messages()[1])
    assert [call.name for call in calls_of(decoded.parts)] == ["Read", "Bash", "Bash"]
    assert text_of(decoded.parts) == "I look at it."
    assert decoded.parts[0]["signature"] == "c2ln"
    assert CODEC.encode(*decoded)[0]["content"][0]["type"] == "thinking"


async def test_a_thread_is_a_conversation(store: sessiontree.Store):
    done, chat = await brought(store, THREAD)
    assert (done.kept, done.about, done.skipped, done.repaired, done.closed) == (5, 1, 0, 0, 1)
    assert (chat.topic, chat.title) == (THREAD.stem, "Tide tables")
    assert chat.info.meta["agentMode"] == "smart"
    assert await roles(chat) == "uatma!"
    path = await chat.path()
    assert path[0].created_at == 1767865804000 * 1000
    assert (path[1].model, path[1].usage and path[1].usage["outputTokens"]) == (
        "claude-opus-4-5-20251101",
        120,
    )
    assert path[3].text == "The table was read."
    assert "The table was read." not in await sent(chat)


async def test_a_thread_that_has_grown_goes_on(store: sessiontree.Store, tmp_path: Path):
    thread = json.loads(RAW)
    *before, _ = thread["messages"]
    file = tmp_path / "thread.json"
    file.write_text(json.dumps(thread | {"messages": before}))
    await brought(store, file)
    file.write_bytes(RAW)
    done, chat = await brought(store, file)
    assert (done.kept, done.already) == (1, 4)
    assert await roles(chat) == "uatma!"


@pytest.mark.parametrize("raw", list(damaged(RAW)))
async def test_a_damaged_thread_is_accounted_for_or_refused(raw: bytes, tmp_path: Path):
    file = tmp_path / "thread.json"
    file.write_bytes(raw)
    await survives(file, "amp")


@given(native=objects("role user assistant info content type text tool_result toolUseID run"))
@settings(max_examples=200)
def test_any_object_is_a_message_or_a_mark(native: dict[str, Any]):
    role, parts = CODEC.decode(native)
    assert role in ("user", "assistant", "tool", "system", "mark")
    assert parts is not None


async def test_a_step_that_calls_one_id_twice_and_answers_nobody_is_the_same_when_imported_again(
    store: sessiontree.Store, tmp_path: Path
):
    """One row answers a call, one of two calls of the same id, and a call that is nowhere."""
    thread = json.loads(RAW)
    blocks = thread["messages"][1]["content"]
    assert [block.get("id") for block in blocks[2:]] == ["toolu_1", "toolu_2", "toolu_3"]
    blocks[3]["id"] = "toolu_3"
    file = tmp_path / THREAD.name
    file.write_text(json.dumps(thread))
    _, chat = await brought(store, file)
    before = [(m.id, m.parent_id, m.raw) async for m in chat.iter_messages()]
    assert [m.key.partition(":")[0] for m in await chat.path() if m.key][2:5] == [
        "2",
        "rest",
        "interrupted",
    ]
    done = await sessiontree.import_file(store, file)
    assert (done.kept, done.closed) == (0, 0)
    assert [(m.id, m.parent_id, m.raw) async for m in chat.iter_messages()] == before
    assert (await store.open(chat.id)).head == chat.head
