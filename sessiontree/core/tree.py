"""The tree of a conversation as a skeleton: every message, none of its content.

A tree keeps the rows as the store gave them and finds its way by id; a ``Node`` is made
when somebody asks for it, and the display order when somebody walks it. So building one
costs little more than fetching its rows, and nothing here recurses: a conversation may
be a chain of a million messages.

Two orders, and only two:

- *Siblings* (``roots``, ``children``, ``siblings``, ``Node.children``) are in id order, that
  is oldest first, as the conversation's own ``children`` and ``siblings`` are. So "2/3" means
  the same message wherever the head is.
- *Display order* (``nodes``, ``leaves``, iteration) is depth first, each message before those
  that follow it, with the branch that holds the head before its siblings, so that the
  conversation as it stands is read from the top without a gap; the others, oldest first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import TypeAlias

from sessiontree.core.message import Role
from sessiontree.errors import MessageNotFound, StoreCorrupt

SkeletonRow: TypeAlias = tuple[int, int | None, Role, str, int, int, int, int]
"""(id, parent_id, role, preview, depth, open_calls, tokens, created_at)"""

_NAMED = 5
"""How many ids an error names before it stops at "and N more"."""


@dataclass(slots=True)
class Node:
    """One message of the tree. ``children`` are ids, oldest first.

    ``preview`` is the first line of its text, ``tokens`` an estimate, ``created_at``
    microseconds since 1970 (UTC), ``labels`` the checkpoints that are set on it.
    """

    id: int
    parent_id: int | None
    role: Role
    preview: str
    depth: int
    open_calls: int
    tokens: int
    created_at: int
    labels: tuple[str, ...]
    children: tuple[int, ...]

    @property
    def is_boundary(self) -> bool:
        """True when no tool call on its path is unanswered: a head may stand here."""
        return self.open_calls == 0


class Tree:
    """The messages of one conversation and how they follow each other."""

    __slots__ = ("_children", "_labels", "_nodes", "_rows", "conversation_id", "head")

    def __init__(
        self,
        rows: dict[int, SkeletonRow],
        children: dict[int | None, list[int]],
        head: int | None,
        labels: Mapping[int, Sequence[str]],
        conversation_id: int,
    ) -> None:
        """For ``build``, which checks what it is given."""
        self.head = head
        self.conversation_id = conversation_id
        self._rows = rows
        self._children = children
        self._labels = labels
        self._nodes: list[Node] | None = None

    @classmethod
    def build(
        cls,
        rows: Iterable[SkeletonRow],
        head: int | None = None,
        labels: Mapping[int, Sequence[str]] | None = None,
        *,
        conversation_id: int = 0,
    ) -> Tree:
        """The tree of ``rows``, in any order. ``labels``: message id → its checkpoints.

        StoreCorrupt, naming the ids, when a message is there twice, when one (or the
        head) points at a message that is not there, or when messages follow each other
        in a circle.
        """
        ordered = sorted(rows, key=itemgetter(0))
        by_id = {row[0]: row for row in ordered}
        if len(by_id) != len(ordered):
            raise _twice(ordered)
        children: dict[int | None, list[int]] = {}
        forwards = True
        for row in ordered:
            child, parent = row[0], row[1]
            if parent in children:
                children[parent].append(child)
            else:
                children[parent] = [child]
            if parent is not None and parent >= child:
                forwards = False
        _refuse_missing(by_id, children, head)
        if not forwards:  # ids that only ever point at older ids cannot make a circle
            _refuse_circles(by_id, children)
        return cls(by_id, children, head, labels or {}, conversation_id)

    @property
    def nodes(self) -> list[Node]:
        """All nodes in display order."""
        if self._nodes is None:
            self._nodes = [self._node(row) for row in self._walk()]
        return self._nodes

    @property
    def roots(self) -> list[Node]:
        """The messages that follow none, oldest first."""
        return self.children(None)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __contains__(self, message_id: object) -> bool:
        return message_id in self._rows

    def __repr__(self) -> str:
        return f"<Tree of {len(self)} messages, head {self.head}>"

    def node(self, message_id: int) -> Node:
        """The node of a message; MessageNotFound when it is not in this tree."""
        return self._node(self._row(message_id))

    def path(self, message_id: int | None = None) -> list[Node]:
        """The nodes from the root to a message (by default the head), root first."""
        leaf = self.head if message_id is None else message_id
        if leaf is None:
            return []
        return [self._node(self._rows[at]) for at in reversed(list(self._climb(leaf)))]

    def path_ids(self) -> frozenset[int]:
        """The ids on the path of the head."""
        return frozenset() if self.head is None else frozenset(self._climb(self.head))

    def children(self, message_id: int | None) -> list[Node]:
        """The messages that follow one, oldest first; those of None are the roots."""
        if message_id is not None:
            self._row(message_id)
        return [self._node(self._rows[child]) for child in self._children.get(message_id, ())]

    def siblings(self, message_id: int) -> list[Node]:
        """The messages with the same parent, itself among them, oldest first."""
        return self.children(self._row(message_id)[1])

    def leaves(self) -> list[Node]:
        """The messages that nothing follows, in display order."""
        return [self._node(row) for row in self._walk() if row[0] not in self._children]

    def common_ancestor(self, a: int, b: int) -> Node | None:
        """The newest message on the paths of both (which may be one of the two), or None
        when they start from different roots."""
        on_path_of_a = set(self._climb(a))
        for at in self._climb(b):
            if at in on_path_of_a:
                return self._node(self._rows[at])
        return None

    def _row(self, message_id: int) -> SkeletonRow:
        try:
            return self._rows[message_id]
        except KeyError:
            raise MessageNotFound(message_id, self.conversation_id) from None

    def _node(self, row: SkeletonRow) -> Node:
        labels = self._labels.get(row[0])
        children = self._children.get(row[0])
        return Node(*row, tuple(labels) if labels else (), tuple(children) if children else ())

    def _climb(self, message_id: int) -> Iterator[int]:
        """The ids from a message to its root."""
        parent = self._row(message_id)[1]
        yield message_id
        while parent is not None:
            yield parent
            parent = self._rows[parent][1]

    def _walk(self) -> Iterator[SkeletonRow]:
        """The rows in display order."""
        on_path = self.path_ids()
        waiting = _newest_first(self._children.get(None, []), on_path)
        while waiting:
            at = waiting.pop()
            yield self._rows[at]
            following = self._children.get(at)
            if following is None:
                continue
            if len(following) == 1:
                waiting.append(following[0])
            else:
                waiting.extend(_newest_first(following, on_path))


def _newest_first(ids: list[int], on_path: frozenset[int]) -> list[int]:
    """Siblings as a stack: what is displayed first stands last."""
    return [*(i for i in reversed(ids) if i not in on_path), *(i for i in ids if i in on_path)]


def _twice(ordered: list[SkeletonRow]) -> StoreCorrupt:
    again = [b[0] for a, b in pairwise(ordered) if a[0] == b[0]]
    return StoreCorrupt(f"these messages are there more than once: {_some(again)}")


def _refuse_missing(
    rows: Mapping[int, SkeletonRow], children: Mapping[int | None, list[int]], head: int | None
) -> None:
    if head is not None and head not in rows:
        raise StoreCorrupt(f"the head is on message {head}, which is not there")
    missing = [parent for parent in children if parent is not None and parent not in rows]
    if missing:
        orphans = [child for parent in missing for child in children[parent]]
        raise StoreCorrupt(
            f"the messages {_some(orphans)} follow messages that are not there: {_some(missing)}"
        )


def _refuse_circles(
    rows: Mapping[int, SkeletonRow], children: Mapping[int | None, list[int]]
) -> None:
    """What no root leads to can only follow itself, or hang on what does."""
    reached = list(children.get(None, []))
    for at in reached:  # grows as it goes
        reached.extend(children.get(at, []))
    if len(reached) != len(rows):
        circle = _circle(rows, next(iter(rows.keys() - set(reached))))
        raise StoreCorrupt(f"these messages follow each other in a circle: {_some(circle)}")


def _circle(rows: Mapping[int, SkeletonRow], start: int) -> list[int]:
    """The ids of the circle that ``start`` is on or hangs on; there is one."""
    seen: dict[int, None] = {}
    at: int | None = start
    while at is not None and at not in seen:
        seen[at] = None
        at = rows[at][1]
    climbed = list(seen)
    return climbed[climbed.index(at) :] if at is not None else climbed


def _some(ids: Sequence[int]) -> str:
    named = ", ".join(map(str, ids[:_NAMED]))
    return named if len(ids) <= _NAMED else f"{named} and {len(ids) - _NAMED} more"
