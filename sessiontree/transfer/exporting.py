"""A conversation as a file, piece by piece, so that its length does not matter."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from itertools import count
from pathlib import Path
from typing import IO

from sessiontree.conversation.handle import Conversation
from sessiontree.errors import FormatError, StoreUnavailable
from sessiontree.formats.redact import Redactor
from sessiontree.formats.writing.detail import Detail, checked
from sessiontree.formats.writing.lines import sayable
from sessiontree.transfer.excerpt import Excerpt
from sessiontree.transfer.threads import in_thread
from sessiontree.transfer.writers import Writer, writer

PIECE = 1 << 20
"""Characters that are written at a time."""

MESSAGES = 100
"""Between two moments at which whoever watches is told."""

Pieces = AsyncIterator[str]

Watch = Callable[[int, int | None], None]
"""Called with (messages read, messages in all; None where they were not counted)."""


async def export(
    conversation: Conversation,
    format: str,
    *,
    whole_tree: bool | None = None,
    file: str | Path | IO[str] | None = None,
    detail: Detail = "full",
    redact: Redactor | None = None,
    progress: Watch | None = None,
) -> str | None:
    """The conversation in another format: as text, or written to ``file`` (a path, which is
    there whole or not at all, or an open text file).

    whole_tree  True: every branch; False: the active path, from the root to the head; None:
                what people mean by the format, see ``shows``
    detail      for markdown and html: "full", "high" (no marks, no reasoning, results by
                their beginning), "low" (what is said, and the names of calls), "user-only"
    redact      replaces keys, tokens and passwords, and counts them
    progress    called from time to time while it goes on

    FormatError: there is no such format or level, or the format cannot say what a message
    says.
    """
    found = writer(format)
    _refuse_detail(format, found, detail)
    await conversation.refresh()
    is_whole = found.whole_tree if whole_tree is None else whole_tree
    excerpt = Excerpt(
        conversation,
        whole_tree=is_whole,
        detail=checked(detail),
        redactor=redact,
        watched=None if progress is None else await _counting(conversation, is_whole, progress),
    )
    pieces = found.write(excerpt)
    if file is None:
        return "".join([sayable(piece) async for piece in pieces])
    if isinstance(file, str | Path):
        await _write_file(pieces, Path(file))
    else:
        await _write(pieces, file)
    return None


async def _counting(chat: Conversation, is_whole: bool, progress: Watch) -> Callable[[], None]:
    """What counts the messages, and tells of every so many. Those of a whole tree are not
    counted before, since that would mean to read it all."""
    whole = (
        None if is_whole else 0 if chat.head is None else (await chat.message(chat.head)).depth + 1
    )
    read = count()

    def watched() -> None:
        done = next(read) + 1
        if done % MESSAGES == 0 or done == whole:
            progress(done if whole is None else min(done, whole), whole)

    return watched


def shows(format: str, whole_tree: bool | None = None) -> str:
    """What an export shows: "the active path" or "the whole tree"."""
    is_whole = writer(format).whole_tree if whole_tree is None else whole_tree
    return "the whole tree" if is_whole else "the active path"


def _refuse_detail(format: str, found: Writer, detail: str) -> None:
    if checked(detail) != "full" and not found.has_detail:
        raise FormatError(
            f"{format} has no levels of detail: it says everything",
            hint="markdown and html have",
        )


async def _write_file(pieces: Pieces, path: Path) -> None:
    """Beside its place first, so that a file of that name is never half of one."""
    if await in_thread(path.is_dir):
        raise StoreUnavailable(f"{path} is a folder", hint="name a file in it")
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        out = await in_thread(lambda: part.open("w", encoding="utf-8", newline="\n"))
        try:
            await _write(pieces, out)
        finally:
            await in_thread(out.close)
        await in_thread(os.replace, part, path)
    except OSError as error:
        raise StoreUnavailable(f"{path} cannot be written: {error.strerror}") from error
    finally:
        await in_thread(lambda: part.unlink(missing_ok=True))


async def _write(pieces: Pieces, out: IO[str]) -> None:
    waiting: list[str] = []
    size = 0
    async for piece in pieces:
        waiting.append(sayable(piece))
        size += len(piece)
        if size >= PIECE:
            await in_thread(out.write, "".join(waiting))
            waiting, size = [], 0
    await in_thread(out.write, "".join(waiting))
