"""Files of other programs that are no text: opened as text, so that the readers stay simple.

    SQLite      one JSON object a line, one for each session: its row, and all rows of other
                tables that belong to it
                {"session": {…} | null, "message": [{…}, …], "part": [{…}, …], …}
    zstandard   what was compressed
    a folder    opencode's storage, as its database would be told
    images      which oh-my-pi keeps beside its sessions: see blobs.py

The first two also from archives. What is made so is kept in a temporary file without a name.
A database is opened so that nothing is written, not even beside it. This is the one module
outside the store that knows SQL: it reads databases that are not ours, and knows nothing of
what their columns mean.
"""

from __future__ import annotations

import base64
import json
import math
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, Any, BinaryIO, cast
from urllib.parse import quote

from sessiontree.errors import FormatError
from sessiontree.transfer import blobs

SQLITE = b"SQLite format 3\0"
LOG = "-wal"
"""What ends the name of the file beside a database that holds what is newest in it."""
BESIDE_DATABASES = (LOG, "-shm", "-journal")
ZSTANDARD = b"\x28\xb5\x2f\xfd"

MAX_CELL = 64 << 20
"""Bytes of one value in a database."""
MAX_SESSION = 256 << 20
"""Characters of one session in a database."""
MAX_UNPACKED = 4 << 30
"""Bytes that a compressed file may hold."""
IN_MEMORY = 8 << 20
"""Bytes that are kept in memory before the disk is used."""
PIECE = 1 << 20
READ_AHEAD = 1 << 16
"""Bytes of a file that are asked for at once: several rows, most of which are read in order."""

SESSIONS = ("session", "sessions")
"""What the table is called that has one row a session, by ``id``."""
OF_SESSION = "session_id"
"""The column by which rows of other tables belong to a session."""


def opened(path: str | Path) -> BinaryIO:
    """A file, or opencode's folder, as bytes of text. FormatError when it cannot be read."""
    place = Path(path)
    try:
        if is_storage(place):
            return _spooled(_lines(_sessions_in_folder(place)))
        file = place.open("rb", buffering=READ_AHEAD)
        start = file.read(len(SQLITE))
        file.seek(0)
    except OSError as error:
        raise FormatError(f"it cannot be read: {error.strerror}", file=str(path)) from error
    if start == SQLITE:
        file.close()
        return _from_database(place, str(path))
    if start.startswith(ZSTANDARD):
        return _from_zstandard(file, str(path))
    return _with_images(file, place)


def is_database(file: BinaryIO) -> bool:
    """True for a file of SQLite's; the place in it is at the start again."""
    start = file.read(len(SQLITE))
    file.seek(0)
    return start == SQLITE


def from_archive(file: BinaryIO, log: BinaryIO | None, name: str) -> BinaryIO:
    """The same for a file that has no place on the disk; ``log`` is what stood beside a
    database. FormatError."""
    if is_database(file):
        with tempfile.TemporaryDirectory(prefix="sessiontree-") as folder:
            place = Path(folder, "sessions.db")
            for end, held in (("", file), (LOG, log)):
                if held is not None:
                    with place.with_name(place.name + end).open("wb") as out:
                        shutil.copyfileobj(held, out, PIECE)
            return _from_database(place, name)
    start = file.read(len(ZSTANDARD))
    file.seek(0)
    return _from_zstandard(file, name) if start == ZSTANDARD else file


def _with_images(file: BinaryIO, path: Path) -> BinaryIO:
    """The file itself, where it names none of the images that lie beside it."""
    images = blobs.folder(path)
    if images is None or not blobs.names_any(file):
        return file
    with file:
        return _spooled(blobs.resolved(file, images))


def _spooled(pieces: Iterable[bytes]) -> BinaryIO:
    file = cast("BinaryIO", tempfile.SpooledTemporaryFile(IN_MEMORY))  # noqa: SIM115
    try:
        for piece in pieces:
            file.write(piece)
    except BaseException:
        file.close()
        raise
    file.seek(0)
    return file


def _lines(values: Iterable[object]) -> Iterator[bytes]:
    for value in values:
        yield json.dumps(value).encode() + b"\n"


# --- zstandard ------------------------------------------------------------------------------


def _from_zstandard(file: BinaryIO, name: str) -> BinaryIO:
    try:
        import zstandard
    except ImportError as error:
        file.close()
        raise FormatError(
            "it is compressed with zstandard, which is not installed",
            file=name,
            hint='pip install "sessiontree[zstd]", or unpack it with zstd -d',
        ) from error
    with file:
        try:
            return _spooled(_unpacked(zstandard.ZstdDecompressor().stream_reader(file), name))
        except zstandard.ZstdError as error:
            raise FormatError(f"it cannot be unpacked: {error}", file=name) from error


def _unpacked(stream: IO[bytes], name: str) -> Iterator[bytes]:
    size = 0
    while piece := stream.read(PIECE):
        size += len(piece)
        if size > MAX_UNPACKED:
            raise FormatError(f"it holds more than {MAX_UNPACKED >> 30} GiB", file=name)
        yield piece


# --- SQLite ---------------------------------------------------------------------------------


def _from_database(path: Path, name: str) -> BinaryIO:
    try:
        with closing(_connected(path)) as database:
            return _spooled(_lines(_sessions(database, name)))
    except (sqlite3.Error, UnicodeError) as error:  # the latter for names that are damaged
        raise FormatError(
            f"the database cannot be read: {error}",
            file=name,
            hint="close the program that writes it, or copy it together with its -wal file",
        ) from error


def _connected(path: Path) -> sqlite3.Connection:
    """A log beside the file holds what is newest, and is read with it; without one the file
    is all there is, and nothing needs to be written to read it."""
    wal = path.with_name(path.name + LOG)
    mode = "mode=ro" if wal.exists() and wal.stat().st_size else "mode=ro&immutable=1"
    database = sqlite3.connect(f"file:{quote(str(path.absolute()))}?{mode}", uri=True)
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_CELL)
    database.execute("PRAGMA trusted_schema = OFF")
    database.text_factory = _text
    database.row_factory = sqlite3.Row
    return database


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _sessions(database: sqlite3.Connection, name: str) -> Iterator[dict[str, Any]]:
    """Each session with the rows that belong to it, in the order in which they were written.
    Rows of a session that has no row of its own come under null."""
    tables = _tables(database)
    sessions = next((table for table in SESSIONS if "id" in tables.get(table, ())), None)
    others = [table for table, columns in tables.items() if OF_SESSION in columns]
    if sessions is None or not others:
        raise FormatError(
            "it is a database without sessions", file=name, hint=f"its tables: {', '.join(tables)}"
        )
    found = set[Any]()
    for row in _rows(database, sessions):
        found.add(row["id"])
        yield {sessions: row} | _belonging(database, others, row["id"])
    for lost in _named(database, others) - found:
        yield {sessions: None} | _belonging(database, others, lost)


def _tables(database: sqlite3.Connection) -> dict[str, tuple[str, ...]]:
    """The columns of each table. Views and virtual tables would run code of the file's."""
    made = database.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'").fetchall()
    names = [name for name, sql in made if sql and not sql.upper().startswith("CREATE VIRTUAL")]
    return {name: _columns(database, name) for name in names if not name.startswith("sqlite_")}


def _columns(database: sqlite3.Connection, table: str) -> tuple[str, ...]:
    return tuple(row["name"] for row in database.execute(f"PRAGMA table_info({_quoted(table)})"))


def _named(database: sqlite3.Connection, tables: list[str]) -> set[Any]:
    query = "SELECT DISTINCT session_id FROM {}"
    return {row[0] for table in tables for row in database.execute(query.format(_quoted(table)))}


def _belonging(database: sqlite3.Connection, tables: list[str], session: Any) -> dict[str, Any]:
    found: dict[str, list[dict[str, Any]]] = {}
    size = 0
    for table in tables:
        for row in _rows(database, table, f" WHERE {OF_SESSION} IS ?", (session,)):
            found.setdefault(table, []).append(row)
            size += sum(len(value) for value in row.values() if isinstance(value, str))
            if size > MAX_SESSION:
                what = f"its session {session} is longer than {MAX_SESSION >> 20} MiB"
                raise FormatError(what, hint="export that session from its own program")
    return found


def _rows(
    database: sqlite3.Connection, table: str, where: str = "", values: tuple[Any, ...] = ()
) -> Iterator[dict[str, Any]]:
    for row in database.execute(f"SELECT * FROM {_quoted(table)}{where}", values):
        yield {column: _as_json(row[column]) for column in row.keys()}  # noqa: SIM118


def _quoted(table: str) -> str:
    return '"' + table.replace('"', '""') + '"'


def _as_json(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


# --- opencode's folder ----------------------------------------------------------------------


def is_storage(folder: Path) -> bool:
    """True for the folder in which opencode kept its sessions before it had a database."""
    return folder.is_dir() and (folder / "session").is_dir() and (folder / "message").is_dir()


def _sessions_in_folder(folder: Path) -> Iterator[dict[str, Any]]:
    """session/<project>/<id>.json, message/<session>/<id>.json, part/<message>/<id>.json"""
    for file in sorted((folder / "session").rglob("*.json")):
        messages = sorted((folder / "message" / file.stem).glob("*.json"))
        parts = [
            part for m in messages for part in sorted((folder / "part" / m.stem).glob("*.json"))
        ]
        if messages:
            yield {
                "session": _json(file),
                "message": list(map(_json, messages)),
                "part": list(map(_json, parts)),
            }


def _json(file: Path) -> Any:
    """What a file holds; its text where that is not JSON, so that it is told of."""
    raw = file.read_bytes()
    if len(raw) > MAX_CELL:
        raise FormatError(f"it is longer than {MAX_CELL >> 20} MiB", file=str(file))
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return raw.decode("utf-8", "replace")
