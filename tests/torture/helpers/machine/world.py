"""The model: what a store must hold after some operations. Pure; knows nothing of SQL.

An operation is a JSON object, ``{"do": …, "chat": topic, …}``; ``World.apply`` says what comes
out of it: the name of the head, or of the error.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from machine.words import answer_of, calls_of, role_of

Operation = dict[str, Any]


@dataclass(eq=False)
class Flight:
    """Messages of a turn that are not history yet, and the boundary they follow."""

    parent: str | None
    names: list[str] = field(default_factory=list)

    @property
    def open(self) -> list[str]:
        """The calls that wait, oldest first."""
        answered = {answer_of(name) for name in self.names}
        return [call for name in self.names for call in calls_of(name) if call not in answered]


@dataclass
class Chat:
    """One conversation."""

    title: str | None = None
    parents: dict[str, str | None] = field(default_factory=dict)
    """Message → the one it follows, in the order in which they were saved."""
    opens: dict[str, int] = field(default_factory=dict)
    depths: dict[str, int] = field(default_factory=dict)
    head: str | None = None
    moves: list[tuple[int | None, str | None, str | None, str]] = field(default_factory=list)
    """(the move before, from, to, cause); numbered from 1."""
    move: int | None = None
    labels: dict[str, str] = field(default_factory=dict)
    drafts: list[Flight] = field(default_factory=list)
    turn: Flight | None = None
    """The turn that goes on, if one does. Its messages are in ``drafts`` too."""
    waiting: list[str] = field(default_factory=list)
    """Labels for the end of the turn's step."""
    reported: list[Flight] = field(default_factory=list)
    """Drafts that resume told of: the next save lets them go."""

    # ---- what it looks like --------------------------------------------------------

    def path(self, leaf: str | None) -> list[str]:
        """Oldest first."""
        found: list[str] = []
        while leaf is not None:
            found.append(leaf)
            leaf = self.parents[leaf]
        return found[::-1]

    def system(self, leaf: str | None) -> str | None:
        return next((name for name in reversed(self.path(leaf)) if name[0] == "s"), None)

    def boundaries(self) -> list[str]:
        return [name for name, count in self.opens.items() if count == 0]

    def facts(self, *, live: bool = True) -> dict[str, Any]:
        """What ``machine.hands.look`` must see; ``live``: with the drafts of the turn."""
        drafts = [flight for flight in self.drafts if live or flight is not self.turn]
        return {
            "title": self.title,
            "messages": [
                [name, parent, role_of(name), self.depths[name], self.opens[name]]
                for name, parent in self.parents.items()
            ],
            "head": self.head,
            "path": self.path(self.head),
            "moves": [[before, to, cause] for _, before, to, cause in self.moves],
            "move": self.move,
            "labels": self.labels,
            "drafts": [name for flight in drafts for name in flight.names],
            "interrupted": [call for flight in drafts for call in flight.open],
        }

    # ---- what is done to it --------------------------------------------------------

    def add(self, name: str, parent: str | None) -> None:
        above = self.opens[parent] if parent is not None else 0
        self.parents[name] = parent
        self.depths[name] = self.depths[parent] + 1 if parent is not None else 0
        self.opens[name] = above + len(calls_of(name)) - (answer_of(name) is not None)

    def move_head(self, to: str | None, cause: str) -> str | None:
        if to != self.head:
            self.moves.append((self.move, self.head, to, cause))
            self.move, self.head = len(self.moves), to
        return self.head

    def save(self, names: list[str], parent: str | None, cause: str) -> None:
        """Messages in a row under ``parent``; the head goes to the last."""
        for name in names:
            self.add(name, parent)
            parent = name
        self.move_head(parent, cause)

    def settle(self) -> None:
        """What every save of a handle does to the drafts that its resume told of."""
        self.drafts = [draft for draft in self.drafts if draft not in self.reported]
        self.reported = []

    def crash(self) -> None:
        """The process is gone, and with it what only it knew."""
        self.turn, self.waiting, self.reported = None, [], []


class World:
    """All conversations, by topic."""

    def __init__(self, chats: dict[str, Chat] | None = None) -> None:
        self.chats = chats or {}

    def copy(self) -> World:
        return World(deepcopy(self.chats))

    def crash(self) -> None:
        for chat in self.chats.values():
            chat.crash()

    def facts(self) -> dict[str, Any]:
        return {topic: chat.facts() for topic, chat in self.chats.items()}

    def apply(self, op: Operation) -> str | None:
        """Do it, and say what comes out."""
        if op["do"] == "create":
            chat = self.chats[op["chat"]] = Chat()
            if op["system"] is not None:
                chat.save([op["system"]], None, "append")
            return chat.head
        return getattr(self, f"_{op['do']}")(self.chats[op["chat"]], op)

    # ---- appends -------------------------------------------------------------------

    def _append(self, chat: Chat, op: Operation) -> str | None:
        if all(name in chat.parents for name in op["names"]):  # a second try
            return chat.head
        chat.settle()
        chat.save(op["names"], op.get("under", chat.head), "append")
        return chat.head

    def _edit(self, chat: Chat, op: Operation) -> str | None:
        parent = chat.parents[op["of"]]
        if parent is not None and chat.opens[parent]:
            return "NotABoundary"
        chat.settle()
        chat.save(op["names"], parent, "edit")
        return chat.head

    def _system(self, chat: Chat, op: Operation) -> str | None:
        if chat.system(chat.head) != op["name"]:
            chat.save([op["name"]], chat.head, "append")
        chat.crash()  # another handle takes its place
        return chat.head

    # ---- turns ---------------------------------------------------------------------

    def _add(self, chat: Chat, op: Operation) -> str | None:
        """A message in a turn; the turn begins with it when there is none."""
        if chat.turn is None:
            chat.turn = Flight(chat.head)
        return self._take(chat, chat.turn, [op["name"]])

    def _take(self, chat: Chat, turn: Flight, names: list[str]) -> str | None:
        step = Flight(turn.parent, turn.names + names)
        if step.open:
            if not turn.names:
                chat.drafts.append(turn)
            turn.names += names
            return chat.head
        return self._save_step(chat, turn, step.names)

    def _save_step(self, chat: Chat, turn: Flight, names: list[str]) -> str | None:
        taken = [label for label in chat.waiting if label in chat.labels]
        if taken:
            chat.waiting.remove(taken[0])
            return "CheckpointExists"
        chat.drafts = [draft for draft in chat.drafts if draft is not turn]
        chat.settle()
        parent, moved = turn.parent, chat.head != turn.parent
        for name in names:
            chat.add(name, parent)
            parent = name
        for label in chat.waiting:
            chat.labels[label] = names[-1]
        turn.parent, turn.names, chat.waiting = names[-1], [], []
        if moved:
            return "HeadMoved"
        return chat.move_head(names[-1], "append")

    def _interrupt(self, chat: Chat, op: Operation) -> str | None:
        assert chat.turn is not None
        calls = chat.turn.open
        return self._take(chat, chat.turn, [f"x.{call}" for call in calls]) if calls else chat.head

    def _label(self, chat: Chat, op: Operation) -> str | None:
        """A checkpoint for the end of the turn's step, which is under way."""
        assert chat.turn is not None
        if op["label"] in chat.labels or op["label"] in chat.waiting:
            return "CheckpointExists"
        chat.waiting.append(op["label"])
        return chat.head

    def _leave(self, chat: Chat, op: Operation) -> str | None:
        unsettled = chat.turn is not None and bool(chat.turn.names)
        chat.turn, chat.waiting = None, []
        return "UnsettledTurn" if unsettled else chat.head

    def _resume(self, chat: Chat, op: Operation) -> str | None:
        chat.reported = [draft for draft in chat.drafts if draft is not chat.turn]
        return chat.head

    def _take_up(self, chat: Chat, op: Operation) -> str | None:
        """Resume, and go on with the newest turn that was in flight."""
        self._resume(chat, op)
        chat.turn = chat.drafts[-1] if chat.drafts else Flight(chat.head)
        chat.reported = [draft for draft in chat.reported if draft is not chat.turn]
        return chat.head

    # ---- moves ---------------------------------------------------------------------

    def _branch(self, chat: Chat, op: Operation) -> str | None:
        if op["to"] is not None and chat.opens[op["to"]]:
            return "NotABoundary"
        return chat.move_head(op["to"], "branch")

    def _rewind(self, chat: Chat, op: Operation) -> str | None:
        if op["label"] not in chat.labels:
            return "CheckpointNotFound"
        to = chat.labels[op["label"]]
        if op["digest"] is None:
            return chat.move_head(to, "rewind")
        chat.save([op["digest"]], to, "rewind")
        return chat.head

    def _retry(self, chat: Chat, op: Operation) -> str | None:
        for name in reversed(chat.path(chat.head)):
            if role_of(name) == "user" and chat.opens[name] == 0:
                return chat.move_head(name, "retry")
        return "NothingToRetry"

    def _undo(self, chat: Chat, op: Operation) -> str | None:
        if chat.move is None:
            return "NothingToUndo"
        chat.move, chat.head, _, _ = chat.moves[chat.move - 1]
        return chat.head

    def _redo(self, chat: Chat, op: Operation) -> str | None:
        for number in range(len(chat.moves), chat.move or 0, -1):
            if chat.moves[number - 1][0] == chat.move:
                chat.move, chat.head = number, chat.moves[number - 1][2]
                return chat.head
        return "NothingToUndo"

    # ---- the rest ------------------------------------------------------------------

    def _checkpoint(self, chat: Chat, op: Operation) -> str | None:
        if chat.head is None:
            return "MessageNotFound"
        if op["label"] in chat.labels and not op["replace"]:
            return "CheckpointExists"
        chat.labels[op["label"]] = chat.head
        return chat.head

    def _fork(self, chat: Chat, op: Operation) -> str | None:
        if chat.opens[op["at"]]:
            return "NotABoundary"
        copy = self.chats[op["to"]] = Chat(title=chat.title)
        for name in chat.path(op["at"]):
            copy.add(name, chat.parents[name])
        copy.labels = {label: at for label, at in chat.labels.items() if at in copy.parents}
        copy.head = op["at"]
        return copy.head

    def _rename(self, chat: Chat, op: Operation) -> str | None:
        chat.title = op["title"]
        return chat.head

    def _delete(self, chat: Chat, op: Operation) -> str | None:
        del self.chats[op["chat"]]
        return None


def differences(found: Any, expected: Any, where: str = "") -> list[str]:
    """Where two JSON values differ, a line for each place; few enough to read."""
    if type(found) is not type(expected):
        return [f"{where}: {found!r} instead of {expected!r}"]
    if isinstance(found, dict):
        keys = [*found, *(key for key in expected if key not in found)]
        parts = [(key, found.get(key), expected.get(key)) for key in keys]
    elif isinstance(found, list) and len(found) == len(expected):
        parts = [(i, *pair) for i, pair in enumerate(zip(found, expected, strict=True))]
    elif found == expected:
        return []
    elif isinstance(found, list):
        extra = [item for item in found if item not in expected][:5]
        missing = [item for item in expected if item not in found][:5]
        return [f"{where}: {extra} too many, {missing} missing"]
    else:
        return [f"{where}: {found!r} instead of {expected!r}"]
    lines = [line for key, a, b in parts if a != b for line in differences(a, b, f"{where}/{key}")]
    return lines[:10]
