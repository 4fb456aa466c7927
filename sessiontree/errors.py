"""Everything that sessiontree raises on purpose.

    SessionTreeError
    ├── NotFound (LookupError)
    │   ├── ConversationNotFound
    │   ├── MessageNotFound
    │   └── CheckpointNotFound
    ├── TreeError                     what was asked would break the tree
    │   ├── NotABoundary
    │   ├── OrphanToolResult
    │   ├── UnsettledTurn
    │   ├── CheckpointExists
    │   ├── ConversationExists
    │   ├── NothingToRetry
    │   └── NothingToUndo
    ├── HeadMoved                     another writer was first; nothing was lost
    ├── OwnerMismatch                 a scoped store was asked for another owner's
    ├── BadArgument (ValueError)      an argument of the wrong kind, or that no store can hold
    ├── FormatError (ValueError)      a message or a file that cannot be read as what it claims
    ├── WindowError (ValueError)      a window that cannot be planned as it was asked for
    ├── BudgetTooSmall
    ├── ReclaimRefused                a reclaim that would not make the window smaller
    └── StoreError
        ├── StoreBusy                 another process holds the store
        ├── StoreFull                 no room on the disk
        ├── StoreReadOnly
        ├── StoreUnavailable          cannot be opened, or the disk answers with an error
        ├── StoreClosed
        ├── StoreCorrupt              damaged
        ├── NotAStore                 a file of another kind
        └── StoreTooNew               written by a newer sessiontree

Each error says what happened, to what, and what to do now. ``hint`` is the last
of these on its own, for a surface that shows it apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def shown(value: object) -> str:
    """A value in the words of an error: short, whatever it is."""
    try:
        text = repr(value)
    except ValueError:  # an integer of more digits than Python prints
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:80]}…"


class SessionTreeError(Exception):
    """Base of all errors. ``hint`` says what to do now."""

    hint: str = ""

    def __init__(self, what: str, *, hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint or self.hint

    def __str__(self) -> str:
        return f"{self.what} ({self.hint})" if self.hint else self.what


class NotFound(SessionTreeError, LookupError):
    """Something that was named does not exist."""


class ConversationNotFound(NotFound):
    """No such conversation, or none that this owner may see."""

    def __init__(self, name: object, *, hint: str = "") -> None:
        super().__init__(
            f"there is no conversation {shown(name)}",
            hint=hint or "see conversations() for those that there are",
        )
        self.conversation = name


class MessageNotFound(NotFound):
    """No such message in this conversation."""

    def __init__(self, message_id: object, conversation_id: int, *, hint: str = "") -> None:
        super().__init__(
            f"conversation {conversation_id} has no message {shown(message_id)}",
            hint=hint or "ids of another conversation do not work here; see tree()",
        )
        self.message_id = message_id
        self.conversation_id = conversation_id


class CheckpointNotFound(NotFound):
    """No such label. ``labels`` are those that exist, oldest first; the hint names the newest."""

    NAMED = 20

    def __init__(self, label: str, conversation_id: int, labels: Iterable[str]) -> None:
        self.label = label
        self.conversation_id = conversation_id
        self.labels = tuple(labels)
        known = ", ".join(map(shown, self.labels[-self.NAMED :])) or "none"
        others = len(self.labels) - self.NAMED
        super().__init__(
            f"conversation {conversation_id} has no checkpoint {shown(label)}",
            hint=f"its checkpoints: {known}" + (f", and {others:,} older ones" * (others > 0)),
        )


class TreeError(SessionTreeError):
    """What was asked would break the tree."""


class NotABoundary(TreeError):
    """A head, checkpoint, fork or branch was pointed at the inside of a step."""

    def __init__(self, message_id: int, open_calls: int, *, hint: str = "") -> None:
        super().__init__(
            f"message {message_id} is not a boundary: {open_calls} tool call(s) on its path "
            "are unanswered",
            hint=hint or "choose the message before the calls, or the last of their results",
        )
        self.message_id = message_id
        self.open_calls = open_calls


class OrphanToolResult(TreeError):
    """A tool result that answers no open call on its path."""

    def __init__(self, call_id: str, *, reason: str = "no open call has this id") -> None:
        super().__init__(
            f"the tool result for {shown(call_id)} cannot be added: {reason}",
            hint="add the assistant message that makes the call first, and each result once",
        )
        self.call_id = call_id


class UnsettledTurn(TreeError):
    """A turn (or an append) ended while calls were open. ``calls`` are those."""

    def __init__(self, calls: Sequence[Any], *, hint: str = "") -> None:
        names = ", ".join(shown(f"{call.name}({call.id})")[1:-1] for call in calls)
        super().__init__(
            f"{len(calls)} tool call(s) have no result: {names}",
            hint=hint or "add the results, or call interrupt() to record that there are none",
        )
        self.calls = tuple(calls)


class CheckpointExists(TreeError):
    """The label is taken."""

    def __init__(self, label: str, message_id: int) -> None:
        super().__init__(
            f"there is a checkpoint {shown(label)} already, on message {message_id}",
            hint="choose another label, or pass replace=True to move it",
        )
        self.label = label
        self.message_id = message_id


class ConversationExists(TreeError):
    """The owner has a conversation of this topic already."""

    def __init__(self, owner: str, topic: str) -> None:
        super().__init__(
            f"{shown(owner)} has a conversation {shown(topic)} already",
            hint="choose another topic, or open that one",
        )
        self.owner = owner
        self.topic = topic


class NothingToRetry(TreeError):
    """There is no user message on the path whose answer could be made again."""


class NothingToUndo(TreeError):
    """There is no move of the head left to undo or redo."""

    hint = "history() tells the moves there were; branch() goes anywhere"


class HeadMoved(SessionTreeError):
    """Another writer moved the head first. Nothing was lost: ``saved`` are the messages
    of this call, kept as a branch beside the other writer's.

    ``expected`` is the head this handle last saw, ``actual`` the one it has now;
    either is None when the conversation was empty.
    """

    def __init__(self, expected: int | None, actual: int | None, saved: Sequence[Any] = ()) -> None:
        self.expected = expected
        self.actual = actual
        self.saved = tuple(saved)
        leaf = self.saved[-1].id if self.saved else None
        kept = f"your messages are kept, ending in {leaf}" if self.saved else "nothing was changed"
        super().__init__(
            f"the head moved from {_place(expected)} to {_place(actual)} since this handle saw it; "
            f"{kept}",
            hint=f"go on at the new head, or branch(to={leaf}) to go on with yours"
            if self.saved
            else "look at the new head, then ask again",
        )


def _place(head: int | None) -> str:
    return "the beginning" if head is None else str(head)


class OwnerMismatch(SessionTreeError):
    """A store that is scoped to one owner was asked to act for another."""

    def __init__(self, scope: str, owner: str) -> None:
        super().__init__(
            f"this store is scoped to {shown(scope)} and cannot act for {shown(owner)}",
            hint="use the store it was scoped from",
        )
        self.scope = scope
        self.owner = owner


class BadArgument(SessionTreeError, ValueError):
    """An argument of the wrong kind, or text that no store can hold. Nothing was done."""


class FormatError(SessionTreeError, ValueError):
    """A message or file that cannot be read, or not stored without loss.

    ``file`` and ``line`` (from 1) are set when it came from a file.
    """

    def __init__(
        self, what: str, *, file: str | None = None, line: int | None = None, hint: str = ""
    ) -> None:
        where = "".join(
            [f"{file}: " if file is not None else "", f"line {line}: " if line is not None else ""]
        )
        super().__init__(where + what, hint=hint)
        self.file = file
        self.line = line


class BudgetTooSmall(SessionTreeError):
    """What must be sent does not fit. ``short`` says by how much, in ``unit``."""

    def __init__(self, needed: int, budget: int, *, unit: str = "tokens", hint: str = "") -> None:
        self.needed = needed
        self.budget = budget
        self.unit = unit
        self.short = needed - budget
        super().__init__(
            f"what must be sent needs {needed} {unit}, the budget is {budget}: "
            f"{self.short} too few",
            hint=hint or "raise the budget, pin less, or reclaim",
        )


class WindowError(SessionTreeError, ValueError):
    """A window that cannot be planned as it was asked for: its target or its budget."""


class ReclaimRefused(SessionTreeError):
    """A reclaim that would not make the window smaller, or a summary that cannot be used.
    Nothing was written."""


class StoreError(SessionTreeError):
    """The store itself could not do its work. Nothing is half written."""


class StoreBusy(StoreError):
    """Another process held the store for longer than the busy timeout."""

    hint = "try again; the store is unchanged"


class StoreFull(StoreError):
    """There is no room on the disk."""

    hint = "make room and try again; nothing of this call was saved"


class StoreReadOnly(StoreError):
    """The store, its file or its folder cannot be written."""

    hint = "check the permissions, or open it with read_only=True"


class StoreUnavailable(StoreError):
    """The store cannot be opened, or the disk answers with an error."""

    hint = "look at the path, its permissions and the disk"


class StoreClosed(StoreError):
    """The store was used after it was closed."""

    hint = "use it inside `async with open_store(...)`"


class StoreCorrupt(StoreError):
    """The store is damaged."""

    hint = "run `sessiontree check`; it names what is damaged and what can be mended"


class NotAStore(StoreError):
    """The file is something else."""

    hint = "name another file; this one was not changed"


class StoreTooNew(StoreError):
    """The store was written by a newer sessiontree."""

    hint = "upgrade sessiontree to read it"
