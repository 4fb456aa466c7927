"""Gemini generateContent: how a content is built, and what is refused (G1 to G7)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from sessiontree.core.images import Picture
from sessiontree.core.rules import checks, limits, pairs, repairs, thinking
from sessiontree.core.rules.lists import ListShape, dicts, obj, string
from sessiontree.core.rules.model import Block, Entry, Fault, Json, Kind, Request, Rule
from sessiontree.core.tokens import as_json

CALL = ("functionCall", "function_call")
RESULT = ("functionResponse", "function_response")
DATA = ("inlineData", "inline_data")
FILE = ("fileData", "file_data")


class GeminiShape(ListShape):
    name = "gemini"
    key: ClassVar[str] = "parts"
    assistant: ClassVar[str] = "model"
    results_stand_alone = True
    codes = {  # noqa: RUF012
        "unanswered": "G1",
        "orphan": "G3",
        "order": "G4",
        "empty": "G7",
        "first": "G2",
        "image": "G8",
    }

    def block(self, native: Json) -> Block:
        if len(native) == 1 and "text" in native:  # most are no more
            return Block("text", native)
        body = inside(native, CALL) or inside(native, RESULT)
        if body is not None:
            kind: Kind = "call" if inside(native, CALL) is not None else "result"
            return Block(kind, native, string(body.get("id")), string(body.get("name")))
        if "text" in native:
            return Block("thinking" if native.get("thought") is True else "text", native)
        if self.picture(native) is not None:
            return Block("image", native)
        is_media = inside(native, DATA) is not None or inside(native, FILE) is not None
        return Block("media" if is_media else "other", native)

    def interrupted(self, call: Block, text: str) -> Block:
        given = {"id": call.id} if call.given else {}
        body = given | {"name": call.name, "response": {"error": text}}
        return Block("result", {"functionResponse": body}, call.id, call.name)

    def with_id(self, block: Block, new: str) -> Block:
        names = CALL if block.kind == "call" else RESULT
        key = next(name for name in names if name in block.native)
        body = {**block.native[key], "id": new}
        return Block(block.kind, {**block.native, key: body}, new, block.name)

    def inner(self, block: Block) -> list[Json] | None:
        body = inside(block.native, RESULT) if block.kind == "result" else None
        return dicts(body["parts"]) if body is not None and "parts" in body else None

    def with_inner(self, block: Block, inner: list[Json] | str) -> Block:
        key = next(name for name in RESULT if name in block.native)
        body = {name: value for name, value in block.native[key].items() if name != "parts"}
        if isinstance(inner, str):
            body["response"] = {"output": inner}
        else:
            body |= _with_parts(body, inner)
        return Block(block.kind, {**block.native, key: body}, block.id, block.name)

    def picture(self, native: Json) -> Picture | None:
        body = inside(native, DATA) or inside(native, FILE)
        if body is None:
            return None
        mime_type = string(body.get("mimeType")) or string(body.get("mime_type"))
        if not mime_type.startswith("image/"):
            return None
        url = string(body.get("fileUri")) or string(body.get("file_uri"))
        return Picture(string(body.get("data")), url, mime_type)

    def texts(self, block: Block) -> list[str]:
        native = block.native
        if block.kind in ("text", "thinking"):
            return [string(native.get("text"))]
        if block.kind == "call":
            body = inside(native, CALL) or {}
            return [block.name, as_json(body.get("args"))]
        if block.kind == "result":
            body = inside(native, RESULT) or {}
            return [block.name, as_json(body.get("response"))]
        return [] if block.kind in ("image", "media") else [as_json(native)]


def inside(native: Json, names: Sequence[str]) -> Json | None:
    """What stands under the first of ``names`` that is there."""
    for name in names:
        value: Json | None = native.get(name)
        if isinstance(value, dict):
            return value
    return None


def _with_parts(body: Json, inner: list[Json]) -> Json:
    """Parts of a response are media only: words about one that was left out join its text."""
    texts = [string(part.get("text")) for part in inner if "text" in part]
    shown = [part for part in inner if "text" not in part]
    parts: Json = {"parts": shown} if shown else {}
    if not texts:
        return parts
    said = obj(body.get("response"))
    notes = "\n".join([*([string(said["left_out"])] if "left_out" in said else []), *texts])
    return parts | {"response": {**said, "left_out": notes}}


# --- Checks and repairs of its own --------------------------------------------------------


def counts_differ(request: Request) -> Iterator[Fault]:
    """As many functionResponses in the next content as there were functionCalls (G1)."""
    entries = request.entries
    for at, entry in request.holding("call"):
        calls = len(entry.calls)
        results = len(entries[at + 1].results) if at + 1 < len(entries) else 0
        if calls != results:
            names = tuple(call.name for call in entry.calls)
            what = f"{calls} call(s) ({', '.join(names)}), {results} response(s)"
            yield Fault(at, what, ids=tuple(c.id for c in entry.calls if c.given))


def call_out_of_turn(request: Request) -> Iterator[Fault]:
    """A functionCall that follows neither a user nor a functionResponse content (G2)."""
    entries = request.entries
    for at, _ in request.holding("call"):
        if at == 0 or entries[at - 1].sender == "assistant":
            where = "the first content" if at == 0 else "behind a content of the model"
            yield Fault(at, f"a function call is {where}")


def response_out_of_turn(request: Request) -> Iterator[Fault]:
    """A functionResponse that does not follow a functionCall (G3)."""
    entries = request.entries
    for at, entry in request.holding("result"):
        if at == 0 or "call" not in entries[at - 1].kinds:
            ids = tuple(result.id for result in entry.results if result.given)
            yield Fault(at, "a function response follows no function call", ids=ids)


def beside_responses(request: Request) -> Iterator[Fault]:
    """Something else in a content of functionResponses (G4)."""
    for at, entry in request.holding("result"):
        if len(entry.kinds) > 1:
            yield Fault(at, "a content of function responses holds something else")


def empty_parts(request: Request) -> Iterator[Fault]:
    """Contents without parts, and empty text that carries no signature (G7)."""
    for fault in checks.empty_text(request):
        entry = request.entries[fault.at]
        if fault.part is None or not thinking.has_signature(entry.blocks[fault.part]):
            yield fault


def drop_empty_parts(request: Request) -> None:
    faults = {(fault.at, fault.part) for fault in empty_parts(request)}
    entries: list[Entry] = []
    for at, entry in enumerate(request.entries):
        blocks = [b for part, b in enumerate(entry.blocks) if (at, part) not in faults]
        if len(blocks) < len(entry.blocks) or not blocks:
            request.note("G7", "empty text was left out", entry)
            nothing = request.shape.text(repairs.NOTHING_SAID, entry.sender)
            entry = entry.having(blocks or [nothing])
        entries.append(entry)
    request.entries = entries


def join_before_calls(request: Request) -> None:
    """What the model said before a call, and the call, as one content; a user's word before
    a call that comes first (G2)."""

    def is_late_call(first: Entry, _: frozenset[str], entry: Entry) -> bool:
        return "call" in entry.kinds and first.sender == "assistant"

    joined: list[Entry] = []
    for run in pairs.runs(request.entries, is_late_call):
        joined.append(pairs.join(*run))
        for entry in run[1:]:
            request.note("G2", "a function call was joined with the content before it", entry)
    request.entries = joined
    if joined and "call" in joined[0].kinds:
        repairs.put_user_first(request)


SHAPE = GeminiShape()

RULES = (
    Rule(
        "G1",
        "Please ensure that the number of function response parts is equal to the number of "
        "function call parts of the function call turn.",
        "the next content has as many functionResponses as there are functionCalls",
        counts_differ,
        pairs.settle,
    ),
    Rule(
        "G3",
        "Please ensure that function response turn comes immediately after a function call turn.",
        "a functionResponse follows a functionCall",
        response_out_of_turn,
        pairs.settle,
    ),
    Rule(
        "G4",
        "Please ensure that the number of function response parts is equal to the number of "
        "function call parts of the function call turn.",
        "a content of functionResponses holds nothing else",
        beside_responses,
        pairs.settle,
    ),
    Rule(
        "G8",
        "Could not process image",
        "an image's data is whole: providers refuse the request for one that was cut off",
        limits.cut_off,
        limits.drop_cut_off,
    ),
    Rule(
        "G7",
        "Unable to submit request because it must have a text parameter; contents.parts must not "
        "be empty.",
        "no content is without parts, and no text is empty unless it carries a signature",
        empty_parts,
        drop_empty_parts,
    ),
    Rule(
        "G2",
        "Please ensure that function call turn comes immediately after a user turn or after a "
        "function response turn.",
        "a functionCall follows a user's content or a functionResponse, and is never first",
        call_out_of_turn,
        join_before_calls,
    ),
    Rule(
        "G6",
        "Function call is missing a thought_signature in functionCall parts. … function call "
        "`default_api:X`, position N.",
        "in the current turn each step's first functionCall carries its thoughtSignature (Gemini "
        "3 and newer)",
        thinking.unsigned_calls,
        thinking.sign_calls,
        is_eager=True,
    ),
    Rule(
        "G5",
        "Requests ending with a model turn are not supported.",
        "the last content is not the model's",
        checks.assistant_last,
    ),
)
