"""A store that was damaged on purpose: each kind is told, and mended without losing a message."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from machine.damage import CALL, TALK, damage, everything_is_reachable, filled, overwrite, rows
from machine.faults import full, small_disk

import sessiontree
from sessiontree import BadArgument, Problem, StoreCorrupt, StoreFull, StoreReadOnly


async def repaired(
    target: Path, *kinds: str, left: tuple[str, ...] = ()
) -> tuple[list[Problem], sessiontree.Repair]:
    """Check, repair and check again; the kinds that must be told, and those that stay."""
    before = rows(target)
    async with sessiontree.open_store(target) as store:
        problems = await store.check()
        assert set(kinds) <= {problem.kind for problem in problems}, problems
        done = await store.repair()
        assert sorted({problem.kind for problem in done.left}) == sorted(left), done.left
        assert done.mended
        assert done.backup is not None
        assert rows(Path(done.backup)) == before
        await everything_is_reachable(store, before)
        again = await store.repair()
        assert again.mended == []
    return problems, done


async def path_of(target: Path, owner: str = "o", topic: str = "t") -> list[tuple[int, str]]:
    async with sessiontree.open_store(target) as store:
        chat = await store.conversation(topic, owner=owner, create=False)
        return [(message.id, message.role) for message in await chat.path()]


def told(done: sessiontree.Repair, kind: str) -> str:
    return "; ".join(mended.detail for mended in done.mended if mended.kind == kind)


BEFORE = [(1, "system"), (2, "user"), (3, "assistant"), (4, "tool"), (5, "assistant")]
WHOLE = [*BEFORE, (6, "user"), (7, "assistant")]
MORE = (10, "user")
"""What ``everything_is_reachable`` adds at the head of the first conversation that it sees."""


@pytest.fixture
async def target(tmp_path: Path) -> Path:
    return await filled(tmp_path / "s.db")


async def test_a_sound_store_is_left_alone_and_no_backup_is_made(target: Path) -> None:
    before = rows(target)
    async with sessiontree.open_store(target) as store:
        assert await store.repair() == sessiontree.Repair([], [], None)
    assert rows(target) == before
    assert os.listdir(target.parent) == ["s.db"]


# ---- a row is gone -------------------------------------------------------------------


async def test_a_lost_message_in_the_middle_leaves_a_mark_and_the_rest_in_its_place(
    target: Path,
) -> None:
    damage(target, "DELETE FROM message WHERE id = 6")
    problems, done = await repaired(target, "missing_parent")
    assert [p.message_id for p in problems if p.kind == "missing_parent"] == [7]
    assert "after message 5" in told(done, "missing_message")
    assert (await path_of(target))[:7] == [*BEFORE, (6, "mark"), (7, "assistant")]


async def test_a_lost_result_is_answered_as_lost(target: Path) -> None:
    damage(target, "DELETE FROM message WHERE id = 4")
    await repaired(target, "missing_parent")
    async with sessiontree.open_store(target) as store:
        chat = await store.conversation("t", owner="o", create=False)
        lost = await chat.message(4)
        assert (lost.role, lost.parent_id, lost.open_calls) == ("tool", 3, 0)
        assert "Lost" in str(lost.tool_results[0].response)
        assert lost.tool_results[0].id == "call_1"
        assert lost.meta == {"sessiontree": {"kind": "lost"}}


async def test_results_whose_call_is_lost_become_marks(target: Path) -> None:
    damage(target, "DELETE FROM message WHERE id = 3")
    _, done = await repaired(target, "missing_parent", "orphan_result")
    assert "never sent" in told(done, "orphan_result")
    found = await path_of(target)
    assert found[2:4] == [(3, "mark"), (4, "mark")]


async def test_a_lost_root_leaves_a_mark_at_the_root(target: Path) -> None:
    damage(target, "DELETE FROM message WHERE id = 1")
    await repaired(target, "missing_parent")
    assert (await path_of(target))[:2] == [(1, "mark"), (2, "user")]


async def test_a_lost_head_leaves_a_mark_where_it_was(target: Path) -> None:
    damage(target, "DELETE FROM message WHERE id = 7")
    await repaired(target, "bad_head", "bad_move", "bad_checkpoint")
    assert (await path_of(target))[:7] == [*BEFORE, (6, "user"), (7, "mark")]
    async with sessiontree.open_store(target) as store:
        chat = await store.conversation("t", owner="o", create=False)
        assert [(mark.label, mark.message_id) for mark in await chat.checkpoints()] == [("end", 7)]


async def test_several_lost_in_a_row_leave_one_mark_and_the_path_goes_on(target: Path) -> None:
    damage(target, "DELETE FROM message WHERE id IN (5, 6)")
    await repaired(target, "missing_parent")
    assert (await path_of(target))[:6] == [*BEFORE[:4], (6, "mark"), (7, "assistant")]


async def test_where_nothing_tells_what_a_lost_message_followed_it_is_a_root(
    tmp_path: Path,
) -> None:
    """Two branches of the same depth: which one it was of cannot be known."""
    target = tmp_path / "s.db"
    async with sessiontree.open_store(target) as store:
        chat = await store.conversation("t", owner="o")
        [root] = await chat.append({"role": "user", "content": "root"})
        for name in "ab":
            await chat.append(
                [{"role": role, "content": f"{name} {role}"} for role in ("assistant", "user")],
                parent=root.id,
            )
        await chat.append(
            [{"role": "assistant", "content": "lost"}, {"role": "user", "content": "z"}]
        )
    damage(target, "DELETE FROM message WHERE id = 6", "DELETE FROM move")
    _, done = await repaired(target, "missing_parent")
    assert "at a root" in told(done, "missing_message")
    assert (await path_of(target))[:2] == [(6, "mark"), (7, "user")]


# ---- what points into the tree -------------------------------------------------------


async def test_a_dangling_head_goes_where_its_last_move_put_it(target: Path) -> None:
    damage(target, "UPDATE conversation SET head_id = 4000 WHERE id = 1")
    await repaired(target, "bad_head")
    assert (await path_of(target))[:7] == WHOLE


async def test_a_head_of_another_conversation_goes_where_its_last_move_put_it(
    target: Path,
) -> None:
    damage(target, "UPDATE conversation SET head_id = 9 WHERE id = 1")
    await repaired(target, "bad_head")
    assert (await path_of(target))[:7] == WHOLE


async def test_a_head_inside_a_step_goes_to_the_boundary_before(target: Path) -> None:
    damage(target, "UPDATE conversation SET head_id = 3 WHERE id = 1", "DELETE FROM move")
    await repaired(target, "bad_head", "bad_move")
    assert (await path_of(target))[:2] == BEFORE[:2]


async def test_a_checkpoint_inside_a_step_goes_to_the_boundary_before(target: Path) -> None:
    damage(target, "UPDATE checkpoint SET message_id = 3")
    _, done = await repaired(target, "bad_checkpoint")
    assert "'end' is on 2 now" in told(done, "bad_checkpoint")


async def test_a_checkpoint_on_what_never_was_is_told_with_its_note(target: Path) -> None:
    damage(target, "UPDATE checkpoint SET message_id = 4000")
    _, done = await repaired(target, "bad_checkpoint")
    assert "'all said'" in told(done, "bad_checkpoint")


async def test_dangling_moves_are_left_out_of_what_undo_goes_through(target: Path) -> None:
    damage(
        target, "UPDATE move SET from_id = 4000, to_id = 4001 WHERE conversation_id = 1 AND id = 1"
    )
    await repaired(target, "bad_move")
    async with sessiontree.open_store(target) as store:
        chat = await store.conversation("t", owner="o", create=False)
        while any(move.is_current for move in await chat.history()):
            await chat.undo()


async def test_a_current_move_that_is_not_there_is_found_again(target: Path) -> None:
    damage(target, "UPDATE conversation SET move_id = 77 WHERE id = 1")
    await repaired(target, "bad_move")
    async with sessiontree.open_store(target) as store:
        chat = await store.conversation("t", owner="o", create=False)
        assert (await chat.undo() or chat).id == 7  # the append of the test itself


# ---- columns -------------------------------------------------------------------------


async def test_a_cycle_is_cut_and_what_was_in_it_stands_where_it_stood(target: Path) -> None:
    damage(target, "UPDATE message SET parent_id = 7 WHERE id = 5")
    problems, done = await repaired(target, "cycle")
    assert [p.message_id for p in problems if p.kind == "cycle"] == [5]
    assert "it follows 4 now" in told(done, "missing_parent")
    assert (await path_of(target))[:7] == WHOLE
    async with sessiontree.open_store(target) as store:
        chat = await store.conversation("t", owner="o", create=False)
        assert (await chat.message(5)).meta == {"sessiontree": {"lost_parent": 7}}


@pytest.mark.parametrize(
    ("kind", "statement"),
    [
        ("wrong_depth", "UPDATE message SET depth = depth + 3 WHERE id = 6"),
        ("wrong_open_calls", "UPDATE message SET open_calls = 2 WHERE id = 5"),
        ("wrong_open_calls", "UPDATE message SET open_calls = -1 WHERE id = 4"),
        ("wrong_system", "UPDATE message SET system_id = 8 WHERE id = 6"),
        ("unknown_role", "UPDATE message SET role = 'poet' WHERE id = 5"),
        ("wrong_content", "UPDATE message SET blob_id = 2 WHERE id = 5"),
        ("missing_reference", "UPDATE message SET ref_id = 4000 WHERE id = 5"),
        ("low_sequence", "UPDATE sqlite_sequence SET seq = 3"),
        ("low_sequence", "DELETE FROM sqlite_sequence"),
    ],
)
async def test_a_column_that_can_be_told_from_the_rest_is_put_right(
    target: Path, kind: str, statement: str
) -> None:
    damage(target, statement)
    await repaired(target, kind)
    assert (await path_of(target))[:7] == WHOLE


async def test_a_lost_conversation_is_there_again_for_nobodys_eyes(target: Path) -> None:
    damage(target, "DELETE FROM conversation WHERE id = 1")
    await repaired(target, "no_conversation")
    async with sessiontree.open_store(target) as store:
        infos = [info async for info in store.conversations("lost+found")]
        assert [info.id for info in infos] == [1]
        assert [info.id async for info in store.for_owner("").conversations()] == [2]
        path = await (await store.open(1)).path()  # the head is where the last move went
        assert [message.id for message in path][:2] == [1, 8]


# ---- contents ------------------------------------------------------------------------


async def test_a_message_whose_blob_is_gone_says_so_and_answers_its_call(target: Path) -> None:
    damage(target, "DELETE FROM blob")
    problems, _ = await repaired(target, "missing_blob")
    assert [p.message_id for p in problems if p.kind == "missing_blob"] == [4, 7]
    async with sessiontree.open_store(target) as store:
        chat = await store.conversation("t", owner="o", create=False)
        result, answer = await chat.message(4), await chat.message(7)
        assert (result.role, result.open_calls) == ("tool", 0)
        assert answer.role == "mark"
        assert "It began: yyy" in answer.text
        assert answer.meta["sessiontree"]["role"] == "assistant"


async def test_a_changed_blob_stays_told_and_is_not_taken_for_what_was_saved(
    target: Path,
) -> None:
    other = '{"role": "assistant", "content": "?"}'
    damage(target, f"UPDATE blob SET content = CAST('{other}' AS BLOB) WHERE id = 2")
    problems, done = await repaired(target, "changed_blob", left=("changed_blob",))
    assert [p.message_id for p in problems if p.kind == "changed_blob"] == [7]
    assert not done.left[0].can_mend
    async with sessiontree.open_store(target) as store:
        chat = await store.conversation("t", owner="o", create=False)
        [again] = await chat.append(TALK[-1:])
        assert (await chat.message(again.id)).text == "y" * 5000


async def test_unreadable_content_is_kept_and_stays_told(target: Path) -> None:
    damage(
        target,
        'UPDATE message SET content = \'{"role": "us\' WHERE id = 2',
        "UPDATE message SET depth = 9 WHERE id = 7",
    )
    await repaired(target, "unreadable_content", left=("unreadable_content",))


async def test_an_unreadable_result_does_not_make_what_follows_wrong(target: Path) -> None:
    damage(target, "UPDATE blob SET content = x'7b' WHERE id = 1")
    problems, _ = await repaired(
        target, "unreadable_content", left=("changed_blob", "unreadable_content")
    )
    assert {problem.kind for problem in problems} == {"changed_blob", "unreadable_content"}
    assert (await path_of(target))[:7] == WHOLE


# ---- the file ------------------------------------------------------------------------


async def test_a_damaged_index_is_made_anew(target: Path) -> None:
    empty_leaf = bytes([10, 0, 0, 0, 0, 16, 0, 0])  # a page of an index, without any entry
    overwrite(target, "message_by_parent", empty_leaf.ljust(4096, b"\0"))
    await repaired(target, "damaged_index")
    assert (await path_of(target))[:7] == WHOLE


async def test_a_repair_is_refused_where_it_may_not_write(target: Path) -> None:
    damage(target, "UPDATE conversation SET head_id = 4000 WHERE id = 1")
    async with sessiontree.open_store(target, read_only=True) as store:
        with pytest.raises(StoreReadOnly):
            await store.repair()
    async with sessiontree.open_store(target) as store:
        with pytest.raises(BadArgument, match="scoped"):
            await store.for_owner("o").repair()
    assert os.listdir(target.parent) == ["s.db"]


async def test_a_repair_without_room_for_the_backup_changes_nothing(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "2m") as disk:
        target = await filled(disk / "s.db")
        damage(target, "UPDATE conversation SET head_id = 4000 WHERE id = 1")
        async with sessiontree.open_store(target) as store:
            with full(disk), pytest.raises(StoreFull):
                await store.repair()
            assert not [name for name in os.listdir(disk) if "before-repair" in name]
            assert {problem.kind for problem in await store.check()} == {"bad_head"}
            assert (await store.repair()).left == []


CALLS = {"role": "assistant", "content": None, "tool_calls": [CALL, CALL | {"id": "call_2"}]}
ANSWERS = {"role": "tool", "tool_call_id": "call_1", "content": "it is there"}


@pytest.mark.parametrize(("lost", "left"), [(0, []), (1, ["call_1", "call_2"])])
async def test_what_was_in_flight_and_cannot_be_read_leaves_a_mark_and_the_turn_can_go_on(
    target: Path, lost: int, left: list[str]
) -> None:
    """A result whose call is lost is a mark as well, which holds what it was."""
    async with sessiontree.open_store(target) as store:
        chat = await store.conversation("t", owner="o")
        turn = await chat.turn().__aenter__()
        await turn.add(CALLS, key="calls")
        await turn.add(ANSWERS, key="answers")
    damage(target, f'UPDATE draft SET content = \'{{"role": "use\' WHERE position = {lost}')
    async with sessiontree.open_store(target) as store:
        with pytest.raises(StoreCorrupt, match="in flight"):
            await (await store.conversation("t", owner="o")).resume()
        assert {problem.kind for problem in await store.check()} == {"bad_draft"}
        done = await store.repair()
        assert done.left == []
        assert "a mark in flight stands for what was" in told(done, "bad_draft")
        chat = await store.conversation("t", owner="o")
        resume = await chat.resume()
        assert [call.id for call in resume.interrupted] == left
        assert resume.draft[lost].role == "mark"
        if lost == 0:
            assert json.loads(resume.draft[1].native["result"]) == ANSWERS
        async with chat.turn(resume=resume) as turn:
            await turn.interrupt()
            await turn.add({"role": "assistant", "content": "and on"})
        assert [message.text for message in await chat.path()][-1] == "and on"
        assert await store.check() == []
