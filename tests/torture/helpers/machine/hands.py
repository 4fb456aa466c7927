"""The store under test: does the operations of ``machine.world`` through the public names, and
looks at what is there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from machine.words import name_of, raw_of, text_of
from machine.world import Operation

from sessiontree import Conversation, Message, SessionTreeError, Store, Turn


class Hands:
    """Handles on the conversations of a store, and the turns that go on."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.chats: dict[str, Conversation] = {}
        self.turns: dict[str, Turn] = {}
        self.ids: dict[str, dict[str, int]] = {}
        self.names: dict[int, str] = {}
        """Topic → name → message id, and back, as far as they are known."""

    async def perform(self, op: Operation) -> str | None:
        """Do it; the name of the head afterwards, or of the error."""
        topic = op["chat"]
        try:
            await getattr(self, f"_{op['do']}")(op)
        except SessionTreeError as error:
            return type(error).__name__
        if topic not in self.chats:
            return None
        at = op["to"] if op["do"] == "fork" else topic
        return await self._name(at, self.chats[at].head)

    async def chat(self, topic: str) -> Conversation:
        if topic not in self.chats:
            self.chats[topic] = await self.store.conversation(topic, create=False)
        return self.chats[topic]

    async def close(self) -> None:
        """Leave the turns, whatever they hold; as the end of the process would."""
        for turn in self.turns.values():
            await turn.__aexit__(RuntimeError, RuntimeError(), None)
        self.turns = {}

    # ---- names and ids -------------------------------------------------------------

    async def _name(self, topic: str, message_id: int | None) -> str | None:
        if message_id is None:
            return None
        if message_id not in self.names:
            self._know(topic, [await self.chats[topic].message(message_id)])
        return self.names[message_id]

    def _know(self, topic: str, messages: Iterable[Message]) -> None:
        for message in messages:
            if message.id:  # drafts have none
                self.names[message.id] = name = name_of(message)
                self.ids.setdefault(topic, {})[name] = message.id

    async def _id(self, topic: str, name: str | None) -> int | None:
        if name is None:
            return None
        if name not in self.ids.get(topic, {}):
            chat = await self.chat(topic)
            self._know(topic, [message async for message in chat.iter_messages()])
        return self.ids[topic][name]

    # ---- operations ----------------------------------------------------------------

    async def _create(self, op: Operation) -> None:
        system = None if op["system"] is None else text_of(op["system"])
        self.chats[op["chat"]] = await self.store.conversation(op["chat"], system=system)
        self.ids.pop(op["chat"], None)

    async def _system(self, op: Operation) -> None:
        self.chats[op["chat"]] = await self.store.conversation(
            op["chat"], system=text_of(op["name"]), create=False
        )

    async def _append(self, op: Operation) -> None:
        chat = await self.chat(op["chat"])
        place = {"parent": await self._id(op["chat"], op["under"])} if "under" in op else {}
        batch = [raw_of(name) for name in op["names"]]
        self._know(op["chat"], await chat.append(batch, keys=op["names"], **place))

    async def _edit(self, op: Operation) -> None:
        chat = await self.chat(op["chat"])
        original = await self._id(op["chat"], op["of"])
        assert original is not None
        self._know(op["chat"], [await chat.edit(original, raw_of(op["names"][0]))])

    async def _add(self, op: Operation) -> None:
        turn = self.turns.get(op["chat"])
        if turn is None:
            turn = await (await self.chat(op["chat"])).turn().__aenter__()
        self._know(op["chat"], [await turn.add(raw_of(op["name"]), key=op["name"])])
        self.turns[op["chat"]] = turn

    async def _interrupt(self, op: Operation) -> None:
        self._know(op["chat"], await self.turns[op["chat"]].interrupt())

    async def _label(self, op: Operation) -> None:
        await self.turns[op["chat"]].checkpoint(op["label"])

    async def _leave(self, op: Operation) -> None:
        await self.turns.pop(op["chat"]).__aexit__(None, None, None)

    async def _resume(self, op: Operation) -> None:
        await (await self.chat(op["chat"])).resume()

    async def _take_up(self, op: Operation) -> None:
        chat = await self.chat(op["chat"])
        turn = chat.turn(resume=await chat.resume())
        self.turns[op["chat"]] = await turn.__aenter__()

    async def _branch(self, op: Operation) -> None:
        await (await self.chat(op["chat"])).branch(await self._id(op["chat"], op["to"]))

    async def _rewind(self, op: Operation) -> None:
        digest = None if op["digest"] is None else text_of(op["digest"])
        await (await self.chat(op["chat"])).rewind(op["label"], digest=digest)

    async def _retry(self, op: Operation) -> None:
        await (await self.chat(op["chat"])).retry()

    async def _undo(self, op: Operation) -> None:
        await (await self.chat(op["chat"])).undo()

    async def _redo(self, op: Operation) -> None:
        await (await self.chat(op["chat"])).redo()

    async def _checkpoint(self, op: Operation) -> None:
        await (await self.chat(op["chat"])).checkpoint(op["label"], replace=op["replace"])

    async def _fork(self, op: Operation) -> None:
        chat = await self.chat(op["chat"])
        self.chats[op["to"]] = await chat.fork(await self._id(op["chat"], op["at"]), topic=op["to"])
        self.ids.pop(op["to"], None)

    async def _rename(self, op: Operation) -> None:
        await (await self.chat(op["chat"])).rename(op["title"])

    async def _delete(self, op: Operation) -> None:
        await self.store.delete((await self.chat(op["chat"])).id)
        del self.chats[op["chat"]]
        self.ids.pop(op["chat"], None)


async def look(store: Store, topics: Iterable[str] | None = None) -> dict[str, Any]:
    """What is there, in the shape of ``World.facts``; of all conversations without topics."""
    if topics is None:
        topics = [info.topic or "" async for info in store.conversations()]
    chats = [await store.conversation(topic, create=False) for topic in topics]
    return {chat.topic or "": await look_at(chat) for chat in chats}


async def look_at(chat: Conversation) -> dict[str, Any]:
    """One conversation; it is only looked at, its drafts are not let go."""
    names: dict[int | None, str | None] = {None: None}
    messages: list[list[Any]] = []
    async for message in chat.iter_messages():
        names[message.id] = name = name_of(message)
        parent = names[message.parent_id]
        messages.append([name, parent, message.role, message.depth, message.open_calls])
    resumed = await chat.resume()
    history = await chat.history()
    return {
        "title": chat.title,
        "messages": messages,
        "head": names[chat.head],
        "path": [names[message.id] for message in resumed.path],
        "moves": [[names[move.from_id], names[move.to_id], move.cause] for move in history],
        "move": next((move.id for move in history if move.is_current), None),
        "labels": {mark.label: names[mark.message_id] for mark in resumed.checkpoints},
        "drafts": [name_of(message) for message in resumed.draft],
        "interrupted": [call.id for call in resumed.interrupted],
    }
