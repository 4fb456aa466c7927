"""How conversations, trees and messages look in a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sessiontree import (
    Checkpoint,
    Conversation,
    ConversationInfo,
    Mended,
    Message,
    Move,
    Problem,
    Repair,
    Resume,
)
from sessiontree.cli.screen import Piece, Styled, out, out_lines, row, table
from sessiontree.core.message import ToolCall, ToolResult, text_of
from sessiontree.core.outline import Row
from sessiontree.formats.shapes import are_parts, response_text

if TYPE_CHECKING:
    from sessiontree.transfer import Import, Note, Redactor

LINES, CHARACTERS = 20, 2_000
"""How much of a call's arguments or of its answer is shown unless all is asked for."""

PLACES = 8
"""Places in a file that are named for one reason; --json names all."""

_ROLE_WIDTH = len("assistant")


def moment(microseconds: int) -> str:
    """A time of the store as local date and time; the number itself where no calendar
    reaches."""
    try:
        local = datetime.fromtimestamp(microseconds / 1_000_000)
    except (OverflowError, ValueError, OSError):
        return str(microseconds)
    return local.strftime("%Y-%m-%d %H:%M")


def name_of(info: ConversationInfo) -> str:
    """``owner/topic``, or what else tells the conversation from others."""
    if info.topic is None:
        return f"{info.owner}/" if info.owner else "-"
    return info.topic if info.topic and not info.owner else f"{info.owner}/{info.topic}"


def conversations(infos: Iterable[ConversationInfo]) -> None:
    lines = [
        (
            str(info.id),
            name_of(info),
            "" if info.messages is None else str(info.messages),
            moment(info.updated_at),
            info.title or "",
        )
        for info in infos
    ]
    table(("id", "name", "messages", "changed", "title"), lines)


def conversation(
    info: ConversationInfo, checkpoints: Sequence[Checkpoint], leaves: Sequence[Message]
) -> None:
    out(Styled(f"conversation {info.id}", "bold"), f"  {name_of(info)}")
    for label, value in _facts(info):
        out(Styled(f"  {label:9} ", "dim"), value)
    if checkpoints:
        out(Styled("checkpoints", "bold"))
        for each in checkpoints:
            checkpoint(each)
    out(Styled("leaves", "bold"))
    width = max((len(str(leaf.id)) for leaf in leaves), default=0)
    for leaf in leaves:
        left: list[Piece] = [f"  {leaf.id:>{width}}  ", _role(leaf.role)]
        row(left, Styled(leaf.preview, ""), _head_tag(leaf.id == info.head))


def _facts(info: ConversationInfo) -> list[tuple[str, str]]:
    head = "before the first message" if info.head is None else f"message {info.head}"
    at = "before its first message" if info.forked_at is None else f"at message {info.forked_at}"
    forked = f"from conversation {info.forked_from} {at}"
    return [
        *([("title", info.title)] if info.title else []),
        *([("format", info.format)] if info.format else []),
        *([("messages", str(info.messages))] if info.messages is not None else []),
        ("head", head),
        *([("forked", forked)] if info.forked_from is not None else []),
        ("created", moment(info.created_at)),
        ("changed", moment(info.updated_at)),
    ]


def checkpoint(each: Checkpoint) -> None:
    note = f"  {each.note}" if each.note else ""
    out("  ", Styled(each.label, "label"), f"  message {each.message_id}", Styled(note, "dim"))


def tree_rows(rows: Iterable[Row], widest_id: int) -> None:
    """One line for each row: id, rail, role, first line of text, and what is special."""
    width = len(str(widest_id))
    each = None
    for each in rows:
        node = each.node
        mark = "● " if each.is_head else "• " if each.on_path else "  "
        left: list[Piece] = [
            Styled(f"{node.id:>{width}} ", "dim"),
            mark,
            Styled(each.rail, "dim"),
            _role(node.role),
        ]
        preview = Styled(node.preview, "" if each.on_path else "dim")
        row(left, preview, _tags(each))
    if each is None:
        out("no messages")


def _tags(each: Row) -> list[Piece]:
    tags: list[Piece] = []
    if each.count > 1:
        tags.append(Styled(f"  {each.index}/{each.count}", "dim"))
    tags.extend(Styled(f"  [{label}]", "label") for label in each.node.labels)
    if each.hidden:
        tags.append(Styled(f"  +{each.hidden} hidden", "dim"))
    return [*tags, *_head_tag(each.is_head)]


def _head_tag(is_head: bool) -> list[Piece]:
    return [Styled("  ← head", "bold")] if is_head else []


def _role(role: str) -> Styled:
    return Styled(f"{role:{_ROLE_WIDTH}} ", role)


def message(saved: Message, *, full: bool = False) -> None:
    """One message for reading: its text, its calls and its results."""
    out(
        Styled(f"── {saved.id} ", "dim"),
        Styled(saved.role, saved.role),
        Styled(f"  {moment(saved.created_at)}", "dim"),
        Styled("" if saved.is_boundary else f"  {saved.open_calls} call(s) open", "dim"),
    )
    if saved.text:
        out_lines(saved.text)
    for made in saved.tool_calls:
        call(made, full=full)
    for given in saved.tool_results:
        result(given, full=full)
    out()


def call(made: ToolCall, *, full: bool = False) -> None:
    out(Styled("→ ", "dim"), Styled(made.name, "tool"), Styled(f"  {made.id}", "dim"))
    _lines(response_text(made.arguments), full)


def result(given: ToolResult, *, full: bool = False) -> None:
    kind = "error" if given.is_error else "answer"
    named = f" of {given.name}" if given.name else ""
    out(Styled("← ", "dim"), Styled(f"{kind}{named}", "tool"), Styled(f"  {given.id}", "dim"))
    _lines(_answer(given.response), full)


def _answer(response: Any) -> str:
    """The text of a result; what is no text (an image, a file) by its kind."""
    if not are_parts(response):
        return response_text(response)
    others = [f"[{part['type']}]" for part in response if part["type"] != "text"]
    return "\n".join([text_of(response), *others]).strip("\n")


def _lines(text: str, full: bool) -> None:
    shown = text if full else "\n".join(text.split("\n", LINES)[:LINES])[:CHARACTERS]
    if shown:
        out_lines(shown, "  ")
    if len(shown) < len(text):
        more = f"  … {len(text) - len(shown):,} more characters; --full shows them"
        out(Styled(more, "dim"))


def moves(history: Iterable[Move]) -> None:
    lines = [
        (
            "●" if move.is_current else "",
            moment(move.created_at),
            move.cause,
            f"{_place(move.from_id)} → {_place(move.to_id)}",
        )
        for move in history
    ]
    table(("", "when", "cause", "head"), lines)


def _place(head: int | None) -> str:
    return "start" if head is None else str(head)


def resume(found: Resume) -> None:
    """Where a run goes on, and what was in flight when it ended."""
    standing(found)
    if found.interrupted:
        in_flight(found)
    else:
        out("no call was in flight")


def standing(found: Resume) -> None:
    """Where a run goes on."""
    head, count = found.path[-1] if found.path else None, len(found.path)
    out(
        f"{count} message{'' if count == 1 else 's'} on the path; it goes on after ",
        f"message {head.id} ({head.role})" if head else "the start",
    )
    for each in found.checkpoints:
        checkpoint(each)


def in_flight(found: Resume) -> None:
    """The calls whose results are unknown."""
    out(Styled("in flight when it ended; whether these had an effect is unknown:", "bold"))
    for made in found.interrupted:
        call(made)


def problems(found: Sequence[Problem]) -> None:
    for problem in found:
        mend = "  (can be mended)" if problem.can_mend else ""
        out(Styled(f"{problem.kind}  ", "label"), f"{_about(problem)}: {problem.detail}", mend)
    out("the store is sound" if not found else f"{len(found)} problem(s)")


def repair(done: Repair) -> None:
    if done.backup is not None:
        out("the store as it was: ", Styled(done.backup, "label"))
    for mended in done.mended:
        out("mended  ", Styled(f"{mended.kind}  ", "label"), f"{_about(mended)}: {mended.detail}")
    problems(done.left)


def _about(found: Problem | Mended) -> str:
    where = f"conversation {found.conversation_id}" if found.conversation_id else "store"
    return f"{where}, message {found.message_id}" if found.message_id else where


def imported(found: Import) -> None:
    """What became of a file, row by row; what was done with rows, by reason."""
    counts = [
        f"{found.kept} saved",
        *([f"{found.already} there before"] if found.already else []),
        *([f"{found.about} about the conversation"] if found.about else []),
        *([f"{found.repaired} of them repaired"] if found.repaired else []),
        f"{found.skipped} skipped",
    ]
    out(Styled(found.file, "bold"), f" ({found.format}), {found.entries} rows: {', '.join(counts)}")
    _notes("repaired", found.repairs)
    _notes("skipped", found.skips)
    if found.closed:
        out(f"  {found.closed} call(s) without a result, closed as interrupted")
    for chat in found.conversations:
        out(f"  conversation {chat.id}  {name_of(chat.info)}", _at(chat))
    out(Styled(f"  {found.roots} root(s), {found.branch_points} branch point(s)", "dim"))


def _at(chat: Conversation) -> Styled:
    return Styled(f"  head {_place(chat.head)}", "dim")


def _notes(done: str, notes: Iterable[Note]) -> None:
    """Reasons, each with the lines that it holds for."""
    lines: dict[str, list[str]] = {}
    for note in notes:
        at = str(note.line) if note.line == note.last else f"{note.line}-{note.last}"
        lines.setdefault(note.what, []).append(f"{at} of {note.part!r}" if note.part else at)
    for what, at in lines.items():
        more = f" and {len(at) - PLACES} more places" if len(at) > PLACES else ""
        out(f"  {done}: {what} (line {', '.join(at[:PLACES])}{more})")


def redacted(redactor: Redactor) -> str:
    """How many secrets an export has replaced, and of which kinds."""
    kinds = ", ".join(f"{count} {kind}" for kind, count in redactor.kinds.items())
    if not kinds:
        return "redacted nothing: no key, token or password in a shape that is known"
    return f"redacted {redactor.count} secret(s), each wherever it stands: {kinds}"
