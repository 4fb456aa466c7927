"""pi's session files, versions 1 to 3: a header, then one entry a line.

    {"type": "session", "version": 3, "id", "timestamp", "cwd"}
    {"type": "message", "id", "parentId", "timestamp", "message": {…}}

Version 1 has no ids; its order is the chain. An entry is stored as its line. By the role of
its message (``message``), or by its type:

    ===========================================  ============================================
    user, assistant, toolResult                  what they are
    bashExecution, custom, hookMessage,          a user message: the model reads it
    custom_message
    branchSummary, branch_summary                a user message, marked as a digest
    compactionSummary                            a user message
    bashExecution with ``excludeFromContext``    a mark
    compaction                                   a mark that speaks of the first entry kept; one
                                                 that keeps none holds its summary in its meta
    label                                        a mark, and a checkpoint on its target
    session_info                                 a mark, and the title
    session (the header)                         a mark before all
    model_change, … and all others               a mark
    ===========================================  ============================================

oh-my-pi writes the same, and more:

    ===========================================  ============================================
    title (a slot of 256 bytes on line 1)        a mark before all, and the title
    title_change                                 a mark, and the title
    session_init                                 the system prompt, as it was sent
    reset_boundary                               a mark: what came before is not sent
    developer, fileMention                       a user message
    pythonExecution                              as bashExecution
    images ``blob:sha256:…``                     files that lie elsewhere, where they were not
                                                 put in (see transfer/blobs.py)
    ===========================================  ============================================

The head is where the last entry is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from sessiontree.core.message import Decoded, Native, NewMessage, Part, Role, text_of
from sessiontree.errors import FormatError
from sessiontree.formats import shapes, transcript, usual
from sessiontree.formats.transcript import Entry, Head, Notes, Row, Source, Tells, text_at

NAME = "pi"

ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "toolResult": "tool",
    "bashExecution": "user",
    "custom": "user",
    "hookMessage": "user",
    "branchSummary": "user",
    "compactionSummary": "user",
    "developer": "user",
    "fileMention": "user",
    "pythonExecution": "user",
}
OWN_ROLES = frozenset(ROLES) - {"user", "assistant", "custom", "developer"}
"""Roles that no other format has."""

ENTRY_KINDS = frozenset(
    {
        "message",
        "session",
        "compaction",
        "branch_summary",
        "custom",
        "custom_message",
        "label",
        "session_info",
        "model_change",
        "thinking_level_change",
        "title",
        "title_change",
        "service_tier_change",
        "reset_boundary",
        "ttsr_injection",
        "credential_pin",
        "session_init",
        "mode_change",
        "model_usage",
        "archive",
    }
)
BESIDE = frozenset({"session", "title"})
WITH_ROLE = frozenset({"model_change", "model_usage"})
"""Entries of oh-my-pi's that have a role, which is that of a model."""
BLOB = "blob:sha256:"
SUMMARIES = {
    "branchSummary": "A branch of this conversation was explored before. What it found:",
    "compactionSummary": "The conversation up to here was summarised:",
}
_ENTRY_ROLES = {"branch_summary": "branchSummary", "custom_message": "custom"}
"""Entries that are messages without an envelope."""


class Pi:
    """The codec of its entries, and of the messages in them."""

    name = NAME

    def recognises(self, native: Native) -> bool:
        if _is_entry(native):
            return native.get("type") in ENTRY_KINDS and "encrypted_content" not in native
        if shapes.is_one_of(native.get("role"), OWN_ROLES):
            return True
        return native.get("role") == "assistant" and shapes.has_block(
            native.get("content"), frozenset({"toolCall"})
        )

    def decode(self, native: Native) -> Decoded:
        if "role" in native and not _is_entry(native):
            return _decoded(native)
        kind = shapes.kind_in(native, NAME, "it")
        message = native.get("message")
        if kind in _ENTRY_ROLES:
            message = {**native, "role": _ENTRY_ROLES[kind]}
        if isinstance(message, Mapping):
            try:
                return _decoded(cast("Mapping[str, Any]", message))
            except FormatError:  # an entry is never lost: what it says is kept, unread
                pass
        if kind == "session_init" and (prompt := _prompt(native)):
            return Decoded("system", [shapes.text_part(prompt)])
        return Decoded("mark", _parts_of_mark(native, kind))

    def encode(self, role: Role, parts: Sequence[Part]) -> list[dict[str, Any]]:
        if role == "mark":
            return []
        answers, rest = shapes.split(shapes.with_ids(parts))
        own: Role = "user" if role == "tool" else role
        said = [block for part in rest for block in _blocks(part, own)]
        messages = [_said(own, said)] if said else []
        return [{"type": "message", "message": m} for m in (*messages, *map(_result, answers))]


CODEC = Pi()


def _is_entry(native: Native) -> bool:
    kind = native.get("type")
    if "role" in native and not shapes.is_one_of(kind, WITH_ROLE):
        return False
    is_slot = kind == "title" and "pad" in native
    return is_slot or ("type" in native and ("timestamp" in native or "id" in native))


# --- decode -------------------------------------------------------------------------------


def _decoded(message: Mapping[str, Any]) -> Decoded:
    """A message of pi's. Its fields beside role and content ride on the first part."""
    role = shapes.role_in(message, ROLES, NAME)
    own = str(message["role"])
    if own == "toolResult":
        return Decoded(role, [_response(message)])
    known = frozenset({"role", "content"})
    if own in SUMMARIES:
        text = f"{SUMMARIES[own]}\n\n{shapes.text_in(message, 'summary', NAME, 'it')}"
        parts, known = [shapes.text_part(text)], frozenset({"role", "summary"})
    elif own == "fileMention":
        parts, known = [shapes.text_part(_files(message))], frozenset({"role", "files"})
    elif own in ("bashExecution", "pythonExecution"):
        parts, known = [shapes.text_part(_bash(message))], frozenset({"role"})
        role = "mark" if message.get("excludeFromContext") else role
    else:
        parts = _parts(message.get("content"), "content")
    return Decoded(role, shapes.with_message_fields(parts, message, known, NAME))


def _parts(content: object, where: str) -> list[Part]:
    if isinstance(content, str):
        return [shapes.text_part(content)]
    blocks = shapes.blocks_in(content, NAME, where)
    return [_part(block, f"{where}[{i}]") for i, block in enumerate(blocks)]


def _part(block: Mapping[str, Any], where: str) -> Part:
    kind = shapes.kind_in(block, NAME, where)
    if kind == "text":
        part = shapes.text_part(shapes.text_in(block, "text", NAME, where))
        return shapes.ride(part, block, frozenset({"type", "text"}), NAME)
    if kind == "thinking":
        text = shapes.text_in(block, "thinking", NAME, where)
        part = {"type": "reasoning", "content": text, "provider": NAME}
        return shapes.ride(part, block, frozenset({"type", "thinking"}), NAME)
    if kind == "toolCall":
        part = {
            "type": "tool_call",
            "id": shapes.text_in(block, "id", NAME, where),
            "name": shapes.text_in(block, "name", NAME, where),
            "arguments": block.get("arguments"),
        }
        return shapes.ride(part, block, frozenset({"type", "id", "name", "arguments"}), NAME)
    if kind == "image" and isinstance(block.get("data"), str):
        mime_type = shapes.text_in(block, "mimeType", NAME, where)
        if block["data"].startswith(BLOB):
            part = shapes.file(block["data"], "image", NAME) | {"mime_type": mime_type}
            return shapes.ride(part, block, frozenset({"type", "data", "mimeType"}), NAME)
        part = shapes.blob(mime_type, block["data"])
        return shapes.ride(part, block, frozenset({"type", "data", "mimeType"}), NAME)
    return shapes.keep(block, kind, NAME)


def _response(message: Mapping[str, Any]) -> Part:
    part: Part = {
        "type": "tool_call_response",
        "id": shapes.text_in(message, "toolCallId", NAME, "it"),
        "response": _parts(message.get("content"), "content"),
        "is_error": bool(message.get("isError")),
    }
    if isinstance(message.get("toolName"), str):
        part["name"] = message["toolName"]
    known = frozenset({"role", "toolCallId", "toolName", "content", "isError"})
    return shapes.ride(part, message, known, NAME)


def _bash(message: Mapping[str, Any]) -> str:
    """A command that the user ran, as the model reads it."""
    output = message.get("output")
    lines = [f"Ran `{message.get('command', message.get('code'))}`"]
    lines.append(f"```\n{output}\n```" if output else "(no output)")
    if message.get("cancelled"):
        lines.append("(cancelled)")
    elif message.get("exitCode"):
        lines.append(f"Exit code: {message['exitCode']}")
    if message.get("truncated") and message.get("fullOutputPath"):
        lines.append(f"(shortened; all of it is in {message['fullOutputPath']})")
    return "\n".join(lines)


def _files(message: Mapping[str, Any]) -> str:
    """The files that a message names, with what they hold."""
    files = shapes.blocks_in(message.get("files"), NAME, "files")
    return "\n\n".join(f"{file.get('path')}:\n{file.get('content') or ''}" for file in files)


def _prompt(native: Native) -> str:
    """The system prompt of a session that another began."""
    given = native.get("systemPrompt")
    blocks = cast("list[object]", given) if isinstance(given, list) else [given]
    return "\n\n".join(block for block in blocks if isinstance(block, str))


def _parts_of_mark(native: Native, kind: str) -> list[Part]:
    """A line that says what it is, and the entry as it is."""
    row: Part = {"type": f"{NAME}:{kind}", "provider": NAME, "native": dict(native)}
    line = _line_of_mark(native, kind)
    return [shapes.text_part(line), row] if line else [row]


def _line_of_mark(native: Native, kind: str) -> str:
    if kind == "compaction":
        return str(native.get("summary") or "")
    told = {
        "session": ("cwd",),
        "model_change": ("provider", "modelId", "model"),
        "thinking_level_change": ("thinkingLevel",),
        "label": ("label",),
        "session_info": ("name",),
        "title": ("title",),
        "title_change": ("title",),
        "mode_change": ("mode",),
    }
    values = [str(native[key]) for key in told.get(kind, ()) if native.get(key)]
    return f"{kind.replace('_', ' ')}: {'/'.join(values)}" if values else ""


# --- encode -------------------------------------------------------------------------------


def _said(role: Role, blocks: list[dict[str, Any]]) -> dict[str, Any]:
    return {"role": "assistant" if role == "assistant" else "user", "content": blocks}


def _blocks(part: Part, role: Role) -> list[dict[str, Any]]:
    kind = part.get("type")
    own = shapes.extras(part, NAME)
    if kind == "text":
        return [{"type": "text", "text": part.get("content")} | own]
    if kind == "reasoning":
        thought = {"type": "thinking", "thinking": part.get("content")} | own
        return [thought] if part.get("provider") == NAME else []
    if kind == "tool_call":
        arguments = shapes.arguments_object(part.get("arguments"))
        call = {"type": "toolCall", "id": part.get("id"), "name": part.get("name")}
        return [call | {"arguments": arguments} | own]
    if kind == "blob" and part.get("modality") == "image" and role != "assistant":
        image = {"type": "image", "data": part.get("content"), "mimeType": part.get("mime_type")}
        return [image | own]
    if shapes.is_media(part):
        return [{"type": "text", "text": shapes.media_in_words(part, NAME)}]
    block = shapes.kept(part, NAME)
    return [] if block is None else [block]


def _result(part: Part) -> dict[str, Any]:
    response = part.get("response")
    if shapes.are_parts(response):
        inner = cast("list[Part]", response)
        content = [block for one in inner for block in _blocks(one, "user")]
    else:
        content = [{"type": "text", "text": shapes.response_text(response)}]
    result = {
        "role": "toolResult",
        "toolCallId": part.get("id"),
        "toolName": part.get("name") or "",
        "content": content,
        "isError": bool(part.get("is_error")),
    }
    return result | shapes.extras(part, NAME)


# --- the reader ---------------------------------------------------------------------------


class _Reader:
    name = NAME
    codec = NAME
    answers = NAME
    goes_on: str | None = None
    is_settled = False

    def recognises(self, head: Head) -> bool:
        if any(row.get("type") == "session" and "id" in row for row in head.rows[:2]):
            return True
        return bool(head.rows) and any(
            _is_entry(row) and row.get("type") == "message" and "message" in row
            for row in head.rows
        )

    def rows(self, source: Source, skipped: Notes) -> Iterator[Row]:
        return transcript.json_lines(source, skipped)

    def entry(self, row: Row) -> Entry:
        native = row.native
        entry = transcript.looked(row, CODEC, usual.pi(native))
        entry.beside = shapes.is_one_of(native.get("type"), BESIDE)
        entry.topic = text_at(native, "id") if native.get("type") == "session" else None
        entry.key = "title" if native.get("type") == "title" else None  # it is written over
        entry.id = text_at(native, "id") if not entry.beside else None
        entry.parent = text_at(native, "parentId")
        entry.follows = "parentId" not in native
        entry.created_at = transcript.microseconds(native.get("timestamp"))
        entry.tells = _tells(native, entry.role)
        return entry

    def message(self, text: str, entry: Entry) -> NewMessage:
        made = transcript.message(text, NAME, entry)
        if entry.tells is not None and entry.tells.kind == "compaction" and not entry.tells.ref:
            # it keeps nothing (but what it holds itself): its summary stands for all before it
            made.meta = transcript.our_meta("compaction", text=_summary_in(text))
        return made


READER = _Reader()


def _summary_in(text: str) -> str:
    """The summary of a compaction, and in words the messages that it holds itself."""
    native = cast("dict[str, Any]", json.loads(text))
    tail = native.get("retainedTail")
    kept = cast("list[Any]", tail) if isinstance(tail, list) else []
    words = [str(native.get("summary") or ""), *map(_in_words, kept)]
    return "\n\n".join(filter(None, words))


def _in_words(message: Any) -> str:
    try:
        role, parts = CODEC.decode({"type": "message", "message": message})
    except FormatError:
        return ""
    results = [part["response"] for part in parts if part["type"] == "tool_call_response"]
    said = text_of([*parts, *(part for result in results for part in result)])
    return f"{role}: {said}" if said else ""


def _tells(native: Native, role: Role) -> Tells | None:
    kind = native.get("type")
    if kind == "compaction":
        index = native.get("firstKeptEntryIndex")
        ref = text_at(native, "firstKeptEntryId") or (index if isinstance(index, int) else None)
        return Tells(kind="compaction", ref=ref)
    if kind == "branch_summary" and role == "user":
        return Tells(kind="digest", ref=text_at(native, "fromId"))
    if kind == "label":
        return Tells(target=text_at(native, "targetId"), label=text_at(native, "label"))
    if kind == "session_info":
        return Tells(title=text_at(native, "name"))
    if kind in ("title", "title_change", "session"):
        return Tells(title=text_at(native, "title"))
    if kind == "reset_boundary":
        return Tells(kind="cut")
    if role == "mark" and (kind in _ENTRY_ROLES or kind == "message") and not _is_private(native):
        return Tells(mended="its message is not one that pi writes; it is kept as a mark")
    return None


def _is_private(native: Native) -> bool:
    """True for a command whose output the model is not to read."""
    message = native.get("message")
    return isinstance(message, Mapping) and bool(
        cast("Mapping[str, Any]", message).get("excludeFromContext")
    )
