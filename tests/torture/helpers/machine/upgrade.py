"""A sessiontree of a later time: the same, and one step more of its schema. Its job: ``{"store",
"out", "stays"}``; it opens the store, which migrates it, and writes what it found to a file."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path

from machine.forks import Fact, serve
from machine.hands import look

import sessiontree
from sessiontree.store import driver, migrations

STEP = migrations.Step(
    2,
    "messages have a mood",
    """
ALTER TABLE message ADD COLUMN mood TEXT;
CREATE TABLE moods (name TEXT PRIMARY KEY); INSERT INTO moods VALUES ('calm; really');
-- This takes a while; for each message.
UPDATE message SET mood = (
    WITH RECURSIVE n (i) AS (SELECT id UNION ALL SELECT i + 1 FROM n WHERE i < 600)
    SELECT 'calm ' || count(*) FROM n);
CREATE INDEX message_by_mood ON message (mood)
""",
)


def become_newer() -> None:
    """From here on this process is of version 2."""
    migrations.STEPS = (STEP,)
    migrations.VERSION = driver.VERSION = STEP.version


def work(job: Fact) -> None:
    become_newer()
    Path(job["out"]).write_text(asyncio.run(open_and_look(job["store"])))
    if job["stays"]:
        signal.pause()  # until it is killed


async def open_and_look(target: str) -> str:
    async with sessiontree.open_store(target) as store:
        found = await look(store)
        problems = await store.check()
        moods = await store._backend.read(
            lambda db: db.execute("SELECT count(*), count(mood) FROM message").fetchone()
        )
        return json.dumps({"facts": found, "problems": problems, "moods": moods})


if __name__ == "__main__":
    serve(work)
