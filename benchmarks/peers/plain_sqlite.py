"""What somebody would write by hand, on our schema: see ``plain``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from plain import Plain, decoded

from .peer import Peer, Turn, asked, batches


class PlainSqlite(Peer):
    title = "plain sqlite3"
    package = "sqlite3"
    how = {  # noqa: RUF012
        "load": "a recursive query, json.loads() of each row",
        "newest": "the same, with a LIMIT",
        "append": "blocking; one connection serves all conversations in turn",
        "branch": "an UPDATE of the head",
        "fork": "an INSERT … SELECT of the path",
    }

    async def open(self) -> None:
        self._plain = Plain(self.file)
        self._marks: dict[int, int] = {}

    async def begin(self, name: str) -> int:
        return self._plain.conversation()

    def prepared(self, turn: Turn) -> list[Any]:
        return list(turn)

    async def append(self, conversation: int, turn: list[Any]) -> None:
        self._plain.append(conversation, turn)

    async def fill(self, conversation: int, turns: Iterable[Turn]) -> None:
        for so_far, some in batches(turns):
            self._plain.append(conversation, [message for turn in some for message in turn])
            self._marks[so_far] = self._plain.head(conversation) or 0

    async def load(self, conversation: int) -> Sequence[Any]:
        return decoded(self._plain.path(conversation))

    async def newest(self, conversation: int, count: int) -> Sequence[Any]:
        return decoded(self._plain.path(conversation, count))

    async def branch(self, conversation: int, turns: int) -> None:
        self._plain.point(conversation, self._marks[turns])

    async def back(self, conversation: int) -> None:
        self._plain.point(conversation, self._plain.head(conversation) or 0)

    async def fork(self, conversation: int) -> int:
        return self._plain.fork(conversation)

    def said(self, messages: Sequence[Any]) -> list[str]:
        return [message["content"] for message in messages]

    async def settings(self) -> str:
        return asked(self._plain.db)

    async def close(self) -> None:
        self._plain.close()


PEER = PlainSqlite
