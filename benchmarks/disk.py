"""Bytes of the file over bytes of the messages' JSON text, once the WAL is folded in."""

# ruff: noqa: RUF001 (the sign of a ratio)

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

from measure import Bench, Broken, Figure, at_most, number
from plain import Lean, Plain
from samples import length, messages, turns

from sessiontree import open_store


async def run(bench: Bench) -> AsyncIterator[Figure]:
    count = bench.pick(10_000, 2_000, 400)
    text = sum(map(length, messages(count)))
    mine = await _ours(bench.folder / "disk.db", count)
    plain = _plain(Plain(bench.folder / "disk-plain.db", "normal"), count)
    lean = _plain(Lean(bench.folder / "disk-lean.db", "normal"), count)
    yield Figure(
        f"disk: file over text, {number(count)} messages of 1 KB, turn by turn",
        (mine / text,),
        at_most(1.7, 1.6),
        ours=f"{mine / 2**20:.1f} MiB",
        plain=f"{plain / text:.2f} × (lean {lean / text:.2f} ×)",
    )


async def _ours(file: Path, count: int) -> int:
    """Written turn by turn, as a harness does; closing the store folds its WAL in."""
    async with open_store(file, durability="normal") as store:
        chat = await store.conversation()
        for turn in turns(count // 4):
            await chat.append(turn)
    return _size(file)


def _plain(program: Plain | Lean, count: int) -> int:
    with closing(program):
        conversation = program.conversation()
        for turn in turns(count // 4):
            program.append(conversation, turn)
        (_, _, file) = program.db.execute("PRAGMA database_list").fetchone()
    return _size(Path(file))


def _size(file: Path) -> int:
    wal = file.with_name(f"{file.name}-wal")
    if wal.exists() and wal.stat().st_size:
        raise Broken(f"{wal} was not folded into the file when it was closed")
    return file.stat().st_size
