"""What these tests share: rows to import, and what is in a store afterwards."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sessiontree import Conversation, Message
from sessiontree.formats.transcript import kind_of
from sessiontree.transfer import Import

FIXTURES = Path(__file__).parents[2] / "fixtures"
QUIRKS = FIXTURES / "claude_code" / "quirks.jsonl"
V1, V3 = FIXTURES / "pi" / "v1.jsonl", FIXTURES / "pi" / "v3.jsonl"
ALL = [QUIRKS, V1, FIXTURES / "pi" / "v2.jsonl", V3]

Row = dict[str, Any]


def accounted(done: Import) -> bool:
    return done.entries == done.kept + done.already + done.about + done.skipped


async def shape(chat: Conversation) -> list[tuple[Any, ...]]:
    """Every message with all it holds, ids as positions in the tree."""
    place: dict[int | None, int | None] = {None: None}
    found: list[tuple[Any, ...]] = []
    async for message in chat.iter_messages():
        place[message.id] = len(found)
        row = message.row
        ref = None if row.ref_id is None else place[row.ref_id]
        found.append((place[row.parent_id], ref, *row[3:13], *row[15:]))
    return found


def user(uuid: str, parent: str | None, content: object = "hi") -> Row:
    message = {"role": "user", "content": content}
    return {**_row("user", uuid, parent), "message": message}


def answer(uuid: str, parent: str | None, *calls: str) -> Row:
    uses = [{"type": "tool_use", "id": call, "name": "Bash", "input": {}} for call in calls]
    content = [{"type": "text", "text": uuid}, *uses]
    message = {"role": "assistant", "content": content, "id": f"msg_{uuid}"}
    return {**_row("assistant", uuid, parent), "message": message}


def result(uuid: str, parent: str | None, call: str, *more: Row) -> Row:
    block = {"type": "tool_result", "tool_use_id": call, "content": "done"}
    return user(uuid, parent, [block, *more])


def _row(kind: str, uuid: str, parent: str | None) -> Row:
    return {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s1"}


def write(path: Path, rows: Sequence[Row]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


async def names(chat: Conversation, leaf: int | None = None) -> str:
    """The path as the keys of its messages; "!" for a closing of ours, "*" for a rest."""
    ours = {"interrupted": "!", "rest": "*"}
    return " ".join(ours.get(kind_of(m) or "") or str(m.key) for m in await chat.path(leaf))


def is_of_the_file(message: Message) -> bool:
    return kind_of(message) != "interrupted"
