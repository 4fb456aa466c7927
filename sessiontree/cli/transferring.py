"""Commands that carry conversations in and out: import, export, delete, demo."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from sessiontree import Conversation
from sessiontree.cli.opening import ConversationName, StoreName, command, find, opened
from sessiontree.cli.screen import out, tell
from sessiontree.cli.show import name_of
from sessiontree.errors import SessionTreeError

app = typer.Typer()


@command(app)
async def delete(
    name: ConversationName,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    store: StoreName = None,
) -> None:
    """Take a conversation away for good, with all it holds."""
    async with opened(store, write=True) as opened_store:
        chat = await find(opened_store, name)
        if not yes:
            await _ask(chat)
        await opened_store.delete(chat.id)
    out(f"conversation {chat.id} is deleted")


async def _ask(chat: Conversation) -> None:
    """Ask whoever sits at the terminal; refused where there is nobody to ask."""
    if not sys.stdin.isatty():
        raise SessionTreeError(f"conversation {chat.id} was not deleted", hint="say --yes")
    count = len(await chat.tree())
    tell(f"conversation {chat.id}, {name_of(chat.info)}: {count} message(s), gone for good")
    if not typer.confirm("Delete it?", err=True):
        raise SessionTreeError(f"conversation {chat.id} was not deleted")


@app.command()
def demo(
    folder: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="By default a new one.")
    ] = None,
) -> None:
    """Show what sessiontree does, on a session of its own: about half a minute."""
    from sessiontree.cli import demo as story

    story.run(folder)
