"""A pseudo terminal with a program in it, and what is to be seen there."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import time
from types import TracebackType
from typing import Any

from tests.cli.chat.talking import MAIN, Talk, environment

OWN_TERMINAL = (
    "import fcntl, os, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0); " + MAIN
)
"""So that Ctrl-C reaches the program."""
PATIENCE = 60.0


class Shown:
    """The program of a ``Talk`` in a terminal of its own, for ``with``."""

    def __init__(self, talk: Talk, *args: object, **more: str) -> None:
        self._ours, theirs = pty.openpty()
        self.text = ""
        self._seen = 0
        self.process: subprocess.Popen[Any] = subprocess.Popen(
            talk.command(*args, main=OWN_TERMINAL),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment(TERM="xterm", COLUMNS="100", **more),
        )
        os.close(theirs)

    def __enter__(self) -> Shown:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._ours)

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def press(self, key: str, words: str) -> str:
        """Press a key until words are shown: readline hears a signal that comes just before it
        waits at the next key only."""
        for _ in range(5):
            self.type(key)
            try:
                return self.until(words, PATIENCE / 5)
            except AssertionError:
                continue
        return self.until(words, 0)

    def until(self, words: str, patience: float = PATIENCE) -> str:
        """Wait for words that were not waited for before; what was shown with them."""
        end = time.monotonic() + patience
        while words not in self.plain[self._seen :]:
            if not select.select([self._ours], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"{words!r} was not shown in {self.plain[self._seen :]!r}")
            self._read()
        at = self.plain.index(words, self._seen) + len(words)
        found, self._seen = self.plain[self._seen : at], at
        return found

    def ends(self) -> int:
        """Wait for the program's end; its exit code."""
        while self._read():
            pass
        return self.process.wait(PATIENCE)

    @property
    def plain(self) -> str:
        """What was shown, without colours and what readline sends beside it."""
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.text).replace("\r\n", "\n")

    def _read(self) -> bool:
        try:
            found = os.read(self._ours, 1 << 16)
        except OSError:  # the other end is closed
            found = b""
        self.text += found.decode("utf-8", "replace")
        if not found and self.process.poll() is None and not self._is_over():
            raise AssertionError("the terminal was closed")
        return bool(found)

    def _is_over(self) -> bool:
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return False
        return True
