"""Real sessions: every path of every file that can be imported, for every provider."""

from __future__ import annotations

from pathlib import Path

import pytest
from paths import TARGETS, violations, window

import sessiontree
from sessiontree.core.planner import plan
from sessiontree.core.reclaim import Refused, Sight, elide
from sessiontree.errors import BudgetTooSmall, FormatError
from sessiontree.formats import codec
from sessiontree.transfer import import_file


async def paths_of(file: Path) -> list[list[sessiontree.Message]]:
    """Every path of every conversation in a file, oldest message first."""
    found: list[list[sessiontree.Message]] = []
    async with sessiontree.open_store(":memory:") as store:
        await import_file(store, file)
        async for info in store.conversations():
            chat = await store.open(info.id)
            found += [await chat.path(leaf.id) for leaf in await chat.leaves()]
    return found


def files(corpus: Path) -> list[Path]:
    return sorted(f for f in corpus.rglob("*") if f.is_file() and f.name != "README.md")


async def test_every_path_of_every_file_is_windowed_for_every_provider(corpus):
    tried = 0
    for file in files(corpus):
        try:
            paths = await paths_of(file)
        except FormatError:
            continue  # there is no importer for it yet
        tried += 1
        for path in paths:
            for target in TARGETS:
                found = window(path, target)
                assert violations(found) == [], (file.name, target)
                assert len(found.messages) > 0 or all(m.role == "mark" for m in path)
    if not tried:
        pytest.skip("no file of the corpus can be imported")


async def test_windows_of_the_largest_session_keep_their_budget(corpus):
    try:
        paths = await paths_of(corpus / "pi" / "before-compaction.jsonl")
    except FormatError:
        pytest.skip("there is no importer for pi")
    path = max(paths, key=len)
    for target in TARGETS:
        for budget in (5_000, 20_000, 100_000):
            try:
                found = window(path, target, budget=budget)
            except BudgetTooSmall as error:
                assert error.needed > budget  # noqa: PT017
                continue
            assert found.tokens <= budget
            assert violations(found) == []
            assert found.messages


async def test_eliding_a_real_session_saves_what_it_says(corpus):
    try:
        paths = await paths_of(corpus / "claude-code" / "session-fe5e1c67.jsonl")
    except FormatError:
        pytest.skip("there is no importer for claude_code")
    path = max(paths, key=len)
    sight = Sight(path[::-1], "anthropic", codec)
    found = elide.plan(sight, protect=5_000, save=1_000)
    assert not isinstance(found, Refused)
    marked = sight.under(found.mark, found.ref_id)
    said = plan(marked.items, "anthropic", codec)
    assert said.tokens < found.before
    assert violations(said) == []
