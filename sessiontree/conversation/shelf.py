"""What a handle's last windows read and rendered, at hand for the next one.

Messages never change, so that the next turn's window has to read and render what is new
only. What the last windows did not use is let go, and there is a limit to what is kept:
for each handle, and for all of a process.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from sessiontree.core.message import Message, MessageRow

CHARACTERS = 2_000_000
"""Of messages that one window puts on the shelf: half a million tokens, or so. Older ones
are read anew each time."""

WINDOWS = 2
"""How many windows back something may have been used last: two, since a harness may plan
for two models in turn."""


TOTAL = 50_000_000
"""Characters on all shelves of a process, counted for each window that used them: 100 MB, or
so. From there on the shelves that were used longest ago are emptied."""


class _Layer:
    """What one window used."""

    __slots__ = ("messages", "rendered", "room")

    def __init__(self, room: int) -> None:
        self.messages: dict[int, Message] = {}
        self.rendered: dict[Hashable, Any] = {}
        self.room = room


class Shelf:
    """Of one handle. A message that another process has removed from the store may still be
    here: who plans a window reads the newest rows all the same, and learns of a conversation
    that is gone."""

    __slots__ = ("__weakref__", "_characters", "_known", "_layers", "_newest", "_wrap")

    def __init__(self, wrap: Callable[[MessageRow], Message], characters: int = CHARACTERS) -> None:
        self._wrap = wrap
        self._characters = characters
        self.clear()

    def clear(self) -> None:
        self._layers: list[_Layer] = []
        self._begin()

    def turn_over(self) -> None:
        """Another window begins: what was used too long ago goes."""
        self._begin()
        _SHELVES.use(self, sum(self._characters - layer.room for layer in self._layers))

    def _begin(self) -> None:
        self._newest = _Layer(self._characters)
        self._layers = [self._newest, *self._layers[:WINDOWS]]
        self._known: dict[int, Message] = {}
        for layer in self._layers:
            self._known |= layer.messages

    def __len__(self) -> int:
        """How many messages are at hand."""
        return len(self._known)

    def find(self, message_id: int) -> Message | None:
        """The message, if an earlier window read it."""
        found = self._known.get(message_id)
        if found is not None and message_id not in self._newest.messages:
            self._put(found, message_id)
        return found

    def take(self, row: MessageRow) -> Message:
        """The message of a row that was read: the one at hand, with all that was parsed of it,
        where there is one."""
        found = self._known.get(row.id)
        if found is not None and found.row != row:  # a file that was repaired meanwhile
            self.clear()
            found = None
        if found is None:
            found = self._wrap(row)
        self._put(found, row.id)
        return found

    def _put(self, message: Message, message_id: int) -> None:
        layer, size = self._newest, len(message.row.content)
        if size <= layer.room and message_id not in layer.messages:
            layer.room -= size
            layer.messages[message_id] = self._known[message_id] = message

    # --- What was rendered: a planner's Memory ------------------------------------------

    def get(self, key: Hashable) -> Any:
        for layer in self._layers:
            found = layer.rendered.get(key)
            if found is not None:
                self._newest.rendered[key] = found
                return found
        return None

    def put(self, key: Hashable, message_id: int, value: Any) -> None:
        """Keep what was made of messages, the newest of which is ``message_id``, if those
        themselves are kept."""
        if message_id in self._newest.messages:
            self._newest.rendered[key] = value


class _Shelves:
    """All of the process, the one that was used longest ago first."""

    def __init__(self) -> None:
        self._sizes: WeakKeyDictionary[Shelf, int] = WeakKeyDictionary()
        self._lock = Lock()  # handles without async have threads of their own

    def use(self, shelf: Shelf, size: int) -> None:
        """``shelf`` is used, and holds so many characters: others make room."""
        with self._lock:
            self._sizes.pop(shelf, None)
            self._sizes[shelf] = size
            over = sum(self._sizes.values()) - TOTAL
            for other in list(self._sizes) if over > 0 else ():
                if over <= 0 or other is shelf:
                    break
                over -= self._sizes.pop(other)
                other.clear()


_SHELVES = _Shelves()


def copied(value: Any) -> Any:
    """JSON that its receiver may change. Its texts are shared, for they cannot be."""
    if value.__class__ not in _HOLDERS:
        return value
    copy = value.copy()
    if value.__class__ is dict and _HOLDERS.isdisjoint(map(type, value.values())):
        return copy  # most are no deeper
    waiting: list[Any] = [copy]
    for holder in waiting:
        if holder.__class__ is dict:
            for key, inner in holder.items():
                if inner.__class__ in _HOLDERS:
                    holder[key] = inner = inner.copy()
                    waiting.append(inner)
        else:
            for at, inner in enumerate(holder):
                if inner.__class__ in _HOLDERS:
                    holder[at] = inner = inner.copy()
                    waiting.append(inner)
    return copy


_HOLDERS: frozenset[Any] = frozenset({dict, list})
