"""An answer before it has a provider's shape, and in pieces."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sessiontree.core.tokens import estimate
from tests.standin.script import Json, Step

Event = tuple[str, Json | str]
"""The name of an event of a stream, and its data."""


@dataclass(frozen=True, slots=True)
class Call:
    id: str
    name: str
    arguments: Any

    @property
    def as_text(self) -> str:
        """The arguments as JSON; a text is sent as it is, so that broken JSON can be sent."""
        if isinstance(self.arguments, str):
            return self.arguments
        return json.dumps(self.arguments, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model says to one request. ``tokens_in`` is what the request cost."""

    number: int
    model: str
    text: str
    thinking: str
    calls: list[Call]
    stop: str
    tokens_in: int
    created: int
    piece: int
    usage: Json

    @property
    def tokens_out(self) -> int:
        said = [self.text, self.thinking, *(f"{c.name}{c.as_text}" for c in self.calls)]
        return max(1, sum(map(estimate, said)))

    @property
    def signature(self) -> str:
        """Signs the thinking; the same for the same text."""
        return hashlib.sha256(self.thinking.encode("utf-8", "surrogatepass")).hexdigest()

    def pieces(self, text: str) -> Iterator[str]:
        for start in range(0, len(text), self.piece):
            yield text[start : start + self.piece]


def answer_of(
    step: Step, number: int, model: str, said: list[str], tokens_in: int, created: int
) -> Answer:
    """The answer of a step to the request ``number``; ``said`` is what the user said in it."""
    calls = [
        Call(str(call.get("id", f"call_{number}_{at}")), call["name"], call.get("arguments", {}))
        for at, call in enumerate(step.calls)
    ]
    text = echo(said) if step.echo else step.text
    stop = step.stop or ("calls" if calls else "end")
    return Answer(
        number, model, text, step.thinking, calls, stop, tokens_in, created, step.piece, step.usage
    )


def echo(said: list[str]) -> str:
    """How many user messages there were, and the last one."""
    count = f"{len(said)} user message{'' if len(said) == 1 else 's'}"
    return f"{count}; the last one: {said[-1]}" if said else count
