"""Where a message stands among those that a page shows, and who knows it.

Whoever writes a page asks for one place at a time, so that a tree of a million messages
need not be in memory as objects.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Place(NamedTuple):
    """A message that is shown has a row, of which rows are counted from 0 in display order.

    ``above`` is the shown message that it follows (None where there is none) and
    ``row_above`` its row, -1 for none. ``level`` is the number of branch points above it,
    ``sibling`` (from 1) and ``siblings`` say that it is sibling 2 of 3, oldest first. All of
    these are of what is shown.
    """

    row: int
    above: int | None
    row_above: int
    level: int
    sibling: int
    siblings: int
    on_path: bool
    is_head: bool


class Places(Protocol):
    """The places of a tree's messages."""

    def place(self, message_id: int) -> Place | None:
        """Where a message is; None when it is not shown."""
        ...

    def is_fork(self, message_id: int) -> bool:
        """True when several messages follow it, shown or not."""
        ...

    def head_row(self) -> int:
        """The last row on the path of the head; -1 for none."""
        ...
