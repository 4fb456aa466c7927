"""Taking up a conversation after a crash: where it stands, and what was in flight."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sessiontree.conversation.anchor import unsaved
from sessiontree.conversation.draft import Draft
from sessiontree.core.message import Message, ToolCall
from sessiontree.core.records import Checkpoint

if TYPE_CHECKING:
    from sessiontree.core.window import Window


@dataclass(frozen=True, slots=True)
class Resume:
    """Where a conversation stands.

    ``path``: the messages up to the head, oldest first. ``interrupted``: tool calls whose
    side effects may or may not have happened. ``draft``: the messages that were in flight
    (id 0), never part of a path; hand the resume to ``turn(resume=…)`` to go on with the
    newest turn's, or append something: then they are let go.
    """

    path: list[Message]
    checkpoints: list[Checkpoint]
    interrupted: list[ToolCall]
    draft: list[Message]
    window: Window | None = None
    """What would be sent, when a budget was given."""
    outside: list[Checkpoint] = field(default_factory=list[Checkpoint])
    """Checkpoints whose message is not in the window; rewinding to them lands there still."""
    drafts: list[Draft] = field(default_factory=list[Draft], repr=False)
    conversation_id: int = 0


def resume_of(
    conversation: int,
    path: list[Message],
    checkpoints: list[Checkpoint],
    drafts: list[Draft],
    window: Window | None,
) -> Resume:
    """A resume of what was read."""
    return Resume(
        path,
        checkpoints,
        [call for draft in drafts for call in draft.open_calls],
        [unsaved(m, conversation, draft.parent_id) for draft in drafts for m in draft.messages],
        window,
        [] if window is None else _outside(checkpoints, path, window),
        drafts,
        conversation,
    )


def _outside(
    checkpoints: list[Checkpoint], path: list[Message], window: Window
) -> list[Checkpoint]:
    """The checkpoints that lie before the first message that is sent, or on other branches.
    A mark is never sent, and yet not outside when it stands among what is."""
    ids = [message.id for message in path]
    sent = set(window.ids)
    if not window.complete:
        first = next((at for at, each in enumerate(ids) if each in sent), len(ids))
        ids = ids[first:]
    inside = set(ids)
    return [each for each in checkpoints if each.message_id not in inside]
