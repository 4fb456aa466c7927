"""OpenAI Agents SDK, ``AdvancedSQLiteSession``: the one with branches."""

from __future__ import annotations

from typing import Any

from agents.extensions.memory import AdvancedSQLiteSession

from .openai_sqlite import HOW, Sessions


class AdvancedSqlite(Sessions):
    title = "OpenAI Agents AdvancedSQLiteSession"
    how = HOW | {
        "branch": "create_branch_from_turn(): a row for each message before it is copied",
    }
    cannot = {"fork": "branches stay in their session"}  # noqa: RUF012

    @staticmethod
    def session(name: str, file: Any) -> Any:
        return AdvancedSQLiteSession(session_id=name, db_path=file, create_tables=True)

    async def branch(self, conversation: Any, turns: int) -> None:
        await conversation.create_branch_from_turn(turns + 1)

    async def back(self, conversation: Any) -> None:
        await conversation.switch_to_branch("main")


PEER = AdvancedSqlite
