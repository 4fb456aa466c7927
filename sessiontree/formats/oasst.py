"""OpenAssistant's trees: one JSON object a line.

    {"message_tree_id", "tree_state", "prompt": node}
    node: {"message_id", "parent_id"?, "role": "prompter" | "assistant", "text", "rank"?,
           "created_date"?, "replies": [node], …}

Each tree is a conversation. A node is stored without its ``replies``, which are messages of
their own. There is no head in a tree: it is at the end of the path of the best-ranked replies
(rank 0 is best).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from sessiontree.core.message import Decoded, Role
from sessiontree.errors import FormatError
from sessiontree.formats import document, shapes
from sessiontree.formats.document import Document, Node, NodeCodec, Object, Opening, Place
from sessiontree.formats.transcript import text_at

NAME = "oasst"

ROLES: dict[str, Role] = {"prompter": "user", "assistant": "assistant", "system": "system"}
REPLIES = "replies"


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

    def document(self, found: Object, name: str) -> Document:
        prompt = found.get("prompt")
        if not shapes.is_object(prompt):
            raise FormatError("it has no prompt, so it is no tree")
        opening = Opening(
            document.name_at(found, "message_tree_id") or document.name_at(prompt, "message_id"),
            created_at=document.moment(prompt.get("created_date")),
            head=_best(prompt),
            meta=document.rest_of(found, "message_tree_id", "prompt"),
        )
        return Document(name, opening, _nodes(prompt))


READER = _Reader()


def _nodes(prompt: Object) -> Iterator[Node]:
    for node, above in document.unfolded([prompt], REPLIES):
        native = document.as_object(node)
        parent = document.name_at(native, "parent_id") or above
        time = document.moment(native.get("created_date"))
        model = text_at(native, "model_name") if native.get("role") == "assistant" else None
        yield Node(node, Place(document.name_at(native, "message_id"), parent, False, time, model))


def _best(prompt: Object) -> str | None:
    """The end of the path of the best replies."""
    node: Object = prompt
    found = document.name_at(node, "message_id")
    while replies := _replies(node):
        node = min(replies, key=_rank)
        name = document.name_at(node, "message_id")
        if name is None:
            break
        found = name
    return found


def _replies(node: Object) -> list[Object]:
    replies = node.get(REPLIES)
    items = cast("list[object]", replies) if isinstance(replies, list) else []
    return [item for item in items if shapes.is_object(item)]


def _rank(node: Object) -> float:
    rank = node.get("rank")
    return rank if isinstance(rank, int | float) else float("inf")
