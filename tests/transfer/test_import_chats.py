"""Chat exports into a store: whole, again, grown, and every path of them to every provider."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chats import FILES, FIXTURES
from landed import accounted, is_of_the_file, names, shape
from paths import TARGETS, violations, window

from sessiontree import FormatError, Message, Store
from sessiontree.core.message import META
from sessiontree.transfer import Import, import_file

Object = dict[str, Any]


def write(folder: Path, value: object, name: str = "export.json") -> Path:
    file = folder / name
    file.write_text(json.dumps(value))
    return file


def loaded(name: str) -> Any:
    return json.loads((FIXTURES / name).read_text())


async def import_whole(store: Store, file: Path) -> Import:
    """Import a file, again, and see that nothing is wrong with what is stored."""
    done = await import_file(store, file)
    before = [await shape(chat) for chat in done.conversations]
    again = await import_file(store, file)
    assert accounted(done)
    assert accounted(again)
    assert (again.kept, again.closed, again.already) == (0, 0, done.kept)
    assert [chat.id for chat in again.conversations] == [chat.id for chat in done.conversations]
    assert [await shape(chat) for chat in again.conversations] == before
    assert await store.check() == []
    return done


async def paths(done: Import) -> list[list[Message]]:
    return [await chat.path(leaf.id) for chat in done.conversations for leaf in await chat.leaves()]


def windows(path: list[Message]) -> None:
    for target in TARGETS:
        found = window(path, target)  # pyright: ignore
        assert violations(found) == [], target
        assert found.messages or all(message.role in ("mark", "system") for message in path)


@pytest.mark.parametrize("name", [*FILES.values(), "librechat_linear.json"])
async def test_a_file_comes_in_once_and_every_path_of_it_can_be_sent(store: Store, name: str):
    done = await import_whole(store, FIXTURES / name)
    for chat in done.conversations:
        head = await chat.message(chat.head or 0)
        assert head.is_boundary
    for path in await paths(done):
        windows(path)


async def test_a_file_that_has_grown_adds_what_is_new_and_moves_the_head(
    store: Store, tmp_path: Path
):
    whole = loaded("chatgpt.json")
    young = json.loads(json.dumps(whole[:1]))
    for name in ("a3", "u3"):
        del young[0]["mapping"][name]
    first = await import_file(store, write(tmp_path, young))
    whole[0]["current_node"] = "u3"
    second = await import_file(store, write(tmp_path, whole))
    assert second.conversations[0].id == first.conversations[0].id
    assert (second.already, second.kept) == (first.kept, 2 + 3)
    chat = second.conversations[0]
    assert (await names(chat)).split()[-3:] == ["u2", "a3", "u3"]
    assert await store.check() == []


async def test_a_head_that_was_moved_here_stays(store: Store, tmp_path: Path):
    (chat, *_) = (await import_file(store, FIXTURES / "chatgpt.json")).conversations
    (other,) = [leaf for leaf in await chat.leaves() if leaf.key == "u3"]
    await chat.branch(other.id)
    whole = loaded("chatgpt.json")
    whole[0]["current_node"] = "a1"
    (chat, *_) = (await import_file(store, write(tmp_path, whole))).conversations
    assert chat.head == other.id


async def test_an_imported_chat_goes_on_like_any_other(store: Store):
    (chat, *_) = (await import_file(store, FIXTURES / "claude_ai.json")).conversations
    await chat.append([{"role": "user", "content": "And tomorrow?"}])
    path = await chat.path()
    assert path[-1].text == "And tomorrow?"
    windows(path)


async def test_title_topic_time_and_fields_are_the_conversations(store: Store):
    (chat, *_) = (await import_file(store, FIXTURES / "chatgpt.json", owner="ada")).conversations
    assert (chat.owner, chat.topic, chat.title) == ("ada", "conv-1", "Harbour")
    assert chat.meta["update_time"] == 1750000011.0
    assert chat.meta[META]["origin"] == {"source": "conv-1", "created_at": 1_750_000_000_250_000}


async def test_the_keys_are_the_sources_ids_and_times_are_the_messages(store: Store):
    (chat, *_) = (await import_file(store, FIXTURES / "chatgpt.json")).conversations
    answer = next(m for m in await chat.path() if m.key == "a1")
    assert (answer.created_at, answer.model) == (1_750_000_006_000_000, "gpt-5")
    assert (answer.format, answer.text) == ("chatgpt", "It is Whitby.")


async def test_what_a_tool_said_without_being_called_is_sent_too(store: Store):
    (chat, *_) = (await import_file(store, FIXTURES / "chatgpt.json")).conversations
    path = await chat.path()
    mark = next(m for m in path if m.key == "r2")
    said = path[path.index(mark) + 1]
    assert (mark.role, said.role, said.text) == ("mark", "user", "Piers of Whitby")
    assert said.meta[META]["kind"] == "rest"


async def test_notes_name_the_conversation_that_they_are_about(store: Store):
    done = await import_file(store, FIXTURES / "chatgpt.json")
    assert "Harbour" in str(done.repairs[0])
    assert done.skips[0].part == ""
    assert done.skips[1].part == "Harbour"


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ('[{"title": "x", "mapping": {}}]', "it has no messages"),
        ('[{"title": "x", "mapping": {"a": {"id": "a"}}}]', "no message of format chatgpt"),
        ('[{"mapping": 5}]', "it has no mapping"),
        ('[{"mapping": {', "it stops being JSON"),
        ("[" * 100_000, "it stops being JSON"),
        ("\ufeff", "it is empty"),
        ("[]", "it is empty"),
    ],
)
async def test_a_file_without_a_conversation_is_an_error_and_leaves_nothing(
    store: Store, tmp_path: Path, content: str, what: str
):
    file = tmp_path / "export.json"
    file.write_text(content)
    with pytest.raises(FormatError, match=what):
        await import_file(store, file, format="chatgpt")
    assert [info async for info in store.conversations()] == []


# --- real files -------------------------------------------------------------------------------

CORPUS = {
    "chatgpt/export.json": (2, 21, 0, 0),
    "chatgpt/tree.json": (1, 12, 2, 0),
    "chatgpt/example.json": (1, 12, 0, 0),
    "claude-ai/example.json": (83, 557, 0, 0),
    "claude-ai/bakery-chat.json": (1, 4, 0, 0),
    "open-webui/export.json": (1, 2, 0, 0),
    "librechat/tree.json": (1, 10, 2, 0),
    "librechat/flat-branches.json": (1, 5, 1, 0),
    "oasst/en_100_tree.jsonl": (100, 1167, 260, 0),
    "sharegpt/glaive_toolcall_en_demo.json": (300, 1914, 0, 211),
}
"""Conversations, messages, branch points, calls with a result."""


@pytest.mark.parametrize("name", CORPUS)
async def test_real_files_come_in_once_and_whole(store: Store, corpus: Path, name: str):
    done = await import_whole(store, corpus / name)
    kept = [m for chat in done.conversations async for m in chat.iter_messages()]
    results = sum(len(m.tool_results) for m in kept if m.format == "sharegpt")
    assert (
        len(done.conversations),
        sum(map(is_of_the_source, kept)),
        done.branch_points,
        results,
    ) == CORPUS[name]
    assert done.closed == 0


def is_of_the_source(message: Message) -> bool:
    ours = message.meta.get(META) or {}
    return is_of_the_file(message) and ours.get("kind") != "rest"
