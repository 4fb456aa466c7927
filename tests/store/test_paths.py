"""A path is read in stretches where its messages lie close together, else from parent to parent:
what comes is the same."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessiontree.errors import StoreCorrupt
from sessiontree.store import reads
from sessiontree.store.driver import Opening

INSERT = """
INSERT INTO message (id, conversation_id, parent_id, role, format, depth, open_calls, tokens,
    preview, created_at, content)
VALUES (?, ?, ?, 'user', 'openai_chat', ?, 0, 0, '', 1, '{}')
"""

MESSAGES = st.lists(
    st.tuples(
        st.integers(1, 2),  # conversation
        st.integers(0, 3),  # how far back among its own messages the parent is; 0: a root
        st.integers(1, 4),  # how many ids are passed over
    ),
    min_size=1,
    max_size=40,
)


@contextmanager
def store() -> Iterator[sqlite3.Connection]:
    with closing(Opening(":memory:").connect()) as db:
        for _ in range(2):
            db.execute("INSERT INTO conversation (created_at, updated_at) VALUES (1, 1)")
        yield db


@contextmanager
def stretches(size: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reads, "STRETCH", size)
        patch.setattr(reads, "FEW", 0)
        yield


def lines(db: sqlite3.Connection, said: list[tuple[int, int, int]]) -> dict[int, list[int]]:
    """Message → the ids of its path, oldest first."""
    paths: dict[int, list[int]] = {}
    own: dict[int, list[int]] = {1: [], 2: []}
    id = 0
    for conversation, back, skipped in said:
        id += skipped
        mine = own[conversation]
        parent = mine[-back] if 0 < back <= len(mine) else None
        paths[id] = [*paths.get(parent or 0, []), id]
        db.execute(INSERT, (id, conversation, parent, len(paths[id]) - 1))
        mine.append(id)
    return paths


@given(MESSAGES, st.sampled_from([1, 2, 3, 7, 1000]), st.integers(1, 50))
def test_every_path_and_its_newest_are_those_of_the_parents(
    said: list[tuple[int, int, int]], size: int, newest: int
) -> None:
    with store() as db, stretches(size):
        for leaf, path in lines(db, said).items():
            (conversation,) = db.execute(
                "SELECT conversation_id FROM message WHERE id = ?", (leaf,)
            ).fetchone()
            assert [row.id for row in reads.path(db, conversation, leaf, None)] == path
            found = reads.path(db, conversation, leaf, newest)
            assert [row.id for row in found] == path[-newest:]


@given(st.integers(2, 20), st.sampled_from([1, 2, 3, 7, 1000]), st.data())
def test_a_path_with_a_wrong_depth_anywhere_is_told_as_damage(
    length: int, size: int, data: st.DataObject
) -> None:
    with store() as db, stretches(size):
        lines(db, [(1, 1, 1)] * length)
        at = data.draw(st.integers(2, length))
        db.execute("UPDATE message SET depth = depth + 5 WHERE id = ?", (at,))
        with pytest.raises(StoreCorrupt, match="is broken"):
            reads.path(db, 1, length, None)


def test_a_depth_that_is_no_integer_any_more_is_told_as_damage() -> None:
    with store() as db, stretches(2):
        lines(db, [(1, 0, 1), (1, 1, 1), (1, 1, 1)])
        db.execute("UPDATE message SET depth = 1.5 WHERE id = 2")
        for leaf in (2, 3):
            with pytest.raises(StoreCorrupt):
                reads.path(db, 1, leaf, None)


def test_a_talk_beside_many_others_is_read_from_parent_to_parent(tmp_path: Path) -> None:
    """The stretches would be those of the others."""
    asked: list[str] = []
    with store() as db:
        said = [pair for _ in range(300) for pair in ((1, 1, 1), *[(2, 1, 1)] * 9)]
        paths = lines(db, said)
        leaf = max(id for id, path in paths.items() if len(path) == 300 and path[0] == 1)
        db.set_trace_callback(asked.append)
        found = reads.path(db, 1, leaf, None)
        db.set_trace_callback(None)
    assert [row.id for row in found] == paths[leaf]
    assert sum("BETWEEN" in statement for statement in asked) == 1
