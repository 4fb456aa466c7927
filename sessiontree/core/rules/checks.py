"""Checks on messages and blocks, calls and thinking apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from sessiontree.core.rules.model import Block, Entry, Fault, Kind, Request

MAX_CACHE_MARKS = 4


# --- The message --------------------------------------------------------------------------


def extra_fields(request: Request) -> Iterator[Fault]:
    """Fields of a response that a request may not bear (A19, B10)."""
    key = getattr(request.shape, "key", "content")
    for at, entry in enumerate(request.entries):
        native = entry.native
        if native is not None and len(native) > 2:
            extra = sorted(native.keys() - {"role", key})
            yield Fault(at, f"the message has fields beside role and {key}: {', '.join(extra)}")


def assistant_first(request: Request) -> Iterator[Fault]:
    """The first message is not the user's (A0, B1)."""
    entries = request.entries
    if entries and entries[0].sender == "assistant":
        yield Fault(0, "the first message is the assistant's")


def assistant_last(request: Request) -> Iterator[Fault]:
    """The last message is the assistant's (A12, G5)."""
    entries = request.entries
    if entries and entries[-1].sender == "assistant":
        yield Fault(len(entries) - 1, "the last message is the assistant's")


def same_role_twice(request: Request) -> Iterator[Fault]:
    """Two messages of one role in a row (B2)."""
    entries = request.entries
    for at in range(1, len(entries)):
        if entries[at].sender == entries[at - 1].sender:
            yield Fault(at, f"two messages of role {entries[at].sender} in a row")


# --- Blocks -------------------------------------------------------------------------------


def empty_text(request: Request) -> Iterator[Fault]:
    """Text blocks without text, and messages without blocks (A13, B8, G7)."""
    texts = request.shape.texts
    for at, entry in enumerate(request.entries):
        if entry.has_empty_text is False:
            continue
        if not entry.blocks:
            yield Fault(at, "the message is empty")
        entry.has_empty_text = not entry.blocks
        for part, block in enumerate(entry.blocks):
            if block.kind == "text" and not texts(block)[0].strip():
                entry.has_empty_text = True
                yield Fault(at, "a text block is empty", part)


def server_result_alone(request: Request) -> Iterator[Fault]:
    """Results of server tools whose call is not before them (A6)."""
    if "server_result" not in request.kinds:
        return
    called: set[str] = set()
    for at, entry in enumerate(request.entries):
        for part, block in enumerate(entry.blocks):
            if block.kind == "server_call":
                called.add(block.id)
            elif block.kind == "server_result" and block.id not in called:
                yield Fault(at, f"no server_tool_use {block.id!r} before it", part, (block.id,))


def empty_compaction(request: Request) -> Iterator[Fault]:
    """Compaction blocks with an empty string (A16)."""
    if "other" not in request.kinds:
        return
    for at, part, block in blocks_of(request, "other"):
        if is_empty_compaction(block):
            yield Fault(at, "a compaction block's content is the empty string", part)


def is_empty_compaction(block: Block) -> bool:
    return block.native.get("type") == "compaction" and block.native.get("content") == ""


def empty_error(request: Request) -> Iterator[Fault]:
    """Results that tell of an error and say nothing (A18, B7)."""
    for at, part, block in blocks_of(request, "result"):
        if is_empty_error(request, block):
            yield Fault(at, f"the error result {block.id!r} is empty", part, (block.id,))


def is_empty_error(request: Request, block: Block) -> bool:
    native = cast("dict[str, Any]", block.native.get("toolResult", block.native))
    failed = native.get("is_error") is True or native.get("status") == "error"
    return failed and not request.shape.inner(block) and not any(request.shape.texts(block))


def blocks_of(request: Request, kind: Kind) -> Iterator[tuple[int, int, Block]]:
    """(index of the message, index of the block, block) for each block of a kind."""
    for at, entry in request.holding(kind):
        for part, block in enumerate(entry.blocks):
            if block.kind == kind:
                yield at, part, block


# --- Cache marks ----------------------------------------------------------------------------


def too_many_cache_marks(request: Request) -> Iterator[Fault]:
    """More than four blocks with cache_control (A14)."""
    found = cache_marks_in_system(request.facts.system)
    found += sum(1 for entry in request.entries for block in entry.blocks if is_marked(block))
    if found > MAX_CACHE_MARKS:
        yield Fault(-1, f"{found} blocks carry cache_control")


def cache_marks_in_system(system: Any) -> int:
    if not isinstance(system, list):
        return 0
    return sum(
        isinstance(block, dict) and "cache_control" in block for block in cast("list[Any]", system)
    )


def marked(entry: Entry) -> list[int]:
    """Indexes of the blocks that carry cache_control, on themselves or inside."""
    return [at for at, block in enumerate(entry.blocks) if is_marked(block)]


def is_marked(block: Block) -> bool:
    if "cache_control" in block.native:
        return True
    if block.kind != "result":
        return False
    inner = block.native.get("content")
    return isinstance(inner, list) and any(
        isinstance(item, dict) and "cache_control" in item for item in cast("list[Any]", inner)
    )
