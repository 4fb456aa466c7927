"""Reclaiming room: which mark to append so that the window gets smaller.

Each kind is one file with a ``plan`` that returns a ``Proposal`` (the mark, what it reaches
and what it saves) or ``Refused`` with the reason. Nothing is written here. ``ladder.climb``
tries them from the cheapest up.
"""

from sessiontree.core.reclaim import cut, elide, images, ladder, middle, summary
from sessiontree.core.reclaim.drawing import draw
from sessiontree.core.reclaim.ladder import THRESHOLD, Climb, climb
from sessiontree.core.reclaim.sight import Proposal, Refused, Sight
from sessiontree.core.reclaim.summary import Ask

__all__ = [
    "THRESHOLD",
    "Ask",
    "Climb",
    "Proposal",
    "Refused",
    "Sight",
    "climb",
    "cut",
    "draw",
    "elide",
    "images",
    "ladder",
    "middle",
    "summary",
]
