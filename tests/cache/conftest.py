"""Caches of every kind, and a real server for the kind that needs one."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from sessiontree.cache import Cache, open_cache

Open = Callable[..., AbstractAsyncContextManager[Cache]]

BINARY = shutil.which("redis-server") or shutil.which("valkey-server")


class Server:
    """A Redis or Valkey server of our own, on a port that was free."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def start(self) -> None:
        assert BINARY is not None
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        options += ["--save", "", "--appendonly", "no"]
        log = (self.folder / "server.log").open("ab")
        self.process = subprocess.Popen([BINARY, *options], stdout=log, stderr=log)
        log.close()
        self._wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1) as link:
                    link.sendall(b"PING\r\n")
                    if link.recv(16).startswith(b"+PONG"):
                        return
            except OSError:
                time.sleep(0.02)
        raise AssertionError((self.folder / "server.log").read_text())

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def command(self, *words: str) -> Any:
        """What the server answers, asked beside the cache."""
        import redis

        with redis.Redis(port=self.port) as client:
            return client.execute_command(*words)


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    yield from _running(tmp_path_factory.mktemp("redis"))


@pytest.fixture
def server(shared_server: Server) -> Server:
    """A running server, empty."""
    shared_server.command("FLUSHALL")
    return shared_server


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    """A server that a test may stop and start."""
    yield from _running(tmp_path)


def _running(folder: Path) -> Iterator[Server]:
    if BINARY is None:
        pytest.skip("no redis-server or valkey-server here: apt-get install redis-server")
    made = Server(folder)
    made.start()
    yield made
    made.stop()


@pytest.fixture(params=["file", "memory", "redis"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a cache is; each kind in turn."""
    if request.param == "redis":
        return request.getfixturevalue("server").url
    return ":memory:" if request.param == "memory" else str(tmp_path / "answers.db")


@pytest.fixture
def cache_at(target: str) -> Open:
    """Opens the cache of this test."""

    def opened(**options: Any) -> AbstractAsyncContextManager[Cache]:
        return open_cache(target, **{"patience": 20.0} | options)

    return opened


@pytest.fixture
async def cache(cache_at: Open) -> AsyncIterator[Cache]:
    async with cache_at() as opened:
        yield opened
        assert opened.last_failure is None


class Asked:
    """Stands for a provider: answers, and counts how often it was asked."""

    def __init__(self, answer: Any = None) -> None:
        self.answer = answer
        self.times = 0
        self.gate: asyncio.Event | None = None
        self.began = asyncio.Event()

    async def __call__(self, request: Any) -> Any:
        self.times += 1
        self.began.set()
        if self.gate is not None:
            await self.gate.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return {"n": self.times} if self.answer is None else self.answer


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest.fixture
def answering() -> type[Asked]:
    return Asked
