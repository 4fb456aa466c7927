"""LangGraph, ``AsyncSqliteSaver``, under a graph of ``MessagesState``: each turn is a
checkpoint, and a checkpoint holds every message so far."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph

from .peer import PRAGMAS, Peer, Turn, batches, told


def _message(message: Any) -> AnyMessage:
    text = message["content"]
    if message["role"] == "user":
        return HumanMessage(text)
    if message["role"] == "tool":
        return ToolMessage(text, tool_call_id=message["tool_call_id"])
    calls = [
        {"id": call["id"], "name": call["function"]["name"], "args": {}, "type": "tool_call"}
        for call in message.get("tool_calls", ())
    ]
    return AIMessage(text, tool_calls=calls)


class Saver(Peer):
    title = "LangGraph AsyncSqliteSaver"
    package = "langgraph-checkpoint-sqlite"
    how = {  # noqa: RUF012
        "load": "graph.aget_state()",
        "append": "graph.aupdate_state(): one checkpoint with the whole history",
        "newest": "aget_state(), the whole history, and a slice of it",
        "branch": "aupdate_state() at an earlier checkpoint",
        "fork": "aget_state() and aupdate_state() under a new thread_id: this saver has no "
        "copy_thread()",
    }

    async def open(self) -> None:
        self._stack = AsyncExitStack()
        self._saver = await self._stack.enter_async_context(
            AsyncSqliteSaver.from_conn_string(str(self.file))
        )
        builder = StateGraph(MessagesState)
        builder.add_node("agent", lambda state: {"messages": []})
        builder.add_edge(START, "agent")
        builder.add_edge("agent", END)
        self._graph = builder.compile(checkpointer=self._saver)
        self._marks: dict[int, Any] = {}
        """How many turns were filled in → the checkpoint then."""
        self._heads: dict[str, Any] = {}
        """Thread → its newest checkpoint, but for branches."""
        self._forks = 0

    async def begin(self, name: str) -> Any:
        return {"configurable": {"thread_id": name}}

    def prepared(self, turn: Turn) -> list[AnyMessage]:
        return [_message(message) for message in turn]

    async def append(self, conversation: Any, turn: list[AnyMessage]) -> None:
        self._heads[_thread(conversation)] = await self._save(conversation, turn)

    async def _save(self, conversation: Any, said: Sequence[AnyMessage]) -> Any:
        return await self._graph.aupdate_state(conversation, {"messages": said}, as_node="agent")

    async def fill(self, conversation: Any, turns: Iterable[Turn]) -> None:
        for so_far, some in batches(turns):
            await self.append(conversation, [_message(each) for turn in some for each in turn])
            self._marks[so_far] = self._heads[_thread(conversation)]

    async def load(self, conversation: Any) -> Sequence[AnyMessage]:
        return (await self._graph.aget_state(conversation)).values["messages"]

    async def branch(self, conversation: Any, turns: int) -> None:
        await self._save(self._marks[turns], [])

    async def back(self, conversation: Any) -> None:
        """The newest checkpoint counts: the head's is saved again."""
        name = _thread(conversation)
        self._heads[name] = await self._save(self._heads[name], [])

    async def fork(self, conversation: Any) -> Any:
        said = await self.load(conversation)
        self._forks += 1
        copy = await self.begin(f"fork {self._forks}")
        await self.append(copy, list(said))
        return copy

    def said(self, messages: Sequence[AnyMessage]) -> list[str]:
        return [str(message.content) for message in messages]

    async def settings(self) -> str:
        await self._saver.setup()
        answers = [await self._saver.conn.execute_fetchall(f"PRAGMA {name}") for name in PRAGMAS]
        return told(*(next(iter(rows))[0] for rows in answers))

    async def close(self) -> None:
        await self._stack.aclose()


def _thread(conversation: Any) -> str:
    return conversation["configurable"]["thread_id"]


PEER = Saver
