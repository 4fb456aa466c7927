"""The one that writes to a SQLite file: a transaction for each unit of work, or for a group.

Units of work that wait while a transaction is being committed go into the next one together
(*group commit*): one fsync serves them all. They run as if nothing could fail; where one does,
all run again, each inside a savepoint, so that its failure is its own caller's alone.

Python runs one thread at a time, SQLite does not mind: while it commits one group, the event
loop hears that the last one is durable and makes the next one ready. So a crowd is parted in
two groups that take turns, and what is durable is told when SQLite is busy again.

A writer that is alone, with a unit that is bounded, does it at hand. Whether it is alone shows
when all that are ready to run have had their turn: then another has come, or has not.

A unit that has begun is always waited for, even by a caller that is cancelled, so that
afterwards the caller's handle knows what happened. One that has not begun is dropped: also
one that waits for another process to let the store go.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count, groupby
from operator import attrgetter
from typing import Any, TypeVar, cast

from sessiontree.errors import SessionTreeError, StoreClosed, StoreError
from sessiontree.store.connection import ANY, Connection, is_too_long, outlast, roll_back
from sessiontree.store.driver import Opening, named, named_errors
from sessiontree.store.jobs import Ended, Job, Waiting
from sessiontree.store.samefile import SameFile
from sessiontree.store.units import Together, is_bounded

T = TypeVar("T")

BATCH = 256
"""Most units in one transaction: bounds how long the first of them waits."""
CROWD = 16
"""So many that wait are parted in two groups."""
LOOK_AGAIN = 0.01
"""Seconds, at most, until a writer that another process keeps out tries again. SQLite by itself
tries every 0.1 s: next to processes that write group after group it hardly ever finds the store
free, and gives up."""
ROWS_OF_A_UNIT = 6
"""Rows that a turn changes, for what changes more."""
AT_A_TIME = 4
"""Units that a task alone does at hand before others have their turn: that takes 20 µs."""
NOBODY = None, 0
FOLD = 100
"""After so many units at hand the thread folds the log into the file, while others follow: a
commit that does it would keep the event loop waiting for tens of milliseconds. A log that grows
is slower to sync than one that is written over."""


class Writer:
    """The one that writes: drains what waits into one transaction after another."""

    def __init__(self, connection: Connection, how: Opening) -> None:
        self._connection = connection
        self._name = how.path
        self._patience = how.patience
        self._file = SameFile(how)
        self._waiting: deque[Waiting] = deque()
        self._taken: list[Waiting] = []
        """Those that have begun."""
        self._numbers = count()
        self._lock = threading.Lock()
        self._draining = False
        self._over = False
        self._lets_sqlite_wait = True
        self._arriving: set[object] = set()
        self._alone: tuple[asyncio.Task[Any] | None, int] = NOBODY
        self._how = how
        self._folder: sqlite3.Connection | None = None
        self._has_log = not how.in_memory
        self._unfolded = 0
        self._fold_at = FOLD

    async def run(
        self, unit: Callable[..., T], args: tuple[Any, ...], then: Callable[[T], None] | None
    ) -> T:
        """``unit(connection, *args)`` in a transaction; returns once it is durable.

        ``then`` is called with the result on the event loop, even when the caller was
        cancelled while the unit ran.
        """
        if (
            self._may_do_at_hand()
            and is_bounded(unit, args)
            and (self._was_alone_just_now() or await self._is_alone())
        ):
            done = self._do_at_hand(unit, args, then)
            if done is not None:
                return done[0]
        self._alone = NOBODY
        job = self._put(unit, args, then)
        try:
            return await job.future
        except asyncio.CancelledError:
            await self._drop_or_wait(job)
            raise
        finally:
            del job  # an error holds this frame

    def _put(
        self, unit: Callable[..., Any], args: tuple[Any, ...], then: Callable[[Any], None] | None
    ) -> Waiting:
        future = asyncio.get_running_loop().create_future()
        job = Waiting(unit, args, then, future=future)
        with self._lock:
            if self._over:
                raise StoreClosed(f"{self._name} is closed")
            job.number = next(self._numbers)
            self._waiting.append(job)
            if not self._draining:
                self._connection.start(self._drain)
                self._draining = True
        return job

    # ---- at hand -----------------------------------------------------------------

    def _was_alone_just_now(self) -> bool:
        """Whether this task was alone, and has a few units more before it is asked again."""
        task, more = self._alone
        if more > 1 and task is asyncio.current_task():
            self._alone = task, more - 1
            return True
        return False

    async def _is_alone(self) -> bool:
        """Whether nobody else writes or is about to, after all that are ready to run have had
        their turn. A caller that is cancelled meanwhile has begun nothing."""
        me = object()  # a count would need a lock, which a task that is garbage must not take
        try:
            self._arriving.add(me)
            await asyncio.sleep(0)
        finally:
            self._arriving.discard(me)
        alone = not self._arriving and self._may_do_at_hand()
        self._alone = (asyncio.current_task(), AT_A_TIME) if alone else NOBODY
        return alone

    def _may_do_at_hand(self) -> bool:
        return (
            self._connection.pace.is_quick
            and self._unfolded < 2 * FOLD
            and not (self._draining or self._waiting or self._over)
        )

    def _do_at_hand(
        self, unit: Callable[..., T], args: tuple[Any, ...], then: Callable[[T], None] | None
    ) -> tuple[T] | None:
        """``(its result,)``; None where somebody is at work on the connection or on the file."""
        job = Job(unit, args, then)
        try:
            done = self._connection.at_hand(partial(self._do_held, job))
            if done != (True,):
                return None
            job.settle()
        except BaseException:  # a signal handler's
            if job.kept and not job.settled:
                job.settle()
            raise
        if job.error is None:
            return (job.result,)
        error, job.error = job.error, None  # the error holds the frames that hold the job
        try:
            raise error
        finally:
            del error

    def _do_held(self, job: Job, db: sqlite3.Connection) -> bool:
        """False where another process is writing, or something is long."""
        try:
            self._file.require()
            if self._begin_at_once(db) is not None:
                return False
        except BaseException as error:
            job.error = named(self._name, error)
        else:
            began = time.perf_counter()
            self._commit_alone(job, db)
            self._connection.pace.ended(began)
        self._unfolded += self._has_log
        if self._unfolded >= self._fold_at:
            self._fold_soon()
        return job.error is None or not is_too_long(job.error)

    def _fold_soon(self) -> None:
        """Where much is in the log, also what a crowd has left there: the next commits at hand
        are not to be the ones that fold it."""
        self._fold_at = self._unfolded + FOLD
        self._connection.start(self._fold)

    def end(self) -> None:
        """Take nothing more. What was taken is done before the connection closes."""
        with self._lock:
            self._over = True
            self._connection.start(self._close_folder)

    async def _drop_or_wait(self, job: Waiting) -> None:
        with self._lock:
            if job in self._waiting:
                self._waiting.remove(job)
                return
        if not job.settled:
            job.waiter = asyncio.get_running_loop().create_future()
            await outlast(job.waiter)
        if job.future.done() and not job.future.cancelled():
            job.future.exception()  # it ended just before the caller was cancelled; seen

    # ---- on the connection's thread ----------------------------------------------

    def _drain(self) -> None:
        ended = Ended()
        self._connection.hold()
        try:
            self._drain_held(ended)
        except BaseException as error:
            self._let_down(error, ended)
        finally:
            self._connection.let_go()
        ended.tell()  # now that the connection is free: their next units may be done at hand

    def _drain_held(self, ended: Ended) -> None:
        while True:
            with self._lock:
                newest = self._waiting[-1].number if self._waiting else None
                self._draining = newest is not None
            if newest is None:
                return
            error = self._begin(ended)  # may wait for another process; callers come and go
            jobs = self._take_until(newest) if error else self._take(ended)
            if error is None:
                self._commit_on_thread(jobs, ended)
            for job in jobs:
                job.error = job.error or error
            ended.tell()
            ended.jobs, self._taken = jobs, []
            if self._gives_way():
                return

    def _let_down(self, error: BaseException, ended: Ended) -> None:
        """After what no unit has raised: no memory, or a fault of ours. Nobody is to wait for
        ever."""
        roll_back(self._connection.raw)
        with self._lock:
            jobs = [*self._taken, *self._waiting]
            self._waiting.clear()
            self._draining = False
        for job in jobs:
            job.error = job.error or error
        ended.jobs += jobs

    def _gives_way(self) -> bool:
        """Whether others wait for the thread, and go first: a store in memory has but one."""
        with self._lock:
            if self._over or not self._connection.is_asked:
                return False
            self._connection.start(self._drain)
            return True

    def _take(self, ended: Ended) -> list[Waiting]:
        """The jobs that begin now, the oldest. What is taken can no longer be dropped."""
        with self._lock:
            size = len(self._waiting)
            if size >= CROWD and not ended.jobs:
                size //= 2
            self._taken = [self._waiting.popleft() for _ in range(min(size, BATCH))]
        return self._taken

    def _take_until(self, newest: int) -> list[Waiting]:
        """All that wait since this one or longer: another process kept them out together."""
        with self._lock:
            while self._waiting and self._waiting[0].number <= newest:
                self._taken.append(self._waiting.popleft())
        return self._taken

    def _begin(self, ended: Ended) -> BaseException | None:
        try:
            with named_errors(self._name):
                self._file.require()
                self._connection.allow(ANY)
                self._begin_in_turn(ended)
        except BaseException as error:
            roll_back(self._connection.raw)  # nothing, but where it failed right after
            return error
        return None

    def _begin_in_turn(self, ended: Ended) -> None:
        """Begin when no other process is writing. Callers whose work is durable are not to wait
        for that."""
        deadline, pause = time.monotonic() + self._patience, 0.001
        db = self._connection.raw
        while (busy := self._begin_at_once(db)) is not None:
            if time.monotonic() >= deadline:
                raise busy
            ended.tell()
            time.sleep(random.uniform(0.5, 1) * pause)
            pause = min(2 * pause, LOOK_AGAIN)

    def _begin_at_once(self, db: sqlite3.Connection) -> sqlite3.OperationalError | None:
        """Begin; or what SQLite says when another process is writing."""
        if self._lets_sqlite_wait:
            db.execute("PRAGMA busy_timeout = 0")
            self._lets_sqlite_wait = False
        try:
            db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            return error
        return None

    def _fold(self) -> None:
        """Fold the log into the file. What fails here is tried again by the next, and nothing is
        lost: it is all in the log."""
        if self._over:  # by an event loop of another thread, and the folder is closed
            return
        try:
            if self._folder is None:
                self._file.require()
                self._folder = replace(self._how, only_reads=True).connect()
            self._folder.execute("PRAGMA wal_checkpoint(PASSIVE)")  # nearly all, beside the others
            self._connection.hold()
            try:  # and what has come meanwhile: the log is written from its start again
                self._folder.execute("PRAGMA wal_checkpoint(PASSIVE)")
            finally:
                self._connection.let_go()
        except (sqlite3.Error, StoreError):
            pass
        finally:
            self._unfolded, self._fold_at = 0, FOLD

    def _close_folder(self) -> None:
        if self._folder is not None:
            self._folder.close()

    def _commit_on_thread(self, jobs: list[Waiting], ended: Ended) -> None:
        """``jobs`` may be none: they are dropped until they are taken."""
        db = self._connection.raw
        began, before = time.perf_counter(), db.total_changes
        self._commit(jobs, ended)
        rows = db.total_changes - before
        self._unfolded += max(len(jobs), rows // ROWS_OF_A_UNIT) * self._has_log
        if len(jobs) == 1:
            self._has_ended_alone(jobs[0], began)

    def _has_ended_alone(self, job: Job, began: float) -> None:
        if is_bounded(job.unit, job.args):
            self._connection.pace.ended(began)
            if not self._connection.pace.is_quick:
                return
        if self._unfolded >= self._fold_at:  # what an import leaves, while its next batch is made
            self._fold_soon()

    def _commit(self, jobs: list[Waiting], ended: Ended) -> None:
        """Run the jobs in the transaction; each has its result or its error afterwards."""
        db = self._connection.raw
        try:
            with named_errors(self._name):
                if not self._run_together(db, jobs, ended):
                    self._run_apart(db, jobs, ended)
                ended.tell()
                for job in jobs:
                    job.kept = job.error is None
                db.execute("COMMIT")
        except BaseException as error:
            self._give_up(jobs, error)

    def _commit_alone(self, job: Job, db: sqlite3.Connection) -> None:
        """As ``_commit``, of one."""
        try:
            job.result = job.unit(db, *job.args)
            job.kept = True
            db.execute("COMMIT")
        except BaseException as error:
            self._give_up([job], named(self._name, error))

    def _give_up(self, jobs: Sequence[Job], error: BaseException) -> None:
        """Unless it is all in the store: a signal that comes while the disk is at work is raised
        when the disk is done."""
        db = self._connection.raw
        kept = not isinstance(error, SessionTreeError) and not db.in_transaction
        roll_back(db)
        for job in jobs:
            job.kept = job.kept and kept
            job.error = job.error or error

    def _run_together(self, db: sqlite3.Connection, jobs: list[Waiting], ended: Ended) -> bool:
        """Run them as if nothing could fail, which nearly always holds and is cheaper; False
        when one of several failed: nothing is known of the others then."""
        try:
            for unit, alike in groupby(jobs, key=attrgetter("unit")):
                _run_alike(db, unit, list(alike), ended)
        except BaseException:
            if len(jobs) == 1:
                raise
            return False
        return True

    def _run_apart(self, db: sqlite3.Connection, jobs: list[Waiting], ended: Ended) -> None:
        """Begin again, each in a savepoint, so that one's failure is its own caller's."""
        roll_back(db)
        self._begin_in_turn(ended)
        for job in jobs:
            self._run_in_savepoint(db, job)

    def _run_in_savepoint(self, db: sqlite3.Connection, job: Waiting) -> None:
        db.execute("SAVEPOINT unit")
        try:
            with named_errors(self._name):
                job.result = job.unit(db, *job.args)
        except BaseException as error:
            job.error = error
            if not db.in_transaction:  # SQLite gave the whole transaction up: disk full, …
                raise
            db.execute("ROLLBACK TO unit")
        db.execute("RELEASE unit")


def _run_alike(
    db: sqlite3.Connection, unit: Callable[..., Any], jobs: list[Waiting], ended: Ended
) -> None:
    if isinstance(unit, Together) and len(jobs) > 1:
        calls = [job.args for job in jobs]
        results = cast("Together[Any, Any]", unit).everyone(db, calls, ended.tell_half)
        for job, result in zip(jobs, results, strict=True):
            job.result = result
        return
    ended.tell()
    for job in jobs:
        job.result = unit(db, *job.args)
