"""Where messages that are gone stood, as far as those that are left tell.

A damaged store may have lost the rows of some messages. What still speaks of them (a child,
the head, a checkpoint, a move) gives their ids; this finds the message that each followed, or
says that nothing tells. Nothing is guessed: where two could be meant, none is taken.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sessiontree.core.message import Role


class Bone(NamedTuple):
    """A message that is there, without its content."""

    id: int
    parent_id: int | None
    depth: int
    open_calls: int
    role: Role
    system_id: int | None
    ref_id: int | None


class Places:
    """The messages of one conversation that are there, and those that are ``lost``.

    ``came_from``: for each message that the head was once moved to, where it came from.
    ``known``: the parents of lost messages that are known otherwise.
    """

    def __init__(
        self,
        bones: Mapping[int, Bone],
        lost: Iterable[int],
        came_from: Mapping[int, int | None],
        known: Mapping[int, int | None],
    ) -> None:
        self._bones = bones
        self._lost = frozenset(lost)
        self._came_from = came_from
        self._known = known
        self._children: dict[int, list[int]] = {}
        self._levels: dict[int, list[int]] = {}
        for bone in bones.values():
            self._levels.setdefault(bone.depth, []).append(bone.id)
            if bone.parent_id is not None and self._fits(bone):
                self._children.setdefault(bone.parent_id, []).append(bone.id)
        self._depths = sorted(self._levels)

    def parents(self) -> dict[int, int | None]:
        """The parent of each lost message, and of each whose own parent cannot be it; None
        where nothing tells, or where there is none."""
        astray = [bone.id for bone in self._bones.values() if not self._fits(bone)]
        found: dict[int, int | None] = {}
        for at in sorted([*self._lost, *astray]):
            found[at] = parent = self._parent(at)
            if parent is not None:
                self._children.setdefault(parent, []).append(at)
        return found

    def _fits(self, bone: Bone) -> bool:
        """True when the parent that it names is, or was, an older message of these."""
        parent = bone.parent_id
        known = parent in self._bones or parent in self._lost
        return parent is None or (known and parent < bone.id)

    def _parent(self, at: int) -> int | None:
        if at in self._known:
            parent = self._known[at]
            if parent is None or parent in self._bones or parent in self._lost:
                return parent
        depth, system = self._hints(at)
        if depth == 0:
            return None
        half = self._half_steps(at, depth)
        if len(half) == 1:
            return half[0]
        return self._by_move(at) if depth is None else self._by_depth(at, depth, system)

    def _hints(self, at: int) -> tuple[int | None, int | None]:
        """Depth and system prompt, by the message itself or by its first child."""
        if at in self._bones:
            return self._bones[at].depth, self._bones[at].system_id
        children = self._children.get(at)
        if not children:
            return None, None
        child = self._bones[children[0]]
        return max(child.depth - 1, 0), child.system_id

    def _half_steps(self, at: int, depth: int | None) -> list[int]:
        """Messages with calls open that nothing follows. Only whole steps are saved, so
        something did follow them."""
        levels = self._depths if depth is None else [depth - 1]
        return [
            id
            for level in levels
            for id in self._levels.get(level, ())
            if id < at and self._bones[id].open_calls > 0 and id not in self._children
        ]

    def _by_depth(self, at: int, depth: int, system: int | None) -> int | None:
        """The only message one step nearer the root; where all of that depth are gone, of
        the next depth that is there."""
        for level in reversed(self._depths[: bisect_left(self._depths, depth)]):
            found = [id for id in self._levels[level] if id < at]
            if len(found) > 1:
                found = [id for id in found if self._bones[id].system_id == system]
            if found:
                return found[0] if len(found) == 1 else None
        return None

    def _by_move(self, at: int) -> int | None:
        """A message that nothing follows: the head came to it from its parent, or from that
        of the messages that were saved with it, whose ids come before its own."""
        origin = self._came_from.get(at)
        if origin is None or origin > at or not (origin in self._bones or origin in self._lost):
            return None
        before = at - 1
        while before in self._bones and before > origin:
            if self._bones[before].parent_id == origin:
                return at - 1
            if self._bones[before].parent_id != before - 1:
                return origin
            before -= 1
        return origin
