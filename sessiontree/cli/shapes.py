"""What ``--json`` prints: one document, ASCII, these shapes.

Times are integers, microseconds since 1970 (UTC). Ids are integers. A field may be added;
none is renamed or removed.

    ls            [conversation, …]
    show C        {"conversation": conversation, "checkpoints": [checkpoint, …],
                   "leaves": [leaf, …]}
    show C M      message
    tree C        {"conversation": id, "head": id | null, "nodes": [node, …]}
    path C        [message, …]   oldest first
    checkpoint C  [checkpoint, …]
    history C     [move, …]   oldest first
    resume C      {"conversation": id, "head": id | null, "messages": count,
                   "checkpoints": [checkpoint, …], "interrupted": [call, …],
                   "draft": [message, …]}   what was in flight; its messages have the id 0
    check         [problem, …]
    cost C        {"conversation": id, "head": id | null, "total": spend, "path": spend,
                   "inherited": spend, "models": [{"model", spend…, "path": spend}, …],
                   "turns": [{"message_id", "preview", "on_path", spend…}, …],
                   "branches": [{"leaf", "since", "is_head", "preview", "own": spend,
                   "path": spend}, …]}
    cost --plan   {"load": …, "models": [{"model", "window", "budget", "full": month,
                   "ladder": month}, …]}
    check --repair  {"mended": [mended, …], "left": [problem, …], "backup": file | null}
    import F…     [import, …]   one for each file
    what moves the head (branch, edit, append, checkpoint C LABEL, rewind, undo, redo, fork)
                  {"conversation": id, "head": id | null}

    conversation  id, owner, topic, title, format, head, forked_from, forked_at, meta,
                  created_at, updated_at, messages
    message       id, parent_id, conversation_id, role, format, depth, open_calls, tokens,
                  usage, model, key, meta, created_at, text, calls: [call], results: [result],
                  raw: the message as it was given, to the byte
    node          id, parent_id, role, preview, depth, open_calls, tokens, created_at, labels,
                  children: [id], level, index, count (sibling 2 of 3), on_path, is_head, hidden
    leaf          id, role, preview, depth, created_at
    call          id, name, arguments
    result        id, name, response, is_error
    checkpoint    label, message_id, note, created_at
    move          id, from_id, to_id, cause, created_at, is_current
    problem       kind, conversation_id, message_id, detail, can_mend
    mended        kind, conversation_id, message_id, detail
    import        file, format, entries == kept + already + about + skipped, repaired, closed,
                  roots, branch_points, conversations: [id], head, repairs: [note], skips: [note]
    note          line, last, what
    spend         requests, estimated, unpriced, input, cached, written, output, dollars
    month         requests, input, cached, written, output, dollars, reclaims, largest, ends
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from sessiontree import Conversation, Message, Node, Problem, Repair, Resume
from sessiontree.core.message import ToolCall, ToolResult
from sessiontree.core.outline import Row

if TYPE_CHECKING:
    from sessiontree.transfer import Import

_NODE = [field.name for field in fields(Node)]


def problems(found: Sequence[Problem]) -> list[dict[str, Any]]:
    return [problem._asdict() for problem in found]


def repair(done: Repair) -> dict[str, Any]:
    mended = [each._asdict() for each in done.mended]
    return {"mended": mended, "left": problems(done.left), "backup": done.backup}


def message(saved: Message) -> dict[str, Any]:
    return {
        "id": saved.id,
        "parent_id": saved.parent_id,
        "conversation_id": saved.conversation_id,
        "role": saved.role,
        "format": saved.format,
        "depth": saved.depth,
        "open_calls": saved.open_calls,
        "tokens": saved.tokens,
        "usage": saved.usage,
        "model": saved.model,
        "key": saved.key,
        "meta": saved.meta,
        "created_at": saved.created_at,
        "text": saved.text,
        "calls": [call(each) for each in saved.tool_calls],
        "results": [result(each) for each in saved.tool_results],
        "raw": saved.raw,
    }


def node(row: Row) -> dict[str, Any]:
    return {name: getattr(row.node, name) for name in _NODE} | {
        "level": row.level,
        "index": row.index,
        "count": row.count,
        "on_path": row.on_path,
        "is_head": row.is_head,
        "hidden": row.hidden,
    }


def leaf(saved: Message) -> dict[str, Any]:
    return {
        "id": saved.id,
        "role": saved.role,
        "preview": saved.preview,
        "depth": saved.depth,
        "created_at": saved.created_at,
    }


def call(made: ToolCall) -> dict[str, Any]:
    return {"id": made.id, "name": made.name, "arguments": made.arguments}


def result(given: ToolResult) -> dict[str, Any]:
    return {
        "id": given.id,
        "name": given.name,
        "response": given.response,
        "is_error": given.is_error,
    }


def resume(found: Resume) -> dict[str, Any]:
    return {
        "messages": len(found.path),
        "checkpoints": [each._asdict() for each in found.checkpoints],
        "interrupted": [call(each) for each in found.interrupted],
        "draft": [message(each) for each in found.draft],
    }


def imported(found: Import) -> dict[str, Any]:
    return {
        "file": found.file,
        "format": found.format,
        "entries": found.entries,
        "kept": found.kept,
        "already": found.already,
        "about": found.about,
        "skipped": found.skipped,
        "repaired": found.repaired,
        "closed": found.closed,
        "roots": found.roots,
        "branch_points": found.branch_points,
        "conversations": [chat.id for chat in found.conversations],
        "head": found.head,
        "repairs": [note._asdict() for note in found.repairs],
        "skips": [note._asdict() for note in found.skips],
    }


def place(chat: Conversation) -> dict[str, Any]:
    return {"conversation": chat.id, "head": chat.head}
