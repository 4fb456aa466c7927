"""OpenAssistant's trees: one JSON object a line.

    {"message_tree_id", "tree_state", "prompt": node}
    node: {"message_id", "parent_id"?, "role": "prompter" | "assistant", "text", "rank"?,
           "created_date"?, "replies": [node], …}

Or flat, as the data set of messages is published: one node a line, without replies, each with
``message_tree_id`` and ``parent_id``. The lines of a tree stand together there; in a file of
less than 64 MiB they may stand anywhere.

Each tree is a conversation. A node is stored without its ``replies``, which are messages of
their own. There is no head in a tree: it is at the end of the path of the best-ranked replies
(rank 0 is best).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

from sessiontree.core.message import Decoded, Role
from sessiontree.errors import FormatError
from sessiontree.formats import document, shapes
from sessiontree.formats.document import Document, Node, NodeCodec, Object, Opening, Place
from sessiontree.formats.transcript import Notes, Source, text_at

NAME = "oasst"

ROLES: dict[str, Role] = {"prompter": "user", "assistant": "assistant", "system": "system"}
REPLIES = "replies"
ROWS = "rows of a flat tree"
"""The key, of ours, under which they are gathered."""
MAX_HELD = 64 << 20
"""Bytes of a flat file that is held in memory, to gather trees from anywhere in it."""


class OASST(NodeCodec):
    """The codec of its nodes."""

    name = NAME
    marks = frozenset({"message_id", "role", "text"})

    def said(self, native: Object) -> Decoded:
        text = shapes.text_in(native, "text", NAME, "it")
        return Decoded(shapes.role_in(native, ROLES, NAME), [shapes.text_part(text)])

    def written(self, role: Role, text: str) -> dict[str, Any]:
        own = {"assistant": "assistant", "system": "system"}.get(role, "prompter")
        return {"role": own, "text": text}


CODEC = OASST()


class _Reader(document.DocumentReader):
    name = NAME
    marks = frozenset({"message_tree_id", "prompt.replies"})

    def values(self, source: Source, skipped: Notes) -> Iterator[tuple[object, int]]:
        return _gathered(super().values(source, skipped), source.size <= MAX_HELD)

    def document(self, found: Object, name: str) -> Document:
        if ROWS in found:
            return _flat(found[ROWS], name)
        prompt = found.get("prompt")
        if not shapes.is_object(prompt):
            raise FormatError("it has no prompt, so it is no tree")
        opening = Opening(
            document.name_at(found, "message_tree_id") or document.name_at(prompt, "message_id"),
            created_at=document.moment(prompt.get("created_date")),
            head=_best(prompt, _replies),
            meta=document.rest_of(found, "message_tree_id", "prompt"),
        )
        return Document(name, opening, _nodes(prompt))


READER = _Reader()


def _nodes(prompt: Object) -> Iterator[Node]:
    for node, above in document.unfolded([prompt], REPLIES):
        native = document.as_object(node)
        yield Node(node, _place(native, document.name_at(native, "parent_id") or above))


def _place(native: Object, parent: str | None) -> Place:
    time = document.moment(native.get("created_date"))
    model = text_at(native, "model_name") if native.get("role") == "assistant" else None
    return Place(document.name_at(native, "message_id"), parent, False, time, model)


def _best(prompt: Object, replies_to: Callable[[Object], list[Object]]) -> str | None:
    """The end of the path of the best replies."""
    node: Object = prompt
    found = document.name_at(node, "message_id")
    seen = {found}
    while replies := replies_to(node):
        node = min(replies, key=_rank)
        name = document.name_at(node, "message_id")
        if name is None or name in seen:
            break
        found = name
        seen.add(name)
    return found


def _replies(node: Object) -> list[Object]:
    replies = node.get(REPLIES)
    items = cast("list[object]", replies) if isinstance(replies, list) else []
    return [item for item in items if shapes.is_object(item)]


def _rank(node: Object) -> float:
    rank = node.get("rank")
    return rank if isinstance(rank, int | float) else float("inf")


# --- flat -----------------------------------------------------------------------------------


def _gathered(found: Iterator[tuple[object, int]], holds_all: bool) -> Iterator[tuple[object, int]]:
    """The values of a file, those that are rows of a flat tree as one value a tree."""
    trees: dict[str, list[Object]] = {}
    end = 0
    for value, end in found:
        tree = _tree_of(value)
        if tree is None:
            yield value, end
            continue
        if not holds_all and tree not in trees:  # the one before is whole
            yield from (({ROWS: rows}, end) for rows in trees.values())
            trees.clear()
        trees.setdefault(tree, []).append(cast("Object", value))
    yield from (({ROWS: rows}, end) for rows in trees.values())


def _tree_of(value: object) -> str | None:
    """The tree that a row belongs to; None for what is no such row."""
    if not shapes.is_object(value) or "prompt" in value or "message_id" not in value:
        return None
    return document.name_at(value, "message_tree_id")


def _flat(rows: list[Object], name: str) -> Document:
    replies: dict[str | None, list[Object]] = {}
    for row in rows:
        replies.setdefault(document.name_at(row, "parent_id"), []).append(row)
    first = (replies.get(None) or rows)[0]
    opening = Opening(
        document.name_at(first, "message_tree_id"),
        created_at=document.moment(first.get("created_date")),
        head=_best(first, lambda node: replies.get(document.name_at(node, "message_id"), [])),
        meta=document.rest_of({key: first[key] for key in ("tree_state",) if key in first}),
    )
    nodes = (Node(row, _place(row, document.name_at(row, "parent_id"))) for row in rows)
    return Document(name, opening, nodes)
