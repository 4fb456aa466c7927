"""The demo is run whole, as a user runs it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from sessiontree.cli.demo import SAMPLE

TOOLS = Path(__file__).resolve().parents[2] / "tools"


def test_the_shipped_session_is_what_its_script_writes() -> None:
    made = subprocess.run(
        [sys.executable, str(TOOLS / "demo_session.py")], capture_output=True, check=True
    )
    assert made.stdout == SAMPLE.read_bytes(), (
        "run `python tools/demo_session.py > sessiontree/cli/demo_session.jsonl`"
    )


def test_the_demo_kills_an_agent_and_resumes_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sessiontree.cli", "demo"],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
        env={"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path), "LANG": "C.UTF-8"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "killed with SIGKILL, exit code -9" in done.stdout
    assert re.search(r"resumed at message \d+; result unknown of refund", done.stdout)
    assert "I will not pay it twice" in done.stdout
    assert "sound" in done.stdout
