"""sessiontree itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from typing import Any

from sessiontree import Conversation, open_store

from .peer import Peer, Turn, asked, batches


class SessionTree(Peer):
    title = "sessiontree"
    package = "sessiontree"
    how = {  # noqa: RUF012
        "append": "chat.append()",
        "load": "chat.path(), each message decoded",
        "newest": "chat.path(newest=…), each message decoded",
        "branch": "chat.branch(message)",
        "fork": "chat.fork(): new ids, nothing shared but large contents",
    }

    async def open(self) -> None:
        self._stack = AsyncExitStack()
        self._marks: dict[int, int] = {}
        """How many turns were filled in → the id of the last message then."""
        self._store = await self._stack.enter_async_context(open_store(self.file))

    async def begin(self, name: str) -> Conversation:
        return await self._store.conversation(name)

    def prepared(self, turn: Turn) -> list[Any]:
        return list(turn)

    async def append(self, conversation: Conversation, turn: list[Any]) -> None:
        await conversation.append(turn)

    async def fill(self, conversation: Conversation, turns: Iterable[Turn]) -> None:
        for so_far, some in batches(turns):
            saved = await conversation.append([message for turn in some for message in turn])
            self._marks[so_far] = saved[-1].id

    async def load(self, conversation: Conversation) -> Sequence[Any]:
        return [message.native for message in await conversation.path()]

    async def newest(self, conversation: Conversation, count: int) -> Sequence[Any]:
        return [message.native for message in await conversation.path(newest=count)]

    async def branch(self, conversation: Conversation, turns: int) -> None:
        await conversation.branch(self._marks[turns])

    async def back(self, conversation: Conversation) -> None:
        await conversation.undo()

    async def fork(self, conversation: Conversation) -> Conversation:
        return await conversation.fork()

    def said(self, messages: Sequence[Any]) -> list[str]:
        return [message["content"] for message in messages]

    async def settings(self) -> str:
        return await self._store._backend.write(asked)

    async def close(self) -> None:
        await self._stack.aclose()


PEER = SessionTree
