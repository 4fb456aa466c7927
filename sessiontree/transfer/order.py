"""The display order of a tree in little memory: some 25 bytes a message.

``core.tree.Tree`` holds what a row of each message shows, which is too much where a file of
a million messages is written. This holds ids and nothing else.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator

NONE = -1
RUN = 500
"""Messages of a run, at most."""


class Straight:
    """The order of a path: it is read as it comes, and nothing need be held."""

    def __init__(self, length: int) -> None:
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __contains__(self, message_id: int) -> bool:
        return True

    def is_on_path(self, message_id: int) -> bool:
        return True

    def leaves(self) -> int:
        return min(1, self._length)


class Order:
    """The ids of a tree as they are added, and then depth first: the branch of the head
    before its siblings, the others oldest first, as ``Tree.nodes``."""

    def __init__(self) -> None:
        self._ids = array("q")  # the others hold places in it
        self._parents = array("i")
        self._on_path = bytearray()

    def __contains__(self, message_id: int) -> bool:
        at = self._index(message_id)
        return at < len(self._ids) and self._ids[at] == message_id

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, message_id: int, parent_id: int | None) -> None:
        """The next message, in id order."""
        last = len(self._ids) - 1
        if parent_id is None:
            at = NONE
        else:
            at = last if last >= 0 and self._ids[last] == parent_id else self._index(parent_id)
        self._ids.append(message_id)
        self._parents.append(at)

    def see_head(self, head: int | None) -> None:
        """All are added, and this one is the head."""
        self._on_path = bytearray(len(self._ids))
        at = NONE if head is None else self._index(head)
        while at != NONE:
            self._on_path[at] = 1
            at = self._parents[at]

    def is_on_path(self, message_id: int) -> bool:
        """True when the head's path goes through a message."""
        return bool(self._on_path[self._index(message_id)])

    def leaves(self) -> int:
        """How many messages nothing follows."""
        followed = bytearray(len(self._ids))
        for parent in self._parents:
            if parent != NONE:
                followed[parent] = 1
        return len(followed) - sum(followed)

    def runs(self) -> Iterator[tuple[int, int]]:
        """The display order in pieces of the tree that have no branch in them: (id of the
        last message, how many)."""
        last, count = NONE, 0
        for at in self._walk():
            if count and (self._parents[at] != last or count == RUN):
                yield self._ids[last], count
                count = 0
            last, count = at, count + 1
        if count:
            yield self._ids[last], count

    def _index(self, message_id: int) -> int:
        return bisect_left(self._ids, message_id)

    def _walk(self) -> Iterator[int]:
        first_child, next_sibling, first_root = self._links()
        waiting = array("i", self._branches(first_root, next_sibling))
        while waiting:
            at = waiting.pop()
            yield at
            waiting.extend(self._branches(first_child[at], next_sibling))

    def _branches(self, first: int, next_sibling: array[int]) -> list[int]:
        """Siblings, the last to be shown first."""
        found: list[int] = []
        while first != NONE:
            found.append(first)
            first = next_sibling[first]
        found.sort(key=lambda at: (self._on_path[at], -at))
        return found

    def _links(self) -> tuple[array[int], array[int], int]:
        """For each its first child and next sibling; and the first root."""
        first_child = array("i", [NONE]) * len(self._ids)
        next_sibling = array("i", [NONE]) * len(self._ids)
        first_root = NONE
        for at in range(len(self._ids) - 1, -1, -1):
            parent = self._parents[at]
            if parent == NONE:
                next_sibling[at], first_root = first_root, at
            else:
                next_sibling[at], first_child[parent] = first_child[parent], at
        return first_child, next_sibling, first_root
