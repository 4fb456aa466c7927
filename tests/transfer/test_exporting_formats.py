"""Every format that is written: the active path and the whole tree, secrets, and streams."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from landed import V3

import sessiontree
from sessiontree import Conversation, FormatError, Store, violations
from sessiontree.formats.writing.requests import PROVIDERS
from sessiontree.transfer import Redactor, export, formats_known, import_file, shows
from sessiontree.transfer.writers import WRITERS

KEY = "sk-ant-api03-" + "aB1-" * 20
BACK = {"claude_code", "pi", "codex"}
EVERYWHERE = sorted(WRITERS.keys() - BACK)
FOR_TREES = sorted(WRITERS.keys() - BACK - {"dpo", "kto"})


def call(name: str = "c1") -> dict[str, Any]:
    use = {"type": "tool_use", "id": name, "name": "Bash", "input": {"command": f"login {KEY}"}}
    return {"role": "assistant", "content": [{"type": "text", "text": "I look."}, use]}


def result(name: str = "c1") -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": name, "content": "harbour.png"}
    return {"role": "user", "content": [block]}


def said(text: str, role: str = "assistant") -> dict[str, Any]:
    return {"role": role, "content": text}


@pytest.fixture
async def chat(store: Store) -> Conversation:
    """
    1 system ─ 2 ask ─ 3 call ─ 4 result ─┬ 5 left
                                          └ 6 right [good] ─ 7 thanks ← head
    """
    chat = await store.conversation("T-1", owner="ada", system="Be brief.", format="anthropic")
    await chat.append([said("Which way?", "user"), call(), result(), said("Go left.")])
    await chat.append([said("Go right."), said("Thanks.", "user")], parent=4)
    await chat.checkpoint("good", at=6, note=f"with {KEY}")
    return chat


def test_the_formats_that_are_told_are_those_that_are_written():
    assert {known.name for known in formats_known() if known.writes} == set(WRITERS)


@pytest.mark.parametrize("format", EVERYWHERE)
async def test_the_path_and_the_whole_tree_can_both_be_had(chat: Conversation, format: str):
    path = str(await export(chat, format, whole_tree=False))
    tree = str(await export(chat, format, whole_tree=True))
    assert "Go right." in path
    if format in ("dpo", "kto"):
        assert path == tree, "these answers are to a prompt on the path"
        return
    assert "Go left." not in path
    assert "Go left." in tree
    assert await export(chat, format) == (tree if "tree" in shows(format) else path)


@pytest.mark.parametrize("format", sorted({*FOR_TREES} - {*PROVIDERS, "csv"}))
async def test_a_file_says_which_of_the_two_it_shows(chat: Conversation, format: str):
    path = str(await export(chat, format, whole_tree=False))
    tree = str(await export(chat, format, whole_tree=True))
    words = {"sharegpt": ("path", "branch")}.get(format, ("path", "tree"))
    for text, word in zip((path, tree), words, strict=True):
        assert any(sign in text for sign in (f'"shows":"{word}"', f'"{word}"', f"{word},"))


@pytest.mark.parametrize("format", EVERYWHERE)
@pytest.mark.parametrize("whole_tree", [True, False])
async def test_no_secret_is_left_in_any_format(
    chat: Conversation, format: str, whole_tree: bool, tmp_path: Path
):
    await chat.rename(f"Key {KEY}")
    await chat.append(said(KEY, "user"))
    redactor = Redactor()
    text = str(await export(chat, format, whole_tree=whole_tree, redact=redactor))
    assert text
    assert KEY[:20] not in text
    assert redactor.count >= 1
    assert set(redactor.kinds) == {"anthropic key"}


@pytest.mark.parametrize("format", sorted(WRITERS))
async def test_an_empty_conversation_can_be_written(store: Store, format: str):
    chat = await store.conversation("empty")
    for whole_tree in (True, False):
        assert isinstance(await export(chat, format, whole_tree=whole_tree), str)


@pytest.mark.parametrize("format", EVERYWHERE)
async def test_a_file_is_what_the_text_is(chat: Conversation, format: str, tmp_path: Path):
    await chat.append({"role": "user", "content": "\udc80 \u2028 é 😀"})
    text = str(await export(chat, format, whole_tree=True))
    await export(chat, format, whole_tree=True, file=tmp_path / "out")
    assert (tmp_path / "out").read_bytes().decode() == text


async def test_only_what_is_for_people_has_levels_of_detail(chat: Conversation):
    for format in ("markdown", "html"):
        text = str(await export(chat, format, detail="user-only"))
        assert "Which way?" in text
        assert "Go right." not in text
    for format in sorted(WRITERS.keys() - {"markdown", "html"}):
        with pytest.raises(FormatError, match="markdown and html have"):
            await export(chat, format, detail="low")
    with pytest.raises(FormatError, match="levels: full, high, low, user-only"):
        await export(chat, "markdown", detail="some")  # pyright: ignore[reportArgumentType]


# --- jsonl of a path --------------------------------------------------------------------------


async def test_a_path_as_jsonl_comes_back_as_a_conversation(store: Store, tmp_path: Path):
    (chat,) = (await import_file(store, V3)).conversations
    own = tmp_path / "path.jsonl"
    await export(chat, "jsonl", whole_tree=False, file=own)
    async with sessiontree.open_store(":memory:") as other:
        done = await import_file(other, own)
        assert (done.skipped, done.repaired, done.branch_points) == (0, 0, 0)
        (copy,) = done.conversations
        raw = [message.raw for message in await chat.path()]
        assert [message.raw for message in await copy.path()] == raw
        assert await other.check() == []


# --- providers --------------------------------------------------------------------------------


@pytest.mark.parametrize("target", PROVIDERS)
async def test_a_request_would_be_taken_by_its_provider(chat: Conversation, target: str):
    path = json.loads(str(await export(chat, target)))
    messages = path.get("messages") or path.get("contents") or path.get("input")
    assert list(violations(messages, target)) == []
    lines = str(await export(chat, target, whole_tree=True)).splitlines()
    assert len(lines) == 2
    assert json.loads(lines[0]) == path


# --- preferences ------------------------------------------------------------------------------


async def rows_of(chat: Conversation, format: str, **options: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in str(await export(chat, format, **options)).splitlines()]


async def test_a_label_makes_a_pair(chat: Conversation):
    (row,) = await rows_of(chat, "dpo")
    assert (row["chosen_id"], row["rejected_id"], row["signal"]) == (6, 5, "label")
    assert row["prompt"][0] == {"role": "system", "content": "Be brief."}
    assert [message["role"] for message in row["prompt"]] == ["system", "user", "assistant", "tool"]
    (liked,) = await rows_of(chat, "kto")
    assert (liked["id"], liked["label"]) == (6, True)


async def test_of_the_active_path_only_prompts_on_it_count(chat: Conversation):
    await chat.branch(2)
    assert await rows_of(chat, "dpo", whole_tree=False) == []
    assert len(await rows_of(chat, "dpo", whole_tree=True)) == 1


async def test_an_answer_that_calls_and_never_gets_a_result_is_left_out(store: Store):
    chat = await store.conversation("x", format="anthropic")
    await chat.append(said("ask", "user"))
    async with chat.turn() as turn:
        await turn.add(call("c1"))
        await turn.interrupt()
    await chat.append([call("c2"), result("c2"), said("Found.")], parent=1)
    await chat.append(said("I know."), parent=1)
    first, second, third = (await chat.tree()).children(1)
    assert first.role == second.role == third.role == "assistant"
    (row,) = await rows_of(chat, "dpo")
    assert (row["chosen_id"], row["rejected_id"]) == (third.id, second.id)
    assert row["rejected"][0]["tool_calls"][0]["function"]["name"] == "Bash"


async def test_marks_between_a_prompt_and_its_answers_do_not_part_them(store: Store):
    chat = await store.conversation("x", format="anthropic")
    await chat.append(said("ask", "user"))
    await chat.append([{"role": "mark", "kind": "note"}, said("one")], parent=1)
    await chat.append([{"role": "mark", "kind": "note"}, said("two")], parent=1)
    (row,) = await rows_of(chat, "dpo")
    assert (row["chosen"][0]["content"], row["rejected"][0]["content"]) == ("two", "one")


async def test_the_ranks_of_open_assistant_are_a_signal(store: Store, corpus: Path):
    done = await import_file(store, corpus / "oasst" / "en_100_tree.jsonl")
    pairs = 0
    for chat in done.conversations[:20]:
        for row in await rows_of(chat, "dpo"):
            assert row["signal"] in ("rank", "path")
            better, worse = [
                (await chat.message(row[name])).native.get("rank")
                for name in ("chosen_id", "rejected_id")
            ]
            assert row["signal"] == "path" or better < worse
            pairs += 1
    assert pairs > 20


# --- trees and tables ---------------------------------------------------------------------------


async def test_open_assistants_trees_go_back_node_by_node(store: Store, corpus: Path):
    done = await import_file(store, corpus / "oasst" / "en_100_tree.jsonl")
    source = (corpus / "oasst" / "en_100_tree.jsonl").read_text().splitlines()
    for line, chat in list(zip(source, done.conversations, strict=True))[:30]:
        (tree,) = await rows_of(chat, "oasst")
        assert nodes(tree["prompt"]) == nodes(json.loads(line)["prompt"])


def nodes(root: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Every node by its id: its facts, and who answers it."""
    found: dict[str, tuple[Any, ...]] = {}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        replies = node["replies"]
        facts = {key: value for key, value in node.items() if key != "replies"}
        found[node["message_id"]] = (facts, {reply["message_id"] for reply in replies})
        waiting += replies
    return found


async def test_a_table_has_a_row_for_each_message(chat: Conversation):
    text = str(await export(chat, "csv"))
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [int(row["id"]) for row in rows] == [1, 2, 3, 4, 5, 6, 7]
    assert [row["on_path"] for row in rows] == ["yes"] * 4 + ["no"] + ["yes"] * 2
    assert [row["is_head"] for row in rows] == ["no"] * 6 + ["yes"]
    assert rows[5]["labels"] == "good"


async def test_markdown_of_a_tree_goes_branch_by_branch_in_runs(store: Store):
    chat = await store.conversation("long", format="anthropic")
    await chat.append([said(f"message {at}", "user") for at in range(1_200)])
    await chat.append([said(f"aside {at}", "user") for at in range(700)], parent=600)
    await chat.branch(1_200)
    text = str(await export(chat, "markdown", whole_tree=True))
    assert 'shows: "the whole tree, 1900 messages, 2 leaves"' in text
    order = [line for line in text.splitlines() if line.startswith(("message ", "aside "))]
    assert order == [f"message {at}" for at in range(1_200)] + [f"aside {at}" for at in range(700)]
    assert text.count("goes on after") == 1


async def test_what_is_added_while_a_file_is_written_is_not_in_it(chat: Conversation):
    """A writer that reads twice must not be led astray in between."""
    from sessiontree.transfer.excerpt import Excerpt

    for format in ("csv", "otel", "html", "markdown", "oasst"):
        excerpt = Excerpt(chat, whole_tree=True)
        pieces = WRITERS[format].write(excerpt)
        text = await anext(pieces)
        await chat.append(said(f"late in {format}", "user"))
        text += "".join([piece async for piece in pieces])
        assert f"late in {format}" not in text
