"""What the tests of written formats share: a conversation that is made of a drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sessiontree import formats
from sessiontree.core.message import Message, MessageRow
from sessiontree.core.records import ConversationInfo
from sessiontree.core.tree import SkeletonRow, Tree

TIME = 1_700_000_000_000_000


def info(**more: Any) -> ConversationInfo:
    made = ConversationInfo(7, "ada", "T-1", "Tides", None, 3, None, None, {}, TIME, 0)
    return made._replace(**more)


def message(
    native: Mapping[str, Any],
    message_id: int = 1,
    parent: int | None = None,
    *,
    format: str | None = None,
    **more: Any,
) -> Message:
    made = formats.read(native, format=format, default="anthropic")
    row = MessageRow(
        message_id, 7, parent, made.role, made.format, 0, 0, made.tokens, None, made.model,
        made.preview, None, None, None, None, TIME, made.content,
    )  # fmt: skip
    return Message(row._replace(**more), formats.codec)


def chain(*natives: Mapping[str, Any], format: str | None = None) -> list[Message]:
    """Messages of which each follows the one before it, with ids from 1."""
    found: list[Message] = []
    open_calls = 0
    for at, native in enumerate(natives, 1):
        made = message(native, at, at - 1 or None, format=format, depth=at - 1)
        open_calls += len(made.tool_calls) - len(made.tool_results)
        found.append(Message(made.row._replace(open_calls=open_calls), formats.codec))
    return found


def tree_of(
    messages: Sequence[Message],
    head: int | None = None,
    labels: Mapping[int, Sequence[str]] | None = None,
) -> Tree:
    rows: list[SkeletonRow] = [
        (m.id, m.parent_id, m.role, m.preview, m.depth, m.open_calls, m.tokens, m.created_at)
        for m in messages
    ]
    return Tree.build(rows, head, labels)


def said(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": text}


def calling(call: str, name: str = "Bash", text: str = "", **arguments: Any) -> dict[str, Any]:
    use = {"type": "tool_use", "id": call, "name": name, "input": arguments}
    content = [{"type": "text", "text": text}, use] if text else [use]
    return {"role": "assistant", "content": content}


def answering(call: str, output: object = "done", **more: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call, "content": output, **more}
    return {"role": "user", "content": [block]}
