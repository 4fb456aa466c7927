"""Inspect's logs: a sample is a conversation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agents import FIXTURES, damaged, objects, roles, sound, survives
from hypothesis import given, settings

import sessiontree
from sessiontree.core.message import results_of, text_of
from sessiontree.formats import codec, transcripts
from sessiontree.transfer import import_file

LOG = FIXTURES / "inspect_ai.json"
RAW = LOG.read_bytes()
CODEC = codec("inspect_ai")


@pytest.fixture
async def store():
    async with sessiontree.open_store(":memory:") as opened:
        yield opened


async def test_each_sample_is_a_conversation(store: sessiontree.Store):
    assert transcripts.detect(RAW, "x") == "inspect_ai"
    done = await import_file(store, LOG)
    first, second = done.conversations
    assert (first.topic, first.title) == ("smp7", "tides, sample 7, epoch 1")
    assert (second.topic, second.title) == ("ev1:8:1", "tides, sample 8, epoch 1")
    assert (done.kept, done.about, done.skipped, done.repaired) == (7, 2, 0, 0)
    assert await roles(first) == "suatta"
    assert first.info.meta["scores"] == {"match": {"value": "C"}}
    assert first.info.meta["events_left_out"] == 2
    await sound(store)
    again = await import_file(store, LOG)
    assert (again.kept, again.already) == (0, 7)


async def test_attachments_are_put_in_where_they_are_named(store: sessiontree.Store):
    (chat, _) = (await import_file(store, LOG)).conversations
    path = await chat.path()
    assert path[-1].text == "At 06:12."
    assert path[1].parts[1] == {
        "type": "blob",
        "mime_type": "image/png",
        "modality": "image",
        "content": "iVBORw0KGgo=",
    }


async def test_calls_and_results_are_pairs(store: sessiontree.Store):
    (chat, _) = (await import_file(store, LOG)).conversations
    answer, found, failed = (await chat.path())[2:5]
    assert [(call.id, call.arguments) for call in answer.tool_calls] == [
        ("c1", {"what": "tide"}),
        ("c2", {"what": "moon"}),
    ]
    assert answer.model == "x"
    assert text_of(found.tool_results[0].response) == "06:12"
    (result,) = results_of(failed.parts)
    assert (result.is_error, text_of(result.response)) == (True, "\ntoo slow")


async def test_a_sample_by_itself_comes_in(store: sessiontree.Store, tmp_path: Path):
    file = tmp_path / "7_epoch_1.json"
    file.write_text(json.dumps(json.loads(RAW)["samples"][0]))
    (chat,) = (await import_file(store, file)).conversations
    assert (chat.topic, await roles(chat)) == ("smp7", "suatta")


@pytest.mark.parametrize("raw", list(damaged(RAW)))
async def test_a_damaged_log_is_accounted_for_or_refused(raw: bytes, tmp_path: Path):
    file = tmp_path / "log.json"
    file.write_bytes(raw)
    await survives(file, "inspect_ai")


@given(native=objects("role user assistant tool content type text tool_calls function error id"))
@settings(max_examples=200)
def test_any_object_is_a_message_or_a_mark(native: dict[str, Any]):
    assert CODEC.decode(native).role in ("user", "assistant", "tool", "system", "mark")


async def test_a_real_log_imports_whole(store: sessiontree.Store, corpus: Path):
    done = await import_file(store, corpus / "inspect" / "log_read_sample.json")
    assert (done.kept, done.skipped, done.repaired) == (3, 0, 0)
    assert await roles(done.conversations[0]) == "sua"
    await sound(store)
