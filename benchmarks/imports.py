"""Importing the files that agents write: rate and memory, beside a plain program.

The sizes and the work are those of ``formats.py``, which measures exports as well.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import formats
import session_files
from measure import Bench, Figure


async def run(bench: Bench) -> AsyncIterator[Figure]:
    for name in session_files.FORMATS:
        with tempfile.TemporaryDirectory(dir=bench.folder) as folder:
            measured = formats.imports(name, Path(folder), bench)
            for figure in measured:
                yield figure
