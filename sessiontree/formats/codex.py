"""Codex's rollout files: one JSON object a line.

    {"timestamp", "ordinal"?, "type", "payload": {…}}

A row is stored as its line. By its type:

    ===========================  ==========================================================
    response_item                on the chain; looked into by the codec of openai_responses
    response_item, developer     a user message: what the program tells the model by the way
    compacted                    a mark of kind "compaction" on the chain; what it replaces
                                 stays, what it says stands for that in a window
    event_msg, turn_context,     marks beside the chain
    world_state, and all others
    event_msg                    a mark beside it; what follows hangs before the turns that
      ``thread_rolled_back``     it takes back, and these stay as a branch
    session_meta                 a mark: the first is the root, and names the session. A
                                 fork's file holds its parent's too: beside the chain
    ===========================  ==========================================================

The oldest files have items without an envelope. The head is where the last row is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from sessiontree.core import jsontext
from sessiontree.core.message import Decoded, Native, NewMessage, Part, Role, text_of
from sessiontree.errors import FormatError
from sessiontree.formats import openai_responses, shapes, transcript, usual
from sessiontree.formats.naming import key_of_row
from sessiontree.formats.rewinding import Chain
from sessiontree.formats.transcript import Entry, Head, Notes, Place, Row, Source, Tells, text_at
from sessiontree.formats.usual import Seen

NAME = "codex"

KINDS = frozenset(
    {
        "session_meta",
        "response_item",
        "event_msg",
        "turn_context",
        "compacted",
        "world_state",
        "inter_agent_communication",
    }
)
ITEMS = frozenset({"message", "reasoning"})
"""Types of items without an envelope, beside all that end so:"""
_CALLS = ("_call", "_call_output")

NOTED = frozenset({"ghost_snapshot"})
"""Items that the model never reads."""

CONTEXT = (
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "<turn_aborted>",
    "<skill>",
    "<subagent_notification>",
    "<user_shell_command>",
    "# AGENTS.md instructions",
)
"""How messages begin that the program writes in the user's name: they begin no turn."""


class Codex:
    """The codec of its rows."""

    name = NAME

    def recognises(self, native: Native) -> bool:
        has_payload = isinstance(native.get("payload"), Mapping)
        return has_payload and shapes.is_one_of(native.get("type"), KINDS)

    def decode(self, native: Native) -> Decoded:
        kind = _kind(native)
        item = _item(native)
        if item is not None and not shapes.is_one_of(item.get("type"), NOTED):
            try:
                return _decoded(item)
            except FormatError:  # a row is never lost: what it says is kept, unread
                pass
        return Decoded("mark", _parts_of_mark(native, kind))

    def encode(self, role: Role, parts: Sequence[Part]) -> list[dict[str, Any]]:
        return [
            {"type": "response_item", "payload": {"type": "message"} | item}
            for item in openai_responses.CODEC.encode(role, parts)
        ]


CODEC = Codex()


def _kind(native: Native) -> str:
    """Its type; the first row of the oldest files has none, nor have notes of state there."""
    if "type" not in native and ("record_type" in native or "id" in native):
        return str(native.get("record_type", "session"))
    return shapes.kind_in(native, NAME, "it")


def _payload(native: Native) -> Mapping[str, Any]:
    payload = native.get("payload")
    return payload if shapes.is_object(payload) else {}


def _item(native: Native) -> Mapping[str, Any] | None:
    """The item that a row holds, or is."""
    kind = native.get("type")
    if kind == "response_item":
        return _payload(native)
    if "payload" in native or not isinstance(kind, str):
        return None
    return native if kind in ITEMS or kind.endswith(_CALLS) else None


def _decoded(item: Mapping[str, Any]) -> Decoded:
    if item.get("call_id") is None and isinstance(item.get("id"), str):
        item = {**item, "call_id": item["id"]} if item.get("type") == "local_shell_call" else item
    role, parts = openai_responses.CODEC.decode(item)
    return Decoded("user" if item.get("role") == "developer" else role, parts)


def _parts_of_mark(native: Native, kind: str) -> list[Part]:
    """Its text, if it has one, and the row as it is."""
    row: Part = {"type": f"{NAME}:{kind}", "provider": NAME, "native": dict(native)}
    text = _text_of_mark(_payload(native), kind)
    return [shapes.text_part(text), row] if text else [row]


def _text_of_mark(payload: Mapping[str, Any], kind: str) -> str | None:
    return _summary(payload) if kind == "compacted" else text_at(payload, "message")


def _summary(compacted: Mapping[str, Any]) -> str:
    """What stands for the history that was compacted."""
    history = compacted.get("replacement_history")
    told = [text_at(compacted, "message") or ""]
    for item in cast("list[object]", history) if isinstance(history, list) else []:
        if shapes.is_object(item) and item.get("role") in ("user", "assistant"):
            told.append(f"{item['role']}: {_text(item)}")
    return "\n\n".join(line for line in told if line)


def _text(item: Mapping[str, Any]) -> str:
    try:
        return text_of(openai_responses.CODEC.decode(item).parts)
    except FormatError:
        return ""


# --- the reader ---------------------------------------------------------------------------


class _Reader:
    name = NAME
    codec = NAME
    answers = openai_responses.NAME
    goes_on: str | None = openai_responses.NAME
    is_settled = False

    def recognises(self, head: Head) -> bool:
        if any(CODEC.recognises(row) for row in head.rows):
            return True
        first = head.rows[0] if head.rows else {}
        return {"id", "timestamp", "instructions"} <= first.keys() and "type" not in first

    def rows(self, source: Source, skipped: Notes) -> Iterator[Row]:
        return transcript.json_lines(source, skipped, partial(_place, Chain()))

    def entry(self, row: Row) -> Entry:
        native, place = row.native, row.place or _NOWHERE
        entry = transcript.looked(row, CODEC, _seen(native))
        entry.created_at = transcript.microseconds(native.get("timestamp"))
        entry.tells = place.tells
        entry.beside = entry.follows = place.follows
        if not place.follows:
            entry.id, entry.parent = place.id, place.parent
            entry.key = key_of_row(row.raw, entry.created_at)
            entry.topic = _session(native)
            entry.tells = _noted(native, entry.role, place.tells)
        return entry

    def message(self, text: str, entry: Entry) -> NewMessage:
        made = transcript.message(text, NAME, entry)
        if entry.tells is not None and entry.tells.kind == "compaction":
            summary = _summary(_payload(jsontext.check(text)[1]))
            made.meta = transcript.our_meta("compaction", text=summary)
        return made


READER = _Reader()


_NOWHERE = Place()


def _seen(native: Native) -> Seen | None:
    """What is in a row, where it does not take the codec to see it."""
    item = _item(native)
    if item is not None:
        return usual.codex(item)
    kind = native.get("type")
    if type(kind) is not str:
        return None
    return usual.mark(NAME, kind, native, _text_of_mark(_payload(native), kind))


def _session(native: Native) -> str | None:
    """The id of the session that a row opens."""
    if native.get("type") == "session_meta":
        return text_at(_payload(native), "id")
    return text_at(native, "id") if "type" not in native else None


def _is_inside(native: Native, item: Mapping[str, Any] | None) -> bool:
    if item is not None:
        return not shapes.is_one_of(item.get("type"), NOTED)
    return native.get("type") == "compacted"


def _place(chain: Chain, line: int, native: Native) -> Place:
    """The first session is the root, so that there is one to go back to."""
    item = _item(native)
    is_root = not chain.last and _session(native) is not None
    if is_root or _is_inside(native, item):
        begins_turn = item is not None and _begins_turn(item)
        return chain.add(f"line {line}", begins_turn=begins_turn)
    tells = _said_beside(chain, _payload(native))
    return _BESIDE if tells is None else Place(follows=True, tells=tells)


_BESIDE = Place(follows=True)


def _said_beside(chain: Chain, payload: Mapping[str, Any]) -> Tells | None:
    """What an event says of the conversation."""
    turns = payload.get("num_turns")
    if payload.get("type") == "thread_rolled_back" and isinstance(turns, int) and turns > 0:
        return Tells(head_is=chain.take_back(turns))
    if payload.get("type") == "thread_name_updated":
        return Tells(title=text_at(payload, "thread_name"))
    return None


def _begins_turn(item: Mapping[str, Any]) -> bool:
    if item.get("role") != "user":
        return False
    text = usual.only_text(item)
    return not (_text(item) if text is None else text).lstrip().startswith(CONTEXT)


def _noted(native: Native, role: Role, tells: Tells | None) -> Tells | None:
    if native.get("type") == "compacted":
        return replace(tells or Tells(), kind="compaction")
    if role == "mark" and _item(native) is not None:
        what = "its item is not one of format openai_responses; it is kept as a mark"
        return replace(tells or Tells(), mended=what)
    return tells
