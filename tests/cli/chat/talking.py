"""The real program, talking to a stand-in for a provider; and what it left in the store."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

import sessiontree
from tests.standin import Recorded, StandIn

MAIN = "from sessiontree.cli import main; main()"
TARGETS = {"openai": "openai_chat", "anthropic": "anthropic"}
SUMMARY = "Below is the earlier part of a conversation"
"""How a request for a summary begins."""
SLOW = {"text": "one " + "word " * 7_500, "piece": 5, "delay": 0.1}
"""An answer that begins at once, and comes for longer than any test waits."""


def environment(**more: str) -> dict[str, str]:
    """Keys of both, no proxies, and nothing else that would tell an address."""
    hidden = ("_PROXY", "_BASE_URL", "SESSIONTREE_", "NO_COLOR")
    kept = {k: v for k, v in os.environ.items() if not any(h in k.upper() for h in hidden)}
    keys = {"OPENAI_API_KEY": "any", "ANTHROPIC_API_KEY": "any", "NO_PROXY": "*"}
    return kept | keys | {"PYTHONIOENCODING": "utf-8"} | more


@dataclass
class Talk:
    """Starts the program against a server, on a store of the test's own."""

    server: StandIn
    store: Path
    provider: str = "openai"
    model: str = "m1"
    more: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def target(self) -> str:
        return TARGETS[self.provider]

    def command(self, *args: object, main: str = MAIN) -> list[str]:
        url = f"{self.server.url}/v1" if self.provider == "openai" else self.server.url
        where = ["--base-url", url, "--provider", self.provider, "--store", str(self.store)]
        named = ["--model", self.model] if self.model else []
        return [sys.executable, "-c", main, "chat", *where, *named, *map(str, args)]

    def __call__(self, lines: str | bytes, *args: object) -> Said:
        """Lines from a pipe, to the program in this process; what came of them."""
        from sessiontree.cli import app

        wanted = environment(**self.more)
        changes = {name: wanted.get(name) for name in {*os.environ, *wanted}}
        given = self.command(*args)[3:]
        done = CliRunner(env=changes).invoke(app, given, input=lines)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Said(done.exit_code, done.stdout, done.stderr)

    def apart(self, lines: str | bytes, *args: object) -> Said:
        """The same, to the program in a process of its own."""
        done = subprocess.run(
            self.command(*args),
            input=lines if isinstance(lines, bytes) else lines.encode(),
            capture_output=True,
            env=environment(**self.more),
            timeout=120,
            check=False,
        )
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        return Said(done.returncode, done.stdout.decode(), done.stderr.decode())

    def start(self, *args: object, main: str = MAIN) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.command(*args, main=main),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(**self.more),
            bufsize=0,
        )

    def path(self, topic: str = "T-1", owner: str | None = None) -> list[tuple[str, str]]:
        """(role, text) of what is on the path."""
        return [(m.role, m.text) for m in self.messages(topic, owner)]

    def messages(self, topic: str = "T-1", owner: str | None = None) -> list[sessiontree.Message]:
        return self.on(topic, lambda chat: chat.path(), owner)

    def on(self, topic: str, work: Callable[[Any], Any], owner: str | None = None) -> Any:
        """What ``work`` says of the conversation."""

        async def look() -> Any:
            async with sessiontree.open_store(self.store) as store:
                return await work(await store.conversation(topic, owner=owner, create=False))

        return asyncio.run(look())


@dataclass(frozen=True)
class Said:
    """What a run of the program left."""

    code: int
    out: str
    err: str

    @property
    def answers(self) -> list[str]:
        return self.out.splitlines()

    @property
    def notes(self) -> list[str]:
        return self.err.splitlines()

    @property
    def figures(self) -> list[str]:
        return [note for note in self.notes if note.startswith("in ")]


def texts(request: Recorded) -> list[tuple[str, str]]:
    """(role, text) of a request's messages, without the system prompt."""
    found = [(each["role"], _text(each.get("content"))) for each in request.body["messages"]]
    return [each for each in found if each[0] != "system"]


def system_of(request: Recorded) -> str | None:
    """The system prompt of a request, wherever the provider has it."""
    if request.provider == "anthropic":
        return request.body.get("system")
    first = request.body["messages"][0]
    return first["content"] if first["role"] == "system" else None


def _text(content: Any) -> str:
    if isinstance(content, str) or content is None:
        return content or ""
    return "\n".join(part.get("text", "") for part in content)


def is_summary(request: Recorded) -> bool:
    return texts(request)[0][1].startswith(SUMMARY)


def asked(requests: Sequence[Recorded]) -> list[Recorded]:
    """The requests that are none for a summary."""
    return [request for request in requests if not is_summary(request)]
