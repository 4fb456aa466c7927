"""LlamaIndex, ``SQLAlchemyChatStore`` on SQLite."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from llama_index.core.llms import ChatMessage
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from .peer import PRAGMAS, Peer, Turn, batches, told

NO_TREE = "a key holds one list; there is no call for it"


def _message(message: Any) -> ChatMessage:
    more = {key: message[key] for key in ("tool_calls", "tool_call_id") if key in message}
    return ChatMessage(role=message["role"], content=message["content"], additional_kwargs=more)


class ChatStore(Peer):
    title = "LlamaIndex SQLAlchemyChatStore"
    package = "llama-index-core"
    how = {  # noqa: RUF012
        "load": "get_messages()",
        "append": "add_messages()",
        "newest": "count_messages(), then get_messages() from an offset",
    }
    cannot = {"branch": NO_TREE, "fork": NO_TREE}  # noqa: RUF012

    async def open(self) -> None:
        self._engine = create_async_engine(f"sqlite+aiosqlite:///{self.file}")
        self._store = SQLAlchemyChatStore("chat", async_engine=self._engine)

    async def begin(self, name: str) -> str:
        await self._store.count_messages(name)  # makes the table
        return name

    def prepared(self, turn: Turn) -> list[ChatMessage]:
        return [_message(message) for message in turn]

    async def append(self, conversation: str, turn: list[ChatMessage]) -> None:
        await self._store.add_messages(conversation, turn)

    async def fill(self, conversation: str, turns: Iterable[Turn]) -> None:
        for _, some in batches(turns):
            said = [_message(message) for turn in some for message in turn]
            await self._store.add_messages(conversation, said)

    async def load(self, conversation: str) -> Sequence[ChatMessage]:
        return await self._store.get_messages(conversation)

    async def newest(self, conversation: str, count: int) -> Sequence[ChatMessage]:
        all_ = await self._store.count_messages(conversation)
        return await self._store.get_messages(conversation, limit=count, offset=all_ - count)

    def said(self, messages: Sequence[ChatMessage]) -> list[str]:
        return [message.content or "" for message in messages]

    async def settings(self) -> str:
        async with self._engine.connect() as connection:
            answers = [await connection.scalar(text(f"PRAGMA {name}")) for name in PRAGMAS]
        return told(*answers)

    async def close(self) -> None:
        await self._engine.dispose()


PEER = ChatStore
