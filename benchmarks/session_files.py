"""Session files to import, written in the shape of real ones: Claude Code's, pi's, Codex's.

The sizes are those of recorded sessions: half of the rows are below 1 KB, one in ten is
above 4 KB, the mean is 2.2 KB. A turn is a question, several calls with their results, and
an answer; every answer tells its usage; a program's notes stand in between. What a tool
returned is a file, a listing or an error, and one text in ten is not ASCII.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

Row = dict[str, Any]

CALLS_IN_A_TURN = 6
_LINES = (
    "     12\tdef read(self, path: str) -> list[str]:",
    "     13\t    return [line.strip() for line in open(path, encoding='utf-8')]",
    "drwxr-xr-x  8 builder staff  256  9  7 18:25 components",
    'error: expected 3 columns, found 2 at line 118 of "orders.csv"',
    "The parcel LK-266415 left the warehouse in Lyon, and its return is on the way.",
    "I will look at the tests first, and then change the importer.",
    '  "dependencies": {"lucide-react": "^0.542.0", "next": "15.5.2"},',
    "",
)
_ELSEWHERE = ("café → naïve “quoted”", "größer als 日本語", "done 🙂")


def write(file: Path, format: str, size: int) -> int:
    """Write rows until the file is ``size`` bytes long; how many they are."""
    count = 0
    with file.open("w", encoding="utf-8") as out:
        for row in _WRITERS[format](random.Random(7)):
            out.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n")
            count += 1
            if out.tell() >= size and count % 100 == 0:
                return count
    raise AssertionError("sessions do not end")


def _text(chance: random.Random, size: float) -> str:
    """About ``size`` characters in lines."""
    lines = chance.choices(_LINES, k=1 + int(size / 50))
    if chance.random() < 0.1:
        lines.append(chance.choice(_ELSEWHERE))
    return "\n".join(lines)


def _output(chance: random.Random) -> str:
    """What a tool returned: mostly short, sometimes a whole file."""
    return _text(chance, min(60_000, chance.lognormvariate(6.6, 1.4)))


def _time(at: int) -> str:
    day, hour, minute = 1 + at // 86_400 % 28, at // 3600 % 24, at // 60 % 60
    return f"2026-01-{day:02d}T{hour:02d}:{minute:02d}:00.{at % 1000:03d}Z"


# --- Claude Code ----------------------------------------------------------------------------


def _claude_code(chance: random.Random) -> Iterator[Row]:
    last: str | None = None
    for at, message in enumerate(_anthropic(chance)):
        row = _claude_row(chance, at, last, message)
        last = row["uuid"]
        yield row
        if at % 50 == 0:
            yield {"type": "file-history-snapshot", "messageId": last, "snapshot": {"files": {}}}


def _claude_row(chance: random.Random, at: int, last: str | None, message: Row) -> Row:
    row: Row = {
        "parentUuid": last,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/home/builder/app",
        "sessionId": "5c0375b4-57a5-4f26-b12d-d022ee4e51b7",
        "version": "2.0.14",
        "gitBranch": "main",
        "type": message["role"],
        "message": message,
    }
    content = message["content"]
    if message["role"] == "assistant":
        row["requestId"] = f"req_{at:024x}"
    elif isinstance(content, list) and len(content[0]["content"]) < 2000:
        row["toolUseResult"] = {"stdout": content[0]["content"], "stderr": "", "isImage": False}
    return row | {"uuid": _uuid(chance), "timestamp": _time(at)}


def _uuid(chance: random.Random) -> str:
    return str(UUID(int=chance.getrandbits(128), version=4))


def _anthropic(chance: random.Random) -> Iterator[Row]:
    """The messages of the conversation, without end."""
    turn = 0
    while True:
        turn += 1
        yield {"role": "user", "content": _text(chance, 300)}
        for call in range(CALLS_IN_A_TURN):
            name = f"toolu_{turn:020x}{call}"
            arguments = {"file_path": f"/home/builder/app/part_{turn}.py", "limit": 400}
            use = {"type": "tool_use", "id": name, "name": "Read", "input": arguments}
            said = [{"type": "text", "text": _text(chance, 150)}] if call % 2 else _thought(chance)
            yield _claude_answer(chance, f"{turn}-{call}", [*said, use], "tool_use")
            block = {"tool_use_id": name, "type": "tool_result", "content": _output(chance)}
            yield {"role": "user", "content": [block]}
        end = [{"type": "text", "text": _text(chance, 700)}]
        yield _claude_answer(chance, f"{turn}-end", end, "end_turn")


def _thought(chance: random.Random) -> list[Row]:
    """What some answers begin with: words, and many bytes that only the provider reads."""
    if chance.random() < 0.4:
        return []
    signature = chance.randbytes(chance.randrange(300, 900)).hex()
    return [{"type": "thinking", "thinking": _text(chance, 250), "signature": signature}]


def _claude_answer(chance: random.Random, name: str, content: list[Row], stop: str) -> Row:
    return {
        "id": f"msg_{name}",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-20250514",
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {
            "input_tokens": chance.randrange(2000),
            "cache_creation_input_tokens": chance.randrange(9000),
            "cache_read_input_tokens": chance.randrange(90_000),
            "cache_creation": {"ephemeral_5m_input_tokens": 133, "ephemeral_1h_input_tokens": 0},
            "output_tokens": chance.randrange(900),
            "service_tier": "standard",
        },
    }


# --- pi -------------------------------------------------------------------------------------


def _pi(chance: random.Random) -> Iterator[Row]:
    opened = {"type": "session", "version": 3, "id": _uuid(chance), "timestamp": _time(0)}
    yield opened | {"cwd": "/home/builder/app"}
    last: str | None = None
    for at, message in enumerate(_pi_messages(chance)):
        name = f"{at:08x}"
        row = {"type": "message", "id": name, "parentId": last, "timestamp": _time(at)}
        yield row | {"message": message | {"timestamp": 1_765_233_669_399 + at}}
        last = name


def _pi_messages(chance: random.Random) -> Iterator[Row]:
    for message in _anthropic(chance):
        if message["role"] == "assistant":
            yield _pi_answer(chance, message)
        elif isinstance(message["content"], str):
            yield {"role": "user", "content": [{"type": "text", "text": message["content"]}]}
        else:
            block = message["content"][0]
            yield {
                "role": "toolResult",
                "toolCallId": block["tool_use_id"],
                "toolName": "read",
                "content": [{"type": "text", "text": block["content"]}],
                "isError": False,
            }


def _pi_answer(chance: random.Random, message: Row) -> Row:
    used = chance.randrange(90_000)
    return {
        "role": "assistant",
        "content": [_pi_block(block) for block in message["content"]],
        "api": "anthropic-messages",
        "provider": "anthropic",
        "model": "claude-opus-4-5",
        "usage": {
            "input": 1,
            "output": chance.randrange(900),
            "cacheRead": used,
            "cacheWrite": 33_637,
            "totalTokens": used + 33_752,
            "cost": {"input": 5e-06, "output": 0.00285, "cacheRead": 0, "cacheWrite": 0.21023125},
        },
        "stopReason": "toolUse" if message["stop_reason"] == "tool_use" else "stop",
    }


def _pi_block(block: Row) -> Row:
    if block["type"] == "text":
        return block
    if block["type"] == "thinking":
        kept = {"type": "thinking", "thinking": block["thinking"]}
        return kept | {"thinkingSignature": block["signature"]}
    arguments = {"path": block["input"]["file_path"], "limit": 400}
    return {"type": "toolCall", "id": block["id"], "name": "read", "arguments": arguments}


# --- Codex ----------------------------------------------------------------------------------


def _codex(chance: random.Random) -> Iterator[Row]:
    session = {"id": _uuid(chance), "timestamp": _time(0), "cwd": "/home/builder/app"}
    yield {"timestamp": _time(0), "type": "session_meta", "payload": session}
    for at, (kind, payload) in enumerate(_codex_rows(chance)):
        yield {"timestamp": _time(at), "type": kind, "payload": payload}


def _codex_rows(chance: random.Random) -> Iterator[tuple[str, Row]]:
    for message in _anthropic(chance):
        content = message["content"]
        if message["role"] == "assistant":
            for block in content:
                yield "response_item", _codex_item(block)
            yield "event_msg", _codex_count(chance)
        elif isinstance(content, str):
            said = {"type": "input_text", "text": content}
            yield "response_item", {"type": "message", "role": "user", "content": [said]}
        else:
            block = content[0]
            told = {"call_id": block["tool_use_id"], "output": block["content"]}
            yield "response_item", {"type": "function_call_output"} | told


def _codex_count(chance: random.Random) -> Row:
    usage = {
        "input_tokens": chance.randrange(90_000),
        "cached_input_tokens": chance.randrange(80_000),
        "output_tokens": chance.randrange(900),
        "reasoning_output_tokens": chance.randrange(300),
        "total_tokens": chance.randrange(91_000),
    }
    info = {"total_token_usage": usage, "last_token_usage": usage, "model_context_window": 272_000}
    window = {"used_percent": 14.0, "window_minutes": 300, "resets_at": 1_765_233_669}
    limits = {"primary": window, "secondary": window, "credits": None, "plan_type": "pro"}
    return {"type": "token_count", "info": info, "rate_limits": limits}


def _codex_item(block: Row) -> Row:
    if block["type"] == "text":
        said = {"type": "output_text", "text": block["text"]}
        return {"type": "message", "role": "assistant", "content": [said]}
    if block["type"] == "thinking":
        told = {"summary": [], "encrypted_content": block["signature"]}
        return {"type": "reasoning", "id": "rs_" + block["signature"][:40]} | told
    arguments = json.dumps(block["input"])
    return {
        "type": "function_call",
        "name": "shell",
        "arguments": arguments,
        "call_id": block["id"],
    }


_WRITERS: dict[str, Callable[[random.Random], Iterator[Row]]] = {
    "claude_code": _claude_code,
    "pi": _pi,
    "codex": _codex,
}
FORMATS = tuple(_WRITERS)
