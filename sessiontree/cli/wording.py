"""What errors advise, in the words of the place where they are read.

The library advises its callers: ``tree()``, ``replace=True``. At the shell the same advice is
a command or an option; in a chat it is a word with a slash.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from sessiontree.errors import SessionTreeError


class _Advice(NamedTuple):
    """The same advice thrice: a pattern for the library's words, and what replaces it."""

    library: str
    shell: str
    chat: str


_ADVICE = (
    _Advice(
        r"see conversations\(\) for those that there are",
        "`sessiontree ls` lists those that exist",
        "`sessiontree ls` lists those that exist",
    ),
    _Advice(r"see tree\(\)", "`sessiontree tree` shows those that do", "/tree shows those that do"),
    _Advice(
        r"history\(\) tells the moves there were; branch\(\) goes anywhere",
        "`sessiontree history` tells the moves there were; `sessiontree branch` goes anywhere",
        "/branch goes anywhere",
    ),
    _Advice(r"branch\(to=(\d+)\)", r"`sessiontree branch` to \1", r"/branch \1"),
    _Advice(r", or pass replace=True to move it", "; --replace moves it", ""),
    _Advice(r", or open it with read_only=True", "", ""),
    _Advice(r", or None for no limit", ", or leave it out", ", or leave it out"),
    _Advice(r", or call interrupt\(\) to record that there are none", "", ""),
    _Advice(
        r"append the results with the calls; turn\(\) keeps calls until they are answered",
        "`sessiontree import` brings in calls together with their results",
        "`sessiontree import` brings in calls together with their results",
    ),
    _Advice(
        r"raise the budget, pin less, or reclaim",
        "raise the budget, or pin less",
        "/edit last TEXT says it in fewer words",
    ),
    _Advice(r"; pass vision=True if so", "", ""),
)


def for_shell(error: SessionTreeError) -> str:
    """An error for who typed a command: what happened, and what to do now."""
    return _told(error.what, _replaced(error.hint, "shell"))


def for_chat(error: SessionTreeError) -> str:
    """The same for who talks to a model."""
    return _told(error.what, _replaced(error.hint, "chat"))


def why_in_chat(why: str) -> str:
    """Why nothing was done, for who talks to a model."""
    return _replaced(why, "chat")


def _told(what: str, hint: str) -> str:
    return f"{what} ({hint})" if hint else what


def _replaced(advice: str, place: Literal["shell", "chat"]) -> str:
    """Advice only: what happened may quote a label or a text, which is nobody's to change."""
    for known in _ADVICE:
        advice = re.sub(known.library, getattr(known, place), advice)
    return advice
