"""Claude Code's session files: one JSON object a line.

    {"type": "user" | "assistant", "uuid", "parentUuid", "sessionId", "isSidechain",
     "timestamp", "message": {an Anthropic message}, …}

A row is stored as its line, and looked into by the codec of ``anthropic``. Rows of other
types are marks:

    =======================================  ================================================
    system, attachment, …                    on the chain, where their ``parentUuid`` says
    system, ``compact_boundary``             follows its ``logicalParentUuid``, so that what
                                             was compacted stays on the path
    progress                                 beside it: hooks and progress must not fork a chain
    summary, file-history-snapshot, titles,  beside it, where they stand in the file
    and all that has no ``uuid``
    assistant with ``isApiErrorMessage``     on the chain: the program's words, not the model's
    =======================================  ================================================

Rows with ``isMeta`` or ``isCompactSummary`` are user messages: the model reads them. One
answer of the model may be several rows; they share ``message.id``. Sidechains are trees of
their own in the same conversation. Also read: a document ``{"loglines": [row, …]}``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from sessiontree.core import jsontext
from sessiontree.core.message import Decoded, Native, NewMessage, Part, Role
from sessiontree.errors import FormatError
from sessiontree.formats import anthropic, shapes, transcript, usual
from sessiontree.formats.transcript import Entry, Head, Notes, Row, Source, Tells, text_at
from sessiontree.formats.usual import Seen

NAME = "claude_code"

SPOKEN = frozenset({"user", "assistant"})
KINDS = frozenset({"user", "assistant", "system", "summary", "progress", "attachment"})
BESIDE = frozenset({"summary", "progress"})
"""Rows of these types, and those without a ``uuid``, stand beside the conversation."""

_LOGLINES = re.compile(r'\s*\{\s*"loglines"\s*:\s*\[')
_PARENT = re.compile(r'\{.*"(parentUuid|leafUuid)"\s*:', re.DOTALL)
"""Told by this where not even the first row is whole in the head."""
_BETWEEN = re.compile(r"[\s,]*")
_DECODER = json.JSONDecoder()


class ClaudeCode:
    """The codec of its rows."""

    name = NAME

    def recognises(self, native: Native) -> bool:
        if not shapes.is_one_of(native.get("type"), KINDS):
            return False
        return "sessionId" in native or "parentUuid" in native or "leafUuid" in native

    def decode(self, native: Native) -> Decoded:
        kind = shapes.kind_in(native, NAME, "it")
        message = native.get("message")
        if kind in SPOKEN and isinstance(message, Mapping):
            said = _decoded(cast("Mapping[str, Any]", message))
            if said is not None:
                return Decoded("mark", said.parts) if native.get("isApiErrorMessage") else said
        return Decoded("mark", _parts_of_mark(native, kind))

    def encode(self, role: Role, parts: Sequence[Part]) -> list[dict[str, Any]]:
        return [
            {"type": message["role"], "message": message}
            for message in anthropic.CODEC.encode(role, parts)
        ]


CODEC = ClaudeCode()


def _decoded(message: Mapping[str, Any]) -> Decoded | None:
    """What Anthropic's codec sees in it; None where it is no message of its format."""
    try:
        return anthropic.CODEC.decode(message)
    except FormatError:
        return None


def _parts_of_mark(native: Native, kind: str) -> list[Part]:
    """Its text, if it has one, and the row as it is."""
    text = _text_of_mark(native)
    row: Part = {"type": f"{NAME}:{kind}", "provider": NAME, "native": dict(native)}
    return [shapes.text_part(text), row] if text else [row]


def _text_of_mark(native: Native) -> str | None:
    return text_at(native, "summary") or text_at(native, "content")


def _seen(native: Native) -> Seen | None:
    """What is in a row, where it does not take the codec to see it."""
    kind = native.get("type")
    if type(kind) is str and kind not in SPOKEN:
        return usual.mark(NAME, kind, native, _text_of_mark(native))
    return usual.claude_code(native)


class _Reader:
    name = NAME
    codec = NAME
    answers = anthropic.NAME
    goes_on: str | None = anthropic.NAME
    is_settled = False

    def recognises(self, head: Head) -> bool:
        if _LOGLINES.match(head.text) or (not head.rows and _PARENT.search(head.text)):
            return True
        return any(CODEC.recognises(row) for row in head.rows) or bool(
            head.rows and all("type" in row and "messageId" in row for row in head.rows)
        )

    def rows(self, source: Source, skipped: Notes) -> Iterator[Row]:
        if _LOGLINES.match(Head(source.head(), source.name).text):
            return _loglines(source, skipped)
        return transcript.json_lines(source, skipped)

    def entry(self, row: Row) -> Entry:
        native = row.native
        entry = transcript.looked(row, CODEC, _seen(native))
        entry.id = text_at(native, "uuid")
        entry.parent = text_at(native, "parentUuid") or text_at(native, "logicalParentUuid")
        entry.follows = "parentUuid" not in native
        entry.beside = native.get("type") in BESIDE or not (entry.id or _speaks(native))
        entry.side = _side(native)
        entry.topic = text_at(native, "sessionId")
        entry.created_at = transcript.microseconds(native.get("timestamp"))
        entry.group = _answer_of(native) if entry.role == "assistant" else None
        entry.tells = _tells(native, entry.role)
        return entry

    def message(self, text: str, entry: Entry) -> NewMessage:
        return transcript.message(text, NAME, entry)


READER = _Reader()


def _speaks(native: Native) -> bool:
    return native.get("type") in SPOKEN and "message" in native


def _side(native: Native) -> str:
    if not native.get("isSidechain"):
        return ""
    return text_at(native, "agentId") or "sidechain"


def _answer_of(native: Native) -> str | None:
    """The answer of the model that a row is a piece of."""
    message = cast("Mapping[str, Any]", native["message"])
    return text_at(message, "id") or text_at(native, "requestId")


def _tells(native: Native, role: Role) -> Tells | None:
    kind = native.get("type")
    if kind == "system" and native.get("subtype") == "compact_boundary":
        return Tells(kind="compaction")
    if native.get("isCompactSummary"):
        return Tells(kind="compaction_summary")
    if kind == "summary":
        return Tells(title=text_at(native, "summary"), ref=text_at(native, "leafUuid"))
    if kind in ("custom-title", "ai-title"):
        return Tells(title=text_at(native, "customTitle") or text_at(native, "aiTitle"))
    if kind in SPOKEN and role == "mark" and not native.get("isApiErrorMessage"):
        return Tells(mended="its message is not one of format anthropic; it is kept as a mark")
    return None


def _loglines(source: Source, skipped: Notes) -> Iterator[Row]:
    """The rows of a document that holds them in a list; each is stored as it stands there."""
    text = _document(source)
    offset, line, counted = source.size - len(text.encode()), 1, 0
    at = cast("re.Match[str]", _LOGLINES.match(text)).end()
    while True:
        at = cast("re.Match[str]", _BETWEEN.match(text, at)).end()
        passed = text[counted:at]
        offset, line, counted = offset + len(passed.encode()), line + passed.count("\n"), at
        if text[at : at + 1] == "]":
            return
        try:
            _, at = _DECODER.raw_decode(text, at)
            native = jsontext.check(text[counted:at], "row")[1]
        except FormatError as error:
            skipped.add(line, error.what)
        except (ValueError, RecursionError) as error:
            skipped.add(line, f"the document stops being JSON here: {error}")
            return
        else:
            yield Row(line, offset, text[counted:at].encode(), native)


def _document(source: Source) -> str:
    if source.size > transcript.MAX_ROW:
        raise FormatError(f"it is longer than {transcript.MAX_ROW >> 20} MiB", file=source.name)
    try:
        return source.read(0, source.size).removeprefix(transcript.BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(f"it is not UTF-8: {error}", file=source.name) from error
