"""What a cached answer is kept under, how it is written down, and which requests are better
not cached.

The key is a hash of the whole request as it is built for the provider: model, system prompt,
tools, messages, parameters. Nothing is left out and nothing is alike "enough": caches that
match by meaning, or by the last message, have given one conversation's answer to another.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal, NamedTuple, cast

from sessiontree.errors import FormatError

Kind = Literal["json", "text", "bytes"]

_SCHEME = "sessiontree-cache-1"
"""Part of every key: a new way to make keys never meets entries of an old one."""


class Packed(NamedTuple):
    """An answer as bytes."""

    kind: Kind
    body: bytes


class Entry(NamedTuple):
    """An answer as it is kept. ``usage`` is JSON text as the provider reported it; ``sent``
    and ``output`` are its tokens, ``nanodollars`` what it cost (None: unknown); ``stored_at``
    is in microseconds since 1970, ``hits`` how often it was used."""

    packed: Packed
    model: str | None = None
    usage: str | None = None
    sent: int = 0
    output: int = 0
    nanodollars: int | None = None
    stored_at: int = 0
    hits: int = 0

    @property
    def size(self) -> int:
        """Bytes that it counts for."""
        return len(self.packed.body) + len(self.usage or "")


class Totals(NamedTuple):
    """What a cache holds, and what it has saved since it was made. ``unpriced`` counts the
    hits whose price is not known."""

    hits: int = 0
    misses: int = 0
    entries: int = 0
    bytes: int = 0
    sent: int = 0
    output: int = 0
    nanodollars: int = 0
    unpriced: int = 0


def key_of(request: Mapping[str, Any], scope: str = "") -> str:
    """The key of a request: 64 hexadecimal digits, the same in every process, whatever the
    order of keys. FormatError for what is no JSON, and so was never sent."""
    text = f"{_SCHEME}\0{json.dumps(scope)}\0{_written(request, 'request', sort=True)}"
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def pack(answer: Any) -> Packed:
    """An answer as bytes: bytes and text as they are, all else as JSON. Objects of an SDK
    (which have ``model_dump``) are dumped. FormatError for what has no such form."""
    if isinstance(answer, bytes | bytearray | memoryview):
        return Packed("bytes", bytes(cast("bytes", answer)))
    if isinstance(answer, str):
        return Packed("text", answer.encode("utf-8", "surrogatepass"))
    return Packed("json", _written(answer, "answer", sort=False).encode("ascii"))


def unpack(packed: Packed) -> Any:
    """The answer, made anew: nobody else holds it. FormatError when it is damaged."""
    try:
        if packed.kind == "json":
            return json.loads(packed.body)
        return (
            packed.body.decode("utf-8", "surrogatepass") if packed.kind == "text" else packed.body
        )
    except (ValueError, RecursionError) as error:
        raise FormatError(f"a cached answer is damaged: {error}") from error


def _written(value: Any, what: str, *, sort: bool) -> str:
    """JSON text in ASCII: one text for one value."""
    try:
        return json.dumps(
            value, sort_keys=sort, separators=(",", ":"), allow_nan=False, default=_plain
        )
    except (TypeError, ValueError, RecursionError) as error:
        raise FormatError(
            f"the {what} cannot be cached, since JSON cannot hold it: {error}",
            hint="give what is sent to the provider, as JSON",
        ) from error


def _plain(value: Any) -> Any:
    """What is no JSON by itself. TypeError, as json wants it."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[Any, Any]", value))
    dump = getattr(value, "model_dump", None)
    if dump is not None and not isinstance(value, type):
        return dump(mode="json")
    raise TypeError(f"it has a {type(value).__name__}")


# --- Which requests are better not cached -------------------------------------------------

_NESTED = ("generationConfig", "generation_config", "config", "inferenceConfig", "parameters")
"""Where providers keep parameters that others have at the top."""


def refusal(request: Mapping[str, Any], safe_tools: Collection[str] = ()) -> str | None:
    """Why a request is not cached unless asked; None when it is.

    A temperature above 0 asks for another answer each time. A tool may have side effects,
    which an answer from the cache would ask for again; it has none when its name is among
    ``safe_tools``, or when it says so (``annotations.readOnlyHint``, as MCP has it).
    """
    temperature = next(filter(_is_above_0, _parameter(request, "temperature")), None)
    if temperature is not None:
        return f"its temperature is {temperature}"
    unsafe = sorted({name for name in _tools(request) if name not in safe_tools})
    if unsafe:
        return f"these tools may have side effects: {', '.join(unsafe)}"
    return None


def _is_above_0(value: object) -> bool:
    return isinstance(value, int | float) and value > 0


def _parameter(request: Mapping[str, Any], name: str) -> Iterator[Any]:
    yield request.get(name)
    for place in _NESTED:
        inner = _object(request.get(place))
        if inner is not None:
            yield inner.get(name)


def _tools(request: Mapping[str, Any]) -> Iterator[str]:
    """The names of the tools that may have side effects, for all a reader can tell."""
    bedrock = _object(request.get("toolConfig"))
    given = [request.get("functions"), bedrock.get("tools") if bedrock else None]
    for tools in (*_parameter(request, "tools"), *given):
        for tool in cast("list[Any]", tools) if isinstance(tools, list | tuple) else ():
            yield from _names(tool)


def _names(tool: Any) -> Iterator[str]:
    body = _object(tool)
    if body is None:
        yield getattr(tool, "__name__", type(tool).__name__)
        return
    declared = body.get("functionDeclarations", body.get("function_declarations"))
    if isinstance(declared, list):
        for each in cast("list[Any]", declared):
            yield from _names(each)
        return
    inner = _object(body.get("function")) or _object(body.get("toolSpec")) or body
    if not _is_read_only(body) and not _is_read_only(inner):
        yield str(inner.get("name") or body.get("type") or next(iter(body), "?"))


def _is_read_only(tool: Mapping[str, Any]) -> bool:
    notes = _object(tool.get("annotations"))
    return notes is not None and notes.get("readOnlyHint") is True


def _object(value: Any) -> Mapping[str, Any] | None:
    if isinstance(value, Mapping):
        return cast("Mapping[str, Any]", value)
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if dump is not None and not isinstance(value, type) else None
