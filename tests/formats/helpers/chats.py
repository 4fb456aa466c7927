"""Files of JSON documents, read and planted, one tree a conversation."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from planted import Planted

from sessiontree import formats
from sessiontree.core.message import Decoded
from sessiontree.errors import FormatError
from sessiontree.formats import transcripts
from sessiontree.formats.document import Document, DocumentReader
from sessiontree.formats.planting import plan
from sessiontree.formats.skeleton import Skeleton
from sessiontree.formats.transcript import Notes, Source

FIXTURES = Path(__file__).parents[2] / "fixtures" / "chats"
FILES = {
    "chatgpt": "chatgpt.json",
    "claude_ai": "claude_ai.json",
    "open_webui": "open_webui.json",
    "librechat": "librechat_tree.json",
    "sillytavern": "sillytavern.jsonl",
    "oasst": "oasst.jsonl",
    "sharegpt": "sharegpt.json",
    "openai_chat": "openai_chat.json",
    "openai_responses": "openai_responses.json",
    "anthropic": "anthropic.json",
    "bedrock": "bedrock.json",
    "gemini": "gemini.json",
}


class Chat(Planted):
    """One conversation of a file."""

    def __init__(self, document: Document, reader: DocumentReader) -> None:
        self.document = document
        self.skeleton = Skeleton(document, reader)
        for _ in self.skeleton.read():
            pass
        self.plan = plan(self.skeleton)

    def decoded(self, name: str) -> Decoded:
        """What the codec sees in the node of this id, as it is stored."""
        at = self.skeleton.ids[name]
        reader, entry = self.skeleton.reader, self.skeleton.entries[at]
        message = reader.message(self.skeleton.source.text(entry), entry)
        return formats.codec(message.format).decode(json.loads(message.content))

    def native(self, name: str) -> Any:
        entry = self.skeleton.entries[self.skeleton.ids[name]]
        return json.loads(self.skeleton.source.text(entry))

    def role(self, name: str) -> str:
        return self.skeleton.entries[self.skeleton.ids[name]].role


def bytes_of(content: object) -> bytes:
    if isinstance(content, bytes):
        return content
    return (content if isinstance(content, str) else json.dumps(content)).encode()


def chats(content: object, format: str, name: str = "export.json") -> tuple[list[Chat], list[str]]:
    """The conversations of a file, each checked, and what is told of those that are none."""
    reader = transcripts.reader(format)
    assert isinstance(reader, DocumentReader)
    skipped = Notes()
    found: list[Chat] = []
    for document in reader.documents(Source(io.BytesIO(bytes_of(content)), name), skipped):
        try:
            chat = Chat(document, reader)
        except FormatError as error:
            skipped.add(document.number, error.what)
        else:
            chat.check()
            found.append(chat)
    return found, list(map(str, skipped))


def only(content: object, format: str) -> Chat:
    (found,), told = chats(content, format)
    assert told == []
    return found


def fixture(format: str) -> tuple[list[Chat], list[str]]:
    return chats((FIXTURES / FILES[format]).read_bytes(), format, FILES[format])
