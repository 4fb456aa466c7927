"""Everything in a folder or a zip archive, file by file.

An archive is not trusted. Its members are read into unnamed temporary files, so that a name
in it is never a place on the disk; what it unpacks to is limited, and counted while it is
unpacked, whatever it claims. Archives in archives are not opened.
"""

from __future__ import annotations

import lzma
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, BinaryIO, cast

from sessiontree.conversation.store import Store
from sessiontree.errors import FormatError
from sessiontree.formats.transcript import Source
from sessiontree.transfer import foreign
from sessiontree.transfer.account import Import
from sessiontree.transfer.importing import Progress, import_source
from sessiontree.transfer.threads import in_thread

MAX_MEMBERS = 10_000
"""Files in an archive."""
MAX_MEMBER = 2 << 30
"""Bytes that a file in an archive may unpack to."""
MAX_ARCHIVE = 8 << 30
"""Bytes that all files of an archive together may unpack to."""
MAX_RATIO = 200
"""How many bytes a packed byte may unpack to, on the average of a file; text reaches 20, and
long runs of one character 1,000. Files below ``ALWAYS`` may be packed as well as they can."""
ALWAYS = 1 << 20

IN_MEMORY = 16 << 20
"""Bytes of a file from an archive that are held in memory, not on the disk."""

_PIECE = 1 << 20
_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    OSError,
    EOFError,
    ValueError,
    RuntimeError,  # it wants a password
    NotImplementedError,  # a way of packing that Python does not know
    LookupError,
)
"""What reading a damaged archive may raise."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A file that could not be imported, and why; the others were."""

    file: str
    error: FormatError


@dataclass(frozen=True, slots=True)
class _Found:
    """A file to import. ``open`` raises FormatError."""

    name: str
    size: int
    open: Callable[[], AbstractContextManager[BinaryIO]]


async def import_all(
    store: Store,
    path: str | Path,
    *,
    format: str | None = None,
    owner: str | None = None,
    progress: Progress | None = None,
) -> AsyncIterator[Import | Refused]:
    """Bring in a file, or every file in a folder or a zip archive, in the order of names.

    For each the account of its import, or why it was refused. FormatError when nothing of
    them all could be imported, or what the path leads to cannot be read.
    """
    files = await in_thread(_files, Path(path))
    whole = sum(found.size for found in files)
    refused: list[Refused] = []
    imported = before = 0
    for found in files:
        try:
            done = await _import(store, found, format, owner, _shifted(progress, before, whole))
        except FormatError as error:
            if len(files) == 1:
                raise
            refused.append(Refused(found.name, error))
            yield refused[-1]
        else:
            imported += 1
            yield done
        before += found.size
    if not imported:
        raise _nothing_in(str(path), refused)


async def _import(
    store: Store, found: _Found, format: str | None, owner: str | None, progress: Progress | None
) -> Import:
    opening = found.open()
    file = await in_thread(opening.__enter__)
    try:
        return await import_source(store, Source(file, found.name), format, owner, progress)
    finally:
        await in_thread(opening.__exit__, None, None, None)


def _shifted(progress: Progress | None, before: int, whole: int) -> Progress | None:
    """The progress of one file as that of all."""
    return None if progress is None else lambda done, _: progress(before + done, whole)


def _nothing_in(path: str, refused: list[Refused]) -> FormatError:
    why = "; ".join(str(one.error) for one in refused[:3]) or "there is no file in it"
    return FormatError(f"nothing in it could be imported: {why}", file=path)


# --- files and folders ----------------------------------------------------------------------


def _files(path: Path) -> list[_Found]:
    if not path.is_dir():
        return list(_in_file(path))
    found: list[_Found] = []
    for folder, folders, names in os.walk(path):
        if foreign.is_storage(Path(folder)):  # many files, which together are sessions
            folders.clear()
            found.append(_Found(folder, 0, _opening(Path(folder))))
            continue
        folders.sort()
        for name in sorted(set(names) - _logs(names)):
            found += _in_file(Path(folder, name), is_named=False)
    return found


def _in_file(path: Path, *, is_named: bool = True) -> Iterator[_Found]:
    """The file, or the files in the archive that it is. What is no file at all (a pipe, a
    link to nowhere) is left out of a folder, since opening it could wait for ever."""
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            if is_named:
                raise FormatError("it is no file", file=str(path))
            return
        with path.open("rb") as file:
            is_archive = file.read(4) in _MAGIC
    except OSError as error:
        yield _refusing(str(path), f"it cannot be read: {error.strerror}")
        return
    if is_archive:
        yield from _in_archive(path)
    else:
        yield _Found(str(path), about.st_size, _opening(path))


def _opening(path: Path) -> Callable[[], AbstractContextManager[BinaryIO]]:
    return lambda: foreign.opened(path)


def _refusing(name: str, why: str) -> _Found:
    @contextmanager
    def refuse() -> Generator[BinaryIO]:
        raise FormatError(why, file=name)
        yield  # pyright: ignore[reportUnreachable]

    return _Found(name, 0, refuse)


# --- archives -------------------------------------------------------------------------------


def _in_archive(path: Path) -> list[_Found]:
    """The members of an archive; a refusal of the whole where it is damaged or too large."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = [info for info in archive.infolist() if not info.is_dir()]
    except _BROKEN as error:
        return [_refusing(str(path), f"the archive is damaged: {error}")]
    why = _too_much(members)
    if why is not None:
        return [_refusing(str(path), why)]
    logs = _logs(info.filename for info in members)
    members = [info for info in members if info.filename not in logs]
    return [_member(path, info) for info in sorted(members, key=lambda info: info.filename)]


def _too_much(members: list[zipfile.ZipInfo]) -> str | None:
    """Why an archive is refused by what it says of itself."""
    if len(members) > MAX_MEMBERS:
        return f"the archive has {len(members)} files; more than {MAX_MEMBERS} are not read"
    size = sum(info.file_size for info in members)
    if size > MAX_ARCHIVE:
        return f"the archive unpacks to {size} bytes; more than {MAX_ARCHIVE} are not read"
    return None


def _member(path: Path, info: zipfile.ZipInfo) -> _Found:
    name = f"{path}/{info.filename}"
    return _Found(name, info.file_size, lambda: _unpacked(path, info, name))


@contextmanager
def _unpacked(path: Path, info: zipfile.ZipInfo, name: str) -> Generator[BinaryIO]:
    """A member of an archive in a temporary file without a name. FormatError."""
    with ExitStack() as stack:
        file = stack.enter_context(_spooled(path, info, name))
        if file.read(4) in _MAGIC:
            raise FormatError(
                "it is an archive in an archive", file=name, hint="unpack it, and import that"
            )
        file.seek(0)
        beside = _log_of(path, info) if foreign.is_database(file) else None
        log = None if beside is None else stack.enter_context(_spooled(path, beside, name))
        yield stack.enter_context(foreign.from_archive(file, log, name))


@contextmanager
def _spooled(path: Path, info: zipfile.ZipInfo, name: str) -> Generator[BinaryIO]:
    with SpooledTemporaryFile(IN_MEMORY) as spool:
        file = cast(BinaryIO, spool)
        try:
            with zipfile.ZipFile(path) as archive, archive.open(info) as packed:
                _copy(packed, file, _limit(info), name)
        except FormatError:
            raise
        except _BROKEN as error:
            raise FormatError(f"it cannot be unpacked: {error}", file=name) from error
        file.seek(0)
        yield file


def _log_of(path: Path, info: zipfile.ZipInfo) -> zipfile.ZipInfo | None:
    with zipfile.ZipFile(path) as archive:
        return archive.NameToInfo.get(info.filename + foreign.LOG)


def _logs(names: Iterable[str]) -> set[str]:
    """Those that SQLite keeps beside a database that is there: they are read with it."""
    known = set(names)
    ends = foreign.BESIDE_DATABASES
    return {name for name in known if any(name.removesuffix(e) in known - {name} for e in ends)}


def _limit(info: zipfile.ZipInfo) -> int:
    return min(MAX_MEMBER, max(ALWAYS, info.compress_size * MAX_RATIO))


def _copy(packed: IO[bytes], file: BinaryIO, limit: int, name: str) -> None:
    size = 0
    while piece := packed.read(_PIECE):
        size += len(piece)
        if size > limit:
            raise FormatError(
                f"it unpacks to more than {limit} bytes, which is more than it may "
                f"(at most {MAX_RATIO} times its packed size, and {MAX_MEMBER} bytes)",
                file=name,
                hint="unpack it and import what is in it, if you trust it",
            )
        file.write(piece)
