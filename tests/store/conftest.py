"""The modules that the conversation's tests share, and files of every kind."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "conversation"))  # talk.py
sys.path.append(str(Path(__file__).parent / "helpers"))

NOBODY = 65534


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the test's store is."""
    return tmp_path / "sessions.db"


@pytest.fixture
def as_anybody(open_to_all: None) -> Iterator[Path]:
    """A folder, and the rights of somebody who is not root: nothing is closed to root."""
    folder = Path(tempfile.mkdtemp(prefix="sessiontree-"))
    folder.chmod(0o777)
    root = os.geteuid() == 0
    if root:
        os.chown(folder, NOBODY, -1)
        os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield folder
    finally:
        if root:
            os.setresuid(0, 0, 0)
        shutil.rmtree(folder, ignore_errors=True)
