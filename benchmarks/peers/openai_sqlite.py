"""OpenAI Agents SDK, ``SQLiteSession``: one object for each conversation, each call on a
worker thread, one lock for all sessions of a file."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from agents import SQLiteSession

from .peer import Peer, Turn, asked, batches

NO_TREE = "a session is one list; there is no call for it"


HOW = {
    "append": "add_items()",
    "load": "get_items()",
    "newest": "get_items() with a limit",
}


def items(turn: Turn) -> list[dict[str, Any]]:
    """The turn as items of a Responses request; the text of a call is in its arguments."""
    return [_item(message) for message in turn]


def _item(message: Any) -> dict[str, Any]:
    if calls := message.get("tool_calls"):
        name = calls[0]["function"]["name"]
        arguments = message["content"]
        call = {"type": "function_call", "call_id": calls[0]["id"], "name": name}
        return call | {"arguments": arguments}
    if message["role"] == "tool":
        result = {"type": "function_call_output", "call_id": message["tool_call_id"]}
        return result | {"output": message["content"]}
    return {"role": message["role"], "content": message["content"]}


def text(item: Any) -> str:
    return next(item[key] for key in ("content", "arguments", "output") if key in item)


class Sessions(Peer):
    """What the three sessions of the SDK have in common."""

    package = "openai-agents"
    how = HOW
    cannot = {"branch": NO_TREE, "fork": NO_TREE}  # noqa: RUF012
    session: ClassVar[Any]

    async def open(self) -> None:
        self._opened: list[Any] = []

    async def begin(self, name: str) -> Any:
        made = self.session(name, self.file)
        self._opened.append(made)
        await made.get_items(limit=1)  # connects and makes the tables
        return made

    async def end(self, conversation: Any) -> None:
        """Each of its sessions holds a connection for each thread that it was used on."""
        self._opened.remove(conversation)
        conversation.close()

    def prepared(self, turn: Turn) -> list[Any]:
        return items(turn)

    async def append(self, conversation: Any, turn: list[Any]) -> None:
        await conversation.add_items(turn)

    async def fill(self, conversation: Any, turns: Iterable[Turn]) -> None:
        for _, some in batches(turns):
            await conversation.add_items([item for turn in some for item in items(turn)])

    async def load(self, conversation: Any) -> Sequence[Any]:
        return await conversation.get_items()

    async def newest(self, conversation: Any, count: int) -> Sequence[Any]:
        return await conversation.get_items(limit=count)

    def said(self, messages: Sequence[Any]) -> list[str]:
        return [text(item) for item in messages]

    async def settings(self) -> str:
        session = await self.begin("settings")
        return await asyncio.to_thread(lambda: asked(session._get_connection()))

    async def close(self) -> None:
        for session in self._opened:
            session.close()


class Sqlite(Sessions):
    title = "OpenAI Agents SQLiteSession"
    session = SQLiteSession


PEER = Sqlite
