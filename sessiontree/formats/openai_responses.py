"""OpenAI Responses: one input item is one message.

    {"type"?: "message", "role": "user" | "system" | "developer" | "assistant",
     "content": str | [input_text | input_image | input_file | output_text | refusal]}
    {"type": "function_call", "call_id": str, "name": str, "arguments": JSON text}
    {"type": "function_call_output", "call_id": str, "output": str | [input_…]}
    {"type": "custom_tool_call", "call_id": str, "name": str, "input": str}, …_output
    {"type": "reasoning", "summary": [summary_text], "encrypted_content"?: str}

The other calls that the client answers (shell, computer, apply_patch, …) are calls too, by
their ``call_id``. Items that the server both makes and answers are kept as they are. An
item's own id is in ``extra`` of its part, its pairing id is the part's ``id``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from sessiontree.core.message import Decoded, Native, Part, Role
from sessiontree.formats import shapes

NAME = "openai_responses"

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}

_MARK_BLOCKS = frozenset({"input_text", "output_text", "input_image", "input_file"})
_MARK_ITEMS = frozenset(
    {
        "function_call",
        "custom_tool_call",
        "local_shell_call",
        "shell_call",
        "apply_patch_call",
        "computer_call",
        "function_call_output",
        "custom_tool_call_output",
        "local_shell_call_output",
        "shell_call_output",
        "apply_patch_call_output",
        "computer_call_output",
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "mcp_call",
        "mcp_list_tools",
        "mcp_approval_request",
        "mcp_approval_response",
        "tool_search_call",
        "tool_search_output",
        "item_reference",
    }
)
_USER_ITEMS = frozenset({"mcp_approval_response"})
_CALL_KEYS = {
    "function_call": frozenset({"type", "call_id", "name", "arguments"}),
    "custom_tool_call": frozenset({"type", "call_id", "name", "input"}),
}
_OUTPUT_KEYS = frozenset({"type", "call_id", "output"})
_OUTPUTS = ("function_call_output", "custom_tool_call_output")


class OpenAIResponses:
    name = NAME

    def recognises(self, native: Native) -> bool:
        kind = native.get("type")
        if kind == "reasoning":
            return "summary" in native
        if kind == "compaction":
            return "encrypted_content" in native
        if shapes.is_one_of(kind, _MARK_ITEMS):
            return True
        if kind not in (None, "message") or not shapes.is_one_of(
            native.get("role"), frozenset(ROLES)
        ):
            return False
        return shapes.has_block(native.get("content"), _MARK_BLOCKS)

    def decode(self, native: Native) -> Decoded:
        kind = native.get("type", "message")
        if kind == "message":
            return _message(native)
        if not isinstance(kind, str):
            raise shapes.wrong(NAME, f"its type is {shapes.kind_of(kind)}, not a string")
        if kind in _CALL_KEYS:
            return Decoded("assistant", [_call(native, kind)])
        if kind in _OUTPUTS:
            return Decoded("tool", [_output(native, kind)])
        if kind == "reasoning":
            return Decoded("assistant", [_reasoning(native)])
        return _other(native, kind)

    def encode(self, role: Role, parts: Sequence[Part]) -> list[dict[str, Any]]:
        if role == "mark":
            return []
        text = shapes.plain_text(parts)
        if text is not None:
            return [{"role": "user" if role == "tool" else role, "content": text}]
        numbered = shapes.with_ids(parts)
        if role == "tool":
            results, rest = shapes.split(numbered)
            return [*map(_output_item, results), *_items("user", rest)]
        return _items(role, numbered)


CODEC = OpenAIResponses()


# --- decode -----------------------------------------------------------------------------


def _message(native: Native) -> Decoded:
    role = shapes.role_in(native, ROLES, NAME)
    if "content" not in native:
        raise shapes.wrong(NAME, "it has no content")
    parts = _parts(native["content"], "content")
    known = {"content"} if native["role"] == "developer" else {"role", "content"}
    return Decoded(role, shapes.with_message_fields(parts, native, frozenset(known), NAME))


def _parts(content: object, where: str) -> list[Part]:
    if isinstance(content, str):
        return [shapes.text_part(content)]
    blocks = shapes.blocks_in(content, NAME, where)
    return [_part(block, f"{where}[{i}]") for i, block in enumerate(blocks)]


def _part(block: Mapping[str, Any], where: str) -> Part:
    kind = shapes.kind_in(block, NAME, where)
    if kind in ("input_text", "output_text"):
        part = shapes.text_part(shapes.text_in(block, "text", NAME, where))
        return shapes.ride(part, block, frozenset({"type", "text"}), NAME)
    if kind == "refusal":
        part = shapes.text_part(shapes.text_in(block, "refusal", NAME, where))
        part |= {"refusal": True, "provider": NAME}
        return shapes.ride(part, block, frozenset({"type", "refusal"}), NAME)
    if kind == "input_image":
        return _media_part(block, kind, "image", ("image_url", "file_id"))
    if kind == "input_file":
        return _media_part(block, kind, "document", ("file_data", "file_url", "file_id"))
    return shapes.keep(block, kind, NAME)


def _media_part(
    block: Mapping[str, Any], kind: str, modality: str, sources: tuple[str, ...]
) -> Part:
    """An image or file, by the one of its possible sources that it has."""
    given = [key for key in sources if block.get(key) is not None]
    if len(given) != 1 or not isinstance(block[given[0]], str):
        return shapes.keep(block, kind, NAME)
    value: str = block[given[0]]
    if given[0] == "file_id":
        part = shapes.file(value, modality, NAME)
    elif given[0] == "file_url":
        part = shapes.uri(value, modality)
    else:
        part = shapes.from_url(value, modality)
        if given[0] == "file_data" and part["type"] != "blob":
            return shapes.keep(block, kind, NAME)
    return shapes.ride(part, block, frozenset({"type", given[0]}), NAME)


def _call(item: Native, kind: str) -> Part:
    part: Part = {
        "type": "tool_call",
        "id": shapes.text_in(item, "call_id", NAME, "it"),
        "name": shapes.text_in(item, "name", NAME, "it"),
    }
    if kind == "function_call" and item.get("arguments") is None:
        part["arguments"] = {}
    elif kind == "function_call":
        arguments = shapes.text_in(item, "arguments", NAME, "it")
        part["arguments"] = shapes.parsed_arguments(arguments)
    else:
        part |= {"arguments": shapes.text_in(item, "input", NAME, "it")}
        part |= {"custom": True, "provider": NAME}
    return shapes.ride(part, item, _CALL_KEYS[kind], NAME)


def _output(item: Native, kind: str) -> Part:
    if "output" not in item:
        raise shapes.wrong(NAME, "it has no output")
    output = item["output"]
    part: Part = {
        "type": "tool_call_response",
        "id": shapes.text_in(item, "call_id", NAME, "it"),
        "response": output if isinstance(output, str) else _parts(output, "output"),
    }
    if kind == "custom_tool_call_output":
        part |= {"custom": True, "provider": NAME}
    return shapes.ride(part, item, _OUTPUT_KEYS, NAME)


def _reasoning(item: Native) -> Part:
    """What can be read of it is content; the whole item is what is sent back."""
    texts = [
        shapes.text_in(block, "text", NAME, key)
        for key in ("summary", "content")
        if item.get(key) is not None
        for block in shapes.blocks_in(item[key], NAME, key)
    ]
    content = "\n".join(texts)
    return {"type": "reasoning", "content": content, "provider": NAME, "native": dict(item)}


def _other(item: Native, kind: str) -> Decoded:
    if isinstance(item.get("call_id"), str):
        if kind.endswith("_call"):
            return Decoded("assistant", [_client_call(item, kind)])
        if kind.endswith("_output"):
            return Decoded("tool", [_client_output(item)])
    role: Role = "user" if kind in _USER_ITEMS else "assistant"
    name = f"{NAME}:{kind}" if kind in shapes.NEUTRAL else kind
    return Decoded(role, [{"type": name, "provider": NAME, "item": dict(item)}])


def _client_call(item: Native, kind: str) -> Part:
    """A call of a built-in tool that the client runs: shell, computer, apply_patch."""
    about = ("type", "id", "call_id", "status")
    return {
        "type": "tool_call",
        "id": item["call_id"],
        "name": kind.removesuffix("_call"),
        "arguments": {key: value for key, value in item.items() if key not in about},
        "provider": NAME,
        "native": dict(item),
    }


def _client_output(item: Native) -> Part:
    output = item.get("output")
    address = output.get("image_url") if shapes.is_object(output) else None
    return {
        "type": "tool_call_response",
        "id": item["call_id"],
        "response": [shapes.from_url(address, "image")] if isinstance(address, str) else output,
        "provider": NAME,
        "native": dict(item),
    }


# --- encode -----------------------------------------------------------------------------


def _items(role: Role, parts: Sequence[Part]) -> list[dict[str, Any]]:
    """Items in the order of the parts; what stands together becomes one message."""
    items: list[dict[str, Any]] = []
    said: list[Part] = []
    for part in parts:
        if not _is_item(part):
            said.append(part)
            continue
        items += _message_item(role, said)
        said = []
        items += _item(part)
    return items + _message_item(role, said)


def _is_item(part: Part) -> bool:
    return "item" in part or part.get("type") in ("tool_call", "tool_call_response", "reasoning")


def _item(part: Part) -> list[dict[str, Any]]:
    kind = part.get("type")
    if kind == "tool_call":
        return [_call_item(part)]
    if kind == "tool_call_response":
        return [_output_item(part)]
    if kind == "reasoning":
        native = part.get("native")
        own = part.get("provider") == NAME and isinstance(native, dict)
        return [dict(cast("dict[str, Any]", native))] if own else []
    item = part.get("item") if part.get("provider") == NAME else None
    return [dict(cast("dict[str, Any]", item))] if isinstance(item, dict) else []


def _call_item(part: Part) -> dict[str, Any]:
    own, native = part.get("provider") == NAME, part.get("native")
    if own and isinstance(native, dict):
        return cast("dict[str, Any]", native) | {"call_id": part["id"]}
    name, arguments = part.get("name"), part.get("arguments")
    if own and part.get("custom") is True:
        item = {"type": "custom_tool_call", "call_id": part["id"], "name": name}
        return item | {"input": shapes.arguments_text(arguments)} | shapes.extras(part, NAME)
    item = {"type": "function_call", "call_id": part["id"], "name": name}
    return item | {"arguments": shapes.arguments_text(arguments)} | shapes.extras(part, NAME)


def _output_item(part: Part) -> dict[str, Any]:
    own, native = part.get("provider") == NAME, part.get("native")
    if own and isinstance(native, dict):
        return cast("dict[str, Any]", native) | {"call_id": part["id"]}
    kind = "custom_tool_call_output" if own and part.get("custom") is True else _OUTPUTS[0]
    item = {"type": kind, "call_id": part["id"], "output": _output_content(part)}
    return item | shapes.extras(part, NAME)


def _output_content(part: Part) -> str | list[dict[str, Any]]:
    response = part.get("response")
    failed = shapes.ERROR_MARK if part.get("is_error") else ""
    if response == []:
        return []
    if not shapes.are_parts(response):
        return failed + shapes.response_text(response)
    blocks = [{"type": "input_text", "text": failed.strip()}] if failed else []
    for inner in cast("list[Part]", response):
        blocks += _blocks(inner, "user")
    return blocks


def _message_item(role: Role, parts: Sequence[Part]) -> list[dict[str, Any]]:
    fields = shapes.message_fields(parts, NAME)
    blocks = [block for part in parts for block in _blocks(part, role)]
    if not blocks and not fields:
        return []
    message = {"role": fields.pop("role", role)} | fields
    plain = not fields and len(blocks) == 1 and len(blocks[0]) == 2 and "text" in blocks[0]
    return [message | {"content": blocks[0]["text"] if plain else blocks}]


def _blocks(part: Part, role: Role) -> list[dict[str, Any]]:
    kind, own = part.get("type"), shapes.extras(part, NAME)
    if kind == "text":
        if part.get("refusal") is True and part.get("provider") == NAME:
            return [{"type": "refusal", "refusal": part.get("content")} | own]
        return [_text(str(part.get("content", "")), role) | own]
    if shapes.is_media(part):
        block = _media(part) if role == "user" else None
        return [block | own if block else _text(shapes.media_in_words(part, NAME), role)]
    block = shapes.kept(part, NAME)
    if block is None and shapes.is_kept_media(part):
        return [_text(shapes.media_in_words(part, NAME), role)]
    return [] if block is None else [block]


def _text(text: str, role: Role) -> dict[str, Any]:
    return {"type": "output_text" if role == "assistant" else "input_text", "text": text}


def _media(part: Part) -> dict[str, Any] | None:
    """An image or file in this format's shape; None where it has none."""
    kind, modality = part["type"], part.get("modality")
    if kind == "file":
        name = "input_image" if modality == "image" else "input_file"
        own = part.get("provider") == NAME
        return {"type": name, "file_id": part.get("file_id")} if own else None
    if modality == "image":
        url = shapes.data_url(part) if kind == "blob" else part.get("uri")
        return {"type": "input_image", "image_url": url}
    if modality != "document":
        return None
    if kind == "uri":
        return {"type": "input_file", "file_url": part.get("uri")}
    named = {} if part.get("provider") == NAME else {"filename": shapes.file_name(part)}
    return {"type": "input_file", "file_data": shapes.data_url(part)} | named
