"""The exact words of a text: ids, paths, addresses and numbers.

They are told as text beside the pages, since a model that misreads a glyph does not know.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["paths", "ids", "numbers"]
KINDS: tuple[Kind, ...] = ("paths", "ids", "numbers")

LONGEST = 120
"""Characters of a word that is told; longer ones are data."""
_SHARES: dict[Kind, float] = {"ids": 0.5, "paths": 0.7, "numbers": 1.0}
"""What each kind may take of the room that those before it have left."""

_WORD = re.compile(r"(?<!<)[^\s\"'`<>(){}\[\];|│→¶█=“”„\u2018\u2019«»]{3,}+")
"""``</div>`` gives no ``/div``."""
_BEFORE, _BEHIND = ",:!?*_", ",.:!?*_~…-"
_NUMBER = re.compile(r"[-+]?[$€£¥]?\d[\d.,:/%+-]*")
_DIGITS = re.compile(r"\d")
_LETTER = re.compile(r"[^\W\d_]")
_ADDRESS = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+")
_WINDOWS = re.compile(r"[A-Za-z]:\\|\\\\\w")
_FILE = re.compile(
    r"[\w.-]*\w\.(?:c|cc|cfg|conf|cpp|cs|css|csv|db|docx?|env|go|h|html?|ini|ipynb|java|jpe?g"
    r"|jsonl?|jsx?|kt|lock|log|md|mjs|parquet|pdf|php|png|py|rb|rs|sh|sql|sqlite|svg|swift|toml"
    r"|tsx?|txt|xlsx?|xml|ya?ml|zip)(?::[\d:-]+)?"
)


@dataclass(slots=True)
class _Seen:
    kind: Kind
    first: int
    last: int
    count: int = 1


def sheet(text: str, room: int) -> str:
    """One line for each kind, in the order in which the words come, ``room`` characters at
    most. Without room for all: what is repeated goes first, then what comes last."""
    found = _collect(text)
    lines: dict[Kind, str] = {}
    for kind, share in _SHARES.items():
        words = _choose([item for item in found.items() if item[1].kind == kind], room, share)
        if words:
            lines[kind] = f"{kind}: {' '.join(words)}"
            room -= len(lines[kind]) + 1
    return "\n".join(lines[kind] for kind in KINDS if kind in lines)


def kind_of(word: str) -> Kind | None:
    """What kind of exact word this is; None for a word that a reader can guess."""
    if not 3 <= len(word) <= LONGEST:
        return None
    digits = len(_DIGITS.findall(word))
    if digits and _NUMBER.fullmatch(word):
        return "numbers" if digits >= 3 else None
    if _is_path(word, digits):
        return "paths"
    if _ADDRESS.fullmatch(word):
        return "ids"
    if "\\" in word or not _LETTER.search(word):
        return None
    return "ids" if digits >= 3 or (digits and len(word) > 6) else None


def _is_path(word: str, digits: int) -> bool:
    """``and/or`` is none."""
    slashes = word.count("/")
    if "\\" in word:
        return _WINDOWS.match(word) is not None
    if not slashes:
        return _FILE.fullmatch(word) is not None
    return _LETTER.search(word) is not None and (
        slashes > 1 or digits > 0 or "." in word or word[0] in "/~"
    )


def _collect(text: str) -> dict[str, _Seen]:
    found: dict[str, _Seen | None] = {}
    for at, word in enumerate(_words(text)):
        if word not in found:
            kind = kind_of(word)
            found[word] = _Seen(kind, at, at) if kind else None
        elif (seen := found[word]) is not None:
            seen.last = at
            seen.count += 1
    return {word: seen for word, seen in found.items() if seen is not None}


def _words(text: str) -> Iterator[str]:
    """The words that are not letters alone. A comma parts them, but for one in a number."""
    for word in _WORD.findall(text):
        if word.isalpha():
            continue
        word = word.lstrip(_BEFORE).rstrip(_BEHIND)
        if "," in word and not _NUMBER.fullmatch(word):
            yield from (part.lstrip(_BEFORE).rstrip(_BEHIND) for part in word.split(","))
        else:
            yield word


def _choose(items: list[tuple[str, _Seen]], room: int, share: float) -> list[str]:
    """The words that fit, in the order in which they come."""
    chosen: list[tuple[int, str]] = []
    left = int(room * share) - len("numbers: ")
    for word, seen in sorted(items, key=lambda item: (-min(item[1].count, 3), -item[1].last)):
        if len(word) < left:
            chosen.append((seen.first, word))
            left -= len(word) + 1
    return [word for _, word in sorted(chosen)]
