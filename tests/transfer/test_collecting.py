"""While a file is imported, garbage is collected more seldom; then as before."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from sessiontree import FormatError, open_store
from sessiontree.transfer import import_file
from sessiontree.transfer.collecting import SELDOM, seldom_collecting

USUAL = (701, 11, 12)


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*USUAL)
    yield
    gc.set_threshold(*before)


def test_imports_at_the_same_time_leave_it_as_the_first_has_found_it():
    first, second = seldom_collecting(), seldom_collecting()
    first.__enter__()
    second.__enter__()
    assert gc.get_threshold() == SELDOM
    first.__exit__(None, None, None)
    assert gc.get_threshold() == SELDOM
    second.__exit__(None, None, None)
    assert gc.get_threshold() == USUAL


def test_what_somebody_has_set_meanwhile_stays():
    with seldom_collecting():
        gc.set_threshold(100, 5, 5)
    assert gc.get_threshold() == (100, 5, 5)


def test_a_collector_that_is_off_stays_off():
    gc.disable()
    try:
        with seldom_collecting():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


async def test_after_an_import_it_is_as_before_whether_it_was_one_or_not(tmp_path: Path):
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    row = '{"type": "user", "uuid": "a", "sessionId": "s", "message": {"role": "user", %s}}\n'
    good.write_text(row % '"content": "hi"')
    bad.write_text('{"type": "progress", "uuid": "a", "sessionId": "s", "parentUuid": null}\n')
    seen: list[tuple[int, int, int]] = []
    async with open_store(tmp_path / "new.db") as store:
        await import_file(store, good, progress=lambda *_: seen.append(gc.get_threshold()))
        assert gc.get_threshold() == USUAL
        with pytest.raises(FormatError):
            await import_file(store, bad, format="claude_code")
    assert gc.get_threshold() == USUAL
    assert set(seen) == {SELDOM}
