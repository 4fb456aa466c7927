"""A turn: messages held back until every tool call has its result."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from sessiontree import formats
from sessiontree.conversation import arguments
from sessiontree.conversation.anchor import Anchor, now, unsaved, wrap
from sessiontree.conversation.draft import Draft
from sessiontree.core.message import META, Message, MessageRow, NewMessage, Part, ToolCall
from sessiontree.core.pairing import pair, refuse_orphans
from sessiontree.errors import CheckpointExists, OrphanToolResult, TreeError, UnsettledTurn
from sessiontree.store import reads
from sessiontree.store.appending import Append, Appended
from sessiontree.store.messages import save_draft

Label = tuple[str, str | None, bool]
"""A checkpoint for the end of the step: label, note, replace."""

INTERRUPTED = "Interrupted: the result of this call is unknown."


class Turn:
    """One user message and everything up to the answer; made by ``Conversation.turn()``.

    A message that leaves no call open is saved at once. A message that opens calls is
    *drafted*: kept in the store, outside the tree, until the last result has come; then
    the whole step is saved in one transaction.

    Tools that run side by side may add their results at the same time.
    """

    def __init__(self, anchor: Anchor, adopted: Draft | None = None) -> None:
        self._anchor = anchor
        self._adopted = adopted
        self._number = adopted.turn if adopted else secrets.randbits(62)
        self._leaf = adopted.parent_id if adopted else anchor.head
        self._step = list(adopted.messages) if adopted else []
        self._labels: list[Label] = []
        self._lock = asyncio.Lock()
        self._entered = False

    async def __aenter__(self) -> Turn:
        if not self._adopted:
            self._leaf = self._anchor.head
        self._entered = True
        self._anchor.live.add(self._number)
        self._anchor.reported.discard(self._number)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._entered = False
        self._anchor.live.discard(self._number)
        if self._step and error is None:
            raise UnsettledTurn(
                self.open_calls,
                hint="what was added is kept as a draft, see resume(); add the results, or "
                "call interrupt() before the turn ends",
            )

    @property
    def head(self) -> int | None:
        """The last message that this turn saved, else the one it follows."""
        return self._leaf

    @property
    def open_calls(self) -> list[ToolCall]:
        """The calls that wait for their results."""
        return [opened.call for opened in pair(self._step).open]

    @property
    def pending(self) -> list[Message]:
        """The messages added so far that are not history yet; their id is 0."""
        return [self._unsaved(message) for message in self._step]

    async def add(
        self,
        message: object,
        *,
        format: str | None = None,
        key: str | None = None,
        usage: Mapping[str, Any] | None = None,
        model: str | None = None,
    ) -> Message:
        """Add a message: a mapping or JSON text.

        Returns it as saved; while calls are open it is drafted, and its id is 0. A message of
        a ``key`` that was added before is not added again; the first is returned.

        FormatError, OrphanToolResult: nothing was added. HeadMoved: the step was saved as a
        branch beside another writer's; what this turn adds next follows its own step.
        """
        arguments.format_name(format)
        new = formats.read(
            message,
            format=format,
            default=self._anchor.info.format,
            key=arguments.key(key),
            usage=arguments.json_object(usage, "usage"),
            model=arguments.text_or_none(model, "model"),
        )
        async with self._lock:
            self._require_entered()
            pending = next((m for m in self._step if key is not None and m.key == key), None)
            if pending is not None:
                return self._unsaved(pending)
            try:
                return (await self._take([new]))[-1]
            except OrphanToolResult:  # or a result whose step is saved, given again
                known = None if key is None else await self._saved(key)
                if known is None:
                    raise
                self._pass(known)
                return wrap(known)

    async def _saved(self, key: str) -> MessageRow | None:
        return await self._anchor.backend.read(reads.message_by_key, self._anchor.id, key)

    def _pass(self, known: MessageRow) -> None:
        """What was saved before goes on from where it stands, between steps."""
        if not self._step and known.open_calls == 0:
            self._leaf = known.id

    async def interrupt(self, note: str | None = None) -> list[Message]:
        """Answer every open call with a result that says it was interrupted, and save.

        ``note`` is what the model reads instead of our words. Returns what was saved; an
        empty list when no call was open.
        """
        said = None if note is None else arguments.string(note, "a note")
        async with self._lock:
            self._require_entered()
            results = _interrupted(self._step, said)
            return await self._take(results) if results else []

    async def checkpoint(
        self, label: str, note: str | None = None, *, replace: bool = False
    ) -> None:
        """Label the boundary where this step ends, in the same transaction as the step.

        With no call open that is the last message saved, and it is labelled now.
        CheckpointExists; when another writer takes the label before the step is whole, ``add``
        raises it: nothing was added, and added again it is, without the label.
        """
        arguments.text(label, "a label", may_be_empty=False)
        arguments.text_or_none(note, "a note")
        async with self._lock:
            self._require_entered()
            if not self._step:
                await self._save([], [(label, note, replace)])
                return
            if not replace:
                await self._refuse_taken(label)
            self._labels.append((label, note, replace))

    async def _refuse_taken(self, label: str) -> None:
        if any(waiting == label for waiting, _, _ in self._labels):
            raise CheckpointExists(label, 0)
        for known in await self._anchor.backend.read(reads.checkpoints, self._anchor.id):
            if known.label == label:
                raise CheckpointExists(label, known.message_id)

    async def _take(self, new: list[NewMessage]) -> list[Message]:
        """Save the step if it is whole now, else draft what came."""
        step = [*self._step, *new]
        pairing = pair(step)
        refuse_orphans(pairing)
        for message, count in zip(step, pairing.open_counts, strict=True):
            message.open_calls = count
        if pairing.open:
            return [await self._draft(step)]
        try:
            return await self._save(step, self._labels)
        except CheckpointExists as error:
            self._labels = [label for label in self._labels if label[0] != error.label]
            raise

    async def _draft(self, step: list[NewMessage]) -> Message:
        def then(known: MessageRow | None) -> None:
            if known is None:
                self._step = step

        known = await self._anchor.backend.write_then(
            then, save_draft, self._anchor.id, self._number, self._leaf, step, now()
        )
        return wrap(known) if known else self._unsaved(step[-1])

    async def _save(self, step: list[NewMessage], labels: Sequence[Label]) -> list[Message]:
        wish = Append(
            step,
            now(),
            at_head=True,
            expected=self._leaf,
            labels=tuple(labels),
            drafts=[self._number],
        )

        def seen(done: Appended) -> None:
            self._step = []
            self._labels = []
            if done.last is not None:
                self._pass(done.last)

        return await self._anchor.save(wish, seen)

    def _unsaved(self, message: NewMessage) -> Message:
        return unsaved(message, self._anchor.id, self._leaf)

    def _require_entered(self) -> None:
        if not self._entered:
            raise TreeError("this turn is over", hint="use it inside `async with chat.turn()`")


def _interrupted(step: Sequence[NewMessage], note: str | None) -> list[NewMessage]:
    """Results for the calls that ``step`` leaves open, each in the format of its call."""
    by_format: dict[str, list[Part]] = {}
    for opened in pair(step).open:
        part = {
            "type": "tool_call_response",
            "id": opened.call.id if opened.call.given else None,
            "name": opened.call.name,
            "response": note or INTERRUPTED,
            "is_error": True,
        }
        by_format.setdefault(step[opened.at].format, []).append(part)
    meta = {META: {"kind": "interrupted"}}
    return [
        formats.read(native, format=name, meta=meta)
        for name, parts in by_format.items()
        for native in formats.codec(name).encode("tool", parts)
    ]
