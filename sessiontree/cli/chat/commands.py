"""What begins with a slash. Each command is one that ``sessiontree`` has, on the conversation
that is talked in."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sessiontree.cli import show
from sessiontree.cli.chat import room
from sessiontree.cli.chat.loop import Session, start_of
from sessiontree.cli.screen import out, sink, table
from sessiontree.cli.wording import why_in_chat
from sessiontree.core.message import META
from sessiontree.errors import BadArgument, SessionTreeError

if TYPE_CHECKING:
    from sessiontree.conversation.windows import Reclaimed

_COMMAND = re.compile(r"/([A-Za-z][\w-]*)(?:\s+(.*))?", re.DOTALL)


class Quit(Exception):
    """The person wants no more."""


class Command(NamedTuple):
    """One of them. ``run`` gets what stands behind the name."""

    name: str
    usage: str
    about: str
    run: Callable[[Session, str], Awaitable[None]]


def parse(line: str) -> tuple[str, str] | None:
    """(name, what stands behind it) of a command; None for a prompt. What begins with another
    sign, even a space, or is no name (``/etc/hosts``), is a prompt."""
    found = _COMMAND.fullmatch(line.rstrip())
    return None if found is None else (found[1].lower(), (found[2] or "").strip())


async def run(session: Session, name: str, given: str) -> None:
    """Do it. SessionTreeError for a name that is none, with the nearest that is."""
    command = COMMANDS.get(name)
    if command is None:
        raise SessionTreeError(f"there is no /{name}", hint=_nearest(name))
    await command.run(session, given)


def _nearest(name: str) -> str:
    begun = [known for known in COMMANDS if known.startswith(name)]
    near = begun or get_close_matches(name, COMMANDS, 1, 0.5)
    meant = f"do you mean /{near[0]}? " if near else ""
    return f"{meant}/help lists them; a space before it makes it a prompt"


# ---- looking -----------------------------------------------------------------------------


async def _tree(session: Session, given: str) -> None:
    from sessiontree.core.outline import outline

    found = await session.chat.tree()
    show.tree_rows(outline(found), max((node.id for node in found), default=0))


async def _context(session: Session, given: str) -> None:
    from sessiontree.cli.sending import show_shares
    from sessiontree.core.context import shares_of

    window = await session.window()
    show_shares(shares_of(window, session.endpoint.model), session.limits.budget.tokens)
    missing = await room.left_out(session, window)
    out(f"  {len(window.ids)} messages are sent", f"; {missing}" if missing else "")


async def _cost(session: Session, given: str) -> None:
    from sessiontree.cli.costing import By, show_cost
    from sessiontree.core.prices import Prices

    await show_cost(session.chat, Prices({}), By.model, session.endpoint.model)
    if session.summaries.input or session.summaries.output:
        out(f"summaries since the start, which are in no conversation: {session.summaries}")


async def _help(session: Session, given: str) -> None:
    rows = [(f"/{each.name}", each.usage, each.about) for each in COMMANDS.values()]
    table(("command", "", "what it does"), rows)


# ---- moving ------------------------------------------------------------------------------


async def _place(session: Session) -> None:
    from sessiontree.cli.moving import report

    await report(session.chat)


async def _branch(session: Session, given: str) -> None:
    if not given:
        await _list_branches(session)
        return
    await session.chat.branch(None if given == "start" else _id(given))
    await _place(session)


async def _list_branches(session: Session) -> None:
    chat = session.chat
    show.conversation(
        chat.info._replace(head=chat.head), await chat.checkpoints(), await chat.leaves()
    )


async def _fork(session: Session, given: str) -> None:
    session.chat = await session.chat.fork(topic=given or None)
    if session.is_stateless:
        session.start = await start_of(session.chat, None)
    await _place(session)
    session.terminal.note(
        f"(you are in the fork now; `sessiontree chat {session.chat.id}` opens it)"
    )


async def _checkpoint(session: Session, given: str) -> None:
    label = _two(given)[0] if given[:1] in ("'", '"') else given
    if label:
        await session.chat.checkpoint(label)
        await _place(session)
        return
    found = await session.chat.checkpoints()
    for each in found:
        show.checkpoint(each)
    if not found:
        out("no checkpoints")


async def _rewind(session: Session, given: str) -> None:
    label, digest = _two(given)
    if not label:
        raise BadArgument(
            "which checkpoint?", hint="/rewind LABEL [DIGEST]; /checkpoint lists them"
        )
    await session.chat.rewind(label, digest=digest or None)
    await _place(session)


async def _undo(session: Session, given: str) -> None:
    await session.chat.undo()
    await _place(session)


async def _redo(session: Session, given: str) -> None:
    await session.chat.redo()
    await _place(session)


# ---- saying it again ---------------------------------------------------------------------


async def _edit(session: Session, given: str) -> None:
    from sessiontree.cli.moving import reworded

    which, text = _two(given)
    if not text:
        raise BadArgument("what is it to say?", hint="/edit ID TEXT, or /edit last TEXT")
    message_id = await _last_prompt(session) if which == "last" else _id(which)
    message = await reworded(session.chat, message_id, text)
    saved = await session.chat.edit(message_id, message)
    if saved.role == "user":
        await session.answer()
    else:
        await _place(session)


async def _last_prompt(session: Session) -> int:
    for message in reversed(await session.chat.path()):
        if message.role == "user" and META not in message.meta:  # a digest is ours
            return message.id
    raise BadArgument("nothing was said yet that could be edited")


async def _retry(session: Session, given: str) -> None:
    await session.chat.retry()
    await session.answer()


# ---- room --------------------------------------------------------------------------------


async def _compact(session: Session, given: str) -> None:
    _tell_reclaim(await room.compact(session, given))


async def _shake(session: Session, given: str) -> None:
    kinds = {"tool_output": ("elide",), "images": ("images",), "all": ("elide", "images")}
    if (given or "tool_output") not in kinds:
        raise BadArgument(f"{given!r} cannot be shaken off", hint="tool_output, images or all")
    for kind in kinds[given or "tool_output"]:
        if kind == "elide":
            _tell_reclaim(await session.reclaim("elide", protect=0, save=1))
        else:
            _tell_reclaim(await session.reclaim("images"))


async def _snapshot(session: Session, given: str) -> None:
    _tell_reclaim(await session.reclaim("snapshot", keep=1))


def _tell_reclaim(done: Reclaimed) -> None:
    if done.marks:
        out(f"{room.told(done)}; /undo takes it back")
    for refusal in done.refused:
        out(f"nothing was done: {why_in_chat(refusal.why)}")


# ---- the rest ----------------------------------------------------------------------------


async def _export(session: Session, given: str) -> None:
    from sessiontree.transfer import export, shows

    format, file = _two(given)
    format = format or "markdown"
    await export(session.chat, format, file=_file(file) if file else sink())
    where = f" to {file}" if file else ""
    session.terminal.note(f"exported {shows(format)} as {format}{where}")


async def _quit(session: Session, given: str) -> None:
    raise Quit


def _file(given: str) -> Path:
    return Path(given).expanduser()


def _id(given: str) -> int:
    if not given.isascii() or not given.isdecimal():
        raise BadArgument(f"{given!r} is no id of a message", hint="/tree shows them")
    return int(given)


def _two(given: str) -> tuple[str, str]:
    """The first word, which may stand in quotes, and the rest."""
    if given[:1] in ("'", '"'):
        end = given.find(given[0], 1)
        if end > 0:
            return given[1:end], given[end + 1 :].strip()
    first, _, rest = given.partition(" ")
    return first, rest.strip()


COMMANDS = {
    command.name: command
    for command in (
        Command("tree", "", "every message, the branch of the head first", _tree),
        Command("branch", "[ID|start]", "go to a message; without one, list the branches", _branch),
        Command("fork", "[TOPIC]", "go on in a copy of this path", _fork),
        Command("edit", "ID|last TEXT", "say a prompt in other words, and have it answered", _edit),
        Command("retry", "", "have the last prompt answered again", _retry),
        Command(
            "checkpoint", "[LABEL]", "label this place; without a label, list them", _checkpoint
        ),
        Command(
            "rewind", "LABEL [DIGEST]", "go back to a label, with what was found since", _rewind
        ),
        Command("undo", "", "put the head back where it was", _undo),
        Command("redo", "", "take an undo back", _redo),
        Command("context", "", "where the tokens are", _context),
        Command("compact", "[FOCUS]", "have the model summarise what was said", _compact),
        Command(
            "shake", "[tool_output|images|all]", "shake off old results, images, or both", _shake
        ),
        Command("snapshot", "", "send what was said as pages of small print", _snapshot),
        Command("cost", "", "what was spent here", _cost),
        Command(
            "export", "[FORMAT] [FILE]", "write this conversation; markdown by default", _export
        ),
        Command("help", "", "this list", _help),
        Command("quit", "", "end; all that was said is kept", _quit),
    )
}
