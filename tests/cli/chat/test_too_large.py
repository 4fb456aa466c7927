"""A request that the provider refuses as too large, by tokens or by bytes."""

from __future__ import annotations

import pytest

import sessiontree
from tests.cli.chat.conftest import Talking
from tests.cli.chat.talking import is_summary, system_of, texts

LONG = "the parcel is on its way to you " * 30


def lines(count: int) -> str:
    return "".join(f"question {number} {LONG}\n" for number in range(count))


@pytest.mark.parametrize("limit", [{"context_limit": 4_000}, {"bytes_limit": 12_000}])
@pytest.mark.parametrize("summarize", [(), ("--budget", 1_000_000, "--summarize")])
def test_what_was_refused_as_too_large_is_asked_again_smaller_without_a_model(
    talking: Talking, limit: dict[str, int], summarize: tuple[object, ...]
):
    talk = talking([{"text": LONG, "always": True, "when": "question"}], **limit)
    given = ["--topic", "T-1", "--system", "Be brief.", "--max-tokens", 500, *summarize]
    said = talk(lines(14), *given)
    assert said.code == 0, said.err
    assert said.out == f"{LONG}\n" * 14
    requests = talk.server.requests
    refused = [
        at
        for at, request in enumerate(requests)
        if request.status in (400, 413) and not (request.body and is_summary(request))
    ]
    assert refused
    for at in refused:
        after = requests[at + 1]
        assert after.status == 200  # the stand-in takes only what is valid
        assert not is_summary(after)
        if "bytes_limit" in limit:
            assert after.size < requests[at].size
        else:  # pages of print have fewer tokens and more bytes
            assert after.tokens <= limit["context_limit"] - 500
        assert system_of(after) == "Be brief."
        assert (
            sessiontree.violations(
                after.body["messages"][after.provider != "anthropic" :], talk.target
            )
            == []
        )
    assert "no summary" not in said.err
    told = [note for note in said.notes if note.startswith("(refused as too large")]
    assert len(told) == len(refused)
    assert all(note.endswith("; asking again)") for note in told)
    prompts = [text for role, text in talk.path() if role == "user"]
    assert len(prompts) == 14


def test_a_prompt_that_is_too_large_by_itself_is_told_in_one_line(talking: Talking):
    talk = talking(["ok"], context_limit=5_000)
    said = talk(f"{'word ' * 20_000}\nshort\n", "--topic", "T-1")
    assert said.code == 1
    problems = [note for note in said.notes if note.startswith("sessiontree: ")]
    assert len(problems) == 1
    assert "what must be sent needs" in problems[0]
    assert said.out == "ok\n"
    assert texts(talk.server.requests[-1])[-1] == ("user", "short")


def test_a_prompt_that_alone_is_too_large_is_told_and_can_be_said_shorter(only_openai: Talking):
    talk = only_openai(context_limit=3_000)
    said = talk(f"first\n{'word ' * 5_000}\n/edit last short\n", "--topic", "T-1", "--system", "s")
    assert said.code == 1
    assert any("too few (/edit last TEXT says it in fewer words)" in note for note in said.notes)
    assert said.answers[-1] == "2 user messages; the last one: short"


def test_an_answer_that_leaves_no_room_for_a_prompt_is_told_by_the_option(only_openai: Talking):
    talk = only_openai(context_limit=3_000)
    talk.provider = "anthropic"  # only there must a request say how long the answer may be
    said = talk("hi\n", "--topic", "T-1", "--max-tokens", 4_096)
    assert said.code == 1
    assert said.notes[-1].endswith("lower --max-tokens)")
    assert talk.path() == [("user", "hi")]
    assert talk("/retry\n", "--topic", "T-1", "--max-tokens", 500).code == 0


def test_marks_that_cannot_help_are_taken_back(talking: Talking):
    talk = talking(context_limit=600)
    talk("one, please\ntwo\n", "--topic", "T-1")
    before = talk.path()
    said = talk("word " * 4_000 + "\n/retry\n", "--topic", "T-1")
    assert said.code == 1
    assert "asking again" not in said.err
    assert [role for role, _ in talk.path()] == [*(role for role, _ in before), "user"]
