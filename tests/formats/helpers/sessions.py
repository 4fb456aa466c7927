"""Made-up sessions in Claude Code's and pi's shape, and what can happen to a file."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from planted import answer, result, row, user

Row = dict[str, Any]


def claude_code(random: Random) -> list[Row]:
    """Turns, branches, sidechains, spread steps, progress, unanswered calls."""
    return _ClaudeCode(random).rows


class _ClaudeCode:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.rows: list[Row] = []
        self.calls = 0
        self.ends: list[str] = []
        for _ in range(random.randint(1, 5)):
            self.turn()

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def add(self, made: Row) -> str:
        self.rows.append(made)
        return made["uuid"]

    def name(self) -> str:
        return f"r{len(self.rows)}"

    def turn(self) -> None:
        self.more: Row = {"isSidechain": True} if self.chance(0.2) else {}
        parent = None
        if self.ends and not self.more and self.chance(0.9):
            parent = self.random.choice(self.ends) if self.chance(0.3) else self.ends[-1]
        at = self.add(user(self.name(), parent, **self.more))
        for _ in range(self.random.randint(0, 3)):
            at = self.step(at)
        self.ends.append(at)

    def step(self, at: str) -> str:
        of = f"m{len(self.rows)}"
        open_calls: list[tuple[str, str]] = []
        above = at
        for _ in range(self.random.randint(1, 3)):
            calls = [self.call() for _ in range(self.random.randint(0, 2))]
            at = self.add(answer(self.name(), above, *calls, of=of, **self.more))
            open_calls += [(at, call) for call in calls]
            above = at if self.chance(0.8) else above
        if self.chance(0.3):
            self.random.shuffle(open_calls)
        in_a_row = self.chance(0.5)
        for caller, call in open_calls:
            at = self.answer(at, caller, call, in_a_row)
        if self.chance(0.2):
            kind = self.random.choice(["progress", "system"])
            at = self.add(row(kind, self.name(), at, **self.more))
        if self.chance(0.1):
            self.rows.append({"type": "summary", "summary": "so far", "leafUuid": at})
        return at

    def call(self) -> str:
        self.calls += 1
        return f"c{self.calls}" if self.chance(0.9) else f"c{self.random.randint(0, 3)}"

    def answer(self, at: str, caller: str, call: str, in_a_row: bool) -> str:
        if self.chance(0.15):
            return at
        if self.chance(0.1):
            self.add(row("progress", self.name(), caller))
        text = "and this" if self.chance(0.1) else None
        above = at if in_a_row else caller
        return self.add(result(self.name(), above, call, text=text, **self.more))


def pi(random: Random) -> list[Row]:
    """A header, turns, branches, labels, compactions, unanswered calls."""
    rows: list[Row] = [{"type": "session", "version": 3, "id": "s", "timestamp": TIME}]
    at: str | None = None
    for _ in range(random.randint(1, 25)):
        names = [made["id"] for made in rows[1:]]
        if names and random.random() < 0.15:
            at = random.choice(names)
        made = random.choice(_PI_ENTRIES)(random, names)
        rows.append({**made, "id": f"e{len(rows)}", "parentId": at, "timestamp": TIME})
        at = rows[-1]["id"]
    return rows


TIME = "2025-01-01T00:00:00.000Z"


def _pi_user(random: Random, names: list[str]) -> Row:
    return {"type": "message", "message": {"role": "user", "content": "hi"}}


def _pi_assistant(random: Random, names: list[str]) -> Row:
    calls = [
        {"type": "toolCall", "id": f"c{random.randint(0, 5)}", "name": "bash", "arguments": {}}
        for _ in range(random.randint(0, 2))
    ]
    content = [{"type": "text", "text": "so"}, *calls]
    return {"type": "message", "message": {"role": "assistant", "content": content}}


def _pi_result(random: Random, names: list[str]) -> Row:
    message = {
        "role": "toolResult",
        "toolCallId": f"c{random.randint(0, 5)}",
        "toolName": "bash",
        "content": [{"type": "text", "text": "done"}],
        "isError": False,
    }
    return {"type": "message", "message": message}


def _pi_label(random: Random, names: list[str]) -> Row:
    label = random.choice(["start", "end", None])
    return {"type": "label", "targetId": random.choice([*names, "gone"]), "label": label}


def _pi_other(random: Random, names: list[str]) -> Row:
    ref = random.choice([*names, "gone"])
    return random.choice(
        [
            {"type": "model_change", "provider": "p", "modelId": "m"},
            {"type": "compaction", "summary": "s", "firstKeptEntryId": ref, "tokensBefore": 9},
            {"type": "branch_summary", "summary": "s", "fromId": ref},
            {"type": "from the future", "data": {}},
        ]
    )


_PI_ENTRIES = [_pi_user, _pi_assistant, _pi_assistant, _pi_result, _pi_result, _pi_label, _pi_other]


# --- what happens to files ----------------------------------------------------------------------

PARENT = {"claude_code": "parentUuid", "pi": "parentId"}
ID = {"claude_code": "uuid", "pi": "id"}


def damage(rows: list[Row], format: str, random: Random) -> list[Row]:
    """Rows that are gone, there twice, of the wrong parent, in the wrong order."""
    rows = list(rows)
    for _ in range(random.choice([0, 0, 1, 1, 2, 4])):
        i = random.randrange(len(rows))
        _harm(rows, i, PARENT[format], ID[format], random)
    if random.random() < 0.3:
        random.shuffle(rows)
    return rows


def _harm(rows: list[Row], i: int, parent: str, name: str, random: Random) -> None:
    harmed = dict(rows[i])
    kind = random.randint(0, 5)
    if kind == 0 and len(rows) > 1:
        del rows[i]
    elif kind == 1:
        rows.insert(random.randrange(len(rows) + 1), harmed)
    elif kind == 2:
        rows.insert(random.randrange(len(rows) + 1), harmed | {"changed": True})
    elif kind == 3:
        rows[i] = harmed | {parent: "gone"}
    elif kind == 4:
        rows[i] = harmed | {parent: random.choice(rows).get(name)}
    else:
        rows[i] = {key: value for key, value in harmed.items() if key != parent}


TORN = ["", '{"type": "us', "\0\0\0", "[1]", '{"no": "type"}', "\ufeff", '{"a": NaN}']


def text(rows: list[Row], random: Random) -> bytes:
    """The file, with lines between that are none."""
    lines: list[str] = []
    for made in rows:
        lines.append(json.dumps(made))
        if random.random() < 0.05:
            lines.append(random.choice(TORN))
    return "\n".join(lines).encode() + random.choice([b"", b"\n", b'\n{"type": "us'])
