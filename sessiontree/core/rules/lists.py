"""The shape that Anthropic, Gemini and Bedrock share: a role, and a list of blocks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from sessiontree.core.rules.model import Block, Entry, Json, Sender

LEGAL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


_LISTS = (list, tuple)
"""A union would be made anew at each call, as a cast would be one: these are called for every
block of a window."""


def dicts(value: Any) -> list[Json]:
    """The objects of a list; none for anything else."""
    if not isinstance(value, _LISTS):
        return []
    return [item for item in value if isinstance(item, dict)]  # pyright: ignore[reportUnknownVariableType]


def dicts_if_list(value: Any) -> list[Json] | None:
    """The objects of a list; None for anything else."""
    return dicts(value) if isinstance(value, list) else None


def string(value: object) -> str:
    """``value`` if it is a string, else the empty string."""
    return value if isinstance(value, str) else ""


def obj(value: Any) -> Json:
    """``value`` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def clean_id(old: str) -> str:
    """``old`` in letters, digits, ``_`` and ``-``, 64 at most."""
    if LEGAL_ID.fullmatch(old):
        return old
    return re.sub("[^a-zA-Z0-9_-]", "_", old)[:64] or "call"


class ListShape:
    """``{"role": …, key: [block, …]}``. Subclasses say what a block is."""

    name: str
    key: ClassVar[str] = "content"
    assistant: ClassVar[str] = "assistant"
    codes: dict[str, str]
    unique_in: Literal["request", "message"] = "request"
    holders: frozenset[str] = frozenset({"image", "result"})
    results_stand_alone: bool = False

    def open(self, native: Json) -> Entry:
        role = native.get("role")
        sender: Sender = (
            "assistant" if role == self.assistant else "system" if role == "system" else "user"
        )
        raw = native.get(self.key)
        if isinstance(raw, str):
            blocks = (Block("text", self.text_inside(raw, sender)),)
        else:
            blocks = tuple([self.block(item) for item in dicts(raw)])
        return Entry(sender, blocks, native, {})

    def block(self, native: Json) -> Block:
        raise NotImplementedError

    def close(self, entry: Entry) -> Json:
        role = self.assistant if entry.sender == "assistant" else entry.sender
        return {"role": role, self.key: [block.native for block in entry.blocks]}

    def text(self, text: str, sender: Sender) -> Block:
        return Block("text", self.text_inside(text, sender))

    def text_inside(self, text: str, sender: Sender) -> Json:
        return {"text": text}

    def message(self, sender: Sender, blocks: Sequence[Block]) -> Entry:
        return Entry(sender, tuple(blocks), None, {})

    def answers(self, results: Sequence[Block]) -> list[Entry]:
        return [self.message("user", results)]

    def legal_id(self, old: str) -> str:
        return clean_id(old)
