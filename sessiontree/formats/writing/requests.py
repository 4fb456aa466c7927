"""A path as what a provider's call takes, beside model and tools.

Made by the planner of windows, without a budget: valid for the provider, in its own shape,
the system prompt in its place. A summary or a cut on the path does what it does in a window.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sessiontree import formats
from sessiontree.core import planner, rules
from sessiontree.core.message import Message
from sessiontree.core.window import Window

PROVIDERS = rules.PROVIDERS


def window_of(path: Sequence[Message], target: str) -> Window:
    """The window that holds all of a path, oldest message first."""
    system = next((item for item in reversed(path) if item.role == "system"), None)
    return planner.plan(reversed(path), target, formats.codec, system=system, anchored=False)


def request(path: Sequence[Message], target: str) -> dict[str, Any]:
    """The request that sends a path to ``target``."""
    return window_of(path, target).request()
