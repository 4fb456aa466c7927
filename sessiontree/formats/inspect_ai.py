"""Inspect's logs of evaluations (version 2): a conversation for each sample.

    {"version", "status", "eval": {"eval_id", "task", …}, "samples": [sample]}
    sample: {"id", "epoch", "uuid"?, "messages": [message], "scores", …}; or a file of its own

    message: {"id"?, "role": "system" | "user" | "assistant" | "tool", "content": str | [block],
              "tool_calls"?: [{"id", "function", "arguments"}], "tool_call_id"?, "error"?}

A message is stored as it is, with the attachments that it names put in. A sample's other
fields become the conversation's ``meta``, but for its ``events``: these tell how the messages
came about, in many times their size; the log keeps them, and how many there are is noted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from sessiontree.core.message import Decoded, Part, Role
from sessiontree.errors import FormatError
from sessiontree.formats import document, shapes
from sessiontree.formats.document import Document, Node, NodeCodec, Object, Opening, Place
from sessiontree.formats.transcript import Head, text_at

NAME = "inspect_ai"

ROLES: dict[str, Role] = {
    "system": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
ATTACHED = "attachment://"
EVAL = "eval of a sample"
"""The key, of ours, under which a sample is handed on with what is said of all of them."""
_SAMPLE = frozenset({"epoch", "input", "messages[].role"})
_KNOWN = ("messages", "attachments", "events", EVAL)


class InspectAI(NodeCodec):
    """The codec of its messages."""

    name = NAME

    def said(self, native: Object) -> Decoded:
        role = shapes.role_in(native, ROLES, NAME)
        parts = _parts(native.get("content"))
        if role == "tool":
            return Decoded(role, [_response(native, parts)])
        calls = native.get("tool_calls") if role == "assistant" else None
        if calls is not None:
            parts += map(_call, shapes.blocks_in(calls, NAME, "tool_calls"))
        return Decoded(role, parts)

    def written(self, role: Role, text: str) -> dict[str, Any]:
        return {"role": role, "content": text}


CODEC = InspectAI()


def _parts(content: object) -> list[Part]:
    if isinstance(content, str):
        return [shapes.text_part(content)]
    return [_part(block) for block in shapes.blocks_in(content, NAME, "content")]


def _part(block: Object) -> Part:
    kind = shapes.kind_in(block, NAME, "a block")
    if kind == "text":
        return shapes.text_part(shapes.text_in(block, "text", NAME, "a block"))
    if kind == "reasoning":
        text = shapes.text_in(block, "reasoning", NAME, "a block")
        return {"type": "reasoning", "content": text, "provider": NAME}
    if kind in ("image", "audio", "video") and isinstance(block.get(kind), str):
        return shapes.from_url(block[kind], kind)
    return shapes.keep(block, kind, NAME)


def _call(call: Object) -> Part:
    return {
        "type": "tool_call",
        "id": call.get("id"),
        "name": shapes.text_in(call, "function", NAME, "a call"),
        "arguments": call.get("arguments"),
    }


def _response(native: Object, parts: list[Part]) -> Part:
    made: Part = {"type": "tool_call_response", "id": native.get("tool_call_id")}
    if text_at(native, "function"):
        made["name"] = native["function"]
    error = native.get("error")
    if shapes.is_object(error):
        parts = [*parts, shapes.text_part(text_at(error, "message") or "it failed")]
    return made | {"response": parts, "is_error": error is not None}


class _Reader(document.DocumentReader):
    name = NAME

    def recognises(self, head: Head) -> bool:
        keys = document.outline(head.text)
        return "eval.eval_id" in keys or keys >= _SAMPLE

    def conversations(self, value: object) -> Iterable[object]:
        if not shapes.is_object(value) or "samples" not in value:
            return [value]
        samples = value["samples"]
        if not isinstance(samples, list):
            raise FormatError("its samples are no list")
        about = value.get("eval")
        return (
            {**sample, EVAL: about} if shapes.is_object(sample) else sample
            for sample in cast("list[object]", samples)
        )

    def document(self, found: Object, name: str) -> Document:
        messages = shapes.blocks_in(found.get("messages"), NAME, "messages")
        facts = _object_at(found, EVAL)
        events = found.get("events")
        meta = document.rest_of(found, *_KNOWN)
        if isinstance(events, list):
            meta["events_left_out"] = len(cast("list[object]", events))
        opening = Opening(
            _topic(found, facts),
            title=_title(found, facts),
            created_at=document.moment(facts.get("created")),
            meta=meta,
        )
        return Document(name, opening, _nodes(messages, _object_at(found, "attachments")))


READER = _Reader()


def _topic(sample: Object, facts: Object) -> str | None:
    """What names a sample: its own id is that of the question, which comes in every run."""
    own = document.name_at(sample, "uuid")
    run, name = text_at(facts, "eval_id"), document.name_at(sample, "id")
    return own or (f"{run}:{name}:{sample.get('epoch')}" if run and name else None)


def _title(sample: Object, facts: Object) -> str | None:
    task, name = text_at(facts, "task"), document.name_at(sample, "id")
    return f"{task}, sample {name}, epoch {sample.get('epoch')}" if task and name else None


def _object_at(native: Object, key: str) -> Object:
    value = native.get(key)
    return value if shapes.is_object(value) else dict[str, Any]()


def _nodes(messages: Sequence[Object], held: Object) -> Iterator[Node]:
    for message in messages:
        model = text_at(message, "model") if message.get("role") == "assistant" else None
        place = Place(document.name_at(message, "id"), follows=True, model=model)
        yield Node(_with(held, message) if held else message, place)


def _with(held: Object, message: Object) -> object:
    """A message with the attachments that it names, wherever it names them."""
    made: dict[str, Any] = dict(message)
    waiting: list[dict[str, Any] | list[Any]] = [made]
    while waiting:
        inside = waiting.pop()
        for key, value in _items(inside):
            if isinstance(value, str) and value.startswith(ATTACHED):
                inside[key] = held.get(value.removeprefix(ATTACHED), value)
            elif isinstance(value, dict | list):
                copied = cast("dict[str, Any] | list[Any]", value).copy()
                inside[key] = copied
                waiting.append(copied)
    return made


def _items(inside: dict[str, Any] | list[Any]) -> list[tuple[Any, Any]]:
    return list(inside.items()) if isinstance(inside, dict) else list(enumerate(inside))
