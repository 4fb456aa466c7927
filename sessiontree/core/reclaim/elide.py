"""Eliding: old results of tools become a line that names them.

The newest results are protected, up to a number of tokens, and so are those of tools whose
results stay true (``spared``). Defaults: those of harnesses that publish theirs; below
20,000 tokens saved, the cached prefix that is lost costs more than the tokens.
"""

from __future__ import annotations

from collections.abc import Collection

from sessiontree.core import marks
from sessiontree.core.defaults import PROTECT, SAVE
from sessiontree.core.reclaim.sight import Json, Proposal, Refused, Sight
from sessiontree.core.rules import Block, Entry
from sessiontree.core.rules.pairs import match

LINE = 40
"""Tokens of the line in a result's place, about."""


def plan(
    sight: Sight,
    *,
    protect: int = PROTECT,
    save: int = SAVE,
    spared: Collection[str] = (),
    floor: int = marks.FLOOR,
) -> Proposal | Refused:
    """The mark that elides all results but the newest ``protect`` tokens of them."""
    found = _results(sight)
    at, newer = 0, 0
    while at < len(found) and newer + found[at][2] <= protect:
        newer += found[at][2]
        at += 1
    worth = [
        (source, size) for source, name, size in found[at:] if size >= floor and name not in spared
    ]
    saved = sum(size - LINE for _, size in worth)
    if saved < save:
        return Refused("elide", f"it would save about {saved} tokens, less than {save}")
    if not worth:
        return Refused("elide", "there are no old results that are worth it")
    mark: Json = {"role": "mark", "kind": "elide", "spared": sorted(spared), "floor": floor}
    what = f"{len(worth)} old result(s) of tools are elided, about {saved} tokens"
    return sight.propose("elide", mark, worth[0][0], what)


def _results(sight: Sight) -> list[tuple[int, str, int]]:
    """(message, tool, tokens) of each result that is not elided yet, newest first."""
    found: list[tuple[int, str, int]] = []
    for _, entries in sight.turns():
        names = {result: call.name for call, (result, _) in match(entries).answers.items()}
        for entry in reversed(entries):
            if not marks.has_elided(entry, sight.shape):
                found += [_size(sight, entry, result, names) for result in reversed(entry.results)]
    return found


def _size(
    sight: Sight, entry: Entry, result: Block, names: dict[Block, str]
) -> tuple[int, str, int]:
    size = marks.weight(result, sight.shape)
    return entry.sources[-1], names.get(result, result.name), size
