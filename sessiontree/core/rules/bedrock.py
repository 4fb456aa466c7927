"""Bedrock Converse: how a message is built, and what is refused (B1 to B11)."""

from __future__ import annotations

from collections.abc import Iterator

from sessiontree.core.images import Picture
from sessiontree.core.rules import checks, limits, pairs, repairs, thinking
from sessiontree.core.rules.lists import ListShape, dicts, obj, string
from sessiontree.core.rules.model import Block, Entry, Fault, Json, Kind, Request, Rule
from sessiontree.core.tokens import as_json

KINDS: dict[str, Kind] = {
    "text": "text",
    "toolUse": "call",
    "toolResult": "result",
    "reasoningContent": "thinking",
    "image": "image",
    "document": "media",
    "video": "media",
}


class BedrockShape(ListShape):
    name = "bedrock"
    codes = {  # noqa: RUF012
        "unanswered": "B3",
        "orphan": "B4",
        "order": "B3",
        "unique": "B12",
        "form": "B9",
        "empty": "B8",
        "first": "B1",
        "image": "B13",
    }

    def block(self, native: Json) -> Block:
        if len(native) == 1 and "text" in native:  # most are no more
            return Block("text", native)
        key = next((key for key in native if key in KINDS), "")
        kind = KINDS.get(key, "other")
        if kind == "thinking":
            return Block(kind, native)
        if kind == "call" or kind == "result":
            body = _body(native, key)
            return Block(kind, native, string(body.get("toolUseId")), string(body.get("name")))
        return Block(kind, native)

    def interrupted(self, call: Block, text: str) -> Block:
        body = {"toolUseId": call.id, "content": [{"text": text}], "status": "error"}
        return Block("result", {"toolResult": body}, call.id)

    def with_id(self, block: Block, new: str) -> Block:
        key = "toolUse" if block.kind == "call" else "toolResult"
        body = {**_body(block.native, key), "toolUseId": new}
        return Block(block.kind, {**block.native, key: body}, new, block.name)

    def inner(self, block: Block) -> list[Json] | None:
        if block.kind != "result":
            return None
        return dicts(_body(block.native, "toolResult").get("content"))

    def with_inner(self, block: Block, inner: list[Json] | str) -> Block:
        content = [{"text": inner}] if isinstance(inner, str) else inner
        body = {**_body(block.native, "toolResult"), "content": content}
        return Block(block.kind, {**block.native, "toolResult": body}, block.id, block.name)

    def picture(self, native: Json) -> Picture | None:
        if "image" not in native:
            return None
        image = _body(native, "image")
        data = string(_body(image, "source").get("bytes"))
        return Picture(data, mime_type=f"image/{string(image.get('format'))}")

    def texts(self, block: Block) -> list[str]:
        native = block.native
        if block.kind == "text":
            return [string(native.get("text"))]
        if block.kind == "call":
            return [block.name, as_json(_body(native, "toolUse").get("input"))]
        if block.kind == "thinking":
            text = _body(_body(native, "reasoningContent"), "reasoningText").get("text")
            return [string(text)]
        if block.kind == "result":
            return [
                string(item["text"]) if "text" in item else as_json(item.get("json"))
                for item in self.inner(block) or ()
                if "text" in item or "json" in item
            ]
        return [] if block.kind in ("image", "media") else [as_json(native)]


def _body(native: Json, key: str) -> Json:
    return obj(native.get(key))


# --- Checks and repairs of its own --------------------------------------------------------


def tools_without_config(request: Request) -> Iterator[Fault]:
    """Blocks of tools, and no toolConfig (B5)."""
    if request.facts.tools is False and not request.kinds.isdisjoint({"call", "result"}):
        yield Fault(-1, "the history has tool blocks, and no tools are sent")


def say_tools_in_words(request: Request) -> None:
    """Calls and results as text, for a request that offers no tools (B5)."""
    if request.facts.tools is not False:
        return
    names = {result: call.name for call, (result, _) in pairs.matches_of(request).answers.items()}
    touched = [e for e in request.entries if not e.kinds.isdisjoint(("call", "result"))]
    request.entries = [
        entry.having([_in_words(request, block, entry, names) for block in entry.blocks])
        if entry.kinds & {"call", "result"}
        else entry
        for entry in request.entries
    ]
    request.note("B5", "calls and results were put in words: no tools are sent", *touched)


def _in_words(request: Request, block: Block, entry: Entry, names: dict[Block, str]) -> Block:
    said = " ".join(text for text in request.shape.texts(block) if text)
    if block.kind == "call":
        return request.shape.text(f"[called {said}]", entry.sender)
    if block.kind == "result":
        return request.shape.text(f"[{names.get(block, 'result')} answered: {said}]", entry.sender)
    return block


def is_llama(model: str | None) -> bool:
    return "llama" in (model or "").lower()


def text_beside_results(request: Request) -> Iterator[Fault]:
    """Something beside results in their message, for models that refuse it (B6)."""
    if not is_llama(request.facts.model):
        return
    for at, entry in enumerate(request.entries):
        if "result" in entry.kinds and len(entry.kinds) > 1:
            yield Fault(at, "the message holds results and something else")


GO_ON = "(The user adds:)"


def part_from_results(request: Request) -> None:
    """An assistant's word between the results and what the user said beside them, since
    roles must alternate."""
    shape = request.shape
    entries: list[Entry] = []
    for entry in request.entries:
        if "result" not in entry.kinds or len(entry.kinds) == 1:
            entries.append(entry)
            continue
        rest = [block for block in entry.blocks if block.kind != "result"]
        between = shape.message("assistant", [shape.text(GO_ON, "assistant")])
        between.position = entry.position
        entries += [entry.having(entry.results), between, entry.having(rest)]
        request.note("B6", "text was parted from the results beside it", entry)
    request.entries = entries


SHAPE = BedrockShape()

RULES = (
    Rule(
        "B10",
        "Unknown parameter in messages[N]: KEY, must be one of: role, content",
        "a message has a role and content, and no other field",
        checks.extra_fields,
        repairs.drop_extra_fields,
    ),
    Rule(
        "B3",
        "Expected toolResult blocks at messages.N.content for the following Ids: ID",
        "all results of a turn stand in the one next user message",
        pairs.unanswered_next,
        pairs.settle,
    ),
    Rule(
        "B4",
        "The number of toolResult blocks at messages.N.content exceeds the number of toolUse "
        "blocks of previous turn.",
        "no more results than the previous message has calls",
        pairs.stray_results,
        pairs.settle,
    ),
    Rule(
        "B13",
        "Could not process image",
        "an image's data is whole: providers refuse the request for one that was cut off",
        limits.cut_off,
        limits.drop_cut_off,
    ),
    Rule(
        "B11",
        "messages.N.content.M: Invalid `signature` in `thinking` block. The block is bound to a "
        "different conversation.",
        "thinking is bound to everything before it, unchanged (Claude models)",
        thinking.stale,
        thinking.drop_stale,
    ),
    Rule(
        "B7",
        "The content field at messages.N.content.0.toolResult cannot be empty when status value "
        "is error.",
        "a result that tells of an error says something",
        checks.empty_error,
        repairs.fill_empty_errors,
    ),
    Rule(
        "B8",
        "The text field in the ContentBlock object at messages.N.content.M is blank. Add text to "
        "the text field, and try again.",
        "no text block is blank, and no message has no blocks",
        checks.empty_text,
        repairs.drop_empty_text,
    ),
    Rule(
        "B1",
        "A conversation must start with a user message. Try again with a conversation that "
        "starts with a user message.",
        "the first message is the user's",
        checks.assistant_first,
        repairs.put_user_first,
    ),
    Rule(
        "B2",
        "A conversation must alternate between user and assistant roles. Make sure the "
        "conversation alternates between user and assistant roles and try again.",
        "user and assistant take turns",
        checks.same_role_twice,
        repairs.join_same_role,
    ),
    Rule(
        "B6",
        "Conversation blocks and tool result blocks cannot be provided in the same turn.",
        "some models (Llama) take no text beside results",
        text_beside_results,
        part_from_results,
    ),
    Rule(
        "B9",
        "Value at 'messages.N.member.content.M.member.toolUse.toolUseId' failed to satisfy "
        "constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+",
        "toolUseIds are letters, digits, _ and -, 64 at most",
        pairs.illegal_ids,
        pairs.rename,
    ),
    Rule(
        "B12",
        "messages.N.content.M: tool_use ids must be unique",
        "toolUseIds are unique in the request (Claude models)",
        pairs.repeated_ids,
        pairs.rename,
    ),
    Rule(
        "B5",
        "The toolConfig field must be defined when using toolUse and toolResult content blocks.",
        "tools are defined whenever the history has blocks of them",
        tools_without_config,
        say_tools_in_words,
    ),
)
