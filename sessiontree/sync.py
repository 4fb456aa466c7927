"""The same store for scripts without async: every call runs on an event loop in a thread.

    from sessiontree import sync

    with sync.open_store("sessions.db") as store:
        chat = store.conversation("T-80005", owner="camille")
        chat.append({"role": "user", "content": "Where is order LK-266415?"})

No logic of its own: names, arguments, results and errors are those of the async handles.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

from sessiontree.conversation import handle as _handle
from sessiontree.conversation import store as _store
from sessiontree.conversation import tools as _tools
from sessiontree.conversation import turn as _turn
from sessiontree.core.message import Message, ToolCall
from sessiontree.core.records import ConversationInfo
from sessiontree.errors import StoreClosed
from sessiontree.store.driver import Durability
from sessiontree.transfer import Detail, Import, Progress, Redactor
from sessiontree.transfer import export as _export
from sessiontree.transfer import import_file as _import_file

A = TypeVar("A")
P = ParamSpec("P")
R = TypeVar("R")


class _Blocking(Generic[A]):
    """A handle whose awaitable methods are run to their end."""

    def __init__(self, portal: BlockingPortal, handle: A) -> None:
        self.portal = portal
        self.handle = handle

    def __repr__(self) -> str:
        return repr(self.handle)


def _run(portal: BlockingPortal, work: Callable[[], Awaitable[R]]) -> R:
    try:
        return portal.call(work)
    except RuntimeError as error:
        if str(error) != "This portal is not running":
            raise
        raise StoreClosed(
            "the store is closed", hint="use it inside `with sync.open_store(...)`"
        ) from error


def _call(
    method: Callable[Concatenate[A, P], Awaitable[R]],
) -> Callable[Concatenate[_Blocking[A], P], R]:
    def blocking(self: _Blocking[A], *args: P.args, **kwargs: P.kwargs) -> R:
        return _run(self.portal, partial(method, self.handle, *args, **kwargs))

    blocking.__doc__ = method.__doc__
    blocking.__name__ = getattr(method, "__name__", "blocking")
    return blocking


def _each(
    method: Callable[Concatenate[A, P], AsyncIterator[R]],
) -> Callable[Concatenate[_Blocking[A], P], Iterator[R]]:
    def blocking(self: _Blocking[A], *args: P.args, **kwargs: P.kwargs) -> Iterator[R]:
        values = method(self.handle, *args, **kwargs)
        end = object()

        async def step() -> Any:
            return await anext(values, end)

        while (value := _run(self.portal, step)) is not end:
            yield value

    blocking.__doc__ = method.__doc__
    return blocking


def _conversation(
    method: Callable[Concatenate[A, P], Awaitable[_handle.Conversation]],
) -> Callable[Concatenate[_Blocking[A], P], Conversation]:
    def blocking(self: _Blocking[A], *args: P.args, **kwargs: P.kwargs) -> Conversation:
        found = _run(self.portal, partial(method, self.handle, *args, **kwargs))
        return Conversation(self.portal, found)

    blocking.__doc__ = method.__doc__
    return blocking


class Turn(_Blocking[_turn.Turn]):
    """See ``sessiontree.Turn``; for ``with``."""

    add = _call(_turn.Turn.add)
    answer = _call(_turn.Turn.answer)
    interrupt = _call(_turn.Turn.interrupt)
    checkpoint = _call(_turn.Turn.checkpoint)

    @property
    def head(self) -> int | None:
        return self.handle.head

    @property
    def open_calls(self) -> list[ToolCall]:
        return self.handle.open_calls

    @property
    def pending(self) -> list[Message]:
        return self.handle.pending

    def __enter__(self) -> Turn:
        _run(self.portal, self.handle.__aenter__)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _run(self.portal, partial(self.handle.__aexit__, kind, error, trace))


class Conversation(_Blocking[_handle.Conversation]):
    """See ``sessiontree.Conversation``."""

    append = _call(_handle.Conversation.append)
    path = _call(_handle.Conversation.path)
    iter_path = _each(_handle.Conversation.iter_path)
    iter_messages = _each(_handle.Conversation.iter_messages)
    message = _call(_handle.Conversation.message)
    children = _call(_handle.Conversation.children)
    siblings = _call(_handle.Conversation.siblings)
    leaves = _call(_handle.Conversation.leaves)
    tree = _call(_handle.Conversation.tree)
    branch = _call(_handle.Conversation.branch)
    fork = _conversation(_handle.Conversation.fork)
    edit = _call(_handle.Conversation.edit)
    retry = _call(_handle.Conversation.retry)
    checkpoint = _call(_handle.Conversation.checkpoint)
    checkpoints = _call(_handle.Conversation.checkpoints)
    rewind = _call(_handle.Conversation.rewind)
    undo = _call(_handle.Conversation.undo)
    redo = _call(_handle.Conversation.redo)
    history = _call(_handle.Conversation.history)
    window = _call(_handle.Conversation.window)
    reclaim = _call(_handle.Conversation.reclaim)
    recover = _call(_handle.Conversation.recover)
    resume = _call(_handle.Conversation.resume)
    graft = _call(_handle.Conversation.graft)
    find_keys = _call(_handle.Conversation.find_keys)
    rename = _call(_handle.Conversation.rename)
    refresh = _conversation(_handle.Conversation.refresh)

    def turn(self, *, resume: _handle.Resume | None = None) -> Turn:
        """See ``sessiontree.Conversation.turn``; for ``with``."""
        return Turn(self.portal, self.handle.turn(resume=resume))

    @property
    def id(self) -> int:
        return self.handle.id

    @property
    def owner(self) -> str:
        return self.handle.owner

    @property
    def topic(self) -> str | None:
        return self.handle.topic

    @property
    def title(self) -> str | None:
        return self.handle.title

    @property
    def head(self) -> int | None:
        return self.handle.head

    @property
    def forked_from(self) -> int | None:
        return self.handle.forked_from

    @property
    def meta(self) -> dict[str, Any]:
        return self.handle.meta

    @property
    def info(self) -> ConversationInfo:
        return self.handle.info


class ModelTools:
    """See ``sessiontree.ModelTools``."""

    def __init__(self, chat: Conversation) -> None:
        self.portal = chat.portal
        self.handle = _tools.ModelTools(chat.handle)

    def schemas(self, provider: str) -> list[dict[str, Any]]:
        """See ``sessiontree.ModelTools.schemas``."""
        return self.handle.schemas(provider)

    def handles(self, name: str) -> bool:
        """See ``sessiontree.ModelTools.handles``."""
        return self.handle.handles(name)

    def call(self, call: ToolCall, turn: Turn) -> _tools.ToolAnswer:
        """See ``sessiontree.ModelTools.call``."""
        return _run(self.portal, partial(self.handle.call, call, turn.handle))


class Store(_Blocking[_store.Store]):
    """See ``sessiontree.Store``."""

    conversation = _conversation(_store.Store.conversation)
    open = _conversation(_store.Store.open)
    conversations = _each(_store.Store.conversations)
    delete = _call(_store.Store.delete)
    check = _call(_store.Store.check)
    repair = _call(_store.Store.repair)

    def for_owner(self, owner: str) -> Store:
        """A view that reaches one owner's conversations only."""
        return Store(self.portal, self.handle.for_owner(owner))

    @property
    def scope(self) -> str | None:
        return self.handle.scope


@contextmanager
def open_store(
    target: str | Path,
    *,
    durability: Durability = "full",
    read_only: bool = False,
    busy_timeout: float = 30.0,
    damaged: bool = False,
) -> Generator[Store]:
    """See ``sessiontree.open_store``."""
    opening = partial(
        _store.open_store,
        target,
        durability=durability,
        read_only=read_only,
        busy_timeout=busy_timeout,
        damaged=damaged,
    )
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(opening()) as store:
        yield Store(portal, store)


def import_file(
    store: Store,
    path: str | Path,
    *,
    format: str | None = None,
    owner: str | None = None,
    progress: Progress | None = None,
) -> Import:
    """See ``sessiontree.import_file``; ``progress`` is called on the loop's thread."""
    work = partial(_import_file, store.handle, path, format=format, owner=owner, progress=progress)
    return store.portal.call(work)


def export(
    conversation: Conversation,
    format: str,
    *,
    whole_tree: bool | None = None,
    file: str | Path | None = None,
    detail: Detail = "full",
    redact: Redactor | None = None,
) -> str | None:
    """See ``sessiontree.export``."""
    work = partial(
        _export,
        conversation.handle,
        format,
        whole_tree=whole_tree,
        file=file,
        detail=detail,
        redact=redact,
    )
    return conversation.portal.call(work)
