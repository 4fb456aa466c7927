"""What of a file is in the store already, and where it stands there.

Stored messages never move. So when a file that has grown is imported again, what is stored
stays where it is, whatever the whole file would make of it, and what is new is placed
around it. That is why an import asks first: which rows are there (by their keys; rows
without a key by their place and content), what does each follow, and which messages
between them are not the file's.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from sessiontree.conversation.handle import Conversation
from sessiontree.core.message import Message, ToolCall, ToolResult
from sessiontree.core.pairing import OpenCall, take
from sessiontree.core.tree import Tree
from sessiontree.formats.planting import ORPHAN
from sessiontree.formats.skeleton import ROOT, Skeleton, ancestors_first
from sessiontree.formats.steps import Known
from sessiontree.formats.transcript import Entry, kind_of
from sessiontree.transfer.back import OURS
from sessiontree.transfer.threads import in_thread

KEYS_A_TIME = 5_000


@dataclass(slots=True)
class Stored:
    """What of a file is stored. Indexes from ``len(entries)`` on are ``foreign`` messages:
    those that stand between, and that the file does not have."""

    ids: dict[int, int] = field(default_factory=dict[int, int])
    """Index → message id."""
    known: dict[int, Known] = field(default_factory=dict[int, Known])
    foreign: list[Entry] = field(default_factory=list[Entry])


async def look(skeleton: Skeleton, chats: list[Conversation]) -> Stored:
    """What of the file is stored in its conversations, ``chats``, in the order of
    ``skeleton.topics``."""
    stored = Stored()
    for topic, chat in enumerate(chats):
        if not await chat.children(None):
            continue
        found = await _by_key(skeleton, topic, chat)
        tree = await chat.tree()
        if skeleton.reader.is_settled:
            found = await _by_place(skeleton, chat, found)
        await _add(skeleton, stored, chat, tree, found)
    return stored


async def _by_key(skeleton: Skeleton, topic: int, chat: Conversation) -> dict[int, int]:
    """Index → message id of the rows whose key is in the conversation."""
    keys = {
        entry.key: i
        for i, entry in enumerate(skeleton.entries)
        if entry.is_kept and entry.key is not None and skeleton.topic[i] == topic
    }
    names = list(keys)
    found: dict[int, int] = {}
    for start in range(0, len(names), KEYS_A_TIME):
        ids = await chat.find_keys(names[start : start + KEYS_A_TIME])
        found |= {keys[key]: message_id for key, message_id in ids.items()}
    return found


async def _add(
    skeleton: Skeleton, stored: Stored, chat: Conversation, tree: Tree, found: dict[int, int]
) -> None:
    """Note where the found rows stand, and the messages between that are not the file's."""
    index = {message_id: i for i, message_id in found.items()}
    waiting = list(index)
    for message_id in waiting:  # grows as it goes
        node = tree.node(message_id)
        if node.parent_id is not None and node.parent_id not in index:
            index[node.parent_id] = len(skeleton.entries) + len(stored.foreign)
            stored.foreign.append(_foreign(await chat.message(node.parent_id)))
            waiting.append(node.parent_id)
    for message_id, i in index.items():
        node = tree.node(message_id)
        above = ROOT if node.parent_id is None else index[node.parent_id]
        stored.known[i] = Known(above, node.depth, node.open_calls)
        stored.ids[i] = message_id
    await _believe_the_store(skeleton, chat, tree, found)


async def _believe_the_store(
    skeleton: Skeleton, chat: Conversation, tree: Tree, found: dict[int, int]
) -> None:
    """A row that its program has changed since is what it was when it was stored: it calls
    and answers what the store says. Only rows for which that matters are looked at: those
    that do not add up, and those whose calls or results have no counterpart among what was
    stored with them."""
    entries = skeleton.entries
    called = {call.id for i in found for call in entries[i].calls}
    answered = {result.id for i in found for result in entries[i].results}
    answered -= {r.id for i, e in enumerate(entries) if i not in found for r in e.results}
    for i, message_id in found.items():
        entry, node = entries[i], tree.node(message_id)
        before = 0 if node.parent_id is None else tree.node(node.parent_id).open_calls
        adds_up = node.open_calls - before == len(entry.calls) - len(entry.results)
        has_pairs = all(call.given and call.id in answered for call in entry.calls) and all(
            result.given and result.id in called for result in entry.results
        )
        if not (adds_up and has_pairs):
            message = await chat.message(message_id)
            if kind_of(message) == ORPHAN:  # it will answer nothing this time too
                continue
            there = _foreign(message)
            entry.role, entry.mixed = there.role, False
            entry.calls, entry.results = there.calls, there.results


def _foreign(message: Message) -> Entry:
    """A stored message as an entry: what it calls and answers, but for what it answers
    itself."""
    if message.role == "mark":
        return Entry(0, 0, 0, key=message.key)
    waiting = [OpenCall(0, ToolCall(c.id, c.name, None, c.given)) for c in message.tool_calls]
    results = tuple(
        ToolResult(r.id, None, r.name, r.is_error, r.given)
        for r in message.tool_results
        if take(waiting, r) is None
    )
    calls = tuple(opened.call for opened in waiting)
    return Entry(0, 0, 0, role=message.role, calls=calls, results=results, key=message.key)


# --- rows without a key ---------------------------------------------------------------------

Looks = tuple[bytes, int | None]
"""What a row is apart from its place: a digest of its content, and its time if it has one. Not
its role: a result of no call is stored as a mark."""


async def _by_place(
    skeleton: Skeleton, chat: Conversation, found: dict[int, int]
) -> dict[int, int]:
    """Index → message id of rows without a key that are stored: the same, under the same
    parent. As many of them as there are."""
    there: dict[tuple[int | None, bytes], list[tuple[int, int]]] = {}
    """Parent and digest → times and ids."""
    ours: dict[int | None, int | None] = {}
    """What an import has put between rows → what that stands after."""
    by_key = set(found.values())
    async for message in chat.iter_messages():
        if message.id in by_key:
            continue
        above = ours.get(message.parent_id, message.parent_id)
        if kind_of(message) in OURS:
            ours[message.id] = above
        place = above, _digest(message.raw)
        there.setdefault(place, []).append((message.created_at, message.id))
    rows = await in_thread(_looks, skeleton, found)
    ids = dict(found)
    for i in ancestors_first(skeleton.parent):
        above = skeleton.parent[i]
        if i not in rows or (above != ROOT and above not in ids):
            continue
        digest, time = rows[i]
        same = there.get((None if above == ROOT else ids[above], digest), [])
        taken = next((each for each in same if time in (None, each[0])), None)
        if taken is not None:
            same.remove(taken)
            ids[i] = taken[1]
    return ids


def _looks(skeleton: Skeleton, found: dict[int, int]) -> dict[int, Looks]:
    reader, source = skeleton.reader, skeleton.source
    looks: dict[int, Looks] = {}
    for i, entry in enumerate(skeleton.entries):
        if entry.is_kept and i not in found:
            message = reader.message(source.text(entry), entry)
            looks[i] = (_digest(message.content), message.created_at)
    return looks


def _digest(content: str) -> bytes:
    return hashlib.sha256(content.encode()).digest()
