"""Draws what a snapshot's mark keeps, for the planner, which knows nothing of pages."""

from __future__ import annotations

from dataclasses import replace

from sessiontree.core.stand_in import Drawn


def draw(text: str, target: str, model: str | None, images: int | None, size: int | None) -> Drawn:
    """A ``stand_in.Draw``. The drawing loads when it is first wanted: it takes 20 ms, and few
    conversations have pages."""
    from sessiontree.core.reclaim import snapshot

    most = snapshot.NO_LIMITS.bytes if size is None else min(size, snapshot.NO_LIMITS.bytes)
    limits = replace(snapshot.NO_LIMITS, images=images, bytes=most)
    made = snapshot.of_mark({"text": text}, target, model=model, limits=limits)
    return Drawn(made.parts, len(made.pages), made.reason)
