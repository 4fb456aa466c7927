"""What an image costs: its size from its first bytes, and each provider's formula.

No image is decoded. Sources of the formulas: the providers' documentation, and
measurements published where it is silent (see the docstrings).
"""

from __future__ import annotations

import base64
import binascii
import re
from math import ceil, sqrt
from typing import NamedTuple

from sessiontree.core.tokens import Family, is_old_claude

Size = tuple[int, int]
"""Width and height in pixels."""

UNKNOWN_SIZE: Size = (1568, 1568)
"""What an image is counted as when its size cannot be told: a URL, a cut-off file."""

HEAD = 65_536
"""Base64 characters that are looked at; a JPEG may have that much before its frame."""


class Picture(NamedTuple):
    """An image in a message: base64 data (with or without data URL), or an address."""

    data: str = ""
    url: str = ""
    mime_type: str = ""
    low_detail: bool = False

    @property
    def size(self) -> Size | None:
        """Its size in pixels; None where it cannot be told without fetching or decoding."""
        return size_of(self.data) if self.data else None

    @property
    def is_whole(self) -> bool:
        """False when its data is cut off."""
        return is_whole(self.data)


def size_of(data: str) -> Size | None:
    """The size of a base64 PNG, GIF, WebP or JPEG; None for anything else."""
    head = data[: HEAD - HEAD % 4]
    try:
        raw = base64.b64decode(head + "=" * (-len(head) % 4))
    except (binascii.Error, ValueError):
        return None
    if raw[:8] == b"\x89PNG\r\n\x1a\n" and len(raw) >= 24:
        return _big(raw, 16, 4), _big(raw, 20, 4)
    if raw[:4] == b"GIF8" and len(raw) >= 10:
        return _little(raw, 6, 2), _little(raw, 8, 2)
    if raw[:4] == b"RIFF" and raw[8:12] == b"WEBP" and len(raw) >= 30:
        return _webp(raw)
    return _jpeg(raw) if raw[:2] == b"\xff\xd8" else None


TAIL = 4096
"""Base64 characters at the end that are looked at for the end of a file."""


def is_whole(data: str) -> bool:
    """False for base64 that was cut off, or whose image ends before its file does."""
    data = data.rstrip("\r\n")
    if len(data) % 4 or not data:
        return False
    head = _decoded(data[:64])
    tail = _decoded(data[-TAIL:])
    if head is None or tail is None:
        return False
    if head[:8] == b"\x89PNG\r\n\x1a\n":
        return b"IEND" in tail
    if head[:2] == b"\xff\xd8":
        return b"\xff\xd9" in tail
    if head[:4] == b"GIF8":
        return b";" in tail[-16:]
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return len(data) * 3 // 4 + 2 >= _little(head, 4, 4) + 8
    return True


def _decoded(data: str) -> bytes | None:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None


def _big(raw: bytes, at: int, size: int) -> int:
    return int.from_bytes(raw[at : at + size], "big")


def _little(raw: bytes, at: int, size: int) -> int:
    return int.from_bytes(raw[at : at + size], "little")


def _webp(raw: bytes) -> Size | None:
    kind = raw[12:16]
    if kind == b"VP8X":
        return _little(raw, 24, 3) + 1, _little(raw, 27, 3) + 1
    if kind == b"VP8L":
        bits = _little(raw, 21, 4)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    return (_little(raw, 26, 2) & 0x3FFF, _little(raw, 28, 2) & 0x3FFF) if kind == b"VP8 " else None


_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def _jpeg(raw: bytes) -> Size | None:
    at = 2
    while at + 9 <= len(raw) and raw[at] == 0xFF:
        if raw[at + 1] in _FRAMES:
            return _big(raw, at + 7, 2), _big(raw, at + 5, 2)
        at += 2 + _big(raw, at + 2, 2)
    return None


# --- Tokens -----------------------------------------------------------------------------


def tokens_of(picture: Picture, family: Family, model: str | None = None) -> int:
    """What the provider counts for ``picture``; an unknown size counts as a full page."""
    width, height = picture.size or UNKNOWN_SIZE
    width, height = max(width, 1), max(height, 1)
    name = (model or "").lower()
    if family.name.startswith("claude"):
        return _claude(width, height, old=family.name == "claude-4.6" or is_old_claude(name))
    if family.name == "gemini":
        return _gemini(width, height, name)
    return _openai(width, height, name, picture.low_detail)


def _claude(width: int, height: int, *, old: bool) -> int:
    """Squares of 28 pixels, after the resize to the tier's cap: 1,568 pixels a side and
    1,568 tokens up to 4.6, then 2,576 and 4,784."""
    side, most = (1568, 1568) if old else (2576, 4784)
    width, height = _fit(width, height, side)
    tokens = ceil(width / 28) * ceil(height / 28)
    return min(tokens, most)


def _gemini(width: int, height: int, model: str) -> int:
    """1,120 at Gemini 3's default resolution; before, 258 for each tile."""
    version = re.search(r"gemini-(\d)", model)
    if version is None or int(version[1]) >= 3:
        return 1120
    if width <= 384 and height <= 384:
        return 258
    unit = max(256, min(768, int(min(width, height) / 1.5)))
    return 258 * ceil(width / unit) * ceil(height / unit)


_PATCH_FACTORS = (("nano", 2.46), ("o4-mini", 1.72), ("mini", 1.62))
_TILES = (
    (re.compile(r"gpt-4o-mini"), 2833, 5667),
    (re.compile(r"gpt-5(?![.\d])(?!.*(?:mini|nano))"), 70, 140),
    (re.compile(r"(?:^|/)o[13](?!.*mini)"), 75, 150),
    (re.compile(r"gpt-4(?!.*(?:mini|nano))|chatgpt-4o"), 85, 170),
)
"""By model: what an image costs, and each of its tiles. An image costs gpt-4o-mini as much
money as gpt-4o, whose tokens are 33 times as dear."""


def _openai(width: int, height: int, model: str, low_detail: bool) -> int:
    """Tiles of 512 for 4o, o1, o3, 4.1 and GPT-5; patches of 32, capped at 1,536, for the
    minis; for newer models patches times 1.2 (measured by oh-my-pi, others say 1)."""
    for name, base, tile in _TILES:
        if name.search(model):
            return _tiles(width, height, base, tile, low_detail)
    factor = next((factor for word, factor in _PATCH_FACTORS if word in model), None)
    if factor is not None:
        return ceil(_patches(width, height, 1536) * factor)
    return 85 if low_detail else ceil(_patches(*_fit(width, height, 2048), 4096) * 1.2)


def _tiles(width: int, height: int, base: int, tile: int, low_detail: bool) -> int:
    if low_detail:
        return base
    width, height = _fit(width, height, 2048)
    shrink = min(1.0, 768 / min(width, height))
    return base + tile * ceil(width * shrink / 512) * ceil(height * shrink / 512)


def _patches(width: int, height: int, most: int) -> int:
    count = ceil(width / 32) * ceil(height / 32)
    if count <= most:
        return count
    shrink = sqrt(most * 32 * 32 / (width * height))
    return min(most, ceil(width * shrink / 32) * ceil(height * shrink / 32))


def _fit(width: int, height: int, side: int) -> Size:
    """The size after shrinking to ``side`` pixels at most."""
    shrink = min(1.0, side / max(width, height))
    return max(1, round(width * shrink)), max(1, round(height * shrink))
