"""Marks on a path: what they say, and what they do to the messages before them.

A mark is a message of role ``mark``. It is never sent, and changes nothing that is stored:
only what a window sends of the messages that come before it. Its ``ref_id`` names the
message that it reaches:

    ========  ==================================================================
    elide     results of tools, from ``ref_id`` back, are a line that names them
    images    images, from ``ref_id`` back, are a line that names them
    cut       ``ref_id`` is the first message that is still sent
    summary   the same, and ``text`` stands for what came before
    snapshot  the same; ``text`` is what was said, sent as pages of small print
    extract   the same; ``text`` is what word lists found, ``earlier`` the summary before it
    ========  ==================================================================

Without a ``ref_id`` a mark reaches everything before itself. Our own marks are
``{"role": "mark", "kind": …}``; those of imported programs say their kind in ``meta``.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, cast

from sessiontree.core.message import META, Native, Part, Role, text_of
from sessiontree.core.rules.images import in_words, replace
from sessiontree.core.rules.model import Block, Entry, Shape
from sessiontree.core.tokens import estimate

Kind = Literal["elide", "images", "cut", "summary", "snapshot", "extract"]
KINDS: dict[str, Kind] = {
    "elide": "elide",
    "images": "images",
    "cut": "cut",
    "summary": "summary",
    "compaction": "summary",
    "snapshot": "snapshot",
    "extract": "extract",
}
"""By the name that a mark, or the note in an imported mark's ``meta``, has."""
STANDING: frozenset[Kind] = frozenset({"summary", "snapshot", "extract"})
"""Those whose text stands for what came before."""

FLOOR = 50
"""Results of fewer tokens are never elided: the line in their place is as long."""
ELIDED = "[The output of "
GLIMPSE = 60
"""Characters of an elided result that its line shows."""


class Item(Protocol):
    """A message of a path, as the window reads it; ``core.message.Message`` is one."""

    @property
    def id(self) -> int: ...
    @property
    def role(self) -> Role: ...
    @property
    def format(self) -> str: ...
    @property
    def native(self) -> Native: ...
    @property
    def parts(self) -> list[Part]: ...
    @property
    def depth(self) -> int: ...
    @property
    def open_calls(self) -> int: ...
    @property
    def tokens(self) -> int: ...
    @property
    def usage(self) -> Mapping[str, Any] | None: ...
    @property
    def model(self) -> str | None: ...
    @property
    def meta(self) -> Mapping[str, Any]: ...
    @property
    def ref_id(self) -> int | None: ...


@dataclass(slots=True, frozen=True)
class Mark:
    """What a mark asks of a window."""

    kind: Kind
    at: int
    """The id of the mark itself."""
    ref_id: int | None
    text: str = ""
    spared: frozenset[str] = frozenset()
    """Tools whose results are not elided."""
    floor: int = FLOOR
    spec: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """All that it says."""

    @property
    def native(self) -> dict[str, Any]:
        """The same as a mark of ours, to be appended anew."""
        own = dict(self.spec) if self.spec.get("role") == "mark" else {}
        return {"role": "mark", **own, "kind": self.kind, "text": self.text}


def read(item: Item) -> Mark | None:
    """The mark that ``item`` is; None for one that does not concern a window (a label, a
    title, whatever a program notes)."""
    native = item.native
    spec = native if native.get("role") == "mark" and "kind" in native else _noted(item)
    kind = KINDS.get(str(spec.get("kind")))
    if kind is None:
        return None
    text = spec.get("text")
    if kind == "summary" and not isinstance(text, str):
        text = text_of(item.parts) if item.ref_id is not None else ""
    return Mark(
        kind,
        item.id,
        item.ref_id,
        text if isinstance(text, str) else "",
        frozenset(_strings(spec.get("spared"))),
        spec["floor"] if isinstance(spec.get("floor"), int) else FLOOR,
        spec,
    )


def _noted(item: Item) -> Mapping[str, Any]:
    note = item.meta.get(META)
    return cast("Mapping[str, Any]", note) if isinstance(note, Mapping) else {}


def _strings(value: object) -> list[str]:
    if not isinstance(value, list):
        return []
    return [item for item in cast("list[object]", value) if isinstance(item, str)]


# --- What they do -----------------------------------------------------------------------


@dataclass(slots=True, frozen=True)
class Edits:
    """The marks that reach a message."""

    elisions: tuple[Mark, ...] = ()
    drops_images: bool = False
    is_stale: bool = False
    """True when what is sent before this message has changed since it was made."""

    @property
    def is_none(self) -> bool:
        return not self.elisions and not self.drops_images

    @property
    def key(self) -> Hashable:
        """The same for all edits that do the same, as stored marks never change."""
        return (self.drops_images, self.is_stale, *[mark.at for mark in self.elisions])


NO_EDITS = Edits()


def apply(entry: Entry, edits: Edits, shape: Shape, names: Mapping[Block, str]) -> Entry:
    """The entry as the marks leave it. ``names`` are the tools of its results."""
    if edits.drops_images:
        entry = replace(entry, shape, lambda part, inside: True)
    if edits.elisions and "result" in entry.kinds:
        blocks = [
            elide(block, shape, names.get(block, block.name))
            if block.kind == "result" and is_elided(block, edits, shape, names)
            else block
            for block in entry.blocks
        ]
        if any(new is not old for new, old in zip(blocks, entry.blocks, strict=True)):
            entry = entry.having(blocks)
    return entry


def is_elided(block: Block, edits: Edits, shape: Shape, names: Mapping[Block, str]) -> bool:
    """True when one of the marks elides this result."""
    name = names.get(block, block.name)
    size = weight(block, shape)
    return any(name not in mark.spared and size >= mark.floor for mark in edits.elisions)


def weight(block: Block, shape: Shape) -> int:
    """Tokens of a result, roughly; an image in it counts as a thousand."""
    pictures = sum(shape.picture(native) is not None for native in shape.inner(block) or ())
    return sum(map(estimate, shape.texts(block))) + 1000 * pictures


def elide(block: Block, shape: Shape, name: str) -> Block:
    """A result with one line in the place of what it said."""
    texts = [text for text in shape.texts(block) if text and text != block.name]
    tokens = sum(map(estimate, texts))
    said = " ".join(" ".join(texts)[: GLIMPSE * 2].split())[:GLIMPSE]
    began = f", which began {said!r}" if said else ""
    shown = [picture for native in shape.inner(block) or () if (picture := shape.picture(native))]
    images = "".join(f" {in_words(picture)}" for picture in shown)
    line = f"{ELIDED}{name or 'a tool'} was elided: about {tokens} tokens{began}]{images}"
    return shape.with_inner(block, line)


def has_elided(entry: Entry, shape: Shape) -> bool:
    """True when a result of the entry is the line that stands for one."""
    return any(ELIDED in text for block in entry.results for text in shape.texts(block))
