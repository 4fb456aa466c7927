"""Claude Code's subagents: files beside a session, branches of the same conversation."""

from __future__ import annotations

from pathlib import Path

from agents import chat_of, roles, sound, write
from planted import answer, result, user

import sessiontree
from sessiontree.transfer import Import, import_all


async def test_subagents_of_a_folder_are_trees_of_the_same_conversation(tmp_path: Path):
    side = {"isSidechain": True, "agentId": "x"}
    folder = tmp_path / "s1" / "subagents"
    folder.mkdir(parents=True)
    write(tmp_path / "s1.jsonl", [user("u", None), answer("a", "u", "t1"), result("r", "a", "t1")])
    write(folder / "agent-x.jsonl", [user("b", None, **side), answer("c", "b", **side)])
    async with sessiontree.open_store(":memory:") as store:
        for _ in range(2):
            done = [one async for one in import_all(store, tmp_path)]
            assert [type(one) for one in done] == [Import, Import]
            chat = await chat_of(store)
            assert sorted([await roles(chat, leaf.id) for leaf in await chat.leaves()]) == [
                "ua",
                "uat",
            ]
            assert await roles(chat) == "uat"
        await sound(store)
