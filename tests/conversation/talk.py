"""Messages as a harness gives them (OpenAI's chat shape), and what a test looks at."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from hypothesis import settings

from sessiontree import Conversation, Message


def examples(count: int) -> settings:
    """So many examples, and as many more as HYPOTHESIS_PROFILE=long has beyond the quick one."""
    return settings(max_examples=max(1, count * settings.default.max_examples // 50))


def user(text: str = "hello") -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str = "hi") -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def system(text: str = "be brief") -> dict[str, Any]:
    return {"role": "system", "content": text}


def call(*ids: str | None, name: str = "search", text: str | None = None) -> dict[str, Any]:
    """An assistant message that calls tools; an id of None is left out."""
    made = [
        {
            **({} if given is None else {"id": given}),
            "type": "function",
            "function": {"name": name, "arguments": json.dumps({"n": at})},
        }
        for at, given in enumerate(ids)
    ]
    return {"role": "assistant", "content": text, "tool_calls": made}


def asks(*calls: tuple[str, Any], text: str | None = None) -> dict[str, Any]:
    """An assistant message that calls tools by (name, arguments); the ids are c0, c1, …"""
    made = [
        {
            "id": f"c{at}",
            "type": "function",
            "function": {
                "name": name,
                "arguments": given if isinstance(given, str) else json.dumps(given),
            },
        }
        for at, (name, given) in enumerate(calls)
    ]
    return {"role": "assistant", "content": text, "tool_calls": made}


def result(call_id: str | None, text: str = "found", name: str | None = None) -> dict[str, Any]:
    """What a tool answered; without an id it is told by its name."""
    message: dict[str, Any] = {"role": "tool", "content": text}
    if call_id is not None:
        message["tool_call_id"] = call_id
    if name is not None:
        message["name"] = name
    return message


def step(call_id: str = "call_1") -> list[dict[str, Any]]:
    """A call and its result."""
    return [call(call_id), result(call_id)]


def ids(messages: Iterable[Message]) -> list[int]:
    return [message.id for message in messages]


def texts(messages: Iterable[Message]) -> list[str]:
    return [message.text for message in messages]


async def path_ids(chat: Conversation) -> list[int]:
    return ids(await chat.path())
