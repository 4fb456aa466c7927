"""Sessions of agents, brought into a store: what came in, and whether it is sound."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from planted import Planted

import sessiontree
from sessiontree import formats
from sessiontree.core import planner, rules
from sessiontree.errors import FormatError
from sessiontree.formats.transcript import kind_of
from sessiontree.transfer import Import, import_file

FIXTURES = Path(__file__).parents[2] / "fixtures" / "agents"


def write(path: Path, rows: Sequence[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


async def brought(
    store: sessiontree.Store, path: Path, format: str | None = None
) -> tuple[Import, sessiontree.Conversation]:
    """Import a file twice, and look at all that is in the store then."""
    done = await import_file(store, path, format=format)
    assert done.entries == done.kept + done.already + done.about + done.skipped
    again = await import_file(store, path, format=format)
    assert (again.kept, again.closed, again.already) == (0, 0, done.kept + done.already)
    await sound(store)
    return done, done.conversations[0]


async def sound(store: sessiontree.Store) -> None:
    """``check`` finds nothing, and every path is windowed for every provider."""
    assert await store.check() == []
    async for info in store.conversations():
        chat = await store.open(info.id)
        for leaf in await chat.leaves():
            path = await chat.path(leaf.id)
            system = next((m for m in reversed(path) if m.role == "system"), None)
            for target in rules.PROVIDERS:
                window = planner.plan(reversed(path), target, formats.codec, system=system)
                said = rules.violations(window.messages, target, system=window.system)
                allowed = set() if window.ready else {"A12", "G5"}
                assert [v for v in said if v.rule not in allowed] == [], (target, path)


async def roles(chat: sessiontree.Conversation, leaf: int | None = None) -> str:
    """The path by the first letters of its roles; "!" for a closing of ours."""
    path = await chat.path(leaf)
    return "".join("!" if kind_of(m) == "interrupted" else m.role[0] for m in path)


async def texts(chat: sessiontree.Conversation, leaf: int | None = None) -> list[str]:
    return [message.text for message in await chat.path(leaf)]


async def sent(chat: sessiontree.Conversation, target: str = "anthropic") -> str:
    """What a window says, as JSON."""
    return json.dumps((await chat.window(target=target)).messages, ensure_ascii=False)


async def survives(path: Path, format: str | None = None) -> bool:
    """True when damaged bytes could be imported; False for a FormatError. Nothing else may
    happen, and what is in the store is sound either way."""
    async with sessiontree.open_store(":memory:") as store:
        try:
            await import_file(store, path, format=format)
        except FormatError:
            return False
        finally:
            assert await store.check() == []
        return True


def plants(content: Any, format: str) -> bool:
    """The same for the plan of a file, without a store."""
    try:
        Planted(content, format).check()
    except FormatError:
        return False
    return True


def objects(words: str) -> st.SearchStrategy[dict[str, Any]]:
    """JSON objects of any shape, whose keys and texts are words that mean something to a
    format."""
    word = st.sampled_from(words.split())
    simple = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | word
    value = st.recursive(
        simple,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(word, inner, max_size=5),
        max_leaves=10,
    )
    return st.dictionaries(word, value, max_size=6)


def damaged(raw: bytes) -> Iterable[bytes]:
    """What becomes of files: cut off, byte order marks, other line ends, NULs, wrong bytes."""
    half = len(raw) // 2
    yield raw[:half]
    yield raw[: len(raw) - 3]
    yield b"\xef\xbb\xbf" + raw
    yield raw.replace(b"\n", b"\r\n")
    yield raw[:half] + bytes(64) + raw[half:]
    yield raw + bytes(4096)
    yield raw[:half] + b"\xff\xfe" + raw[half:]
    yield raw + b"[" * 100_000
    yield raw + b'{"id": ' * 100_000
    yield b""
    yield b"\n\n"


async def chat_of(store: sessiontree.Store) -> sessiontree.Conversation:
    """The only conversation there is."""
    (info,) = [info async for info in store.conversations()]
    return await store.open(info.id)
