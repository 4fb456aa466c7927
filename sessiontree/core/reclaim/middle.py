"""Snapshot and extract as reclaims: what stands for old turns without a call of a model.

Both reach as a cut does. What they are made of loads when it is used: 20 and 14 ms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sessiontree.core.marks import Item
from sessiontree.core.reclaim.cut import all_fits, old_turns
from sessiontree.core.reclaim.sight import Json, Proposal, Refused, Sight
from sessiontree.core.tokens import counter, family_of
from sessiontree.core.turns import Turn
from sessiontree.core.window import Budget


def snapshot(sight: Sight, *, keep: Budget | int, known: bool = False) -> Proposal | Refused:
    """The mark that sends all but the newest turns of ``keep`` tokens as pages.

    ``known``: only for a model that is named and known to see images.
    """
    from sessiontree.core.reclaim import snapshot as pages
    from sessiontree.core.reclaim import transcript

    model = sight.model
    if known and model is None:
        return Refused("snapshot", "it is not known which model would read the pages")
    parted = old_turns(sight, keep)
    if parted is None:
        return Refused("snapshot", all_fits(keep))
    before, standing = "", sight.standing
    if standing is not None and standing.kind == "snapshot":
        before = standing.text
    elif standing is not None:
        before = transcript.standing(_all_of(standing.text, standing.spec), standing.kind)
    made = pages.plan(_items(parted[1]), sight.target, before=before, model=model)
    if not made.pages:
        return Refused("snapshot", made.reason)
    what = f"{len(made.pages)} page(s) stand for {len(parted[1])} turn(s)"
    mark = made.mark if model is None else {**made.mark, "model": model}
    return sight.propose("snapshot", mark, parted[0], what)


def extract(sight: Sight, *, keep: Budget | int, room: int | None = None) -> Proposal | Refused:
    """The mark that puts what word lists find in the place of all but the newest turns of
    ``keep`` tokens. ``room`` is what the extract itself may cost, in tokens."""
    from sessiontree.core.reclaim import extract as words

    parted = old_turns(sight, keep)
    if parted is None:
        return Refused("extract", all_fits(keep))
    standing = sight.standing
    if standing is not None and standing.kind == "snapshot":
        return Refused("extract", "a snapshot is in force, which an extract would lose")
    earlier: Json = {}
    before = None
    if standing is not None and standing.kind == "extract":
        before = words.of_mark(standing.spec)
        earlier = {k: v for k, v in standing.spec.items() if k == "earlier"}
    elif standing is not None:
        earlier = {"earlier": standing.text}
    count = counter(family_of(sight.options.get("model"), sight.target), exact=False)
    for most in _fewer(words.MOST):
        found = words.plan(_items(parted[1]), before=before, most=most)
        if room is None or count(found.text) <= room:
            break
    else:
        return Refused("extract", f"even a short one costs more than {room} tokens")
    if not found.text:
        return Refused("extract", "the word lists find nothing in the old turns")
    what = f"an extract stands for {len(parted[1])} turn(s)"
    return sight.propose("extract", {**found.mark, **earlier}, parted[0], what)


def _items(turns: list[Turn]) -> list[Item]:
    return [item for turn in turns for item in turn.items]


def _all_of(text: str, spec: Mapping[str, Any]) -> str:
    """The text of a mark, with the summary that an extract keeps."""
    earlier = spec.get("earlier")
    return f"{earlier}\n\n{text}" if isinstance(earlier, str) else text


def _fewer(most: int) -> Iterator[int]:
    """most, half of it, … 1."""
    while most:
        yield most
        most //= 2
