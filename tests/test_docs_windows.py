"""The guide to windows shows what its program prints."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

GUIDE = (Path(__file__).resolve().parents[1] / "docs" / "windows.md").read_text(encoding="utf-8")


def test_the_program_of_the_guide_prints_what_the_guide_shows(tmp_path: Path) -> None:
    program, printed = re.findall(r"```(?:python)?\n(.*?)```", GUIDE, re.DOTALL)[:2]
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed
