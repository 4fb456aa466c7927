"""Summarising: a summary, written by the caller's model, stands for old turns.

``ask`` builds the request for it: one user message that holds the old turns as text. So it
is valid for every provider, needs no tools, and no call in it can dangle. It is rolling:
the summary in force and what it covers are in the request, and the new one replaces it.
``accept`` makes the mark of what the model answered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sessiontree.core import planner, rules
from sessiontree.core.reclaim.cut import all_fits, first_kept
from sessiontree.core.reclaim.sight import Json, MarkItem, Proposal, Refused, Sight
from sessiontree.core.rules import Entry, Request, Shape
from sessiontree.core.rules.pairs import match
from sessiontree.core.tokens import counter, family_of
from sessiontree.core.turns import Turn
from sessiontree.core.window import Budget, Window
from sessiontree.errors import ReclaimRefused

KEEP = 20_000
"""Tokens of the newest turns that stay as they are, by default."""

INSTRUCTIONS = """\
Below is the earlier part of a conversation between a user and an assistant. It will be \
replaced by your summary, and the assistant will go on from it. Keep what is needed for \
that: what the user wants, what was decided and why, what was done and with which result, \
what is still open, and every name, id, path, number and error that may be needed again, \
word for word. Say nothing that is not in it. Answer with the summary alone."""

SHARES = (2_000, 1_000, 500, 250, 120)
"""Characters of one block that the request shows at most; smaller when it does not fit."""
SHOWN = 20
"""Shares that the text of a snapshot has, which is many messages."""


@dataclass(slots=True, frozen=True)
class Ask:
    """A request for a summary."""

    window: Window
    """The request in the target's shape, valid, without tools and without a system prompt."""
    text: str
    """The same as plain text."""
    ref_id: int
    """The first message that stays as it is."""
    turns: int
    """How many turns the summary will stand for."""
    is_due: bool = False
    """True when these are too many, whatever they cost: the summary need not be smaller."""


def ask(
    sight: Sight,
    *,
    keep: Budget | int = KEEP,
    limit: int | None = None,
    instructions: str = INSTRUCTIONS,
) -> Ask | Refused:
    """The request for a summary of all but the newest turns of ``keep`` tokens.

    ``limit`` is what the request may cost, in tokens. It is met by showing less of each
    long block, then by summarising fewer turns: the oldest.
    """
    first = first_kept(sight, keep)
    if first is None:
        return Refused("summary", all_fits(keep))
    turns = sight.turns()
    kept = next(at for at, (turn, _) in enumerate(turns) if first in turn.ids) + 1
    old = turns[kept:][::-1]
    is_due = isinstance(keep, Budget) and keep.messages is not None
    count = counter(family_of(sight.options.get("model"), sight.target), exact=False)
    for many in _fewer(len(old)):
        for share in SHARES:
            text = _prompt(sight, old[:many], share, instructions)
            if limit is None or count(text) + 10 <= limit:
                following = old[many][0].ids[0] if many < len(old) else first
                return Ask(_as_window(text, sight), text, following, many, is_due)
    return Refused("summary", f"even one turn does not fit a request of {limit} tokens")


def accept(asked: Ask, answer: Any, sight: Sight) -> Proposal:
    """The mark of a summary. ReclaimRefused when the answer is no text, or is no smaller
    than what it would stand for, where that is what it was asked for."""
    if not isinstance(answer, str) or not answer.strip():
        given = "nothing" if not answer else f"a {type(answer).__name__}"
        raise ReclaimRefused(
            f"the summariser returned {given}, not a text; nothing was changed",
            hint="return the summary as a string",
        )
    mark: Json = {"role": "mark", "kind": "summary", "text": answer.strip()}
    what = f"a summary stands for {asked.turns} turn(s)"
    proposal = sight.propose("summary", mark, asked.ref_id, what, shrinks=not asked.is_due)
    if isinstance(proposal, Refused):
        raise ReclaimRefused(
            f"the summary is no smaller than what it replaces: {proposal.why}",
            hint="nothing was changed; ask for a shorter summary",
        )
    return proposal


# --- The request --------------------------------------------------------------------------


def _fewer(count: int) -> list[int]:
    """count, half of it, … 1."""
    counts: list[int] = []
    while count:
        counts.append(count)
        count //= 2
    return counts


def _prompt(
    sight: Sight, old: list[tuple[Turn, list[Entry]]], share: int, instructions: str
) -> str:
    request = Request(sight.shape, [entry for _, entries in old for entry in entries])
    rules.mend(request)
    before = _before(sight, share)
    earlier = f"\n\n<summary_so_far>\n{before}\n</summary_so_far>" if before else ""
    said = "\n\n".join(_lines(request.entries, sight.shape, share))
    return f"{instructions}{earlier}\n\n<conversation>\n{said}\n</conversation>"


def _before(sight: Sight, share: int) -> str:
    """What stands for older turns, as the new summary's writer reads it."""
    standing = sight.standing
    if standing is None:
        return ""
    if standing.kind == "snapshot":
        return _shortened(standing.text, SHOWN * share)
    earlier = standing.spec.get("earlier")
    return f"{earlier}\n\n{standing.text}" if isinstance(earlier, str) else standing.text


def _lines(entries: list[Entry], shape: Shape, share: int) -> list[str]:
    names = {result: call.name for call, (result, _) in match(entries).answers.items()}
    lines: list[str] = []
    for entry in entries:
        for block in entry.blocks:
            said = _shortened("\n".join(filter(None, shape.texts(block))), share)
            if block.kind == "call":
                lines.append(f"assistant called {said}")
            elif block.kind == "result":
                lines.append(f"{names.get(block) or 'the tool'} answered: {said}")
            elif block.kind == "image" or block.kind == "media":
                lines.append(f"{entry.sender} showed an image or a file")
            elif block.kind != "thinking" and said:
                lines.append(f"{entry.sender}: {said}")
    return lines


def _shortened(text: str, share: int) -> str:
    """Three fifths of the share from the beginning, two from the end."""
    if len(text) <= share:
        return text
    head, tail = share * 3 // 5, share * 2 // 5
    return f"{text[:head]}\n[… {len(text) - head - tail} characters …]\n{text[-tail:]}"


def _as_window(text: str, sight: Sight) -> Window:
    """The request as a window: one user message in the target's shape."""
    shape = sight.shape
    entry = shape.message("user", [shape.text(text, "user")])
    native = shape.close(entry)
    item = MarkItem(native, None, role="user", format=sight.target)
    return planner.plan([item], sight.target, sight.codecs, exact=False)
