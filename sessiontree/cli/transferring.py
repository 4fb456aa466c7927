"""Commands that carry conversations in and out: import, export, formats, delete, demo.

What reads and writes files is imported when it is used: the other commands start without.
"""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sessiontree import Conversation, Store
from sessiontree.cli import shapes, show
from sessiontree.cli.opening import (
    AsJson,
    ConversationName,
    StoreName,
    command,
    conversation,
    default_store,
    find,
    opened,
    plain_command,
)
from sessiontree.cli.screen import document, out, progress, sink, table, tell
from sessiontree.errors import FormatError, SessionTreeError

if TYPE_CHECKING:
    from sessiontree.transfer import Import

app = typer.Typer()


@command(app, "import")
async def import_(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", show_default=False)],
    format: Annotated[
        str | None, typer.Option(help="By default told from what is in the file.")
    ] = None,
    owner: Annotated[str | None, typer.Option(help="Whose the conversations become.")] = None,
    as_json: AsJson = False,
    store: StoreName = None,
) -> None:
    """Bring in session files of other programs, or sessiontree's own.

    Of a folder or a zip archive, every file in it. What was imported before is not imported
    again.
    """
    done: list[Import] = []
    failed = 0
    new = _new_file(store)
    async with opened(store, create=True) as opened_store:
        for file in files:
            found = await _import(opened_store, file, format, owner)
            failed += not found
            done += found
            for one in found if not as_json else ():
                show.imported(one)
        is_empty = not done and not [info async for info in opened_store.conversations()]
    if new is not None and is_empty:
        _remove(new)
    if as_json:
        document([shapes.imported(found) for found in done])
    if failed:
        raise typer.Exit(1)


def _new_file(store: str | None) -> Path | None:
    """The file that an import will make; None for a store that there is, or that is no file."""
    if store is not None and (store == ":memory:" or "://" in store):
        return None
    place = default_store() if store is None else Path(store)
    return None if place.exists() else place


def _remove(store: Path) -> None:
    """Take away a store that was made for nothing: it would look like one that lost all."""
    for end in ("", "-wal", "-shm"):
        store.with_name(store.name + end).unlink(missing_ok=True)


async def _import(store: Store, file: Path, format: str | None, owner: str | None) -> list[Import]:
    """What a file, a folder or an archive brought in; what of it cannot be read is told, and
    does not keep the others from coming in."""
    from sessiontree.transfer import Refused, import_all

    done: list[Import] = []
    refused: list[Refused] = []
    try:
        with progress(f"import {file.name}") as report:
            found = import_all(store, file, format=format, owner=owner, progress=report)
            async for one in found:
                if isinstance(one, Refused):
                    refused.append(one)
                else:
                    done.append(one)
    except FormatError as error:
        tell(f"sessiontree: {error}")
    for one in refused if done else ():
        tell(f"sessiontree: {one.error.what}")
    return done


class Detail(StrEnum):
    """How much of a conversation `export` shows."""

    full = "full"
    high = "high"
    low = "low"
    user_only = "user-only"


@command(app)
async def export(
    name: ConversationName,
    format: Annotated[
        str, typer.Option(help="`sessiontree formats` lists them; jsonl loses nothing.")
    ] = "jsonl",
    whole_tree: Annotated[
        bool | None,
        typer.Option(
            "--whole-tree/--path",
            help="Every branch, or only the path of the head; by default what suits the format.",
            show_default=False,
        ),
    ] = None,
    detail: Annotated[
        Detail,
        typer.Option(
            help="For markdown and html: all; results by their beginning and no reasoning; what "
            "is said and the names of calls; what the user says."
        ),
    ] = Detail.full,
    redact: Annotated[
        bool, typer.Option("--redact", help="Replace keys, tokens and passwords.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="By default stdout.")
    ] = None,
    store: StoreName = None,
) -> None:
    """Write a conversation in another format: its path, or all of it."""
    from sessiontree.transfer import Redactor, shows
    from sessiontree.transfer import export as write

    redactor = Redactor() if redact else None
    async with conversation(name, store) as chat:
        with progress(f"export conversation {chat.id} as {format}") as report:
            await write(
                chat,
                format,
                whole_tree=whole_tree,
                file=output or sink(),
                detail=detail.value,
                redact=redactor,
                progress=None if output is None else report,
            )
    tell(f"exported {shows(format, whole_tree)} of conversation {chat.id} as {format}")
    if output is not None and not output.stat().st_size:
        tell(f"{output} is empty: the conversation has nothing for {format}")
    if redactor is not None:
        tell(show.redacted(redactor))


@plain_command(app)
def formats(as_json: AsJson = False) -> None:
    """List the formats that conversations come in and go out by."""
    from sessiontree.transfer import formats_known, shows

    known = formats_known()
    shown = {one.name: shows(one.name) for one in known if one.writes}
    if as_json:
        document([one._asdict() | {"shows": shown.get(one.name)} for one in known])
        return
    lines = [
        (
            one.name,
            "in" if one.reads else "",
            "out" if one.writes else "",
            shown.get(one.name, "").removeprefix("the "),
            one.about,
        )
        for one in known
    ]
    table(("format", "", "", "shows", "what it is"), lines)


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
    tell(f"conversation {chat.id}, {show.name_of(chat.info)}: {count} message(s), gone for good")
    if not typer.confirm("Delete it?", err=True):
        raise SessionTreeError(f"conversation {chat.id} was not deleted")


@plain_command(app)
def demo(
    folder: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="By default a new one.")
    ] = None,
) -> None:
    """Show what sessiontree does, on a session of its own: about half a minute."""
    from sessiontree.cli import demo as story

    story.run(folder)
