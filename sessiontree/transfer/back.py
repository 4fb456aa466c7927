"""A conversation back into the file of a program, which may go on with it.

What the program wrote goes back to the byte. Results that an import has added, for calls
that the source leaves unanswered, are left out as they were not in it; unless something of
ours follows, which would be no valid conversation without them.
"""

from __future__ import annotations

from sessiontree.core.message import Message
from sessiontree.errors import FormatError
from sessiontree.formats.transcript import kind_of
from sessiontree.formats.writing.lines import json_line
from sessiontree.formats.writing.rows import Rows
from sessiontree.transfer.excerpt import Excerpt

OURS = frozenset({"interrupted", "rest"})
"""Messages that an import has added, which the source's own format leaves out."""


def row_line(message: Message) -> str:
    """A row on a line; line ends in JSON stand between values only, so a space is as good."""
    return message.raw.replace("\r\n", " ").replace("\n", " ") + "\n"


class Back:
    """Turns messages, each after the one it follows, into the lines of a file."""

    def __init__(self, excerpt: Excerpt, format: str, rows: Rows) -> None:
        self._excerpt = excerpt
        self._format = format
        self._rows = rows
        self._is_begun = False
        self._last: Message | None = None
        self._written: Message | None = None
        """The last that has a row: what only another program could say has none."""
        self._added: set[int] = set()
        """Messages of an import that were written after all."""

    async def lines(self, message: Message) -> list[str]:
        """The lines of a message; FormatError where the file cannot say what it follows."""
        if self._is_own(message):
            self._rows.see(message.native)
            self._is_begun, self._last, self._written = True, message, message
            return [row_line(message)]
        if kind_of(message) in OURS:
            return []
        lines = [] if self._is_begun else [json_line(row) for row in self._rows.header()]
        self._is_begun = True
        made = await self._made(message)
        self._last = message
        if made:
            self._written = message
        return lines + made

    def _is_own(self, message: Message) -> bool:
        return message.format == self._format and kind_of(message) not in OURS

    async def _made(self, message: Message) -> list[str]:
        """The rows of a message of ours, behind what has to stand before it."""
        waiting, above = await self._before(message)
        lines: list[str] = []
        for each in (*waiting, message):
            rows = self._rows.rows(each, above)
            lines += map(json_line, rows)
            above = self._rows.made_id(each) if rows else above
        return lines

    async def _before(self, message: Message) -> tuple[list[Message], str | None]:
        """What of an import has to be written now, oldest first, and the id of the row that
        is above."""
        waiting: list[Message] = []
        at = message.parent_id
        while at is not None:
            above = await self._above(at)
            if kind_of(above) in OURS and at not in self._added:
                self._added.add(at)
                waiting.insert(0, above)
            elif (name := self._id(above)) is not None:
                self._refuse_branch(message, above)
                return waiting, name
            at = above.parent_id
        self._refuse_branch(message, None)
        return waiting, None

    def _id(self, message: Message) -> str | None:
        """The id of a message's row; None when it has no row that another can follow."""
        if self._is_own(message):
            return self._rows.own_id(message.native)
        return self._rows.made_id(message) if self._rows.rows(message, None) else None

    def _refuse_branch(self, message: Message, above: Message | None) -> None:
        last, depth = self._written, -1 if above is None else above.depth
        if self._rows.is_linear and last is not None and depth < last.depth:
            raise FormatError(
                f"message {message.id} is on a branch, and this {self._format} file is of a "
                "kind without ids: it is one chain",
                hint="export the active path, or to jsonl",
            )

    async def _above(self, message_id: int) -> Message:
        last = self._last
        if last is not None and last.id == message_id:
            return last
        return await self._excerpt.message(message_id)
