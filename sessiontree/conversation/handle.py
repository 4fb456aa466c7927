"""Conversation: the handle that people hold."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Coroutine, Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from sessiontree import formats
from sessiontree.conversation import arguments
from sessiontree.conversation.anchor import Anchor, now, read_batch, wrap, wrapped
from sessiontree.conversation.anchor import digest as as_digest
from sessiontree.conversation.draft import Draft, drafts_of
from sessiontree.conversation.resume import Resume, resume_of
from sessiontree.conversation.turn import Turn
from sessiontree.core.defaults import PROTECT, SAVE, THRESHOLD
from sessiontree.core.message import Message, MessageRow, NewMessage
from sessiontree.core.pairing import settle
from sessiontree.core.records import Cause, Checkpoint, ConversationInfo, Graft, Move
from sessiontree.core.tree import Tree
from sessiontree.errors import BadArgument, FormatError, HeadMoved, OwnerMismatch
from sessiontree.store import conversations, heads, messages, reads
from sessiontree.store.appending import Append

if TYPE_CHECKING:  # planning windows takes a third of the time of all imports: loaded when used
    from sessiontree.conversation.windows import Going, Reclaimed, ReclaimKind, Summarise
    from sessiontree.core.meter import Count
    from sessiontree.core.planner import Thinking
    from sessiontree.core.reclaim import Climb
    from sessiontree.core.window import Budget, Window

CHUNK = 500
"""Messages that iter_path reads at a time."""


class _Head(Enum):
    HEAD = "head"


HEAD: Final = _Head.HEAD
"""As a parent: wherever the head is."""


class Conversation:
    """One tree of messages and one head, as this handle last saw it.

    Handles are cheap and hold no lock. Another handle, task or process may write to the
    same conversation; what this one appends at a head that has moved is kept as a branch,
    and HeadMoved tells.
    """

    def __init__(self, anchor: Anchor) -> None:
        self._anchor = anchor

    # ---- facts -------------------------------------------------------------------

    @property
    def id(self) -> int:
        return self._anchor.info.id

    @property
    def owner(self) -> str:
        return self.info.owner

    @property
    def topic(self) -> str | None:
        return self.info.topic

    @property
    def title(self) -> str | None:
        return self.info.title

    @property
    def head(self) -> int | None:
        """The message that the next one follows, as this handle last saw it."""
        return self._anchor.head

    @property
    def forked_from(self) -> int | None:
        """The conversation that this one was forked from."""
        return self.info.forked_from

    @property
    def meta(self) -> dict[str, Any]:
        return self.info.meta

    @property
    def info(self) -> ConversationInfo:
        """All that was known of it when this handle was made or refreshed."""
        return self._anchor.info

    def __repr__(self) -> str:
        return f"<Conversation {self.id} {self.owner}/{self.topic} head={self.head}>"

    async def refresh(self) -> Conversation:
        """Look again: head, title and the rest, as they are now."""
        self._learn(await self._anchor.backend.read(reads.conversation, self.id))
        return self

    def _learn(self, info: ConversationInfo) -> None:
        self._anchor.info = info
        self._anchor.see(info.head)

    async def rename(self, title: str | None) -> None:
        """Set the title that people see."""
        arguments.text_or_none(title, "title")
        await self._anchor.backend.write(conversations.set_title, self.id, title)
        self._anchor.info = self.info._replace(title=title)

    # ---- adding ------------------------------------------------------------------

    def turn(self, *, resume: Resume | None = None) -> Turn:
        """A turn, for ``async with``. With a ``resume``, it goes on with the messages that
        were in flight: add their results, or ``interrupt()``."""
        return Turn(self._anchor, None if resume is None else self._newest_draft(resume))

    def _newest_draft(self, resume: Resume) -> Draft | None:
        if not isinstance(resume, Resume):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadArgument("resume is not what resume() returns")
        if resume.conversation_id != self.id:
            raise BadArgument(
                f"the resume is of conversation {resume.conversation_id}, this is {self.id}",
                hint="ask this one's own resume()",
            )
        return resume.drafts[-1] if resume.drafts else None

    async def append(
        self,
        messages: object,
        *,
        parent: int | _Head | None = HEAD,
        format: str | None = None,
        keys: Sequence[str | None] | None = None,
    ) -> list[Message]:
        """Save one message or several, in one transaction, and move the head to the last.

        Each is a mapping or JSON text. They must begin and end at a boundary. ``parent``
        names the message to follow (a branch and an append in one); None begins a new root.
        ``keys`` are the caller's ids: a key that was saved before is not saved again, and
        the first of it is returned in its place.

        FormatError, OrphanToolResult, UnsettledTurn, MessageNotFound, NotABoundary: nothing
        was saved. HeadMoved: saved, as a branch beside another writer's.
        """
        place = parent if isinstance(parent, _Head) else self._place(parent)
        names = None if keys is None else arguments.keys(keys)
        batch = read_batch(messages, format=format, default=self.info.format, keys=names)
        return await self._save(batch, place)

    def _save(
        self,
        batch: list[NewMessage],
        parent: int | _Head | None,
        cause: Cause = "append",
    ) -> Coroutine[Any, Any, list[Message]]:
        if parent is HEAD:
            wish = Append(batch, now(), True, expected=self.head, cause=cause)
        else:
            wish = Append(batch, now(), False, expected=self.head, parent=parent, cause=cause)
        return self._anchor.save(wish)

    async def edit(self, message_id: int, message: object) -> Message:
        """Save another version of a message beside it, and move the head there."""
        original = await self.message(message_id)
        batch = read_batch([message], format=None, default=self.info.format, keys=None)
        return (await self._save(batch, original.parent_id, "edit"))[0]

    async def graft(self, batch: Sequence[Graft]) -> list[int]:
        """Save messages at places of their own, for importers; the head stays.

        Returns their ids in order. A message whose key was saved before is not saved
        again. The caller has paired them: ``NewMessage.open_calls`` is taken as it is.
        """
        items = arguments.grafts(batch)
        return await self._anchor.backend.write(messages.graft, self.id, items, now())

    async def find_keys(self, keys: Iterable[str]) -> dict[str, int]:
        """The ids of the messages that bear these keys."""
        names = [key for key in arguments.keys(keys) if key is not None]
        return await self._anchor.backend.read(reads.find_keys, self.id, names)

    def _id(self, given: object) -> int:
        return arguments.message_id(given, self.id)

    def _place(self, given: object) -> int | None:
        return arguments.place(given, self.id)

    # ---- reading -----------------------------------------------------------------

    async def path(self, leaf: int | None = None, *, newest: int | None = None) -> list[Message]:
        """The messages from the root to ``leaf`` (default: the head), oldest first; only
        the ``newest`` of them where that is given."""
        at = self.head if leaf is None else self._id(leaf)
        limit = arguments.count(newest, "newest")
        rows = await self._anchor.backend.read(reads.path, self.id, at, limit)
        return wrapped(rows)

    async def iter_path(self, leaf: int | None = None) -> AsyncIterator[Message]:
        """As ``path``, in memory that does not grow with its length."""
        at = self.head if leaf is None else self._id(leaf)
        if at is None:
            return
        read = self._anchor.backend.read
        stations = await read(reads.path_stations, self.id, at, CHUNK)
        above = -1
        for station, depth in stations:
            for row in await read(reads.path, self.id, station, depth - above):
                yield wrap(row)
            above = depth

    async def iter_messages(self) -> AsyncIterator[Message]:
        """Every message of the tree in id order, so parents come before children."""
        ids = await self._anchor.backend.read(reads.all_ids, self.id)
        for start in range(0, len(ids), CHUNK):
            some = ids[start : start + CHUNK]
            for row in await self._anchor.backend.read(reads.messages_at, self.id, some):
                yield wrap(row)

    async def message(self, message_id: int) -> Message:
        """One message. MessageNotFound, also for ids of other conversations."""
        return wrap(await self._anchor.backend.read(reads.message, self.id, self._id(message_id)))

    async def children(self, message_id: int | None) -> list[Message]:
        """The messages that follow it, oldest first; of None: the roots."""
        parent = self._place(message_id)
        return wrapped(await self._anchor.backend.read(reads.children, self.id, parent))

    async def siblings(self, message_id: int) -> list[Message]:
        """The children of its parent, itself included, oldest first."""
        known = self._id(message_id)
        return wrapped(await self._anchor.backend.read(reads.siblings, self.id, known))

    async def leaves(self) -> list[Message]:
        """The messages without children, oldest first."""
        return wrapped(await self._anchor.backend.read(reads.leaves, self.id))

    async def tree(self) -> Tree:
        """The whole tree without contents, and the head as it is in the store."""
        rows, head, labelled = await self._anchor.backend.read(reads.tree, self.id)
        labels: dict[int, list[str]] = {}
        for checkpoint in labelled:
            labels.setdefault(checkpoint.message_id, []).append(checkpoint.label)
        return Tree.build(rows, head, labels, conversation_id=self.id)

    # ---- moving ------------------------------------------------------------------

    async def branch(self, to: int | None) -> Message | None:
        """Move the head to a boundary; None: before the first message. Writes no message.

        Returns the message that is the head now. MessageNotFound, NotABoundary.
        """
        return await self._move(heads.branch, self._place(to), "branch")

    async def retry(self) -> Message:
        """Move the head back to the newest user message, to answer it again; returns it.

        NothingToRetry: there is none. HeadMoved: another writer moved the head.
        """
        found = await self._move(heads.retry, self.head)
        assert found is not None
        return found

    async def rewind(self, label: str, *, digest: str | None = None) -> Message | None:
        """Move the head to a checkpoint.

        ``digest`` says what the left branch found out: it is added there as a user message
        in the same transaction. Returns the head. CheckpointNotFound names the labels.
        """
        arguments.text(label, "a label")
        said = None if digest is None else arguments.string(digest, "digest")
        found = None if said is None else as_digest(said, self.info.format)
        return await self._move(conversations.rewind, label, found)

    async def undo(self) -> Message | None:
        """Put the head back where it was before its last move; returns the head.

        NothingToUndo. HeadMoved: another writer moved it since this handle looked.
        """
        return await self._move(heads.undo, self.head)

    async def redo(self) -> Message | None:
        """Do the newest undone move again; returns the head. As ``undo``."""
        return await self._move(heads.redo, self.head)

    async def history(self) -> list[Move]:
        """Every move of the head, oldest first."""
        return await self._anchor.backend.read(reads.moves, self.id)

    async def _move(self, unit: Any, *args: Any) -> Message | None:
        def then(row: MessageRow | None) -> None:
            self._anchor.see(row.id if row else None)

        try:
            row = await self._anchor.backend.write_then(then, unit, self.id, *args, now())
        except HeadMoved as error:
            self._anchor.see(error.actual)
            raise
        return wrap(row) if row else None

    # ---- checkpoints and forks ---------------------------------------------------

    async def checkpoint(
        self, label: str, *, at: int | None = None, note: str | None = None, replace: bool = False
    ) -> Checkpoint:
        """Label a boundary (default: the head). It survives restarts.

        CheckpointExists when the label is taken, unless ``replace``. NotABoundary.
        """
        arguments.text(label, "a label", may_be_empty=False)
        arguments.text_or_none(note, "a note")
        place = self.head if at is None else self._id(at)
        return await self._anchor.backend.write(
            heads.set_checkpoint, self.id, label, place, note, now(), replace
        )

    async def checkpoints(self) -> list[Checkpoint]:
        """All of them, oldest first."""
        return await self._anchor.backend.read(reads.checkpoints, self.id)

    async def fork(
        self, at: int | None = None, *, owner: str | None = None, topic: str | None = None
    ) -> Conversation:
        """Copy the path of ``at`` (default: the head) into a new conversation, new ids.

        Its checkpoints go along. Neither shows what is said in the other later.
        NotABoundary, MessageNotFound; ConversationExists when the topic is taken.
        """
        arguments.text_or_none(owner, "owner")
        arguments.text_or_none(topic, "topic")
        if self._anchor.scope is not None and owner not in (None, self._anchor.scope):
            raise OwnerMismatch(self._anchor.scope, owner)
        place = self.head if at is None else self._id(at)
        info = await self._anchor.backend.write(
            conversations.fork, self.id, place, owner, topic, now()
        )
        anchor = self._anchor
        return Conversation(Anchor(anchor.backend, info, anchor.scope, info.head, anchor.live))

    # ---- what is sent ------------------------------------------------------------

    async def window(
        self,
        budget: Budget | int | None = None,
        *,
        target: str | None = None,
        pinned: Collection[int] = (),
        turn: Going | None = None,
        thinking: Thinking = "auto",
        model: str | None = None,
        tools: bool | None = None,
        count: Count | None = None,
        exact: bool | None = None,
    ) -> Window:
        """What is sent to the model: the newest whole turns of the path that fit, valid for
        the provider. Nothing that is stored is changed.

        budget    tokens, or a Budget; None for no limit. The system prompt counts.
        target    anthropic, openai_chat, openai_responses, gemini, bedrock; by default what
                  the conversation is written for
        pinned    ids of messages that are always sent, in their place
        turn      a turn that is going on: its messages come last, those in flight too
        thinking  "auto" leaves out reasoning that the provider would refuse, "keep", "drop"
        model     its name, for counting and for rules of some models only
        tools     whether the request offers tools
        count     the caller's own count of a message; exact: by tokenizer (extra ``tokens``)

        BudgetTooSmall, when the system prompt, what is pinned and the newest turn do not fit.
        WindowError: an unknown target, a budget that is none.
        """
        from sessiontree.conversation import windows

        return await windows.plan(
            self._anchor,
            self.head if turn is None else turn.head,
            budget,
            target,
            () if turn is None else turn.pending,
            pinned=windows.pinned_ids(pinned, self.id),
            thinking=thinking,
            model=model,
            tools=tools,
            count=count,
            exact=exact,
        )

    async def reclaim(
        self,
        kind: ReclaimKind = "auto",
        *,
        budget: Budget | int | None = None,
        threshold: float = THRESHOLD,
        target: str | None = None,
        model: str | None = None,
        keep: Budget | int | None = None,
        protect: int = PROTECT,
        save: int = SAVE,
        spared: Collection[str] = (),
        summarise: Summarise | None = None,
        instructions: str | None = None,
    ) -> Reclaimed:
        """Make later windows smaller by marks on the path; ``undo`` takes them back.

        "elide"      results of tools become a line each: all but the newest ``protect`` tokens
                     of them, if that saves ``save``, never those of the tools ``spared``
        "images"     images become a line each, all but the newest ``keep``
        "cut"        windows begin with the newest turns of at most ``keep`` tokens
        "snapshot"   the same, and pages of print stand for what came before, where the model
                     sees images and they cost less than its text
        "summarise"  the same, and what ``summarise`` answers stands for what came before
        "extract"    the same, and the sentences that word lists find stand for it
        "auto"       these in turn, "cut" last, until a window costs at most ``threshold`` of
                     ``budget``, of its bytes too where it has some; nothing when it does
                     already

        Where ``keep`` is tokens, a ``Budget(messages=…)`` is taken as well; then a summary is
        kept that is no smaller than what it stands for, since that is not sent anyway.

        A mark that would not make the window smaller is not appended; ``refused`` tells.
        ReclaimRefused: the summariser's answer is no text, or no smaller than what it would
        stand for; nothing is changed, as when it raises. HeadMoved: as with ``append``.
        """
        from sessiontree.conversation import windows

        wish = windows.Wish(
            kind, budget, threshold, keep, protect, save, spared, summarise, instructions
        )
        head = self.head
        view = await windows.sight(self._anchor, head, target, model=model)
        return await self._mark(await windows.proposals(view, wish), head)

    async def recover(
        self, window: Window, error: object, *, spared: Collection[str] = ()
    ) -> Reclaimed | None:
        """After a provider refused ``window`` as too large: the marks that make the next one
        small enough, past the estimate, without a call of a model.

        Plan the next window with ``window.recover(error).as_budget(window.budget)``. None:
        the error speaks of something else.
        """
        from sessiontree.conversation import windows

        windows.names(spared, "spared")
        found = window.recover(error)
        if found is None:
            return None
        head = self.head
        view = await windows.sight(self._anchor, head, window.target)
        return await self._mark(windows.recovered(view, found, spared), head)

    async def _mark(self, climbed: Climb, head: int | None) -> Reclaimed:
        """Append the marks of a reclaim, all or none, where it was planned: elsewhere they
        would speak of messages that are not before them."""
        from sessiontree.conversation import windows

        marks = [formats.read(each.mark, format="mark") for each in climbed.proposals]
        for mark, proposal in zip(marks, climbed.proposals, strict=True):
            mark.ref = proposal.ref_id
        wish = Append(marks, now(), True, expected=head, cause="reclaim")
        saved = await self._anchor.save(wish) if marks else []
        return windows.Reclaimed(saved, climbed.refused, climbed.before, climbed.after)

    # ---- after a crash -----------------------------------------------------------

    async def resume(
        self, budget: Budget | int | None = None, *, target: str | None = None
    ) -> Resume:
        """Where the conversation stands, and what was in flight when it stopped.

        Looks at the head afresh. Drafts of turns that go on in this process are left out;
        those it tells of are let go with the next save. With a ``budget`` it has a window.
        """
        live = set(self._anchor.live)
        found = await self._anchor.backend.read(reads.where_it_stands, self.id)
        info, path, in_flight, checkpoints = found
        self._learn(info)
        drafts = drafts_of(in_flight, live | self._anchor.live)
        self._anchor.reported = {draft.turn for draft in drafts}
        window = None if budget is None else await self.window(budget, target=target)
        return resume_of(self.id, wrapped(path), checkpoints, drafts, window)


def as_system(system: str | Mapping[str, Any], format: str | None) -> NewMessage:
    """A system prompt as a message."""
    native = {"role": "system", "content": system} if isinstance(system, str) else system
    prompt = formats.read(native, default=format)
    if prompt.role != "system":
        raise FormatError(
            f"the system prompt is a message of role {prompt.role}", hint="give its text"
        )
    settle([prompt])
    return prompt
