"""What a message says, as HTML that nothing runs in.

Text is Markdown (by markdown-it, its HTML switched off, so that tags are shown as text);
everything else is escaped. Links go to the schemes of ALLOWED only and are never followed by
the page itself; images are shown when they are data of the kinds of IMAGES, else named.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping, Sequence
from functools import cache
from html import escape
from typing import Any, cast

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

from sessiontree.core.message import Part
from sessiontree.formats import shapes
from sessiontree.formats.glance import first_line
from sessiontree.formats.writing.lines import pretty, sayable

ALLOWED = re.compile(r"(?i)(?:https?://|mailto:)[^\s\x00-\x20<>\"]+\Z")
"""Links that may be followed: an absolute address of one of these schemes."""
IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Not SVG: it is a document, which may hold scripts."""
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]+={0,2}\s*\Z")

LONGEST = 200_000
"""Characters of a text that is read as Markdown; a longer one is shown as it is."""


def text(value: str) -> str:
    """Plain text, safe between tags and in quoted attributes."""
    return escape(sayable(value.replace("\0", "\N{SYMBOL FOR NULL}")), quote=True)


def body(parts: Sequence[Part]) -> str:
    """The parts of a message, one block each."""
    return "".join(block for part in parts if (block := _block(part)))


def _block(part: Part) -> str:
    kind = part.get("type")
    if kind == "text":
        return markdown(str(part.get("content") or ""))
    if kind == "reasoning":
        said = str(part.get("content") or "")
        return folded("reasoning", "Reasoning", markdown(said)) if said.strip() else ""
    if kind == "tool_call":
        return _call(part)
    if kind == "tool_call_response":
        return _result(part)
    if shapes.is_media(part) or shapes.is_kept_media(part):
        return _media(part)
    if kind == "message":
        return ""
    data = part.get("native") or {key: part[key] for key in part if key != "message"}
    return folded("data", text(str(kind)), _data(data))


def folded(name: str, summary: str, inside: str) -> str:
    """A block that opens when it is asked for; ``summary`` and ``inside`` are HTML."""
    return f'<details class="{name}"><summary>{summary}</summary>{inside}</details>'


def _call(part: Part) -> str:
    name = text(str(part.get("name") or "?"))
    summary = f"Call <b>{name}</b>"
    if "arguments" not in part:
        return f'<p class="call">{summary}</p>'
    arguments = part["arguments"]
    glimpse = text(_glimpse(arguments))
    return folded("call", f"{summary} <span>{glimpse}</span>", _arguments(arguments))


def _glimpse(arguments: object) -> str:
    """The first argument that is text."""
    values = cast("Mapping[str, object]", arguments).values() if _is_object(arguments) else ()
    return first_line(next((value for value in values if isinstance(value, str)), ""))


def _is_object(value: object) -> bool:
    return isinstance(value, Mapping)


def _arguments(arguments: object) -> str:
    if not _is_object(arguments):
        return _data(arguments)
    pairs = cast("Mapping[str, object]", arguments).items()
    return "<dl>" + "".join(f"<dt>{text(k)}</dt><dd>{_data(v)}</dd>" for k, v in pairs) + "</dl>"


def _result(part: Part) -> str:
    is_error = bool(part.get("is_error"))
    name = text(str(part.get("name") or part.get("id") or ""))
    glimpse = text(first_line(shapes.said_by(part)))
    summary = f"{'Error' if is_error else 'Result'} <b>{name}</b> <span>{glimpse}</span>"
    response = _response(part.get("response"))
    return folded("result error" if is_error else "result", summary, response)


def _response(response: object) -> str:
    if not shapes.are_parts(response):
        return _data(response)
    inner = cast("Sequence[Part]", response)
    return "".join(
        _pre(str(part.get("content"))) if part.get("type") == "text" else _block(part)
        for part in inner
    )


def _data(value: object) -> str:
    """Text as it is, anything else as JSON."""
    if isinstance(value, str):
        return _pre(value)
    return _pre(pretty(value))


def _pre(value: str) -> str:
    """``value``; HTML passes over a line end right behind the tag, so there is one more."""
    return f"<pre>\n{text(value)}</pre>"


def _media(part: Part) -> str:
    words = text(shapes.media_in_words(part, "this page").replace("not sent", "not shown"))
    content, mime_type = part.get("content"), part.get("mime_type")
    if part.get("type") == "blob" and mime_type in IMAGES and isinstance(content, str):
        if not _BASE64.match(content):
            return f"<p>{words}</p>"
        alternative = text(str(part.get("filename") or mime_type))
        return f'<p><img src="data:{mime_type};base64,{text(content)}" alt="{alternative}"></p>'
    address = part.get("uri")
    if isinstance(address, str) and ALLOWED.match(address):
        return f'<p><a href="{text(address)}" rel="{_REL}">{words}</a></p>'
    return f"<p>{words}</p>"


# --- Markdown -------------------------------------------------------------------------------

_REL = "noopener noreferrer nofollow"


def markdown(source: str) -> str:
    """Text as a person reads it."""
    if not source.strip():
        return ""
    if len(source) > LONGEST:
        return _pre(source)
    return f'<div class="md">{_reader().render(sayable(source))}</div>'


@cache
def _reader() -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": False, "breaks": True, "linkify": False})
    reader.enable(["table", "strikethrough"])
    reader.disable(["image", "html_block", "html_inline"])
    reader.validateLink = lambda url: ALLOWED.match(url) is not None  # pyright: ignore[reportAttributeAccessIssue]
    reader.add_render_rule("link_open", _link)
    for cell in ("th_open", "td_open"):
        reader.add_render_rule(cell, _cell)
    return reader


Env = MutableMapping[str, Any]


def _link(
    self: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: Env
) -> str:
    tokens[at].attrSet("rel", _REL)
    return self.renderToken(tokens, at, options, env)


def _cell(
    self: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: Env
) -> str:
    """Without the style by which it is aligned: the page allows no style but its own."""
    tokens[at].attrs.pop("style", None)
    return self.renderToken(tokens, at, options, env)
