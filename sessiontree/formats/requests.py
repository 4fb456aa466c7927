"""Requests to providers, as harnesses log them: a conversation as it was last sent.

    openai_chat        {"messages": [message]}
    anthropic, bedrock {"messages": [message], "system"?}
    openai_responses   {"input": [item] | str, "instructions"?}
    gemini             {"contents": [content], "systemInstruction"?}

One in a file, several in a list, or one a line; also the bare messages, as a list or one a
line. Messages are stored as they are, in the provider's own format; the system prompt that
stands beside them is the message before all. Their order is the chain.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from sessiontree import formats
from sessiontree.errors import FormatError
from sessiontree.formats import document, shapes
from sessiontree.formats.document import Document, Node, Object, Opening, Place
from sessiontree.formats.transcript import Head, Notes, Source, text_at


class Shape(NamedTuple):
    """How a provider's request holds messages and the system prompt."""

    messages: str
    system: tuple[str, ...]
    text: str
    """Where a message has what it says."""


SHAPES = {
    "openai_chat": Shape("messages", (), "content"),
    "anthropic": Shape("messages", ("system",), "content"),
    "bedrock": Shape("messages", ("system",), "content"),
    "openai_responses": Shape("input", ("instructions",), "content"),
    "gemini": Shape("contents", ("systemInstruction", "system_instruction"), "parts"),
}

_ANTHROPIC = frozenset({"tool_use_id", "input", "source", "thinking", "cache_control"})
"""Keys in a block of a message by which its format is told."""
_KNOWN = ("id", "title", "created_at", "created")


class Requests(document.DocumentReader):
    """The reader of one provider's requests."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__()
        self.answers = name
        self.goes_on = name
        self.shape = SHAPES[name]

    def recognises(self, head: Head) -> bool:
        return told(document.outline(head.text)) == self.name

    def values(self, source: Source, skipped: Notes) -> Iterator[tuple[object, int]]:
        """Requests; messages that stand by themselves are taken as one."""
        found = super().values(source, skipped)
        for value, end in found:
            if shapes.is_object(value) and self._is_message(value):
                rest = [value, *(later for later, _ in found)]
                yield {self.shape.messages: rest}, source.size
                return
            yield value, end

    def _is_message(self, value: Object) -> bool:
        return self.shape.messages not in value and ("role" in value or "type" in value)

    def document(self, found: Object, name: str) -> Document:
        messages = found.get(self.shape.messages)
        if isinstance(messages, str):
            messages = [{"role": "user", self.shape.text: messages}]
        if not isinstance(messages, list):
            raise FormatError(f"it has no list of {self.shape.messages}")
        opening = Opening(
            document.name_at(found, "id"),
            text_at(found, "title"),
            document.moment(found.get("created_at")) or document.moment(found.get("created")),
            meta=document.rest_of(found, *_KNOWN, self.shape.messages, *self.shape.system),
        )
        nodes = _nodes(cast("list[object]", messages))
        system = next((found[key] for key in self.shape.system if found.get(key)), None)
        if system is not None:
            nodes = document.with_system(self._system(system), nodes)
        return Document(name, opening, nodes)

    def _system(self, system: object) -> dict[str, Any]:
        """A system prompt as a message."""
        inner = system.get("parts", system) if shapes.is_object(system) else system
        if self.shape.text == "parts" and isinstance(inner, str):
            inner = [{"text": inner}]
        return {"role": "system", self.shape.text: inner}


READERS = {name: Requests(name) for name in SHAPES}


def _nodes(messages: list[object]) -> Iterator[Node]:
    for message in messages:
        yield Node(message, Place(follows=True))


def told(keys: frozenset[str]) -> str | None:
    """The provider whose request or messages have these keys."""
    if "contents[].parts" in keys or ("parts[].text" in keys and "parts[].type" not in keys):
        return "gemini"
    if not keys.isdisjoint({"input[].role", "input[].type"}):
        return "openai_responses"
    if "input" in keys and not keys.isdisjoint({"instructions", "previous_response_id"}):
        return "openai_responses"
    bare = {"role", "content"} <= keys and "messages[].role" not in keys
    if not bare and "messages[].role" not in keys:
        return None
    blocks = "content[]." if bare else "messages[].content[]."
    if f"{blocks}type" not in keys and not keys.isdisjoint({f"{blocks}text", f"{blocks}toolUse"}):
        return "bedrock"
    is_anthropic = "system" in keys or any(blocks + key in keys for key in _ANTHROPIC)
    return "anthropic" if is_anthropic else formats.FALLBACK
