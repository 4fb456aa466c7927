"""A file, read and planted: its tree in words, and whether it is sound."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

from sessiontree.core.message import ToolCall, ToolResult
from sessiontree.core.pairing import pair
from sessiontree.formats import transcripts
from sessiontree.formats.planting import Closing, plan
from sessiontree.formats.skeleton import ROOT, Skeleton, lines_in
from sessiontree.formats.transcript import Source


class Planted:
    """The plan of a file, told by the ids of its rows ("line 3" for a row without one),
    "!c1" for a result of ours to call c1, "u1*" for the rest of row u1."""

    def __init__(
        self, content: bytes | str | Sequence[dict[str, Any]], format: str = "claude_code"
    ) -> None:
        self.skeleton = read(content, format)
        self.plan = plan(self.skeleton)

    def name(self, at: int) -> str:
        ours = self.plan.ours_at(at)
        if ours is None:
            entry = self.skeleton.entries[at]
            return entry.id or f"line {entry.line}"
        return f"!{ours.call.id}" if isinstance(ours, Closing) else f"{self.name(ours.of)}*"

    @property
    def links(self) -> dict[str, str | None]:
        """What each message follows."""
        parent = self.plan.parent
        return {
            self.name(at): None if parent[at] == ROOT else self.name(parent[at])
            for at in self.plan.order
        }

    @property
    def paths(self) -> list[str]:
        """From each leaf, oldest first, "a b c"."""
        return [" ".join(map(self.name, path)) for path in self._paths()]

    @property
    def head(self) -> str | None:
        """Where the first conversation's head is."""
        at = self.plan.heads[0]
        return None if at == ROOT else self.name(at)

    @property
    def repairs(self) -> list[str]:
        return list(map(str, self.skeleton.repaired))

    @property
    def skips(self) -> list[str]:
        return list(map(str, self.skeleton.skipped))

    def _paths(self) -> list[list[int]]:
        followed = {self.plan.parent[at] for at in self.plan.order}
        paths: list[list[int]] = []
        for leaf in self.plan.order:
            if leaf in followed:
                continue
            path = [leaf]
            while self.plan.parent[path[-1]] != ROOT:
                path.append(self.plan.parent[path[-1]])
            paths.append(path[::-1])
        return paths

    def check(self) -> None:
        """Everything is accounted for, every path pairs, every leaf and head is a boundary."""
        entries, order = self.skeleton.entries, list(self.plan.order)
        kept = [at for at in order if at < len(entries)]
        assert sorted(kept) == [i for i, entry in enumerate(entries) if entry.is_kept]
        about = sum(1 for entry in entries if entry.tells is not None and entry.tells.about)
        assert len(kept) + about + lines_in(self.skeleton.skipped) == self.skeleton.rows
        place = {at: i for i, at in enumerate(order)}
        for at in order:
            parent = self.plan.parent[at]
            assert parent == ROOT or place[parent] < place[at]
        for path in self._paths():
            pairing = pair([self._said(at) for at in path])
            assert not pairing.violations, (self.paths, pairing.violations)
            counts = [self.plan.open_calls.get(at, 0) for at in path]
            assert counts == pairing.open_counts
        assert not [at for at in self.plan.heads.values() if at in self.plan.open_calls]

    def _said(self, at: int) -> Said:
        ours = self.plan.ours_at(at)
        if isinstance(ours, Closing):
            return Said(results=(ToolResult(ours.call.id, None, ours.call.name),))
        if ours is not None:
            entry = self.skeleton.entries[ours.of]
            results = tuple(r for i, r in enumerate(entry.results) if i not in ours.without)
            return Said(entry.calls, results)
        entry = self.skeleton.entries[at]
        return Said() if at in self.plan.orphans else Said(entry.calls, entry.results)


class Said:
    """What pairing wants of a message."""

    def __init__(
        self, calls: tuple[ToolCall, ...] = (), results: tuple[ToolResult, ...] = ()
    ) -> None:
        self.calls = calls
        self.results = results


def read(content: bytes | str | Sequence[dict[str, Any]], format: str = "claude_code") -> Skeleton:
    if not isinstance(content, bytes | str):
        content = "".join(json.dumps(row) + "\n" for row in content)
    raw = content.encode() if isinstance(content, str) else content
    skeleton = Skeleton(Source(io.BytesIO(raw), "session.jsonl"), transcripts.reader(format))
    for _ in skeleton.read():
        pass
    return skeleton


# --- rows as Claude Code writes them -----------------------------------------------------------


def row(kind: str, uuid: str, parent: str | None, **more: Any) -> dict[str, Any]:
    return {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s1", **more}


def user(uuid: str, parent: str | None, text: str = "hi", **more: Any) -> dict[str, Any]:
    return row("user", uuid, parent, message={"role": "user", "content": text}, **more)


def answer(
    uuid: str, parent: str | None, *calls: str, of: str | None = None, **more: Any
) -> dict[str, Any]:
    """A piece of the model's answer ``of``: some text, and calls of these ids."""
    uses = [{"type": "tool_use", "id": call, "name": "Bash", "input": {}} for call in calls]
    content = [{"type": "text", "text": f"{uuid} says"}, *uses]
    message = {"id": of or f"msg_{uuid}", "role": "assistant", "content": content}
    return row("assistant", uuid, parent, message=message, **more)


def result(
    uuid: str, parent: str | None, *calls: str, text: str | None = None, **more: Any
) -> dict[str, Any]:
    content: list[dict[str, Any]] = [
        {"type": "tool_result", "tool_use_id": call, "content": f"result of {call}"}
        for call in calls
    ]
    if text is not None:
        content.append({"type": "text", "text": text})
    return row("user", uuid, parent, message={"role": "user", "content": content}, **more)
