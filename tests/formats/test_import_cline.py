"""Cline's and Roo Code's sessions: Anthropic messages with notes, and what hides them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agents import FIXTURES, brought, damaged, objects, roles, sent, survives, texts
from hypothesis import given, settings
from hypothesis import strategies as st

import sessiontree
from sessiontree.core.message import calls_of, results_of, text_of
from sessiontree.formats import codec, recognise
from sessiontree.transfer import import_file

SESSION = FIXTURES / "cline.messages.json"
TASK = FIXTURES / "1762000000000" / "api_conversation_history.json"
SESSION_BYTES, TASK_BYTES = SESSION.read_bytes(), TASK.read_bytes()
CODEC = codec("cline")


@pytest.fixture
async def store():
    async with sessiontree.open_store(":memory:") as opened:
        yield opened


def session() -> dict[str, Any]:
    return json.loads(SESSION_BYTES)


def task() -> list[dict[str, Any]]:
    return json.loads(TASK_BYTES)


# --- the codec --------------------------------------------------------------------------------


def test_a_file_in_a_message_is_text_that_names_it():
    parts = CODEC.decode(session()["messages"][0]).parts
    assert text_of(parts).endswith("tides.py:\ndef tide(): ...")


def test_calls_and_results_are_those_of_anthropic_without_cline_s_own_fields():
    answer, first, second = (CODEC.decode(m) for m in session()["messages"][1:4])
    assert [call.id for call in calls_of(answer.parts)] == ["t1", "t2"]
    assert (first.role, results_of(first.parts)[0].id) == ("tool", "t1")
    (said,) = results_of(first.parts)[0].response
    assert json.loads(said["content"])["result"] == "def tide(): ..."
    (failed,) = results_of(second.parts)
    assert (failed.is_error, failed.response[0]["type"]) == (True, "blob")
    written = json.dumps([CODEC.encode(*one) for one in (answer, first, second)])
    assert not any(own in written for own in ("metrics", "modelInfo", "call_id", '"success": true'))


def test_messages_with_notes_are_recognised():
    assert all(CODEC.recognises(m) for m in session()["messages"] if "modelInfo" in m)
    assert {recognise(m) for m in task() if "condenseParent" in m and "role" in m} == {"cline"}
    assert not CODEC.recognises({"role": "user", "content": "hi"})


@pytest.mark.parametrize("content", [7, None, {}, [7], [{"type": "tool_use"}], [{"type": "text"}]])
def test_a_message_of_another_shape_is_a_mark_that_keeps_it(content: object):
    made = {"role": "user", "content": content, "ts": 1}
    if content == [7]:
        assert CODEC.decode(made).role == "user"
    else:
        assert CODEC.decode(made).parts[0]["native"] == made


# --- in a store -------------------------------------------------------------------------------


async def test_a_session_comes_in_whole(store: sessiontree.Store):
    done, chat = await brought(store, SESSION)
    assert (done.format, done.kept, done.closed, done.repaired) == ("cline", 6, 0, 0)
    assert await roles(chat) == "suatta"
    path = await chat.path()
    assert [m.native for m in path[1:]] == session()["messages"]
    assert [m.key for m in path[1:]] == [m["id"] for m in session()["messages"]]
    assert (path[2].model, path[2].usage) == ("claude-opus", {"inputTokens": 10, "outputTokens": 5})
    assert (chat.topic, path[1].created_at) == ("cl-1", 1762000000000_000)
    assert (await chat.window(target="anthropic")).system == "You are Cline."


async def test_what_roo_hides_is_not_sent_and_stays(store: sessiontree.Store):
    done, chat = await brought(store, TASK)
    assert (done.format, done.kept, chat.topic) == ("cline", 11, "1762000000000")
    assert await roles(chat) == "uauaamuamua"
    said = await sent(chat)
    assert "Thanks" in said
    assert not any(text in said for text in ("green", "blue", "Sliding window"))
    path = await chat.path()
    assert (await texts(chat))[5] == "Summary: the tides are green."
    await chat.branch(path[7].id)
    assert "Summary: the tides are green." in await sent(chat)
    assert "Paint the tides" not in await sent(chat)


async def test_a_task_that_is_condensed_later_keeps_its_messages(
    store: sessiontree.Store, tmp_path: Path
):
    file = tmp_path / "api_conversation_history.json"
    before = [{k: v for k, v in m.items() if k != "condenseParent"} for m in task()[:5]]
    file.write_text(json.dumps(before))
    assert (await import_file(store, file)).kept == 5
    file.write_text(json.dumps(task()))
    done = await import_file(store, file)
    assert (done.already, done.kept, done.branch_points) == (5, 6, 0)
    assert "Paint the tides" not in await sent(done.conversations[0])


async def test_the_session_of_the_corpus(store: sessiontree.Store, corpus: Path):
    done, chat = await brought(store, corpus / "cline" / "session.messages.json")
    assert (done.kept, done.closed, done.repaired) == (33, 0, 0)
    path = await chat.path()
    assert sum(len(m.tool_calls) for m in path) == sum(len(m.tool_results) for m in path) == 11


# --- damage -----------------------------------------------------------------------------------


@pytest.mark.parametrize("raw", [SESSION_BYTES, TASK_BYTES], ids=["session", "task"])
async def test_damaged_files_are_refused_or_mended(tmp_path: Path, raw: bytes):
    file = tmp_path / "api_conversation_history.json"
    outcomes = set[bool]()
    for bad in damaged(raw):
        file.write_bytes(bad)
        outcomes.add(await survives(file, "cline"))
    assert outcomes == {True, False}


WORDS = """id role content user assistant ts type text tool_use tool_result tool_use_id name input
thinking signature file path image data mediaType is_error isSummary isTruncationMarker modelInfo
condenseParent truncationParent metrics reasoning summary encrypted_content system_prompt a b"""


@settings(max_examples=20)
@given(st.lists(objects(WORDS), max_size=6))
async def test_messages_of_any_shape_come_in_or_are_refused(
    tmp_path_factory: pytest.TempPathFactory, made: list[dict[str, Any]]
):
    file = tmp_path_factory.mktemp("fuzz") / "session.json"
    file.write_text(json.dumps({"sessionId": "s", "messages": made}))
    await survives(file, "cline")
    file.write_text(json.dumps(made))
    await survives(file, "cline")
