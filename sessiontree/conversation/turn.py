"""A turn: messages held back until every tool call has its result."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

from sessiontree import formats
from sessiontree.conversation import arguments
from sessiontree.conversation.anchor import Anchor, Back, digest, now, unsaved, wrap
from sessiontree.conversation.answering import Answer, results
from sessiontree.conversation.draft import Draft
from sessiontree.core import model_tools
from sessiontree.core.message import Message, MessageRow, NewMessage, ToolCall
from sessiontree.core.model_tools import CHECKPOINT, REWIND, Known, Reply
from sessiontree.core.pairing import OpenCall, pair, refuse_orphans
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
        self._taken: set[str] = set()
        """Labels of this step that another writer took first."""
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

    async def answer(self, call: ToolCall, response: object, *, is_error: bool = False) -> Message:
        """Add the result of an open call, in the format of the call.

        ``call`` is one of ``open_calls``, or of the ``tool_calls`` of a message that was added;
        ``response`` a text, parts, or any value that JSON has. TreeError where the format knows
        no ids and an older call of that name waits: those are answered in order. Else as ``add``.
        """
        async with self._lock:
            self._require_entered()
            return await self._answer(Answer(self._opened(call), response, is_error))

    async def _reply(
        self, call: ToolCall, decide: Callable[[Known], Reply]
    ) -> tuple[Message, Reply]:
        """Answer a call by what is known at that moment, and note what its step ends with."""
        async with self._lock:
            self._require_entered()
            opened = self._opened(call)
            reply = decide(await self._known())
            answer = Answer(opened, reply.text, reply.is_error)
            return await self._answer(answer, note=reply.note), reply

    async def _answer(self, answer: Answer, note: Mapping[str, Any] | None = None) -> Message:
        return (await self._take(results(self._step, [answer], note)))[-1]

    def _opened(self, call: ToolCall) -> OpenCall:
        """Of several calls that look alike, the oldest that is open."""
        for opened in pair(self._step).open:
            if opened.call == call:
                return opened
        raise OrphanToolResult(call.id)

    async def _known(self) -> Known:
        found = await self._anchor.backend.read(reads.checkpoints, self._anchor.id)
        labels = [checkpoint.label for checkpoint in found]
        labels += [label for label, _, _ in self._labels_of(self._step) if label not in labels]
        back = model_tools.notes_of(self._step, REWIND)
        return Known(labels, back[0]["label"] if back else None)

    def _labels_of(self, step: Sequence[NewMessage]) -> list[Label]:
        """The checkpoints for the end of a step: those asked for by the caller and the model."""
        noted = [note["label"] for note in model_tools.notes_of(step, CHECKPOINT)]
        asked = [*self._labels, *((label, None, False) for label in noted)]
        return [label for label in asked if label[0] not in self._taken]

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
            opened = pair(self._step).open
            answers = [Answer(each, said or INTERRUPTED, is_error=True) for each in opened]
            made = results(self._step, answers, {"kind": "interrupted"})
            return await self._take(made) if made else []

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
        if any(waiting == label for waiting, _, _ in self._labels_of(self._step)):
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
            return await self._save(step, self._labels_of(step))
        except CheckpointExists as error:
            self._taken.add(error.label)
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

        def seen(done: Appended, back: MessageRow | None) -> None:
            self._step = []
            self._labels = []
            self._taken = set()
            if done.last is not None:
                self._pass(done.last)
            if back is not None:
                self._leaf = back.id

        return await self._anchor.save(wish, seen, self._back_of(step))

    def _back_of(self, step: Sequence[NewMessage]) -> Back | None:
        """Where the end of a step goes back to."""
        notes = model_tools.notes_of(step, REWIND)
        if not notes:
            return None
        return Back(notes[0]["label"], digest(notes[0]["digest"], self._anchor.info.format))

    def _unsaved(self, message: NewMessage) -> Message:
        return unsaved(message, self._anchor.id, self._leaf)

    def _require_entered(self) -> None:
        if not self._entered:
            raise TreeError("this turn is over", hint="use it inside `async with chat.turn()`")
