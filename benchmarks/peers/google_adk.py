"""Google ADK, ``DatabaseSessionService`` on SQLite: each message is an event, and each event
a transaction of its own; there is no call for several."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from time import time
from typing import Any

from google.adk.events import Event
from google.adk.sessions import DatabaseSessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.genai import types
from sqlalchemy import text

from .peer import PRAGMAS, Peer, Turn, told

WHO = {"app_name": "bench", "user_id": "camille"}


class Service(Peer):
    title = "Google ADK DatabaseSessionService"
    package = "google-adk"
    how = {  # noqa: RUF012
        "load": "get_session()",
        "append": "four append_event(), a transaction each",
        "newest": "get_session() with num_recent_events",
    }
    cannot = {  # noqa: RUF012
        "branch": "the service has no call for it (a Runner can rewind, by an event more)",
        "fork": "the service has no call for it",
    }

    async def open(self) -> None:
        self._service = DatabaseSessionService(f"sqlite+aiosqlite:///{self.file}")
        self._time = (time() + 1e-5 * number for number in count())
        """Events are ordered by their time: no two may have the same."""

    async def begin(self, name: str) -> Session:
        return await self._service.create_session(**WHO, session_id=name)

    def prepared(self, turn: Turn) -> list[Event]:
        return [self._event(message) for message in turn]

    def _event(self, message: Any) -> Event:
        parts = [types.Part(text=message["content"])]
        for call in message.get("tool_calls", ()):
            made = types.FunctionCall(id=call["id"], name=call["function"]["name"], args={})
            parts.append(types.Part(function_call=made))
        if message["role"] == "tool":
            answer = types.FunctionResponse(
                id=message["tool_call_id"], name="read_file", response={"text": message["content"]}
            )
            parts = [types.Part(function_response=answer)]
        is_model = message["role"] == "assistant"
        content = types.Content(role="model" if is_model else "user", parts=parts)
        author = "agent" if is_model else "user"
        return Event(author=author, content=content, timestamp=next(self._time))

    async def append(self, conversation: Session, turn: list[Event]) -> None:
        for event in turn:
            await self._service.append_event(conversation, event)

    async def load(self, conversation: Session) -> Sequence[Event]:
        found = await self._service.get_session(**WHO, session_id=conversation.id)
        assert found is not None
        return found.events

    async def newest(self, conversation: Session, count: int) -> Sequence[Event]:
        found = await self._service.get_session(
            **WHO, session_id=conversation.id, config=GetSessionConfig(num_recent_events=count)
        )
        assert found is not None
        return found.events

    def said(self, messages: Sequence[Event]) -> list[str]:
        return [_text(event) for event in messages]

    async def settings(self) -> str:
        await self._service.prepare_tables()
        async with self._service.db_engine.connect() as connection:
            answers = [await connection.scalar(text(f"PRAGMA {name}")) for name in PRAGMAS]
        return told(*answers)

    async def close(self) -> None:
        await self._service.close()


def _text(event: Any) -> str:
    part = event.content.parts[0]
    return part.text or part.function_response.response["text"]


PEER = Service
