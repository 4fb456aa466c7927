"""Images in a request: finding them, and putting words in their place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from sessiontree.core.images import Picture
from sessiontree.core.rules.model import Entry, Json, Request, Shape


class Found(NamedTuple):
    """An image: in which entry, in which block, and where inside the block (None: it is
    the block)."""

    at: int
    part: int
    inside: int | None
    picture: Picture


def find(request: Request) -> list[Found]:
    """All images, oldest first; looked for once, until the entries change."""
    if request.kinds.isdisjoint(request.shape.holders):
        return []
    found = request.found.get("images")
    if found is None:
        holders = request.shape.holders
        found = request.found["images"] = [
            Found(at, part, inside, picture)
            for at, entry in enumerate(request.entries)
            if not holders.isdisjoint(entry.kinds)
            for part, inside, picture in inside_of(entry, request.shape)
        ]
    return found


def inside_of(entry: Entry, shape: Shape) -> Iterator[tuple[int, int | None, Picture]]:
    """The images of one entry: (block, place inside the block, image)."""
    if entry.kinds.isdisjoint(shape.holders):
        return
    for part, block in enumerate(entry.blocks):
        if block.kind == "image":
            picture = shape.picture(block.native)
            if picture is not None:
                yield part, None, picture
            continue
        for place, native in enumerate(shape.inner(block) or ()):
            picture = shape.picture(native)
            if picture is not None:
                yield part, place, picture


def in_words(picture: Picture) -> str:
    """What stands in an image's place."""
    size = picture.size
    measures = f", {size[0]}x{size[1]}" if size else ""
    where = f", {picture.url}" if picture.url and len(picture.url) < 200 else ""
    return f"[image left out: {picture.mime_type or 'image'}{measures}{where}]"


def replace(entry: Entry, shape: Shape, which: Callable[[int, int | None], bool]) -> Entry:
    """The entry with words in place of the images that ``which`` names by block and place."""
    blocks = list(entry.blocks)
    inner: dict[int, list[Json]] = {}
    for part, inside, picture in inside_of(entry, shape):
        if not which(part, inside):
            continue
        if inside is None:
            blocks[part] = shape.text(in_words(picture), entry.sender)
        else:
            inner.setdefault(part, list(shape.inner(blocks[part]) or ()))
            inner[part][inside] = shape.text_inside(in_words(picture), entry.sender)
    for part, natives in inner.items():
        blocks[part] = shape.with_inner(blocks[part], natives)
    changed = any(new is not old for new, old in zip(blocks, entry.blocks, strict=True))
    return entry.having(blocks) if changed else entry


def drop(request: Request, rule: str, which: set[tuple[int, int, int | None]], why: str) -> None:
    """Replace the images named by (entry, block, place), and tell of it. What comes behind
    them has another prefix now."""
    if not which:
        return
    touched: list[Entry] = []
    entries: list[Entry] = []
    for at, entry in enumerate(request.entries):
        new = _without(entry, request.shape, at, which)
        if new is not entry:
            touched.append(entry)
        entries.append(new.as_stale() if touched else new)
    request.entries = entries
    request.note(rule, f"{len(which)} image(s) were named in words: {why}", *touched)


def _without(entry: Entry, shape: Shape, at: int, which: set[tuple[int, int, int | None]]) -> Entry:
    return replace(entry, shape, lambda part, inside: (at, part, inside) in which)


def keep_newest(request: Request, most: int, rule: str = "images") -> None:
    """At most ``most`` images: the newest."""
    found = find(request)
    oldest = {(f.at, f.part, f.inside) for f in found[: max(0, len(found) - most)]}
    drop(request, rule, oldest, f"at most {most} are sent")
