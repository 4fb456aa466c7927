"""A store whose next units are done at hand, and on which thread they are."""

from __future__ import annotations

import sqlite3
import threading

from talk import user

from sessiontree import Conversation, Store
from sessiontree.store import connection, units

HERE = threading.get_ident


@units.bounded
def where(db: sqlite3.Connection, *_: object) -> int:
    """The thread that a unit runs on."""
    db.execute("SELECT 1").fetchone()
    return HERE()


async def warmed(store: Store) -> Conversation:
    """A conversation, after so many quick units that the next are done at hand."""
    chat = await store.conversation("chat")
    for number in range(connection.STEADY):
        await chat.append(user(str(number)))
        await chat.path(newest=1)
        await chat.path(newest=1)  # readers take turns
    assert await store._backend.write(where) == HERE()
    assert await store._backend.read(where) == HERE()
    return chat
