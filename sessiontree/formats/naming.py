"""Names for what has none in its source: the same each time, by what it says."""

from __future__ import annotations

import hashlib

from sessiontree.core import jsontext
from sessiontree.errors import FormatError


def digest(raw: bytes) -> str:
    """A name for a row by its bytes."""
    return "sha256:" + hashlib.sha256(raw).hexdigest()[:32]


def key_of_row(raw: bytes, time: int | None) -> str:
    """A key for a row by its bytes, before which stands the time that it tells: so the keys of a
    file come in about their order, and to save them changes few pages of their index."""
    name = digest(raw)
    return name if time is None else f"{time}:{name}"


def fingerprint(value: dict[str, object]) -> str:
    """Twelve characters by which a node is told from another."""
    try:
        text = jsontext.dump(value)
    except FormatError:  # nothing that could be stored
        return "unreadable"
    return hashlib.sha256(text.encode()).hexdigest()[:12]
