"""What a provider's error says when a request was too large: by what, and by how much.

Too many tokens and too many bytes are different things: trimming text does not help where
images make the payload too large. Source of the texts: the providers' errors as harnesses
recognise them, listed with the project's facts on provider rules.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, cast

Kind = Literal["tokens", "bytes"]

_TOKEN_WORDS = (
    "prompt is too long",
    "exceed context limit",
    "input is too long for requested model",
    "exceeds the context window",
    "exceed the context window",
    "context_length_exceeded",
    "context window exceed",
    "maximum context length",
    "exceeds the maximum number of tokens",
    "maximum prompt length",
    "reduce the length of the messages",
    "exceeds the available context size",
    "too many tokens",
)
_TOKEN_COUNT = r"input token count.{0,40}exceeds the maximum"
_BYTE_WORDS = (
    "request_too_large",
    "request exceeds the maximum size",
    "request exceeds the maximum allowed number of bytes",
    "payload too large",
    "request entity too large",
    "payload size exceeds the limit",
)
# Patterns; "#" is a number. They are compiled when an error is first read.

_INPUT_AND_OUTPUT = r"# \+ # > #"
"""Anthropic, with ``max_tokens``: input + output > limit."""
_OF_WHICH = (
    r"maximum context length is # tokens.*?requested # tokens \(# in the (?:messages|input|prompt)"
    r".*?# in the (?:completion|output)"
)
"""OpenAI, with the completion's share."""
_ACTUAL_THEN_LIMIT = (
    r"# tokens > # maximum",
    r"token count \(?#\)?.*?maximum number of tokens allowed \(?#",
    r"request \(# tokens\) exceeds the available context size \(# tokens",
    r"input of # tokens.*?(?:limit|maximum) (?:of|is) #",
    r"#\s*bytes\s*>\s*#",
)
_LIMIT_THEN_ACTUAL = (
    r"maximum context length is # tokens.*?(?:resulted in|requested|contains?|has) # tokens",
    r"maximum prompt length is #.*?contains # tokens",
)
_LIMIT = (
    r"maximum context length is # tokens",
    r"maximum prompt length is #",
    r"available context size \(?#",
    r"context window of #",
    r"maximum (?:allowed )?(?:size|number of bytes)\D{0,12}#",
    r"limit\D{0,12}#\s*bytes",
)


def _search(pattern: str, text: str) -> re.Match[str] | None:
    return re.search(pattern.replace("#", r"([\d][\d,._]*)"), text, re.DOTALL)


class Excess(NamedTuple):
    """What an error says. ``actual`` and ``limit`` are None where it names no number; for
    tokens they are those of the input, the room kept for the answer taken off."""

    kind: Kind
    actual: int | None
    limit: int | None


@dataclass(frozen=True, slots=True)
class Recovery:
    """What to do about an error of size.

    ``budget`` is what to plan the next window with, in the units of our own counting:
    where the provider named its count, ours is scaled to it.
    """

    kind: Kind
    actual: int | None
    limit: int | None
    budget: int

    @property
    def over(self) -> int | None:
        """By how much it was too large; None where the error does not say."""
        if self.actual is None or self.limit is None:
            return None
        return self.actual - self.limit

    def as_budget(self, budget: Any) -> Any:
        """``budget`` (a ``Budget``) with the limit that was found; a smaller one stays."""
        before = getattr(budget, self.kind)
        limit = self.budget if before is None else min(before, self.budget)
        return replace(budget, **{self.kind: limit})

    def __str__(self) -> str:
        known = f": {self.actual} of {self.limit}" if self.over is not None else ""
        return f"too many {self.kind}{known}; plan with {self.budget} {self.kind}"


MARGIN = 0.98
"""Of what would just fit, so that a second refusal is unlikely."""
BLIND = 0.8
"""Of what was sent, where the error names no number."""


def read(error: object) -> Excess | None:
    """What ``error`` (an exception, its text, or its body) says of the request's size; None
    when it speaks of something else."""
    text = _text_of(error)
    lowered = text.lower()
    if any(words in lowered for words in _TOKEN_WORDS) or _search(_TOKEN_COUNT, lowered):
        return Excess("tokens", *_numbers(lowered))
    is_payload = any(words in lowered for words in _BYTE_WORDS) or _status_of(error) == 413
    return Excess("bytes", *_numbers(lowered)) if is_payload else None


def budget_for(excess: Excess, ours: int) -> Recovery:
    """The budget that would have been right, when our own count of what was sent (in the
    unit of the excess) was ``ours``."""
    actual, limit = excess.actual, excess.limit
    if actual and limit:
        fits = ours * min(1.0, limit / actual) * MARGIN
    elif limit:
        fits = min(limit * MARGIN, ours * BLIND)
    else:
        fits = ours * BLIND
    return Recovery(excess.kind, actual, limit, max(1, int(fits)))


def _text_of(error: object) -> str:
    if isinstance(error, str):
        return error
    if isinstance(error, bytes):
        return error.decode("utf-8", "replace")
    if isinstance(error, Mapping):
        return json.dumps(cast("Mapping[str, Any]", error), default=str)
    said = [str(error), *(str(getattr(error, name, "") or "") for name in ("message", "body"))]
    return "\n".join(dict.fromkeys(said))


def _status_of(error: object) -> int | None:
    if isinstance(error, Mapping):
        body = cast("Mapping[str, Any]", error)
        status: Any = body.get("status") or body.get("code")
    else:
        status = getattr(error, "status_code", None) or getattr(error, "status", None)
        if status is None and isinstance(error, str) and re.match(r"\D{0,20}\b413\b", error):
            status = 413
    return status if isinstance(status, int) else None


def _numbers(text: str) -> tuple[int | None, int | None]:
    """(actual, limit) in the text."""
    if found := _search(_INPUT_AND_OUTPUT, text):
        sent, room, limit = map(_number, found.groups())
        return sent, limit - room
    if found := _search(_OF_WHICH, text):
        limit, _, sent, room = map(_number, found.groups())
        return sent, limit - room
    for pattern in _ACTUAL_THEN_LIMIT:
        if found := _search(pattern, text):
            return _number(found[1]), _number(found[2])
    for pattern in _LIMIT_THEN_ACTUAL:
        if found := _search(pattern, text):
            return _number(found[2]), _number(found[1])
    found = next((m for pattern in _LIMIT if (m := _search(pattern, text))), None)
    return None, _number(found[1]) if found else None


def _number(text: str) -> int:
    return int(re.sub(r"\D", "", text))
