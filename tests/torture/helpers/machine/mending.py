"""A process that repairs a store until somebody kills it. Its job: ``{"store"}``."""

from __future__ import annotations

import asyncio
import signal

from machine.forks import Fact, serve

import sessiontree


def work(job: Fact) -> None:
    asyncio.run(repair(job["store"]))
    signal.pause()  # until it is killed


async def repair(target: str) -> None:
    async with sessiontree.open_store(target, damaged=True) as store:
        await store.repair()  # a backup first, then one transaction


if __name__ == "__main__":
    serve(work)
