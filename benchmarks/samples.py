"""What is stored while measuring: turns of four messages, and stores made of them.

A turn is what an agent says: a question, an assistant's call, the tool's result, the
answer; 1 KB of JSON text each, about the median of real session files. One message in
ten is not ASCII, as there. Without tools it is two questions and two answers.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cache
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from plain import encoded

from sessiontree import open_store

KB = 1024

Turn = list[dict[str, Any]]

DIGITS = 8
"""How many characters at the beginning of a text are its number."""

_PROSE = """
the order of this parcel was sent to a warehouse in Lyon and we wait for its return
def read(self, path): return [line.strip() for line in open(path)] # where the file is
error: expected 3 columns, found 2 at line 118; retry with --force or see docs/format.md
customer asked whether refunds above 250.00 EUR need approval by two people
"""
_WORDS = [*_PROSE.split(), "\n"]
_ELSEWHERE = ("café", "naïve", "“quoted”", "→", "größer", "日本語", "🙂")


def turns(count: int, size: int = KB, *, tools: bool = True, first: int = 0) -> Iterator[Turn]:
    """``count`` turns whose messages are ``size`` bytes of JSON text each, no two alike; nor
    are those of another ``first``, the number that they are counted from."""
    for number, turn in enumerate(islice(cycle(_pool(size, tools)), count), first):
        yield [
            message | {"content": f"{4 * number + i:{DIGITS}d}{message['content'][DIGITS:]}"}
            for i, message in enumerate(turn)
        ]


def messages(count: int, size: int = KB) -> list[dict[str, Any]]:
    """``count`` messages; whole turns, so a multiple of four."""
    assert count % 4 == 0
    return [message for turn in turns(count // 4, size) for message in turn]


@cache
def _pool(size: int, tools: bool) -> tuple[Turn, ...]:
    """Turns to take from in a round; fewer where they are large."""
    chance = random.Random(size)
    make = _agent_turn if tools else _text_turn
    pool = [make(number) for number in range(max(4, 512 * KB // size))]
    for turn in pool:
        for message in turn:
            _fill(chance, message, size)
    return tuple(pool)


def _text_turn(_: int) -> Turn:
    return [{"role": role, "content": ""} for role in ("user", "assistant") * 2]


def _agent_turn(number: int) -> Turn:
    call = {
        "id": f"call_{number:08x}",
        "type": "function",
        "function": {"name": "read_file", "arguments": f'{{"path":"src/part_{number}.py"}}'},
    }
    return [
        {"role": "user", "content": ""},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": ""},
        {"role": "assistant", "content": ""},
    ]


def _fill(chance: random.Random, message: dict[str, Any], size: int) -> None:
    """Give it a text, so that it is exactly ``size`` bytes of JSON."""
    words = [*_WORDS, *_ELSEWHERE] if chance.random() < 0.1 else _WORDS
    text = " ".join(["." * DIGITS, *chance.choices(words, k=size // 4)])[:size]
    message["content"] = text
    while (surplus := length(message) - size) > 0:
        text = message["content"] = text[: -max(1, surplus // 4)]
    message["content"] = text + "." * -surplus


def length(message: dict[str, Any]) -> int:
    """Bytes of its JSON text."""
    return len(encoded(message).encode())


CHAIN = """
INSERT INTO message (id, conversation_id, parent_id, role, format, depth, open_calls, tokens,
    preview, created_at, content)
WITH RECURSIVE number (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM number WHERE i + 1 < :count)
SELECT i + 1, :conversation, nullif(i, 0), iif(i % 2, 'assistant', 'user'), 'openai_chat', i, 0, 12,
       'message ' || i, :now,
       json_object('role', iif(i % 2, 'assistant', 'user'), 'content', 'message ' || i)
FROM number
"""


async def chain(file: Path, count: int) -> int:
    """A new store with one conversation: a chain of ``count`` short messages (ids from 1),
    the head at its end, a checkpoint at either end. Written by SQL, within seconds."""
    async with open_store(file) as store:
        chat = await store.conversation("chain")
    with closing(sqlite3.connect(file)) as db, db:
        names = {"count": count, "conversation": chat.id, "now": chat.info.created_at}
        db.execute(CHAIN, names)
        db.execute("UPDATE conversation SET head_id = ?", (count,))
    async with open_store(file) as store:
        chat = await store.open(chat.id)
        await chat.checkpoint("start", at=1)
        await chat.checkpoint("end")
        if count <= 100_000:
            problems = await store.check()
            assert not problems, problems
    return chat.id


def batches(turns: Iterator[Turn], size: int = 250) -> Iterator[Sequence[dict[str, Any]]]:
    """The messages of ``size`` turns at a time, to build with."""
    while batch := list(islice(turns, size)):
        yield [message for turn in batch for message in turn]
