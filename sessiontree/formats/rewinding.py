"""The chain of a transcript whose rows name no parents, and that takes back what it said.

    chain.add(name)         the next row: it follows the one before
    chain.take_back(turns)  what comes next follows what stood before the last turns

What is taken back stays in the tree, as a branch. Once something was taken back, each row
says that the head is on it, since the last row is not always the newest of the path.
"""

from __future__ import annotations

from sessiontree.formats.transcript import Place, Tells


class Chain:
    """What the next row follows: ``last``, "" before the first."""

    def __init__(self) -> None:
        self.last = ""
        self._before_turns: list[str] = []
        self._is_rewound = False

    def add(self, name: str, *, begins_turn: bool = False) -> Place:
        """The place of a row called ``name``."""
        if begins_turn:
            self._before_turns.append(self.last)
        place = Place(name, self.last or None)
        self.last = name
        return place._replace(tells=Tells(head=True)) if self._is_rewound else place

    def take_back(self, turns: int) -> str:
        """Go back to before the last ``turns`` turns, or before the first of them all.
        Returns where that is."""
        before = self._before_turns[-turns:]
        if before:
            self.go_to(before[0])
            del self._before_turns[-turns:]
        return self.last

    def go_to(self, name: str) -> None:
        """What comes next follows the row called ``name``."""
        self.last = name
        self._is_rewound = True
