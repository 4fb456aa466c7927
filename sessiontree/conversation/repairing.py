"""Repair of a damaged store: what the formats know of it, and the order of the work."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, cast

from sessiontree import formats
from sessiontree.conversation.anchor import now, wrap
from sessiontree.conversation.draft import read_drafted
from sessiontree.core.message import META, MessageRow, NewMessage, Part, ToolCall
from sessiontree.core.pairing import pair
from sessiontree.core.records import Mended, Problem
from sessiontree.errors import SessionTreeError
from sessiontree.store import repair, salvage
from sessiontree.store.messages import json_or_null
from sessiontree.store.reads import DraftRow
from sessiontree.store.sqlite import SQLiteBackend
from sessiontree.store.surgery import Step

LOST = "A message was lost here: the store was damaged."
LOST_RESULT = "Lost: the store was damaged, and the result of this call with it."
LOST_CALL = "The call that this answers was lost: the store was damaged."


class Formats:
    """What ``store.surgery`` must know of contents."""

    def step(self, row: MessageRow, /) -> Step | None:
        message = wrap(row)
        try:
            decoded = formats.codec(row.format).decode(message.native)
            return Step(decoded.role, message.tool_calls, message.tool_results)
        except (SessionTreeError, ValueError):
            return None

    def stand_in(self, calls: Sequence[ToolCall], was: MessageRow | None, /) -> NewMessage:
        """Results that say that they were lost, or a mark. What is known of a message whose
        content only is gone is kept in its meta."""
        note: dict[str, Any] = {"kind": "lost"}
        if was is not None:
            note |= {"role": was.role, "format": was.format, "preview": was.preview}
        meta = _meta(was) | {META: note}
        if calls:
            parts = [_lost_result(call) for call in calls]
            return formats.read({"role": "tool", "parts": parts}, format="otel", meta=meta)
        began = f" It began: {was.preview}" if was is not None and was.preview else ""
        return _lost_mark(meta, text=LOST + began)

    def drafted(self, step: Sequence[DraftRow], /) -> dict[int, tuple[NewMessage, str]]:
        made: dict[int, tuple[NewMessage, str]] = {}
        messages: list[NewMessage] = []
        for at, row in enumerate(step):
            try:
                messages.append(read_drafted(row))
            except SessionTreeError as error:
                made[at] = _lost_mark(text=LOST), str(error)
                messages.append(made[at][0])
        for violation in pair(messages).violations:
            if violation.kind != "unanswered_call":
                mark = _lost_mark(text=LOST_CALL, result=step[violation.at][-1])
                made[violation.at] = mark, f"the result for {violation.call_id!r}: {violation.why}"
        return made

    def astray(self, row: MessageRow, /) -> str | None:
        meta = _meta(row)
        note = meta.get(META)
        ours = dict(cast("Mapping[str, Any]", note)) if isinstance(note, Mapping) else {}
        return json_or_null(meta | {META: ours | {"lost_parent": row.parent_id}})


def _lost_mark(meta: Mapping[str, Any] | None = None, **said: str) -> NewMessage:
    mark = {"role": "mark", "kind": "lost"} | said
    return formats.read(mark, format="mark", meta=meta or {META: {"kind": "lost"}})


def _meta(row: MessageRow | None) -> dict[str, Any]:
    """The notes of a row; none where they cannot be read."""
    try:
        return {} if row is None else wrap(row).meta
    except SessionTreeError:
        return {}


def _lost_result(call: ToolCall) -> Part:
    return {
        "type": "tool_call_response",
        "id": call.id if call.given else None,
        "name": call.name,
        "response": LOST_RESULT,
        "is_error": True,
    }


async def mend(
    backend: SQLiteBackend, problems: Sequence[Problem]
) -> tuple[list[Mended], str | None]:
    """Mend what these problems are about; a backup is written first. Returns what was done,
    and the file of the backup; None for a store in memory."""
    if not backend.how.damaged:
        backend.require_writable()
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    name = f"{backend.name}.before-repair-{stamp}"
    if backend.how.damaged or any(each.kind == "damaged_file" for each in problems):
        return await backend.read(salvage.salvage, backend.how, name, Formats(), now())
    backup = None if backend.how.in_memory else await backend.read(repair.back_up, name)
    found = (problem.conversation_id for problem in problems)
    conversations = {conversation for conversation in found if conversation is not None}
    try:
        mended = await backend.write(repair.mend, conversations, Formats(), now())
    except SessionTreeError:  # nothing was changed; whoever is cancelled cannot know
        if backup is not None:
            repair.remove(backup)
        raise
    return mended, backup
