"""A page as a browser that has no network sees it, without one being installed here.

It runs what Chromium there is on the machine (Debian: ``apt-get install chromium``; or
``SESSIONTREE_CHROMIUM`` names one), and tests that need it say so where there is none.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def browser() -> str:
    """Chromium; the test is skipped where there is none."""
    named = os.environ.get("SESSIONTREE_CHROMIUM")
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if not (named or found):
        pytest.skip("no Chromium here to look at the page with (apt-get install chromium)")
    return str(named or found)


class Seen(NamedTuple):
    """The page after its scripts ran, and what the console told."""

    dom: str
    console: list[str]


def look(page: Path, fragment: str = "") -> Seen:
    """Open a page from disk."""
    done = subprocess.run(
        [
            browser(), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--disable-background-networking", "--disable-sync", "--disable-component-update",
            "--disable-extensions", "--host-resolver-rules=MAP * ~NOTFOUND",
            f"--user-data-dir={page.parent / 'profile'}", "--virtual-time-budget=4000",
            "--window-size=1200,900", "--enable-logging=stderr", "--v=0", "--dump-dom",
            page.as_uri() + fragment,
        ],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=180,
        check=True,
    )  # fmt: skip
    console = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    return Seen(done.stdout, console)


class Tag(NamedTuple):
    name: str
    attributes: dict[str, str]


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[Tag] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(Tag(tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        if self.lasttag not in ("script", "style"):
            self.text.append(data)


def tags(html: str) -> list[Tag]:
    """Every tag of a page."""
    parser = _Tags()
    parser.feed(html)
    return parser.found


def shown_text(html: str) -> str:
    parser = _Tags()
    parser.feed(html)
    return "".join(parser.text)
