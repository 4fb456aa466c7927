"""Keys, tokens and passwords, taken out of what is written for others.

A table of patterns, and no library: the kept ones (detect-secrets, say) scan lines of source
code for a person to look at. They tell that a line has a secret, not where it begins and
ends; of a private key they report the first line; and their measure of randomness takes
every id of a call, every commit and every signature for a secret.

The same secret has the same name wherever it stands (``[redacted: password 2]``), so that a
reader sees what belongs together. What is not redacted: ids, names of tools, roles, and
secrets in no known shape that no name like ``password`` stands before.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

from sessiontree.core.message import Message, calls_of
from sessiontree.formats import codec
from sessiontree.formats.glance import preview_of
from sessiontree.formats.writing.lines import as_json


class Pattern(NamedTuple):
    """A kind of secret, and how it looks. Group 1, where there is one, is the secret itself.

    No pattern begins with a look behind, or it would cost ten times as much.
    """

    kind: str
    looks: re.Pattern[str]


_WORD = r"[A-Za-z0-9_-]"

SHAPES = tuple(
    Pattern(kind, re.compile(looks))
    for kind, looks in (
        # PEM, RFC 7468, and OpenPGP armour; one without an end goes to the end
        (
            "private key",
            r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
            r"[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
        ),
        ("anthropic key", rf"sk-ant-{_WORD}{{16,}}"),
        ("api key", rf"sk-(?:proj-|svcacct-|admin-|or-v1-)?(?=[A-Za-z_-]*\d){_WORD}{{20,}}"),
        ("api key", r"(?:gsk_|xai-|pplx-|tvly-|r8_|lin_api_|ntn_|dop_v1_)[A-Za-z0-9]{20,}"),
        ("google key", rf"AIza{_WORD}{{35}}"),
        ("google token", rf"ya29\.{_WORD}{{20,}}"),
        ("aws key", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
        ("github token", r"gh[pousr]_[A-Za-z0-9]{30,}"),
        ("github token", r"github_pat_\w{22,}"),
        ("gitlab token", rf"gl(?:pat|ptt|dt|rt|cbt)-{_WORD}{{20,}}"),
        ("slack token", r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
        ("slack token", r"xapp-\d-[A-Za-z0-9-]{10,}"),
        ("slack webhook", r"hooks\.slack\.com/services/([A-Za-z0-9/]{20,})"),
        ("stripe key", r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
        ("webhook secret", r"whsec_[A-Za-z0-9+/=]{16,}"),
        ("hugging face token", r"hf_[A-Za-z0-9]{30,}"),
        ("npm token", r"npm_[A-Za-z0-9]{36}"),
        ("pypi token", rf"pypi-AgE{_WORD}{{20,}}"),
        ("sendgrid key", rf"SG\.{_WORD}{{16,}}\.{_WORD}{{16,}}"),
        ("databricks token", r"dapi[0-9a-f]{32}"),
        ("telegram token", rf"bot(\d{{8,10}}:{_WORD}{{35}})"),
        ("json web token", rf"eyJ{_WORD}{{10,}}\.eyJ{_WORD}{{10,}}\.{_WORD}{{10,}}"),
        # RFC 3986, section 3.2.1: scheme://user:password@host
        ("password", r"://[^\s/:@\"'<>`]*:([^\s/@\"'<>`]{3,})@"),
        # RFC 9110, section 11.4, and RFC 6265: what proves who asks
        ("credentials", r"(?i:Bearer|Basic)\s+((?=[^\s\d]*\d)[A-Za-z0-9._~+/=-]{16,})"),
        (
            "cookie",
            r"(?i:(?:set-)?cookie\\?[\"']?\s*:\s*\\?[\"']?)([^\s=;\"'\\]+=[^\r\n\"'\\]{8,})",
        ),
    )
)

_PASSWORD = r"password|passwd|passphrase|pwd"
_KEY = (
    r"(?:api|access|secret|private|auth|client|account|encryption|signing)[_\-. ]?key"
    r"|(?:access|auth|bearer|refresh|session|id|client)?[_\-]?(?:token|secret)"
    r"|credentials?"
)
NAMED = re.compile(
    rf"(?i:(?P<password>{_PASSWORD})|(?P<key>{_KEY}))(?!s?[A-Za-z])"
    r"\\?[\"'`]?\s{0,4}(?:[:=]|=>)\s{0,4}"
    r"(?:\\?(?P<quote>[\"'`])(?P<quoted>[^\"'`\r\n]{1,4096}?)\\?(?P=quote)"
    r"|(?P<bare>[^\s\"'`,;&<>(){}\[\]\\]{4,4096}))"
)
"""A value behind a name that says what it is: ``API_KEY=…``, ``"password": "…"``."""

NAME = re.compile(rf"(?i)\w*(?:{_PASSWORD}|{_KEY})\w*")
_PASSWORD_NAME = re.compile(rf"(?i).*(?:{_PASSWORD})")
_KEY_NAME = re.compile(rf"(?i)(?:.*[_\-.])?(?:{_KEY})|.*(?:ApiKey|Token|Secret)")
_PLACEHOLDER = re.compile(
    r"(?i)[x*.•_\-]+|<.*>|\$.*|%.*%|\{.*\}|\[redacted.*|(?:your|my|the|some|example)[_\- ].*"
    r"|none|null|true|false|undefined|string|str|text|required|optional|changeme\W*"
    r"|os\.environ.*|process\.env.*|env[.:].*"
)


class Redactor:
    """Replaces secrets, and counts them. One for each export."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._kinds: Counter[str] = Counter()

    @property
    def count(self) -> int:
        """How many different secrets were replaced, each in all its places."""
        return len(self._names)

    @property
    def kinds(self) -> Mapping[str, int]:
        """How many of each kind."""
        return self._kinds

    def text(self, text: str) -> str:
        """``text`` without secrets."""
        for kind, looks in SHAPES:
            text = looks.sub(self._replacing(kind, text), text)
        return NAMED.sub(self._replace_named, text)

    def message(self, message: Message) -> Message:
        """The message without secrets: its content, preview and notes; itself when it has
        none. Its ids and keys stay."""
        row = message.row
        content, meta, usage = (self._json(part) for part in (row.content, row.meta, row.usage))
        if (content, meta, usage) == (row.content, row.meta, row.usage):
            return message
        redacted = Message(row._replace(content=content, meta=meta, usage=usage), codec)
        parts = redacted.parts
        preview = preview_of(parts, calls_of(parts))
        return Message(redacted.row._replace(preview=preview), codec)

    def _json(self, text: Any) -> Any:
        """JSON text without secrets; the same text when it has none."""
        if text is None:
            return None
        value = cast("dict[str, Any]", json.loads(text))
        redacted = self.value(value)
        return text if redacted == value else as_json(redacted)

    def value(self, value: Any) -> Any:
        """A copy of what came from JSON, without secrets."""
        root: list[Any] = [value]
        waiting: list[Any] = [root]
        while waiting:
            here = waiting.pop()
            for place, inner in _places(here):
                here[place] = self._at(place, inner)
                if isinstance(inner, dict | list):
                    waiting.append(here[place])
        return root[0]

    def _at(self, place: object, value: object) -> object:
        """What stands at a place: of a text what is no secret, of the rest a copy."""
        if isinstance(value, dict | list):
            return cast("dict[str, Any] | list[Any]", value).copy()
        if not isinstance(value, str):
            return value
        kind = _kind_of_name(place, value)
        return self.text(value) if kind is None else self._name(kind, value)

    def _replacing(self, kind: str, text: str) -> Callable[[re.Match[str]], str]:
        def replace(found: re.Match[str]) -> str:
            before = text[found.start() - 1] if found.start() else ""
            if before.isalnum() and found[0][0].isalnum():
                return found[0]
            return self._in_place(kind, found, 1 if found.re.groups else 0)

        return replace

    def _replace_named(self, found: re.Match[str]) -> str:
        kind = "password" if found["password"] else "key or token"
        group = "quoted" if found["quoted"] is not None else "bare"
        if not _is_secret(kind, found[group]) or (group == "bare" and _is_word(found)):
            return found[0]
        return self._in_place(kind, found, group)

    def _in_place(self, kind: str, found: re.Match[str], group: int | str) -> str:
        start, end = (place - found.start() for place in found.span(group))
        whole = found[0]
        return whole[:start] + self._name(kind, whole[start:end]) + whole[end:]

    def _name(self, kind: str, secret: str) -> str:
        if secret not in self._names:
            self._kinds[kind] += 1
            self._names[secret] = f"[redacted: {kind} {self._kinds[kind]}]"
        return self._names[secret]


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Keys or indexes of an object or a list, each with what stands there."""
    if isinstance(value, dict):
        return list(cast("dict[str, Any]", value).items())
    return list(enumerate(cast("list[Any]", value)))


def _is_word(found: re.Match[str]) -> bool:
    """True when what stands unquoted behind the name is a word of prose or of code."""
    value = found["bare"]
    if any(character.isdigit() or character in "!@#$%^&*+~?" for character in value):
        return False
    is_of_code = "." in value or NAME.fullmatch(value) is not None
    return is_of_code or not found[0].endswith(f"={value}")


def _kind_of_name(place: object, value: str) -> str | None:
    """What a whole value is by the name it stands under, if that says it is a secret."""
    if not isinstance(place, str):
        return None
    if _PASSWORD_NAME.fullmatch(place) and _is_secret("password", value):
        return "password"
    if _KEY_NAME.fullmatch(place) and _is_secret("key or token", value):
        return "key or token"
    return None


def _is_secret(kind: str, value: str) -> bool:
    """True for what may be one: no placeholder, no word of a sentence, no number."""
    if _PLACEHOLDER.fullmatch(value):
        return False
    if kind == "password":
        return len(value) >= 4 and not value.isspace()
    has_digit = any(character.isdigit() for character in value)
    is_word = any(character.isspace() for character in value) or value.isdigit()
    return len(value) >= 8 and has_digit and not is_word
