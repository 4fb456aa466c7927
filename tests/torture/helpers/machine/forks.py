"""Processes that are there to be killed, each forked from one that has everything imported.

The forking one reads jobs, one JSON line each, and forks a process for each. What is known of
it comes out a line each: ``{"pid": …}`` when it begins, whatever it tells, and ``{"dead": …}``
when it is gone; nothing of it comes after that.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Fact = dict[str, Any]


def tell(fact: Fact) -> None:
    """One line at once; a pipe takes up to 4096 bytes whole or not at all."""
    line = json.dumps(fact).encode() + b"\n"
    assert len(line) <= 4096
    os.write(1, line)


def serve(work: Callable[[Fact], None]) -> None:
    """In the forking process."""
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            try:
                tell({"pid": os.getpid()})
                work(json.loads(line))
            finally:
                os._exit(1)
        os.waitpid(pid, 0)
        tell({"dead": pid})


class Forks:
    """The other side: starts such processes, listens to them, and kills them."""

    def __init__(self, server: subprocess.Popen[str]) -> None:
        self._server = server

    def start(self, job: Fact) -> int:
        """Returns the process's id."""
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(job) + "\n")
        self._server.stdin.flush()
        return self.hear()["pid"]

    def hear(self) -> Fact:
        assert self._server.stdout is not None
        return json.loads(self._server.stdout.readline())

    def end(self, pid: int, *, kill: bool) -> list[Fact]:
        """What it still had said when it was gone, by our hand or by itself."""
        if kill:
            os.kill(pid, signal.SIGKILL)
        facts: list[Fact] = []
        while "dead" not in (fact := self.hear()):
            facts.append(fact)
        return facts


@contextmanager
def forks(module: str) -> Iterator[Forks]:
    """The forking process of a module that serves."""
    with subprocess.Popen(
        [sys.executable, "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
    ) as server:
        yield Forks(server)
        assert server.stdin is not None
        server.stdin.close()
