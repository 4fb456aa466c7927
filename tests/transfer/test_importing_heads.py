"""Where the head is after an import whose file has it inside something: in an open step, on a
row whose rest is a message of its own. It is the same when the file is imported again."""

from pathlib import Path

from landed import answer, names, result, user, write

from sessiontree import Store
from sessiontree.transfer import import_file


async def test_a_head_on_the_rest_of_a_row_stays_there(store: Store, tmp_path: Path):
    text = {"type": "text", "text": "and go on"}
    rows = [user("u1", None), answer("a1", "u1"), result("r1", "a1", "nowhere", text)]
    file = write(tmp_path / "s.jsonl", rows)
    done = await import_file(store, file)
    (chat,) = done.conversations
    assert await names(chat) == "u1 a1 r1 *"
    assert (await import_file(store, file)).head == done.head
    write(file, [*rows, user("u2", "r1")])
    await import_file(store, file)
    assert await names(await chat.refresh()) == "u1 a1 r1 * u2"


async def test_a_head_inside_a_step_with_several_branches_is_on_the_same_one_each_time(
    store: Store, tmp_path: Path
):
    beginning, asking = user("u1", None), answer("a1", "u1", "c1", "c2")
    branches = [result("r1", "a1", "c1"), user("u2", "r1"), user("u3", "a1")]
    rows = [beginning, *branches, asking]  # the last row, where the head is, leaves calls open
    done = await import_file(store, write(tmp_path / "s.jsonl", rows))
    (chat,) = done.conversations
    leaves = [await names(chat, leaf.id) for leaf in await chat.leaves()]
    assert sorted(leaves) == ["u1 a1 ! ! u3", "u1 a1 r1 ! u2"]
    assert await names(chat) == "u1 a1 r1 !"
    again = await import_file(store, tmp_path / "s.jsonl")
    assert (again.head, again.kept, again.closed) == (done.head, 0, 0)


async def test_a_head_between_closings_stays_on_the_one_that_closes_the_first_call(
    store: Store, tmp_path: Path
):
    asking = answer("a1", "u1", "c1", "c2")
    late = [user("u2", "a1"), user("u3", "a1")]
    done = await import_file(store, write(tmp_path / "s.jsonl", [user("u1", None), *late, asking]))
    (chat,) = done.conversations
    assert await names(chat) == "u1 a1 ! !"
    again = await import_file(store, tmp_path / "s.jsonl")
    assert (again.head, again.kept, again.closed) == (done.head, 0, 0)


async def test_a_head_after_a_note_between_a_call_and_its_result_stays_there(
    store: Store, tmp_path: Path
):
    payloads = [
        ("response_item", {"type": "message", "role": "user", "content": "go"}),
        (
            "response_item",
            {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c"},
        ),
        ("event_msg", {"type": "token_count", "info": None}),
        ("response_item", {"type": "function_call_output", "call_id": "c", "output": "done"}),
    ]
    rows = [{"type": kind, "payload": payload} for kind, payload in payloads]
    done = await import_file(store, write(tmp_path / "s.jsonl", rows))
    (chat,) = done.conversations
    assert [message.role for message in await chat.path()] == ["user", "assistant", "tool", "mark"]
    assert (await import_file(store, tmp_path / "s.jsonl")).head == done.head
