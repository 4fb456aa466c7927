"""Conversations by turns, as trainers read them (ShareGPT, in the dialect of LLaMA-Factory).

    {"conversations": [{"from": "human", "value": str}, {"from": "gpt", "value": str}, …],
     "system"?: str, "shows": "path" | "branch", "leaf": id}

``human`` and ``observation`` stand at odd places, ``gpt`` and ``function_call`` at even
ones, or the trainer leaves the conversation out; so what one side says in several messages
is one turn. A call is ``{"name", "arguments"}`` as JSON text, several a list; what is said
beside it is in ``text`` (trainers pass over it). Several results are a list as well.
Reasoning and marks are left out; images and files are named in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sessiontree.core.message import Message, Part, text_of
from sessiontree.formats import shapes
from sessiontree.formats.writing.lines import as_json

NAME = "sharegpt"


class _Said(NamedTuple):
    """What a message adds to a turn of its side."""

    sender: str
    texts: list[str]
    data: list[Any]
    """Calls, or results."""


def conversation(path: Sequence[Message], shows: str) -> dict[str, Any]:
    """The conversation that a path is; ``shows``: "path" of the head, or a "branch"."""
    turns: list[_Said] = []
    for message in path:
        for said in _said(message):
            if turns and _is_one_turn(turns[-1], said):
                turns[-1] = _joined(turns[-1], said)
            else:
                turns.append(said)
    system = next((m.text for m in reversed(path) if m.role == "system"), None)
    told: dict[str, Any] = {"conversations": [_turn(turn) for turn in turns]}
    if system is not None:
        told["system"] = system
    return told | {"shows": shows, "leaf": path[-1].id if path else None}


def _said(message: Message) -> Iterable[_Said]:
    if message.role in ("system", "mark"):
        return
    results = [shapes.said_by(p) for p in message.parts if p.get("type") == "tool_call_response"]
    if results:
        yield _Said("observation", [], results)
    texts = [text for part in message.parts if (text := _text(part))]
    calls = [
        {"name": part.get("name"), "arguments": shapes.arguments_object(part.get("arguments"))}
        for part in message.parts
        if part.get("type") == "tool_call"
    ]
    if texts or calls:
        sender = "gpt" if message.role == "assistant" else "human"
        yield _Said("function_call" if calls else sender, texts, calls)


def _text(part: Part) -> str:
    if shapes.is_media(part) or shapes.is_kept_media(part):
        return shapes.media_in_words(part, NAME)
    return text_of([part])


_SIDE = {"human": 0, "observation": 0, "gpt": 1, "function_call": 1}


def _is_one_turn(before: _Said, said: _Said) -> bool:
    return _SIDE[before.sender] == _SIDE[said.sender]


def _joined(before: _Said, said: _Said) -> _Said:
    """One turn of both; results or calls make it an observation or a call."""
    sender = before.sender if before.data else said.sender
    return _Said(sender, before.texts + said.texts, before.data + said.data)


def _turn(said: _Said) -> dict[str, Any]:
    text = "\n\n".join(said.texts)
    if not said.data:
        return {"from": said.sender, "value": text}
    value = said.data[0] if len(said.data) == 1 else said.data
    turn = {"from": said.sender, "value": value if isinstance(value, str) else as_json(value)}
    return turn | ({"text": text} if text else {})
