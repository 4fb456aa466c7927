"""Where the tokens of a window are."""

from __future__ import annotations

from sessiontree.core import images, rules
from sessiontree.core.meter import PER_MESSAGE, Meter, text_of_system
from sessiontree.core.rules.images import inside_of
from sessiontree.core.rules.model import Entry, Kind
from sessiontree.core.window import Window

SHARES: tuple[str, ...] = (
    "system",
    "user",
    "assistant",
    "reasoning",
    "tool calls",
    "tool results",
    "images",
    "other",
)
"""What tokens are counted under; together they are all of the window."""

_SHARE_OF: dict[Kind, str] = {
    "call": "tool calls",
    "server_call": "tool calls",
    "result": "tool results",
    "server_result": "tool results",
    "thinking": "reasoning",
    "media": "other",
    "other": "other",
}


def shares_of(window: Window, model: str | None = None) -> dict[str, int]:
    """Tokens of a window by what they are spent on: every name of ``SHARES``.

    Our own count, by tokenizer where one is installed; ``window.tokens`` may differ where a
    provider reported more.
    """
    meter = Meter(rules.shape_of(window.target), model, None, None)
    found: dict[str, int] = dict.fromkeys(SHARES, 0)
    if window.system is not None:
        found["system"] = PER_MESSAGE + meter.text(text_of_system(window.system))
    for message in window.messages:
        _add(meter.shape.open(message), meter, found)
    return found


def _add(entry: Entry, meter: Meter, found: dict[str, int]) -> None:
    sender = "assistant" if entry.sender == "assistant" else "user"
    found["tool results" if entry.results else sender] += PER_MESSAGE
    for block in entry.blocks:
        share = _SHARE_OF.get(block.kind, sender)
        found[share] += sum(meter.text(text) for text in meter.shape.texts(block))
    for _, _, picture in inside_of(entry, meter.shape):
        found["images"] += images.tokens_of(picture, meter.family, meter.model)
