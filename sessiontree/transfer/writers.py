"""A conversation in each of the formats that are written, piece by piece.

Each writer is an async generator of text that reads an ``Excerpt``. What a format looks like
is known in ``formats/``; here is how its messages are found.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

from sessiontree import formats
from sessiontree.core.message import Message
from sessiontree.core.records import ConversationInfo
from sessiontree.core.tree import Node, Tree
from sessiontree.errors import FormatError
from sessiontree.formats import jsonl, markdown
from sessiontree.formats.transcript import kind_of
from sessiontree.formats.writing import graph, oasst, otel, preferences, requests, sharegpt, table
from sessiontree.formats.writing.lines import json_line
from sessiontree.formats.writing.rows import ClaudeCodeRows, CodexRows, PiRows, Rows
from sessiontree.transfer.back import Back
from sessiontree.transfer.excerpt import Excerpt
from sessiontree.transfer.order import Order

Pieces = AsyncIterator[str]
Write = Callable[[Excerpt], Pieces]


class Writer(NamedTuple):
    """How a format is written, and which part of a conversation it shows if none is named."""

    write: Write
    whole_tree: bool = False
    has_detail: bool = False
    """It can show less than everything."""


def _count(count: int, word: str, plural: str) -> str:
    return f"{count} {word if count == 1 else plural}"


def _shows(excerpt: Excerpt, messages: int, leaves: int) -> str:
    """What a file says of itself."""
    told = _count(messages, "message", "messages")
    if not excerpt.whole_tree:
        return f"the active path, {told}"
    return f"the whole tree, {told}, {_count(leaves, 'leaf', 'leaves')}"


# --- jsonl, and back to where it came from ------------------------------------------------------


async def _jsonl(excerpt: Excerpt) -> Pieces:
    yield jsonl.header_line(excerpt.info, excerpt.what)
    path = None if excerpt.whole_tree else Order()
    count, last = 0, 0
    async for message in excerpt.messages():
        if path is not None:
            path.add(message.id, message.parent_id)
        yield jsonl.message_line(_alone(message, path))
        count, last = count + 1, message.id

    def is_there(end: int | None) -> bool:
        return end is None or (end <= last if path is None else end in path)

    for checkpoint in await excerpt.checkpoints():
        if is_there(checkpoint.message_id):
            yield jsonl.checkpoint_line(checkpoint)
    for move in await excerpt.moves():
        if is_there(move.from_id) and is_there(move.to_id):
            yield jsonl.move_line(move)
    yield jsonl.end_line(count)


def _alone(message: Message, path: Order | None) -> Message:
    """The message, which speaks of no message that is not on the path."""
    ref = message.ref_id
    if path is None or ref is None or ref in path:
        return message
    return Message(message.row._replace(ref_id=None), formats.codec)


def _back_to(name: str, make: Callable[[ConversationInfo], Rows]) -> Write:
    """The rows of a transcript as they came, without what an import has added; and rows of
    what the program did not write itself."""

    async def write(excerpt: Excerpt) -> Pieces:
        rows = make(excerpt.info)
        back = Back(excerpt, name, rows)
        at_end: list[str] = []
        async for message in excerpt.messages():
            lines = await back.lines(message)
            if message.id == excerpt.head and rows.head_is_last and not rows.is_linear:
                at_end, lines = lines, []
            for line in lines:
                yield line
        for line in at_end:
            yield line

    return write


# --- for people ---------------------------------------------------------------------------------


async def _markdown(excerpt: Excerpt) -> Pieces:
    order = await excerpt.order()
    labels = await excerpt.labels()
    shows = _shows(excerpt, len(order), order.leaves())
    yield markdown.front(excerpt.info, shows, excerpt.detail)
    branch, previous = 1, None
    async for message in excerpt.in_order(order):
        marks = labels.get(message.id, [])
        if message.parent_id != previous:
            branch += 1
            yield markdown.branch(branch, message, order.is_on_path(message.id))
        if excerpt.whole_tree and message.id == excerpt.head:
            marks = [*marks, "head"]
        yield markdown.section(message, marks, follows=excerpt.whole_tree, detail=excerpt.detail)
        previous = message.id


async def _html(excerpt: Excerpt) -> Pieces:
    from sessiontree.formats.writing.html import Page  # with markdown-it, 40 ms

    outline, labels = await excerpt.outline(), await excerpt.labels()
    shows = _shows(excerpt, len(outline), outline.leaves())
    page = Page(excerpt.info, outline, labels, shows, excerpt.detail)
    yield page.begin()
    async for message in excerpt.in_order(outline):
        yield page.article(message)
    yield page.begin_rows()
    async for message in excerpt.in_order_again(outline):
        yield page.row(message)
    yield page.end()


async def _csv(excerpt: Excerpt) -> Pieces:
    order = await excerpt.order()
    labels = await excerpt.labels()
    yield table.header()
    async for message in excerpt.messages():
        if message.id in order:  # not what was added since
            on_path, is_head = order.is_on_path(message.id), message.id == excerpt.head
            told = labels.get(message.id, ())
            yield table.row(message, on_path=on_path, is_head=is_head, labels=told)


async def _mermaid(excerpt: Excerpt) -> Pieces:
    tree = await excerpt.tree()
    yield graph.mermaid(tree, _shows(excerpt, len(tree), len(tree.leaves())))


async def _dot(excerpt: Excerpt) -> Pieces:
    tree = await excerpt.tree()
    for piece in graph.dot(tree, _shows(excerpt, len(tree), len(tree.leaves()))):
        yield piece


# --- for providers and trainers -----------------------------------------------------------------


def _request_of(target: str) -> Write:
    """The request of the path; of the whole tree, one for each leaf, a line each."""

    async def write(excerpt: Excerpt) -> Pieces:
        async for path in _paths(excerpt):
            yield json_line(requests.request(path, target))

    return write


async def _sharegpt(excerpt: Excerpt) -> Pieces:
    async for path in _paths(excerpt):
        is_active = path[-1].id == excerpt.head
        yield json_line(sharegpt.conversation(path, "path" if is_active else "branch"))


async def _paths(excerpt: Excerpt) -> AsyncIterator[list[Message]]:
    """The path of the head; of the whole tree, that of each leaf at a boundary."""
    if not excerpt.whole_tree:
        if excerpt.head is not None:
            yield await excerpt.path(excerpt.head)
        return
    for leaf in (await excerpt.tree()).leaves():
        if leaf.is_boundary:
            yield await excerpt.path(leaf.id)


async def _oasst(excerpt: Excerpt) -> Pieces:
    trees = oasst.Trees(excerpt.what)
    labels = await excerpt.labels()
    async for message in excerpt.in_order(await excerpt.order()):
        yield trees.add(message, labels.get(message.id, ()))
    yield trees.end()


async def _otel(excerpt: Excerpt) -> Pieces:
    order = await excerpt.order()
    labels, info = await excerpt.labels(), excerpt.info
    async for message in excerpt.messages():
        if message.id in order:
            on_path = order.is_on_path(message.id)
            told = labels.get(message.id, ())
            yield otel.record_line(message, info, shows=excerpt.what, on_path=on_path, labels=told)


async def _dpo(excerpt: Excerpt) -> Pieces:
    async for verdict, told in _judged(excerpt, lambda verdict: verdict.tells_apart):
        for row in preferences.dpo_rows(verdict, told):
            yield json_line(row)


async def _kto(excerpt: Excerpt) -> Pieces:
    def is_wanted(verdict: preferences.Verdict) -> bool:
        return verdict.is_absolute or verdict.tells_apart

    async for verdict, told in _judged(excerpt, is_wanted):
        for row in preferences.kto_rows(verdict, told):
            yield json_line(row)


async def _judged(
    excerpt: Excerpt, is_wanted: Callable[[preferences.Verdict], bool]
) -> AsyncIterator[tuple[preferences.Verdict, dict[int, preferences.Told]]]:
    """The answers to each prompt, judged and told; of the active path, the answers to
    prompts that are on it."""
    tree = await excerpt.full_tree()
    on_path = tree.path_ids()
    for prompt, firsts in _answers(tree).items():
        if not (excerpt.whole_tree or prompt in on_path):
            continue
        found = [await _answer(excerpt, tree, first, on_path) for first in firsts]
        verdict = preferences.judge([answer for answer in found if answer is not None])
        if verdict.judged and is_wanted(verdict):
            yield verdict, await _told(excerpt, prompt, verdict)


async def _told(
    excerpt: Excerpt, prompt: int, verdict: preferences.Verdict
) -> dict[int, preferences.Told]:
    asked = await excerpt.path(prompt)
    told: dict[int, preferences.Told] = {}
    for answer, _ in verdict.judged:
        one = preferences.tell(asked, await excerpt.path(answer.said[-1].id))
        if one is not None:
            told[answer.said[0].id] = one
    return preferences.distinct(told)


def _answers(tree: Tree) -> dict[int, list[Node]]:
    """Prompt → the first messages of its answers, oldest first. Marks between do not count."""
    said: dict[int, Node | None] = {}
    found: dict[int, list[Node]] = {}
    for node in tree.nodes:
        above = None if node.parent_id is None else said[node.parent_id]
        said[node.id] = above if node.role == "mark" else node
        if node.role == "assistant" and above is not None and above.role != "assistant":
            found.setdefault(above.id, []).append(node)
    for firsts in found.values():
        firsts.sort(key=lambda node: node.id)
    return found


async def _answer(
    excerpt: Excerpt, tree: Tree, first: Node, on_path: frozenset[int]
) -> preferences.Answer | None:
    """An answer with all of its messages; None when its calls never got their results."""
    nodes = [first]
    while len(nodes[-1].children) == 1:
        following = tree.node(nodes[-1].children[0])
        if following.role != "assistant":
            break
        nodes.append(following)
    if not nodes[-1].is_boundary and not await _is_answered(excerpt, tree, nodes[-1]):
        return None
    said = [await excerpt.message(node.id) for node in nodes]
    labels = [label for node in nodes for label in node.labels]
    return preferences.Answer(said, labels, first.id in on_path)


async def _is_answered(excerpt: Excerpt, tree: Tree, caller: Node) -> bool:
    """True when the calls got their results on a branch below, and these are not ours."""
    waiting = list(caller.children)
    while waiting:
        node = tree.node(waiting.pop())
        if kind_of(await excerpt.message(node.id)) == "interrupted":
            continue
        if node.is_boundary:
            return True
        waiting += node.children
    return False


# --- The table ----------------------------------------------------------------------------------

WRITERS: dict[str, Writer] = {
    "jsonl": Writer(_jsonl, whole_tree=True),
    "claude_code": Writer(_back_to("claude_code", ClaudeCodeRows)),
    "pi": Writer(_back_to("pi", PiRows)),
    "codex": Writer(_back_to("codex", CodexRows)),
    "markdown": Writer(_markdown, has_detail=True),
    "html": Writer(_html, whole_tree=True, has_detail=True),
    **{target: Writer(_request_of(target)) for target in requests.PROVIDERS},
    "sharegpt": Writer(_sharegpt),
    "oasst": Writer(_oasst, whole_tree=True),
    "dpo": Writer(_dpo, whole_tree=True),
    "kto": Writer(_kto, whole_tree=True),
    "csv": Writer(_csv, whole_tree=True),
    "mermaid": Writer(_mermaid, whole_tree=True),
    "dot": Writer(_dot, whole_tree=True),
    "otel": Writer(_otel),
}


def writer(format: str) -> Writer:
    """The writer of a format; FormatError lists those that there are."""
    if format in WRITERS:
        return WRITERS[format]
    known = ", ".join(WRITERS)
    raise FormatError(f"there is no format {format!r} to export to", hint=f"formats: {known}")
