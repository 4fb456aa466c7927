"""Tokens in and out, as they are told after an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sessiontree.core import usage as reports


@dataclass(slots=True)
class Spending:
    """Tokens of one request or several. What the provider read from its cache or wrote to it
    is not in ``input``."""

    input: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0
    is_estimated: bool = False

    def add(self, usage: Mapping[str, Any] | None, tokens_in: int, tokens_out: int) -> None:
        """Add a request: what was reported of it, else our own count."""
        told = reports.read(usage)
        if told is None or not (told.sent or told.output):
            self.input += tokens_in
            self.output += tokens_out
            self.is_estimated = True
            return
        self.input += told.input
        self.cached += told.cached
        self.written += told.written
        self.output += told.output

    def __str__(self) -> str:
        """``in 123 out 45``; what was cached apart; estimates bear a ``~``."""
        about = "~" if self.is_estimated else ""
        cached = f" cached {self.cached:,}" if self.cached else ""
        written = f" written {self.written:,}" if self.written else ""
        return f"in {about}{self.input:,}{cached}{written} out {about}{self.output:,}"
