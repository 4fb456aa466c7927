"""What importers do with a head, beside what people do."""

# Handles keep their anchor to themselves; this is the conversation floor too.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Sequence

from sessiontree.conversation.anchor import now
from sessiontree.conversation.handle import Conversation
from sessiontree.core.records import Checkpoint, Move
from sessiontree.store import heads, landmarks


async def move_head(chat: Conversation, to: int | None) -> None:
    """Move the head to a boundary, and record that an import did. NotABoundary."""
    await chat._anchor.backend.write(heads.branch, chat.id, to, "import", now())
    await chat.refresh()


async def restore(
    chat: Conversation,
    head: int | None,
    moves: Sequence[Move],
    checkpoints: Sequence[Checkpoint],
) -> None:
    """Give a conversation that has none the moves and checkpoints it had elsewhere, with
    their times, and put its head where it was."""
    unit = landmarks.restore
    await chat._anchor.backend.write(unit, chat.id, head, list(moves), list(checkpoints), now())
    await chat.refresh()
