"""What trainers read: turns that take turns, trees, and answers that are better by a signal."""

from __future__ import annotations

import json
from typing import Any

import pytest
from written import answering, calling, chain, message, said

from sessiontree.core.message import Message
from sessiontree.formats.writing import oasst, preferences, requests, sharegpt
from sessiontree.formats.writing.preferences import Answer

# --- sharegpt ---------------------------------------------------------------------------------


def turns(*natives: dict[str, Any]) -> list[tuple[str, str]]:
    told = sharegpt.conversation(chain(*natives), "path")
    return [(turn["from"], turn["value"]) for turn in told["conversations"]]


def test_turns_of_a_conversation_with_a_tool():
    call, result = calling("c1", command="ls"), answering("c1", "a.txt")
    path = chain(said("list"), call, result, said("One file.", "assistant"))
    assert sharegpt.conversation(path, "path") == {
        "conversations": [
            {"from": "human", "value": "list"},
            {"from": "function_call", "value": '{"name":"Bash","arguments":{"command":"ls"}}'},
            {"from": "observation", "value": "a.txt"},
            {"from": "gpt", "value": "One file."},
        ],
        "shows": "path",
        "leaf": 4,
    }


def test_sides_take_turns_whatever_was_said():
    both = calling("c1", text="I look.") | {}
    both["content"] = [*both["content"], *calling("c2")["content"]]
    found = sharegpt.conversation(
        chain(
            said("one"),
            said("two"),
            said("Hm.", "assistant"),
            both,
            answering("c1", "first"),
            answering("c2", "second"),
            said("and?"),
            said("Done.", "assistant"),
        ),
        "branch",
    )
    sides = [turn["from"] for turn in found["conversations"]]
    assert sides == ["human", "function_call", "observation", "gpt"]
    call, results = found["conversations"][1:3]
    assert [one["name"] for one in json.loads(call["value"])] == ["Bash", "Bash"]
    assert call["text"] == "Hm.\n\nI look."
    assert json.loads(results["value"]) == ["first", "second"]
    assert results["text"] == "and?"


def test_the_system_prompt_is_beside_the_turns_and_reasoning_is_left_out():
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    answer = {"role": "assistant", "content": [thought, {"type": "text", "text": "Yes."}]}
    system = {"role": "system", "content": "Be brief."}
    told = sharegpt.conversation(chain(system, said("x"), answer), "path")
    assert told["system"] == "Be brief."
    assert [turn["value"] for turn in told["conversations"]] == ["x", "Yes."]


def test_an_image_is_named_in_words():
    source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    native = {"role": "user", "content": [{"type": "image", "source": source}]}
    ((_, value),) = turns(native)
    assert "image/png" in value
    assert "AAAA" not in value


# --- oasst ------------------------------------------------------------------------------------


def trees_of(messages: list[Message], labels: dict[int, list[str]] | None = None) -> list[Any]:
    writer = oasst.Trees("tree")
    text = "".join(writer.add(each, (labels or {}).get(each.id, ())) for each in messages)
    return [json.loads(line) for line in (text + writer.end()).splitlines()]


def shape_of(node: dict[str, Any]) -> Any:
    return [node["text"], *[shape_of(reply) for reply in node["replies"]]]


def test_replies_stand_inside_what_they_answer():
    messages = [
        message(said("a"), 1),
        message(said("b", "assistant"), 2, 1),
        message(said("c"), 3, 2),
        message(said("d", "assistant"), 4, 1),
        message(said("e"), 5),
    ]
    first, second = trees_of(messages, {4: ["kept"]})
    assert shape_of(first["prompt"]) == ["a", ["b", ["c"]], ["d"]]
    assert shape_of(second["prompt"]) == ["e"]
    assert first["message_tree_id"] == first["prompt"]["message_id"] == "1"
    assert first["shows"] == "tree"
    reply = first["prompt"]["replies"][1]
    assert (reply["role"], reply["parent_id"], reply["checkpoints"]) == ("assistant", "1", ["kept"])
    assert first["prompt"]["role"] == "prompter"


def test_what_the_format_cannot_say_is_spliced_out():
    found = chain(
        said("list"), calling("c1"), answering("c1"), said("One.", "assistant"), said("x")
    )
    (tree,) = trees_of(found)
    assert shape_of(tree["prompt"]) == ["list", ["One.", ["x"]]]
    branch = message(said("two", "assistant"), 6, 3, depth=3)
    (tree,) = trees_of([*found, branch])
    assert shape_of(tree["prompt"]) == ["list", ["One.", ["x"]], ["two"]]


def test_a_tree_that_is_very_deep_is_written():
    writer = oasst.Trees("path")
    text = "".join(map(writer.add, chain(*(said(f"{at}") for at in range(20_000)))))
    text += writer.end()
    assert text.count("[") == text.count("]")
    assert text.count("{") == text.count("}")
    assert text.count('"message_id"') == 20_000


# --- preferences ------------------------------------------------------------------------------

PROMPT = chain(said("Which way?"))


def answer(
    text: str, at: int, *, labels: tuple[str, ...] = (), on_path: bool = False, **native: Any
) -> Answer:
    meta = json.dumps(native.pop("meta", None))
    whole = said(text, "assistant") | native
    one = message(
        whole, at, 1, depth=1, format="openai_chat", meta=None if meta == "null" else meta
    )
    return Answer([one], labels, on_path)


def told(answers: list[Answer]) -> dict[int, preferences.Told]:
    found: dict[int, preferences.Told] = {}
    for each in answers:
        one = preferences.tell(PROMPT, [*PROMPT, *each.said])
        if one is not None:
            found[each.said[0].id] = one
    return preferences.distinct(found)


def pairs(*answers: Answer) -> list[tuple[int, int, str]]:
    verdict = preferences.judge(answers)
    rows = preferences.dpo_rows(verdict, told(list(answers)))
    return [(row["chosen_id"], row["rejected_id"], row["signal"]) for row in rows]


def labels_of(*answers: Answer) -> dict[int, bool]:
    verdict = preferences.judge(answers)
    if not (verdict.is_absolute or verdict.tells_apart):
        return {}
    return {row["id"]: row["label"] for row in preferences.kto_rows(verdict, told(list(answers)))}


def test_a_row_has_a_prompt_and_one_message_on_either_side():
    verdict = preferences.judge([answer("left", 2, on_path=True), answer("right", 3)])
    both = told([each.answer for each in verdict.judged])
    (row,) = preferences.dpo_rows(verdict, both)
    assert row == {
        "prompt": [{"role": "user", "content": "Which way?"}],
        "chosen": [{"role": "assistant", "content": "left"}],
        "rejected": [{"role": "assistant", "content": "right"}],
        "signal": "path",
        "chosen_id": 2,
        "rejected_id": 3,
    }
    assert row["chosen"][:-1] == row["rejected"][:-1]


def test_without_a_signal_nothing_is_better():
    assert pairs(answer("a", 2), answer("b", 3)) == []
    assert pairs(answer("a", 2, on_path=True)) == []
    assert labels_of(answer("a", 2, on_path=True)) == {}
    assert labels_of(answer("a", 2), answer("b", 3)) == {}


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (
            [answer("a", 2, rank=1), answer("b", 3, rank=0, on_path=False), answer("c", 4)],
            [(3, 2, "rank")],
        ),
        (
            [answer("a", 2, meta={"rank": 0}), answer("b", 3, meta={"rank": 2}, on_path=True)],
            [(2, 3, "rank")],
        ),
        (
            [answer("a", 2, annotation={"rating": -1}), answer("b", 3, annotation={"rating": 1})],
            [(3, 2, "rating")],
        ),
        (
            [answer("a", 2, feedback={"rating": "thumbsDown"}), answer("b", 3, meta={"rating": 1})],
            [(3, 2, "rating")],
        ),
        (
            [answer("a", 2, labels=("good: short",)), answer("b", 3, on_path=True)],
            [(2, 3, "label")],
        ),
        ([answer("a", 2, labels=("Rejected",)), answer("b", 3)], [(3, 2, "label")]),
        ([answer("a", 2, labels=("before-refund",)), answer("b", 3)], []),
        ([answer("a", 2, labels=("good", "bad")), answer("b", 3)], []),
        ([answer("a", 2, rank=1), answer("b", 3, rank=1)], []),
    ],
)
def test_the_first_signal_that_there_is_decides(answers: list[Answer], expected: list[Any]):
    assert pairs(*answers) == expected


def test_the_best_stands_beside_each_that_is_worse():
    ranked = [answer(f"answer {rank}", 2 + rank, rank=rank) for rank in range(4)]
    assert pairs(*ranked) == [(2, 3, "rank"), (2, 4, "rank"), (2, 5, "rank")]
    assert labels_of(*ranked) == {2: True, 3: False, 4: False, 5: False}


def test_a_rating_or_a_label_says_good_or_bad_by_itself():
    assert labels_of(answer("a", 2, annotation={"rating": 1})) == {2: True}
    assert labels_of(answer("a", 2, labels=("bad",))) == {2: False}
    assert labels_of(answer("a", 2, labels=("good",)), answer("b", 3)) == {2: True}


@pytest.mark.parametrize(
    "failed",
    [
        {"stopReason": "error"},
        {"stop_reason": "aborted"},
        {"status": "incomplete"},
        {"error": {"code": 500}},
        {"errorMessage": "overloaded"},
        {"message": {"stopReason": "aborted"}},
    ],
)
def test_an_answer_that_failed_is_left_out(failed: dict[str, Any]):
    answers = [answer("a", 2, on_path=True), answer("b", 3, **failed), answer("c", 4)]
    assert pairs(*answers) == [(2, 4, "path")]


def test_answers_that_say_nothing_or_the_same_are_left_out():
    answers = [answer("a", 2, rank=0), answer("a", 3, rank=1), answer("", 4, rank=2)]
    assert pairs(*answers, answer("b", 5, rank=3)) == [(2, 5, "rank")]


def test_an_answer_that_is_stored_in_pieces_is_one_message():
    pieces = chain(said("list"), said("I look.", "assistant"), calling("c1", command="ls"))
    one = preferences.tell(pieces[:1], pieces)
    assert one is not None
    (message_,) = one.said
    assert message_["content"] == "I look."
    assert message_["tool_calls"][0]["function"]["name"] == "Bash"


def test_a_prompt_that_a_mark_changes_is_not_the_same_prompt():
    mark = message({"role": "mark", "kind": "cut"}, 3, 2, format="mark", depth=2)
    path = [*chain(said("a"), said("b")), mark, message(said("c", "assistant"), 4, 3, depth=3)]
    assert preferences.tell(path[:2], [*path[:2], path[3]]) is not None
    assert preferences.tell(path[1:2], path) is None


# --- requests ---------------------------------------------------------------------------------


@pytest.mark.parametrize("target", requests.PROVIDERS)
def test_a_request_has_all_of_the_path_in_the_providers_shape(target: str):
    path = chain(
        {"role": "system", "content": "Be brief."},
        said("list"),
        calling("c1", command="ls"),
        answering("c1", "a.txt"),
        said("One file.", "assistant"),
        said("thanks"),
    )
    request = requests.request(path, target)
    text = json.dumps(request)
    for words in ("Be brief.", "list", "Bash", "a.txt", "One file.", "thanks"):
        assert words in text
    window = requests.window_of(path, target)
    assert window.complete
    assert window.ready
