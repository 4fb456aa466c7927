"""The outline of a tree in little memory: some 40 bytes a message.

``core.outline`` makes an object of each row, which is too much where a page of a million
messages is written. This says the same of a message when it is asked, from arrays.
"""

from __future__ import annotations

from array import array

from sessiontree.formats.writing.places import Place
from sessiontree.transfer.order import NONE, Order


class Outline(Order):
    """The display order, and where each of the messages that are shown stands in it. The
    others are passed over: what follows them hangs on the nearest shown one above."""

    def __init__(self) -> None:
        super().__init__()
        self._is_shown = bytearray()
        self._followers = bytearray()
        """How many follow each: 0, 1, or 2 for more."""
        self._head: int | None = None

    def add(self, message_id: int, parent_id: int | None, is_shown: bool = True) -> None:
        """The next message, in id order."""
        super().add(message_id, parent_id)
        self._is_shown.append(is_shown)
        self._followers.append(0)
        parent = self._parents[-1]
        if parent != NONE:
            self._followers[parent] = min(2, self._followers[parent] + 1)

    def see_head(self, head: int | None) -> None:
        super().see_head(head)
        self._head = head
        self._find_above()
        self._count_siblings()
        self._find_levels()
        self._number_rows()

    def place(self, message_id: int) -> Place | None:
        """Where a message is; None when it is not shown."""
        at = self._index(message_id)
        if not self._is_shown[at]:
            return None
        above = self._above[at]
        return Place(
            row=self._row[at],
            above=None if above == NONE else self._ids[above],
            row_above=self._row[above],
            level=self._level[at],
            sibling=self._among[at],
            siblings=self._count[above],
            on_path=bool(self._on_path[at]),
            is_head=message_id == self._head,
        )

    def is_fork(self, message_id: int) -> bool:
        """True when several messages follow it, shown or not."""
        return self._followers[self._index(message_id)] > 1

    def head_row(self) -> int:
        """The last row on the path of the head; NONE where no row is on it."""
        return self._head_row

    def _find_above(self) -> None:
        if all(self._is_shown):
            self._above = self._parents
            return
        self._above = self._parents[:]
        for at, parent in enumerate(self._parents):  # a message comes after what it follows
            if parent != NONE and not self._is_shown[parent]:
                self._above[at] = self._above[parent]

    def _count_siblings(self) -> None:
        """Those of the roots are counted under NONE, which is the last place of an array."""
        self._count = self._numbers()
        self._among = self._numbers()
        for at, above in enumerate(self._above):
            if self._is_shown[at]:
                self._count[above] += 1
                self._among[at] = self._count[above]

    def _find_levels(self) -> None:
        self._level = self._numbers()
        for at, above in enumerate(self._above):
            self._level[at] = self._level[above] + (self._count[above] > 1)

    def _number_rows(self) -> None:
        self._row = self._numbers()
        self._row[NONE] = self._head_row = NONE
        row = 0
        for at in self._walk():
            if self._is_shown[at]:
                self._row[at] = row
                self._head_row = row if self._on_path[at] else self._head_row
                row += 1

    def _numbers(self) -> array[int]:
        """A number for each message, and one for NONE."""
        return array("i", bytes(4 * (len(self._ids) + 1)))
