"""OpenAI Agents SDK, ``AsyncSQLiteSession``: one aiosqlite connection for each conversation."""

from __future__ import annotations

from typing import Any

from agents.extensions.memory import AsyncSQLiteSession

from .openai_sqlite import Sessions
from .peer import PRAGMAS, told


class AsyncSqlite(Sessions):
    title = "OpenAI Agents AsyncSQLiteSession"
    session = AsyncSQLiteSession

    async def end(self, conversation: Any) -> None:
        self._opened.remove(conversation)
        await conversation.close()

    async def settings(self) -> str:
        session = await self.begin("settings")
        connection = await session._get_connection()
        answers = [await connection.execute_fetchall(f"PRAGMA {name}") for name in PRAGMAS]
        return told(*(rows[0][0] for rows in answers))

    async def close(self) -> None:
        for session in self._opened:
            await session.close()


PEER = AsyncSqlite
