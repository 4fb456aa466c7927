"""The versions of the schema, and the steps from one to the next.

The version stands in the file (``PRAGMA user_version``), beside a mark that says the file is
a store at all (``PRAGMA application_id``). A step is SQL text; all steps that a store
needs run in one transaction, so that a killed migration leaves the old store as it was.
"""

from __future__ import annotations

from typing import NamedTuple

APPLICATION_ID = 0x53545245  # "STRE"


class Step(NamedTuple):
    """From the version before to ``version``."""

    version: int
    why: str
    sql: str


STEPS: tuple[Step, ...] = ()
"""Version 1 is schema.sql itself; the first change to it becomes version 2 here."""

VERSION = STEPS[-1].version if STEPS else 1


def steps_from(version: int) -> tuple[Step, ...]:
    """What a store of ``version`` still needs, oldest first."""
    return tuple(step for step in STEPS if step.version > version)
