"""A program that talks to a stand-in, by each of the two protocols."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.cli.chat.talking import Talk
from tests.standin import StandIn

if not (find_spec("openai") and find_spec("anthropic")):  # the extra ``chat``
    collect_ignore_glob = ["test_*.py"]

Talking = Callable[..., Talk]


@pytest.fixture(params=["openai", "anthropic"])
def provider(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def talking(tmp_path: Path, provider: str) -> Iterator[Talking]:
    """Makes a ``Talk`` with a server of this script, that ends with the test."""
    with ExitStack() as stack:

        def make(script: Any = (), **options: Any) -> Talk:
            server = stack.enter_context(StandIn(script, **options))
            return Talk(server, tmp_path / "sessions.db", provider)

        yield make


@pytest.fixture
def only_openai(tmp_path: Path) -> Iterator[Talking]:
    """The same, where the protocol makes no difference."""
    with ExitStack() as stack:

        def make(script: Any = (), **options: Any) -> Talk:
            server = stack.enter_context(StandIn(script, **options))
            return Talk(server, tmp_path / "sessions.db", "openai")

        yield make
