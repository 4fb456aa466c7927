"""Readers: how large the print of a page must be for a model, and what a page costs it.

Distances of characters are those that models were measured to read best (oh-my-pi's bench
of tool results: for Claude, more room between the characters of a line; for OpenAI and
Gemini, more between lines). A page is as large as the provider takes without making it
smaller: what is made smaller cannot be read.
"""

from __future__ import annotations

import base64
import re

from sessiontree.core import images, tokens
from sessiontree.core.reclaim import png
from sessiontree.core.reclaim.pages import Geometry

WIDE, TALL = (11, 16), (8, 22)
"""The distances of characters and of lines, in pixels."""

CLAUDE = Geometry(*WIDE, 1568, 784)
"""Up to 4.6 at most 1,568 pixels a side and 1,568 squares of 28 pixels, and so for a Claude
that does not tell its version."""
CLAUDE_SINCE_4_7 = Geometry(*WIDE, 1932, 1932)
"""At most 2,576 pixels a side and 4,784 squares; 2,000 pixels a side when there are more
than twenty images."""
GEMINI = Geometry(*TALL, 2048, 2048)
OPENAI = Geometry(*TALL, 1568, 1568)
"""2,401 patches of 32 pixels, below the 2,500 from which on an image is made smaller."""
OPENAI_IN_TILES = Geometry(*TALL, 768, 2048)
"""4o, 4.1, o1, o3 and GPT-5 shrink the shorter side to 768 pixels."""
OPENAI_SMALL = Geometry(*TALL, 1248, 1248)
"""The minis and nanos shrink to 1,536 patches of 32 pixels."""

_TILES = re.compile(r"gpt-4|^o[13]|gpt-5(?![.\d])")
_SMALL = re.compile(r"(?:4\.1|gpt-5(?![.\d])|^o4)(?:-\d+)*-(?:mini|nano)")

_BLIND = re.compile(
    r"gpt-?3|gpt-oss|^gpt-4(?:-\d{4}|-32k.*)?$|o1-mini|o1-preview|o3-mini|embedding|instruct"
    r"|claude-(?:v?[12]\b|instant)|gemini-(?:1\.0-)?pro$|gemma-?[12]\b"
)
"""Models that take no images, of makers whose others do."""
_DEAR = re.compile(r"gpt-4o-mini")
"""Counts 33 times the tokens of other models for an image."""

IMAGES = {"claude": 90, "claude-4.6": 90, "openai": 200, "gemini": 200}
"""Pages in one request, by family: the provider's limit, less room for other images."""
IMAGES_OF_OTHERS = 5


def geometry_of(model: str | None, target: str) -> Geometry:
    """The pages that a model reads best."""
    family, name = tokens.family_of(model, target).name, (model or "").lower()
    if family.startswith("claude"):
        version = tokens.claude_version(name)
        return CLAUDE_SINCE_4_7 if version is not None and version >= (4, 7) else CLAUDE
    if family == "gemini":
        return GEMINI
    if family == "openai" and _SMALL.search(name):
        return OPENAI_SMALL
    return OPENAI_IN_TILES if family == "openai" and _TILES.search(name) else OPENAI


def images_of(model: str | None, target: str) -> int:
    """How many pages a request may hold."""
    return IMAGES.get(tokens.family_of(model, target).name, IMAGES_OF_OTHERS)


def blindness(model: str | None, target: str, vision: bool | None) -> str:
    """Why a model cannot be shown pages; "" when it can. ``vision`` is what the caller
    knows of it; None to tell by its name."""
    name, family = (model or "").lower(), tokens.family_of(model, target).name
    if vision is False or (vision is None and _BLIND.search(name)):
        return f"{model or 'the model'} takes no images"
    if _DEAR.search(name):
        return f"{model} counts an image as thirty times its text"
    if vision is None and family not in IMAGES:
        return f"it is not known whether {model or target} takes images; pass vision=True if so"
    return ""


def price(width: int, height: int, model: str | None, target: str) -> int:
    """Tokens of a page of this size."""
    head = base64.b64encode(png.head(width, height)).decode()
    return images.tokens_of(images.Picture(head), tokens.family_of(model, target), model)
