"""Modules that tests share are found by their names alone, so no two may bear the same."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

TESTS = Path(__file__).parent
BESIDE = (TESTS.parent / "benchmarks", TESTS / "conversation", *TESTS.rglob("helpers"))


def test_no_two_modules_that_tests_share_have_one_name() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for folder in BESIDE:
        for entry in folder.iterdir():
            if entry.suffix == ".py" or (entry.is_dir() and any(entry.glob("*.py"))):
                places[entry.stem].append(str(folder.relative_to(TESTS.parent)))
    shared = {name: found for name, found in places.items() if len(found) > 1}
    assert not {name: found for name, found in shared.items() if name != "conftest"}


def test_every_folder_that_tests_put_on_the_path_is_looked_at_here() -> None:
    asking = {
        file.parent
        for file in TESTS.rglob("*.py")
        if "sys.path." in file.read_text(encoding="utf-8") and file != Path(__file__)
    }
    known = {folder.parent for folder in BESIDE} | {TESTS / "conversation", TESTS / "store"}
    assert asking <= known | {TESTS / "benchmarks"}
