"""An export costs about the same memory however long the conversation is."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest

import sessiontree
from sessiontree import Conversation, Graft, formats
from sessiontree.conversation import handle
from sessiontree.transfer import export, exporting, order

SHORT, LONG = 200, 800
STREAMED = ["jsonl", "markdown", "html", "csv", "claude_code", "pi"]


async def filled(store: sessiontree.Store, count: int) -> Conversation:
    """A chain of rows of Claude Code, each of about a kilobyte."""
    chat = await store.conversation(f"chain of {count}")
    batch: list[Graft] = []
    for at in range(count):
        role = ("user", "assistant")[at % 2]
        row = {
            "type": role,
            "uuid": f"u{at}",
            "parentUuid": f"u{at - 1}" if at else None,
            "message": {"role": role, "content": f"message {at} " + "words " * 150},
        }
        made = formats.read(json.dumps(row), format="claude_code", key=f"u{at}")
        batch.append(Graft(made, -at if at else None))
    ids = await chat.graft(batch)
    await chat.branch(ids[-1])
    return chat


async def peak_of(chat: Conversation, format: str, whole_tree: bool, file: Path) -> int:
    """Bytes above the start."""
    tracemalloc.reset_peak()
    start, _ = tracemalloc.get_traced_memory()
    await export(chat, format, whole_tree=whole_tree, file=file)
    return tracemalloc.get_traced_memory()[1] - start


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is held at a time is little, so that a short conversation is many times as much."""
    monkeypatch.setattr(exporting, "PIECE", 1 << 14)
    monkeypatch.setattr(handle, "CHUNK", 50)
    monkeypatch.setattr(order, "RUN", 50)


@pytest.mark.parametrize("whole_tree", [False, True])
async def test_memory_does_not_grow_with_the_length(tmp_path: Path, whole_tree: bool):
    async with sessiontree.open_store(":memory:") as store:
        short, long = await filled(store, SHORT), await filled(store, LONG)
        tracemalloc.start()
        try:
            for format in STREAMED:
                small = await peak_of(short, format, whole_tree, tmp_path / "small")
                large = await peak_of(long, format, whole_tree, tmp_path / "large")
                assert (tmp_path / "large").stat().st_size > 700_000 > 2 * large
                assert large - small < 200 * (LONG - SHORT), (format, small, large)
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize(("whole_tree", "whole"), [(False, 450), (True, None)])
async def test_whoever_watches_is_told_how_much_is_written(
    store: sessiontree.Store, tmp_path: Path, whole_tree: bool, whole: int | None
):
    chat = await store.conversation("watched")
    await chat.append([{"role": "user", "content": str(i)} for i in range(450)])
    told: list[tuple[int, int | None]] = []

    def watch(done: int, of: int | None) -> None:
        told.append((done, of))

    file = tmp_path / "out.csv"
    await export(chat, "csv", whole_tree=whole_tree, file=file, progress=watch)
    steps = [100, 200, 300, 400, *([450] if whole else [])]
    assert told == [(done, whole) for done in steps]
