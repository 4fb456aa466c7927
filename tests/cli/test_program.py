"""The real program in processes of its own: exit codes, streams, terminals."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len

Program = Callable[..., subprocess.CompletedProcess[str]]
COMMAND = [sys.executable, "-c", "from sessiontree.cli import main; main()"]


def test_a_conversation_is_begun_walked_and_looked_at(program: Program):
    assert program("append", "camille/T-1", "Hello", "--new").returncode == 0
    assert program("append", "camille/T-1", "Hi.", "--role", "assistant").returncode == 0
    assert program("checkpoint", "camille/T-1", "greeted").returncode == 0
    assert program("append", "camille/T-1", stdin="Where is\nmy order?\n").returncode == 0
    assert program("rewind", "camille/T-1", "greeted").returncode == 0
    assert program("undo", "camille/T-1").returncode == 0
    path = json.loads(program("path", "camille/T-1", "--json").stdout)
    assert [each["text"] for each in path] == ["Hello", "Hi.", "Where is\nmy order?"]
    tree = program("tree", "camille/T-1")
    assert (tree.returncode, tree.stderr) == (0, "")
    assert "← head" in tree.stdout.splitlines()[2]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["ls"], 0),
        (["--version"], 0),
        (["--help"], 0),
        (["tree", "--help"], 0),
        (["show", "nobody/nothing"], 1),
        (["rewind", "1", "no such label"], 1),
        (["branch", "1", "2"], 1),
        (["undo", "99"], 1),
        (["delete", "1"], 1),
        (["wander"], 2),
        (["tree"], 2),
        (["show", "1", "two"], 2),
        (["ls", "--limit", "0"], 2),
        (["ls", "--colour"], 2),
    ],
)
def test_the_exit_code_tells_done_refused_and_not_understood(
    program: Program, ids: dict[str, int], arguments: list[str], code: int
):
    done = program(*arguments)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    if code == 1:
        assert done.stdout == ""
        assert done.stderr.startswith("sessiontree: ")
        assert done.stderr.count("\n") == 1
    if code == 2:
        assert "Usage" in done.stderr


def test_a_file_that_is_no_store_is_refused_in_one_line(program: Program, store: Path):
    store.write_text("Dear diary,\n" * 100)
    for command in (["ls"], ["check"], ["undo", "1"], ["append", "x", "hello", "--new"]):
        done = program(*command)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(f"sessiontree: {store}: file is not a database")
        assert done.stderr.count("\n") == 1


def test_the_store_may_be_named_before_or_after_the_command(
    program: Program, tmp_path: Path, ids: dict[str, int]
):
    other = tmp_path / "other.db"
    assert program("--store", other, "append", "x", "hello", "--new").returncode == 0
    assert program("show", "x", "--store", other).returncode == 0
    assert program("--store", "nowhere.db", "show", "x", "--store", other).returncode == 0
    assert program("show", "x").returncode == 1


def test_the_default_store_is_made_in_the_platforms_folder_for_data(tmp_path: Path):
    environment = os.environ | {"XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path)}
    environment.pop("SESSIONTREE_STORE", None)

    def run(*args: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([*COMMAND, *args], env=environment, capture_output=True, check=False)

    assert run("ls").returncode == 1
    assert list(tmp_path.iterdir()) == []
    assert run("append", "x", "hello", "--new").returncode == 0
    assert [path.name for path in tmp_path.rglob("*.db")] == ["sessions.db"]
    assert run("ls").returncode == 0


def test_a_reader_that_has_seen_enough_is_no_error(program: Program, store: Path):
    for _ in range(3):
        program("append", "x", "--new", stdin="a long line of text\n" * 20_000)
    process = subprocess.Popen(
        [*COMMAND, "path", "x", "--store", str(store)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(60) == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_an_output_that_cannot_be_written_is_told(store: Path, ids: dict[str, int]):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "ls", "--store", str(store)],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == b"sessiontree: No space left on device\n"


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are a Unix thing")
def test_what_strangers_wrote_does_not_steer_the_terminal(program: Program, store: Path):
    import pty

    hostile = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202etxet\r\nnext"
    topic = "evil\x1b[31m/\x1b[2J"
    message = json.dumps({"role": "user", "content": hostile})
    assert program("append", topic, message, "--message", "--new").returncode == 0
    program("checkpoint", "1", "\x1b[5mlabel", "--note", "\x1b[6mnote")
    for arguments in (["ls"], ["show", "1"], ["tree", "1"], ["path", "1"], ["checkpoint", "1"]):
        ours, theirs = pty.openpty()
        done = subprocess.run(
            [*COMMAND, *arguments, "--store", str(store)], stdout=theirs, stderr=theirs, check=False
        )
        os.close(theirs)
        shown = os.read(ours, 1 << 16).decode()
        os.close(ours)
        assert done.returncode == 0
        assert "owned" in shown or arguments == ["ls"] or arguments[0] == "checkpoint"
        rest = re.sub(r"\x1b\[(?:0|1|2|3\d|1;33)m|\r\n", "", shown)
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", rest), arguments


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are a Unix thing")
def test_the_tree_fits_the_terminal(program: Program, store: Path):
    import fcntl
    import pty
    import struct
    import termios

    for text in ("word " * 60, "日本語" * 60):
        program("append", "x", text, "--new")
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k != "COLUMNS"} | {"NO_COLOR": "1"}
    subprocess.run(
        [*COMMAND, "tree", "x", "--store", str(store)], stdout=theirs, env=environment, check=True
    )
    os.close(theirs)
    first, second = os.read(ours, 1 << 16).decode().splitlines()
    os.close(ours)
    assert 38 <= cell_len(first) <= 40
    assert 38 <= cell_len(second) <= 40
    assert second.endswith("…  ← head")


def test_listing_imports_nothing_heavy(store: Path, ids: dict[str, int]):
    script = (
        "import sys; from sessiontree.cli import app\n"
        "app(['ls'], standalone_mode=False)\n"
        "heavy = {'sqlmodel', 'sqlalchemy', 'pydantic', 'rich'} & sys.modules.keys()\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"SESSIONTREE_STORE": str(store)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_help_breaks_its_lines_where_the_terminal_ends(program: Program):
    told = program("import", "--help").stdout
    assert "was imported before is not imported again" in " ".join(told.split())
    lines = [line.strip() for line in told.splitlines()]
    assert "again." not in lines  # a line of the source is none of the terminal's
