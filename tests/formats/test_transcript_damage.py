"""Whatever a file is like: it imports, every line is accounted for, every path is valid."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planted import Planted
from sessions import claude_code, damage, pi, text

from sessiontree.errors import FormatError
from sessiontree.formats.skeleton import lines_in

SESSIONS = {"claude_code": claude_code, "pi": pi}
RANDOM = st.randoms(use_true_random=False)


def lines_of(raw: bytes) -> int:
    return len(raw.split(b"\n")) - raw.endswith(b"\n")


@pytest.mark.parametrize("format", SESSIONS)
@given(random=RANDOM)
def test_a_sound_session_is_kept_whole_and_nothing_in_it_is_skipped(format: str, random: Random):
    rows = SESSIONS[format](random)
    try:
        tree = Planted(rows, format)
    except FormatError:
        assert not [row for row in rows if "message" in row]
        return
    tree.check()
    assert (len(tree.skeleton.entries), tree.skips) == (len(rows), [])


@pytest.mark.parametrize("format", SESSIONS)
@given(random=RANDOM)
@settings(max_examples=150)
def test_a_damaged_session_is_imported_and_every_line_accounted_for(format: str, random: Random):
    raw = text(damage(SESSIONS[format](random), format, random), random)
    try:
        tree = Planted(raw, format)
    except FormatError:  # what was left of it is no session
        return
    tree.check()
    assert tree.skeleton.rows == lines_of(raw)
    told = [line for note in tree.skeleton.skipped for line in range(note.line, note.last + 1)]
    kept = [entry.line for entry in tree.skeleton.entries]
    assert sorted(told + kept) == list(range(1, lines_of(raw) + 1))


@pytest.mark.parametrize("format", SESSIONS)
@given(random=RANDOM)
def test_a_damaged_session_gives_the_same_tree_each_time(format: str, random: Random):
    raw = text(damage(SESSIONS[format](random), format, random), random)
    try:
        first, second = Planted(raw, format), Planted(raw, format)
    except FormatError:
        return
    assert (first.links, first.head) == (second.links, second.head)
    keys = [entry.key for entry in first.skeleton.entries]
    assert keys == [entry.key for entry in second.skeleton.entries]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("format", SESSIONS)
@given(raw=st.binary(max_size=200), lines=st.lists(st.text(max_size=40), max_size=8))
def test_bytes_that_are_no_session_are_an_error(format: str, raw: bytes, lines: list[str]):
    content = raw + b"\n" + "\n".join(lines).encode("utf-8", "surrogatepass")
    with pytest.raises(FormatError):
        Planted(content, format)


@pytest.mark.parametrize("format", SESSIONS)
@given(random=RANDOM, flips=st.lists(st.tuples(st.integers(0), st.integers(0, 255)), max_size=6))
def test_flipped_bytes_are_a_repair_a_skip_or_an_error(
    format: str, random: Random, flips: list[tuple[int, int]]
):
    raw = bytearray(text(SESSIONS[format](random), random))
    for at, value in flips:
        raw[at % len(raw)] = value
    try:
        tree = Planted(bytes(raw), format)
    except FormatError:
        return
    tree.check()
    skipped = lines_in(tree.skeleton.skipped)
    assert len(tree.skeleton.entries) + skipped == tree.skeleton.rows == lines_of(bytes(raw))
