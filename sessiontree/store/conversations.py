"""Units of work on whole conversations: make, fork, delete; and rewind, which may append."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import NamedTuple

from sessiontree.core.message import MessageRow, NewMessage
from sessiontree.core.records import ConversationInfo
from sessiontree.errors import (
    CheckpointNotFound,
    ConversationExists,
    ConversationNotFound,
    StoreCorrupt,
)
from sessiontree.store import reads
from sessiontree.store.appending import Append, Appended, append
from sessiontree.store.heads import (
    boundary,
    find_checkpoint,
    head_of,
    set_checkpoint,
    set_head,
    to_checkpoint,
)
from sessiontree.store.messages import is_small, json_or_null, next_message_id
from sessiontree.store.statements import statements
from sessiontree.store.units import bounded, bounded_where

SQL = statements()


def get_or_create(
    db: sqlite3.Connection, wish: ConversationInfo, system: NewMessage | None, now: int
) -> tuple[ConversationInfo, bool]:
    """The conversation of (owner, topic), and whether it was made just now."""
    if wish.topic is not None:
        known = reads.conversation_by_topic(db, wish.owner, wish.topic)
        if known is not None:
            return known, False
    made = _create(db, wish, now)
    if system is not None:
        append(db, made, Append([system], now, at_head=True))
    return reads.conversation(db, made), True


def ensure_system(
    db: sqlite3.Connection,
    conversation: int,
    prompt: NewMessage,
    same: Callable[[MessageRow], bool],
    now: int,
) -> None:
    """Append a system prompt at the head, unless the path says the same already."""
    head = head_of(db, conversation).head
    current = reads.system_message(db, conversation, head)
    if current is None or not same(current):
        append(db, conversation, Append([prompt], now, at_head=False, parent=head))


def _create(db: sqlite3.Connection, wish: ConversationInfo, now: int) -> int:
    values = {
        "owner": wish.owner,
        "topic": wish.topic,
        "title": wish.title,
        "format": wish.format,
        "forked_from": wish.forked_from,
        "forked_at": wish.forked_at,
        "meta": json_or_null(wish.meta),
        "now": now,
    }
    row = db.execute(SQL["insert_conversation"], values).fetchone()
    if row is None:
        raise ConversationExists(wish.owner, wish.topic or "")
    return row[0]


def fork(
    db: sqlite3.Connection,
    conversation: int,
    at: int | None,
    owner: str | None,
    topic: str | None,
    now: int,
) -> ConversationInfo:
    """Copy the path of ``at`` into a new conversation, under new ids."""
    source = reads.conversation(db, conversation)
    place = boundary(db, conversation, at)
    target = _create(
        db,
        source._replace(
            owner=source.owner if owner is None else owner,
            topic=topic,
            forked_from=conversation,
            forked_at=at,
        ),
        now,
    )
    if at is not None:
        base = next_message_id(db)
        names = {"conversation": conversation, "target": target, "leaf": at, "base": base}
        try:
            copied = db.execute(SQL["copy_path"], names).rowcount
        except sqlite3.IntegrityError as error:  # the walk came to no root
            raise StoreCorrupt(f"the path of message {at} is broken: {error}") from error
        reads.require_whole(conversation, at, copied, place.depth + 1)
        _copy_landmarks(db, conversation, target, at, base)
        set_head(db, target, base + place.depth, None, now)
    return reads.conversation(db, target)


def _copy_landmarks(
    db: sqlite3.Connection, conversation: int, target: int, leaf: int, base: int
) -> None:
    """Checkpoints and references of a path, pointed at the copies."""
    names = {"conversation": conversation, "leaf": leaf}
    landmarks = db.execute(SQL["path_landmarks"], names).fetchall()
    depths: dict[int, int] = {}
    if any(ref is not None for _, ref, *_ in landmarks):
        depths = dict(db.execute(SQL["path_ids"], names).fetchall())
    for depth, ref, label, note, created_at in landmarks:
        if label is not None:
            set_checkpoint(db, target, label, base + depth, note, created_at)
        if ref in depths:
            remapped = {"conversation": target, "id": base + depth, "ref": base + depths[ref]}
            db.execute(SQL["set_reference"], remapped)


def _is_short_digest(_conversation: int, _label: str, digest: NewMessage | None, _now: int) -> bool:
    return digest is None or is_small([digest])


@bounded_where(_is_short_digest)
def rewind(
    db: sqlite3.Connection, conversation: int, label: str, digest: NewMessage | None, now: int
) -> MessageRow | None:
    """Move the head to a checkpoint; a digest is appended there in the same transaction."""
    if digest is None:
        return to_checkpoint(db, conversation, label, now)
    digest.ref = head_of(db, conversation).head
    to = find_checkpoint(db, conversation, label).message_id
    wish = Append([digest], now, at_head=False, parent=to, cause="rewind")
    return append(db, conversation, wish).rows[-1]


class Stepped(NamedTuple):
    """``back`` is the head after going back; None where the head stayed at the step's end:
    another writer was first, the step had been saved before, or the label is gone."""

    done: Appended
    back: MessageRow | None


def _are_short(_conversation: int, wish: Append, _label: str, digest: NewMessage) -> bool:
    return is_small([*wish.messages, digest])


@bounded_where(_are_short)
def append_and_rewind(
    db: sqlite3.Connection, conversation: int, wish: Append, label: str, digest: NewMessage
) -> Stepped:
    """Append a step at the head, then move the head to a checkpoint with a digest, both or
    neither: after a crash no step stands that tells of a rewind which never came."""
    done = append(db, conversation, wish)
    if not done.fresh or not done.moved:
        return Stepped(done, None)
    try:
        return Stepped(done, rewind(db, conversation, label, digest, wish.now))
    except CheckpointNotFound:  # raised before anything is written
        return Stepped(done, None)


def delete(db: sqlite3.Connection, conversation: int, owner: str | None) -> None:
    """Take a conversation away, and the blobs that only it used."""
    info = reads.conversation(db, conversation)
    if owner is not None and info.owner != owner:
        raise ConversationNotFound(conversation)
    names = {"conversation": conversation}
    blobs = [{"blob": row[0]} for row in db.execute(SQL["blobs_of"], names)]
    db.execute(SQL["delete_conversation"], names)
    db.executemany(SQL["delete_blob_if_unused"], blobs)


@bounded
def set_title(db: sqlite3.Connection, conversation: int, title: str | None) -> None:
    head_of(db, conversation)
    db.execute(SQL["set_title"], {"conversation": conversation, "title": title})
