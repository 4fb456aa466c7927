"""Messages as rows of programs that did not write them, so that these can go on with them.

What a program wrote itself goes back as it came; these are the rows for all else: what was
added in sessiontree after an import, or a conversation of another program altogether.

    claude_code  {"parentUuid", "isSidechain", "userType", "cwd", "sessionId", "version",
                  "type", "message": {an Anthropic message}, "uuid", "timestamp"}
    pi           {"type": "message", "id", "parentId", "timestamp", "message": {…}}
    codex        {"timestamp", "type": "response_item", "payload": {an item of Responses}}, and
                 beside what is said {"type": "event_msg", …}, which the program shows

System prompts and marks have no row: these programs have their own prompt, and know their
own marks only. Ids are made from the conversation's identity and the message's id, so that
they are the same each time.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

from sessiontree.core.message import Message, Part
from sessiontree.core.records import ConversationInfo
from sessiontree.formats import anthropic, codex, jsonl, pi, shapes
from sessiontree.formats.transcript import text_at
from sessiontree.formats.writing.times import iso

Row = dict[str, Any]


class Rows(Protocol):
    """Makes rows of one program's file."""

    def see(self, native: Mapping[str, Any]) -> None:
        """A row of the program's own goes into the file."""
        ...

    def header(self) -> list[Row]:
        """The rows that a file begins with that has none of the program's own."""
        ...

    def own_id(self, native: Mapping[str, Any]) -> str | None:
        """The id of a row of the program's own; None for one that nothing can follow."""
        ...

    def made_id(self, message: Message) -> str:
        """The id of the last row that is made of a message."""
        ...

    def rows(self, message: Message, above: str | None) -> list[Row]:
        """The rows of a message that follows the row ``above``; none for what has none."""
        ...

    @property
    def is_linear(self) -> bool:
        """True when the file knows no ids: each row follows the one before it."""
        ...

    @property
    def head_is_last(self) -> bool:
        """True when the program goes on after the last row of the file."""
        ...


class _Named:
    """Ids that are the same each time."""

    is_linear = False
    head_is_last = False

    def __init__(self, info: ConversationInfo) -> None:
        self._identity = jsonl.identity(info)
        self._info = info

    def uuid(self, name: object) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self._identity}:{name}"))

    def hex(self, name: object) -> str:
        return hashlib.sha256(f"{self._identity}:{name}".encode()).hexdigest()[:8]


# --- Claude Code ------------------------------------------------------------------------------

_SHARED = ("userType", "cwd", "sessionId", "version", "gitBranch")


class ClaudeCodeRows(_Named):
    def __init__(self, info: ConversationInfo) -> None:
        super().__init__(info)
        self._shared: Row = {
            "userType": "external",
            "cwd": "/",
            "sessionId": self.uuid("session"),
            "version": "2.0.0",
        }

    def see(self, native: Mapping[str, Any]) -> None:
        self._shared |= {key: native[key] for key in _SHARED if key in native}

    def header(self) -> list[Row]:
        return []

    def own_id(self, native: Mapping[str, Any]) -> str | None:
        return text_at(native, "uuid")

    def made_id(self, message: Message) -> str:
        return self.uuid(message.id)

    def rows(self, message: Message, above: str | None) -> list[Row]:
        made: list[Row] = []
        natives = _natives(message, anthropic.NAME, anthropic.CODEC.encode)
        for at, native in enumerate(natives, 1):
            name = self.uuid(message.id if at == len(natives) else f"{message.id}:{at}")
            made.append(self._row(message, native, name, above))
            above = name
        return made

    def _row(self, message: Message, native: Row, name: str, above: str | None) -> Row:
        sender = "assistant" if native.get("role") == "assistant" else "user"
        return {
            "parentUuid": above,
            "isSidechain": False,
            **self._shared,
            "type": sender,
            "message": self._answer(message, native) if sender == "assistant" else native,
            "uuid": name,
            "timestamp": iso(message.created_at),
        }

    def _answer(self, message: Message, native: Row) -> Row:
        """An answer as the API gives it: the program counts on these fields."""
        content = native.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        has_calls = shapes.has_block(blocks, frozenset({"tool_use"}))
        return {
            "id": "msg_" + self.uuid(message.id).replace("-", ""),
            "type": "message",
            "model": message.model or "unknown",
            "stop_reason": "tool_use" if has_calls else "end_turn",
            "stop_sequence": None,
            "usage": _usage(message, "input_tokens", "output_tokens"),
            **native,
            "content": blocks,
        }


# --- pi -----------------------------------------------------------------------------------------


class PiRows(_Named):
    head_is_last = True

    def see(self, native: Mapping[str, Any]) -> None:
        if native.get("type") == "session":
            self.is_linear = native.get("version") in (None, 1)

    def header(self) -> list[Row]:
        info = self._info
        first = {"type": "session", "version": 3, "id": self.uuid("session")}
        return [first | {"timestamp": iso(info.created_at), "cwd": "/"}]

    def own_id(self, native: Mapping[str, Any]) -> str | None:
        if native.get("type") == "session":
            return None
        return "" if self.is_linear else text_at(native, "id")

    def made_id(self, message: Message) -> str:
        return self.hex(message.id)

    def rows(self, message: Message, above: str | None) -> list[Row]:
        made: list[Row] = []
        entries = _natives(message, None, pi.CODEC.encode)
        for at, entry in enumerate(entries, 1):
            name = self.hex(message.id if at == len(entries) else f"{message.id}:{at}")
            place = {} if self.is_linear else {"id": name, "parentId": above}
            said = self._said(message, cast("Row", entry["message"]))
            facts = {"timestamp": iso(message.created_at), "message": said}
            made.append({"type": "message", **place, **facts})
            above = name
        return made

    def _said(self, message: Message, native: Row) -> Row:
        time = {"timestamp": message.created_at // 1000}
        if native.get("role") != "assistant":
            return native | time
        usage = _usage(message, "input", "output")
        counts = {"cacheRead": 0, "cacheWrite": 0, "totalTokens": sum(usage.values())}
        nothing = dict.fromkeys(("input", "output", "cacheRead", "cacheWrite", "total"), 0)
        has_calls = shapes.has_block(native.get("content"), frozenset({"toolCall"}))
        facts = {
            "api": "anthropic-messages",
            "provider": "anthropic",
            "model": message.model or "unknown",
            "usage": usage | counts | {"cost": nothing},
            "stopReason": "toolUse" if has_calls else "stop",
        }
        return facts | native | time


# --- Codex ----------------------------------------------------------------------------------------

_EVENTS = {"user": "user_message", "assistant": "agent_message"}
_TEXTS = {"user": "input_text", "assistant": "output_text"}


class CodexRows(_Named):
    is_linear = True

    def see(self, native: Mapping[str, Any]) -> None:
        return

    def header(self) -> list[Row]:
        time = iso(self._info.created_at)
        facts = {"cwd": "/", "originator": "sessiontree", "cli_version": "0.0.0"}
        session = {"id": self.uuid("session"), "timestamp": time, **facts, "instructions": None}
        return [{"timestamp": time, "type": "session_meta", "payload": session}]

    def own_id(self, native: Mapping[str, Any]) -> str | None:
        return ""

    def made_id(self, message: Message) -> str:
        return ""

    def rows(self, message: Message, above: str | None) -> list[Row]:
        """An item a row. The program lists only sessions in which a user is heard."""
        made: list[Row] = []
        for row in _natives(message, None, codex.CODEC.encode):
            item = cast("Row", row["payload"])
            made.append({"type": row["type"], "payload": _item(item)})
            made += _events(item)
        time = {"timestamp": iso(message.created_at)}
        return [time | row for row in made]


def _item(item: Row) -> Row:
    """An item whose text is in blocks, as the program reads it."""
    content, kind = item.get("content"), _TEXTS.get(str(item.get("role")))
    if not isinstance(content, str) or kind is None:
        return item
    return item | {"content": [{"type": kind, "text": content}]}


def _events(item: Row) -> list[Row]:
    """How the program shows what is said."""
    kind, content = _EVENTS.get(str(item.get("role"))), item.get("content")
    if kind is None:
        return []
    blocks = [{"text": content}] if isinstance(content, str) else cast("list[Row]", content or [])
    texts = [block["text"] for block in blocks if isinstance(block.get("text"), str)]
    payload = {"type": kind, "message": "\n".join(texts)}
    return [{"type": "event_msg", "payload": payload}] if texts else []


# --- Both -----------------------------------------------------------------------------------------


class _Encode(Protocol):
    def __call__(self, role: Any, parts: Sequence[Part], /) -> list[Row]: ...


def _natives(message: Message, own: str | None, encode: _Encode) -> list[Row]:
    """The message in the program's shape: itself, where it has that shape already."""
    if message.role in ("system", "mark"):
        return []
    if message.format == own:
        return [dict(message.native)]
    return encode(message.role, message.parts)


_COUNTS = (
    ("input_tokens", "prompt_tokens", "input"),
    ("output_tokens", "completion_tokens", "output"),
)


def _usage(message: Message, *names: str) -> dict[str, int]:
    """What the provider reported for the answer, zero where it did not."""
    told = message.usage or {}
    values = [
        next((told[key] for key in keys if type(told.get(key)) is int), 0) for keys in _COUNTS
    ]
    return dict(zip(names, values, strict=True))
