"""import, export, delete: what comes in, what goes out, what goes away."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from sessiontree.cli.demo import SAMPLE

Run = Callable[..., Result]
AsJson = Callable[..., Any]
PROGRAM = [sys.executable, "-c", "from sessiontree.cli import main; main()"]


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """The sample with a line that is cut off in its middle."""
    lines = SAMPLE.read_text(encoding="utf-8").splitlines(keepends=True)
    lines[30] = lines[30][:40] + "\n"
    file = tmp_path / "damaged.jsonl"
    file.write_text("".join(lines), encoding="utf-8")
    return file


def test_import_tells_what_became_of_every_row(run: Run, as_json: AsJson):
    (found,) = as_json("import", SAMPLE, "--owner", "demo")
    rows = SAMPLE.read_text(encoding="utf-8").count("\n")
    assert found["entries"] == rows
    assert found["kept"] + found["already"] + found["about"] + found["skipped"] == rows
    assert (found["format"], found["branch_points"], found["closed"]) == ("claude_code", 2, 1)
    (chat,) = as_json("ls")
    assert (chat["owner"], chat["id"]) == ("demo", found["conversations"][0])
    assert len(as_json("tree", chat["id"])["nodes"]) == chat["messages"]


def test_importing_twice_adds_nothing(run: Run, as_json: AsJson):
    (first,) = as_json("import", SAMPLE)
    (second,) = as_json("import", SAMPLE)
    assert (second["kept"], second["already"]) == (0, first["kept"])
    assert len(as_json("ls")) == 1


def test_import_names_lines_and_reasons(run: Run, as_json: AsJson, damaged: Path):
    result = run("import", damaged)
    assert result.exit_code == 0
    assert f"{damaged} (claude_code)" in result.stdout
    assert "1 skipped" in result.stdout
    assert "(line 31)" in result.stdout


def test_a_file_that_cannot_be_imported_does_not_keep_the_others_out(
    run: Run, as_json: AsJson, tmp_path: Path
):
    other = tmp_path / "notes.txt"
    other.write_text("milk, bread")
    result = run("import", other, tmp_path / "missing.jsonl", tmp_path, SAMPLE)
    assert result.exit_code == 1
    assert [line.split(":")[0] for line in result.stderr.splitlines()] == ["sessiontree"] * 3
    assert str(other) in result.stderr
    assert len(as_json("ls")) == 1


def test_jsonl_goes_out_and_comes_back_whole(
    run: Run, as_json: AsJson, ids: dict[str, int], tmp_path: Path
):
    file, other = tmp_path / "chat.jsonl", tmp_path / "other.db"
    assert run("export", 1, "--output", file).stdout == ""
    assert run("export", 1).stdout == file.read_text(encoding="utf-8")
    assert run("import", file, "--store", other).exit_code == 0
    before, after = as_json("tree", 1), as_json("tree", 1, "--store", other)
    told = ("role", "preview", "depth", "labels", "level", "index", "count", "is_head")
    assert [[node[key] for key in told] for node in after["nodes"]] == [
        [node[key] for key in told] for node in before["nodes"]
    ]
    raw = [message["raw"] for message in as_json("path", 1)]
    assert [message["raw"] for message in as_json("path", 1, "--store", other)] == raw


def test_markdown_shows_the_path_or_the_whole_tree(run: Run, ids: dict[str, int]):
    path = run("export", 1, "--format", "markdown").stdout
    assert "Please refund it." in path
    assert "Refund it!" not in path
    whole = run("export", 1, "--format", "markdown", "--whole-tree").stdout
    assert "Please refund it." in whole
    assert "Refund it!" in whole


def test_an_export_that_fails_leaves_the_old_file(run: Run, ids: dict[str, int], tmp_path: Path):
    file = tmp_path / "chat.pi"
    file.write_text("older")
    for wrong in ("codex", "papyrus"):  # the one cannot say branches, the other is none
        result = run("export", 1, "--whole-tree", "--format", wrong, "--output", file)
        assert result.exit_code == 1
        assert "jsonl" in result.stderr
    assert run("export", 1, "--output", tmp_path / "no" / "folder").exit_code == 1
    assert file.read_text() == "older"
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix == ".part") == []


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are a Unix thing")
def test_an_export_onto_a_terminal_is_cleaned_and_into_a_pipe_is_not(run: Run, store: Path):
    import pty

    message = json.dumps({"role": "user", "content": "\x1b[2Jgone"})
    run("append", "x", message, "--message", "--new")
    piped = run("export", "x", "--format", "markdown").stdout
    ours, theirs = pty.openpty()
    subprocess.run(
        [*PROGRAM, "export", "x", "--format", "markdown", "--store", str(store)],
        stdout=theirs,
        check=True,
    )
    os.close(theirs)
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert "\x1b" not in shown
    assert "gone" in shown
    assert "gone" in piped


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are a Unix thing")
def test_progress_is_shown_to_a_person_and_not_to_a_pipe(store: Path):
    import pty

    command = [*PROGRAM, "import", str(SAMPLE), "--store", str(store)]
    ours, theirs = pty.openpty()
    done = subprocess.run(command, stderr=theirs, stdout=subprocess.PIPE, check=True)
    os.close(theirs)
    assert SAMPLE.name in os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert b"95 saved" in done.stdout
    assert subprocess.run(command, capture_output=True, check=True).stderr == b""


def test_delete_wants_a_yes_where_nobody_can_be_asked(
    run: Run, as_json: AsJson, ids: dict[str, int]
):
    result = run("delete", 1)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "--yes" in result.stderr
    assert run("delete", 1, "--yes").stdout == "conversation 1 is deleted\n"
    assert as_json("ls") == []
    assert run("delete", 1, "--yes").exit_code == 1


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are a Unix thing")
@pytest.mark.parametrize(("answer", "code", "left"), [("n\n", 1, 1), ("\n", 1, 1), ("y\n", 0, 0)])
def test_delete_asks_at_a_terminal(
    as_json: AsJson, store: Path, ids: dict[str, int], answer: str, code: int, left: int
):
    import pty

    ours, theirs = pty.openpty()
    os.write(ours, answer.encode())
    done = subprocess.run(
        [*PROGRAM, "delete", "1", "--store", str(store)],
        stdin=theirs,
        capture_output=True,
        text=True,
        check=False,
    )
    os.close(theirs)
    os.close(ours)
    assert done.returncode == code
    assert "camille/T-80005: 7 message(s), gone for good" in done.stderr
    assert len(as_json("ls")) == left


def test_an_import_that_brings_in_nothing_makes_no_store(run: Run, store: Path, tmp_path: Path):
    nothing = tmp_path / "notes.txt"
    nothing.write_text("no session at all\n")
    assert run("import", nothing).exit_code == 1
    assert run("import", tmp_path / "missing.jsonl").exit_code == 1
    assert list(store.parent.glob(f"{store.name}*")) == []


def test_an_import_that_brings_in_nothing_leaves_a_store_as_it_is(
    run: Run, as_json: AsJson, store: Path, tmp_path: Path
):
    run("import", SAMPLE)
    assert run("import", tmp_path / "missing.jsonl").exit_code == 1
    assert len(as_json("ls")) == 1


def test_an_empty_file_is_not_answered_with_formats(run: Run, tmp_path: Path):
    (tmp_path / "none.jsonl").write_bytes(b" \n")
    result = run("import", tmp_path / "none.jsonl")
    assert result.exit_code == 1
    assert result.stderr.endswith("none.jsonl: it is empty\n")
