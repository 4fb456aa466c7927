"""Messages of a path in the target's own shape.

A message that is stored in the target's format is sent as it is stored. One of another
format goes through the codecs: what is bound to its provider (signatures, encrypted
reasoning) is left out by them, calls without an id get one from their place on the path,
and results learn their call's id and name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sessiontree.core import marks
from sessiontree.core.marks import Edits, Item
from sessiontree.core.message import Codec, Codecs, Part, ToolCall, ToolResult, text_of
from sessiontree.core.pairing import OpenCall, Waiting
from sessiontree.core.rules import pairs
from sessiontree.core.rules.model import ONE_KIND, Entry, Shape
from sessiontree.core.turns import Turn


def entries_of(turn: Turn, shape: Shape, codecs: Codecs) -> list[Entry]:
    """The entries of a turn, as the marks on the path leave them."""
    name, items = shape.name, turn.items
    is_foreign = [item.format != name for item in items]
    parts = _linked(items) if True in is_foreign else []
    codec = codecs(name)
    entries: list[Entry] = []
    for at, item in enumerate(items):
        if is_foreign[at]:
            entries += _carried(shape, codec, item, parts[at], turn.edits[at])
        else:
            native: Any = item.native
            entries.append(_opened(shape, native, item, turn.edits[at]))
    if turn.is_edited:
        entries = _edited(entries, turn, shape)
    return _joined(entries, shape) if parts else entries


def _opened(shape: Shape, native: dict[str, Any], item: Item, edits: Edits) -> Entry:
    entry = shape.open(native)
    if entry.sender == "user" and "call" in entry.kinds and "result" not in entry.kinds:
        entry.sender, entry.native = "assistant", None  # a damaged row: only it may call
    entry.sources = (item.id,)
    entry.position = item.depth
    if edits.is_stale:
        entry.is_stale = True
    return entry


def _carried(
    shape: Shape, codec: Codec, item: Item, parts: list[Part], edits: Edits
) -> list[Entry]:
    entries = [_opened(shape, native, item, edits) for native in codec.encode(item.role, parts)]
    for entry in entries:
        entry.is_carried = True
    return entries


def _linked(items: Sequence[Item]) -> list[list[Part]]:
    """The parts of each message, calls with ids, and results with their call's id and name."""
    waiting = Waiting()
    ids: dict[int, str] = {}
    found: list[list[Part]] = []
    for at, item in enumerate(items):
        given = item.parts
        if len(given) == 1 and given[0].get("type") == "text":  # most are no more
            found.append(given)
            continue
        parts: list[Part] = []
        for nth, part in enumerate(given):
            kind = part.get("type")
            if kind == "tool_call":
                part = _call(part, at, item.depth, nth, waiting, ids)
            elif kind == "tool_call_response":
                part = _answer(part, waiting, ids)
            parts.append(part)
        found.append(parts)
    return found


def _call(part: Part, at: int, depth: int, nth: int, waiting: Waiting, ids: dict[int, str]) -> Part:
    given = isinstance(part.get("id"), str) and part["id"] != ""
    call_id: str = part["id"] if given else f"call_{depth}_{nth}"
    call = ToolCall(call_id, str(part.get("name", "")), None, given)
    waiting.add(OpenCall(at, call))
    ids[id(call)] = call_id
    return part if given else part | {"id": call_id}


def _answer(part: Part, waiting: Waiting, ids: dict[int, str]) -> Part:
    given = isinstance(part.get("id"), str) and part["id"] != ""
    name = part.get("name")
    result = ToolResult(
        part["id"] if given else "", None, name if isinstance(name, str) else None, given=given
    )
    opened = waiting.take(result)
    if opened is None:
        return part
    named = {} if isinstance(name, str) and name else {"name": opened.call.name}
    return part | {"id": ids[id(opened.call)]} | named


# --- What was one answer, stored apart ------------------------------------------------------


def _joined(entries: list[Entry], shape: Shape) -> list[Entry]:
    """Carried messages that belong together as one, where a message has a list of blocks."""
    if shape.name == "openai_responses":
        return entries
    are_results_joined = shape.name != "openai_chat"

    def belong_together(first: Entry, kinds: frozenset[str], entry: Entry) -> bool:
        if first.sender != entry.sender or not (first.is_carried and entry.is_carried):
            return False
        if entry.sender == "assistant":
            return entry.kinds == ONE_KIND["call"] or kinds == ONE_KIND["thinking"]
        return are_results_joined and kinds == ONE_KIND["result"] == entry.kinds

    return [pairs.join(*run) for run in pairs.runs(entries, belong_together)]


def _edited(entries: list[Entry], turn: Turn, shape: Shape) -> list[Entry]:
    """The entries as the marks leave them."""
    edits_of = {item.id: edits for item, edits in zip(turn.items, turn.edits, strict=True)}
    answers = pairs.match(entries).answers
    names = {result: call.name or result.name for call, (result, _) in answers.items()}
    return [
        entry
        if (edits := edits_of[entry.sources[0]]).is_none
        else marks.apply(entry, edits, shape, names)
        for entry in entries
    ]


# --- The system prompt ------------------------------------------------------------------------


def system_of(item: Item, target: str) -> Any:
    """The system prompt as the target's request has it.

    anthropic: a string or a list of blocks; bedrock: a list of blocks; openai_chat: a
    message; openai_responses: a string; gemini: a content.
    """
    native, text = item.native, text_of(item.parts)
    own = item.format == target
    if target == "openai_chat":
        return dict(native) if own else {"role": "system", "content": text}
    if target == "gemini":
        return {"parts": native["parts"] if own else [{"text": text}]}
    if target == "bedrock":
        return native["content"] if own else [{"text": text}]
    return native["content"] if own and target == "anthropic" else text
