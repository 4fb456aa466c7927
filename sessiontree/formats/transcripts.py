"""The transcript formats: which there are, and which a file is in.

A module of this package that reads transcripts has a constant ``READER``; it is imported
when it is first needed.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import NamedTuple, cast

from sessiontree.errors import FormatError
from sessiontree.formats.transcript import Head, Reader


class KnownFormat(NamedTuple):
    """A format that conversations come from or go to."""

    name: str
    reads: bool
    writes: bool
    about: str


KNOWN = (
    KnownFormat("jsonl", True, True, "sessiontree's own, one message a line; loses nothing"),
    KnownFormat("claude_code", True, True, "Claude Code session files (.jsonl)"),
    KnownFormat("pi", True, True, "pi session files, versions 1 to 3 (.jsonl)"),
    KnownFormat("codex", True, True, "Codex rollout files (.jsonl, .jsonl.zst)"),
    KnownFormat("gemini_cli", True, False, "Gemini CLI session files (.jsonl, .json)"),
    KnownFormat("cline", True, False, "Cline and Roo Code sessions (.json)"),
    KnownFormat("amp", True, False, "Amp's threads (T-….json)"),
    KnownFormat("goose", True, False, "Goose sessions (sessions.db, .jsonl, .json)"),
    KnownFormat("opencode", True, False, "opencode sessions (opencode.db, .json, its storage)"),
    KnownFormat("chatgpt", True, False, "ChatGPT's export (conversations.json)"),
    KnownFormat("claude_ai", True, False, "Claude.ai's export (conversations.json)"),
    KnownFormat("open_webui", True, False, "Open WebUI's export of chats (.json)"),
    KnownFormat("sillytavern", True, False, "SillyTavern's chats (.jsonl)"),
    KnownFormat("librechat", True, False, "LibreChat's export of a conversation (.json)"),
    KnownFormat("oasst", True, True, "Open Assistant's message trees, for training (.jsonl)"),
    KnownFormat("inspect_ai", True, False, "Inspect's logs of evaluations, a sample each (.json)"),
    KnownFormat("sharegpt", True, True, "conversations by turns, for training (.json, .jsonl)"),
    KnownFormat("openai_chat", True, True, "a request of OpenAI's Chat Completions (.json)"),
    KnownFormat("openai_responses", True, True, "a request of OpenAI's Responses (.json)"),
    KnownFormat("anthropic", True, True, "a request of Anthropic's Messages (.json)"),
    KnownFormat("gemini", True, True, "a request of Gemini's generateContent (.json)"),
    KnownFormat("bedrock", True, True, "a request of Bedrock's Converse (.json)"),
    KnownFormat("markdown", False, True, "for people: text with front matter"),
    KnownFormat("html", False, True, "for people: one page to walk the tree in, without network"),
    KnownFormat("dpo", False, True, "for training: a better and a worse answer a line (.jsonl)"),
    KnownFormat("kto", False, True, "for training: an answer, good or bad, a line (.jsonl)"),
    KnownFormat("csv", False, True, "for spreadsheets: one message a row"),
    KnownFormat("mermaid", False, True, "a drawing of the tree for Markdown pages"),
    KnownFormat("dot", False, True, "a drawing of the tree for Graphviz"),
    KnownFormat("otel", False, True, "OpenTelemetry log records of the GenAI conventions (.jsonl)"),
)


def formats_known() -> tuple[KnownFormat, ...]:
    """The formats of files that can be imported or exported."""
    return KNOWN


def reader(name: str) -> Reader:
    """The reader of a format; FormatError lists those that there are."""
    if not any(known.name == name and known.reads for known in KNOWN):
        raise FormatError(f"there is no format {name!r} to import from", hint=_list_of_readers())
    return _load(name)


@cache
def _load(name: str) -> Reader:
    requests = import_module("sessiontree.formats.requests").READERS
    if name in requests:
        return requests[name]
    return cast(Reader, import_module(f"sessiontree.formats.{name}").READER)


def detect(head: bytes, file_name: str) -> str:
    """The name of the format of a file, by its first bytes (``transcript.HEAD`` of them).

    FormatError when none knows them.
    """
    start = Head(head, file_name)
    for known in KNOWN:
        if known.reads and _load(known.name).recognises(start):
            return known.name
    if not head.strip():
        raise FormatError("it is empty", file=file_name)
    what = "its format is not one that is known"
    raise FormatError(what, file=file_name, hint=_list_of_readers())


def _list_of_readers() -> str:
    return "formats: " + ", ".join(known.name for known in KNOWN if known.reads)
