"""What to do next: a random operation that fits the world as it is."""

from __future__ import annotations

import random
from itertools import count

from machine.world import Chat, Operation, World

LABELS = [f"label {i}" for i in range(6)]


class Chooser:
    """Operations on the conversations whose topic begins with ``prefix``.

    ``most``: conversations at once, and ``large`` messages, after which one is deleted.
    """

    def __init__(
        self,
        rng: random.Random,
        *,
        prefix: str = "",
        start: int = 0,
        most: int = 6,
        large: int = 300,
    ) -> None:
        self.rng = rng
        self.prefix = prefix
        self.numbers = count(start)
        self.most = most
        self.large = large

    def choose(self, world: World) -> Operation:
        """``world`` is only looked at."""
        topics = [topic for topic in world.chats if topic.startswith(self.prefix)]
        if not topics or (len(topics) < self.most and self.rng.random() < 0.02):
            system = self._name("s") if self.rng.random() < 0.5 else None
            return {"do": "create", "chat": self._topic(), "system": system}
        topic = self.rng.choice(topics)
        chat = world.chats[topic]
        if chat.turn is None and (
            len(chat.parents) > self.large or (len(topics) > self.most and self.rng.random() < 0.2)
        ):
            return {"do": "delete", "chat": topic}
        if chat.turn is not None and self.rng.random() < 0.75:
            return {"chat": topic} | self._in_turn(chat)
        return {"chat": topic} | self._outside(chat)

    def _name(self, kind: str) -> str:
        return f"{kind}.{next(self.numbers)}"

    def _topic(self) -> str:
        return f"{self.prefix}{next(self.numbers)}"

    def _in_turn(self, chat: Chat) -> Operation:
        assert chat.turn is not None
        waiting = chat.turn.open
        roll = self.rng.random()
        if waiting and roll < 0.7:
            return {"do": "add", "name": f"{self._name('r')}.{self.rng.choice(waiting)}"}
        if waiting and roll < 0.8:
            return {"do": "label", "label": self.rng.choice(LABELS)}
        if (waiting and roll < 0.87) or roll < 0.03:
            return {"do": "interrupt"}
        if roll < 0.25 or roll > 0.97:
            return {"do": "leave"}
        return {"do": "add", "name": self._said()}

    def _said(self) -> str:
        kind = self.rng.choice("uaccb")
        return f"{self._name('c')}.{self.rng.randint(1, 3)}" if kind == "c" else self._name(kind)

    def _step(self) -> list[str]:
        """A few messages that begin and end at a boundary."""
        names = [self._name(self.rng.choice("uuub"))]
        if self.rng.random() < 0.5:
            call = f"{self._name('c')}.{self.rng.randint(1, 3)}"
            number, calls = call.split(".")[1:]
            answered = self.rng.sample(range(int(calls)), int(calls))
            names += [call, *(f"{self._name('r')}.{number}.{i}" for i in answered)]
        return [*names, self._name("a")] if self.rng.random() < 0.7 else names

    def _outside(self, chat: Chat) -> Operation:
        rng, boundaries = self.rng, chat.boundaries()
        if not boundaries:
            return {"do": "append", "names": self._step()}
        kinds = {
            "append": 30, "under": 6, "turn": 14, "edit": 4, "system": 2, "branch": 8, "undo": 10,
            "redo": 6, "retry": 3, "checkpoint": 6, "rewind": 7, "digest": 3, "fork": 3,
            "rename": 1, "resume": 3, "take_up": 4,
        }  # fmt: skip
        kind = rng.choices(list(kinds), list(kinds.values()))[0]
        if chat.turn is not None and kind in ("turn", "system", "take_up"):
            kind = "append"
        if kind == "append":
            return {"do": "append", "names": self._step()}
        if kind == "under":
            return {"do": "append", "names": self._step(), "under": rng.choice([None, *boundaries])}
        if kind == "turn":
            return {"do": "add", "name": self._said()}
        if kind == "edit":
            return {"do": "edit", "of": rng.choice(list(chat.parents)), "names": [self._name("u")]}
        if kind == "system":
            return {"do": "system", "name": self._name("s")}
        if kind == "branch":
            return {"do": "branch", "to": rng.choice([None, *chat.parents])}
        if kind == "checkpoint":
            replace = rng.random() < 0.5
            return {"do": "checkpoint", "label": rng.choice(LABELS), "replace": replace}
        if kind in ("rewind", "digest"):
            digest = self._name("d") if kind == "digest" else None
            return {"do": "rewind", "label": rng.choice(LABELS), "digest": digest}
        if kind == "fork":
            return {"do": "fork", "at": rng.choice(boundaries), "to": self._topic()}
        if kind == "rename":
            return {"do": "rename", "title": f"title {next(self.numbers)}"}
        return {"do": kind}
