"""A conversation as a file, piece by piece, so that its length does not matter."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import IO

from anyio import to_thread

from sessiontree.conversation.handle import Conversation
from sessiontree.core.message import Message
from sessiontree.errors import FormatError, StoreUnavailable
from sessiontree.formats import jsonl, markdown, transcripts
from sessiontree.formats.transcript import kind_of

PIECE = 1 << 20
"""Characters that are written at a time."""

OURS = frozenset({"interrupted", "rest"})
"""Messages that an import has added, which the source's own format leaves out."""

Pieces = AsyncIterator[str]


async def export(
    conversation: Conversation,
    format: str,
    *,
    whole_tree: bool = False,
    file: str | Path | IO[str] | None = None,
) -> str | None:
    """The conversation in another format: as text, or written to ``file`` (a path, which is
    there whole or not at all, or an open text file).

    The active path, or the ``whole_tree``; ``jsonl`` is always the whole tree. FormatError:
    there is no such format, or it cannot say what a message says.
    """
    pieces = _writer(format)(conversation, whole_tree)
    if file is None:
        return "".join([piece async for piece in pieces])
    if isinstance(file, str | Path):
        await _write_file(pieces, Path(file))
    else:
        await _write(pieces, file)
    return None


def _writer(format: str) -> Callable[[Conversation, bool], Pieces]:
    writers = {"jsonl": _jsonl, "markdown": _markdown, "claude_code": _rows_of("claude_code")}
    writers["pi"] = _rows_of("pi")
    if format in writers:
        return writers[format]
    known = ", ".join(known.name for known in transcripts.formats_known() if known.writes)
    raise FormatError(f"there is no format {format!r} to export to", hint=f"formats: {known}")


async def _write_file(pieces: Pieces, path: Path) -> None:
    """Beside its place first, so that a file of that name is never half of one."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        out = await to_thread.run_sync(lambda: part.open("w", encoding="utf-8", newline="\n"))
        try:
            await _write(pieces, out)
        finally:
            await to_thread.run_sync(out.close)
        await to_thread.run_sync(os.replace, part, path)
    except OSError as error:
        raise StoreUnavailable(f"{path} cannot be written: {error.strerror}") from error
    finally:
        await to_thread.run_sync(lambda: part.unlink(missing_ok=True))


async def _write(pieces: Pieces, out: IO[str]) -> None:
    waiting: list[str] = []
    size = 0
    async for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= PIECE:
            await to_thread.run_sync(out.write, "".join(waiting))
            waiting, size = [], 0
    await to_thread.run_sync(out.write, "".join(waiting))


def _messages(chat: Conversation, whole_tree: bool) -> AsyncIterator[Message]:
    return chat.iter_messages() if whole_tree else chat.iter_path()


async def _jsonl(chat: Conversation, whole_tree: bool) -> Pieces:
    await chat.refresh()
    yield jsonl.header_line(chat.info)
    count, last = 0, 0
    async for message in chat.iter_messages():
        yield jsonl.message_line(message)
        count, last = count + 1, message.id
    for checkpoint in await chat.checkpoints():
        if checkpoint.message_id <= last:
            yield jsonl.checkpoint_line(checkpoint)
    for move in await chat.history():
        if (move.to_id or 0) <= last:
            yield jsonl.move_line(move)
    yield jsonl.end_line(count)


def _rows_of(name: str) -> Callable[[Conversation, bool], Pieces]:
    """The rows of a transcript as they came, without what we have added."""

    async def rows(chat: Conversation, whole_tree: bool) -> Pieces:
        async for message in _messages(chat, whole_tree):
            if kind_of(message) in OURS:
                continue
            if message.format != name:
                raise FormatError(
                    f"message {message.id} is of format {message.format}: "
                    f"what {name} did not write itself cannot be written as {name} yet",
                    hint="export to jsonl or markdown, or from before that message",
                )
            # line ends in JSON stand between values only, so a space is as good
            yield message.raw.replace("\r\n", " ").replace("\n", " ") + "\n"

    return rows


# --- markdown -------------------------------------------------------------------------------


async def _markdown(chat: Conversation, whole_tree: bool) -> Pieces:
    await chat.refresh()
    if whole_tree:
        async for piece in _markdown_of_tree(chat):
            yield piece
        return
    length = 0 if chat.head is None else (await chat.message(chat.head)).depth + 1
    yield markdown.front(chat.info, f"the active path, {_messages_in(length)}")
    labels = await _labels(chat)
    async for message in chat.iter_path():
        yield markdown.section(message, labels.get(message.id, ()))


def _messages_in(count: int) -> str:
    return f"{count} message{'' if count == 1 else 's'}"


async def _labels(chat: Conversation) -> dict[int, list[str]]:
    labels: dict[int, list[str]] = {}
    for checkpoint in await chat.checkpoints():
        labels.setdefault(checkpoint.message_id, []).append(checkpoint.label)
    return labels


async def _markdown_of_tree(chat: Conversation) -> Pieces:
    """Branch after branch, the one with the head first; each from where it leaves."""
    tree = await chat.tree()
    leaves = tree.leaves()
    shows = f"the whole tree, {_messages_in(len(tree))}, {len(leaves)} leaves"
    yield markdown.front(chat.info, shows)
    labels = await _labels(chat)
    on_path = tree.path_ids()
    previous: int | None = None
    nodes = iter(tree.nodes)
    for branch, leaf in enumerate(leaves, 1):
        count = 0
        for node in nodes:
            count += 1
            if node.id == leaf.id:
                break
        async for message in _end_of_path(chat, leaf.id, leaf.depth + 1, count):
            if message.parent_id != previous:
                yield markdown.branch(branch, message, message.id in on_path)
            marks = [*labels.get(message.id, ()), *(["head"] if message.id == tree.head else [])]
            yield markdown.section(message, marks, follows=True)
            previous = message.id


async def _end_of_path(
    chat: Conversation, leaf: int, length: int, count: int
) -> AsyncIterator[Message]:
    """The last ``count`` messages of a path of so many."""
    if count == length:
        async for message in chat.iter_path(leaf):
            yield message
        return
    for message in await chat.path(leaf, newest=count):
        yield message
