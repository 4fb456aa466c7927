"""A store for each test, and the helpers of these tests and of the formats' where they can be
imported."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import sessiontree

sys.path.append(str(Path(__file__).parent / "helpers"))
sys.path.append(str(Path(__file__).parents[1] / "formats" / "helpers"))
sys.path.append(str(Path(__file__).parents[1] / "core" / "helpers"))


@pytest.fixture
async def store() -> AsyncIterator[sessiontree.Store]:
    async with sessiontree.open_store(":memory:") as opened:
        yield opened
