"""agno, ``SqliteDb``: a turn is a *run*, one row with its messages as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from agno.agent import Agent
from agno.db.base import SessionType
from agno.db.sqlite import SqliteDb
from agno.models.message import Message
from agno.run.agent import RunOutput
from agno.run.base import RunStatus
from agno.session.agent import AgentSession
from sqlalchemy import text

from .peer import PRAGMAS, Peer, Turn, told

AGENT = "agent"


class Place:
    def __init__(self, session: AgentSession) -> None:
        self.session = session
        self.runs = 0


class Sqlite(Peer):
    title = "agno SqliteDb"
    package = "agno"
    how = {  # noqa: RUF012
        "append": "upsert_session() and upsert_run(), a transaction each, as its Agent does",
        "load": "get_session() of a new SqliteDb: it keeps the runs it has read",
        "newest": "get_session() with runs_limit",
        "fork": "Agent.fork_session(): a transaction for each run",
    }
    cannot = {  # noqa: RUF012
        "branch": "a run can be continued from an earlier message by its Agent only, with a model",
    }

    async def open(self) -> None:
        self._db = SqliteDb(db_file=str(self.file))

    async def fresh(self) -> None:
        self._db.close()
        self._db = SqliteDb(db_file=str(self.file))
        self._db.get_session("nobody's", SessionType.AGENT)  # it looks at its tables once

    async def begin(self, name: str) -> Place:
        session = AgentSession(session_id=name, agent_id=AGENT, session_data={})
        self._db.upsert_session(session)
        return Place(session)

    def prepared(self, turn: Turn) -> RunOutput:
        return RunOutput(
            run_id=str(uuid4()),
            agent_id=AGENT,
            status=RunStatus.completed,
            content=turn[-1]["content"],
            messages=[
                Message(
                    role=message["role"],
                    content=message["content"],
                    tool_calls=message.get("tool_calls"),
                    tool_call_id=message.get("tool_call_id"),
                )
                for message in turn
            ],
        )

    async def append(self, conversation: Place, turn: RunOutput) -> None:
        self._db.upsert_session(conversation.session)
        turn.session_id = conversation.session.session_id
        self._db.upsert_run(turn, conversation.session.session_id, run_index=conversation.runs)
        conversation.runs += 1

    async def load(self, conversation: Place) -> Sequence[Any]:
        return self._messages(conversation, None)

    async def newest(self, conversation: Place, count: int) -> Sequence[Any]:
        return self._messages(conversation, count // 4)

    def _messages(self, conversation: Place, runs: int | None) -> list[Any]:
        found = self._db.get_session(
            conversation.session.session_id, SessionType.AGENT, runs_limit=runs
        )
        assert isinstance(found, AgentSession)
        return [message for run in found.runs or () for message in run.messages or ()]

    async def fork(self, conversation: Place) -> Place:
        agent = Agent(id=AGENT, db=self._db, telemetry=False)
        name = agent.fork_session(source_session_id=conversation.session.session_id)
        copy = Place(AgentSession(session_id=name, agent_id=AGENT, session_data={}))
        copy.runs = conversation.runs
        return copy

    def said(self, messages: Sequence[Any]) -> list[str]:
        return [message.content for message in messages]

    async def settings(self) -> str:
        with self._db.Session() as session:
            return told(*(session.scalar(text(f"PRAGMA {name}")) for name in PRAGMAS))

    async def close(self) -> None:
        self._db.close()


PEER = Sqlite
