"""The guide to harnesses: it shows what its program prints, and its loop runs with the
providers' own client against a server."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import sessiontree
from tests.standin import StandIn

GUIDE = (Path(__file__).resolve().parents[1] / "docs" / "harness.md").read_text(encoding="utf-8")
PROGRAM, PRINTED, ASK = re.findall(r"```(?:python)?\n(.*?)```", GUIDE, re.DOTALL)[:3]


def test_the_program_of_the_guide_prints_what_the_guide_shows(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == PRINTED


SCRIPT: list[Any] = [
    {"thinking": "Mark it.", "calls": [{"name": "checkpoint", "arguments": {"label": "here"}}]},
    {"text": "Reading.", "calls": [{"name": "read", "arguments": {"file": f}} for f in "ab"]},
    {"calls": [{"name": "rewind", "arguments": {"label": "there", "report": "nothing"}}]},
    {
        "calls": [
            {"name": "read", "arguments": {"file": "c"}},
            {"name": "rewind", "arguments": {"label": "here", "report": "a, b: nothing of it"}},
            {"name": "checkpoint", "arguments": {"label": "left"}},
        ]
    },
    "Neither speaks of it.",
]


async def test_its_loop_runs_with_the_client_that_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    anthropic = pytest.importorskip("anthropic")
    names: dict[str, Any] = {"__name__": "guide"}
    exec(PROGRAM + ASK, names)
    with StandIn(SCRIPT, context_limit=50_000) as server:
        async with (
            anthropic.AsyncAnthropic(base_url=server.url, api_key="any", max_retries=0) as client,
            sessiontree.open_store(tmp_path / "sessions.db") as store,
        ):
            names["client"] = client
            chat = await store.conversation("T-80005", system="You draft replies.")
            said = await names["answer"](chat, "Do the notes speak of it?", names["ask"])
            labels = {each.label for each in await chat.checkpoints()}
            assert await store.check() == []
        requests = server.requests
    assert said == "Neither speaks of it."
    assert labels == {"here", "left"}
    assert [(each.status, each.refused) for each in requests] == [(200, "")] * len(SCRIPT)
    assert "no checkpoint 'there'. The checkpoints: 'here'." in str(requests[3].body["messages"])
    last = str(requests[4].body["messages"])
    assert "nothing about refunds" in str(requests[3].body["messages"])
    assert "nothing about refunds" not in last
    assert "a, b: nothing of it" in last
    assert requests[4].tokens < requests[3].tokens
