"""Drafts: the messages of a turn that had not come to a boundary when it stopped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sessiontree import formats
from sessiontree.core import jsontext
from sessiontree.core.message import NewMessage, ToolCall
from sessiontree.core.pairing import pair
from sessiontree.errors import FormatError, StoreCorrupt
from sessiontree.store.reads import DraftRow


@dataclass(frozen=True, slots=True)
class Draft:
    """What one turn had in flight. ``parent_id`` is the boundary that it follows."""

    turn: int
    parent_id: int | None
    messages: list[NewMessage]

    @property
    def open_calls(self) -> list[ToolCall]:
        """Calls that were made and whose results are unknown."""
        return [opened.call for opened in pair(self.messages).open]


def drafts_of(rows: Sequence[DraftRow], live: set[int]) -> list[Draft]:
    """The drafts of turns that are over, oldest first."""
    found: dict[int, Draft] = {}
    for row in rows:
        turn, parent = row[:2]
        if turn not in live:
            found.setdefault(turn, Draft(turn, parent, [])).messages.append(read_drafted(row))
    return sorted(found.values(), key=lambda draft: draft.messages[0].created_at or 0)


def read_drafted(row: DraftRow) -> NewMessage:
    """A message in flight. StoreCorrupt when it is not what was saved any more."""
    turn, _, format, usage, model, key, meta, created_at, content = row
    try:
        return formats.read(
            content,
            format=format,
            key=key,
            usage=jsontext.stored(usage, f"the usage of a draft of turn {turn}") if usage else None,
            model=model,
            meta=jsontext.stored(meta, f"the meta of a draft of turn {turn}") if meta else None,
            created_at=created_at,
        )
    except FormatError as error:
        raise StoreCorrupt(
            f"a message in flight, of turn {turn}, cannot be read: {error}"
        ) from error
