"""Commands that move the head or add a message: append, branch, fork, edit, checkpoint,
rewind, undo, redo. Each says where the head is afterwards."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack
from enum import StrEnum
from functools import partial
from typing import Annotated

import typer

from sessiontree import Conversation
from sessiontree.cli import shapes, show
from sessiontree.cli.opening import (
    AsJson,
    ConversationName,
    MessageId,
    StoreName,
    begun,
    command,
    conversation,
)
from sessiontree.cli.screen import Styled, document, out, row, tell
from sessiontree.errors import ConversationNotFound, SessionTreeError

app = typer.Typer()


class Speaker(StrEnum):
    """Whose words a message may be. A tool's answer is more than words: see --message."""

    user = "user"
    assistant = "assistant"
    system = "system"


Text = Annotated[
    str | None,
    typer.Argument(metavar="[TEXT]", help="Read from stdin when absent.", show_default=False),
]
Whole = Annotated[
    bool, typer.Option("--message", help="TEXT is a whole message as JSON, kept to the byte.")
]


@command(app)
async def append(
    name: ConversationName,
    text: Text = None,
    role: Annotated[Speaker, typer.Option(help="Who says it.")] = Speaker.user,
    whole: Whole = False,
    key: Annotated[str | None, typer.Option(help="Save it once, however often asked.")] = None,
    new: Annotated[bool, typer.Option("--new", help="Begin the conversation.")] = False,
    as_json: AsJson = False,
    store: StoreName = None,
) -> None:
    """Add a message after the head."""
    said = _given(text)
    place = (begun if new else partial(conversation, write=True))(name, store)
    async with AsyncExitStack() as stack:
        try:
            chat = await stack.enter_async_context(place)
        except ConversationNotFound as error:
            raise ConversationNotFound(
                name, hint="--new begins it; `sessiontree ls` lists those that exist"
            ) from error
        message = said if whole else {"role": role.value, "content": said}
        await chat.append([message], keys=[key] if key else None)
        await report(chat, as_json)


@command(app)
async def edit(
    name: ConversationName,
    message: MessageId,
    text: Text = None,
    whole: Whole = False,
    as_json: AsJson = False,
    store: StoreName = None,
) -> None:
    """Say a message in other words: a sibling of it, with the head on it."""
    said = _given(text)
    async with conversation(name, store, write=True) as chat:
        await chat.edit(message, said if whole else await reworded(chat, message, said))
        await report(chat, as_json)


async def reworded(chat: Conversation, message_id: int, text: str) -> dict[str, str]:
    """The message in other words; SessionTreeError where it is not words alone."""
    old = await chat.message(message_id)
    if old.role not in [*Speaker]:
        raise SessionTreeError(
            f"message {message_id} ({old.role}) is not words alone",
            hint="give the whole message as JSON, with --message",
        )
    return {"role": old.role, "content": text}


@command(app)
async def branch(
    name: ConversationName,
    message: Annotated[int | None, typer.Argument(metavar="[MESSAGE]", show_default=False)] = None,
    start: Annotated[bool, typer.Option("--start", help="Before the first message.")] = False,
    as_json: AsJson = False,
    store: StoreName = None,
) -> None:
    """Move the head to a message: the next one will follow it. Nothing is lost."""
    if (message is None) is not start:
        raise typer.BadParameter("give a MESSAGE, or --start")
    async with conversation(name, store, write=True) as chat:
        await chat.branch(message)
        await report(chat, as_json)


@command(app)
async def fork(
    name: ConversationName,
    message: Annotated[
        int | None, typer.Argument(metavar="[MESSAGE]", help="By default the head.")
    ] = None,
    owner: Annotated[str | None, typer.Option(help="By default the same.")] = None,
    topic: Annotated[str | None, typer.Option(help="By default none.")] = None,
    as_json: AsJson = False,
    store: StoreName = None,
) -> None:
    """Copy the path of a message into a conversation of its own."""
    async with conversation(name, store, write=True) as chat:
        await report(await chat.fork(message, owner=owner, topic=topic), as_json)


@command(app)
async def checkpoint(
    name: ConversationName,
    label: Annotated[str | None, typer.Argument(metavar="[LABEL]", show_default=False)] = None,
    at: Annotated[int | None, typer.Option(metavar="MESSAGE", help="By default the head.")] = None,
    note: Annotated[str | None, typer.Option(help="What it is for.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Move a label that exists.")] = False,
    as_json: AsJson = False,
    store: StoreName = None,
) -> None:
    """Set a checkpoint on the head; without a LABEL, list those that exist."""
    async with conversation(name, store, write=label is not None) as chat:
        if label is None:
            await _list_checkpoints(chat, as_json)
        else:
            await chat.checkpoint(label, at=at, note=note, replace=replace)
            await report(chat, as_json)


async def _list_checkpoints(chat: Conversation, as_json: bool) -> None:
    found = await chat.checkpoints()
    if as_json:
        document([each._asdict() for each in found])
        return
    for each in found:
        show.checkpoint(each)
    if not found:
        out("no checkpoints")


@command(app)
async def rewind(
    name: ConversationName,
    label: Annotated[str, typer.Argument(metavar="LABEL", show_default=False)],
    digest: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="What was found on the way; every model reads it."),
    ] = None,
    as_json: AsJson = False,
    store: StoreName = None,
) -> None:
    """Move the head back to a checkpoint."""
    async with conversation(name, store, write=True) as chat:
        await chat.rewind(label, digest=digest)
        await report(chat, as_json)


@command(app)
async def undo(name: ConversationName, as_json: AsJson = False, store: StoreName = None) -> None:
    """Put the head back where it was before its last move."""
    async with conversation(name, store, write=True) as chat:
        await chat.undo()
        await report(chat, as_json)


@command(app)
async def redo(name: ConversationName, as_json: AsJson = False, store: StoreName = None) -> None:
    """Take an undo back."""
    async with conversation(name, store, write=True) as chat:
        await chat.redo()
        await report(chat, as_json)


async def report(chat: Conversation, as_json: bool = False) -> None:
    """Say where the head is."""
    if as_json:
        document(shapes.place(chat))
    elif chat.head is None:
        out(f"conversation {chat.id}: the head is before the first message")
    else:
        head = await chat.message(chat.head)
        row(
            [f"conversation {chat.id}: the head is message {head.id}  "],
            Styled(head.preview, head.role),
            [],
        )


def _given(text: str | None) -> str:
    """The text that was given as an argument, or else on stdin, without its last line end."""
    if text is None or text == "-":
        if sys.stdin.isatty():
            tell("type the text; end it with Ctrl-D on a line of its own")
        text = _from_stdin()
    if not text.strip():
        raise SessionTreeError("there is no text", hint="give it as an argument or on stdin")
    return text


def _from_stdin() -> str:
    try:
        text = sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise SessionTreeError(f"the text on stdin is not UTF-8: {error}") from error
    return text.removesuffix("\n").removesuffix("\r")
