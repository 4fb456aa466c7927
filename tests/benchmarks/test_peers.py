"""The contest with the peers, on our own side: what a child does, and what is told of it."""

from __future__ import annotations

import asyncio
import json
import xml.etree.ElementTree as ET
from pathlib import Path

import beside
import compare
import pytest
from beside import Contest, Report, Result
from host import Machine
from peers.child import Amiss, Worker
from peers.ours import SessionTree
from peers.peer import Peer
from peers.plain_sqlite import PlainSqlite


@pytest.mark.parametrize("made", [SessionTree, PlainSqlite], ids=["ours", "plain"])
async def test_a_contender_does_all_that_it_is_told_and_gives_back_what_it_was_given(
    made: type[Peer], tmp_path: Path
) -> None:
    worker = Worker(made, wal=False)
    await worker.open(str(tmp_path / "store"))
    assert await worker.appends(at_once=3, each=2) > 0
    assert await worker.settings() == "WAL, FULL"
    await worker.fill(126)
    assert await worker.grow(1) > 0
    assert await worker.load() > 0
    assert await worker.newest(20) > 0
    assert await worker.branch(125) > 0
    assert await worker.fork() > 0
    assert await worker.size() > 4 * 127 * 1024
    await worker.close()


async def test_a_store_that_loses_a_message_is_found_out(tmp_path: Path) -> None:
    class Forgetful(PlainSqlite):
        async def append(self, conversation: int, turn: list[object]) -> None:
            await super().append(conversation, turn[:-1])

    worker = Worker(Forgetful, wal=False)
    await worker.open(str(tmp_path / "store"))
    with pytest.raises(Amiss, match="did not give back"):
        await worker.appends(at_once=1, each=1)
    await worker.close()


async def test_a_conversation_that_fails_does_not_hide_how_the_others_ended(tmp_path: Path) -> None:
    class Locked(PlainSqlite):
        async def append(self, conversation: int, turn: list[object]) -> None:
            if conversation == 2:
                raise OSError("database is locked")
            await asyncio.sleep(0)
            await super().append(conversation, turn)

    worker = Worker(Locked, wal=False)
    await worker.open(str(tmp_path / "store"))
    with pytest.raises(Amiss, match="1 of 3 conversations failed: database is locked"):
        await worker.appends(at_once=3, each=2)
    await worker.close()


async def test_ours_and_the_plain_program_go_through_the_whole_contest(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    race = await compare.contend([compare.OURS, compare.PLAIN], True, home)
    subjects = [subject for stage in compare.stages(True) for subject in stage.subjects]
    assert [contest.name for contest in race.contests] == [subject.name for subject in subjects]
    for contest, subject in zip(race.contests, subjects, strict=True):
        for result in contest.results.values():
            assert result.trouble is None
            assert len(result.seconds) == subject.rounds
    report = _report(race)
    report.write(tmp_path / "out")
    for contest in race.contests:
        drawn = (tmp_path / "out" / f"peers-{contest.name}.svg").read_text(encoding="utf-8")
        ET.fromstring(drawn)
    written = json.loads((tmp_path / "out" / "peers.json").read_text(encoding="utf-8"))
    assert [subject["name"] for subject in written["subjects"]] == [s.name for s in subjects]


def _report(race: compare.Race) -> Report:
    about = {child.name: child.about for child in race.children}
    machine = Machine(2, "a processor", 8, "3.11", "3.40", "Linux", 0.1, 150, True, "test")
    return beside.Report(machine, about, race.settings, race.contests)


def test_who_is_faster_is_said_to_be_and_who_fails_is_told_with_what_it_said() -> None:
    contest = Contest("append-1", "Turns/s", work=10)
    contest.results = {
        "ours": Result([0.02, 0.01, 0.03]),
        "plain_sqlite": Result([0.01]),
        "quick": Result([0.005]),
        "slow": Result([0.04]),
        "lost": Result([0.001], trouble="database is locked"),
    }
    about = {
        name: {"title": name, "package": name, "version": "1", "how": {}, "cannot": {}}
        for name in contest.results
    }
    machine = Machine(2, "a processor", 8, "3.11", "3.40", "Linux", 0.1, 150, True, "test")
    told = Report(machine, about, {}, [contest]).markdown()
    assert "Faster than sessiontree here: quick. Target: faster than every peer ✗." in told
    assert "| quick | 2,000 turns/s | 2,000 turns/s – 2,000 turns/s | **4 ×, faster** |  |" in told
    assert "| slow | 250 turns/s | 250 turns/s – 250 turns/s | 0.5 × |  |" in told
    assert "| lost | – | – | – | database is locked (after 1 round of 10,000 turns/s) |" in told
    assert contest.in_order()[-1] == "lost"


def test_a_slow_contender_is_asked_less_often_but_often_enough() -> None:
    result = Result()
    for _ in range(beside.ENOUGH):
        assert result.goes_on(budget=20)
        result.took(30.0, counts=True)
    assert not result.goes_on(budget=20)


async def test_a_child_that_takes_too_long_is_stopped_and_says_so_whenever_it_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = await compare.Child.start(compare.PLAIN, tmp_path)
    await child.ask({"do": "open", "folder": str(tmp_path / "store")})
    monkeypatch.setattr(compare, "PATIENCE", 0.001)
    for command in ({"do": "fill", "count": 2_500}, {"do": "load"}):
        with pytest.raises(compare.Failed, match=r"took more than 0\.001 s to fill"):
            await child.ask(command)


def test_a_child_sees_nobodys_keys_and_contacts_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    seen = compare._environment(Path("home"))
    assert "OPENAI_API_KEY" not in seen
    assert seen["DO_NOT_TRACK"] == "1"
    assert seen["HOME"] == "home"
