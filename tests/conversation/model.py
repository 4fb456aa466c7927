"""A conversation as a plain model in memory: what the store ought to say.

Written from the design, not from the engine. Nothing here is fast, and nothing is shared
with the package but the names of its errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import sessiontree


class Refused(Exception):
    """The model says that the engine must refuse this, with this error."""

    def __init__(self, error: type[sessiontree.SessionTreeError], **facts: Any) -> None:
        super().__init__(error.__name__)
        self.error = error
        self.facts = facts


@dataclass(frozen=True)
class Call:
    id: str | None
    name: str
    position: int

    @property
    def known_as(self) -> str:
        return self.id or f"call_{self.position}"


@dataclass(frozen=True)
class Result:
    id: str | None
    name: str | None


class Spec:
    """A message to be said. ``given`` is what the engine gets: the mapping, or JSON text."""

    def __init__(
        self,
        native: dict[str, Any],
        given: Any,
        calls: tuple[Call, ...] = (),
        results: tuple[Result, ...] = (),
        key: str | None = None,
    ) -> None:
        self.native = native
        self.given = given
        self.calls = calls
        self.results = results
        self.key = key

    @property
    def role(self) -> str:
        return self.native["role"]

    def __repr__(self) -> str:
        ids = [call.known_as for call in self.calls] + [result.id for result in self.results]
        return f"<{self.role} {str(self.native['content'])[:8]!r} {ids} {self.key}>"


@dataclass
class Node:
    """A saved message."""

    id: int
    parent: int | None
    spec: Spec
    open: int
    depth: int
    system: int | None
    ref: int | None = None
    meta: dict[str, Any] = field(default_factory=dict)


@dataclass
class Moved:
    prev: int | None
    source: int | None
    to: int | None
    cause: str


@dataclass
class Drafted:
    parent: int | None
    specs: list[Spec]


def pairing(specs: Sequence[Spec]) -> tuple[list[int], list[Call]]:
    """Open calls after each message, and those left open; Refused for an orphan."""
    waiting: list[Call] = []
    counts: list[int] = []
    for spec in specs:
        waiting.extend(spec.calls)
        for result in spec.results:
            answered = _answered(waiting, result)
            if answered is None:
                raise Refused(sessiontree.OrphanToolResult)
            waiting.remove(answered)
        counts.append(len(waiting))
    return counts, waiting


def _answered(waiting: list[Call], result: Result) -> Call | None:
    if result.id is not None:
        same = [call for call in waiting if call.known_as == result.id]
        given = [call for call in same if call.id is not None]
        if same:
            return (given or same)[-1]
    elif result.name is not None:
        named = [call for call in waiting if call.name == result.name]
        if named:
            return named[0]
    nameless = [call for call in waiting if call.id is None]
    if result.id is not None and result.name is not None:
        nameless = [call for call in nameless if call.name == result.name]
    return nameless[0] if nameless else None


def settled(specs: Sequence[Spec]) -> list[int]:
    """Open calls after each message of a batch that must end at a boundary."""
    counts, waiting = pairing(specs)
    if waiting:
        raise Refused(sessiontree.UnsettledTurn)
    return counts


class Tale:
    """One conversation."""

    def __init__(self, topic: str | None = None) -> None:
        self.id = 0
        self.topic = topic
        self.nodes: dict[int, Node] = {}
        self.head: int | None = None
        self.moves: list[Moved] = []
        self.current: int | None = None
        self.labels: dict[str, int] = {}
        self.drafts: dict[int, Drafted] = {}
        self.forked_from: int | None = None

    # ---- looking ----

    def path(self, leaf: int | None) -> list[int]:
        found: list[int] = []
        while leaf is not None:
            found.append(leaf)
            leaf = self.nodes[leaf].parent
        return found[::-1]

    def children(self, parent: int | None) -> list[int]:
        return sorted(i for i, node in self.nodes.items() if node.parent == parent)

    def leaves(self) -> list[int]:
        return [i for i in sorted(self.nodes) if not self.children(i)]

    def boundaries(self) -> list[int]:
        return [i for i in sorted(self.nodes) if self.nodes[i].open == 0]

    def by_key(self, key: str | None) -> int | None:
        return next((i for i, n in self.nodes.items() if key and n.spec.key == key), None)

    def history(self) -> list[tuple[int | None, int | None, str, bool]]:
        return [(m.source, m.to, m.cause, i == self.current) for i, m in enumerate(self.moves)]

    def require(self, at: int | None, *, boundary: bool = True) -> None:
        if at is None:
            return
        if at not in self.nodes:
            raise Refused(sessiontree.MessageNotFound)
        if boundary and self.nodes[at].open:
            raise Refused(sessiontree.NotABoundary)

    # ---- moving ----

    def move(self, to: int | None, cause: str) -> None:
        if to == self.head:
            return
        self.moves.append(Moved(self.current, self.head, to, cause))
        self.current = len(self.moves) - 1
        self.head = to

    def undo(self) -> None:
        if self.current is None:
            raise Refused(sessiontree.NothingToUndo)
        move = self.moves[self.current]
        self.head, self.current = move.source, move.prev

    def redo(self) -> None:
        follow = [i for i, move in enumerate(self.moves) if move.prev == self.current]
        if not follow:
            raise Refused(sessiontree.NothingToUndo)
        self.current = follow[-1]
        self.head = self.moves[self.current].to

    def prompt(self) -> int | None:
        """What retry would answer again."""
        asked = [
            i
            for i in self.path(self.head)
            if self.nodes[i].spec.role == "user" and self.nodes[i].open == 0
        ]
        return asked[-1] if asked else None

    # ---- adding ----

    def plan(self, specs: Sequence[Spec], start: int | None) -> tuple[int | None, list[Spec], bool]:
        """Where the first new message goes, what is new, and whether any was known."""
        known = [self.by_key(spec.key) for spec in specs]
        for at in known:
            if at is None:
                break
            start = at
        fresh = [spec for spec, at in zip(specs, known, strict=True) if at is None]
        if fresh:
            if len(fresh) < len(specs):
                settled(fresh)
            self.require(start)
        return start, fresh, len(fresh) < len(specs)

    def grow(
        self,
        ids: Sequence[int],
        specs: Sequence[Spec],
        parent: int | None,
        *,
        ref: int | None = None,
        meta: dict[str, Any] | None = None,
    ) -> None:
        """Put saved messages into the tree; the engine gave their ids."""
        counts, _ = pairing(specs)
        for at, (new, spec, count) in enumerate(zip(ids, specs, counts, strict=True)):
            above = self.nodes[parent] if parent is not None else None
            self.nodes[new] = Node(
                new,
                parent,
                spec,
                count,
                above.depth + 1 if above else 0,
                new if spec.role == "system" else above.system if above else None,
                ref if at == 0 else None,
                meta or {},
            )
            parent = new

    def label(self, label: str, at: int | None, replaces: bool = False) -> None:
        if at is None:
            raise Refused(sessiontree.MessageNotFound)
        self.require(at)
        if label in self.labels and not replaces:
            raise Refused(sessiontree.CheckpointExists)
        self.labels[label] = at

    def fork(self, at: int | None, ids: Sequence[int]) -> Tale:
        """The path of ``at`` under the ids of its copy."""
        new = dict(zip(self.path(at), ids, strict=True))
        tale = Tale()
        for old, copy in new.items():
            node = self.nodes[old]
            tale.nodes[copy] = replace(
                node,
                id=copy,
                parent=None if node.parent is None else new[node.parent],
                system=None if node.system is None else new[node.system],
                ref=new.get(node.ref) if node.ref is not None else None,
            )
        tale.labels = {label: new[i] for label, i in self.labels.items() if i in new}
        tale.head = None if at is None else new[at]
        tale.forked_from = self.id
        return tale

    def let_go(self, turns: Iterable[int]) -> None:
        for turn in turns:
            self.drafts.pop(turn, None)
