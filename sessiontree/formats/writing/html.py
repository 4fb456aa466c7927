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
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from sessiontree.core.message import Message, Part
from sessiontree.core.records import ConversationInfo
from sessiontree.formats.transcript import kind_of
from sessiontree.formats.writing import blocks
from sessiontree.formats.writing.detail import Detail, parts_shown
from sessiontree.formats.writing.lines import as_json
from sessiontree.formats.writing.places import Place, Places
from sessiontree.formats.writing.times import iso, minute

NAMES = {
    "system": "System",
    "user": "User",
    "assistant": "Assistant",
    "tool": "Tool",
    "mark": "Mark",
}


class Page:
    """The page of a tree (of a path, one without branches), a piece at a time: ``begin``, then
    an ``article`` for each message in display order, ``begin_rows``, a ``row`` for each in the
    same order, ``end``. It holds the names of tools at open calls, and nothing of the rest."""

    def __init__(
        self,
        info: ConversationInfo,
        places: Places,
        labels: Mapping[int, Sequence[str]],
        shows: str,
        detail: Detail = "full",
    ) -> None:
        """``labels``: message id → its checkpoints. ``places`` knows what ``detail`` shows."""
        self._info = info
        self._places = places
        self._labels = labels
        self._shows = shows
        self._detail: Detail = detail
        self._tools: dict[str, str] = {}
        """Call id → the tool it called, of the calls that are open: results may not say."""
        self._tools_at: dict[int, dict[str, str]] = {}
        """The same at messages with open calls that several messages follow."""

    def begin(self) -> str:
        """The page up to its first message."""
        return _begin(self._info, self._shows)

    def article(self, message: Message) -> str:
        """One message; "" when the level of detail does not show it."""
        self._see_calls(message)
        place = self._places.place(message.id)
        said = ""
        if place is not None:
            parts = [self._named(part) for part in parts_shown(message, self._detail) or []]
            labels = self._labels.get(message.id, ())
            said = _article(message, place, labels, blocks.body(parts))
        self._forget_calls(message)
        return said

    def _see_calls(self, message: Message) -> None:
        if message.parent_id in self._tools_at:
            self._tools = dict(self._tools_at[message.parent_id])
        self._tools |= {call.id: call.name for call in message.tool_calls}

    def _forget_calls(self, message: Message) -> None:
        """What follows a message answers no other calls than those that are open there."""
        if message.is_boundary:
            self._tools = {}
        elif self._places.is_fork(message.id):
            self._tools_at[message.id] = dict(self._tools)

    def _named(self, part: Part) -> Part:
        if part.get("type") != "tool_call_response" or part.get("name"):
            return part
        name = self._tools.get(str(part.get("id")))
        return part | {"name": name} if name else part

    def begin_rows(self) -> str:
        """What comes behind the last message, up to the first row of the outline: these are
        data, for the script."""
        head = self._places.head_row()
        return f'</main>\n<script type="application/json" id="data">{{"head":{head},"rows":['

    def row(self, message: Message) -> str:
        """The row of a message; "" when it is not shown."""
        place = self._places.place(message.id)
        if place is None:
            return ""
        labels = list(self._labels.get(message.id, ()))
        told = [message.id, place.row_above, place.level, message.role, message.preview, labels]
        data = as_json(told)
        for character in "<>&":
            data = data.replace(character, f"\\u{ord(character):04x}")
        return f",{data}" if place.row else data

    def end(self) -> str:
        """What comes behind the last row."""
        return "]}</script>\n</body>\n</html>\n"


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


def _article(message: Message, place: Place, labels: Sequence[str], said: str) -> str:
    """One message; ``said`` is its body."""
    name, role, above = message.id, message.role, place.above
    classes = role if place.on_path else f"{role} off"
    facts = [
        f'<a class="role" href="#m{name}">{NAMES[role]} {name}</a>',
        f'<time datetime="{iso(message.created_at)}">{minute(message.created_at)}</time>',
        *([f"<code>{blocks.text(message.model)}</code>"] if message.model else []),
        *([blocks.text(kind)] if (kind := kind_of(message)) else []),
        *(f'<b class="label">⚑ {blocks.text(label)}</b>' for label in labels),
        *(['<b class="head">head</b>'] if place.is_head else []),
        *([_switch(place)] if place.siblings > 1 else []),
    ]
    where = f'after <a href="#m{above}">message {above}</a>' if above else "from the beginning"
    begins = f'<p class="from">Another branch goes on {where}.</p>' if place.sibling > 1 else ""
    facts_line = " ".join(facts)
    return (
        f'<article id="m{name}" class="{classes}">{begins}'
        f"<header>{facts_line}</header>{said}</article>\n"
    )


def _switch(place: Place) -> str:
    """Sibling 2/3, with a button to either side."""
    return (
        '<span class="switch"><button type="button" data-step="-1" aria-label="Previous sibling">'
        f"&lsaquo;</button><span>{place.sibling}/{place.siblings}</span>"
        '<button type="button" data-step="1" aria-label="Next sibling">&rsaquo;</button></span>'
    )


@cache
def _page(name: str) -> str:
    """A file of the page. A line end less or more would be another hash."""
    text = files("sessiontree.formats.writing").joinpath("page", name).read_text("utf-8")
    return text.replace("\r\n", "\n")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
