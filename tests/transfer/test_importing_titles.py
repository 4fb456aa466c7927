"""A title is stored whatever is in it."""

import json
from pathlib import Path

from landed import FIXTURES

from sessiontree import Store
from sessiontree.transfer import import_file


async def test_a_title_with_half_a_character_is_stored_with_an_escape(store: Store, tmp_path: Path):
    log = json.loads((FIXTURES / "agents" / "inspect_ai.json").read_bytes())
    log["eval"]["task"] = "half \ud800 a title"
    (tmp_path / "log.json").write_text(json.dumps(log))
    done = await import_file(store, tmp_path / "log.json")
    assert all(r"half \ud800 a title" in str(chat.title) for chat in done.conversations)
    assert await store.check() == []
