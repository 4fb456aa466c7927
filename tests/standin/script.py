"""What the stand-in answers: steps, as plain data.

A step is a text, or an object with any of

    text        what the model says
    thinking    what it thinks before that
    calls       tool calls: [{"name": …, "arguments": {…}, "id": …}]; ids are made where none is
    echo        true: it says how many user messages it got, and the last one
    stop        "end", "calls", "length" or "refusal", where it is not what follows from the rest
    error       a status (429, 500, 529, …) in place of an answer; ``message`` in its words
    retry_after seconds, as the header of an error
    after       pieces that are sent before the ``error`` or the ``drop``, in a stream
    drop        true: the connection ends without another word
    wait        seconds before the first byte
    delay       seconds between two pieces of a stream
    piece       characters in a piece of a stream
    usage       fields that replace those of the usage that is reported
    when        a pattern (``re.search``) that the last user message must match
    always      true: the step stays, and answers every request that its ``when`` matches

Steps without ``when`` answer one request each, in order. Those with one come before them, at
the first request that matches, wherever they stand. When no step is left, requests are echoed.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, cast

Json = dict[str, Any]
STOPS = ("end", "calls", "length", "refusal")


@dataclass(frozen=True, slots=True)
class Step:
    """One answer. What its fields mean is told at the top of this file."""

    text: str = ""
    thinking: str = ""
    calls: list[Json] = field(default_factory=list[Json])
    echo: bool = False
    stop: str | None = None
    error: int | None = None
    message: str | None = None
    retry_after: float | None = None
    after: int = 0
    drop: bool = False
    wait: float = 0.0
    delay: float | None = None
    piece: int = 12
    usage: Json = field(default_factory=dict[str, Any])
    when: str | None = None
    always: bool = False

    def __post_init__(self) -> None:
        if self.stop is not None and self.stop not in STOPS:
            raise ValueError(f"stop is {self.stop!r}; it is one of {', '.join(STOPS)}")
        if self.piece < 1:
            raise ValueError(f"piece is {self.piece}; give 1 or more characters")
        if self.when is not None:
            re.compile(self.when)
        for call in self.calls:
            if not isinstance(call.get("name"), str):
                raise ValueError(f"a call without a name: {call!r}")

    def matches(self, said: str) -> bool:
        return self.when is not None and re.search(self.when, said) is not None


ECHO = Step(echo=True)
_FIELDS = frozenset(each.name for each in fields(Step))


def step_of(given: object) -> Step:
    """A step from plain data; ValueError says what is wrong with it."""
    if isinstance(given, Step):
        return given
    if isinstance(given, str):
        return Step(text=given)
    if not isinstance(given, Mapping):
        raise ValueError(f"a step is a text or an object, not {given!r}")
    data = cast("Mapping[str, Any]", given)
    unknown = sorted(data.keys() - _FIELDS)
    if unknown:
        raise ValueError(f"a step has no {', '.join(unknown)}; it has {', '.join(sorted(_FIELDS))}")
    return Step(**data)


def load(path: Path) -> list[Step]:
    """The steps in a JSON file."""
    return [step_of(each) for each in json.loads(path.read_text(encoding="utf-8"))]


class Script:
    """The steps that are left; several requests may ask at once."""

    def __init__(self, steps: Iterable[object]) -> None:
        self._left = [step_of(each) for each in steps]
        self._lock = threading.Lock()

    @property
    def left(self) -> list[Step]:
        """The steps that no request has taken; those that stay are not among them."""
        with self._lock:
            return [step for step in self._left if not step.always]

    def add(self, steps: Iterable[object]) -> None:
        """More steps, behind those that are left."""
        new = [step_of(each) for each in steps]
        with self._lock:
            self._left.extend(new)

    def take(self, said: str) -> Step:
        """The step for a request whose last user message is ``said``."""
        with self._lock:
            for step in self._left:
                if step.matches(said):
                    return step if step.always else self._without(step)
            for step in self._left:
                if step.when is None:
                    return step if step.always else self._without(step)
            return ECHO

    def _without(self, step: Step) -> Step:
        at = next(at for at, each in enumerate(self._left) if each is step)
        return self._left.pop(at)
