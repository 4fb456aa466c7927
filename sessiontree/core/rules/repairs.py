"""Repairs of messages and blocks, calls and thinking apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from sessiontree.core.rules import checks
from sessiontree.core.rules.model import Block, Entry, Request
from sessiontree.core.rules.pairs import join, runs

NOTHING_SAID = "(empty message)"
NO_TEXT = "(no text)"
NO_OUTPUT = "(no output)"
ASSISTANT_SPEAKS_FIRST = "(The conversation begins with the assistant.)"


def drop_extra_fields(request: Request) -> None:
    """Not told in the steps: the fields are the response's own, and say nothing to a model."""
    entries: list[Entry] = []
    for entry in request.entries:
        if entry.native is not None and len(entry.native) > 2:
            key = getattr(request.shape, "key", "content")
            bare = {name: entry.native[name] for name in ("role", key) if name in entry.native}
            native, tokens = bare, entry.tokens
            entry = entry.having(entry.blocks)
            entry.native, entry.tokens = native, tokens
        entries.append(entry)
    request.entries = entries


def put_user_first(request: Request) -> None:
    """A placeholder before an assistant that speaks first: its words are kept."""
    first = request.entries[0]
    if first.sender != "assistant":
        return
    shape = request.shape
    opening = shape.message("user", [shape.text(ASSISTANT_SPEAKS_FIRST, "user")])
    opening.position = first.position
    request.entries = [opening, *request.entries]
    request.note(shape.codes["first"], "a user message was put before the assistant's", first)


def join_same_role(request: Request) -> None:
    """Runs of one role as one message (B2). Results come first in it."""
    joined: list[Entry] = []
    for run in runs(request.entries, lambda first, _, entry: first.sender == entry.sender):
        joined.append(_results_first(join(*run)) if len(run) > 1 else run[0])
        if len(run) > 1:
            many = "two" if len(run) == 2 else f"{len(run)}"
            request.note("B2", f"{many} {run[0].sender} messages were joined", *run)
    request.entries = joined


def _results_first(entry: Entry) -> Entry:
    if "result" not in entry.kinds:
        return entry
    blocks = sorted(entry.blocks, key=lambda block: block.kind != "result")
    ordered = entry.having(blocks)
    ordered.tokens = entry.tokens
    return ordered


def drop_empty_text(request: Request) -> None:
    """Empty text is left out; beside thinking it is filled instead, since there every block
    keeps its place. A message that is left with nothing says that it is empty."""
    shape = request.shape

    def mend(entry: Entry) -> list[Entry]:
        if not any(_is_empty(request, block) for block in entry.blocks) and entry.blocks:
            return [entry]
        if "thinking" in entry.kinds:
            filler = shape.text(NO_TEXT, entry.sender)
            blocks = [filler if _is_empty(request, b) else b for b in entry.blocks]
        else:
            blocks = [block for block in entry.blocks if not _is_empty(request, block)]
        blocks = blocks or [shape.text(NOTHING_SAID, entry.sender)]
        request.note(shape.codes["empty"], "empty text was left out", entry)
        return [entry.having(blocks)]

    request.entries = _each(request, mend)


def _is_empty(request: Request, block: Block) -> bool:
    return block.kind == "text" and not request.shape.texts(block)[0].strip()


def drop_lone_server_results(request: Request) -> None:
    lone = {(fault.at, fault.part) for fault in checks.server_result_alone(request)}
    entries: list[Entry] = []
    for at, entry in enumerate(request.entries):
        blocks = [b for part, b in enumerate(entry.blocks) if (at, part) not in lone]
        if len(blocks) != len(entry.blocks):
            request.note("A6", "a server tool's result without its call was left out", entry)
            entry = entry.having(blocks)
        if entry.blocks:
            entries.append(entry)
    request.entries = entries


def null_empty_compaction(request: Request) -> None:
    def mend(entry: Entry) -> list[Entry]:
        if not any(checks.is_empty_compaction(block) for block in entry.blocks):
            return [entry]
        request.note("A16", "an empty compaction block was sent as null", entry)
        blocks = [
            Block(b.kind, {**b.native, "content": None}) if checks.is_empty_compaction(b) else b
            for b in entry.blocks
        ]
        return [entry.having(blocks)]

    request.entries = _each(request, mend)


def fill_empty_errors(request: Request) -> None:
    shape = request.shape

    def mend(entry: Entry) -> list[Entry]:
        empty = {b for b in entry.results if checks.is_empty_error(request, b)}
        if not empty:
            return [entry]
        request.note(fault_code, "an error result without words was given some", entry)
        blocks = [shape.with_inner(b, NO_OUTPUT) if b in empty else b for b in entry.blocks]
        return [entry.having(blocks)]

    fault_code = "B7" if shape.name == "bedrock" else "A18"
    request.entries = _each(request, mend)


def _each(request: Request, mend: Callable[[Entry], list[Entry]]) -> list[Entry]:
    return [mended for entry in request.entries for mended in mend(entry)]


def keep_newest_cache_marks(request: Request) -> None:
    """The system's marks and the newest of the messages'. Marks are not part of what a
    provider compares, so taking old ones away leaves the cached prefix as it is."""
    room = checks.MAX_CACHE_MARKS - checks.cache_marks_in_system(request.facts.system)
    entries = list(request.entries)
    for at in range(len(entries) - 1, -1, -1):
        marked = checks.marked(entries[at])
        taken = marked[: max(0, len(marked) - max(room, 0))]
        room -= len(marked)
        if taken:
            entries[at] = _without_marks(entries[at], taken)
            request.note("A14", "cache_control was taken off: four at most", entries[at])
    request.entries = entries


def _without_marks(entry: Entry, which: list[int]) -> Entry:
    blocks = list(entry.blocks)
    for at in which:
        block = blocks[at]
        native = {key: value for key, value in block.native.items() if key != "cache_control"}
        inner = native.get("content")
        if isinstance(inner, list):
            native["content"] = [_bare(item) for item in cast("list[Any]", inner)]
        blocks[at] = Block(block.kind, native, block.id, block.name)
    unmarked = entry.having(blocks)
    unmarked.tokens = entry.tokens
    return unmarked


def _bare(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    return {k: v for k, v in cast("dict[str, Any]", item).items() if k != "cache_control"}
