"""Codecs on messages that real programs wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sessiontree.formats import codec, read, recognise


def objects(*files: Path) -> Iterator[dict[str, Any]]:
    for file in files:
        for line in file.read_text("utf-8").splitlines():
            yield json.loads(line)


def as_text(content: Any) -> Any:
    """Content whose single plain text stands alone, as codecs write it."""
    plain = isinstance(content, list) and len(content) == 1 and set(content[0]) == {"type", "text"}
    return content[0]["text"] if plain else content


def test_every_message_that_claude_code_wrote_comes_back(corpus: Path) -> None:
    files = sorted((corpus / "claude-code").glob("*.jsonl"))
    rows = [row for row in objects(*files) if isinstance(row.get("message"), dict)]
    assert len(rows) > 400
    for row in rows:
        native = row["message"]
        message = read(native, default="anthropic")
        assert message.format == "anthropic"
        role, parts = codec("anthropic").decode(native)
        (sent,) = codec("anthropic").encode(role, parts)
        expected = {"role": native["role"], "content": as_text(native["content"])}
        assert sent == expected


def test_every_item_that_codex_wrote_comes_back(corpus: Path) -> None:
    lines = objects(corpus / "codex" / "function_calls.jsonl")
    items = [line["payload"] for line in lines if line["type"] == "response_item"]
    assert items
    for item in items:
        assert recognise(item) == "openai_responses"
        decoded = codec("openai_responses").decode(item)
        (sent,) = codec("openai_responses").encode(*decoded)
        assert codec("openai_responses").decode(sent) == decoded
