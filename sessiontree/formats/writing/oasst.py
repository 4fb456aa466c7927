"""Message trees of Open Assistant: one JSON object for each root, its replies inside it.

    {"message_tree_id", "tree_state": "ready_for_export", "shows": "path" | "tree",
     "prompt": {"message_id", "parent_id"?, "text", "role": "prompter" | "assistant",
                "created_date", "model_name"?, "rank"?, "checkpoints"?, "replies": [{…}]}}

The format knows text, and two who say it: what else there is on the way (tools, system
prompts, marks, messages without text) is left out, and what follows it hangs on what comes
before it. Written with a stack, piece by piece: a tree may be any number of messages deep.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sessiontree.core.message import Message
from sessiontree.formats.writing.lines import as_json
from sessiontree.formats.writing.times import iso

NAME = "oasst"
ROLES = {"user": "prompter", "assistant": "assistant"}


class Trees:
    """Writes messages that come depth first, each before its replies."""

    def __init__(self, shows: str) -> None:
        self._shows = shows
        self._open: list[tuple[int, str]] = []
        """The messages whose replies are being written: id, and name in the file."""
        self._above: dict[int, int | None] = {}
        """For each message that is left out: what follows it hangs on this one."""
        self._is_first = True

    def add(self, message: Message, labels: Sequence[str] = ()) -> str:
        """The text that opens a message, behind what closes those before it."""
        above = self._told(message.parent_id)
        closing = self._close(above)
        if not _is_told(message):
            self._above[message.id] = above
            return closing
        name = message.key or str(message.id)
        node = _node(message, self._open[-1][1] if self._open else None, labels)
        if self._open:
            begin = "" if self._is_first else ","
        else:
            tree = {"message_tree_id": name, "tree_state": "ready_for_export"}
            begin = as_json(tree | {"shows": self._shows})[:-1] + ',"prompt":'
        self._open.append((message.id, name))
        self._is_first = True
        return f'{closing}{begin}{as_json(node)[:-1]},"replies":['

    def end(self) -> str:
        """What closes the last tree."""
        return self._close(None)

    def _told(self, message_id: int | None) -> int | None:
        """The nearest message above that is told."""
        return self._above.get(message_id, message_id) if message_id is not None else None

    def _close(self, above: int | None) -> str:
        """Close all that ``above`` is not in."""
        pieces: list[str] = []
        while self._open and self._open[-1][0] != above:
            self._open.pop()
            self._is_first = False
            pieces.append("]}" if self._open else "]}}\n")
        return "".join(pieces)


def _is_told(message: Message) -> bool:
    return message.role in ROLES and message.text.strip() != ""


def _node(message: Message, above: str | None, labels: Sequence[str]) -> dict[str, Any]:
    if message.format == NAME:  # it came from there
        return {key: value for key, value in message.native.items() if key != "replies"}
    found: dict[str, Any] = {
        "message_id": message.key or str(message.id),
        "parent_id": above,
        "text": message.text,
        "role": ROLES[message.role],
        "created_date": iso(message.created_at),
        "model_name": message.model,
        "rank": message.meta.get("rank"),
        "checkpoints": list(labels) or None,
    }
    return {key: value for key, value in found.items() if value is not None}
