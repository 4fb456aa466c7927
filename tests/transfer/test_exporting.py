"""Conversations out of a store, and in again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from landed import ALL, QUIRKS, V3, accounted, is_of_the_file, shape

import sessiontree
from sessiontree import FormatError, Store
from sessiontree.transfer import export, formats_known, import_file

# --- out --------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", ALL, ids=lambda file: file.stem)
async def test_jsonl_loses_nothing(store: Store, tmp_path: Path, file: Path):
    (chat,) = (await import_file(store, file, owner="ada")).conversations
    await chat.append({"role": "user", "content": "without a key"})
    await chat.checkpoint("here", note="as it was")
    await chat.rewind("here", digest="found nothing")
    await chat.undo()
    own = tmp_path / "own.jsonl"
    await export(chat, "jsonl", file=own)
    async with sessiontree.open_store(":memory:") as other:
        await other.conversation("in the way")
        done = await import_file(other, own)
        assert accounted(done)
        assert (done.skipped, done.repaired, done.closed) == (0, 0, 0)
        (copy,) = done.conversations
        assert (copy.owner, copy.topic, copy.title) == (chat.owner, chat.topic, chat.title)
        assert await shape(copy) == await shape(chat)
        assert await export(copy, "jsonl") == own.read_text()
        assert await copy.redo() is not None
        again = await import_file(other, own)
        assert (again.kept, again.closed) == (0, 0)
        assert await shape(copy) == await shape(chat)
        assert await other.check() == []


async def test_jsonl_of_a_conversation_that_is_here_adds_nothing(store: Store, tmp_path: Path):
    chat = await store.conversation(title="no topic", meta={"mine": 1})
    await chat.append([{"role": "user", "content": "same"}, {"role": "user", "content": "same"}])
    own = tmp_path / "own.jsonl"
    await export(chat, "jsonl", file=own)
    done = await import_file(store, own)
    assert (done.conversations[0].id, done.kept, done.already) == (chat.id, 0, 2)


async def test_a_conversation_without_a_topic_is_found_again_and_keeps_its_meta(
    store: Store, tmp_path: Path
):
    chat = await store.conversation(title="no topic", meta={"mine": 1})
    for text in ("one", "one", "two"):
        await chat.append({"role": "user", "content": text}, parent=None)
    own = tmp_path / "own.jsonl"
    await export(chat, "jsonl", file=own)
    async with sessiontree.open_store(":memory:") as other:
        first = await import_file(other, own)
        second = await import_file(other, own)
        assert (first.kept, second.kept, second.already) == (3, 0, 3)
        assert second.conversations[0].id == first.conversations[0].id
        assert second.conversations[0].topic is None
        assert await export(second.conversations[0], "jsonl") == own.read_text()
        assert {message.key for message in await second.conversations[0].leaves()} == {None}


async def test_an_empty_conversation_cannot_be_brought_back(store: Store, tmp_path: Path):
    await export(await store.conversation("empty"), "jsonl", file=tmp_path / "x.jsonl")
    with pytest.raises(FormatError, match="no message of format jsonl"):
        await import_file(store, tmp_path / "x.jsonl")


async def test_a_jsonl_file_that_is_cut_off_gives_what_it_has_and_says_so(
    store: Store, tmp_path: Path
):
    (chat,) = (await import_file(store, QUIRKS)).conversations
    whole = (await export(chat, "jsonl") or "").splitlines(keepends=True)
    cut = tmp_path / "cut.jsonl"
    cut.write_text("".join(whole[:12]) + whole[12][:40])
    done = await import_file(store, cut, owner="another")
    assert (done.kept, done.about, done.skipped) == (11, 1, 1)
    assert "the file is cut off" in str(done.repairs[-1])
    assert "which is not in the file; its last row is" in str(done.repairs[0])
    assert await store.check() == []


async def test_a_damaged_jsonl_file_goes_through_the_same_repairs(store: Store, tmp_path: Path):
    (chat,) = (await import_file(store, QUIRKS)).conversations
    lines = (await export(chat, "jsonl") or "").splitlines()
    damaged = tmp_path / "damaged.jsonl"
    damaged.write_text("\n".join([*lines[:6], "torn", *lines[8:]]) + "\n")
    done = await import_file(store, damaged, owner="another")
    assert accounted(done)
    assert done.repaired > 0
    assert await store.check() == []


@pytest.mark.parametrize("format", ["claude_code", "pi"])
async def test_a_transcript_goes_back_as_it_came(store: Store, format: str):
    for file in ALL:
        done = await import_file(store, file)
        if done.format != format:
            continue
        back = await export(done.conversations[0], format, whole_tree=True)
        assert sorted(str(back).splitlines()) == sorted(file.read_text().splitlines())
        path = str(await export(done.conversations[0], format)).splitlines()
        kept = [m.raw for m in await done.conversations[0].path() if is_of_the_file(m)]
        assert path == kept


async def test_an_unknown_format_to_export_to_lists_those_known(store: Store):
    chat = await store.conversation("x")
    with pytest.raises(FormatError, match="formats: jsonl, claude_code, pi, codex, markdown"):
        await export(chat, "word")


async def test_a_file_is_written_whole_or_not_at_all(store: Store, tmp_path: Path):
    (chat,) = (await import_file(store, QUIRKS)).conversations
    await chat.append({"role": "user", "content": "mine"}, parent=None)
    out = tmp_path / "out.jsonl"
    out.write_text("as it was")
    with pytest.raises(FormatError):
        await export(chat, "codex", file=out, whole_tree=True)
    assert out.read_text() == "as it was"
    assert os.listdir(tmp_path) == [out.name]
    assert await export(chat, "jsonl", file=out) is None
    assert out.read_text() == await export(chat, "jsonl")
    with pytest.raises(sessiontree.SessionTreeError, match="cannot be written"):
        await export(chat, "jsonl", file=tmp_path / "no such folder" / "x")


async def test_an_open_file_can_be_exported_to(store: Store, tmp_path: Path):
    (chat,) = (await import_file(store, V3)).conversations
    with (tmp_path / "x.md").open("w") as out:
        await export(chat, "markdown", file=out)
    assert (tmp_path / "x.md").read_text() == await export(chat, "markdown")


async def test_markdown_is_the_active_path_or_the_whole_tree_and_says_which(store: Store):
    (chat,) = (await import_file(store, V3)).conversations
    path = str(await export(chat, "markdown"))
    assert 'shows: "the active path, 13 messages"' in path
    assert path.count("\n## ") == 13
    assert "Opening the file failed." in path
    assert "open harbour.png" not in path
    tree = str(await export(chat, "markdown", whole_tree=True))
    assert 'shows: "the whole tree, 16 messages, 2 leaves"' in tree
    assert tree.count("\n## ") == 16
    assert "*Branch 2: goes on after message 6.*" in tree
    assert "⚑ first drawing" in path


async def test_the_formats_that_are_known_are_told_with_their_directions():
    table = {known.name: (known.reads, known.writes) for known in formats_known()}
    told = {
        "jsonl": (True, True),
        "claude_code": (True, True),
        "pi": (True, True),
        "chatgpt": (True, False),
        "markdown": (False, True),
    }
    assert table | told == table
    assert all(known.about for known in formats_known())


# --- real files ---------------------------------------------------------------------------------

CORPUS = [
    ("claude-code/representative-messages.jsonl", 12, 0, 1, 0),
    ("claude-code/sample-session.json", 33, 0, 1, 0),
    ("claude-code/session-5c0375b4.jsonl", 53, 0, 3, 0),
    ("claude-code/session-fe5e1c67.jsonl", 438, 0, 6, 0),
    ("pi/before-compaction.jsonl", 1003, 6, 1, 0),
    ("pi/branch-compaction.jsonl", 10, 0, 1, 1),
]
"""File, rows, closings, roots, branch points."""


@pytest.mark.parametrize(("name", "rows", "closed", "roots", "branch_points"), CORPUS)
async def test_a_real_session_comes_in_again_and_out(
    store: Store,
    corpus: Path,
    tmp_path: Path,
    name: str,
    rows: int,
    closed: int,
    roots: int,
    branch_points: int,
):
    done = await import_file(store, corpus / name)
    assert (done.entries, done.kept, done.skipped) == (rows, rows, 0)
    assert (done.closed, done.roots, done.branch_points) == (closed, roots, branch_points)
    again = await import_file(store, corpus / name)
    assert (again.kept, again.closed, again.already) == (0, 0, rows)
    assert await store.check() == []
    (chat,) = done.conversations
    own = tmp_path / "own.jsonl"
    await export(chat, "jsonl", file=own)
    async with sessiontree.open_store(":memory:") as other:
        copy = (await import_file(other, own)).conversations[0]
        assert await shape(copy) == await shape(chat)
    back = str(await export(chat, done.format, whole_tree=True)).splitlines()
    if name.endswith(".jsonl"):
        assert sorted(back) == sorted((corpus / name).read_text().split("\n")[:rows])
