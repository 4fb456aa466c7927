"""OpenAI Responses: how an input item is built, and what is refused (R1 to R9).

R6 is advice, not a refusal: with ``previous_response_id`` nothing is pruned by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal, cast

from sessiontree.core.images import Picture
from sessiontree.core.rules import limits, pairs
from sessiontree.core.rules.lists import dicts, dicts_if_list, string
from sessiontree.core.rules.model import Block, Entry, Fault, Json, Request, Rule, Sender
from sessiontree.core.rules.openai_chat import picture_at
from sessiontree.core.tokens import as_json

ANSWERABLE = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
}
"""Calls that text can answer, and the type of the item that does."""


MAX_ID = 64
"""Characters of a call_id."""


class ResponsesShape:
    name = "openai_responses"
    codes: dict[str, str] = {  # noqa: RUF012
        "unanswered": "R1",
        "orphan": "R2",
        "order": "R2",
        "unique": "R7",
        "form": "R9",
        "image": "R8",
    }
    unique_in: Literal["request", "message"] = "request"
    holders: frozenset[str] = frozenset({"text", "result"})
    results_stand_alone = True

    def open(self, native: Json) -> Entry:
        kind = string(native.get("type")) or "message"
        call_id = string(native.get("call_id"))
        if kind == "message":
            return Entry(_sender(native), (Block("text", native),), native, {})
        if kind == "reasoning":
            return Entry("assistant", (Block("thinking", native),), native, {})
        if kind.endswith("_call") and call_id:
            name = string(native.get("name")) or kind.removesuffix("_call")
            return Entry("assistant", (Block("call", native, call_id, name),), native, {})
        if kind.endswith("_output") and call_id:
            return Entry("user", (Block("result", native, call_id),), native, {})
        return Entry("assistant", (Block("other", native),), native, {})

    def close(self, entry: Entry) -> Json:
        return entry.blocks[0].native

    def text(self, text: str, sender: Sender) -> Block:
        return Block("text", {"type": "message", "role": sender, "content": text})

    def text_inside(self, text: str, sender: Sender) -> Json:
        return {"type": "output_text" if sender == "assistant" else "input_text", "text": text}

    def message(self, sender: Sender, blocks: Sequence[Block]) -> Entry:
        return Entry(sender, tuple(blocks), None, {})

    def answers(self, results: Sequence[Block]) -> list[Entry]:
        return [Entry("user", (block,), block.native, {}) for block in results]

    def interrupted(self, call: Block, text: str) -> Block | None:
        kind = ANSWERABLE.get(string(call.native.get("type")))
        if kind is None:
            return None
        return Block("result", {"type": kind, "call_id": call.id, "output": text}, call.id)

    def with_id(self, block: Block, new: str) -> Block:
        return Block(block.kind, {**block.native, "call_id": new}, new, block.name)

    def legal_id(self, old: str) -> str:
        return old[:MAX_ID] or "call"

    def inner(self, block: Block) -> list[Json] | None:
        return dicts_if_list(block.native.get(_key(block)))

    def with_inner(self, block: Block, inner: list[Json] | str) -> Block:
        return Block(block.kind, {**block.native, _key(block): inner}, block.id, block.name)

    def picture(self, native: Json) -> Picture | None:
        if native.get("type") != "input_image":
            return None
        return picture_at(string(native.get("image_url")), native.get("detail") == "low")

    def texts(self, block: Block) -> list[str]:
        native = block.native
        if block.kind == "call":
            body = native.get("arguments", native.get("input", native.get("action")))
            return [block.name, as_json(body)]
        if block.kind == "thinking":
            return [string(item.get("text")) for item in dicts(native.get("summary"))]
        if block.kind == "other":
            return [as_json({k: v for k, v in native.items() if k != "encrypted_content"})]
        content: Any = native.get(_key(block))
        if isinstance(content, list):
            return [_words(item) for item in dicts(cast("list[Json]", content))]
        return [as_json(content)]


def _words(item: Json) -> str:
    return string(item.get("text")) or string(item.get("refusal"))


def _key(block: Block) -> str:
    return "output" if block.kind == "result" else "content"


def _sender(native: Json) -> Sender:
    role = native.get("role")
    if role == "assistant":
        return "assistant"
    return "system" if role in ("system", "developer") else "user"


# --- Calls and outputs ----------------------------------------------------------------------


def calls_without_outputs(request: Request) -> Iterator[Fault]:
    """Calls without an output behind them (R1)."""
    if "call" not in request.kinds:
        return
    answers = pairs.matches_of(request).answers
    for at, entry in request.holding("call"):
        for call in entry.calls:
            if call not in answers:
                yield Fault(at, f"no output for {call.id!r}", ids=(call.id,))


def outputs_without_calls(request: Request) -> Iterator[Fault]:
    """Outputs without a call before them (R2)."""
    if "result" not in request.kinds:
        return
    orphans = {block for block, _ in pairs.matches_of(request).orphans}
    for at, entry in request.holding("result"):
        for result in entry.results:
            if result in orphans:
                yield Fault(at, f"no call {result.id!r} before it", ids=(result.id,))


def settle(request: Request) -> None:
    """Every call with its output behind it, no output without its call. Items may otherwise
    stand in any order, so none is moved."""
    shape, matches = request.shape, pairs.matches_of(request)
    orphans = {block for block, _ in matches.orphans}
    entries: list[Entry] = []
    for entry in request.entries:
        block = entry.blocks[0]
        if block in orphans:
            request.note("R2", f"the output {block.id!r} was left out: it has no call", entry)
            continue
        made = None
        if block.kind == "call" and block not in matches.answers:
            made = shape.interrupted(block, pairs.INTERRUPTED)
            done = "one was added that says so" if made else "it was left out"
            what = f"the call {block.name!r} has no output: {done}"
            request.note("R1", what, entry, id=block.id, name=block.name)
            if made is None:
                continue
        entries.append(entry)
        if made is not None:
            answer = shape.answers([made])[0]
            answer.position = entry.position
            entries.append(answer)
    request.entries = entries


# --- Reasoning --------------------------------------------------------------------------------


def reasoning_alone(request: Request) -> Iterator[Fault]:
    """Reasoning that is not followed by what it led to (R3)."""
    if "thinking" not in request.kinds:
        return
    entries = request.entries
    for at, entry in enumerate(entries):
        if "thinking" in entry.kinds and (
            at + 1 == len(entries) or entries[at + 1].sender != "assistant"
        ):
            what = f"nothing of the assistant's follows {entry.blocks[0].native.get('id')!r}"
            yield Fault(at, what)


def drop_reasoning_alone(request: Request) -> None:
    while alone := {fault.at for fault in reasoning_alone(request)}:
        left_out = [request.entries[at] for at in sorted(alone)]
        request.entries = [e for at, e in enumerate(request.entries) if at not in alone]
        request.note("R3", "reasoning was left out: what it led to is not here", *left_out)


def drop_reasoning(request: Request) -> None:
    """For the policy ``thinking="drop"``. What followed loses its item id, by which the
    server would look for the reasoning (R4)."""
    touched: list[Entry] = []
    entries: list[Entry] = []
    after_reasoning = False
    for entry in request.entries:
        if "thinking" in entry.kinds:
            touched.append(entry)
            after_reasoning = True
            continue
        after_reasoning = after_reasoning and entry.sender == "assistant"
        entries.append(_without_id(entry) if after_reasoning else entry)
    if touched:
        request.note("thinking", f"{len(touched)} reasoning item(s) were left out", *touched)
    request.entries = entries


def id_without_reasoning(request: Request) -> Iterator[Fault]:
    """An ``fc_`` id whose turn has lost its reasoning (R4).

    An item does not tell whether it had reasoning. It is taken to have had some when its
    model reasons: by the model's name, or because earlier turns here hold reasoning.
    """
    if "call" not in request.kinds:
        return
    reasons = bool(re.search(r"^o\d|gpt-[5-9]|codex", (request.facts.model or "").lower()))
    in_turn = False
    for at, entry in enumerate(request.entries):
        if "thinking" in entry.kinds:
            reasons = in_turn = True
        elif entry.sender == "user" and "result" not in entry.kinds:
            in_turn = False
        elif "call" in entry.kinds and reasons and not in_turn and _item_id(entry, "fc"):
            yield Fault(at, f"{_item_id(entry, 'fc')!r} is here without its reasoning item")


def drop_ids_without_reasoning(request: Request) -> None:
    faults = {fault.at for fault in id_without_reasoning(request)}
    _replace(request, faults, "R4", "an item id was left out: its reasoning is not here")


def id_of_another_kind(request: Request) -> Iterator[Fault]:
    """A function_call whose item id does not begin with ``fc`` (R5)."""
    for at, entry in request.holding("call"):
        native = entry.blocks[0].native
        item_id = native.get("id")
        if native.get("type") != "function_call" or item_id is None:
            continue
        if not string(item_id).startswith("fc"):
            yield Fault(at, f"the item id {item_id!r} does not begin with 'fc'")


def drop_ids_of_another_kind(request: Request) -> None:
    faults = {fault.at for fault in id_of_another_kind(request)}
    _replace(request, faults, "R5", "an item id was left out: it does not begin with 'fc'")


def _replace(request: Request, which: set[int], rule: str, what: str) -> None:
    request.note(rule, what, *[request.entries[at] for at in sorted(which)])
    request.entries = [
        _without_id(entry) if at in which else entry for at, entry in enumerate(request.entries)
    ]


def _without_id(entry: Entry) -> Entry:
    block = entry.blocks[0]
    if "id" not in block.native:
        return entry
    native = {key: value for key, value in block.native.items() if key != "id"}
    bare = entry.having([Block(block.kind, native, block.id, block.name)])
    bare.tokens = entry.tokens
    return bare


def _item_id(entry: Entry, prefix: str) -> str:
    item_id = string(entry.blocks[0].native.get("id"))
    return item_id if item_id.startswith(prefix) else ""


SHAPE = ResponsesShape()

RULES = (
    Rule(
        "R1",
        "No tool output found for function call call_…",
        "every call has its output",
        calls_without_outputs,
        settle,
    ),
    Rule(
        "R2",
        "No tool call found for function call output with call_id …",
        "every output has its call",
        outputs_without_calls,
        settle,
    ),
    Rule(
        "R8",
        "Could not process image",
        "an image's data is whole: providers refuse the request for one that was cut off",
        limits.cut_off,
        limits.drop_cut_off,
    ),
    Rule(
        "R3",
        "Item 'rs_…' of type 'reasoning' was provided without its required following item.",
        "a reasoning item keeps the item that it led to",
        reasoning_alone,
        drop_reasoning_alone,
    ),
    Rule(
        "R4",
        "Item 'fc_…' of type 'function_call' was provided without its required 'reasoning' item: "
        "'rs_…'.",
        "an fc_ id keeps its reasoning item",
        id_without_reasoning,
        drop_ids_without_reasoning,
    ),
    Rule(
        "R5",
        "Invalid 'input[N].id': 'custom'. Expected an ID that begins with 'fc'.",
        "a function_call's item id begins with fc",
        id_of_another_kind,
        drop_ids_of_another_kind,
    ),
    Rule(
        "R9",
        "Invalid 'input[N].call_id': string too long. Expected a string with maximum length 64.",
        "a call_id has 64 characters at most",
        pairs.illegal_ids,
        pairs.rename,
    ),
    Rule(
        "R7",
        "(not documented: with a call_id used twice, an output answers either call)",
        "a call_id is used by one call",
        pairs.repeated_ids,
        pairs.rename,
    ),
)
