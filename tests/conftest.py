"""Fixtures that every floor's tests share."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import sessiontree

settings.register_profile(
    "quick", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=50
)
settings.register_profile(
    "long", deadline=None, suppress_health_check=list(HealthCheck), max_examples=5_000
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def pytest_make_parametrize_id(val: object) -> str | None:
    """Names of cases that are the same in every process, so that tests can be shared out."""
    if val is None or isinstance(val, str | bytes | int | float):
        return None
    return re.sub(r" at 0x[0-9a-f]+", "", repr(val))[:60]


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Real session files; tests that want them are skipped where there are none."""
    default = Path(__file__).resolve().parents[1].parent / "shared" / "corpus"
    folder = Path(os.environ.get("SESSIONTREE_CORPUS", default))
    if not folder.is_dir():
        pytest.skip(f"no corpus of session files at {folder}; set SESSIONTREE_CORPUS to one")
    return folder


@pytest.fixture
def open_to_all() -> None:
    """For tests that give up the rights of root: others must be able to read the code."""
    package = Path(sessiontree.__file__).resolve().parent
    closed = [folder for folder in (package, *package.parents) if not folder.stat().st_mode & 0o001]
    if closed and os.geteuid() == 0:
        pytest.skip(f"other users may not enter {closed[-1]}, so the code cannot be run as one")
