"""simonw/llm, ``LogStore``: messages by the hash of their content and of what came before,
threads that point at them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import sqlite_utils
from llm import Message
from llm.logs import LogStore
from llm.parts import TextPart, ToolCallPart, ToolResultPart

from .peer import Peer, Turn, asked, batches


def _message(message: Any) -> Message:
    text = message["content"]
    if message["role"] == "tool":
        result = ToolResultPart("read_file", text, tool_call_id=message["tool_call_id"])
        return Message("tool", [result])
    calls = [
        ToolCallPart(call["function"]["name"], {}, tool_call_id=call["id"])
        for call in message.get("tool_calls", ())
    ]
    return Message(message["role"], [TextPart(text), *calls])


class Logs(Peer):
    title = "llm LogStore"
    package = "llm"
    how = {  # noqa: RUF012
        "load": "thread_messages()",
        "append": "LogStore.append() inside db.atomic(): one transaction for the turn, blocking",
        "newest": "thread_messages(), the whole history, and a slice of it",
        "branch": "LogStore.fork(): another thread that points at the same messages",
        "fork": "LogStore.fork(): the same; nothing is copied, forks share their messages",
    }

    async def open(self) -> None:
        self._db = sqlite_utils.Database(self.file)
        self._store = LogStore(self._db)
        self._marks: dict[int, str] = {}

    async def begin(self, name: str) -> str:
        return self._store.create_thread(name=name)

    def prepared(self, turn: Turn) -> list[Message]:
        return [_message(message) for message in turn]

    async def append(self, conversation: str, turn: list[Message]) -> None:
        with self._db.atomic():
            self._store.append(conversation, turn)

    async def fill(self, conversation: str, turns: Iterable[Turn]) -> None:
        for so_far, some in batches(turns):
            await self.append(conversation, [_message(each) for turn in some for each in turn])
            self._marks[so_far] = self._store.thread_tip(conversation) or ""

    async def load(self, conversation: str) -> Sequence[Message]:
        return self._store.thread_messages(conversation)

    async def branch(self, conversation: str, turns: int) -> None:
        self._store.fork(self._marks[turns], forked_from=conversation)

    async def fork(self, conversation: str) -> str:
        tip = self._store.thread_tip(conversation) or ""
        return self._store.fork(tip, forked_from=conversation)

    def said(self, messages: Sequence[Message]) -> list[str]:
        return [_text(message.parts[0]) for message in messages]

    async def settings(self) -> str:
        return asked(self._db.conn)

    async def close(self) -> None:
        self._db.close()


def _text(part: Any) -> str:
    return part.output if isinstance(part, ToolResultPart) else part.text


PEER = Logs
