"""Which store, which conversation: what every command begins with."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import wraps
from inspect import getdoc
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypeAlias, TypeVar

import typer

from sessiontree import Conversation, Store, open_store
from sessiontree.errors import (
    ConversationNotFound,
    NotAStore,
    SessionTreeError,
    StoreCorrupt,
    StoreReadOnly,
    StoreUnavailable,
)

StoreName = Annotated[
    str | None,
    typer.Option("--store", metavar="STORE", help="A file or a database URL.", show_default=False),
]
ConversationName = Annotated[
    str, typer.Argument(metavar="CONVERSATION", help="Its id, or owner/topic.", show_default=False)
]
MessageId = Annotated[
    int, typer.Argument(metavar="MESSAGE", help="Its id, as `tree` shows it.", show_default=False)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]

P = ParamSpec("P")
Plain = TypeVar("Plain", bound=Callable[..., None])
Work: TypeAlias = Callable[P, Coroutine[Any, Any, None]]

_LARGEST_ID = 2**63 - 1


def command(app: typer.Typer, name: str | None = None) -> Callable[[Work[P]], Work[P]]:
    """Make an async function a command of ``app``."""

    def register(work: Work[P]) -> Work[P]:
        @wraps(work)
        def blocking(*args: P.args, **kwargs: P.kwargs) -> None:
            asyncio.run(work(*args, **kwargs))

        app.command(name, help=_help(work))(blocking)
        return work

    return register


def plain_command(app: typer.Typer) -> Callable[[Plain], Plain]:
    """Make a function that waits for nothing a command of ``app``."""

    def register(work: Plain) -> Plain:
        return app.command(help=_help(work))(work)

    return register


def _help(work: Callable[..., object]) -> str:
    """What a docstring says, a line for each paragraph: a terminal breaks it where it must."""
    paragraphs = (getdoc(work) or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def default_store() -> Path:
    """The store that is meant when none is named: in the platform's folder for data."""
    from platformdirs import user_data_path

    return user_data_path("sessiontree", appauthor=False) / "sessions.db"


@asynccontextmanager
async def opened(
    target: str | None, *, write: bool = False, create: bool = False, damaged: bool = False
) -> AsyncGenerator[Store, None]:
    """The store named ``target``, or the default one; ``damaged``: even if it is.

    Only a command that brings something in may ``create`` it: for the others a name
    without a file is a mistake, and an empty store would hide it.
    """
    place = default_store() if target is None else target
    if create and isinstance(place, Path):
        place.parent.mkdir(parents=True, exist_ok=True)
    elif not create and _is_missing_file(str(place)):
        raise StoreUnavailable(
            f"there is no store at {place}",
            hint="`sessiontree import FILE` makes it; --store or SESSIONTREE_STORE name another",
        )
    async with AsyncExitStack() as stack:
        try:
            store = await _enter(stack, str(place), looks=not write and not create)
        except (StoreCorrupt, NotAStore) as error:
            if not damaged or (isinstance(error, NotAStore) and not write):
                raise
            store = await stack.enter_async_context(open_store(place, damaged=True))
        yield store


async def _enter(stack: AsyncExitStack, place: str, *, looks: bool) -> Store:
    """Open the store: where one only looks, so that no byte of it changes, unless an older
    sessiontree wrote it and it must be migrated first."""
    try:
        return await stack.enter_async_context(open_store(place, read_only=looks))
    except StoreReadOnly:
        if not looks:
            raise
        return await stack.enter_async_context(open_store(place))


@asynccontextmanager
async def conversation(
    name: str, target: str | None, *, write: bool = False
) -> AsyncGenerator[Conversation, None]:
    """The conversation ``name`` of the store ``target``."""
    async with opened(target, write=write) as store:
        yield await find(store, name)


@asynccontextmanager
async def begun(name: str, target: str | None) -> AsyncGenerator[Conversation, None]:
    """The conversation ``owner/topic``, made where there is none, and the store as well."""
    owner, topic = name.split("/", 1) if "/" in name else ("", name)
    if not topic or name.isdecimal():
        why = "that names one by its id" if topic else "it has no topic"
        raise SessionTreeError(
            f"a conversation cannot be begun as {name!r}: {why}", hint="give owner/topic"
        )
    async with opened(target, create=True) as store:
        yield await store.conversation(topic, owner=owner)


async def find(store: Store, name: str) -> Conversation:
    """The conversation that ``name`` names: an id first, else ``owner/topic`` or a topic
    without owner. Where owners and topics hold slashes themselves, the one that exists."""
    if name.isascii() and name.isdecimal() and int(name) <= _LARGEST_ID:
        try:
            return await store.open(int(name))
        except ConversationNotFound:
            pass
    found = [chat async for chat in _named(store, name)]
    if len(found) > 1:
        ids = ", ".join(str(chat.id) for chat in found)
        raise SessionTreeError(f"{name!r} may mean the conversations {ids}", hint="give the id")
    if not found:
        raise ConversationNotFound(name, hint="`sessiontree ls` lists those that exist")
    return found[0]


async def _named(store: Store, name: str) -> AsyncIterator[Conversation]:
    for owner, topic in _readings(name):
        try:
            yield await store.conversation(topic, owner=owner, create=False)
        except ConversationNotFound:
            continue


def _readings(name: str) -> Iterator[tuple[str, str]]:
    """Every (owner, topic) that may be meant."""
    yield "", name
    for at, character in enumerate(name):
        if character == "/":
            yield name[:at], name[at + 1 :]


def _is_missing_file(place: str) -> bool:
    return place != ":memory:" and "://" not in place and not Path(place).exists()
