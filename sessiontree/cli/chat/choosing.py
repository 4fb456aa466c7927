"""Which endpoint is meant: whose protocol, which model, where, and with which key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from sessiontree.cli.chat.endpoint import Endpoint
from sessiontree.errors import SessionTreeError

KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
BASES = {"openai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL"}
TARGETS = {"openai_chat": "openai", "anthropic": "anthropic"}
"""Whose protocol messages of these formats were said in."""


class Wanted(NamedTuple):
    """What was asked for; ``last_model`` and ``last_format`` are those of the newest answer in
    the conversation. ``goes_on``: whether each request will begin as the one before."""

    provider: str | None = None
    model: str | None = None
    base_url: str | None = None
    max_tokens: int | None = None
    last_model: str | None = None
    last_format: str | None = None
    goes_on: bool = True


def endpoint(wanted: Wanted, environment: Mapping[str, str]) -> Endpoint:
    """The endpoint. SessionTreeError: no model, no key, no SDK, or a provider that cannot be
    told; each names the option or the variable."""
    provider = provider_of(wanted, environment)
    model = wanted.model or wanted.last_model
    if model is None:
        raise SessionTreeError("no model is named", hint="give --model, or set SESSIONTREE_MODEL")
    key = environment.get(KEYS[provider], "").strip()
    if not key:
        raise SessionTreeError(
            f"there is no key for {provider}",
            hint=f"set {KEYS[provider]}; a server that asks for none takes any",
        )
    _require_url(wanted.base_url)
    url, most = wanted.base_url, wanted.max_tokens
    if provider == "anthropic":
        from sessiontree.cli.chat.through_anthropic import ThroughAnthropic

        return ThroughAnthropic(model, key, url, most, wanted.goes_on)
    from sessiontree.cli.chat.through_openai import ThroughOpenAI

    return ThroughOpenAI(model, key, url, most)


def _require_url(url: str | None) -> None:
    if url is not None and urlsplit(url).scheme not in ("http", "https"):
        raise SessionTreeError(f"{url!r} is no address", hint="--base-url http://… or https://…")


def provider_of(wanted: Wanted, environment: Mapping[str, str]) -> str:
    """Whose protocol is spoken, by the first of these that tells: the option, the host of the
    URL, the model's name, the conversation, a URL at all, the environment.

    A model ``anthropic/claude-…`` is one that a router of many makers serves, as OpenAI does.
    """
    if wanted.provider is not None:
        return wanted.provider
    host = urlsplit(wanted.base_url or "").hostname or ""
    for name in KEYS:
        if host.endswith(f"{name}.com"):
            return name
    if wanted.model is not None:
        if wanted.model.startswith("claude"):
            return "anthropic"
        if wanted.model.startswith(("gpt", "chatgpt", "o1", "o3", "o4")) or "/" in wanted.model:
            return "openai"
    elif wanted.last_format in TARGETS:
        return TARGETS[wanted.last_format]
    return "openai" if wanted.base_url else _by_environment(environment)


def _by_environment(environment: Mapping[str, str]) -> str:
    for variables in (BASES, KEYS):
        told = [name for name, variable in variables.items() if environment.get(variable)]
        if len(told) == 1:
            return told[0]
    if told:
        raise SessionTreeError(
            "whose protocol to speak cannot be told: keys of both are set", hint="give --provider"
        )
    raise SessionTreeError(
        "there is no key", hint=f"set {' or '.join(KEYS.values())}; --provider says whose"
    )
