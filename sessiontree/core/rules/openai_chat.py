"""OpenAI Chat Completions: how a message is built, and what is refused (C1 to C5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from sessiontree.core.images import Picture
from sessiontree.core.rules import limits, pairs, repairs
from sessiontree.core.rules.lists import dicts, dicts_if_list, obj, string
from sessiontree.core.rules.model import Block, Entry, Fault, Json, Kind, Request, Rule, Sender
from sessiontree.core.tokens import as_json

MAX_ID = 40
SENDERS: dict[str, Sender] = {"assistant": "assistant", "system": "system", "developer": "system"}
KINDS: dict[str, Kind] = {
    "text": "text",
    "refusal": "text",
    "image_url": "image",
    "input_audio": "media",
    "file": "media",
}
ELSEWHERE = ("refusal", "audio", "function_call")
"""Fields in which an assistant says something without content or tool_calls."""
REASONING = ("reasoning_content", "reasoning", "reasoning_details")


class ChatShape:
    name = "openai_chat"
    codes: dict[str, str] = {  # noqa: RUF012
        "unanswered": "C2",
        "orphan": "C1",
        "order": "C2",
        "unique": "C3",
        "form": "C5",
        "empty": "C4",
        "image": "C6",
    }
    unique_in: Literal["request", "message"] = "message"
    holders: frozenset[str] = frozenset({"image", "result"})
    results_stand_alone = False

    def open(self, native: Json) -> Entry:
        role = native.get("role")
        if role == "tool":
            block = Block("result", native, string(native.get("tool_call_id")))
            return Entry("user", (block,), native, {})
        sender = SENDERS.get(str(role), "user")
        content = native.get("content")
        if len(native) == 2 and isinstance(content, str) and "role" in native:  # most are no more
            block = Block("text", {"type": "text", "text": content})
            return Entry(sender, (block,), native, {"role": role})
        shell = {
            key: value for key, value in native.items() if key not in ("content", "tool_calls")
        }
        calls = [self._call(call) for call in dicts(native.get("tool_calls"))]
        return Entry(sender, (*self._content(content), *calls), native, shell)

    def _content(self, content: object) -> tuple[Block, ...]:
        if isinstance(content, str):
            return (Block("text", {"type": "text", "text": content}),)
        return tuple(
            [Block(KINDS.get(str(item.get("type")), "other"), item) for item in dicts(content)]
        )

    def _call(self, native: Json) -> Block:
        body = obj(native.get("function") or native.get("custom"))
        return Block("call", native, string(native.get("id")), string(body.get("name")))

    def close(self, entry: Entry) -> Json:
        if entry.results:
            return entry.blocks[0].native
        calls = [block.native for block in entry.blocks if block.kind == "call"]
        said = [block.native for block in entry.blocks if block.kind != "call"]
        role = "assistant" if entry.sender == "assistant" else entry.sender
        message: Json = {"role": role, **entry.shell, "content": _closed(said, entry.sender)}
        return message | ({"tool_calls": calls} if calls else {})

    def text(self, text: str, sender: Sender) -> Block:
        return Block("text", {"type": "text", "text": text})

    def text_inside(self, text: str, sender: Sender) -> Json:
        return {"type": "text", "text": text}

    def message(self, sender: Sender, blocks: Sequence[Block]) -> Entry:
        return Entry(sender, tuple(blocks), None, {})

    def answers(self, results: Sequence[Block]) -> list[Entry]:
        return [Entry("user", (block,), block.native, {}) for block in results]

    def interrupted(self, call: Block, text: str) -> Block:
        native = {"role": "tool", "tool_call_id": call.id, "content": text}
        return Block("result", native, call.id)

    def with_id(self, block: Block, new: str) -> Block:
        key = "id" if block.kind == "call" else "tool_call_id"
        return Block(block.kind, {**block.native, key: new}, new, block.name)

    def legal_id(self, old: str) -> str:
        return old[:MAX_ID] or "call"

    def inner(self, block: Block) -> list[Json] | None:
        return dicts_if_list(block.native.get("content")) if block.kind == "result" else None

    def with_inner(self, block: Block, inner: list[Json] | str) -> Block:
        return Block(block.kind, {**block.native, "content": inner}, block.id, block.name)

    def picture(self, native: Json) -> Picture | None:
        image = native.get("image_url")
        if native.get("type") != "image_url":
            return None
        body = obj(image) or {"url": image}
        return picture_at(string(body.get("url")), body.get("detail") == "low")

    def texts(self, block: Block) -> list[str]:
        native = block.native
        if block.kind == "text":
            return [string(native.get("text")) or string(native.get("refusal"))]
        if block.kind == "call":
            return [block.name, _arguments(native)]
        if block.kind == "result":
            content = native.get("content")
            if isinstance(content, str):
                return [content]
            return [string(item.get("text")) for item in dicts(content)]
        return [] if block.kind in ("image", "media") else [as_json(native)]


def picture_at(url: str, low_detail: bool = False) -> Picture:
    """The image at an address, or in a data URL."""
    if not url.startswith("data:"):
        return Picture(url=url, low_detail=low_detail)
    head, _, data = url.partition(",")
    return Picture(data, mime_type=head[5:].partition(";")[0], low_detail=low_detail)


def _arguments(call: Json) -> str:
    body = obj(call.get("function") or call.get("custom"))
    return as_json(body.get("arguments", body.get("input")))


def _closed(said: list[Json], sender: Sender) -> str | list[Json] | None:
    if not said:
        return None if sender == "assistant" else ""
    only = said[0]
    if len(said) == 1 and only.get("type") == "text" and len(only) == 2:
        return only["text"]
    return said


# --- Checks and repairs of its own --------------------------------------------------------


def results_without_calls(request: Request) -> Iterator[Fault]:
    """A tool message that answers no open call before it (C1)."""
    waiting: set[str] = set()
    last = -2
    for at, entry in request.holding("result"):
        if at != last + 1:  # the first after a message of another kind
            waiting = {call.id for call in request.entries[at - 1].calls} if at else set()
        last = at
        call_id = entry.blocks[0].id
        if call_id not in waiting:
            yield Fault(at, f"no open call {call_id!r} in the message before", ids=(call_id,))
        waiting.discard(call_id)


def calls_without_results(request: Request) -> Iterator[Fault]:
    """Calls that are not all answered before a message of another role (C2)."""
    entries = request.entries
    for at, entry in request.holding("call"):
        waiting = {call.id for call in entry.calls}
        after = at + 1
        while after < len(entries) and "result" in entries[after].kinds:
            waiting.discard(entries[after].blocks[0].id)
            after += 1
        if waiting:
            missing = tuple(sorted(waiting))
            yield Fault(at, f"no tool message for {', '.join(missing)}", ids=missing)


def says_nothing(request: Request) -> Iterator[Fault]:
    """A message without content and without calls (C4)."""
    for at, entry in enumerate(request.entries):
        if not entry.blocks and not any(entry.shell.get(key) for key in ELSEWHERE):
            yield Fault(at, "the message has neither content nor calls")


def fill_empty(request: Request) -> None:
    faults = {fault.at for fault in says_nothing(request)}
    entries = list(request.entries)
    for at in faults:
        entry = entries[at]
        entries[at] = entry.having([request.shape.text(repairs.NOTHING_SAID, entry.sender)])
        request.note("C4", "a message without content was given some", entry)
    request.entries = entries


def drop_reasoning(request: Request) -> None:
    """For the policy ``thinking="drop"``: the fields in which other makers put reasoning."""
    touched: list[Entry] = []
    entries: list[Entry] = []
    for entry in request.entries:
        if not entry.shell.keys().isdisjoint(REASONING):
            touched.append(entry)
            shell = {k: v for k, v in entry.shell.items() if k not in REASONING}
            tokens, entry = entry.tokens, entry.having(entry.blocks)
            entry.shell, entry.tokens = shell, tokens
        entries.append(entry)
    if touched:
        what = f"reasoning was left out of {len(touched)} message(s): as asked"
        request.note("thinking", what, *touched)
    request.entries = entries


SHAPE = ChatShape()

RULES = (
    Rule(
        "C1",
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message "
        "with 'tool_calls'.",
        "a tool message answers a call of the assistant's message before it",
        results_without_calls,
        pairs.settle,
    ),
    Rule(
        "C2",
        "An assistant message with 'tool_calls' must be followed by tool messages responding to "
        "each 'tool_call_id'. The following tool_call_ids did not have response messages: …",
        "every tool_call is answered before any other role speaks",
        calls_without_results,
        pairs.settle,
    ),
    Rule(
        "C6",
        "Could not process image",
        "an image's data is whole: providers refuse the request for one that was cut off",
        limits.cut_off,
        limits.drop_cut_off,
    ),
    Rule(
        "C4",
        "Invalid value for 'content': expected a string, got null.",
        "a message has content, unless it makes calls",
        says_nothing,
        fill_empty,
    ),
    Rule(
        "C5",
        "Invalid 'messages[N].tool_calls[M].id': string too long. Expected a string with maximum "
        "length 40.",
        "a tool call has an id, of 40 characters at most",
        pairs.illegal_ids,
        pairs.rename,
    ),
    Rule(
        "C3",
        "Duplicate tool call id in assistant message",
        "ids are unique in an assistant's message (Mistral's servers)",
        pairs.repeated_ids_in_message,
        pairs.rename,
    ),
)
