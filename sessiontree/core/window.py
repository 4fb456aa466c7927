"""Windows: what is sent to a model of a path, and what it may cost.

A window holds the newest messages that fit its budget, in the provider's own shape, valid
for it (see ``core.rules``). It is planned by ``core.planner``. Nothing that is stored is
changed: what is sent otherwise than it is stored is told in ``steps``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from sessiontree.core import recover
from sessiontree.core.rules.model import Step
from sessiontree.errors import WindowError


@dataclass(frozen=True, slots=True)
class Budget:
    """What a request may cost at most; None is no limit.

    ``tokens`` are those of the system prompt and the messages. ``images``: the newest that
    many are sent, older ones are named in words. ``bytes`` are those of the messages as JSON.
    ``messages``: the newest whole turns that hold at most so many are sent, the newest turn
    always; what stands for older ones is not counted.
    """

    tokens: int | None = None
    images: int | None = None
    bytes: int | None = None
    messages: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("tokens", 1), ("images", 0), ("bytes", 1), ("messages", 1)):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < least):
                raise WindowError(
                    f"a budget of {value!r} {name} is none",
                    hint=f"give a whole number from {least} up, or None for no limit",
                )

    @classmethod
    def of(cls, budget: Budget | int | None) -> Budget:
        """A budget as callers give it: an integer means tokens."""
        return budget if isinstance(budget, Budget) else cls(budget)


@dataclass(frozen=True, slots=True)
class Dropped:
    """What was left out because it did not fit, or because a cut or a summary says so."""

    count: int = 0
    """How many messages, by their depth: marks among them are counted."""
    newest: int | None = None
    """The newest of them; all that come before it were left out too, pinned ones apart."""
    why: str = ""

    def __len__(self) -> int:
        return self.count


@dataclass(slots=True)
class Window:
    """What is sent to the model."""

    target: str
    messages: list[dict[str, Any]]
    """In the target's own shape, without the system prompt."""
    system: Any
    """The system prompt as the target has it; None when there is none."""
    ids: tuple[int, ...]
    """The messages of the path that are in it."""
    dropped: Dropped
    tokens: int
    """Counted or estimated, the system prompt included."""
    steps: list[Step]
    """All that was done to make it fit and be valid."""
    complete: bool
    """True when nothing of the path was left out for room."""
    ready: bool
    """True when it is a request: its last word waits for an answer."""
    why: str
    """Why it is not ready; "" when it is."""
    budget: Budget = field(default_factory=Budget)

    def request(self) -> dict[str, Any]:
        """What the provider's call takes beside model and tools."""
        return request_of(self.target, self.messages, self.system)

    def recover(self, error: object) -> recover.Recovery | None:
        """What a provider's error says of this window's size, and the budget that would
        have been right; None for an error about something else."""
        found = recover.read(error)
        if found is None:
            return None
        return recover.budget_for(found, self.tokens if found.kind == "tokens" else self.bytes)

    @property
    def bytes(self) -> int:
        """Bytes of the messages as JSON."""
        text = json.dumps(self.messages, ensure_ascii=False, separators=(",", ":"))
        return len(text.encode("utf-8", "surrogatepass"))


def request_of(target: str, messages: list[dict[str, Any]], system: Any) -> dict[str, Any]:
    """Messages and system prompt as the arguments of the provider's call."""
    if target == "openai_chat":
        return {"messages": [system, *messages] if system is not None else messages}
    names = {
        "openai_responses": ("instructions", "input"),
        "gemini": ("system_instruction", "contents"),
    }
    system_name, messages_name = names.get(target, ("system", "messages"))
    said = {} if system is None else {system_name: system}
    return said | {messages_name: messages}
