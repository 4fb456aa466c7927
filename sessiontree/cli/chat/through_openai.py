"""An endpoint that speaks as OpenAI's chat completions do, by the SDK ``openai``."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from sessiontree.cli.chat.endpoint import (
    Answer,
    Event,
    Json,
    Stop,
    Text,
    Thought,
    broke_off,
    joined,
    our_errors,
    sdk,
)

KEY = "OPENAI_API_KEY"
_STOPS: dict[str, Stop] = {
    "tool_calls": "calls",
    "function_call": "calls",
    "length": "length",
    "content_filter": "refusal",
}
_THOUGHTS = ("reasoning_content", "reasoning")
"""Where compatible servers put what the model thinks."""


class ThroughOpenAI:
    """Streams chat completions."""

    target = "openai_chat"

    def __init__(
        self, model: str, key: str, base_url: str | None = None, max_tokens: int | None = None
    ) -> None:
        self.model = model
        self._sdk = sdk("openai")
        self._client = self._sdk.AsyncOpenAI(api_key=key, base_url=base_url)
        self._url = str(self._client.base_url)
        self._options: Json = {"stream_options": {"include_usage": True}}
        if max_tokens is not None:  # OpenAI's newest models take the one, other servers the other
            is_own = "api.openai.com" in self._url
            self._options["max_completion_tokens" if is_own else "max_tokens"] = max_tokens

    async def close(self) -> None:
        await self._client.close()

    async def stream(
        self, request: Mapping[str, Any], tools: Sequence[Json]
    ) -> AsyncGenerator[Event, None]:
        """See ``Endpoint.stream``."""
        with our_errors(self._sdk, self._sdk.OpenAIError, KEY, self._url):
            async with aclosing(self._events(dict(request), tools)) as events:
                async for event in events:
                    yield event

    async def _events(self, request: Json, tools: Sequence[Json]) -> AsyncGenerator[Event, None]:
        gathered = _Gathered()
        async with await self._begun(request | ({"tools": list(tools)} if tools else {})) as chunks:
            try:
                async for chunk in chunks:
                    for event in gathered.take(chunk.to_dict(warnings=False)):
                        yield event
            except self._sdk.APIConnectionError as error:
                raise broke_off(error) from error
        yield gathered.answer()

    async def _begun(self, request: Json) -> Any:
        """The stream. Asked for without what it was told of, where a server knows of no
        ``stream_options``."""
        create = self._client.chat.completions.create
        try:
            return await create(model=self.model, stream=True, **self._options, **request)
        except (self._sdk.BadRequestError, self._sdk.UnprocessableEntityError) as error:
            if "stream_options" not in str(error) or "stream_options" not in self._options:
                raise
            del self._options["stream_options"]
            return await create(model=self.model, stream=True, **self._options, **request)


class _Gathered:
    """An answer as far as it has come."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.thought: list[str] = []
        self.thoughts_name = _THOUGHTS[0]
        self.refusal: list[str] = []
        self.calls: dict[int, Json] = {}
        self.usage: Json | None = None
        self.model: str | None = None
        self.finish: str = ""

    def take(self, chunk: Json) -> list[Event]:
        """Add a chunk; what is to be shown of it."""
        self.usage = chunk.get("usage") or self.usage
        self.model = chunk.get("model") or self.model
        shown: list[Event] = []
        choices: list[Json] = chunk.get("choices") or []
        for choice in choices[:1]:
            self.finish = choice.get("finish_reason") or self.finish
            shown += self._delta(choice.get("delta") or {})
        return shown

    def _delta(self, delta: Json) -> list[Event]:
        shown: list[Event] = []
        for name in _THOUGHTS:
            if isinstance(delta.get(name), str) and delta[name]:
                self.thoughts_name = name
                self.thought.append(delta[name])
                shown.append(Thought(delta[name]))
                break
        for name, pieces in (("content", self.said), ("refusal", self.refusal)):
            if delta.get(name):
                pieces.append(delta[name])
                shown.append(Text(delta[name]))
        for call in delta.get("tool_calls") or ():
            self._call(call)
        return shown

    def _call(self, piece: Json) -> None:
        """A piece of a call; where it bears no index, an id begins a new one."""
        at = piece.get("index")
        if at is None:
            at = len(self.calls) if piece.get("id") else max(len(self.calls) - 1, 0)
        empty = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
        call = self.calls.setdefault(at, empty)
        call["id"] = piece.get("id") or call["id"]
        given: Json = piece.get("function") or {}
        call["function"]["name"] = given.get("name") or call["function"]["name"]
        call["function"]["arguments"] += given.get("arguments") or ""

    def answer(self) -> Answer:
        """The whole of it; ``EndpointError`` where the provider did not say that it ended."""
        if not self.finish:
            raise broke_off()
        message: Json = {"role": "assistant", "content": joined(self.said) or None}
        if self.refusal:
            message["refusal"] = joined(self.refusal)
        if self.thought:
            message[self.thoughts_name] = joined(self.thought)
        if self.calls:
            message["tool_calls"] = [self.calls[at] for at in sorted(self.calls)]
        elif message["content"] is None and not self.refusal:
            message["content"] = ""
        stop = _STOPS.get(self.finish, "calls" if self.calls else "end")
        return Answer(message, self.usage, self.model, stop)
