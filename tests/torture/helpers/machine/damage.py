"""A store to be damaged, ways to do it, and what must hold of it afterwards."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import sessiontree
from sessiontree import Store

CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}

TALK: list[dict[str, Any]] = [
    {"role": "user", "content": "first"},  # 2; 1 is the system prompt
    {"role": "assistant", "content": None, "tool_calls": [CALL]},  # 3
    {"role": "tool", "tool_call_id": "call_1", "content": "x" * 5000},  # 4, a blob
    {"role": "assistant", "content": "it is there"},  # 5
    {"role": "user", "content": "second"},  # 6
    {"role": "assistant", "content": "y" * 5000},  # 7, a blob
]


async def filled(target: Path) -> Path:
    """1 system ─ 2 user ─ 3 call ─ 4 result ─ 5 answer ─ 6 user ─ 7 answer [end] ← head
    └ 8 another, of the same prompt; 9 is the other conversation's only message."""
    async with sessiontree.open_store(target) as store:
        chat = await store.conversation("t", owner="o", system="be kind")
        await chat.append(TALK)
        await chat.checkpoint("end", note="all said")
        await chat.edit(2, {"role": "user", "content": "another"})
        await chat.undo()
        other = await store.conversation("other")
        await other.append({"role": "user", "content": "elsewhere"})
    return target


def damage(target: Path, *statements: str) -> None:
    with closing(sqlite3.connect(target)) as db:
        db.execute("PRAGMA ignore_check_constraints = ON")
        for statement in statements:
            db.execute(statement)
        db.commit()


def overwrite(target: Path, name: str, page: bytes) -> None:
    """Write over the first page of a table or an index."""
    with closing(sqlite3.connect(target)) as db:
        question = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        number = db.execute(question, (name,)).fetchone()[0]
    with target.open("r+b") as file:
        file.seek((number - 1) * 4096)
        file.write(page)


def rows(target: Path) -> dict[int, tuple[Any, ...]]:
    """What is there to be kept: id → conversation, content, key, time."""
    with closing(sqlite3.connect(target)) as db:
        found = db.execute(
            "SELECT m.id, m.conversation_id, coalesce(m.content, b.content), m.key, m.created_at"
            " FROM message m LEFT JOIN blob b ON b.id = m.blob_id ORDER BY m.id"
        )
        return {row[0]: row[1:] for row in found}


async def everything_is_reachable(store: Store, before: dict[int, tuple[Any, ...]]) -> None:
    """Every message that was there is still, to the byte, and is on a path of its tree; and
    each conversation goes on."""
    for info in [info async for info in store.conversations()]:
        chat = await store.open(info.id)
        tree = await chat.tree()
        mine = {at for at, row in before.items() if row[0] == info.id}
        assert mine <= {node.id for node in tree}
        reached: set[int] = set()
        for leaf in await chat.leaves():
            reached |= {message.id for message in await chat.path(leaf.id)}
        assert mine <= reached
        for at in mine:
            if before[at][1] is not None:
                content = before[at][1]
                text = content.decode() if isinstance(content, bytes) else content
                assert (await chat.message(at)).raw == text
        await chat.resume()
        await chat.append({"role": "user", "content": "and on"})
