"""What each provider accepts: the rules as data, one table for each.

A rule names its id, the provider's own error text, why in plain words, the check that
finds what would be refused, and the repair by which a window avoids it. ``violations``
checks with the same tables that ``mend`` repairs with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, cast

from sessiontree.core.rules.model import (
    Block,
    Entry,
    Facts,
    Fault,
    Json,
    Request,
    Rule,
    Shape,
    Step,
    Violation,
)
from sessiontree.errors import FormatError, WindowError

__all__ = [
    "PROVIDERS",
    "Block",
    "Entry",
    "Facts",
    "Fault",
    "Request",
    "Rule",
    "Shape",
    "Step",
    "Violation",
    "drop_thinking",
    "mend",
    "rule",
    "shape_of",
    "table",
    "violations",
]

PROVIDERS = ("anthropic", "openai_chat", "openai_responses", "gemini", "bedrock")
"""The providers that there are rules for; each is a module with SHAPE and RULES."""

ROUNDS = 4
"""A repair may call for another (words in an image's place make a message longer, a message
that was left out puts two of one role together); no more rounds than this are needed."""


@cache
def _module(provider: str) -> Any:
    if provider not in PROVIDERS:
        raise WindowError(
            f"there are no rules for {provider!r}", hint=f"the targets: {', '.join(PROVIDERS)}"
        )
    return import_module(f"{__name__}.{provider}")


def shape_of(provider: str) -> Shape:
    """How a provider's messages are built; WindowError names the providers that exist."""
    return cast(Shape, _module(provider).SHAPE)


def table(provider: str) -> tuple[Rule, ...]:
    """A provider's rules, in the order in which they are mended."""
    return cast("tuple[Rule, ...]", _module(provider).RULES)


def rule(rule_id: str) -> Rule:
    """A rule by its id (``A1``); WindowError when there is none."""
    for provider in PROVIDERS:
        for found in table(provider):
            if found.id == rule_id:
                return found
    raise WindowError(f"there is no rule {rule_id!r}")


def violations(
    messages: Iterable[Mapping[str, Any]],
    provider: str,
    *,
    system: Any = None,
    model: str | None = None,
    thinking: bool | None = None,
    tools: bool | None = None,
    edited_before: int = 0,
) -> list[Violation]:
    """What ``provider`` would refuse in ``messages`` (in its own shape), and why.

    Some rules need to know more than the messages tell: ``system`` as the request has it,
    the ``model``, whether ``thinking`` is on, whether definitions of ``tools`` are sent.
    ``edited_before``: thinking in the messages before this index was made after another
    prefix than the one that is sent now (A10).

    WindowError for a provider without rules, FormatError for a message that is no object.
    """
    shape = shape_of(provider)
    entries = [_opened(shape, message, at) for at, message in enumerate(messages)]
    entries[:edited_before] = [entry.as_stale() for entry in entries[:edited_before]]
    request = Request(shape, entries, Facts(system, model, thinking, tools))
    return found_in(request)


def found_in(request: Request) -> list[Violation]:
    """The violations of a request that is open already, by the index of the message."""
    provider = request.shape.name
    found = [
        Violation(r.id, provider, fault.at, fault.what, r.why, r.error, fault.part, fault.ids)
        for r in table(provider)
        for fault in r.check(request)
    ]
    return sorted(found, key=lambda violation: violation.at)


def _opened(shape: Shape, message: Mapping[str, Any], at: int) -> Entry:
    if not isinstance(message, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise FormatError(f"message {at} is no object: {type(message).__name__}")
    entry = shape.open(cast(Json, message))
    entry.position = at
    return entry


def mend(request: Request) -> None:
    """Repair what the provider would refuse, by its table; each repair is in ``steps``."""
    rules = [rule for rule in table(request.shape.name) if rule.repair is not None]
    for _ in range(ROUNDS):
        if not _mend_once(request, rules):
            return


def _mend_once(request: Request, rules: list[Rule]) -> bool:
    mended = False
    for rule in rules:
        assert rule.repair is not None
        if next(rule.check(request), None) is not None:
            rule.repair(request)
            mended = True
        elif rule.is_eager:
            rule.repair(request)
    return mended


def drop_thinking(request: Request) -> None:
    """Leave out all thinking, whatever the provider calls it."""
    if request.shape.name in ("openai_chat", "openai_responses"):
        _module(request.shape.name).drop_reasoning(request)
    elif "thinking" in request.kinds:
        import_module(f"{__name__}.thinking").drop_all(request)
