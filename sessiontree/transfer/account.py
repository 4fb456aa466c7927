"""What an import did, told in numbers and reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sessiontree.conversation.handle import Conversation
from sessiontree.formats.skeleton import lines_in
from sessiontree.formats.transcript import Note, Notes


@dataclass(frozen=True, slots=True)
class Import:
    """What an import did. Each row of the file is in exactly one class:

    entries == kept + already + about + skipped
    """

    file: str
    format: str
    entries: int
    """Rows of the file."""
    kept: int
    """Rows saved now, those that were repaired included."""
    already: int
    """Rows that were saved before."""
    about: int
    """Rows that speak of the conversation itself: a header, a checkpoint."""
    skipped: int
    """Rows that could not be read, or were there twice; ``skips`` tells why."""
    repaired: int
    """Rows among ``kept`` that had to be mended; ``repairs`` tells how."""
    closed: int
    """Results of ours, saved now for calls that the file leaves unanswered."""
    roots: int
    branch_points: int
    """In the tree of the file: messages that several follow."""
    repairs: tuple[Note, ...]
    skips: tuple[Note, ...]
    conversations: tuple[Conversation, ...]

    @property
    def head(self) -> int | None:
        """The head of the first conversation."""
        return self.conversations[0].head


def of_parts(file: str, format: str, parts: Sequence[tuple[str, Import]], skipped: Notes) -> Import:
    """The account of a file of several conversations, each by its name. ``skipped`` is what of
    the file became none of them."""
    done = [part for _, part in parts]
    lost = lines_in(skipped)
    return Import(
        file=file,
        format=format,
        entries=sum(part.entries for part in done) + lost,
        kept=sum(part.kept for part in done),
        already=sum(part.already for part in done),
        about=sum(part.about for part in done),
        skipped=sum(part.skipped for part in done) + lost,
        repaired=sum(part.repaired for part in done),
        closed=sum(part.closed for part in done),
        roots=sum(part.roots for part in done),
        branch_points=sum(part.branch_points for part in done),
        repairs=tuple(n._replace(part=name) for name, part in parts for n in part.repairs),
        skips=(*skipped, *(n._replace(part=name) for name, part in parts for n in part.skips)),
        conversations=tuple(chat for part in done for chat in part.conversations),
    )
