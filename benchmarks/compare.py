"""The stores of other agent frameworks beside ours and a plain ``sqlite3`` program.

    python benchmarks/compare.py [--quick] [--only PEER] [--out FOLDER]

Each contender lives in a process of its own (see ``peers/child.py``) through all subjects,
and waits while another works; all of them do the same in each round, another one first each
time. A peer runs with the settings it comes with; three of them also with a file that was
switched to WAL mode, as ours is. Who is slow gets fewer rounds, who fails is told with what
it said. A whole run writes peers.json, peers.md and a chart for each subject into
docs/benchmarks; a quick one writes nothing unless it is told where.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import beside
import report
from beside import OURS, PLAIN, Contest, Result
from host import Machine
from measure import Broken

PEERS = (
    "openai_sqlite",
    "openai_async_sqlite",
    "openai_advanced_sqlite",
    "langgraph_sqlite",
    "google_adk",
    "strands_files",
    "agno_sqlite",
    "llm_logs",
    "llama_index_sql",
)
IN_WAL = ("google_adk wal", "llm_logs wal", "llama_index_sql wal")
"""Those that come with a rollback journal: their files can be switched."""

QUIET = {
    "AGNO_TELEMETRY": "false",
    "ANONYMIZED_TELEMETRY": "false",
    "DO_NOT_TRACK": "1",
    "LANGCHAIN_TRACING_V2": "false",
    "LANGSMITH_TRACING": "false",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "OTEL_SDK_DISABLED": "true",
}
"""Nobody is to be told of this; a child refuses the network besides."""

TIMEOUT, PATIENCE = 150, 600
"""Seconds for one command, and for filling a store in. Who needs more has failed."""


@dataclass(frozen=True, slots=True)
class Subject:
    """One thing that all do. ``command`` is what a child is told in each round, ``work`` how
    many turns that is (or 0: milliseconds are told)."""

    name: str
    title: str
    command: dict[str, Any]
    work: int = 0
    rounds: int = 7
    also_in_wal: bool = False


class Stage(NamedTuple):
    """A new store for everybody: how many turns are filled in, and what is measured then."""

    name: str
    filled: int
    subjects: tuple[Subject, ...]


def stages(quick: bool) -> list[Stage]:
    """What is done, in which sizes."""

    def pick(whole: int, small: int) -> int:
        return small if quick else whole

    some, many, long = pick(250, 125), pick(1_250, 250), pick(2_500, 250)
    few, alone, each = pick(8, 2), pick(64, 8), pick(2, 1)
    at_once = pick(64, 16)
    rounds = pick(7, 2)
    grow = {"do": "grow", "each": few}
    return [
        Stage("empty", 0, (
            Subject("append-1", f"Turns/s, one new conversation, {alone} turns",
                    {"do": "appends", "at_once": 1, "each": alone}, alone, rounds, True),
            Subject("append-64", f"Turns/s, {at_once} new conversations at once",
                    {"do": "appends", "at_once": at_once, "each": each}, at_once * each,
                    rounds, True),
        )),
        Stage("some", some, (
            Subject("append-1000", f"Turns/s, a conversation of {4 * some:,} messages",
                    grow, few, rounds),
        )),
        Stage("many", many, (
            Subject("append-5000", f"Turns/s, a conversation of {4 * many:,} messages",
                    grow, few, rounds),
            Subject("branch", f"Go on from an earlier one of {4 * many:,} messages",
                    {"do": "branch", "turns": many // 250 * 125}, 0, rounds),
            Subject("fork", f"A new conversation with the same {4 * many:,} messages",
                    {"do": "fork"}, 0, rounds),
        )),
        Stage("long", long, (
            Subject("load", f"Load {4 * long:,} messages", {"do": "load"}, 0, rounds),
            Subject("newest", f"The newest 20 of {4 * long:,} messages",
                    {"do": "newest", "count": 20}, 0, rounds),
        )),
    ]  # fmt: skip


# --- a child ----------------------------------------------------------------------------


class Failed(Exception):
    """What a child said, or that it said nothing."""


class Child:
    """A contender's process. ``about`` is what it says of itself."""

    def __init__(self, name: str, folder: Path, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self.folder = folder
        self.about: dict[str, Any] = {}
        self._process = process
        self._ended = "its process has ended"

    @classmethod
    async def start(cls, name: str, home: Path) -> Child:
        folder = home / name.replace(" ", "-")
        made = cls(name, folder, await _spawn(name, folder))
        made.about = await made.ask({"do": "about"})
        return made

    async def ask(self, command: dict[str, Any]) -> Any:
        """Its answer. Failed: it could not, or took too long, and is not asked again."""
        assert self._process.stdin
        assert self._process.stdout
        if self._process.returncode is not None:
            raise Failed(self._ended)
        self._process.stdin.write(json.dumps(command).encode() + b"\n")
        patience = PATIENCE if command["do"] == "fill" else TIMEOUT
        try:
            line = await asyncio.wait_for(self._process.stdout.readline(), patience)
        except TimeoutError:
            await self.stop()
            self._ended = f"took more than {patience} s to {command['do']}, and was stopped"
            raise Failed(self._ended) from None
        if not line:
            told = (self.folder / "stderr").read_text(errors="replace").strip().splitlines()
            raise Failed(f"its process has ended: {told[-1] if told else 'no word'}")
        answer = json.loads(line)
        if "error" in answer:
            raise Failed(answer["error"])
        return answer["answer"]

    async def stop(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()


async def _spawn(name: str, folder: Path) -> asyncio.subprocess.Process:
    """What it prints for people goes to a file: its last line is told where it dies."""
    with _log(folder) as errors:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "peers.child", *name.split()),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            env=_environment(folder),
        )


def _log(folder: Path) -> BinaryIO:
    folder.mkdir()
    return (folder / "stderr").open("wb")


def _environment(home: Path) -> dict[str, str]:
    """What a child sees: the modules of this checkout, a home of its own, nobody's keys."""
    here = Path(__file__).parent
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    folders = {name: str(home) for name in ("HOME", "LLM_USER_PATH", "LLAMA_INDEX_CACHE_DIR")}
    return {**kept, **folders, **QUIET, "PYTHONPATH": f"{here}{os.pathsep}{here.parent}"}


# --- the contest ------------------------------------------------------------------------


@dataclass(slots=True)
class Race:
    """The children, and what each of them has shown so far."""

    children: list[Child]
    quick: bool
    contests: list[Contest] = field(default_factory=list[Contest])
    settings: dict[str, str] = field(default_factory=dict[str, str])

    async def stage(self, stage: Stage) -> None:
        """Everybody prepares at the same time, since nothing is timed then."""
        start = time.perf_counter()
        ready = [child for child in self.children if self._takes_part(child, stage)]
        troubles = await asyncio.gather(*(self._prepare(child, stage) for child in ready))
        failed = dict(zip((child.name for child in ready), troubles, strict=True))
        for subject in stage.subjects:
            self.contests.append(await self._contest(subject, ready, failed))
        for child in ready:
            await _tried(child, {"do": "close"})
        print(f"{stage.name}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)

    def _takes_part(self, child: Child, stage: Stage) -> bool:
        return " " not in child.name or any(subject.also_in_wal for subject in stage.subjects)

    async def _prepare(self, child: Child, stage: Stage) -> str | None:
        """What went wrong, if anything."""
        _, trouble = await _tried(child, {"do": "open", "folder": str(child.folder / stage.name)})
        if trouble is None and stage.filled:
            _, trouble = await _tried(child, {"do": "fill", "count": stage.filled})
        return trouble

    async def _contest(
        self, subject: Subject, ready: list[Child], failed: dict[str, str | None]
    ) -> Contest:
        contest = Contest(subject.name, subject.title, subject.work)
        for child in ready:
            trouble = failed[child.name] or child.about["cannot"].get(subject.command["do"])
            contest.results[child.name] = Result(trouble=trouble)
        for turn in range(subject.rounds + 1):
            start = turn % len(ready)
            for child in ready[start:] + ready[:start]:
                result = contest.results[child.name]
                if result.goes_on(budget=2 if self.quick else 12):
                    seconds, result.trouble = await _tried(child, subject.command)
                    result.took(seconds, counts=turn > 0)
        for child in ready:
            if child.name not in self.settings:
                told, trouble = await _tried(child, {"do": "settings"})
                self.settings[child.name] = told or f"not told: {trouble}"
        return contest


async def _tried(child: Child, command: dict[str, Any]) -> tuple[Any, str | None]:
    """(answer, None), or (None, what went wrong)."""
    try:
        return await child.ask(command), None
    except Failed as error:
        if child.name in (OURS, PLAIN):
            raise Broken(f"{child.name}, {command}: {error}") from None
        return None, str(error)


async def contend(names: list[str], quick: bool, home: Path) -> Race:
    """All subjects with these contenders."""
    children = await asyncio.gather(*(Child.start(name, home) for name in names))
    race = Race(list(children), quick)
    try:
        for stage in stages(quick):
            await race.stage(stage)
    finally:
        await asyncio.gather(*(child.stop() for child in children))
    return race


def main() -> None:
    wish = _arguments()
    names = [OURS, PLAIN, *(wish.only or (*PEERS, *IN_WAL))]
    out = wish.out or (None if wish.quick else report.DOCS)
    with tempfile.TemporaryDirectory(prefix="sessiontree-peers-", dir=wish.folder) as folder:
        words = ["python benchmarks/compare.py", *(["--quick"] if wish.quick else [])]
        machine = Machine.here(Path(folder), wish.quick, " ".join(words))
        race = asyncio.run(contend(names, wish.quick, Path(folder)))
    about = {child.name: child.about for child in race.children}
    told = beside.Report(machine, about, race.settings, race.contests)
    print(told.markdown())
    if out:
        told.write(out)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes and few rounds")
    known = (*PEERS, *IN_WAL)
    parser.add_argument(
        "--only", action="append", choices=known, metavar="PEER", help=", ".join(known)
    )
    parser.add_argument("--out", type=Path, help="where JSON, charts and the table are written")
    parser.add_argument("--folder", type=Path, help="where the stores are made; a real disk")
    return parser.parse_args()


if __name__ == "__main__":
    try:
        main()
    except Broken as error:
        sys.exit(f"benchmark broken: {error}")
