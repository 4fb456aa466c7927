"""`sessiontree demo`: the main job, from import to a resumed crash, on real files.

Every step is a command that you could type, or the agent of demo_agent.py in a process of
its own; what is printed is what they print.
"""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from sessiontree.cli.screen import out_lines
from sessiontree.errors import SessionTreeError

SAMPLE = Path(__file__).with_name("demo_session.jsonl")
CHAT = "demo/T-80005"
PROMPT = "Order LK-266415 never came. Pay it back."


class Demo:
    """A store in a folder of its own, and the steps on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = str(folder / "demo.db")

    def run(self) -> None:
        """All steps, in order."""
        self.bring_in()
        self.crash()
        self.take_up()
        self.explore()
        self.go_back()
        self.carry_out()
        out_lines(f"\nAll of it is in {self.folder}; look around:")
        out_lines(f"  sessiontree tree {CHAT} --store {shlex.quote(self.store)}")

    def bring_in(self) -> None:
        say("1. Bring in another program's session: edited prompts, parallel calls, one cut off")
        self.cli("import", str(SAMPLE), "--owner", "demo")
        self.cli("ls")
        self.cli("tree", str(self.ids()[0]))

    def crash(self) -> None:
        say("2. An agent pays a refund, and is killed between the tool call and its result")
        agent = self.agent(PROMPT, "--slow-bank")
        assert agent.stdout is not None
        for line in agent.stdout:
            out_lines(line.rstrip())
            if "refund" in line:
                agent.send_signal(signal.SIGKILL)
                break
        out_lines(f"  (killed with SIGKILL, exit code {agent.wait()})")
        agent.stdout.close()

    def take_up(self) -> None:
        say("3. The history ends at the boundary before; what was in flight is not forgotten")
        self.cli("path", CHAT)
        self.cli("resume", CHAT)
        say("4. A new process takes it up, and tells the model that the result is unknown")
        self.finish(self.agent(PROMPT))
        self.cli("path", CHAT)

    def explore(self) -> None:
        say("5. A checkpoint, and two branches from it")
        self.cli("checkpoint", CHAT, "before-asking", "--note", "nothing promised yet")
        self.finish(self.agent("Is LK-266416 lost as well?"))
        self.cli("rewind", CHAT, "before-asking")
        self.finish(self.agent("Then look at LK-266417, please."))
        self.cli("tree", CHAT)

    def go_back(self) -> None:
        say("6. Back to the checkpoint, taking along what was found; and undo that")
        self.cli("rewind", CHAT, "before-asking", "--digest", "LK-266417 was paid back as well.")
        self.cli("path", CHAT, "--newest", "2")
        self.cli("undo", CHAT)
        self.cli("tree", CHAT)

    def carry_out(self) -> None:
        say("7. A fork goes its own way; an export for people to read; and all of it is sound")
        self.cli("fork", CHAT, "--topic", "T-80005-copy")
        self.cli("ls")
        target = str(self.folder / "T-80005.md")
        self.cli("export", CHAT, "--format", "markdown", "--output", target)
        lines = Path(target).read_text(encoding="utf-8").splitlines()
        out_lines("\n".join(f"  | {line}" for line in lines[:16]) + "\n  | …")
        self.cli("check")

    def cli(self, *arguments: str) -> None:
        """One command, shown as it would be typed."""
        out_lines(f"\n$ sessiontree {shlex.join(arguments)}")
        done = self._cli(*arguments)
        out_lines(done.stdout.rstrip())
        if done.returncode:
            raise SessionTreeError(f"the demo stopped: {done.stderr.strip()}")

    def ids(self) -> list[int]:
        """The conversations of the store, the newest first."""
        return [each["id"] for each in json.loads(self._cli("ls", "--json").stdout)]

    def _cli(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "sessiontree.cli", "--store", self.store, *arguments]
        return subprocess.run(command, capture_output=True, encoding="utf-8", check=False)

    def agent(self, prompt: str, *more: str) -> subprocess.Popen[str]:
        """The agent, in a process of its own."""
        topic = CHAT.partition("/")[2]
        out_lines(f"\n$ python -m sessiontree.cli.demo_agent {topic} {shlex.join([prompt, *more])}")
        module = "sessiontree.cli.demo_agent"
        command = [sys.executable, "-m", module, self.store, topic, prompt, *more]
        return subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8")

    def finish(self, agent: subprocess.Popen[str]) -> None:
        """Show what an agent says until it is done."""
        text, _ = agent.communicate()
        out_lines(text.rstrip())
        if agent.returncode:
            raise SessionTreeError(f"the demo's agent stopped with exit code {agent.returncode}")


def say(title: str) -> None:
    """A heading."""
    out_lines(f"\n{title}\n{'─' * len(title)}")


def run(folder: Path | None = None) -> None:
    """Run the demo in ``folder``, by default a new one among the temporary files."""
    Demo(folder or Path(tempfile.mkdtemp(prefix="sessiontree-demo-"))).run()
