"""Messages in, whatever their format: the registry of codecs, and ``read``.

A codec is a module of this package that bears the format's name and has one constant,
``CODEC`` (see ``core.message.Codec``). It is imported when it is first needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, cast

import orjson

from sessiontree.core import jsontext
from sessiontree.core.message import (
    Codec,
    Decoded,
    NewMessage,
    calls_of,
    results_of,
)
from sessiontree.errors import FormatError
from sessiontree.formats import everyday
from sessiontree.formats.glance import (
    estimated_tokens,
    first_line,
    preview_of,
    tokens_of_text,
)
from sessiontree.formats.shapes import is_object

NAMES = (
    "openai_chat",
    "anthropic",
    "openai_responses",
    "gemini",
    "bedrock",
    "otel",
    "mark",
    "claude_code",
    "pi",
    "codex",
    "gemini_cli",
    "cline",
    "amp",
    "goose",
    "opencode",
    "chatgpt",
    "claude_ai",
    "open_webui",
    "librechat",
    "oasst",
    "inspect_ai",
    "sharegpt",
    "sillytavern",
)
FALLBACK = "openai_chat"
"""What plain text is taken for where nothing says otherwise."""

PLAIN_ROLES = frozenset({"system", "user", "assistant"})
PLAIN_FORMATS = frozenset({"openai_chat", "anthropic", "openai_responses"})
"""Formats in which ``{"role": …, "content": str}`` is a whole message, and means the same."""


def names() -> tuple[str, ...]:
    """The formats that there is a codec for."""
    return NAMES


def codec(name: str) -> Codec:
    """The codec of a format; FormatError names those that exist."""
    if name not in NAMES:
        raise FormatError(
            f"there is no message format {name!r}", hint=f"the formats: {', '.join(NAMES)}"
        )
    return _load(name)


@cache
def _load(name: str) -> Codec:
    return cast(Codec, import_module(f"{__name__}.{name}").CODEC)


def recognise(native: Mapping[str, Any]) -> str | None:
    """The format whose mark ``native`` bears; None where it could be of several."""
    if _is_plain(native):
        return None
    return next((name for name in NAMES if _load(name).recognises(native)), None)


def read(
    message: object,
    *,
    format: str | None = None,
    default: str | None = None,
    key: str | None = None,
    usage: Mapping[str, Any] | None = None,
    model: str | None = None,
    meta: Mapping[str, Any] | None = None,
    created_at: int | None = None,
) -> NewMessage:
    """``message`` made ready for the store.

    It is a mapping, JSON text (str or UTF-8 bytes, kept to the byte), or an object with
    ``model_dump`` as the providers' libraries return. Its format is ``format``, else the
    one whose marks it bears, else ``default``, else ``openai_chat``. ``usage`` and
    ``model`` are taken from the message where it tells them and the caller does not.

    FormatError: it cannot be stored as JSON, or is not a message of its format.
    """
    given: Any = message
    content, native = _written(given) if type(given) is dict else _as_text(message)  # pyright: ignore
    name = format or default or FALLBACK
    if name in PLAIN_FORMATS and _is_plain(native):
        role, text = native["role"], native["content"]
        line, tokens = first_line(text), tokens_of_text(text)
        return NewMessage(
            content, name, role, (), (), line, tokens, usage, model, key, meta, created_at
        )
    seen = everyday.see(native) if format is None or format == everyday.NAME else None
    if seen is not None:
        return NewMessage(content, everyday.NAME, *seen, usage, model, key, meta, created_at)
    name, (role, parts) = _decode(native, format, default)
    calls = calls_of(parts)
    said = _inner(native)
    return NewMessage(
        content,
        name,
        role,
        calls,
        results_of(parts),
        preview=preview_of(parts, calls),
        tokens=estimated_tokens(parts),
        usage=usage if usage is not None else _usage(said),
        model=model if model is not None else _model(said),
        key=key,
        meta=meta,
        created_at=created_at,
    )


def reported(native: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """The usage that a message tells, as JSON text, and its model."""
    if _TELLING.isdisjoint(native):
        return None, None
    said = _inner(native)
    usage = _usage(said) if "usage" in said else None
    return _usage_text(usage) if usage else None, _model(said) if "model" in said else None


_TELLING = frozenset({"message", "usage", "model"})
"""Keys without one of which a row tells neither."""


def _usage_text(usage: Mapping[str, Any]) -> str | None:
    """As the store would write it: None for what JSON cannot hold (1e400), for which the fast
    encoder writes null."""
    try:
        text = orjson.dumps(usage).decode()
        return jsontext.dump(usage) if "null" in text else text
    except TypeError:
        return jsontext.dump(usage)
    except FormatError:
        return None


def _is_plain(native: Mapping[str, Any]) -> bool:
    return (
        len(native) == 2
        and type(native.get("content")) is str
        and isinstance(role := native.get("role"), str)
        and role in PLAIN_ROLES
    )


_TEXTS = (str, bytes, bytearray)


def _as_text(message: object) -> tuple[str, Mapping[str, Any]]:
    """The JSON text of a message, and its value."""
    if isinstance(message, _TEXTS):
        return jsontext.check(message)
    value: object = _dumped(message)
    if not is_object(value):
        raise FormatError(
            f"a message is a mapping or JSON text, not a {type(message).__name__}",
            hint='give {"role": "user", "content": "…"}',
        )
    return _written(value)


def _written(native: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    try:
        return jsontext.dump(native), native
    except FormatError:
        plain = _with_models_dumped(native)
        if plain == native:
            raise
        return jsontext.dump(plain), plain


def _with_models_dumped(native: Mapping[str, Any]) -> dict[str, Any]:
    """What harnesses write: ``{"role": "assistant", "content": response.content}``."""
    return {
        key: [_dumped(item) for item in cast("Sequence[object]", value)]
        if isinstance(value, list | tuple)
        else _dumped(value)
        for key, value in native.items()
    }


def _dumped(value: object) -> object:
    """``value``, or what it says of itself when it is a model of pydantic's kind."""
    if isinstance(value, dict):
        return cast("object", value)
    dump = getattr(value, "model_dump", None)
    if not callable(dump):
        return value
    try:
        return dump(mode="json", exclude_unset=True)
    except (TypeError, ValueError) as error:
        raise FormatError(f"a {type(value).__name__} cannot be written down: {error}") from error


def _decode(
    native: Mapping[str, Any], format: str | None, default: str | None
) -> tuple[str, Decoded]:
    """The format that ``native`` is in, and what its codec sees in it."""
    name = format or _recognise_from(native, default)
    if name is not None:
        return name, codec(name).decode(native)
    name = default or FALLBACK
    try:
        return name, codec(name).decode(native)
    except FormatError as error:
        if name == FALLBACK:
            raise
        try:  # a plain message in a conversation whose own format writes text otherwise
            return FALLBACK, codec(FALLBACK).decode(native)
        except FormatError:
            raise error from None


def _recognise_from(native: Mapping[str, Any], default: str | None) -> str | None:
    if default is not None and codec(default).recognises(native):
        return default
    return recognise(native)


def _inner(native: Mapping[str, Any]) -> Mapping[str, Any]:
    """The message inside a transcript's envelope, or the message itself."""
    inner = native.get("message")
    return inner if is_object(inner) else native


def _usage(said: Mapping[str, Any]) -> Mapping[str, Any] | None:
    usage = said.get("usage")
    return usage if is_object(usage) else None


def _model(said: Mapping[str, Any]) -> str | None:
    model = said.get("model")
    return model if isinstance(model, str) and model.isprintable() else None
