"""Damaged files by the thousand, through every importer.

For each: an account of every row, or an error that says what is wrong; a sound store; windows
that providers take; and importing the file again adds nothing. The short form is part of every
run of the tests, the long one (`make fuzz`) takes 100,000 files.
"""

from __future__ import annotations

import asyncio
import faulthandler
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
import zstandard
from landed import FIXTURES, accounted
from mutations import database, mutated

import sessiontree
from sessiontree import formats
from sessiontree.core import planner, rules
from sessiontree.errors import FormatError
from sessiontree.transfer import Import, export, formats_known, import_all, import_file

SHORT, LONG = 500, 100_000
PATIENCE = 300
"""Seconds after which a file that is not done is a hang: the run ends with a traceback."""
UNREADY = {"A12", "G5"}
"""Rules that a window breaks only where it says itself that it is not ready to be sent."""

SOURCES: dict[str, Path] = {
    "claude_code": FIXTURES / "claude_code" / "quirks.jsonl",
    "pi-1": FIXTURES / "pi" / "v1.jsonl",
    "pi-2": FIXTURES / "pi" / "v2.jsonl",
    "pi-3": FIXTURES / "pi" / "v3.jsonl",
    "codex": FIXTURES / "agents" / "codex.jsonl",
    "gemini_cli": FIXTURES / "agents" / "gemini_cli.jsonl",
    "gemini_cli-json": FIXTURES / "agents" / "gemini_cli.json",
    "cline": FIXTURES / "agents" / "cline.messages.json",
    "cline-task": FIXTURES / "agents" / "1762000000000" / "api_conversation_history.json",
    "amp": FIXTURES / "agents" / "T-5b1f6c1e-0000-4000-8000-00000000cafe.json",
    "inspect_ai": FIXTURES / "agents" / "inspect_ai.json",
    "goose": FIXTURES / "agents" / "goose.jsonl",
    "opencode": FIXTURES / "agents" / "opencode.json",
    **{f"{file.stem}{file.suffix}": file for file in sorted((FIXTURES / "chats").iterdir())},
}


async def _own_format(folder: Path) -> bytes:
    async with sessiontree.open_store(":memory:") as store:
        done = await import_file(store, SOURCES["pi-3"])
        await done.conversations[0].checkpoint("here", note="a note")
        written = folder / "own.jsonl"
        await export(done.conversations[0], "jsonl", whole_tree=True, file=written)
        return written.read_bytes()


def _goose_database(folder: Path) -> bytes:
    _, *rows = [json.loads(line) for line in SOURCES["goose"].read_bytes().splitlines()]
    messages = [
        {
            "message_id": row.get("id"),
            "session_id": "s1",
            "role": row["role"],
            "content_json": row["content"],
            "created_timestamp": row.get("created"),
        }
        for row in rows
    ]
    return database(folder / "goose.db", {"sessions": [{"id": "s1"}], "messages": messages})


def _opencode_database(folder: Path) -> bytes:
    session = json.loads(SOURCES["opencode"].read_bytes())
    name = session["info"]["id"]
    tables: dict[str, list[dict[str, Any]]] = {
        "session": [{"id": name, "title": "t"}],
        "message": [],
        "part": [],
    }
    for message in session["messages"]:
        info = message["info"]
        tables["message"].append({"id": info["id"], "session_id": name, "data": info})
        for part in message["parts"]:
            row = {"id": part["id"], "message_id": info["id"], "session_id": name, "data": part}
            tables["part"].append(row)
    return database(folder / "opencode.db", tables)


def _zipped(raw: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("export/conversations.json", raw)
        archive.writestr("export/session.jsonl", SOURCES["pi-3"].read_bytes())
    return packed.getvalue()


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "zstandard": zstandard.ZstdCompressor().compress,
    "zip": _zipped,
}
"""Names of ways of packing; the damage is done before the packing, or after it."""
OTHERS = ("jsonl", "goose-database", "opencode-database", *PACKED)
EVERY = (*SOURCES, *OTHERS)


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The bytes of every source, before anything happens to them."""
    folder = tmp_path_factory.mktemp("originals")
    found = {name: path.read_bytes() for name, path in SOURCES.items()}
    found["jsonl"] = asyncio.run(_own_format(folder))
    found["goose-database"] = _goose_database(folder)
    found["opencode-database"] = _opencode_database(folder)
    found["zstandard"], found["zip"] = found["codex"], found["chatgpt.json"]
    return found


def made(name: str, original: bytes, random: Random) -> bytes:
    """One damaged file."""
    pack = PACKED.get(name)
    if pack is None:
        return mutated(random, original)
    if random.random() < 0.5:
        return pack(mutated(random, original))
    return mutated(random, pack(original))


async def survives(path: Path, format: str | None, targets: tuple[str, str]) -> bool:
    """False for a file that is refused. Either way the store is sound."""
    async with sessiontree.open_store(":memory:") as store:
        first = await brought(store, path, format)
        assert await store.check() == []
        if first is None:
            return False
        before = await contents(store, targets)
        again = await brought(store, path, format)
        assert again is not None
        assert [(done.kept, done.closed) for done in again] == [(0, 0)] * len(again)
        assert await contents(store, targets) == before
        assert await store.check() == []
    return True


async def brought(store: sessiontree.Store, path: Path, format: str | None) -> list[Import] | None:
    """What was imported, each file of it accounted for; None where all of it was refused."""
    try:
        if format is not None:
            done = [await import_file(store, path, format=format)]
        else:
            done = [one async for one in import_all(store, path) if isinstance(one, Import)]
    except FormatError:
        return None
    assert all(map(accounted, done))
    return done


async def contents(store: sessiontree.Store, targets: tuple[str, str]) -> list[Any]:
    """The head and the messages of each conversation, whose paths providers take."""
    found: list[Any] = []
    async for info in store.conversations():
        chat = await store.open(info.id)
        for leaf in (await chat.leaves())[:20]:
            await _is_valid(chat, leaf.id, targets)
        rows = [(m.id, m.parent_id, m.key, m.raw) async for m in chat.iter_messages()]
        found.append((chat.id, chat.head, rows))
    return found


async def _is_valid(chat: sessiontree.Conversation, leaf: int, targets: tuple[str, str]) -> None:
    path = await chat.path(leaf)
    system = next((m for m in reversed(path) if m.role == "system"), None)
    for target in targets:
        window = planner.plan(reversed(path), target, formats.codec, system=system)
        said = rules.violations(window.messages, target, system=window.system)
        allowed = set[str]() if window.ready else UNREADY
        assert [v for v in said if v.rule not in allowed] == [], target


async def run(name: str, original: bytes, seeds: range, folder: Path) -> int:
    """Every seed's file of a source; how many of them were imported."""
    imported = 0
    path = folder / f"file{Path(name).suffix or '.jsonl'}"
    for seed in seeds:
        random = Random(f"{name} {seed}")
        path.write_bytes(made(name, original, random))
        first = random.choice(rules.PROVIDERS)
        second = random.choice([each for each in rules.PROVIDERS if each != first])
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        try:
            imported += await survives(path, _named(name, random), (first, second))
        except BaseException as error:
            error.add_note(f"source {name!r}, seed {seed}")
            raise
        finally:
            faulthandler.cancel_dump_traceback_later()
    return imported


def _named(name: str, random: Random) -> str | None:
    """The format, where it is named and not told from the content."""
    if name in PACKED or random.random() < 0.5:
        return None
    known = [one.name for one in formats_known() if one.reads and name.startswith(one.name)]
    return max(known, key=len)


@pytest.mark.parametrize("name", EVERY)
async def test_a_damaged_file_is_accounted_for_or_refused(
    name: str, originals: dict[str, bytes], tmp_path: Path
):
    count = SHORT // len(EVERY) + 1
    assert await run(name, originals[name], range(count), tmp_path) > 0


@pytest.mark.parametrize("name", EVERY)
async def test_an_undamaged_file_is_imported(
    name: str, originals: dict[str, bytes], tmp_path: Path
):
    pack = PACKED.get(name, bytes)
    path = tmp_path / f"file{Path(name).suffix or '.jsonl'}"
    path.write_bytes(pack(originals[name]))
    assert await survives(path, None, ("anthropic", "openai_chat"))


SHARDS = 40


@pytest.mark.long
@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize("name", EVERY)
async def test_a_hundred_thousand_damaged_files_are_accounted_for_or_refused(
    name: str, shard: int, originals: dict[str, bytes], tmp_path: Path
):
    count = LONG // (len(EVERY) * SHARDS) + 1
    start = SHORT + shard * count
    assert await run(name, originals[name], range(start, start + count), tmp_path) > 0
