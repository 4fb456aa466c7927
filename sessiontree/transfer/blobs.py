"""Images that oh-my-pi keeps beside its sessions, put back where they are named.

    "data":"blob:sha256:<64 hex digits>"      the file of that name in a folder ``blobs``

The folder is searched beside the session file and up to three levels above it. An image that
is not there, is not what its name says, or makes its row too long, stays named.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from sessiontree.formats.transcript import MAX_ROW

MAX_BLOB = 32 << 20
"""Bytes of an image that is put in."""
LEVELS = 4

_NAMED = re.compile(rb'"data"\s*:\s*"blob:sha256:([0-9a-f]{64})"')
"""A key and its value: in the text of a string the quotes would be escaped."""


def folder(path: Path) -> Path | None:
    """Where the images of a session file are."""
    for above in path.absolute().parents[:LEVELS]:
        if (above / "blobs").is_dir():
            return above / "blobs"
    return None


def resolved(file: BinaryIO, blobs: Path) -> Iterator[bytes]:
    """The bytes of a session file, with the images put in."""

    def put_in(named: re.Match[bytes]) -> bytes:
        image = _image(blobs, named[1].decode())
        return named[0] if image is None else b'"data":"' + base64.b64encode(image) + b'"'

    while line := file.readline(MAX_ROW):
        whole = _NAMED.sub(put_in, line) if b"blob:sha256:" in line else line
        yield whole if len(whole) <= MAX_ROW else line


def _image(blobs: Path, digest: str) -> bytes | None:
    place = blobs / digest
    try:
        if not place.is_file() or place.stat().st_size > MAX_BLOB:
            return None
        image = place.read_bytes()
    except OSError:
        return None
    return image if hashlib.sha256(image).hexdigest() == digest else None


def names_any(file: BinaryIO) -> bool:
    """True when a file names images; the place in it is at the start again."""
    found, tail = False, b""
    while not found and (piece := file.read(1 << 20)):
        found = b"blob:sha256:" in tail + piece
        tail = piece[-16:]
    file.seek(0)
    return found
