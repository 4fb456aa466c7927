"""Values that stand beside messages: conversations, checkpoints, moves, problems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from sessiontree.core.message import NewMessage

Cause = Literal["append", "branch", "edit", "retry", "rewind", "import", "reclaim"]


class ConversationInfo(NamedTuple):
    """What the store knows of a conversation, messages apart. Times are microseconds UTC."""

    id: int
    owner: str
    topic: str | None
    title: str | None
    format: str | None
    head: int | None
    forked_from: int | None
    forked_at: int | None
    meta: dict[str, Any]
    created_at: int
    updated_at: int
    messages: int | None = None
    """How many messages it holds; None where they were not counted."""


class Checkpoint(NamedTuple):
    """A label on a boundary."""

    label: str
    message_id: int
    note: str | None
    created_at: int
    """Microseconds since 1970, UTC."""


class Move(NamedTuple):
    """A move of the head. ``is_current`` marks the one that undo would take back."""

    id: int
    from_id: int | None
    to_id: int | None
    cause: Cause
    created_at: int
    is_current: bool


@dataclass(frozen=True, slots=True)
class Graft:
    """One message of a bulk write, and where it hangs.

    ``parent`` is the id of a saved message, ``-1 - i`` for item i of the same batch, or
    None for a root.
    """

    message: NewMessage
    parent: int | None
    ref: int | None = None
    """The message it speaks of, in the same notation."""


class Problem(NamedTuple):
    """One thing that ``check`` found. ``can_mend`` is True when repair loses no message."""

    kind: str
    conversation_id: int | None
    message_id: int | None
    detail: str
    can_mend: bool = False


class Mended(NamedTuple):
    """One thing that ``repair`` did about a problem of this kind."""

    kind: str
    conversation_id: int | None
    message_id: int | None
    detail: str


class Repair(NamedTuple):
    """What ``repair`` did. ``left`` is what a check finds afterwards: what is really lost."""

    mended: list[Mended]
    left: list[Problem]
    backup: str | None
    """The file that holds the store as it was; None when nothing had to be done."""
