"""What a handle knows: which conversation, in which store, and the head it last saw."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar, cast

from sessiontree import formats
from sessiontree.conversation import arguments
from sessiontree.conversation.shelf import Shelf
from sessiontree.core.message import META, Message, MessageRow, NewMessage
from sessiontree.core.pairing import settle
from sessiontree.core.records import ConversationInfo
from sessiontree.errors import FormatError, HeadMoved
from sessiontree.store.appending import Append, Appended, append
from sessiontree.store.conversations import Stepped, append_and_rewind
from sessiontree.store.messages import json_or_null
from sessiontree.store.sqlite import SQLiteBackend

T = TypeVar("T")


def now() -> int:
    """Microseconds since 1970, UTC."""
    return time.time_ns() // 1000


def wrap(row: MessageRow) -> Message:
    """A row as people see it."""
    return Message(row, formats.codec)


def wrapped(rows: Iterable[MessageRow]) -> list[Message]:
    """Rows as people see them."""
    codec = formats.codec
    return [Message(row, codec) for row in rows]


def unsaved(message: NewMessage, conversation: int, parent: int | None) -> Message:
    """A message that is not in the tree, as people see it: id 0, depth -1."""
    row = MessageRow(
        0,
        conversation,
        parent,
        message.role,
        message.format,
        -1,
        message.open_calls,
        message.tokens,
        json_or_null(message.usage),
        message.model,
        message.preview,
        message.key,
        json_or_null(message.meta),
        None,
        None,
        message.created_at or now(),
        message.content,
    )
    return wrap(row)


def digest(text: str, format: str | None) -> NewMessage:
    """What a branch that is left found out, as a user message."""
    native = {"role": "user", "content": text}
    return formats.read(native, default=format, meta={META: {"kind": "digest"}})


class Back(NamedTuple):
    """Where the head goes when what is appended is saved."""

    label: str
    digest: NewMessage


Seen = Callable[[Appended, MessageRow | None], None]
"""What was appended, and the head after going back, if it did."""


@dataclass(slots=True)
class Anchor:
    """Shared by a conversation's handle and its turns."""

    backend: SQLiteBackend
    info: ConversationInfo
    scope: str | None
    head: int | None
    live: set[int]
    """Turns of this store that are going on; resume does not take them for crashed ones."""
    reported: set[int] = field(default_factory=set[int])
    """Drafts that resume has told the caller of; the next save lets them go."""
    shelf: Shelf = field(default_factory=lambda: Shelf(wrap))
    """What the last windows read."""

    @property
    def id(self) -> int:
        return self.info.id

    def see(self, head: int | None) -> None:
        self.head = head

    async def save(
        self, wish: Append, seen: Seen | None = None, back: Back | None = None
    ) -> list[Message]:
        """Append, and go ``back`` in the same transaction. HeadMoved, with the messages kept
        as a branch and the head where it is, when another was first."""
        if self.reported:
            wish.drafts = [*wish.drafts, *self.reported]

        def then(done: Appended, at: MessageRow | None = None) -> None:
            self.reported.difference_update(wish.drafts)
            if done.rows:
                self.head = done.head if at is None else at.id
            if seen is not None:
                seen(done, at)

        def then_back(stepped: Stepped) -> None:
            then(*stepped)

        write = self.backend.write_then
        if back is None:
            done = await write(then, append, self.id, wish)
        else:
            done = (await write(then_back, append_and_rewind, self.id, wish, *back)).done
        if not done.moved:
            raise HeadMoved(wish.expected, done.head, wrapped(done.fresh))
        return wrapped(done.rows)


def read_batch(
    messages: object, *, format: str | None, default: str | None, keys: Sequence[str | None] | None
) -> list[NewMessage]:
    """Messages given to an append, made ready and paired. Nothing may stay open.

    FormatError, OrphanToolResult, UnsettledTurn.
    """
    arguments.format_name(format)
    given = _as_list(messages)
    batch = [formats.read(message, format=format, default=default) for message in given]
    if keys is not None:
        _name(batch, keys)
    settle(batch)
    return batch


def _name(batch: Sequence[NewMessage], keys: Sequence[str | None]) -> None:
    """Give messages their keys."""
    if len(keys) != len(batch):
        raise FormatError(
            f"{len(batch)} message(s) came with {len(keys)} key(s)",
            hint="give one key for each message; None where it has none",
        )
    _refuse_same_keys(keys)
    for message, key in zip(batch, keys, strict=True):
        message.key = key


_ONE = (Mapping, str, bytes, bytearray)


def _as_list(messages: object) -> list[object]:
    if type(messages) is list and messages:
        return cast("list[object]", messages)
    if isinstance(messages, _ONE) or hasattr(cast(Any, messages), "model_dump"):
        return [cast(Any, messages)]
    if not isinstance(messages, Iterable):
        raise FormatError(
            f"messages are a list, not a {type(messages).__name__}",
            hint='give [{"role": "user", "content": "…"}]',
        )
    given = list(cast("Iterable[object]", messages))
    if not given:
        raise FormatError("there is nothing to append", hint="give at least one message")
    return given


def _refuse_same_keys(keys: Sequence[str | None]) -> None:
    named = [key for key in keys if key is not None]
    if len(set(named)) != len(named):
        twice = next(key for key in named if named.count(key) > 1)
        raise FormatError(f"the key {twice!r} is given to two messages of one append")
