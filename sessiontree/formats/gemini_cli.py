"""Gemini CLI's session files: one JSON object a line; before, one document.

    {"sessionId", "projectHash", "startTime", "kind", …}                the session
    {"id", "timestamp", "type", "content", "toolCalls"?, "thoughts"?}   a message
    {"$set": {…}}   {"$rewindTo": id}                                   changes

    {"sessionId", "projectHash", "messages": [message, …]}              a document

A message is stored as its line. ``user`` and ``gemini`` are messages, and those of other
types (info, error, warning) marks; a ``gemini`` message holds calls of tools together with
their results. The session is a mark, and the root. The rest are marks beside the chain.

A line with the id of a message before is that message again, with more in it. The last one
counts. One that holds nothing else than the last is skipped; one that does is kept as a mark
beside. ``$rewindTo`` takes a message back with all after it, and everything where it names
none: what was taken back stays as a branch. ``$set`` of other messages is how Gemini CLI
compacts: a mark of kind "compaction", whose text is what they say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from sessiontree.core import jsontext
from sessiontree.core.message import Decoded, Native, NewMessage, Part, Role, text_of
from sessiontree.errors import FormatError
from sessiontree.formats import document, gemini, shapes, transcript
from sessiontree.formats.jsonvalues import values
from sessiontree.formats.naming import digest, fingerprint
from sessiontree.formats.transcript import Entry, Head, Notes, Place, Row, Source, Tells, text_at

NAME = "gemini_cli"

SPOKEN: dict[str, Role] = {"user": "user", "gemini": "assistant"}
KINDS = frozenset({"user", "gemini", "info", "error", "warning"})
FAILED = frozenset({"error", "cancelled"})


class GeminiCLI:
    """The codec of its rows."""

    name = NAME

    def recognises(self, native: Native) -> bool:
        is_message = {"id", "timestamp", "content"} <= native.keys() and "message" not in native
        return is_message and shapes.is_one_of(native.get("type"), KINDS)

    def decode(self, native: Native) -> Decoded:
        kind = native.get("type")
        if shapes.is_one_of(kind, frozenset(SPOKEN)):
            try:
                return _said(native, SPOKEN[str(kind)])
            except FormatError:  # a row is never lost: what it says is kept, unread
                pass
        elif "type" in native and not isinstance(kind, str):
            raise shapes.wrong(NAME, f"its type is {shapes.kind_of(kind)}, not a string")
        return Decoded("mark", _parts_of_mark(native, str(kind or "session")))

    def encode(self, role: Role, parts: Sequence[Part]) -> list[dict[str, Any]]:
        return [
            {"type": "gemini" if made["role"] == "model" else "user", "content": made["parts"]}
            for made in gemini.CODEC.encode(role, parts)
        ]


CODEC = GeminiCLI()


def _said(native: Native, role: Role) -> Decoded:
    sender = "model" if role == "assistant" else "user"
    role, parts = gemini.CODEC.decode({"role": sender, "parts": _pieces(native.get("content"))})
    if role != "assistant":
        return Decoded(role, parts)
    parts = [
        document.said(part) if part["type"] == "tool_call_response" else part for part in parts
    ]
    thoughts = [_thought(thought) for thought in _objects(native.get("thoughts"))]
    called = enumerate(_objects(native.get("toolCalls")))
    calls = [part for i, call in called for part in _call(call, f"toolCalls[{i}]")]
    return Decoded(role, [*thoughts, *parts, *calls])


def _pieces(content: object) -> list[object]:
    """A content is a text, a part, or a list of these."""
    given = cast("list[object]", content) if isinstance(content, list) else [content]
    made = [{"text": piece} if isinstance(piece, str) else piece for piece in given]
    return [piece for piece in made if piece not in (None, {"text": ""})]


def _objects(value: object) -> list[Mapping[str, Any]]:
    """The objects of a list; FormatError when it holds something else."""
    return list(shapes.blocks_in(value, NAME, "it")) if value is not None else []


def _thought(thought: Mapping[str, Any]) -> Part:
    told = (text_at(thought, "subject"), text_at(thought, "description"))
    content = "\n".join(line for line in told if line)
    return {"type": "reasoning", "content": content, "provider": NAME}


def _call(call: Mapping[str, Any], where: str) -> list[Part]:
    """A call, and its result where it has one."""
    name = shapes.text_in(call, "name", NAME, where)
    about: Part = {"id": text_at(call, "id") or where, "name": name}
    made: Part = {"type": "tool_call", **about, "arguments": call.get("args") or {}}
    if call.get("result") is None:
        return [made]
    response = _response(call["result"])
    is_error = {"is_error": True} if shapes.is_one_of(call.get("status"), FAILED) else {}
    return [made, {"type": "tool_call_response", **about, "response": response, **is_error}]


def _response(result: object) -> object:
    """What a tool answered: the response in it, and what is shown beside."""
    pieces = _pieces(result)
    try:
        parts = gemini.CODEC.decode({"role": "user", "parts": pieces}).parts
    except FormatError:
        return result
    answers = [part for part in parts if part["type"] == "tool_call_response"]
    shown = [part for part in parts if part["type"] != "tool_call_response"]
    if len(answers) == 1 and not shown:
        return answers[0].get("response")
    texts = [shapes.text_part(shapes.said_by(part)) for part in answers]
    return [*texts, *shown]


def _parts_of_mark(native: Native, kind: str) -> list[Part]:
    """Its text, if it has one, and the row as it is."""
    row: Part = {"type": f"{NAME}:{kind}", "provider": NAME, "native": dict(native)}
    text = _summary(native) if _new_history(native) else text_at(native, "content")
    return [shapes.text_part(text), row] if text else [row]


def _new_history(native: Native) -> list[Mapping[str, Any]]:
    """The messages that a ``$set`` puts in the place of all."""
    change = native.get("$set")
    messages = change.get("messages") if shapes.is_object(change) else None
    given = cast("list[object]", messages) if isinstance(messages, list) else []
    return [message for message in given if shapes.is_object(message)]


def _summary(native: Native) -> str:
    told: list[str] = []
    for message in _new_history(native):
        if shapes.is_one_of(message.get("type"), frozenset(SPOKEN)):
            text = text_of(CODEC.decode(message).parts)
            told.append(f"{SPOKEN[message['type']]}: {text}" if text else "")
    return "\n\n".join(line for line in told if line)


# --- the reader -----------------------------------------------------------------------------


class _Reader:
    name = NAME
    codec = NAME
    answers = gemini.NAME
    goes_on: str | None = gemini.NAME
    is_settled = False

    def recognises(self, head: Head) -> bool:
        if any({"sessionId", "projectHash"} <= row.keys() for row in head.rows[:1]):
            return True
        return _is_document(head) or any(
            row.get("type") == "gemini" and CODEC.recognises(row) for row in head.rows
        )

    def rows(self, source: Source, skipped: Notes) -> Iterator[Row]:
        if _is_document(Head(source.head(), source.name)):
            return _rows_of_document(source, skipped)
        before = _Walk(source, {})
        for _ in before.rows(Notes()):
            pass
        return _Walk(source, before.versions).rows(skipped)

    def entry(self, row: Row) -> Entry:
        native, place = row.native, row.place or Place()
        said = CODEC.decode(native)
        entry = document.entry(row, said)
        entry.id, entry.parent, entry.tells = place.id, place.parent, place.tells
        entry.created_at = transcript.microseconds(native.get("timestamp"))
        entry.beside = entry.follows = place.follows
        entry.topic = text_at(native, "sessionId")
        if place.follows:
            entry.role, entry.calls, entry.results = "mark", (), ()
        elif said.role == "mark" and shapes.is_one_of(native.get("type"), frozenset(SPOKEN)):
            what = "its content is not Gemini's; it is kept as a mark"
            entry.tells = replace(entry.tells or Tells(), mended=what)
        if isinstance(place, _InDocument):
            entry.text = row.raw.decode()
        return entry

    def message(self, text: str, entry: Entry) -> NewMessage:
        made = transcript.message(text, NAME, entry)
        if entry.role == "mark":
            made.role, made.calls, made.results = "mark", (), ()
        native = jsontext.check(text)[1]
        if shapes.is_object(native.get("tokens")):
            made.usage = native["tokens"]
        if entry.tells is not None and entry.tells.kind == "compaction":
            made.meta = transcript.our_meta("compaction", text=_summary(native))
        return made


READER = _Reader()


def _is_document(head: Head) -> bool:
    return bool(re.match(r"\s*\{", head.text)) and {
        "sessionId",
        "messages[].type",
    } <= document.outline(head.text)


@dataclass(slots=True)
class _Version:
    """A line that tells a message; ``row`` is where it stands."""

    name: str
    line: int
    offset: int
    length: int


class _Walk:
    """The lines of a file in its order, each with its place.

    ``last`` has the last version of each message by the first one's line: known when the
    file was walked once. The first walk is for that only.
    """

    def __init__(self, source: Source, last: Mapping[int, _Version]) -> None:
        self.source = source
        self.last = last
        self.versions: dict[int, _Version] = {}
        self._live: dict[str, int] = {}
        """By id, the line of the first version of each message that is not taken back."""
        self._parents: dict[int, str | None] = {}
        self._times: dict[str, int] = {}
        self._tells_head = False
        self._has_root = False

    def rows(self, skipped: Notes) -> Iterator[Row]:
        for row in transcript.json_lines(self.source, skipped):
            yield row._replace(place=self._place(row))

    def _place(self, row: Row) -> Place:
        native = row.native
        if isinstance(native.get("$rewindTo"), str):
            return self._rewind(native["$rewindTo"])
        if (name := text_at(native, "id")) is not None and "$set" not in native:
            return self._message(row, name)
        history = [text_at(message, "id") for message in _new_history(native)]
        if history and history != list(self._live)[self._has_root :]:
            place = self._message(row, digest(row.raw))
            return place._replace(tells=replace(place.tells or Tells(), kind="compaction"))
        if not self.versions and "projectHash" in native:
            self._has_root = True  # that there is one root, whatever is taken back
            return self._message(row, digest(row.raw))
        change = native.get("$set")
        title = text_at(change, "summary") if shapes.is_object(change) else None
        return Place(follows=True, tells=Tells(title=title) if title else None)

    def _message(self, row: Row, own: str) -> Place:
        self._times[own] = times = self._times.get(own, 0) + 1
        version = _Version(
            own if times == 1 else f"{own}#{times}", row.line, row.offset, len(row.raw)
        )
        if own not in self._live:
            self._parents[row.line] = self._newest()
            self._live[own] = row.line
        first = self._live[own]
        self.versions[first] = version
        last = self.last.get(first, version)
        if last.line != row.line:
            return self._replaced(row.native, last)
        self._tells_head = self._tells_head or self._newest() != version.name
        tells = Tells(head_is=self._newest()) if self._tells_head else None
        return Place(version.name, self._parents[first], tells=tells)

    def _newest(self) -> str | None:
        """What the next message follows."""
        if not self._live:
            return None
        first = next(reversed(self._live.values()))
        return (self.last.get(first) or self.versions[first]).name

    def _replaced(self, native: Native, last: _Version) -> Place:
        """The place of a version that is not the last."""
        raw = self.source.read(last.offset, last.length)
        if _holds(jsontext.check(raw)[1], native):
            return Place(tells=Tells(skip=f"line {last.line} is the same message with more in it"))
        return Place(follows=True)

    def _rewind(self, to: str) -> Place:
        """Go back to before a message; to the session itself where there is none."""
        names = list(self._live)
        begins = 1 if self._has_root else 0
        kept = max(names.index(to) if to in self._live else 0, begins)
        for name in names[kept:]:
            del self._live[name]
        self._tells_head = True
        return Place(follows=True, tells=Tells(head_is=self._newest() or ""))


def _holds(new: object, old: object) -> bool:
    """True when nothing is in ``old`` that is not in ``new``."""
    waiting = [(new, old)]
    while waiting:
        new, old = waiting.pop()
        if old is None or new == old:
            continue
        if shapes.is_object(old) and shapes.is_object(new) and old.keys() <= new.keys():
            waiting.extend((new[key], old[key]) for key in old)
        elif isinstance(old, list) and isinstance(new, list):
            news, olds = cast("list[object]", new), cast("list[object]", old)
            if len(olds) > len(news):
                return False
            waiting.extend(zip(news, olds, strict=False))
        elif not (isinstance(old, str) and isinstance(new, str) and new.startswith(old)):
            return False
    return True


# --- documents ------------------------------------------------------------------------------


class _InDocument(Place):
    """The place of a node that is no line of its file."""

    __slots__ = ()


def _rows_of_document(source: Source, skipped: Notes) -> Iterator[Row]:
    """The session without its messages, and then these, written again."""
    for value, _ in values(source, skipped):
        if not shapes.is_object(value):
            skipped.add(1, f"it is {shapes.kind_of(value)}, not an object")
            continue
        messages = value.get("messages")
        about = {key: item for key, item in value.items() if key != "messages"}
        title = text_at(about, "summary")
        tells = Tells(title=title) if title else None
        root = "session:" + fingerprint({"sessionId": value.get("sessionId")})
        above: str | None = root
        nodes: list[tuple[object, Place]] = [(about, _InDocument(root, tells=tells))]
        for message in cast("list[object]", messages) if isinstance(messages, list) else []:
            name = text_at(message, "id") if shapes.is_object(message) else None
            nodes.append((message, _InDocument(name, above)))
            above = name or above
        yield from _written(nodes, skipped)


def _written(nodes: list[tuple[object, Place]], skipped: Notes) -> Iterator[Row]:
    offset = 0
    for line, (node, place) in enumerate(nodes):
        if not isinstance(node, dict):
            skipped.add(line, f"it is {shapes.kind_of(node)}, not an object")
            continue
        native = cast("dict[str, Any]", node)
        try:
            raw = jsontext.dump(native, "node").encode()
        except FormatError as error:
            skipped.add(line, error.what)
            continue
        yield Row(line, offset, raw, native, place)
        offset += len(raw)
