"""Strands Agents, ``FileSessionManager``: a JSON file for each message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from strands.session.file_session_manager import FileSessionManager
from strands.types.session import SessionAgent, SessionMessage

from .peer import Peer, Turn

AGENT = "agent"
NO_TREE = "a session is one list; there is no call for it"


class Place:
    """A session, and how many messages it holds: the caller numbers them."""

    def __init__(self, manager: FileSessionManager) -> None:
        self.manager = manager
        self.length = 0


class Files(Peer):
    title = "Strands FileSessionManager"
    package = "strands-agents"
    how = {  # noqa: RUF012
        "load": "list_messages()",
        "append": "four create_message(), a file each, renamed into place and not synced",
        "newest": "list_messages() from an offset that the caller knows",
    }
    cannot = {"branch": NO_TREE, "fork": NO_TREE}  # noqa: RUF012

    async def open(self) -> None:
        """Each session opens its own folder."""

    async def begin(self, name: str) -> Place:
        manager = FileSessionManager(name, storage_dir=str(self.folder))
        manager.create_agent(name, SessionAgent(AGENT, {}, {}))
        return Place(manager)

    def prepared(self, turn: Turn) -> list[Any]:
        return [_message(message) for message in turn]

    async def append(self, conversation: Place, turn: list[Any]) -> None:
        for message in turn:
            record = SessionMessage.from_message(message, conversation.length)
            conversation.manager.create_message(conversation.manager.session_id, AGENT, record)
            conversation.length += 1

    async def load(self, conversation: Place) -> Sequence[Any]:
        return self._listed(conversation, 0)

    async def newest(self, conversation: Place, count: int) -> Sequence[Any]:
        return self._listed(conversation, conversation.length - count)

    def _listed(self, conversation: Place, offset: int) -> list[Any]:
        manager = conversation.manager
        found = manager.list_messages(manager.session_id, AGENT, offset=offset)
        return [record.to_message() for record in found]

    def said(self, messages: Sequence[Any]) -> list[str]:
        return [_text(message["content"][0]) for message in messages]

    async def settings(self) -> str:
        return "files, no fsync"


def _message(message: Any) -> Any:
    blocks: list[Any] = [{"text": message["content"]}]
    for call in message.get("tool_calls", ()):
        made = {"toolUseId": call["id"], "name": call["function"]["name"], "input": {}}
        blocks.append({"toolUse": made})
    if message["role"] == "tool":
        result = {"toolUseId": message["tool_call_id"], "status": "success", "content": blocks}
        return {"role": "user", "content": [{"toolResult": result}]}
    return {"role": message["role"], "content": blocks}


def _text(block: Any) -> str:
    return block["text"] if "text" in block else block["toolResult"]["content"][0]["text"]


PEER = Files
