"""Limits on images and bytes, by provider."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from sessiontree.core.rules import images
from sessiontree.core.rules.model import Entry, Fault, Request, Shape


class Limits(NamedTuple):
    """What a provider takes in one request. Pixels are those of the longer side."""

    pixels: int
    many: int
    """More images than this are many."""
    pixels_of_many: int
    images: int
    bytes: int


ANTHROPIC = Limits(8000, 20, 2000, 100, 32_000_000)
"""100 images is the limit of models with a window of 200k; larger windows take 600."""

Place = tuple[int, int, int | None]


def too_many_pixels_or_images(request: Request) -> Iterator[Fault]:
    """Images that are refused (A15)."""
    for (at, part, _), why in sorted(refused(request).items(), key=lambda item: item[0][:2]):
        yield Fault(at, why, part)


def refused(request: Request) -> dict[Place, str]:
    """The images that would be refused, with the reason; the oldest of too many."""
    found = images.find(request)
    if not found:
        return {}
    limits = ANTHROPIC
    side = limits.pixels if len(found) <= limits.many else limits.pixels_of_many
    bad: dict[Place, str] = {}
    for f in found:
        if max(f.picture.size or (0, 0)) > side:
            bad[f.at, f.part, f.inside] = f"more than {side} pixels a side"
    left = [f for f in found if (f.at, f.part, f.inside) not in bad]
    for f in left[: max(0, len(left) - limits.images)]:
        bad[f.at, f.part, f.inside] = f"more than {limits.images} images"
    left = left[max(0, len(left) - limits.images) :]
    return bad | _over_the_bytes(request, left, limits.bytes)


def drop_refused(request: Request) -> None:
    """Words in place of the images that the provider would refuse (A15)."""
    bad = refused(request)
    images.drop(request, "A15", set(bad), "; ".join(sorted(set(bad.values()))))


def cut_off(request: Request) -> Iterator[Fault]:
    """Images whose data ends before the image does (A20, B13, C6, G8, R8)."""
    for at, part, _ in _cut_off(request):
        yield Fault(at, "an image's data is cut off", part)


def _cut_off(request: Request) -> list[Place]:
    found = images.find(request)
    return [(f.at, f.part, f.inside) for f in found if f.picture.data and not f.picture.is_whole]


def drop_cut_off(request: Request) -> None:
    places = set(_cut_off(request))
    images.drop(request, request.shape.codes["image"], places, "their data is cut off")


def _over_the_bytes(request: Request, found: list[images.Found], most: int) -> dict[Place, str]:
    """The oldest images whose leaving brings the request below ``most`` bytes."""
    sizes = [len(f.picture.data) for f in found]
    if sum(sizes) < most // 32:  # so few bytes of images that they are not what is too much
        return {}
    over = bytes_of(request.entries, request.shape) - most
    bad: dict[Place, str] = {}
    for f, size in zip(found, sizes, strict=True):
        if over <= 0:
            break
        if size > IN_WORDS:
            bad[f.at, f.part, f.inside] = f"a request of more than {most:,} bytes"
            over -= size - IN_WORDS
    return bad


IN_WORDS = 200
"""Bytes that the words in an image's place take at most, about."""


def fit_bytes(request: Request, most: int) -> None:
    """Words in place of the oldest images, as many as are over ``most`` bytes."""
    found = images.find(request)
    bad = _over_the_bytes(request, found, most)
    images.drop(request, "images", set(bad), f"the budget is {most:,} bytes")


def bytes_of(entries: list[Entry], shape: Shape) -> int:
    """Bytes of the messages as a JSON list."""
    return 1 + sum(_entry_bytes(entry, shape) for entry in entries)


def _entry_bytes(entry: Entry, shape: Shape) -> int:
    native = entry.native if entry.native is not None else shape.close(entry)
    text = json.dumps(native, ensure_ascii=False, separators=(",", ":"))
    return len(text.encode("utf-8", "surrogatepass")) + 1
