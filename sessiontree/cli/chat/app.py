"""`sessiontree chat`: opening, taking up what was there, and the loop over lines."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from sessiontree import Conversation, Resume, Store
from sessiontree.cli import show
from sessiontree.cli.chat import choosing, commands
from sessiontree.cli.chat.commands import Quit
from sessiontree.cli.chat.endpoint import Endpoint
from sessiontree.cli.chat.loop import Session, start_of, system_in_force
from sessiontree.cli.chat.room import Limits
from sessiontree.cli.chat.terminal import Pipe, Screen, Terminal
from sessiontree.cli.opening import find, opened
from sessiontree.cli.screen import Styled, row
from sessiontree.cli.wording import for_chat
from sessiontree.core.window import Budget
from sessiontree.errors import BadArgument, ConversationNotFound, HeadMoved, SessionTreeError

SHOWN = 4
"""Messages of a conversation that is taken up which are shown, the newest."""
INTERRUPTED = 130
"""The exit code of a program that Ctrl-C ended."""


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for on the command line; see there."""

    name: str | None
    owner: str | None
    topic: str | None
    model: str | None
    base_url: str | None
    provider: str | None
    system: str | None
    stateless: bool
    max_messages: int | None
    budget: int | None
    summarize: bool
    max_tokens: int | None
    tools: bool
    store: str | None

    def __post_init__(self) -> None:
        if self.name is not None and (self.topic is not None or self.owner is not None):
            raise BadArgument(
                "a conversation is named twice", hint="by CONVERSATION, or by --owner and --topic"
            )
        if self.summarize and not (self.max_messages or self.budget):
            raise BadArgument(
                "--summarize does not say when", hint="--max-messages or --budget does"
            )
        if self.summarize and self.stateless:
            raise BadArgument("--stateless leaves nothing to summarise")


def run(given: Options) -> int:
    """The whole program; its exit code: 0, or 1 when a line from a pipe was not answered."""
    terminal = _terminal()
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        try:
            session = runner.run(_begin(stack, given, terminal))
            return _talk(runner, session)
        finally:
            runner.run(stack.aclose())


def _terminal() -> Terminal:
    if sys.stdin and sys.stdin.isatty() and sys.stdout.isatty():
        names = [f"/{name}" for name in commands.COMMANDS]
        return Screen(names, colours=not os.environ.get("NO_COLOR"))
    return Pipe("sessiontree")


# ---- lines -------------------------------------------------------------------------------


def _talk(runner: asyncio.Runner, session: Session) -> int:
    """Take line after line. While one is worked on, Ctrl-C interrupts it alone, on a terminal;
    between lines no task runs."""
    terminal = session.terminal
    while (line := terminal.read()) is not None:
        if not line.strip():
            continue
        try:
            runner.run(_take(session, line))
        except Quit:
            break
        except KeyboardInterrupt:
            terminal.note("(interrupted: nothing half is kept; /retry asks again)")
            if not terminal.is_interactive:
                return INTERRUPTED
        except HeadMoved as error:
            terminal.refuse(_moved(error))
            session.failed = True
        except SessionTreeError as error:
            terminal.refuse(for_chat(error))
            session.failed = True
    return 0 if terminal.is_interactive else int(session.failed)


def _moved(error: HeadMoved) -> str:
    """What to do when another program went on with the conversation meanwhile."""
    what = "another program went on with this conversation"
    if not error.saved:
        return f"{what}; /tree shows where"
    kept = error.saved[-1].id
    return f"{what}; yours is kept as message {kept}: /branch {kept} goes on with it"


async def _take(session: Session, line: str) -> None:
    command = commands.parse(line)
    if command is None:
        await session.say(line.strip())
    else:
        await commands.run(session, *command)


# ---- opening -----------------------------------------------------------------------------


async def _begin(stack: AsyncExitStack, given: Options, terminal: Terminal) -> Session:
    """Open the store, and the conversation where it is there; then the endpoint; only then
    is a conversation begun."""
    store = await stack.enter_async_context(opened(given.store, create=True))
    if given.owner is not None:
        store = store.for_owner(given.owner)
    system = _system(given.system)
    chat = await _existing(store, given)
    found = None if chat is None else await chat.resume()
    endpoint = choosing.endpoint(_wanted(given, found), os.environ)
    stack.push_async_callback(endpoint.close)
    if chat is None or found is None:
        chat = await _begun(store, given, endpoint, system)
    else:
        await _take_up(chat, found, terminal)
        if not given.stateless:
            chat = await _with_system(store, chat, system)
    limits = Limits(Budget(given.budget), given.max_messages, given.summarize)
    session = Session(store, chat, endpoint, terminal, limits)
    session.is_stateless, session.has_tools = given.stateless, given.tools
    if given.stateless:
        session.start = await start_of(chat, system)
    if terminal.is_interactive:
        terminal.note(f"{endpoint.model} · {_where(chat)} · /help tells what can be done")
    return session


async def _existing(store: Store, given: Options) -> Conversation | None:
    if given.name is not None:
        return await find(store, given.name)
    if given.topic is None:
        return None
    try:
        return await store.conversation(given.topic, create=False)
    except ConversationNotFound:
        return None


async def _begun(
    store: Store, given: Options, endpoint: Endpoint, system: str | None
) -> Conversation:
    prompt = None if given.stateless else system
    return await store.conversation(given.topic, system=prompt, format=endpoint.target)


async def _with_system(store: Store, chat: Conversation, system: str | None) -> Conversation:
    """The conversation with this system prompt in force from here on."""
    if system is None:
        return chat
    if chat.topic is not None:
        return await store.conversation(chat.topic, owner=chat.owner, system=system)
    if await system_in_force(chat) != system:
        await chat.append({"role": "system", "content": system})
    return chat


def _system(given: str | None) -> str | None:
    """The system prompt: as given, or what the file behind ``@`` holds."""
    if given is None or not given.startswith("@"):
        return given or None
    try:
        return Path(given[1:]).expanduser().read_text(encoding="utf-8").strip() or None
    except UnicodeDecodeError as error:
        raise BadArgument(
            f"the system prompt in {given[1:]} is not UTF-8: {error.reason}"
        ) from None


def _wanted(given: Options, found: Resume | None) -> choosing.Wanted:
    last = None
    for message in reversed(found.path if found else ()):
        if message.role == "assistant" and message.model:
            last = message
            break
    return choosing.Wanted(
        given.provider,
        given.model,
        given.base_url,
        given.max_tokens,
        last.model if last else None,
        last.format if last else None,
        not given.stateless,
    )


async def _take_up(chat: Conversation, found: Resume, terminal: Terminal) -> None:
    """Say where the conversation stands, and settle what was in flight when it stopped."""
    said = [message for message in found.path if message.role not in ("mark", "system")]
    terminal.remember(m.text for m in said if m.role == "user" and "\n" not in m.text)
    if not said and not found.draft:
        return
    with terminal.beside():
        show.standing(found)
        for message in said[-SHOWN:]:
            role = Styled(f"{message.role:9} ", message.role)
            row([Styled(f"  {message.id} ", "dim"), role], Styled(message.preview, ""), [])
        if found.interrupted:
            show.in_flight(found)
    if found.interrupted:
        async with chat.turn(resume=found) as turn:
            await turn.interrupt()
        terminal.note("(they are closed as interrupted, their results unknown; /retry asks again)")
    elif said[-1].role != "assistant":
        terminal.note("(the last prompt was not answered; /retry asks again)")


def _where(chat: Conversation) -> str:
    named = f", {show.name_of(chat.info)}" if chat.topic is not None else ""
    return f"conversation {chat.id}{named}"
