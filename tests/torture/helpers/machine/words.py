"""Messages with names: what a name says, the message can be made from, and the other way round.

u.12        a user message              s.12   a system prompt
a.12        an assistant's answer       d.12   a digest
b.12        a user message for a blob   c.12.2 an assistant that calls 2 tools
r.13.12.0   the result of call 0 of c.12.2
x.12.0      the result that says that this call was interrupted (written by the engine)
"""

from __future__ import annotations

import json
from typing import Any

from sessiontree import Message

ROLES = {"u": "user", "b": "user", "d": "user", "a": "assistant", "c": "assistant"}
ROLES |= {"r": "tool", "x": "tool", "s": "system"}


def role_of(name: str) -> str:
    return ROLES[name[0]]


def calls_of(name: str) -> list[str]:
    """The ids of the calls that a message makes."""
    kind, *numbers = name.split(".")
    return [f"{numbers[0]}.{i}" for i in range(int(numbers[1]))] if kind == "c" else []


def answer_of(name: str) -> str | None:
    """The id of the call that a message answers."""
    kind, _, rest = name.partition(".")
    return {"r": rest.partition(".")[2], "x": rest}.get(kind)


def text_of(name: str) -> str:
    number = int(name.split(".")[1])
    padding = 5000 if name[0] == "b" else number * 37 % 700
    return name + " " + "ünïcode words "[: 1 + number % 14] * (1 + padding // 14)


def native_of(name: str) -> dict[str, Any]:
    """The message that bears this name, in the shape of chat completions."""
    native: dict[str, Any] = {"role": role_of(name), "content": text_of(name)}
    if name[0] == "c":
        native["tool_calls"] = [
            {"id": call, "type": "function", "function": {"name": "look", "arguments": "{}"}}
            for call in calls_of(name)
        ]
    if name[0] == "r":
        native["tool_call_id"] = answer_of(name)
    return native


def raw_of(name: str) -> str:
    """Its JSON text, with blanks of its own: it must come back to the byte."""
    return json.dumps(native_of(name), separators=(" ,", ": "), ensure_ascii=len(name) % 2 == 0)


def name_of(message: Message) -> str:
    """The name of a message that was read; it is what was written, to the byte."""
    native = message.native
    if native["content"].startswith("[error] Interrupted"):
        return f"x.{native['tool_call_id']}"
    name = native["content"].partition(" ")[0]
    if name[0] not in "sd":  # these are given as text
        assert message.raw == raw_of(name)
    assert native["content"] == text_of(name)
    assert message.role == role_of(name)
    return name
