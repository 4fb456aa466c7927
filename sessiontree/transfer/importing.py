"""A file into conversations.

The file is read twice: first for its skeleton, then row by row for what it says (see
``formats.transcript``). Messages are saved in batches, each in one transaction. Every row
has a key, so an import that was cut off is finished by importing again, and importing a
file again adds only what is new.

Where the head goes: to where the source's is, when the conversation is new, or when its
head is still where the last import has put it. When somebody has moved it since, or has
added messages in the store, the head is theirs and stays; what is new is a branch beside.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from sessiontree.conversation import landing
from sessiontree.conversation.handle import Conversation
from sessiontree.conversation.store import Store
from sessiontree.core.records import Cause, Checkpoint, Graft, Move
from sessiontree.errors import FormatError
from sessiontree.formats import jsonl, transcripts
from sessiontree.formats.document import DocumentReader
from sessiontree.formats.planting import Closing, Rest, plan
from sessiontree.formats.skeleton import ROOT, Skeleton, lines_in
from sessiontree.formats.transcript import Note, Notes, Reader, Source, storable
from sessiontree.transfer import account, foreign
from sessiontree.transfer.account import Import
from sessiontree.transfer.collecting import seldom_collecting
from sessiontree.transfer.messages import Maker
from sessiontree.transfer.stored import Stored, look
from sessiontree.transfer.threads import in_thread

BATCH = 8_000
"""Messages in one transaction, at most. Keys come in no order: a transaction writes most pages of
their index, however few of them are new."""
BATCH_BYTES = 8 << 20
"""Bytes of the file in one transaction, about at most."""

Progress = Callable[[int, int], None]
"""Called with (bytes done, bytes in all); the two readings of the file count half each."""


async def import_file(
    store: Store,
    path: str | Path,
    *,
    format: str | None = None,
    owner: str | None = None,
    progress: Progress | None = None,
) -> Import:
    """Bring the conversations of a file into the store.

    ``format`` is told from the content where it is not given. ``owner`` is whose they
    become; by default the owner that the file names, if it names one. FormatError: the
    file cannot be read, is of no known format, or there is nothing in it to import.
    """
    file = await in_thread(foreign.opened, path)
    try:
        return await import_source(store, Source(file, str(path)), format, owner, progress)
    finally:
        file.close()  # at once: a cancelled caller may not wait for a thread any more


async def import_source(
    store: Store,
    source: Source,
    format: str | None = None,
    owner: str | None = None,
    progress: Progress | None = None,
) -> Import:
    """The same for a file that is open."""
    reader = transcripts.reader(format or transcripts.detect(source.head(), source.name))
    with seldom_collecting():
        if isinstance(reader, DocumentReader):
            return await _import_documents(store, source, reader, owner, progress)
        return await _import_one(store, source, reader, owner, progress)


async def _import_one(
    store: Store, source: Source, reader: Reader, owner: str | None, progress: Progress | None
) -> Import:
    skeleton = await _read(source, reader, progress)
    chats = [await _conversation(store, skeleton, i, owner) for i in range(len(skeleton.topics))]
    stored = await look(skeleton, chats)
    return await _Landing(skeleton, chats, stored, progress).land()


async def _import_documents(
    store: Store,
    source: Source,
    reader: DocumentReader,
    owner: str | None,
    progress: Progress | None,
) -> Import:
    """Conversation by conversation; one that cannot be read does not keep the others out."""
    skipped = Notes()
    done: list[tuple[str, Import]] = []
    documents = reader.documents(source, skipped)
    while (document := await in_thread(next, documents, None)) is not None:
        try:
            found = await _import_one(store, document, reader, owner, None)
        except FormatError as error:
            skipped.add(document.number, error.what)
        else:
            done.append((document.label, found))
        if progress is not None:
            progress(document.end, source.size)
    if not done:
        raise _nothing_in(source, reader.name, skipped)
    return account.of_parts(source.name, reader.name, done, skipped)


def _nothing_in(source: Source, format: str, skipped: Notes) -> FormatError:
    why = "; ".join(map(str, skipped[:3])) or "it is empty"
    return FormatError(
        f"there is no conversation of format {format} in it: {why}",
        file=source.name,
        hint="name another format, if it is of another",
    )


async def _read(source: Source, reader: Reader, progress: Progress | None) -> Skeleton:
    skeleton = Skeleton(source, reader)
    reading = skeleton.read()
    while (done := await in_thread(next, reading, None)) is not None:
        if progress is not None:
            progress(done // 2, source.size)
    return skeleton


async def _conversation(
    store: Store, skeleton: Skeleton, topic: int, owner: str | None
) -> Conversation:
    """The conversation that a topic of the file goes into."""
    opens = _opens(skeleton)
    whose = owner if owner is not None else store.scope or opens.get("owner")
    title = _title(skeleton, topic)
    if opens.get("topic") is None and "source" in opens:
        found = await _by_source(store, whose, opens["source"])
        if found is not None:
            return found
    chat = await store.conversation(
        opens.get("topic") if opens else skeleton.topics[topic],
        owner=whose,
        title=title,
        format=opens.get("format") or skeleton.reader.goes_on,
        meta=opens.get("meta"),
    )
    if title is not None and chat.title is None:
        await chat.rename(title)
    return chat


def _opens(skeleton: Skeleton) -> Mapping[str, Any]:
    """What the file says that its conversation is opened with."""
    for entry in skeleton.entries:
        if entry.tells is not None and entry.tells.opens is not None:
            return entry.tells.opens
    return {}


def _title(skeleton: Skeleton, topic: int) -> str | None:
    """The last title in the file; one that speaks of a row of another file is not ours."""
    title: str | None = None
    for i, entry in enumerate(skeleton.entries):
        tells = entry.tells
        if tells is None or not tells.title or skeleton.topic[i] != topic:
            continue
        if not isinstance(tells.ref, str) or tells.ref in skeleton.ids:
            title = storable(tells.title)
    return title


async def _by_source(store: Store, owner: str | None, source: str) -> Conversation | None:
    """The conversation that came from the same one; it may be that one itself."""
    async for info in store.conversations(owner):
        if jsonl.identity(info) == source:
            return await store.open(info.id)
    return None


class _Landing:
    """Saving the plan of a file, and moving the heads."""

    def __init__(
        self,
        skeleton: Skeleton,
        chats: Sequence[Conversation],
        stored: Stored,
        progress: Progress | None,
    ) -> None:
        self.skeleton = skeleton
        self.chats = chats
        self.stored = stored
        self.progress = progress
        self.kept = 0
        self.closed = 0

    async def land(self) -> Import:
        stored = self.stored
        self.plan = await in_thread(plan, self.skeleton, stored.known, stored.foreign)
        self.maker = Maker(self.skeleton, self.plan, stored)
        self.ids = array("q", bytes(8 * (self.plan.first_of_ours + len(self.plan.ours))))
        for at, message_id in stored.ids.items():
            self.ids[at] = message_id
        for topic, order in enumerate(self._orders()):
            await self._save(self.chats[topic], order)
        for topic, chat in enumerate(self.chats):
            await self._restore(topic, chat)
        self._tell(self.skeleton.source.size)
        return self._account()

    def _orders(self) -> list[array[int]]:
        """For each conversation the indexes to save, in order."""
        orders: list[array[int]] = [array("q") for _ in self.chats]
        ids, topic, rows = self.ids, self.skeleton.topic, len(self.skeleton.entries)
        for at in self.plan.order:
            if not ids[at]:
                orders[topic[at] if at < rows else self._topic(at)].append(at)
        return orders

    def _topic(self, at: int) -> int:
        ours = self.plan.ours_at(at)
        if ours is None:
            return self.skeleton.topic[at]
        at = ours.of if isinstance(ours, Rest) else ours.caller
        while at >= len(self.skeleton.entries):  # the caller is stored, and not the file's
            at = self.plan.parent[at]
        return self.skeleton.topic[at]

    async def _save(self, chat: Conversation, order: Sequence[int]) -> None:
        start = 0
        while start < len(order):
            batch = await in_thread(self._batch, order, start)
            end = start + len(batch)
            await self._save_batch(chat, order[start:end], batch)
            start = end

    async def _save_batch(
        self, chat: Conversation, saved: Sequence[int], batch: Sequence[Graft]
    ) -> None:
        there = await self._saved_meanwhile(chat, batch)
        for at, message_id in zip(saved, await chat.graft(batch), strict=True):
            self.ids[at] = message_id
        self._count(saved, there)
        if saved[-1] < len(self.skeleton.entries):
            self._tell(self.skeleton.entries[saved[-1]].offset)

    async def _saved_meanwhile(self, chat: Conversation, batch: Sequence[Graft]) -> set[int]:
        """The ids of what was saved by an import before this one."""
        if not self.stored.known:
            return set()
        names = [item.message.key for item in batch if item.message.key is not None]
        return set((await chat.find_keys(names)).values())

    def _count(self, saved: Sequence[int], there: set[int]) -> None:
        ours = [at for at in saved if at >= self.plan.first_of_ours]
        self.kept += len(saved) - len(ours)
        for at in ours:
            is_closing = isinstance(self.plan.ours_at(at), Closing)
            self.closed += is_closing and self.ids[at] not in there

    def _tell(self, offset: int) -> None:
        if self.progress is not None:
            size = self.skeleton.source.size
            self.progress((size + offset) // 2, size)

    def _batch(self, order: Sequence[int], start: int) -> list[Graft]:
        """The batch that begins at ``start``. Until its messages have ids, ``ids`` tells where they
        are in it, as ``Graft`` writes it."""
        batch: list[Graft] = []
        ids, parent = self.ids, self.plan.parent
        size = 0
        for at in order[start : start + BATCH]:
            message, above = self.maker.message(at), parent[at]
            batch.append(Graft(message, None if above == ROOT else ids[above], self._ref(at)))
            ids[at] = -len(batch)  # from here on: nothing follows or speaks of itself
            size += len(message.content)
            if size > BATCH_BYTES:
                break
        return batch

    def _ref(self, at: int) -> int | None:
        """What a row speaks of, when that is saved by now."""
        if at >= len(self.skeleton.entries):
            return None
        tells = self.skeleton.entries[at].tells
        if tells is None or tells.ref is None:
            return None
        target = self.skeleton.index(tells.ref)
        if target is None or self._topic(target) != self._topic(at):
            return None
        return self.ids[target] or None

    # --- head and labels --------------------------------------------------------------------

    async def _restore(self, topic: int, chat: Conversation) -> None:
        moves = [] if chat.head is not None else self._moves()
        if moves and not await chat.history():
            head = self._id(self.plan.heads[topic])
            await landing.restore(chat, head, moves, self._checkpoints(topic))
            return
        await self._set_labels(topic, chat)
        await self._move_head(topic, chat)

    async def _set_labels(self, topic: int, chat: Conversation) -> None:
        there = {checkpoint.label: checkpoint for checkpoint in await chat.checkpoints()}
        for checkpoint in self._checkpoints(topic):
            if checkpoint.label not in there:
                at, note = checkpoint.message_id, checkpoint.note
                await chat.checkpoint(checkpoint.label, at=at, note=note)

    async def _move_head(self, topic: int, chat: Conversation) -> None:
        to = self._id(self.plan.heads[topic])
        await chat.refresh()
        if to == chat.head:
            return
        moves = await chat.history()
        current = next((move for move in moves if move.is_current), None)
        is_ours = current is not None and current.cause == "import"
        tells_head = topic not in self.plan.sidechains or chat.head is None
        if tells_head and (is_ours or not moves):
            await landing.move_head(chat, to)

    def _id(self, at: int) -> int | None:
        return None if at == ROOT else self.ids[at]

    def _checkpoints(self, topic: int) -> list[Checkpoint]:
        return [
            Checkpoint(label.label, self.ids[label.at], label.note, label.created_at or 0)
            for label in self.plan.labels
            if label.topic == topic
        ]

    def _moves(self) -> list[Move]:
        """The moves that the file tells of, between messages that are saved."""
        moves: list[Move] = []
        for entry in self.skeleton.entries:
            if entry.tells is None or entry.tells.move is None:
                continue
            *names, cause, is_current = entry.tells.move
            places = [0 if name == "" else self._saved(name) for name in names]
            if None not in places:
                start, end = (place or None for place in places)
                time = entry.created_at or 0
                moves.append(Move(0, start, end, cast(Cause, cause), time, is_current))
        return moves

    def _saved(self, name: str) -> int | None:
        at = self.skeleton.index(name)
        return None if at is None else self.ids[at] or None

    # --- the account ------------------------------------------------------------------------

    def _account(self) -> Import:
        skeleton, known = self.skeleton, self.stored.known
        rows = len(skeleton.entries)
        already = sum(1 for at in known if at < rows)
        about = sum(1 for e in skeleton.entries if e.tells is not None and e.tells.about)
        lines = {skeleton.entries[at].line for at in known if at < rows}
        repairs = [note for note in skeleton.repaired if not _is_about(note, lines)]
        roots, branch_points = self._shape()
        return Import(
            file=skeleton.source.name,
            format=skeleton.reader.name,
            entries=skeleton.rows,
            kept=self.kept,
            already=already,
            about=about,
            skipped=lines_in(skeleton.skipped),
            repaired=len(skeleton.mended - known.keys()),
            closed=self.closed,
            roots=roots,
            branch_points=branch_points,
            repairs=tuple(sorted(repairs)),
            skips=tuple(sorted(skeleton.skipped)),
            conversations=tuple(self.chats),
        )

    def _shape(self) -> tuple[int, int]:
        """How many roots and branch points the file's tree has."""
        followers = Counter(self.plan.parent[at] for at in self.plan.order)
        roots = followers.pop(ROOT, 0)
        return roots, sum(1 for count in followers.values() if count > 1)


def _is_about(note: Note, lines: set[int]) -> bool:
    return all(line in lines for line in range(note.line, note.last + 1))
