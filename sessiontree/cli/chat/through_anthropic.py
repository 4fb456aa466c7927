"""An endpoint that speaks as Anthropic's messages do, by the SDK ``anthropic``."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, cast
from urllib.parse import urlsplit

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

KEY = "ANTHROPIC_API_KEY"
MAX_TOKENS = 4_096
"""Of an answer, where nothing is asked for: the API must be told, and every model has them."""
_STOPS: dict[str, Stop] = {
    "tool_use": "calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}
_GROWS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
"""What a delta adds to a block, by its type: the name is the delta's and the block's."""


class ThroughAnthropic:
    """Streams messages."""

    target = "anthropic"

    def __init__(
        self,
        model: str,
        key: str,
        base_url: str | None = None,
        max_tokens: int | None = None,
        goes_on: bool = True,
    ) -> None:
        """``goes_on``: whether the next request will begin as this one does."""
        self.model = model
        self._sdk = sdk("anthropic")
        # The SDK adds /v1 itself; people copy it along from other clients' settings.
        url = base_url.rstrip("/").removesuffix("/v1") if base_url else None
        self._client = self._sdk.AsyncAnthropic(api_key=key, base_url=url)
        self._url = str(self._client.base_url)
        self.options: Json = {"max_tokens": max_tokens or MAX_TOKENS}
        if goes_on and (urlsplit(self._url).hostname or "").endswith(".anthropic.com"):
            # Nothing is read from the provider's cache that it was not told to write. Servers
            # that speak its protocol may know no such field.
            self.options["cache_control"] = {"type": "ephemeral"}

    async def close(self) -> None:
        await self._client.close()

    async def stream(
        self, request: Mapping[str, Any], tools: Sequence[Json]
    ) -> AsyncGenerator[Event, None]:
        """See ``Endpoint.stream``."""
        with our_errors(self._sdk, self._sdk.AnthropicError, KEY, self._url):
            async with aclosing(self._events(dict(request), tools)) as events:
                async for event in events:
                    yield event

    async def _events(self, request: Json, tools: Sequence[Json]) -> AsyncGenerator[Event, None]:
        if tools:
            request["tools"] = list(tools)
        create = self._client.messages.create
        begun = await create(model=self.model, stream=True, **self.options, **request)
        gathered = _Gathered()
        async with begun as events:
            async for event in events:
                for shown in gathered.take(event.to_dict(warnings=False)):
                    yield shown
        yield gathered.answer()


class _Gathered:
    """An answer as far as it has come."""

    def __init__(self) -> None:
        self.blocks: dict[int, Json] = {}
        self.grown: dict[int, dict[str, list[str]]] = {}
        """What was added to each block, by field."""
        self.usage: Json = {}
        self.model: str | None = None
        self.stop = ""
        self.is_whole = False

    def take(self, event: Json) -> list[Event]:
        """Add an event; what is to be shown of it."""
        kind = event.get("type")
        if kind == "message_start":
            self.model = event["message"].get("model")
            self._count(event["message"].get("usage"))
        elif kind == "content_block_start":
            self.blocks[event["index"]] = dict(event["content_block"])
        elif kind == "content_block_delta":
            return self._grow(event["index"], event["delta"])
        elif kind == "message_delta":
            self.stop = event["delta"].get("stop_reason") or self.stop
            self._count(event.get("usage"))
        elif kind == "message_stop":
            self.is_whole = True
        return []

    def _count(self, usage: Json | None) -> None:
        """Later figures are of the whole message, and stand in the place of earlier ones."""
        self.usage |= {name: value for name, value in (usage or {}).items() if value is not None}

    def _grow(self, at: int, delta: Json) -> list[Event]:
        kind = delta.get("type")
        if kind == "citations_delta":
            block = self.blocks[at]
            block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
            return []
        name = _GROWS.get(str(kind))
        if name is None:
            return []
        piece = delta[name]
        self.grown.setdefault(at, {}).setdefault(name, []).append(piece)
        if name == "text":
            return [Text(piece)]
        return [Thought(piece)] if name == "thinking" else []

    def answer(self) -> Answer:
        """The whole of it; ``EndpointError`` where the provider did not say that it ended."""
        if not self.is_whole:
            raise broke_off()
        content = [self._block(at) for at in sorted(self.blocks)]
        message: Json = {"role": "assistant", "content": content}
        return Answer(message, self.usage or None, self.model, _STOPS.get(self.stop, "end"))

    def _block(self, at: int) -> Json:
        block = {name: value for name, value in self.blocks[at].items() if value is not None}
        for name, pieces in self.grown.get(at, {}).items():
            if name == "partial_json":
                block["input"] = _input("".join(pieces))
            else:
                block[name] = joined([block.get(name) or "", *pieces])
        return block


def _input(text: str) -> Any:
    """The arguments of a call. Where the model wrote no object, its words: the API takes
    nothing else back."""
    try:
        found: Any = json.loads(text) if text.strip() else {}
    except ValueError:
        return {"not_json": text}
    return cast(Json, found) if isinstance(found, dict) else {"value": found}
