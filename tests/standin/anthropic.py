"""Anthropic messages: an answer whole, and as a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.standin.answer import Answer, Call, Event
from tests.standin.script import Json

NAME = "anthropic"
STOPS = {"end": "end_turn", "calls": "tool_use", "length": "max_tokens", "refusal": "refusal"}


def whole(answer: Answer) -> Json:
    blocks: list[Json] = []
    if answer.thinking:
        blocks.append(
            {"type": "thinking", "thinking": answer.thinking, "signature": answer.signature}
        )
    if answer.text:
        blocks.append({"type": "text", "text": answer.text})
    blocks += [_call(call, _input(call)) for call in answer.calls]
    tail = {"stop_reason": STOPS[answer.stop], "usage": usage(answer)}
    return _frame(answer) | {"content": blocks} | tail


def stream(answer: Answer, body: Json) -> Iterator[Event]:
    del body  # nothing in a request changes what a stream holds
    start = _frame(answer) | {"usage": usage(answer) | {"output_tokens": 1}}
    yield _event("message_start", message=start)
    yield _event("ping")
    for at, (block, deltas) in enumerate(_blocks(answer)):
        yield _event("content_block_start", index=at, content_block=block)
        for delta in deltas:
            yield _event("content_block_delta", index=at, delta=delta)
        yield _event("content_block_stop", index=at)
    stop = {"stop_reason": STOPS[answer.stop], "stop_sequence": None}
    yield _event("message_delta", delta=stop, usage=usage(answer))
    yield _event("message_stop")


def usage(answer: Answer) -> Json:
    told = {
        "input_tokens": answer.tokens_in,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": answer.tokens_out,
        "service_tier": "standard",
    }
    return told | answer.usage


def _blocks(answer: Answer) -> Iterator[tuple[Json, list[Json]]]:
    """Each block as it starts, and what is added to it."""
    if answer.thinking:
        said = [
            {"type": "thinking_delta", "thinking": piece}
            for piece in answer.pieces(answer.thinking)
        ]
        signed = {"type": "signature_delta", "signature": answer.signature}
        yield {"type": "thinking", "thinking": "", "signature": ""}, [*said, signed]
    if answer.text:
        deltas = [{"type": "text_delta", "text": piece} for piece in answer.pieces(answer.text)]
        yield {"type": "text", "text": ""}, deltas
    for call in answer.calls:
        pieces = ["", *answer.pieces(call.as_text)]
        yield _call(call, {}), [{"type": "input_json_delta", "partial_json": p} for p in pieces]


def _call(call: Call, given: Any) -> Json:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": given}


def _input(call: Call) -> Any:
    return json.loads(call.arguments) if isinstance(call.arguments, str) else call.arguments


def _frame(answer: Answer) -> Json:
    return {
        "id": f"msg_{answer.number}",
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _event(kind: str, **fields: Any) -> Event:
    return kind, {"type": kind, **fields}


def models(names: list[str], created: int) -> Json:
    del created  # they tell a date as text
    data = [
        {"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"}
        for name in names
    ]
    return {"data": data, "has_more": False, "first_id": names[0], "last_id": names[-1]}


def failed(body: Json) -> Event:
    """An error in the middle of a stream."""
    return "error", body
