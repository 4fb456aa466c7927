"""A store with a small tree in it, and two ways to run the program on it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import sessiontree

PROGRAM = [sys.executable, "-c", "from sessiontree.cli import main; main()"]

CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {
            "id": "call_1",
            "type": "function",
            "function": {"name": "find_order", "arguments": '{"id": "LK-266415"}'},
        }
    ],
}
ANSWER = {"role": "tool", "tool_call_id": "call_1", "content": "\n".join(["shipped"] * 30)}


async def fill(target: Path) -> dict[str, int]:
    """
    prompt ── call ── answer ── reply [before-refund] ── wish ── no
                                                    └── calmer ← head
    """
    async with sessiontree.open_store(target, durability="normal") as store:
        chat = await store.conversation("T-80005", owner="camille", title="Draft replies")
        said = await chat.append(
            [
                {"role": "user", "content": "Where is order LK-266415?"},
                CALL,
                ANSWER,
                {"role": "assistant", "content": "It left on Monday."},
            ]
        )
        await chat.checkpoint("before-refund", note="nothing was paid back yet")
        said += await chat.append(
            [{"role": "user", "content": "Refund it!"}, {"role": "assistant", "content": "No."}]
        )
        said.append(await chat.edit(said[4].id, {"role": "user", "content": "Please refund it."}))
        names = ("prompt", "call", "answer", "reply", "wish", "no", "calmer")
        return {"chat": chat.id} | {name: each.id for name, each in zip(names, said, strict=True)}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


@pytest.fixture
def ids(store: Path) -> dict[str, int]:
    """Fills the store; the ids of what is in it, by name."""
    return asyncio.run(fill(store))


@pytest.fixture
def run(store: Path) -> Callable[..., Result]:
    """The program in this process, on the store."""

    def invoke(*args: object, stdin: str | bytes | None = None) -> Result:
        from sessiontree.cli import app

        environment = {"SESSIONTREE_STORE": str(store), "COLUMNS": "200"}
        return CliRunner(env=environment).invoke(app, [*map(str, args)], input=stdin)

    return invoke


@pytest.fixture
def as_json(run: Callable[..., Result]) -> Callable[..., Any]:
    """What the program prints with --json; it must succeed."""

    def invoke(*args: object, **options: Any) -> Any:
        result = run(*args, "--json", **options)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    return invoke


@pytest.fixture
def program(store: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The real program, in a process of its own, on the store."""

    def start(*args: object, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*PROGRAM, *map(str, args)],
            input=stdin,
            env=os.environ | {"SESSIONTREE_STORE": str(store)},
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )

    return start
