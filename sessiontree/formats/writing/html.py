"""A conversation as one page: the tree to walk, and what was said, in a file of its own.

It needs no network and no server, and is read from top to bottom where scripts are off. The
page says itself what it may do (Content-Security-Policy): run its own script and use its
own style, both named by their hashes; show images that it holds. Nothing of what is in the
conversation is a script, a style or a handler; ``blocks`` sees to that, and the policy holds
even if it did not.

    page/page.css   how it looks: light and dark, on screen and on paper
    page/page.js    the outline, the switching between siblings, keys, search
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Container, Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from sessiontree.core.message import Message, Part
from sessiontree.core.outline import Row, outline
from sessiontree.core.records import ConversationInfo
from sessiontree.core.tree import Node, Tree
from sessiontree.formats.transcript import kind_of
from sessiontree.formats.writing import blocks
from sessiontree.formats.writing.detail import Detail, parts_shown
from sessiontree.formats.writing.lines import as_json
from sessiontree.formats.writing.times import iso, minute

NAMES = {
    "system": "System",
    "user": "User",
    "assistant": "Assistant",
    "tool": "Tool",
    "mark": "Mark",
}


class Page:
    """The page of a tree (of a path, one without branches): ``begin``, then an ``article`` for
    each message in display order, then ``end``."""

    def __init__(
        self, info: ConversationInfo, tree: Tree, shows: str, detail: Detail = "full"
    ) -> None:
        self._info = info
        self._shows = shows
        self._detail: Detail = detail
        self._rows = {row.node.id: row for row in outline(tree, show=_shown(detail))}
        self._above = _shown_above(tree, self._rows)
        self._tools: dict[str, str] = {}
        """Call id → the tool it called, of the newest call so far: results may not say."""

    def begin(self) -> str:
        """The page up to its first message."""
        return _begin(self._info, self._shows)

    def article(self, message: Message) -> str:
        """One message; "" when the level of detail does not show it."""
        row = self._rows.get(message.id)
        self._tools |= {call.id: call.name for call in message.tool_calls}
        if row is None:
            return ""
        parts = [self._named(part) for part in parts_shown(message, self._detail) or []]
        return _article(row, message, self._above[message.id], blocks.body(parts))

    def _named(self, part: Part) -> Part:
        if part.get("type") != "tool_call_response" or part.get("name"):
            return part
        name = self._tools.get(str(part.get("id")))
        return part | {"name": name} if name else part

    def end(self) -> str:
        """What comes behind the last message: the rows of the outline, for the script."""
        return _end(list(self._rows.values()), self._above)


def _shown(detail: Detail) -> Callable[[Node], bool] | None:
    """By role; what a message of such a role says may still be nothing."""
    if detail == "full":
        return None
    roles = {
        "high": ("system", "user", "assistant", "tool"),
        "low": ("user", "assistant"),
        "user-only": ("user",),
    }[detail]
    return lambda node: node.role in roles


def _shown_above(tree: Tree, shown: Container[int]) -> dict[int, int | None]:
    """For each message the nearest shown one that it follows."""
    above: dict[int | None, int | None] = {None: None}
    found: dict[int, int | None] = {}
    for node in tree.nodes:  # a message comes after the one it follows
        parent = node.parent_id
        is_shown = parent is not None and parent in shown
        above[node.id] = parent if is_shown else above[parent]
        found[node.id] = above[node.id]
    return found


def _begin(info: ConversationInfo, shows: str) -> str:
    title = blocks.text(info.title or info.topic or f"Conversation {info.id}")
    facts = [
        f"conversation {info.id}",
        *([f"of {info.owner}"] if info.owner else []),
        *([f"topic {info.topic}"] if info.topic else []),
        f"begun {minute(info.created_at)}",
    ]
    style, script = _page("page.css"), _page("page.js")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="sessiontree">
<title>{title}</title>
<style>{style}</style>
<script>{script}</script>
</head>
<body>
<header class="page">
<h1>{title}</h1>
<p>{blocks.text(" · ".join(facts))} · shows {blocks.text(shows)}</p>
</header>
{_TOOLS}
<main>
"""


_TOOLS = """<nav class="tools" aria-label="Tree">
<div class="bar">
<input id="search" type="search" placeholder="Search (/)" aria-label="Search all messages">
<select id="filter" aria-label="Which messages the outline shows">
<option value="all">all</option><option value="talk">no tools</option>
<option value="user">user</option><option value="label">labels</option>
</select>
<button type="button" id="home" title="Go to the head (H)">head</button>
<button type="button" id="help" title="Keys (?)" aria-expanded="false">?</button>
</div>
<table id="keys" hidden>
<tr><td>j k</td><td>next, previous message</td></tr>
<tr><td>J K</td><td>next, previous user message</td></tr>
<tr><td>[ ]</td><td>previous, next sibling</td></tr>
<tr><td>← →</td><td>fold or go to what it follows; unfold or go on</td></tr>
<tr><td>g G H</td><td>first, last on the path, head</td></tr>
<tr><td>/ n N</td><td>search, next hit, previous hit</td></tr>
<tr><td>f</td><td>next filter</td></tr>
<tr><td>o</td><td>open or close what is folded in a message</td></tr>
</table>
<p id="status" role="status" aria-live="polite"></p>
<div id="outline" role="tree" tabindex="0" aria-label="Outline"><div id="rows"></div></div>
</nav>"""


def _article(row: Row, message: Message, above: int | None, said: str) -> str:
    """One message. ``above``: the shown message that it follows; ``said``: its body."""
    node = row.node
    classes = node.role if row.on_path else f"{node.role} off"
    facts = [
        f'<a class="role" href="#m{node.id}">{NAMES[node.role]} {node.id}</a>',
        f'<time datetime="{iso(message.created_at)}">{minute(message.created_at)}</time>',
        *([f"<code>{blocks.text(message.model)}</code>"] if message.model else []),
        *([blocks.text(kind)] if (kind := kind_of(message)) else []),
        *(f'<b class="label">⚑ {blocks.text(label)}</b>' for label in node.labels),
        *(['<b class="head">head</b>'] if row.is_head else []),
        *([_switch(row)] if row.count > 1 else []),
    ]
    where = f'after <a href="#m{above}">message {above}</a>' if above else "from the beginning"
    begins = f'<p class="from">Another branch goes on {where}.</p>' if row.index > 1 else ""
    facts_line = " ".join(facts)
    return (
        f'<article id="m{node.id}" class="{classes}">{begins}'
        f"<header>{facts_line}</header>{said}</article>\n"
    )


def _switch(row: Row) -> str:
    """Sibling 2/3, with a button to either side."""
    return (
        '<span class="switch"><button type="button" data-step="-1" aria-label="Previous sibling">'
        f"&lsaquo;</button><span>{row.index}/{row.count}</span>"
        '<button type="button" data-step="1" aria-label="Next sibling">&rsaquo;</button></span>'
    )


def _end(rows: Iterable[Row], above: Mapping[int, int | None]) -> str:
    place: dict[int | None, int] = {None: -1}
    told: list[list[Any]] = []
    head = -1
    for at, row in enumerate(rows):
        node = row.node
        place[node.id] = at
        head = at if row.on_path else head
        told.append(
            [node.id, place[above[node.id]], row.level, node.role, node.preview, list(node.labels)]
        )
    data = as_json({"head": head, "rows": told})
    for character in "<>&":
        data = data.replace(character, f"\\u{ord(character):04x}")
    return f'</main>\n<script type="application/json" id="data">{data}</script>\n</body>\n</html>\n'


@cache
def _page(name: str) -> str:
    """A file of the page. A line end less or more would be another hash."""
    text = files("sessiontree.formats.writing").joinpath("page", name).read_text("utf-8")
    return text.replace("\r\n", "\n")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
