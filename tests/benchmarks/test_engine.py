"""Each subject runs, in sizes that only show whether it works, and every promise that is made
is among its figures. What the figures are is not looked at: that is the benchmarks' own work."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import compare
import engine
import pytest
import report
from host import Machine
from measure import Bench, Figure, Target, at_least, at_most

PROMISES: dict[str, dict[str, Target]] = {
    "appends": {
        "turns/s, 1 conversation, FULL": at_least(0.7, 0.8),
        "turns/s, 64 conversations at once, FULL": at_least(3, 4),
    },
    "loads": {"load": at_most(1.5, 1.2), "newest 20": at_most(2, 1.5)},
    "moves": {
        "branch, FULL": at_most(1.5, 1.5),
        "rewind, FULL": at_most(1.5, 1.5),
        "undo, FULL": at_most(1.5, 1.5),
        "… flat": at_most(1.25, 1.1),
    },
    "forks": {"fork": at_most(1.5, 1.3)},
    "skeletons": {"tree of": at_most(2, 2)},
    "startup": {"`import sessiontree`": at_most(200, 150), "`sessiontree ls`": at_most(400, 400)},
    "disk": {"disk: file over text": at_most(1.7, 1.6)},
    "windows": {"plan": at_most(1.2, 1.1)},
    "blobs": {},
    "imports": {},
    "memory": {},
    "snapshots": {},
}
"""Subject → how the name of a figure begins → its target."""


def test_every_subject_has_a_title_and_its_promises_are_listed_here() -> None:
    assert set(engine.TITLES) == set(engine.SUBJECTS) == set(PROMISES)


@pytest.mark.parametrize("name", engine.SUBJECTS)
async def test_a_subject_runs_and_makes_good_on_what_it_promises_to_measure(
    name: str, tmp_path: Path
) -> None:
    figures = await engine.measured(name, Bench(tmp_path, quick=True, tiny=True))
    assert figures
    for begin, target in PROMISES[name].items():
        found = [figure for figure in figures if figure.subject.startswith(begin)]
        assert found, f"no figure begins with {begin!r}"
        assert found[0].target == target
    out = tmp_path / "out"
    report.write(out, name, engine.TITLES[name], Machine.here(tmp_path, True, "test"), figures)
    document = json.loads((out / f"{name}.json").read_text(encoding="utf-8"))
    assert [Figure.from_json(known) for known in document["figures"]] == figures
    ET.fromstring((out / f"{name}.svg").read_text(encoding="utf-8"))


def test_the_table_of_all_figures_names_each_with_its_target_and_where_it_was_measured(
    tmp_path: Path,
) -> None:
    machine = Machine.here(tmp_path, True, "python benchmarks/engine.py")
    figures = [
        Figure("turns/s", (0.5, 0.9, 0.7), at_least(0.7, 0.8), ours="1/s", plain="2/s"),
        Figure("memory", (12.0,), None, "MB"),
    ]
    report.write(tmp_path, "appends", "Appending turns", machine, figures)
    report.write_table(tmp_path, list(engine.SUBJECTS), engine.PROGRAM)
    told = (tmp_path / "figures.md").read_text(encoding="utf-8")
    assert "| turns/s | ≥ 0.7 (0.8) × | **0.7** (0.5–0.9) × |" in told
    assert "| memory | – | **12** MB |" in told
    assert str(machine) in told
    assert "![Appending turns](appends.svg)" in told


def test_the_page_shows_the_chart_of_every_subject_and_none_that_nobody_draws() -> None:
    page = (report.DOCS / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", page)
    peers = [subject.name for stage in compare.stages(False) for subject in stage.subjects]
    grown = ["append-1000", "append-5000"]  # they are in the chart of growth
    drawn = [f"peers-{name}.svg" for name in ["growth", *peers] if name not in grown]
    assert sorted(shown) == sorted([*drawn, *(f"{name}.svg" for name in engine.SUBJECTS)])
