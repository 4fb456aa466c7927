"""Thinking: where it may stand, and leaving it out where it may not.

Newer Claude models bind each piece of thinking to everything before it: system, tools and
all earlier messages. Once that was edited (elided, cut, summarised, given another system),
thinking that came before the edit is refused; thinking from after it is bound to what is
still sent. Thinking may be taken from the start of a history, never from its middle.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from sessiontree.core.rules.checks import blocks_of
from sessiontree.core.rules.model import Block, Entry, Fault, Request
from sessiontree.core.tokens import claude_version

BINDING_SINCE = (5, 1)
"""The first Claude version that binds thinking to its prefix."""


def binds_thinking(model: str | None) -> bool:
    """True for models that bind thinking to its prefix; unknown ones are taken to."""
    if not model or "claude" not in model.lower():
        return True
    version = claude_version(model.lower())
    return version is None or version >= BINDING_SINCE


# --- Checks ---------------------------------------------------------------------------------


def unsigned(request: Request) -> Iterator[Fault]:
    """Thinking without the signature, or the data, that it came with (A9)."""
    for at, part, block in blocks_of(request, "thinking"):
        if _is_unsigned(block):
            yield Fault(at, "a thinking block has no signature", part)


def _is_unsigned(block: Block) -> bool:
    return not block.native.get("signature") and not block.native.get("data")


def stale(request: Request) -> Iterator[Fault]:
    """Thinking bound to a prefix that is no longer sent as it was (A10, B11)."""
    if not request.facts.binds_thinking:
        return
    for at, part, _ in blocks_of(request, "thinking"):
        if request.entries[at].is_stale:
            yield Fault(at, "what comes before this thinking has changed since", part)


def not_first(request: Request) -> Iterator[Fault]:
    """A message with thinking that begins with something else (A8)."""
    if "thinking" not in request.kinds:
        return
    for at, entry in enumerate(request.entries):
        if "thinking" in entry.kinds and entry.blocks[0].kind != "thinking":
            yield Fault(at, f"the message has thinking but begins with {entry.blocks[0].kind}", 0)


def in_final_message_while_off(request: Request) -> Iterator[Fault]:
    """Thinking in a final assistant message while thinking is off (A11)."""
    if request.facts.thinking is not False or not request.entries:
        return
    last = request.entries[-1]
    if last.sender == "assistant" and "thinking" in last.kinds:
        yield Fault(len(request.entries) - 1, "thinking is off, and the last message has some")


def missing_in_open_loop(request: Request) -> Iterator[Fault]:
    """Thinking is on, and the turn of the open tool loop begins without (A7)."""
    if request.facts.thinking is not True:
        return
    at = open_loop(request.entries)
    if at is not None and request.entries[at].blocks[:1]:
        kind = request.entries[at].blocks[0].kind
        if kind != "thinking":
            yield Fault(at, f"the turn of the open tool loop begins with {kind}", 0)


def open_loop(entries: list[Entry]) -> int | None:
    """The assistant's first message of a tool loop whose results are the last message."""
    if not entries or "result" not in entries[-1].kinds:
        return None
    first: int | None = None
    for at in range(len(entries) - 1, -1, -1):
        if entries[at].sender == "assistant":
            first = at
        elif "result" not in entries[at].kinds:
            break
    return first


# --- Repairs --------------------------------------------------------------------------------


def drop_unsigned(request: Request) -> None:
    _drop(request, "A9", lambda _, block: _is_unsigned(block), "it has no signature")


def drop_stale(request: Request) -> None:
    code = "B11" if request.shape.name == "bedrock" else "A10"
    why = "what comes before it is no longer sent as it was"
    _drop(request, code, lambda entry, _: entry.is_stale, why)


def drop_not_first(request: Request) -> None:
    def misplaced(entry: Entry, _: Block) -> bool:
        return entry.blocks[0].kind != "thinking"

    _drop(request, "A8", misplaced, "its message begins with something else")


def drop_in_final_message(request: Request) -> None:
    last = request.entries[-1]
    _drop(request, "A11", lambda entry, _: entry is last, "thinking is off")


def drop_all(request: Request) -> None:
    """For the policy ``thinking="drop"``."""
    _drop(request, "thinking", lambda _, __: True, "as asked")


def _drop(request: Request, rule: str, which: Callable[[Entry, Block], bool], why: str) -> None:
    loop = open_loop(request.entries)
    touched: list[Entry] = []
    entries: list[Entry] = []
    for at, entry in enumerate(request.entries):
        kept = [b for b in entry.blocks if b.kind != "thinking" or not which(entry, b)]
        if len(kept) < len(entry.blocks):
            touched.append(entry)
            if at == loop:
                _tell_of_open_loop(request, entry)
            entry = entry.having(kept)
        if entry.blocks or not touched or touched[-1].sources != entry.sources:
            entries.append(entry)
    if touched:
        what = f"thinking was left out of {len(touched)} message(s): {why}"
        request.note(rule, what, *touched)
    request.entries = entries


def _tell_of_open_loop(request: Request, entry: Entry) -> None:
    what = "the open tool loop no longer begins with its thinking: ask with thinking off"
    request.note("A7", what, entry, thinking="off")


# --- Gemini -----------------------------------------------------------------------------------

SKIP_SIGNATURE = "skip_thought_signature_validator"
"""What Google tells to send where a call of another model has no signature."""


def needs_signatures(model: str | None) -> bool:
    """Gemini 3 and newer; unknown models are taken to be."""
    found = re.search(r"gemini-(\d+)", (model or "").lower())
    return found is None or int(found[1]) >= 3


def has_signature(block: Block) -> bool:
    return bool(block.native.get("thoughtSignature") or block.native.get("thought_signature"))


def unsigned_calls(request: Request) -> Iterator[Fault]:
    """Steps of the current turn whose first call has no thoughtSignature (G6)."""
    if "call" not in request.kinds or not needs_signatures(request.facts.model):
        return
    for at in range(len(request.entries) - 1, -1, -1):
        entry = request.entries[at]
        if entry.sender == "user" and "result" not in entry.kinds:
            return
        if entry.calls and not has_signature(entry.calls[0]):
            yield Fault(at, f"the call {entry.calls[0].name!r} has no thoughtSignature")


def sign_calls(request: Request) -> None:
    """Every step's first call gets a signature, not the current turn's only: so the window
    stays the same when the turn is over."""
    if "call" not in request.kinds or not needs_signatures(request.facts.model):
        return
    entries = list(request.entries)
    touched: list[Entry] = []
    for at, entry in request.holding("call"):
        first = entry.calls[0]
        if not has_signature(first):
            native = {**first.native, "thoughtSignature": SKIP_SIGNATURE}
            signed = Block(first.kind, native, first.id, first.name)
            touched.append(entry)
            entries[at] = entry.having([signed if b is first else b for b in entry.blocks])
            entries[at].tokens = entry.tokens
    if touched:
        what = f"{len(touched)} call(s) of other models were marked as without signature"
        request.note("G6", what, *touched)
        request.entries = entries
