"""The messages of a plan, each read again where its row stands in the file."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, cast

from sessiontree import formats
from sessiontree.core.message import META, NewMessage, Part, Role, calls_of, results_of
from sessiontree.core.pairing import OpenCall, take
from sessiontree.errors import FormatError
from sessiontree.formats import shapes
from sessiontree.formats.planting import CLOSING_KEY, REST_KEY, Closing, Ours, Plan, Rest
from sessiontree.formats.skeleton import ROOT, Skeleton
from sessiontree.formats.transcript import our_meta
from sessiontree.transfer.stored import Stored

INTERRUPTED = "Interrupted: the result of this call is unknown."


class Maker:
    """Makes the message at each index of a plan. Parents must come first: what has no time
    of its own has its parent's."""

    def __init__(self, skeleton: Skeleton, plan: Plan, stored: Stored) -> None:
        self.skeleton = skeleton
        self.plan = plan
        self._stored = stored
        self._times = array("q", bytes(8 * (plan.first_of_ours + len(plan.ours))))
        times = (entry.created_at for entry in skeleton.entries)
        self._first_time = next((time for time in times if time is not None), None)

    def message(self, at: int) -> NewMessage:
        """FormatError when the file was rewritten since it was read first."""
        ours = self.plan.ours_at(at)
        made = self._row(at) if ours is None else self._ours(at, ours)
        made.open_calls = self.plan.open_calls.get(at, 0)
        made.created_at = self._time(at, made.created_at)
        return made

    def key(self, at: int) -> str | None:
        """The key of the message at an index; of ours, the same each time."""
        ours = self.plan.ours_at(at)
        if ours is None:
            return self._key_of_entry(at)
        if isinstance(ours, Rest):
            return f"{REST_KEY}{self._name(ours.of)}"
        facts = [self._name(ours.caller), ours.call.id, self._name(ours.after)]
        return CLOSING_KEY + hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]

    def _key_of_entry(self, at: int) -> str | None:
        entries = self.skeleton.entries
        return (entries[at] if at < len(entries) else self._stored.foreign[at - len(entries)]).key

    def _name(self, at: int) -> str:
        """What tells an index from all others, each time."""
        key = self.key(at)
        if key is not None:
            return key
        if at < len(self.skeleton.entries):
            return f"id:{self.skeleton.entries[at].id}"
        return f"message:{self._stored.ids[at]}"

    def _row(self, at: int) -> NewMessage:
        made = self._row_as_it_stands(at)
        if at in self.plan.orphans:
            made.role, made.calls, made.results = "mark", (), ()
            made.meta = _with_kind(made.meta, self.plan.orphans[at])
        return made

    def _row_as_it_stands(self, at: int) -> NewMessage:
        entry = self.skeleton.entries[at]
        try:
            return self.skeleton.reader.message(self.skeleton.source.text(entry), entry)
        except (FormatError, KeyError, TypeError) as error:
            raise self.skeleton.source.changed(entry.line) from error

    def _ours(self, at: int, ours: Ours) -> NewMessage:
        if isinstance(ours, Rest):
            kind, format, role, parts = "rest", *self._rest(ours)
        else:
            kind, format, role, parts = "interrupted", *self._closing(ours)
        native = formats.codec(format).encode(role, parts)[0]
        return formats.read(native, format=format, key=self.key(at), meta=our_meta(kind))

    def _closing(self, ours: Closing) -> tuple[str, Role, list[Part]]:
        part: Part = {
            "type": "tool_call_response",
            "id": ours.call.id,
            "name": ours.call.name,
            "response": INTERRUPTED,
            "is_error": True,
        }
        return self.skeleton.reader.answers, "tool", [part]

    def _rest(self, ours: Rest) -> tuple[str, Role, list[Part]]:
        """What a row says beside its results of no call, as a message of its format."""
        row = self._row_as_it_stands(ours.of)
        native = cast("Mapping[str, Any]", json.loads(row.content))
        decoded = formats.codec(row.format).decode(native)
        counted = len(self.skeleton.entries[ours.of].results)
        kept = _but(decoded.parts, ours.without, counted) or _said(decoded.parts)
        answers = any(part.get("type") == "tool_call_response" for part in kept)
        role = "user" if decoded.role == "tool" and not answers else decoded.role
        return row.format, role, kept

    def _time(self, at: int, given: int | None) -> int | None:
        above = self.plan.parent[at]
        inherited = self._times[above] if above != ROOT else 0
        time = given if given is not None else inherited or self._first_time
        self._times[at] = time or 0
        return time


def _but(parts: Sequence[Part], without: frozenset[int], counted: int) -> list[Part]:
    """Parts without the results at these positions. Where a row has more results than are
    ``counted``, those that answer its own calls are not."""
    results = results_of(parts)
    waiting = [OpenCall(0, call) for call in calls_of(parts)] if counted < len(results) else []
    own = [take(waiting, result) is not None for result in results]
    kept: list[Part] = []
    position = 0
    is_own = iter(own)
    for part in parts:
        if part.get("type") == "tool_call_response" and not next(is_own):
            position += 1
            if position - 1 in without:
                continue
        kept.append(part)
    return kept


def _said(parts: Sequence[Part]) -> list[Part]:
    """Results of no call as the texts that they are."""
    texts = map(shapes.said_by, parts)
    return [shapes.text_part(text or "(no output)") for text in texts]


def _with_kind(meta: Mapping[str, Any] | None, kind: str) -> dict[str, Any]:
    ours = meta.get(META) if meta else None
    known = dict(cast("Mapping[str, Any]", ours)) if isinstance(ours, Mapping) else {}
    return {**(meta or {}), META: known | {"kind": kind}}
