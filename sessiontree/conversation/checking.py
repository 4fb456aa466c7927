"""Which result answers which call, looked at again on every path of a store."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter

from sessiontree.conversation.anchor import wrap
from sessiontree.conversation.repairing import Formats
from sessiontree.core.message import Message, ToolCall, ToolResult
from sessiontree.core.pairing import OpenCall, pair
from sessiontree.core.records import Problem
from sessiontree.errors import SessionTreeError
from sessiontree.store import checks, reads
from sessiontree.store.sqlite import SQLiteBackend

PAGE = 1_000


async def check_pairing(backend: SQLiteBackend) -> list[Problem]:
    """Problems with contents and with calls and results, of all conversations."""
    found: list[Problem] = []
    for conversation in await backend.read(checks.conversation_ids):
        found.extend(await _check_conversation(backend, conversation))
        found.extend(await _check_drafts(backend, conversation))
    return found


async def _check_drafts(backend: SQLiteBackend, conversation: int) -> list[Problem]:
    """What is in flight can be read, and a turn can go on with it."""
    rows = await backend.read(checks.drafts, conversation)
    return [
        Problem("bad_draft", conversation, step[0][1], f"in flight, of turn {turn}: {why}", True)
        for turn, rows_of_turn in groupby(rows, key=itemgetter(0))
        for step in [list(rows_of_turn)]
        for _, why in Formats().drafted(step).values()
    ]


async def _check_conversation(backend: SQLiteBackend, conversation: int) -> list[Problem]:
    """Parents come before children in id order; only open calls are remembered."""
    found: list[Problem] = []
    waiting: dict[int, list[OpenCall]] = {}
    ids = await backend.read(reads.all_ids, conversation)
    for start in range(0, len(ids), PAGE):
        some = ids[start : start + PAGE]
        for row in await backend.read(checks.messages_at, conversation, some):
            message = wrap(row)
            before = waiting.get(row.parent_id or 0, [])
            left = _check_message(message, before, found)
            if left:
                waiting[row.id] = left
    return found


def _check_message(
    message: Message, before: list[OpenCall], found: list[Problem]
) -> list[OpenCall]:
    """The calls open after ``message``; what is wrong with it goes to ``found``."""

    def report(kind: str, detail: str, can_mend: bool = False) -> None:
        found.append(Problem(kind, message.conversation_id, message.id, detail, can_mend))

    try:
        step = _Step(message.tool_calls, message.tool_results)
    except (SessionTreeError, ValueError) as error:
        report("unreadable_content", str(error))
        return before if message.open_calls else []  # what it counted is all that is known
    if message.role == "mark":
        step = _Step((), ())
    pairing = pair([step], before)
    for violation in pairing.violations:
        if violation.kind != "unanswered_call":
            report(violation.kind, f"the result for {violation.call_id!r}: {violation.why}")
    if len(pairing.open) != message.open_calls:
        detail = f"it says {message.open_calls} open call(s), its path has {len(pairing.open)}"
        report("wrong_open_calls", detail, True)
    return pairing.open


class _Step:
    """Calls and results of one message, as pairing wants them."""

    __slots__ = ("calls", "results")

    def __init__(self, calls: tuple[ToolCall, ...], results: tuple[ToolResult, ...]) -> None:
        self.calls = calls
        self.results = results
