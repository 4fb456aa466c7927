"""OpenAI chat completions: an answer whole, and as a stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.standin.answer import Answer, Call, Event
from tests.standin.script import Json

NAME = "openai_chat"
STOPS = {"end": "stop", "calls": "tool_calls", "length": "length", "refusal": "content_filter"}
LAST: Event = ("", "[DONE]")


def whole(answer: Answer) -> Json:
    message: Json = {"role": "assistant", "content": answer.text or None, "refusal": None}
    if answer.thinking:
        message["reasoning_content"] = answer.thinking
    if answer.calls:
        message["tool_calls"] = [_call(call, call.as_text) for call in answer.calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _stop(answer)}
    return _frame(answer, "chat.completion") | {"choices": [choice], "usage": usage(answer)}


def stream(answer: Answer, body: Json) -> Iterator[Event]:
    options: Json = body.get("stream_options") or {}
    counted = bool(options.get("include_usage"))
    for delta in _deltas(answer):
        yield _chunk(answer, delta, None, counted)
    yield _chunk(answer, {}, _stop(answer), counted)
    if counted:
        yield (
            "",
            _frame(answer, "chat.completion.chunk") | {"choices": [], "usage": usage(answer)},
        )
    yield LAST


def usage(answer: Answer) -> Json:
    told = {
        "prompt_tokens": answer.tokens_in,
        "completion_tokens": answer.tokens_out,
        "total_tokens": answer.tokens_in + answer.tokens_out,
        "prompt_tokens_details": {"cached_tokens": 0},
    }
    return told | answer.usage


def _deltas(answer: Answer) -> Iterator[Json]:
    yield {"role": "assistant", "content": "", "refusal": None}
    for piece in answer.pieces(answer.thinking):
        yield {"reasoning_content": piece}
    for piece in answer.pieces(answer.text):
        yield {"content": piece}
    for at, call in enumerate(answer.calls):
        yield {"tool_calls": [{"index": at, **_call(call, "")}]}
        for piece in answer.pieces(call.as_text):
            yield {"tool_calls": [{"index": at, "function": {"arguments": piece}}]}


def _call(call: Call, arguments: str) -> Json:
    function = {"name": call.name, "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function}


def _chunk(answer: Answer, delta: Json, stop: str | None, counted: bool) -> Event:
    choice: Json = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": stop}
    tail: Json = {"choices": [choice]} | ({"usage": None} if counted else {})
    return "", _frame(answer, "chat.completion.chunk") | tail


def _frame(answer: Answer, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{answer.number}",
        "object": kind,
        "created": answer.created,
        "model": answer.model,
        "service_tier": "default",
    }


def _stop(answer: Answer) -> str:
    return STOPS[answer.stop]


def models(names: list[str], created: int) -> Json:
    data = [
        {"id": name, "object": "model", "created": created, "owned_by": "stand-in"}
        for name in names
    ]
    return {"object": "list", "data": data}


def failed(body: Json) -> Event:
    """An error in the middle of a stream."""
    return "", body
