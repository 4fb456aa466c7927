"""The shape of a tree as a drawing: Mermaid for Markdown pages, DOT for Graphviz.

A chain (messages that follow each other without a branch) is one box, named by its first and
last message, as soon as a box for each message would be too many. Mermaid draws no more than
500 edges and reads no more than 50,000 characters: where even the chains are more than that,
the branches nearest to the head's path are drawn, and the others are counted. DOT has no
such bounds, and each message has its box.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from sessiontree.core.tree import Node, Tree
from sessiontree.formats.writing.lines import sayable

MAX_EDGES = 500
MAX_CHARACTERS = 50_000
"""Mermaid's own defaults (``maxEdges``, ``maxTextSize``)."""

_LABELS = (60, 40, 24, 12, 0)
"""Characters of a message that its box shows; fewer, until the drawing is short enough."""


@dataclass(slots=True)
class Box:
    """A chain of messages. ``above`` is the box it follows, by the id of its first message."""

    first: Node
    last: Node
    count: int
    above: int | None
    labels: list[str] = field(default_factory=list[str])
    on_path: bool = False
    is_head: bool = False
    left_out: int = 0
    """Messages that follow it and are not drawn."""


@dataclass(slots=True)
class Drawing:
    """Boxes in display order, each after the one it follows."""

    boxes: list[Box]
    left_out: int = 0
    """Messages of trees that are not drawn at all."""


# --- Mermaid ------------------------------------------------------------------------------


def mermaid(tree: Tree, shows: str) -> str:
    """The drawing; ``shows`` stands in its first line."""
    drawing = Drawing(_boxes(tree, is_chained=len(tree) > MAX_EDGES))
    if len(drawing.boxes) > MAX_EDGES:
        drawing = _nearest(drawing, MAX_EDGES // 2)
    for width in _LABELS:
        text = _mermaid(drawing, shows, width)
        if len(text) <= MAX_CHARACTERS:
            return text
    return _mermaid(_nearest(drawing, MAX_EDGES // 5), shows, 0)


def _mermaid(drawing: Drawing, shows: str, width: int) -> str:
    lines = ["flowchart TD", f"%% {_plain(shows)}"]
    for box in drawing.boxes:
        lines.append(f'  m{box.first.id}["{_label(box, width, _mermaid_text, "<br/>")}"]')
        if box.above is not None:
            lines.append(f"  m{box.above} --> m{box.first.id}")
        if box.left_out:
            lines.append(f'  m{box.first.id} -.-> x{box.first.id}(["{box.left_out} more"])')
    if drawing.left_out:
        lines.append(f'  x0(["{drawing.left_out} more that begin elsewhere"])')
    path = [f"m{box.first.id}" for box in drawing.boxes if box.on_path]
    if path:
        lines.append("  classDef path stroke-width:3px")
        lines.append(f"  class {','.join(path)} path")
    return "\n".join(lines) + "\n"


def _mermaid_text(text: str) -> str:
    """Text in quotes, in which Mermaid reads entities, HTML and Markdown."""
    safe = "".join(
        character if character.isalnum() or character in " .,:!?()/_-…⚑←" else _entity(character)
        for character in _plain(text)
    )
    return safe.strip()


def _entity(character: str) -> str:
    return f"#{ord(character)};"


# --- DOT ----------------------------------------------------------------------------------


def dot(tree: Tree, shows: str) -> Iterator[str]:
    """The drawing, a line at a time."""
    yield f"// {_plain(shows)}\n"
    yield 'digraph sessiontree {\n  node [shape=box, fontname="sans-serif"];\n'
    for box in _boxes(tree, is_chained=False):
        style = ", penwidth=2" if box.on_path else ', color="gray50", fontcolor="gray30"'
        label = _label(box, _LABELS[0], _dot_text, "\\n")
        yield f'  m{box.first.id} [label="{label}"{style}];\n'
        if box.above is not None:
            yield f"  m{box.above} -> m{box.first.id};\n"
    yield "}\n"


def _dot_text(text: str) -> str:
    return _plain(text).replace("\\", "\\\\").replace('"', '\\"')


# --- Both -----------------------------------------------------------------------------------


def _boxes(tree: Tree, *, is_chained: bool) -> list[Box]:
    """The boxes in display order, each after the one it follows."""
    on_path = tree.path_ids()
    boxes: dict[int, Box] = {}
    box_of: dict[int, int] = {}
    followers: dict[int, int] = {}
    for node in tree.nodes:
        parent = node.parent_id
        above = None if parent is None else boxes[box_of[parent]]
        followers[node.id] = len(node.children)
        if parent is None or above is None or not is_chained or followers[parent] > 1:
            above_id = None if above is None else above.first.id
            boxes[node.id] = Box(node, node, 0, above_id, on_path=node.id in on_path)
            above = boxes[node.id]
        box_of[node.id] = above.first.id
        above.last = node
        above.count += 1
        above.labels += node.labels
        above.is_head = above.is_head or node.id == tree.head
    return list(boxes.values())


def _nearest(drawing: Drawing, limit: int) -> Drawing:
    """At most so many boxes: the head's path, then what leaves it, the nearest to it first.
    What is left out is counted at the last box before it."""
    boxes = drawing.boxes
    if len(boxes) <= limit:
        return drawing
    distance: dict[int, int] = {}
    for box in boxes:
        above = 0 if box.above is None else distance[box.above]
        distance[box.first.id] = 0 if box.on_path else above + 1
    path = [box for box in boxes if box.on_path][: limit * 3 // 4]
    others = [box for box in boxes if not box.on_path]
    others.sort(key=lambda box: distance[box.first.id])  # a box comes after the one it follows
    kept: set[int] = set()
    for box in (*path, *others):
        if len(kept) < limit and (box.above is None or box.above in kept):
            kept.add(box.first.id)
    return _counted(drawing, kept)


def _counted(drawing: Drawing, kept: set[int]) -> Drawing:
    """The boxes that are kept, and how many messages follow each that are not drawn."""
    nearest: dict[int, Box] = {}
    left = Drawing([], drawing.left_out)
    for box in drawing.boxes:
        if box.first.id in kept:
            nearest[box.first.id] = box
            left.boxes.append(box)
            continue
        count = box.count + box.left_out
        above = None if box.above is None else nearest.get(box.above)
        if above is None:
            left.left_out += count
        else:
            nearest[box.first.id] = above
            above.left_out += count
    return left


def _label(box: Box, width: int, safe: Callable[[str], str], line_end: str) -> str:
    first, last = box.first, box.last
    names = str(first.id) if box.count == 1 else f"{first.id}…{last.id} ({box.count} messages)"
    head = " ← head" if box.is_head else ""
    lines = [safe(f"{names} {first.role}{head}")]
    if width and first.preview:
        lines.append(safe(_cut(first.preview, width)))
    if box.labels:
        lines.append(safe("⚑ " + _cut(", ".join(box.labels), max(width, 12))))
    return line_end.join(lines)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _plain(text: str) -> str:
    """One line of what can be seen."""
    return sayable("".join(c if c.isprintable() else " " for c in text))
