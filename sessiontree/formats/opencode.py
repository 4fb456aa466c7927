"""opencode's sessions: its database, its export, and the folder it kept them in before.

    {"info": {session}, "messages": [{"info", "parts"}]}                    an export
    {"session": row, "message": [row], "part": [row], …}      its database, one session a line
                                       (see transfer/foreign.py); its folder is told the same way

A message is stored as the export has it: ``{"info": {…}, "parts": [{…}]}``. It holds the
calls of tools together with their results. By its parts:

    ================================  ====================================================
    text, reasoning, file             what they are
    tool, completed or error          a call and its result
    tool, pending or running          a call that is unanswered
    compaction                        alone in a user message: a mark; what came before is
                                      compacted once an answer marked ``summary`` follows
    step-start, snapshot, patch, …    kept, never sent
    ================================  ====================================================

An answer that is not finished has a key that is not yet its id: imported again when it is,
it is another message beside. The head is before what was reverted, else at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from sessiontree.core import jsontext
from sessiontree.core.message import Decoded, NewMessage, Part, Role
from sessiontree.errors import FormatError
from sessiontree.formats import document, shapes
from sessiontree.formats.document import Document, Node, NodeCodec, Object, Opening, Place
from sessiontree.formats.naming import fingerprint
from sessiontree.formats.transcript import Entry, Head, Tells, text_at

NAME = "opencode"

ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}
_COLUMNS = {"session_id": "sessionID", "message_id": "messageID"}
"""How columns are called in an export."""
_TOOL_KEYS = frozenset({"type", "callID", "tool", "state"})


class OpenCode(NodeCodec):
    """The codec of its messages."""

    name = NAME
    marks = frozenset({"info", "parts"})

    def said(self, native: Object) -> Decoded:
        info = shapes.object_in(native, "info", NAME, "it")
        role = shapes.role_in(info, ROLES, NAME)
        blocks = shapes.blocks_in(native.get("parts"), NAME, "parts")
        if _is_compaction(role, blocks):
            role = "mark"
        parts = [part for i, block in enumerate(blocks) for part in _parts(block, f"parts[{i}]")]
        if not parts and (text := _error_of(info)):
            return Decoded("mark", [shapes.text_part(text)])
        return Decoded(role, parts)

    def written(self, role: Role, text: str) -> dict[str, Any]:
        return {"info": {"role": role}, "parts": [{"type": "text", "text": text}]}


CODEC = OpenCode()


def _is_compaction(role: Role, blocks: Sequence[Object]) -> bool:
    alone = bool(blocks) and all(block.get("type") == "compaction" for block in blocks)
    return role == "user" and alone


def _error_of(info: Object) -> str:
    """Why an answer says nothing."""
    error = info.get("error")
    if not shapes.is_object(error):
        return ""
    data = error.get("data")
    told = text_at(data, "message") if shapes.is_object(data) else None
    return ": ".join(filter(None, (text_at(error, "name"), told)))


def _parts(block: Object, where: str) -> list[Part]:
    kind = shapes.kind_in(block, NAME, where)
    if kind == "text" and not block.get("ignored"):
        part = shapes.text_part(shapes.text_in(block, "text", NAME, where))
        return [shapes.ride(part, block, frozenset({"type", "text"}), NAME)]
    if kind == "reasoning":
        text = shapes.text_in(block, "text", NAME, where)
        part = {"type": "reasoning", "content": text, "provider": NAME}
        return [shapes.ride(part, block, frozenset({"type", "text"}), NAME)]
    if kind == "tool":
        return _tool(block, where)
    if kind == "file" and isinstance(block.get("url"), str):
        return [_file(block)]
    return [shapes.keep(block, kind, NAME)]


def _tool(block: Object, where: str) -> list[Part]:
    name = shapes.text_in(block, "tool", NAME, where)
    state = shapes.object_in(block, "state", NAME, where)
    about: Part = {"id": text_at(block, "callID") or text_at(block, "id") or where, "name": name}
    call: Part = {"type": "tool_call", **about, "arguments": state.get("input") or {}}
    shapes.ride(call, block, _TOOL_KEYS, NAME)
    if state.get("status") == "error":
        error = state.get("error")
        response = {"type": "tool_call_response", **about, "response": error, "is_error": True}
        return [call, response]
    if state.get("status", "completed") != "completed":
        return [call]
    return [call, {"type": "tool_call_response", **about, "response": _output(state)}]


def _output(state: Object) -> object:
    files = state.get("attachments")
    shown = [
        _file(file)
        for file in cast("list[object]", files if isinstance(files, list) else [])
        if shapes.is_object(file) and isinstance(file.get("url"), str)
    ]
    output = state.get("output")
    if not shown:
        return output
    return [shapes.text_part(shapes.response_text(output)), *shown]


def _file(block: Object) -> Part:
    mime_type = text_at(block, "mime") or "application/octet-stream"
    part = shapes.from_url(block["url"], shapes.modality_of(mime_type))
    name = text_at(block, "filename")
    return part | {"mime_type": mime_type} | ({"filename": name} if name else {})


# --- the reader -----------------------------------------------------------------------------


class _Reader(document.DocumentReader):
    name = NAME
    marks = frozenset({"messages[].info.sessionID", "messages[].parts"})

    def recognises(self, head: Head) -> bool:
        if super().recognises(head):
            return True
        keys = document.outline(head.text)
        return {"session", "message"} <= keys or {"session.id", "session.directory"} <= keys

    def document(self, found: Object, name: str) -> Document:
        if "messages" in found:
            session = shapes.object_in(found, "info", NAME, "it")
            messages = list(shapes.blocks_in(found["messages"], NAME, "messages"))
            return Document(name, _opening(session, messages, {}), _nodes(messages))
        messages = list(_messages(found))
        session = found.get("session")
        if not shapes.is_object(session):
            session = {"id": _session_of(messages)}
        others = {k: v for k, v in found.items() if k not in ("session", "message", "part")}
        return Document(name, _opening(session, messages, others), _nodes(messages))

    def message(self, text: str, entry: Entry) -> NewMessage:
        made = super().message(text, entry)
        info = jsontext.check(text)[1].get("info")
        tokens = info.get("tokens") if shapes.is_object(info) else None
        made.usage = tokens if shapes.is_object(tokens) else made.usage
        return made


READER = _Reader()


def _opening(session: Object, messages: Sequence[Object], others: Object) -> Opening:
    time = session.get("time")
    created = time.get("created") if shapes.is_object(time) else session.get("time_created")
    meta = document.rest_of(session, "id", "title")
    return Opening(
        topic=document.name_at(session, "id"),
        title=text_at(session, "title"),
        created_at=document.moment(created),
        head=_head(session, messages),
        meta=meta | ({"tables": dict(others)} if others else {}),
    )


def _head(session: Object, messages: Sequence[Object]) -> str | None:
    """Where a revert has gone back to; None where there is none."""
    revert = _parsed(session.get("revert"))
    if not shapes.is_object(revert) or not text_at(revert, "messageID"):
        return None
    before: str | None = ""
    for message in messages:
        name = _name(message)
        if _id(message) == revert["messageID"]:
            return name if text_at(revert, "partID") else before
        before = name
    return None


def _nodes(messages: Sequence[Object]) -> Iterator[Node]:
    answers = (_info(message) for message in messages)
    summaries = {text_at(info, "parentID") for info in answers if info.get("summary") is True}
    above: str | None = None
    for message in messages:
        info = _info(message)
        is_mark = text_at(info, "id") in summaries and CODEC.decode(message).role == "mark"
        name = _name(message)
        time = info.get("time")
        created = time.get("created") if shapes.is_object(time) else info.get("time_created")
        place = Place(
            name,
            above,
            name is None or above is None,
            document.moment(created),
            text_at(info, "modelID"),
            Tells(kind="compaction") if is_mark else None,
        )
        yield Node(message, place)
        above = name or above


def _info(message: Object) -> Object:
    info = message.get("info")
    return info if shapes.is_object(info) else {}


def _session_of(messages: Sequence[Object]) -> str | None:
    """The session of messages whose session has no row."""
    names = (text_at(_info(message), "sessionID") for message in messages)
    return next(filter(None, names), None)


def _id(message: Object) -> str | None:
    return text_at(_info(message), "id")


def _name(message: Object) -> str | None:
    """Its id; with a digest of what it says while it is not finished."""
    name, info = _id(message), _info(message)
    time = info.get("time")
    is_open = info.get("role") == "assistant" and shapes.is_object(time)
    if name is None or not is_open or cast("Object", time).get("completed") or info.get("error"):
        return name
    return f"{name}#unfinished-{fingerprint(dict(message))}"


# --- rows of its database, files of its folder ----------------------------------------------


def _messages(found: Object) -> Iterator[dict[str, Any]]:
    """The messages of a session as its export would have them, oldest first. Parts of
    messages that are not there come before them, and become marks."""
    parts: dict[str | None, list[dict[str, Any]]] = {}
    for row in sorted(_rows(found, "part"), key=_age):
        part = _whole(row)
        parts.setdefault(text_at(part, "messageID"), []).append(part)
    rows = sorted(_rows(found, "message"), key=_age)
    names = {text_at(row, "id") for row in rows} - {None}
    for name, lost in parts.items():
        if name not in names:
            yield {"info": {}, "parts": lost}
    for row in rows:
        name = text_at(row, "id")
        yield {"info": _whole(row), "parts": parts.get(name, []) if name else []}


def _rows(found: Object, table: str) -> list[dict[str, Any]]:
    rows = found.get(table)
    given = cast("list[object]", rows) if isinstance(rows, list) else []
    return [dict(row) if shapes.is_object(row) else {"unreadable": row} for row in given]


def _age(row: Object) -> tuple[int, str]:
    time = row.get("time")
    created = time.get("created") if shapes.is_object(time) else row.get("time_created")
    return (created if isinstance(created, int) else 0), text_at(row, "id") or ""


def _whole(row: Object) -> dict[str, Any]:
    """What is in a row's ``data``, with its other columns; a file is whole already."""
    data = _parsed(row.get("data"))
    if not shapes.is_object(data):
        return dict(row)
    return {**data, **{_COLUMNS.get(key, key): row[key] for key in row if key != "data"}}


def _parsed(text: object) -> object:
    if not isinstance(text, str):
        return text
    try:
        return jsontext.load(text)
    except FormatError:
        return text
