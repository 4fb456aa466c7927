"""Conversations that are worth a window, and what is looked at in one."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from typing import Any

import sessiontree
from sessiontree import Conversation, Window

TARGETS = ("anthropic", "openai_chat", "openai_responses", "gemini", "bedrock")
LOG = "error in module seven\n" * 200
"""What a tool returns: about 1,200 tokens."""


def violations(window: Window) -> list[str]:
    """What the provider would refuse of it; a window that is no request yet may end with the
    assistant's message."""
    bad = sessiontree.violations(window.messages, window.target, system=window.system)
    allowed = set() if window.ready else {"A12", "G5"}
    return [str(each) for each in bad if each.rule not in allowed]


def said(window: Window) -> str:
    """All that is sent, as one text."""
    return json.dumps([window.system, window.messages], ensure_ascii=False)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def picture(side: int = 800, text: str = "look") -> dict[str, Any]:
    """A user message with a grey image."""
    url = f"data:image/png;base64,{png(side, side)}"
    return {
        "role": "user",
        "content": [
            {"type": "text", "text": text},
            {"type": "image_url", "image_url": {"url": url}},
        ],
    }


def png(width: int, height: int) -> str:
    """A whole grey PNG file, as base64."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\x80" * width) * height)
    raw = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    return base64.b64encode(raw).decode()


def work(number: int, output: str = LOG) -> list[dict[str, Any]]:
    """One turn: a question, a call, its result, an answer."""
    call = {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": "search", "arguments": json.dumps({"n": number})},
    }
    return [
        user(f"question {number}"),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call_{number}", "content": f"{number}: {output}"},
        {"role": "assistant", "content": f"answer {number}"},
    ]


async def busy(chat: Conversation, turns: int = 6) -> None:
    """Turns with one long result each, and a question that waits."""
    for number in range(turns):
        await chat.append(work(number))
    await chat.append([user("now")])


async def count(chat: Conversation) -> int:
    """How many messages the tree holds."""
    return len([message async for message in chat.iter_messages()])
