"""Anthropic Messages: how a message is built, and what is refused (A1 to A19)."""

from __future__ import annotations

from sessiontree.core.images import Picture
from sessiontree.core.rules import checks, limits, pairs, repairs, thinking
from sessiontree.core.rules.lists import ListShape, dicts, dicts_if_list, obj, string
from sessiontree.core.rules.model import Block, Json, Kind, Rule, Sender
from sessiontree.core.tokens import as_json

KINDS: dict[str, Kind] = {
    "text": "text",
    "tool_use": "call",
    "tool_result": "result",
    "thinking": "thinking",
    "redacted_thinking": "thinking",
    "image": "image",
    "document": "media",
    "server_tool_use": "server_call",
    "mcp_tool_use": "server_call",
}


class AnthropicShape(ListShape):
    name = "anthropic"
    codes = {  # noqa: RUF012
        "unanswered": "A1",
        "orphan": "A2",
        "order": "A3",
        "split": "A4",
        "unique": "A5",
        "form": "A17",
        "empty": "A13",
        "first": "A0",
        "image": "A20",
    }

    def block(self, native: Json) -> Block:
        name = string(native.get("type"))
        kind = KINDS.get(name) or ("server_result" if name.endswith("_tool_result") else "other")
        if kind == "call" or kind == "server_call":
            return Block(kind, native, string(native.get("id")), string(native.get("name")))
        if kind == "result" or kind == "server_result":
            return Block(kind, native, string(native.get("tool_use_id")))
        return Block(kind, native)

    def text_inside(self, text: str, sender: Sender) -> Json:
        return {"type": "text", "text": text}

    def interrupted(self, call: Block, text: str) -> Block:
        native = {"type": "tool_result", "tool_use_id": call.id, "content": text, "is_error": True}
        return Block("result", native, call.id)

    def with_id(self, block: Block, new: str) -> Block:
        key = "id" if block.kind == "call" else "tool_use_id"
        return Block(block.kind, {**block.native, key: new}, new, block.name)

    def inner(self, block: Block) -> list[Json] | None:
        return dicts_if_list(block.native.get("content")) if block.kind == "result" else None

    def with_inner(self, block: Block, inner: list[Json] | str) -> Block:
        return Block(block.kind, {**block.native, "content": inner}, block.id, block.name)

    def picture(self, native: Json) -> Picture | None:
        if native.get("type") != "image":
            return None
        source = obj(native.get("source"))
        return Picture(
            string(source.get("data")),
            string(source.get("url")),
            string(source.get("media_type")),
        )

    def texts(self, block: Block) -> list[str]:
        native = block.native
        if block.kind == "text":
            return [string(native.get("text"))]
        if block.kind == "call":
            return [block.name, as_json(native.get("input"))]
        if block.kind == "thinking":
            return [string(native.get("thinking"))]
        if block.kind == "result":
            content = native.get("content")
            return [content] if isinstance(content, str) else _texts_inside(dicts(content))
        if block.kind == "media":
            source = obj(native.get("source"))
            return [string(source.get("data"))] if source.get("type") == "text" else []
        return [] if block.kind == "image" else [as_json(native)]


def _texts_inside(blocks: list[Json]) -> list[str]:
    return [
        string(block.get("text")) if block.get("type") == "text" else as_json(block)
        for block in blocks
        if block.get("type") not in ("image", "document")
    ]


SHAPE = AnthropicShape()

RULES = (
    Rule(
        "A19",
        "messages.N.KEY: Extra inputs are not permitted",
        "a message has a role and content, and no other field",
        checks.extra_fields,
        repairs.drop_extra_fields,
    ),
    Rule(
        "A1",
        "messages.N: `tool_use` ids were found without `tool_result` blocks immediately after: "
        "ID. Each `tool_use` block must have a corresponding `tool_result` block in the next "
        "message.",
        "every tool_use is answered in the next message",
        pairs.unanswered_next,
        pairs.settle,
    ),
    Rule(
        "A2",
        "messages.N.content.M: unexpected `tool_use_id` found in `tool_result` blocks: ID. Each "
        "`tool_result` block must have a corresponding `tool_use` block in the previous message.",
        "every tool_result answers a tool_use of the previous message",
        pairs.stray_results,
        pairs.settle,
    ),
    Rule(
        "A3",
        "Did not find N `tool_result` block(s) at the beginning of this message. Messages "
        "following `tool_use` blocks must begin with a matching number of `tool_result` blocks.",
        "results come first in their message, text after them",
        pairs.results_not_first,
        pairs.settle,
    ),
    Rule(
        "A4",
        "messages.N: `tool_use` ids were found without `tool_result` blocks immediately after: ID",
        "nothing but tool_use follows the first tool_use of an assistant message",
        pairs.said_after_call,
        pairs.settle,
    ),
    Rule(
        "A6",
        "unexpected `tool_use_id` found in `advisor_tool_result` blocks: ID. Each block must have "
        "a corresponding `server_tool_use` block before it.",
        "a server tool's result keeps the server_tool_use before it",
        checks.server_result_alone,
        repairs.drop_lone_server_results,
    ),
    Rule(
        "A20",
        "Could not process image",
        "an image's data is whole: providers refuse the request for one that was cut off",
        limits.cut_off,
        limits.drop_cut_off,
    ),
    Rule(
        "A15",
        "At least one of the image dimensions exceed max allowed size for many-image requests: "
        "2000 pixels",
        "an image has at most 8,000 pixels a side, 2,000 when there are more than 20; a request "
        "at most 100 images and 32 MB",
        limits.too_many_pixels_or_images,
        limits.drop_refused,
    ),
    Rule(
        "A9",
        "messages.N.content.M: `thinking` or `redacted_thinking` blocks in the latest assistant "
        "message cannot be modified. These blocks must remain as they were in the original "
        "response.",
        "thinking is sent with the signature it came with",
        thinking.unsigned,
        thinking.drop_unsigned,
    ),
    Rule(
        "A10",
        "messages.N.content.M: Invalid `signature` in `thinking` block. The block is bound to a "
        "different conversation. Remove the block, or set "
        '`thinking.block_binding.prefix_mismatch_behavior` to "drop_block".',
        "thinking is bound to everything before it, unchanged",
        thinking.stale,
        thinking.drop_stale,
    ),
    Rule(
        "A8",
        "If an assistant message contains any thinking blocks, the first block must be thinking "
        "or redacted_thinking. Found text.",
        "in an assistant message with thinking the first block is thinking",
        thinking.not_first,
        thinking.drop_not_first,
    ),
    Rule(
        "A11",
        "When thinking is disabled, an `assistant` message in the final position cannot contain "
        "`thinking`.",
        "with thinking off, a final assistant message has none",
        thinking.in_final_message_while_off,
        thinking.drop_in_final_message,
    ),
    Rule(
        "A7",
        "Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is "
        "enabled, a final `assistant` message must start with a thinking block (preceeding the "
        "lastmost set of `tool_use` and `tool_result` blocks).",
        "with thinking on, the turn of an open tool loop begins with thinking",
        thinking.missing_in_open_loop,
    ),
    Rule(
        "A16",
        "content can't be empty",
        "a compaction block has content or null, not the empty string",
        checks.empty_compaction,
        repairs.null_empty_compaction,
    ),
    Rule(
        "A18",
        "messages.N.content.M.tool_result: content cannot be empty if `is_error` is true",
        "a result that tells of an error says something",
        checks.empty_error,
        repairs.fill_empty_errors,
    ),
    Rule(
        "A13",
        "messages: text content blocks must be non-empty",
        "no text block is empty, and no message has no blocks",
        checks.empty_text,
        repairs.drop_empty_text,
    ),
    Rule(
        "A0",
        'messages: first message must use the "user" role',
        "the first message is the user's (asked by older models, and by servers that imitate "
        "this one)",
        checks.assistant_first,
        repairs.put_user_first,
    ),
    Rule(
        "A17",
        "messages.N.content.M.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
        "tool_use ids are letters, digits, _ and -, 64 at most",
        pairs.illegal_ids,
        pairs.rename,
    ),
    Rule(
        "A5",
        "messages.N.content.M: tool_use ids must be unique",
        "tool_use ids are unique in the request",
        pairs.repeated_ids,
        pairs.rename,
    ),
    Rule(
        "A14",
        "A maximum of 4 blocks with cache_control may be provided. Found N.",
        "at most four blocks carry cache_control, the system's among them",
        checks.too_many_cache_marks,
        repairs.keep_newest_cache_marks,
    ),
    Rule(
        "A12",
        "This model does not support assistant message prefill. The conversation must end with a "
        "user message.",
        "the last message is the user's",
        checks.assistant_last,
    ),
)
"""In the order in which a window mends them; each repair leaves alone what was mended
before it. Sources: the reports named in the project's facts on provider rules; A0, A17,
A18 and A19 are the provider's own validation texts."""
