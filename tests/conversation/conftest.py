"""Stores on files, and a path to the modules that these tests share."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import sessiontree
from sessiontree import Conversation, Store

sys.path.insert(0, str(Path(__file__).parent))  # talk.py, model.py


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the test's store is."""
    return tmp_path / "sessions.db"


@pytest.fixture
async def store(file: Path) -> AsyncIterator[Store]:
    """A store on a file; it must be sound when the test ends. It does not wait for the disk:
    the processes that are killed open theirs as a user does."""
    async with sessiontree.open_store(file, durability="normal") as opened:
        yield opened
        assert await opened.check() == []


@pytest.fixture
async def chat(store: Store) -> Conversation:
    """An empty conversation."""
    return await store.conversation("chat")
