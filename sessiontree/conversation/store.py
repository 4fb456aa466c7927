"""Store: the handle on a whole store, and how to open one."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sessiontree.conversation import arguments
from sessiontree.conversation.anchor import Anchor, now, unsaved, wrap
from sessiontree.conversation.handle import Conversation, as_system
from sessiontree.core.message import MessageRow, NewMessage
from sessiontree.core.records import ConversationInfo, Problem, Repair
from sessiontree.errors import (
    BadArgument,
    ConversationNotFound,
    OwnerMismatch,
    StoreUnavailable,
    shown,
)
from sessiontree.store import conversations, reads
from sessiontree.store.driver import Durability, Opening
from sessiontree.store.sqlite import SQLiteBackend

PAGE = 200


class Store:
    """A store of conversations; made by ``open_store``."""

    def __init__(
        self, backend: SQLiteBackend, scope: str | None = None, live: set[int] | None = None
    ) -> None:
        self._backend = backend
        self._scope = scope
        self._live: set[int] = set() if live is None else live

    @property
    def scope(self) -> str | None:
        """The one owner whose conversations this store reaches; None: everybody's."""
        return self._scope

    def for_owner(self, owner: str) -> Store:
        """A view that reaches one owner's conversations only."""
        self._require(arguments.text(owner, "owner"))
        return Store(self._backend, owner, self._live)

    async def conversation(
        self,
        topic: str | None = None,
        *,
        owner: str | None = None,
        system: str | Mapping[str, Any] | None = None,
        title: str | None = None,
        format: str | None = None,
        meta: Mapping[str, Any] | None = None,
        create: bool = True,
    ) -> Conversation:
        """The owner's conversation of this topic; made when there is none.

        Without a topic it is always a new one. ``system`` is the system prompt; opening an
        existing conversation with another one adds it to the path. ``format`` is taken for
        messages whose content does not tell theirs. ``title``, ``format`` and ``meta`` are
        kept when it is made.

        ConversationNotFound: there is none and ``create`` is False.
        """
        whose = self._whose(owner)
        arguments.text_or_none(topic, "topic")
        arguments.text_or_none(title, "title")
        arguments.json_object(meta, "meta")
        arguments.format_name(format)
        if not create:
            return await self._existing(whose, topic, system)
        wish = ConversationInfo(
            0, whose, topic, title, format, None, None, None, dict(meta or {}), 0, 0
        )
        prompt = None if system is None else as_system(system, format)
        info = None if topic is None else await self._find(whose, topic)
        if info is None:
            info, made = await self._backend.write(conversations.get_or_create, wish, prompt, now())
            if made:
                return self._handle(info)
        return await self._with_system(self._handle(info), prompt)

    async def open(self, conversation_id: int) -> Conversation:
        """The conversation of this id. ConversationNotFound."""
        known = arguments.conversation_id(conversation_id)
        info = await self._backend.read(reads.conversation, known)
        if self._scope is not None and info.owner != self._scope:
            raise ConversationNotFound(conversation_id)
        return self._handle(info)

    async def conversations(
        self, owner: str | None = None, *, limit: int | None = None
    ) -> AsyncIterator[ConversationInfo]:
        """Conversations, the one whose head moved last first; all owners' without one."""
        whose = self._scope if owner is None else self._whose(owner)
        after = (reads.ALL, 0)
        most = arguments.count(limit, "limit")
        left = reads.ALL if most is None else most
        while left > 0:
            size = min(PAGE, left)
            page = await self._backend.read(reads.conversations, whose, after, size)
            for info in page:
                yield info
            if len(page) < size:
                return
            after = (page[-1].updated_at, page[-1].id)
            left -= len(page)

    async def delete(self, conversation_id: int) -> None:
        """Take a conversation away for good, with all it holds. ConversationNotFound."""
        known = arguments.conversation_id(conversation_id)
        await self._backend.write(conversations.delete, known, self._scope)

    async def check(self) -> list[Problem]:
        """Everything that is wrong with the store; an empty list when it is sound.

        Reads all of it: the file's own structure, the tree, heads and labels, and which
        result answers which call on every path. A scoped store tells of the file and of its
        owner's conversations.
        """
        from sessiontree.conversation.checking import check_pairing  # rarely needed
        from sessiontree.store import checks, salvage

        found = await self._backend.read(checks.structure)
        if any(problem.kind == "damaged_file" for problem in found):
            found += await self._backend.read(salvage.survey)
        else:
            found += await check_pairing(self._backend)
        if self._scope is None:
            return found
        mine = {info.id async for info in self.conversations()} | {None}
        return [problem for problem in found if problem.conversation_id in mine]

    async def repair(self) -> Repair:
        """Mend what ``check`` finds, as far as that loses no message.

        A backup is written beside the file first. What is gone and still spoken of gets a
        mark in its place, so that nothing that is there becomes unreachable. Out of a file
        whose pages are damaged all that can be read is taken. Not for a store that is scoped
        to an owner. StoreReadOnly, StoreFull, StoreBusy: nothing was changed.
        """
        if self._scope is not None:
            raise BadArgument(
                f"a store that is scoped to {self._scope!r} cannot be repaired",
                hint="use the store it was scoped from",
            )
        from sessiontree.conversation.repairing import mend  # rarely needed

        problems = await self.check()
        if not problems:
            return Repair([], [], None)
        mended, backup = await mend(self._backend, problems)
        if not self._backend.how.damaged:
            return Repair(mended, await self.check(), backup)
        await self._backend.close()  # it may be another file now
        async with open_store(self._backend.name) as afresh:
            return Repair(mended, await afresh.check(), backup)

    async def _existing(
        self, owner: str, topic: str | None, system: str | Mapping[str, Any] | None
    ) -> Conversation:
        info = None if topic is None else await self._find(owner, topic)
        if info is None:
            raise ConversationNotFound(f"{owner}/{topic}", hint="create=True would make it")
        prompt = None if system is None else as_system(system, info.format)
        return await self._with_system(self._handle(info), prompt)

    async def _find(self, owner: str, topic: str) -> ConversationInfo | None:
        return await self._backend.read(reads.conversation_by_topic, owner, topic)

    async def _with_system(self, chat: Conversation, prompt: NewMessage | None) -> Conversation:
        """Add the system prompt where the path has another one, or none."""
        if prompt is None:
            return chat
        text = unsaved(prompt, chat.id, None).text

        def same(row: MessageRow) -> bool:
            return row.content == prompt.content or wrap(row).text == text

        current = await self._backend.read(reads.system_message, chat.id, chat.head)
        if current is None or not same(current):
            await self._backend.write(conversations.ensure_system, chat.id, prompt, same, now())
            await chat.refresh()
        return chat

    def _handle(self, info: ConversationInfo) -> Conversation:
        return Conversation(Anchor(self._backend, info, self._scope, info.head, self._live))

    def _whose(self, owner: str | None) -> str:
        if owner is not None:
            self._require(arguments.text(owner, "owner"))
            return owner
        return self._scope or ""

    def _require(self, owner: str) -> None:
        if self._scope is not None and owner != self._scope:
            raise OwnerMismatch(self._scope, owner)


@asynccontextmanager
async def open_store(
    target: str | Path,
    *,
    durability: Durability = "full",
    read_only: bool = False,
    busy_timeout: float = 30.0,
    damaged: bool = False,
) -> AsyncGenerator[Store]:
    """Open a store, and make it when the file is not there yet.

    ``target``: a path, ``:memory:`` or ``sqlite:///path``. ``durability``: "full" survives
    power loss; "normal" survives a crash of the program, and may lose the newest turns when
    the power goes. ``busy_timeout``: seconds to wait for another process that writes.
    ``damaged``: open what is too damaged to be opened otherwise, to check and to repair it;
    open it again afterwards.

    BadArgument, NotAStore, StoreTooNew, StoreCorrupt, StoreUnavailable, StoreReadOnly, StoreBusy.
    """
    backend = SQLiteBackend(_opening(target, durability, read_only, busy_timeout, damaged))
    await backend.open()
    try:
        yield Store(backend)
    finally:
        await backend.close()


def _opening(
    target: str | Path, durability: Durability, read_only: bool, busy_timeout: float, damaged: bool
) -> Opening:
    if durability not in ("full", "normal"):
        raise BadArgument(f"durability is {shown(durability)}", hint="give 'full' or 'normal'")
    patience = arguments.seconds(busy_timeout, "busy_timeout")
    return Opening(_path(target), durability, read_only or damaged, patience, damaged=damaged)


def _path(target: str | Path) -> str:
    """The file that ``target`` names, wherever the process goes later; or ``:memory:``."""
    text = arguments.path(target)
    if text.startswith(("postgresql://", "postgres://")):
        raise StoreUnavailable(
            "this version of sessiontree keeps stores in SQLite files only",
            hint="give a path",
        )
    path = text.removeprefix("sqlite:///")
    return path if path == ":memory:" else os.path.abspath(path)
