"""Commands that only look: ls, show, tree, path, history, resume, check."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from enum import StrEnum
from typing import Annotated

import typer

from sessiontree import Conversation, Message
from sessiontree.cli import shapes, show
from sessiontree.cli.opening import (
    AsJson,
    ConversationName,
    StoreName,
    command,
    conversation,
    opened,
)
from sessiontree.cli.screen import document, long_document, long_list, out
from sessiontree.core.outline import outline
from sessiontree.core.tree import Node

app = typer.Typer()


class Only(StrEnum):
    """Which messages `tree` shows."""

    user = "user"
    talk = "talk"
    labels = "labels"


_SHOWN: dict[Only, Callable[[Node], bool]] = {
    Only.user: lambda node: node.role == "user",
    Only.talk: lambda node: node.role in ("user", "assistant"),
    Only.labels: lambda node: bool(node.labels),
}


@command(app)
async def ls(
    owner: Annotated[str | None, typer.Option(help="Only this owner's.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many.")] = None,
    as_json: AsJson = False,
    store: StoreName = None,
) -> None:
    """List the conversations, the last changed first."""
    async with opened(store) as opened_store:
        infos = [info async for info in opened_store.conversations(owner, limit=limit)]
    if as_json:
        document([info._asdict() for info in infos])
    elif infos:
        show.conversations(infos)
    else:
        out("no conversations")


@command(app, "show")
async def show_(
    name: ConversationName,
    message: Annotated[int | None, typer.Argument(metavar="[MESSAGE]", show_default=False)] = None,
    as_json: AsJson = False,
    store: StoreName = None,
) -> None:
    """Show what is known of a conversation, or one of its messages in full."""
    async with conversation(name, store) as chat:
        if message is None:
            await _show_conversation(chat, as_json)
        else:
            saved = await chat.message(message)
            if as_json:
                document(shapes.message(saved))
            else:
                show.message(saved, full=True)


async def _show_conversation(chat: Conversation, as_json: bool) -> None:
    checkpoints, leaves = await chat.checkpoints(), await chat.leaves()
    if as_json:
        document(
            {
                "conversation": chat.info._asdict(),
                "checkpoints": [each._asdict() for each in checkpoints],
                "leaves": [shapes.leaf(leaf) for leaf in leaves],
            }
        )
    else:
        show.conversation(chat.info, checkpoints, leaves)


@command(app)
async def tree(
    name: ConversationName,
    only: Annotated[
        Only | None, typer.Option(help="Prompts; prompts and answers; or checkpoints.")
    ] = None,
    fold: Annotated[
        list[int] | None, typer.Option(metavar="MESSAGE", help="Hide what follows it.")
    ] = None,
    as_json: AsJson = False,
    store: StoreName = None,
) -> None:
    """Show every message of a conversation, the branch of the head first."""
    async with conversation(name, store) as chat:
        found = await chat.tree()
    for message_id in fold or ():
        found.node(message_id)  # MessageNotFound
    rows = outline(found, show=_SHOWN[only] if only else None, folded=fold or ())
    if as_json:
        with long_document({"conversation": chat.id, "head": found.head}, "nodes") as item:
            for row in rows:
                item(shapes.node(row))
    else:
        show.tree_rows(rows, max((node.id for node in found), default=0))


@command(app)
async def path(
    name: ConversationName,
    leaf: Annotated[
        int | None, typer.Option(metavar="MESSAGE", help="End here, not at the head.")
    ] = None,
    newest: Annotated[int | None, typer.Option(min=1, help="Only so many, the newest.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Cut no tool's answer.")] = False,
    as_json: AsJson = False,
    store: StoreName = None,
) -> None:
    """Print the messages from the first to the head, or to a leaf."""
    async with conversation(name, store) as chat:
        if as_json:
            with long_list() as item:
                async for saved in _messages(chat, leaf, newest):
                    item(shapes.message(saved))
        else:
            async for saved in _messages(chat, leaf, newest):
                show.message(saved, full=full)


async def _messages(
    chat: Conversation, leaf: int | None, newest: int | None
) -> AsyncIterator[Message]:
    if newest is None:
        async for saved in chat.iter_path(leaf):
            yield saved
    else:
        for saved in await chat.path(leaf, newest=newest):
            yield saved


@command(app)
async def history(name: ConversationName, as_json: AsJson = False, store: StoreName = None) -> None:
    """List the moves of the head; undo takes back the marked one."""
    async with conversation(name, store) as chat:
        moves = await chat.history()
    if as_json:
        document([move._asdict() for move in moves])
    elif moves:
        show.moves(moves)
    else:
        out("the head has not moved")


@command(app)
async def resume(name: ConversationName, as_json: AsJson = False, store: StoreName = None) -> None:
    """Say where a run goes on, and what was in flight when it ended."""
    async with conversation(name, store) as chat:
        found = await chat.resume()
        if as_json:
            document(shapes.place(chat) | shapes.resume(found))
        else:
            show.resume(found)


@command(app)
async def check(
    repair: Annotated[
        bool, typer.Option("--repair", help="Mend what can be mended; a backup is made first.")
    ] = False,
    as_json: AsJson = False,
    store: StoreName = None,
) -> None:
    """Look for damage in a store. Exits with 1 where there is some, or where some is left."""
    async with opened(store, write=repair, damaged=True) as opened_store:
        done = await opened_store.repair() if repair else None
        found = await opened_store.check() if done is None else done.left
    if as_json:
        document(shapes.problems(found) if done is None else shapes.repair(done))
    elif done is None:
        show.problems(found)
    else:
        show.repair(done)
    if found:
        raise typer.Exit(1)
