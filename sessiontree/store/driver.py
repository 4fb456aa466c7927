"""A connection to one SQLite file, set up and checked; and the names of its errors."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal
from urllib.parse import quote

from sessiontree.errors import (
    NotAStore,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreTooNew,
    StoreUnavailable,
    TreeError,
)
from sessiontree.store.migrations import APPLICATION_ID, VERSION, steps_from
from sessiontree.store.statements import schema, split

Durability = Literal["full", "normal"]

_NAMES: dict[int, type[StoreError]] = {
    sqlite3.SQLITE_BUSY: StoreBusy,
    sqlite3.SQLITE_LOCKED: StoreBusy,
    sqlite3.SQLITE_FULL: StoreFull,
    sqlite3.SQLITE_READONLY: StoreReadOnly,
    sqlite3.SQLITE_PERM: StoreReadOnly,
    sqlite3.SQLITE_CORRUPT: StoreCorrupt,
    sqlite3.SQLITE_NOTADB: NotAStore,
    sqlite3.SQLITE_IOERR: StoreUnavailable,
    sqlite3.SQLITE_CANTOPEN: StoreUnavailable,
    sqlite3.SQLITE_NOMEM: StoreUnavailable,
    sqlite3.SQLITE_PROTOCOL: StoreBusy,
}


LOG_PAGES = 4_000
"""Pages in the log, 16 MB, from which on a commit folds them into the file, with two waits for
the disk. With SQLite's 1,000 a crowd of writers would wait so four times as often."""


class named_errors:
    """Turn the driver's errors into ours; ``name`` is the store they speak of. A function that
    yields would cost every unit its time."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, sqlite3.Error):
            raise _named(self._name, error) from error


def named(name: str, error: BaseException) -> BaseException:
    """``error``; ours in its place, where it is the driver's."""
    if not isinstance(error, sqlite3.Error):
        return error
    ours = _named(name, error)
    ours.__cause__ = error
    return ours


def _named(name: str, error: sqlite3.Error) -> TreeError | StoreError:
    if isinstance(error, sqlite3.ProgrammingError):
        closed = "closed" in str(error)
        return StoreClosed(f"{name} is closed") if closed else StoreError(f"{name}: {error}")
    if isinstance(error, sqlite3.IntegrityError):
        return TreeError(f"{name}: {error}", hint="nothing was saved")
    if "decode to UTF-8" in str(error):  # Python's own, it has no code
        return StoreCorrupt(f"{name}: {error}")
    code = getattr(error, "sqlite_errorcode", None)
    kind = _kind(code) if isinstance(code, int) else StoreError
    return kind(f"{name}: {error}{_why(kind, name)}")


def _kind(code: int) -> type[StoreError]:
    if code == sqlite3.SQLITE_IOERR_SHMSIZE:  # the index of the log could not be made
        return StoreFull
    return _NAMES.get(code & 0xFF, StoreError)


def _why(kind: type[StoreError], path: str) -> str:
    """What the system says: SQLite keeps it to itself."""
    if kind is StoreReadOnly:
        files = (path, path + "-wal", path + "-shm", os.path.dirname(path))
        closed = [file for file in files if os.path.exists(file) and not os.access(file, os.W_OK)]
        return f": {', '.join(closed)} may not be written" if closed else ""
    if kind is StoreUnavailable:
        return _why_unavailable(path)
    return ""


def _why_unavailable(path: str) -> str:
    """The file itself is not opened to find out: closing it would let go of the locks that
    other connections of this process hold on it."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))  # too many open files?
        if path != ":memory:":
            os.stat(path)
    except OSError as error:
        return f": {error.strerror}"
    return ""


@dataclass(frozen=True, slots=True)
class Opening:
    """How a file is opened. ``patience`` is the busy timeout in seconds; ``only_reads`` makes
    a reader beside a writer, ``read_only`` one that never creates or changes the file,
    ``damaged`` one of a file that may be shorter than it says."""

    path: str
    durability: Durability = "full"
    read_only: bool = False
    patience: float = 30.0
    only_reads: bool = False
    damaged: bool = False

    @property
    def in_memory(self) -> bool:
        return self.path == ":memory:"

    def connect(self) -> sqlite3.Connection:
        """A connection to a store of this version; creates or migrates it when it may."""
        _refuse_missing(self)
        with named_errors(self.path):
            db = sqlite3.connect(
                _uri(self),
                uri=True,
                timeout=self.patience,
                isolation_level=None,
                check_same_thread=False,  # whoever holds it uses it, see connection.py
                cached_statements=256,
            )
            try:
                self.set_up(db)
            except BaseException:
                db.close()
                raise
        return db

    def set_up(self, db: sqlite3.Connection) -> None:
        """Check the file that was opened, and make ready to work; another kind of file has
        another way."""
        _set_up(db, self)


def _refuse_missing(how: Opening) -> None:
    if how.in_memory:
        return
    file = Path(how.path)
    try:
        if file.is_dir():
            raise NotAStore(f"{file} is a folder", hint="name a file in it")
        if not file.parent.is_dir():
            raise StoreUnavailable(f"{file}: there is no folder {file.parent}", hint="make it")
        if how.read_only and not file.exists():
            hint = "open it without read_only once"
            raise StoreUnavailable(f"there is no store {file}", hint=hint)
        if not file.exists() and not os.access(file.parent, os.W_OK):
            raise StoreReadOnly(f"{file} cannot be made: its folder is read-only")
    except OSError as error:  # a name too long, a folder that may not be looked into
        raise StoreUnavailable(f"{how.path}: {error.strerror}") from error


def _uri(how: Opening) -> str:
    if how.in_memory:
        return "file::memory:"
    mode = "ro" if how.read_only else "rw" if how.only_reads else "rwc"
    uri = f"file:{quote(os.fsencode(how.path))}?mode={mode}"
    wal = Path(how.path + "-wal")
    if how.read_only and not wal.exists() and not os.access(Path(how.path).parent, os.W_OK):
        uri += "&immutable=1"  # nobody can write here, and a WAL index cannot be made
    return uri


def _set_up(db: sqlite3.Connection, how: Opening) -> None:
    if how.damaged:
        _set_up_damaged(db, how)
        return
    version = _version(db, how.path)
    if how.read_only and version < VERSION:
        raise StoreReadOnly(
            f"{how.path} has schema version {version}, this sessiontree needs {VERSION}",
            hint="open it once without read_only; it is made or migrated then",
        )
    if not how.read_only:
        if version < VERSION:
            _create_or_migrate(db, how.path)
        write_ahead(db, how.patience)
        db.execute(f"PRAGMA synchronous = {'FULL' if how.durability == 'full' else 'NORMAL'}")
        db.execute("PRAGMA fullfsync = ON")  # macOS: fsync alone does not reach the disk
        db.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")
        db.execute("PRAGMA foreign_keys = ON")
    if how.only_reads:
        db.execute("PRAGMA query_only = ON")
    db.execute("PRAGMA temp_store = MEMORY")


def _set_up_damaged(db: sqlite3.Connection, how: Opening) -> None:
    """Whatever can be read of it. StoreTooNew, NotAStore: it is readable enough to tell."""
    db.execute("PRAGMA writable_schema = ON")  # SQLite reads on where the file ends too early
    with suppress(sqlite3.DatabaseError):
        _version(db, how.path)


def write_ahead(db: sqlite3.Connection, patience: float) -> None:
    """Enter WAL mode. The switch does not wait for other connections by itself."""
    deadline = time.monotonic() + patience
    while db.execute("PRAGMA journal_mode").fetchone()[0] not in ("wal", "memory"):
        try:
            mode = db.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            if mode != "wal":
                hint = "keep it on a disk of this machine"
                raise StoreUnavailable("a write-ahead log cannot be kept here", hint=hint)


@contextmanager
def one_moment(db: sqlite3.Connection) -> Generator[None, None, None]:
    """What is read meanwhile is of one moment: another process may just make the file."""
    if db.in_transaction:
        yield
        return
    db.execute("BEGIN")
    try:
        yield
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _version(db: sqlite3.Connection, path: str) -> int:
    """The schema version of the file; 0 when it is new. Refuses what is no store of ours."""
    with one_moment(db):
        found: int = db.execute("PRAGMA user_version").fetchone()[0]
        mark: int = db.execute("PRAGMA application_id").fetchone()[0]
        has_tables = db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None
    if mark == APPLICATION_ID:
        if found > VERSION:
            raise StoreTooNew(
                f"{path} has schema version {found}, this sessiontree knows {VERSION}"
            )
        return found
    if mark or found or has_tables:
        raise NotAStore(
            f"{path} is a SQLite file of another program",
            hint="name another file; this one was not changed",
        )
    return 0


def _create_or_migrate(db: sqlite3.Connection, path: str) -> None:
    """In one transaction, so that a kill leaves the file as it was. Another process may
    have been first: the version is read again under the lock."""
    db.execute("BEGIN IMMEDIATE")
    try:
        version = _version(db, path)
        scripts = [step.sql for step in steps_from(version)] if version else [schema()]
        if version < VERSION:
            for script in scripts:
                for statement in split(script):
                    db.execute(statement)
            db.execute(f"PRAGMA user_version = {VERSION}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
