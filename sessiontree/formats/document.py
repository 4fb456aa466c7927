"""Files of JSON documents, each of which is a conversation, or many.

What is not one row a line is read through a ``Document``: one conversation as a source of
its own, whose nodes are its rows. So each conversation of a file is planted and saved like a
transcript, by itself: what is wrong with one is no harm to the others, and ids mean what
they mean inside it.

    values           the JSON values of a file: the items of its list, or one after the other
    Document         one conversation: how it is opened, and its nodes with their places
    DocumentReader   what the readers of such formats share; each adds ``conversations``,
                     ``document`` and the codec of its nodes
    outline          the keys at the start of a file, by which its format is told

A node is stored as its own JSON text, written again; what hung inside it (its children) is
stored as nodes of their own. Line 0 of a document is the conversation itself: its title, its
head, and its other fields, which become the conversation's ``meta``.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple, cast

from sessiontree import formats
from sessiontree.core import jsontext
from sessiontree.core.message import (
    Decoded,
    Native,
    NewMessage,
    Part,
    Role,
    calls_of,
    results_of,
)
from sessiontree.core.pairing import OpenCall, take
from sessiontree.errors import FormatError
from sessiontree.formats import jsonl, shapes, transcript
from sessiontree.formats.jsonvalues import values
from sessiontree.formats.transcript import Entry, Head, Notes, Place, Row, Source, Tells

Object = Mapping[str, Any]

SYSTEM = "system"
"""The id, and so the key, of a system prompt that a source keeps beside its messages."""

NO_PARENT = re.compile("0{8}-0{4}-[0-9]0{3}-[089]0{3}-0{12}")
"""What some programs write for the parent of the first message."""


@dataclass(slots=True)
class Opening:
    """What a conversation is opened with."""

    topic: str | None = None
    """The source's id of it; None where it has none: then it is told by its first message."""
    title: str | None = None
    created_at: int | None = None
    """Microseconds since 1970, UTC."""
    head: str | None = None
    """The id of the node that the source says its head is on."""
    meta: dict[str, Any] = field(default_factory=dict[str, Any])
    """All other fields of the conversation."""


class Node(NamedTuple):
    """One node of a conversation as the source has it, and where it stands."""

    native: object
    place: Place


class Document(Source):
    """One conversation of a file, read once."""

    def __init__(self, name: str, opening: Opening, nodes: Iterable[Node]) -> None:
        super().__init__(io.BytesIO(), name)
        self.opening = opening
        self.nodes = nodes
        self.number = 0
        """Which of the file's conversations it is, from 1."""
        self.end = 0
        """How many bytes of the file are read when this conversation is."""

    @property
    def label(self) -> str:
        """What notes call it."""
        return self.opening.title or self.opening.topic or "a conversation without a name"


class DocumentReader:
    """A reader of a format whose files are JSON documents."""

    name: str
    answers = formats.FALLBACK
    goes_on: str | None = None
    is_settled = False
    marks: frozenset[str] = frozenset()
    """Keys by any of which a file is told, as ``outline`` writes them."""

    def __init__(self) -> None:
        self.codec: str = self.name

    # --- what each format adds ------------------------------------------------------------

    def values(self, source: Source, skipped: Notes) -> Iterator[tuple[object, int]]:
        """The values of a file, and how much of it is read at each."""
        return values(source, skipped)

    def conversations(self, value: object) -> Iterable[object]:
        """The conversations in a value of the file."""
        return [value]

    def document(self, found: Object, name: str) -> Document:
        """One conversation; FormatError says why it is none. ``name`` is the file's."""
        raise NotImplementedError

    # --- what they share --------------------------------------------------------------------

    def recognises(self, head: Head) -> bool:
        return not self.marks.isdisjoint(outline(head.text))

    def documents(self, source: Source, skipped: Notes) -> Iterator[Document]:
        """The conversations of a file, each to be read before the next."""
        topics: dict[str, int] = {}
        at = 0
        for value, end in self.values(source, skipped):
            for found in self.conversations(value):
                at += 1
                try:
                    document = self.document(_object(found), source.name)
                    _begin(document, topics)
                except FormatError as error:
                    skipped.add(at, f"it is no conversation: {error.what}")
                    continue
                document.number, document.end = at, end
                document.name = document.label
                yield document

    def rows(self, source: Source, skipped: Notes) -> Iterator[Row]:
        assert isinstance(source, Document)
        yield Row(0, 0, b"", {}, Place(tells=_opens(source.opening)))
        offset = 0
        for line, (native, place) in enumerate(source.nodes, 1):
            try:
                node = _object(native)
                raw = jsontext.dump(node, "node").encode()
            except FormatError as error:
                skipped.add(line, error.what)
                continue
            yield Row(line, offset, raw, node, place)
            offset += len(raw)

    def entry(self, row: Row) -> Entry:
        place = row.place or Place()
        if place.tells is not None and (place.tells.about or place.tells.skip):
            made = Entry(row.line, row.offset, len(row.raw), beside=place.tells.about)
            made.tells = place.tells
        else:
            decoded = formats.codec(self.codec).decode(row.native)
            is_odd = is_unread(decoded) or _calls_as_nobody_may(decoded)
            made = entry(row, Decoded("mark", []) if is_odd else decoded)
            made.tells = self._mended(place.tells) if is_odd else place.tells
        made.id, made.parent, made.follows = _name(place.id), _name(place.parent), place.follows
        made.created_at, made.model = place.created_at, place.model
        made.text = row.raw.decode()
        return made

    def _mended(self, tells: Tells | None) -> Tells:
        what = f"it is no message that {self.name} writes; it is kept as a mark"
        return replace(tells or Tells(), mended=what)

    def message(self, text: str, entry: Entry) -> NewMessage:
        made = transcript.message(text, self.codec, entry)
        made.model = entry.model or made.model
        if entry.role == "mark":
            made.role, made.calls, made.results = "mark", (), ()
        return made


def entry(row: Row, said: Decoded) -> Entry:
    """Its entry. A result that answers nothing is said all the same: programs put in files and
    notes as answers of tools."""
    made = transcript.entry(row, said.role, said.parts)
    made.mixed = bool(made.results)
    return made


def _calls_as_nobody_may(said: Decoded) -> bool:
    """True for calls in a message that is not the model's."""
    return said.role not in ("assistant", "mark") and bool(calls_of(said.parts))


def _object(value: object) -> dict[str, Any]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    raise FormatError(f"it is {shapes.kind_of(value)}, not an object")


def _name(given: str | None) -> str | None:
    """A name in the source as the store can hold it."""
    return None if given is None else transcript.storable(given)


def _opens(opening: Opening) -> Tells:
    origin = {"source": opening.topic, "created_at": opening.created_at}
    opens = {"topic": opening.topic, "meta": jsonl.with_origin(opening.meta, origin)}
    return Tells(about=True, title=opening.title, head_is=_name(opening.head), opens=opens)


def _begin(document: Document, topics: dict[str, int]) -> None:
    """A name for a conversation that has none: by the file and its first node, the same each
    time; the second, third … of the same name in a file gets a number. FormatError for one
    without nodes."""
    nodes = iter(document.nodes)
    first = next(nodes, None)
    if first is None:
        raise FormatError("it has no messages")
    document.nodes = _again(first, nodes)
    opening = document.opening
    if opening.topic is None:
        opening.topic = f"{_stem(document.name)}-{_digest(first)}"
    opening.topic = transcript.storable(opening.topic)
    topics[opening.topic] = times = topics.get(opening.topic, 0) + 1
    if times > 1:
        opening.topic = f"{opening.topic}#{times}"


def _again(first: Node, rest: Iterator[Node]) -> Iterator[Node]:
    yield first
    yield from rest


def _stem(name: str) -> str:
    return re.split(r"[/\\]", name)[-1].partition(".")[0]


def _digest(first: Node) -> str:
    try:
        text = shapes.to_json(first.native)
    except (ValueError, RecursionError):  # nothing that could be stored
        text = ""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


# --- for the formats ------------------------------------------------------------------------


def rest_of(found: Object, *known: str) -> dict[str, Any]:
    """The fields of a conversation beside those that are known, as its ``meta``. FormatError
    when JSON cannot hold them."""
    meta = {key: value for key, value in found.items() if key not in known}
    jsontext.dump(meta, "conversation")
    return meta


def as_object(value: object) -> Object:
    """``value``, or an object without fields where it is none."""
    return value if shapes.is_object(value) else dict[str, Any]()


def name_at(native: Object, *keys: str) -> str | None:
    """The first of these fields that is an id: a string that is not empty, or a number."""
    for key in keys:
        value = native.get(key)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    return None


def moment(time: object) -> int | None:
    """A time as microseconds since 1970: ISO 8601, or a number of seconds, milliseconds or
    microseconds, told by its size. None for anything else."""
    if isinstance(time, int | float) and not isinstance(time, bool) and 0 < time < 1e17:
        return int(time * (1e6 if time < 1e11 else 1e3 if time < 1e14 else 1))
    return transcript.microseconds(time) if isinstance(time, str) else None


def newest_leaf(places: Iterable[Place]) -> str | None:
    """The leaf that was written last; what has no time of its own has its parent's. The head
    where a source tells none."""
    times: dict[str, int] = {}
    followed: set[str | None] = set()
    for place in places:
        if place.id is not None and not (place.tells and place.tells.skip):
            times[place.id] = place.created_at or times.get(place.parent or "", 0)
            followed.add(place.parent)
    leaves = times.keys() - followed
    found: str | None = None
    for name, time in times.items():
        if name in leaves and (found is None or time >= times[found]):
            found = name
    return found


def head_of(nodes: Sequence[Node]) -> str | None:
    """The head where a source tells none: the newest leaf if its nodes tell what they follow;
    else None, which means the last."""
    if any(node.place.follows for node in nodes):
        return None
    return newest_leaf(node.place for node in nodes)


def unfolded(roots: Iterable[object], inside: str) -> Iterator[tuple[object, str | None]]:
    """The nodes of trees that hold their children in a list ``inside`` of them: each without
    that list, after the one that holds it, and with the id of that, as ``name_at`` finds it in
    ``messageId`` or ``message_id``."""
    waiting: list[tuple[object, str | None]] = [(root, None) for root in reversed(list(roots))]
    while waiting:
        node, above = waiting.pop()
        children = node.get(inside) if shapes.is_object(node) else None
        if not shapes.is_object(node) or not isinstance(children, list):
            yield node, above
            continue
        yield {key: value for key, value in node.items() if key != inside}, above
        name = name_at(node, "messageId", "message_id") or above
        waiting += [(child, name) for child in reversed(cast("list[object]", children))]


def parents_by_children(nodes: Object, key: str) -> dict[str, str]:
    """For each node that is named in another's list of children, that other one."""
    found: dict[str, str] = {}
    for name, node in nodes.items():
        children = node.get(key) if shapes.is_object(node) else None
        if isinstance(children, list):
            named = (c for c in cast("list[object]", children) if isinstance(c, str))
            found |= {child: name for child in named if child not in found}
    return found


def parent_at(native: Object, *keys: str) -> str | None:
    """The id of what a node follows; None for one that stands for the beginning."""
    parent = name_at(native, *keys)
    return None if parent is not None and NO_PARENT.fullmatch(parent) else parent


def with_system(native: Object, nodes: Iterable[Node]) -> Iterator[Node]:
    """The nodes, all roots of which follow a system prompt that the source keeps beside them."""
    yield Node(native, Place(SYSTEM))
    for node in nodes:
        place = node.place
        is_root = place.parent is None and not place.follows
        yield Node(node.native, place._replace(parent=SYSTEM) if is_root else place)


def settled(parts: list[Part]) -> list[Part]:
    """The parts of a message that holds its calls with their results: a result of no call in
    it is a text."""
    waiting = [OpenCall(0, call) for call in calls_of(parts)]
    results = iter(results_of(parts))
    return [
        said(part)
        if part.get("type") == "tool_call_response" and take(waiting, next(results)) is None
        else part
        for part in parts
    ]


def said(part: Part) -> Part:
    """The text of a result."""
    return shapes.text_part(shapes.said_by(part))


class NodeCodec:
    """The codec of a format's nodes; each format adds ``said`` and ``written``.

    A node is never refused: one that is no message is a mark that keeps it.
    """

    name: str
    marks: frozenset[str] = frozenset()
    """Keys that together only a node of this format has."""

    def said(self, native: Object) -> Decoded:
        """Role and parts; FormatError when it is no message."""
        raise NotImplementedError

    def written(self, role: Role, text: str) -> dict[str, Any]:
        """A message that says ``text``."""
        raise NotImplementedError

    def recognises(self, native: Native) -> bool:
        return bool(self.marks) and self.marks <= native.keys()

    def decode(self, native: Native) -> Decoded:
        try:
            role, parts = self.said(native)
        except FormatError:
            kept: Part = {"type": "node", "provider": self.name, "native": dict(native)}
            return Decoded("mark", [kept])
        if role in ("user", "system"):  # they call no tools, whatever a damaged file says
            parts = [_in_words(part) for part in parts]
        return Decoded(role, parts)

    def encode(self, role: Role, parts: Sequence[Part]) -> list[dict[str, Any]]:
        """What it says, as text: nobody sends messages in such a format."""
        texts = [text for part in parts if (text := _text_of(part))]
        return [self.written(role, "\n\n".join(texts))] if texts and role != "mark" else []


def _in_words(part: Part) -> Part:
    is_said = part.get("type") in ("tool_call", "tool_call_response")
    return shapes.text_part(_text_of(part)) if is_said else part


def _text_of(part: Part) -> str:
    kind = part.get("type")
    if kind == "tool_call":
        return f"{part.get('name')}({shapes.arguments_text(part.get('arguments'))})"
    if kind == "tool_call_response":
        return shapes.said_by(part)
    return str(part.get("content") or "") if kind in ("text", "reasoning") else ""


def is_unread(decoded: Decoded) -> bool:
    return any(part.get("type") == "node" and "native" in part for part in decoded.parts)


# --- telling formats ------------------------------------------------------------------------

_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*+)"|[{}\[\]:,]', re.DOTALL)
_DEPTH = 6


@lru_cache(maxsize=1)
def outline(text: str) -> frozenset[str]:
    """The keys in the start of a JSON file, as ``mapping`` or ``messages[].role``: the same
    for one object, for a list of them, and for one a line."""
    found: set[str] = set()
    paths: list[str] = []
    kinds: list[str] = []
    key, is_key = "", False
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark in ("{", "["):
            paths.append(_path(paths, kinds, key))
            kinds.append(mark)
            is_key = mark == "{"
        elif mark in ("}", "]"):
            if kinds:
                paths.pop()
                kinds.pop()
            is_key = False
        elif mark in (",", ":"):
            is_key = mark == "," and kinds[-1:] == ["{"]
        elif is_key:
            key, is_key = token[1], False
            if len(paths) <= _DEPTH:
                found.add(_joined(paths[-1], key))
    return frozenset(found)


def _path(paths: list[str], kinds: list[str], key: str) -> str:
    """The path of what opens now."""
    if not paths or len(paths) > _DEPTH:
        return ""
    if kinds[-1] == "{":
        return _joined(paths[-1], key)
    return paths[-1] + "[]" if len(paths) > 1 else ""


def _joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
