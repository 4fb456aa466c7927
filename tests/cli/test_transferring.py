"""import, export, delete: what comes in, what goes out, what goes away."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

Run = Callable[..., Result]
AsJson = Callable[..., Any]
PROGRAM = [sys.executable, "-c", "from sessiontree.cli import main; main()"]


def test_delete_wants_a_yes_where_nobody_can_be_asked(
    run: Run, as_json: AsJson, ids: dict[str, int]
):
    result = run("delete", 1)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "--yes" in result.stderr
    assert run("delete", 1, "--yes").stdout == "conversation 1 is deleted\n"
    assert as_json("ls") == []
    assert run("delete", 1, "--yes").exit_code == 1


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are a Unix thing")
@pytest.mark.parametrize(("answer", "code", "left"), [("n\n", 1, 1), ("\n", 1, 1), ("y\n", 0, 0)])
def test_delete_asks_at_a_terminal(
    as_json: AsJson, store: Path, ids: dict[str, int], answer: str, code: int, left: int
):
    import pty

    ours, theirs = pty.openpty()
    os.write(ours, answer.encode())
    done = subprocess.run(
        [*PROGRAM, "delete", "1", "--store", str(store)],
        stdin=theirs,
        capture_output=True,
        text=True,
        check=False,
    )
    os.close(theirs)
    os.close(ours)
    assert done.returncode == code
    assert "camille/T-80005: 7 message(s), gone for good" in done.stderr
    assert len(as_json("ls")) == left
