"""export and formats: which part, how much, without secrets, and what is said of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

Run = Callable[..., Result]
AsJson = Callable[..., Any]
KEY = "sk-ant-api03-" + "aB1-" * 20


def test_formats_are_listed_with_their_directions(run: Run, as_json: AsJson):
    lines = {line.split()[0]: line for line in run("formats").stdout.splitlines()}
    assert "in  out  whole tree" in lines["jsonl"]
    assert " in " not in lines["html"]
    assert " out " not in lines["chatgpt"]
    told = {one["name"]: one for one in as_json("formats")}
    assert told["markdown"]["shows"] == "the active path"
    assert told["chatgpt"]["shows"] is None
    assert all(one["about"] and (one["reads"] or one["writes"]) for one in told.values())


def test_formats_needs_no_store(run: Run, store: Path):
    assert run("formats").exit_code == 0
    assert not store.exists()


@pytest.mark.parametrize(
    ("format", "options", "says"),
    [
        ("jsonl", [], "the whole tree"),
        ("markdown", [], "the active path"),
        ("markdown", ["--whole-tree"], "the whole tree"),
        ("html", ["--path"], "the active path"),
        ("openai_chat", [], "the active path"),
        ("csv", [], "the whole tree"),
        ("pi", [], "the active path"),
    ],
)
def test_export_says_which_part_it_wrote(
    run: Run, ids: dict[str, int], format: str, options: list[str], says: str
):
    result = run("export", 1, "--format", format, *options)
    assert result.exit_code == 0
    assert result.stderr == f"exported {says} of conversation 1 as {format}\n"
    assert ("Refund it!" in result.stdout) is (says == "the whole tree")
    assert "Please refund it." in result.stdout


def test_detail_shows_less(run: Run, ids: dict[str, int]):
    full = run("export", 1, "--format", "markdown").stdout
    low = run("export", 1, "--format", "markdown", "--detail", "low").stdout
    only = run("export", 1, "--format", "markdown", "--detail", "user-only").stdout
    assert "shipped" in full
    assert "shipped" not in low
    assert "find_order" in low
    assert "It left on Monday." not in only
    assert len(only) < len(low) < len(full)
    refused = run("export", 1, "--format", "csv", "--detail", "low")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "markdown and html have" in refused.stderr
    assert run("export", 1, "--detail", "most").exit_code == 2


def test_redact_replaces_secrets_and_says_how_many(run: Run, ids: dict[str, int], tmp_path: Path):
    message = {"role": "assistant", "content": f"use {KEY} or {KEY}, and password=hunter2"}
    assert run("append", 1, json.dumps(message), "--message").exit_code == 0
    out = tmp_path / "page.html"
    result = run("export", 1, "--format", "html", "--redact", "--output", out)
    assert result.stderr.splitlines()[-1] == (
        "redacted 2 secret(s), each wherever it stands: 1 anthropic key, 1 password"
    )
    page = out.read_text(encoding="utf-8")
    assert KEY not in page
    assert "hunter2" not in page
    assert page.count("[redacted: anthropic key 1]") >= 2
    assert KEY in run("export", 1, "--format", "html").stdout


def test_redact_says_when_there_was_nothing(run: Run, ids: dict[str, int]):
    result = run("export", 1, "--redact")
    assert "redacted nothing" in result.stderr
    assert result.stdout == run("export", 1).stdout


def test_an_unknown_format_lists_those_that_are_written(run: Run, ids: dict[str, int]):
    result = run("export", 1, "--format", "papyrus")
    assert (result.exit_code, result.stdout) == (1, "")
    for format in ("jsonl", "html", "dpo", "otel"):
        assert format in result.stderr


@pytest.mark.parametrize("name", [".", "..", "/"])
def test_an_export_to_a_folder_is_refused_in_one_line(run: Run, ids: dict[str, int], name: str):
    result = run("export", 1, "--format", "markdown", "--output", name)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"sessiontree: {name} is a folder (name a file in it)\n"


def test_an_export_of_which_nothing_came_says_so(run: Run, ids: dict[str, int], tmp_path: Path):
    run("append", "mia/one", "hi", "--new")
    told = run("export", "mia/one", "--format", "dpo", "--output", tmp_path / "pairs")
    assert told.exit_code == 0
    assert told.stderr.endswith("pairs is empty: the conversation has nothing for dpo\n")
    full = run("export", "mia/one", "--format", "markdown", "--output", tmp_path / "full")
    assert "empty" not in full.stderr
