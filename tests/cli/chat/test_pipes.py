"""Lines from a pipe: what is sent for each, what is printed, and what is kept."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.chat.conftest import Talking
from tests.cli.chat.talking import asked, is_summary, system_of, texts

SIX = "".join(f"line {number}\n" for number in range(6))


def test_each_line_is_a_prompt_and_each_answer_a_line(talking: Talking):
    talk = talking(["Hello.", "Again."])
    said = talk.apart("hi\nonce more\n", "--topic", "T-1")
    assert (said.code, said.out) == (0, "Hello.\nAgain.\n")
    assert len(said.figures) == 2
    assert "\x1b" not in said.out + said.err
    assert talk.path() == [
        ("user", "hi"),
        ("assistant", "Hello."),
        ("user", "once more"),
        ("assistant", "Again."),
    ]


def test_a_stateless_line_is_a_request_by_itself(talking: Talking):
    talk = talking()
    said = talk.apart("one\ntwo\n", "--topic", "T-1", "--stateless", "--system", "Be brief.")
    assert said.code == 0
    first, second = talk.server.requests
    assert texts(first) == [("user", "one")]
    assert texts(second) == [("user", "two")]
    assert system_of(first) == system_of(second) == "Be brief."


def test_without_stateless_the_second_request_holds_both(talking: Talking):
    talk = talking(["First answer."])
    talk("one\ntwo\n", "--topic", "T-1")
    second = talk.server.requests[1]
    assert texts(second) == [("user", "one"), ("assistant", "First answer."), ("user", "two")]


def test_what_was_said_statelessly_is_kept_as_branches(talking: Talking):
    talk = talking(["1", "2", "3"])
    talk("one\ntwo\n", "--topic", "T-1", "--stateless", "--system", "Be brief.")
    talk("three\n", "--topic", "T-1", "--stateless")
    tree = talk.on("T-1", lambda chat: chat.tree())
    assert [node.preview for node in tree.roots] == ["Be brief."]
    prompts = [node.preview for node in tree.children(tree.roots[0].id)]
    assert sorted(prompts) == ["one", "three", "two"]


def test_a_stateless_line_in_a_long_conversation_sends_none_of_it(talking: Talking):
    talk = talking()
    talk("secret\n", "--topic", "T-1", "--system", "Be brief.")
    talk("hi\n", "--topic", "T-1", "--stateless")
    request = talk.server.requests[-1]
    assert texts(request) == [("user", "hi")]
    assert system_of(request) == "Be brief."


def test_at_most_so_many_messages_are_sent_and_the_rest_is_told(talking: Talking):
    talk = talking(["a"] * 6)
    said = talk(SIX, "--topic", "T-1", "--max-messages", 4, "--system", "Be brief.")
    assert (said.code, said.out) == (0, "a\n" * 6)
    for number, request in enumerate(talk.server.requests):
        sent = texts(request)
        assert len(sent) <= 4
        assert sent[-1] == ("user", f"line {number}")
        assert sent[0][0] == "user"
        assert system_of(request) == "Be brief."
        assert request.tokens == int(re.match(r"in (\d+) ", said.figures[number])[1])
    assert "not sent" not in said.figures[1]
    assert "· 2 older messages not sent: --max-messages 4" in said.figures[2]
    assert "· 8 older messages not sent: --max-messages 4" in said.figures[5]
    assert len(talk.path()) == 13


def test_what_is_no_longer_sent_is_summarised_by_the_model_and_the_summary_rolls(talking: Talking):
    summaries = [{"when": "^Below", "text": f"SUMMARY {number}."} for number in range(4)]
    talk = talking([*summaries, *["a"] * 6])
    said = talk(SIX, "--topic", "T-1", "--max-messages", 4, "--summarize", "--system", "Be brief.")
    assert (said.code, said.out) == (0, "a\n" * 6)
    requests = talk.server.requests
    made = [request for request in requests if is_summary(request)]
    assert len(made) == 4
    assert "line 0" in texts(made[0])[0][1]
    assert "SUMMARY 0." in texts(made[1])[0][1]
    assert "line 1" in texts(made[1])[0][1]
    assert "line 0" not in texts(made[1])[0][1]
    assert "SUMMARY 2." in texts(made[3])[0][1]
    last = texts(requests[-1])
    assert len(last) == 4
    assert "SUMMARY 3." in last[0][1]
    assert last[1:] == [("user", "line 4"), ("assistant", "a"), ("user", "line 5")]
    assert {system_of(request) for request in asked(requests)} == {"Be brief."}
    assert {system_of(request) for request in made} == {None}
    assert len(said.figures) == 6
    assert "· a summary stands for 2 older messages" in said.figures[2]
    assert "· a summary stands for 8 older messages" in said.figures[5]
    assert len([note for note in said.notes if note.startswith("(summarised 1 turn: in ")]) == 4


def test_a_summary_that_cannot_be_made_is_told_and_the_line_answered(talking: Talking):
    talk = talking([{"when": "^Below", "error": 400, "message": "no summaries today"}, *["a"] * 3])
    said = talk("1\n2\n3\n", "--topic", "T-1", "--max-messages", 4, "--summarize")
    assert (said.code, said.out) == (0, "a\n" * 3)
    assert "sessiontree: no summary: 400: no summaries today" in said.notes
    assert "2 older messages not sent" in said.figures[2]


def test_a_budget_of_tokens_makes_room_by_the_ladder(talking: Talking):
    talk = talking(["word " * 60] * 8)
    said = talk("".join(f"line {i}\n" for i in range(8)), "--topic", "T-1", "--budget", 400)
    assert said.code == 0
    assert all(request.tokens <= 400 for request in talk.server.requests)
    assert "(made room: " in said.err
    assert "/undo takes it back)" in said.err


def test_a_prompt_that_no_budget_holds_is_told_and_kept(talking: Talking):
    talk = talking(["ok"])
    said = talk(f"{'word ' * 900}\nshort\n", "--topic", "T-1", "--budget", 300)
    assert said.code == 1
    assert said.notes[0].startswith("sessiontree: what must be sent needs ")
    assert said.out == "ok\n"
    assert texts(talk.server.requests[0])[-1] == ("user", "short")
    assert talk.path()[0][1].startswith("word word")


def test_two_owners_of_one_topic_never_see_each_other(talking: Talking):
    talk = talking()
    for owner, secret in (("camille", "CAMILLE"), ("robin", "ROBIN")):
        talk(f"my word is {secret}\n", "--topic", "T-1", "--owner", owner)
    for owner in ("camille", "robin"):
        talk("what is it?\n", "--topic", "T-1", "--owner", owner)
    third, fourth = map(str, map(texts, talk.server.requests[2:]))
    assert ("CAMILLE" in third, "ROBIN" in third) == (True, False)
    assert ("CAMILLE" in fourth, "ROBIN" in fourth) == (False, True)


def test_two_topics_of_one_owner_are_two_conversations(talking: Talking):
    talk = talking()
    for topic, secret in (("T-1", "RED"), ("T-2", "BLUE")):
        talk(f"my word is {secret}\n", "--topic", topic, "--owner", "camille")
    for topic in ("T-1", "T-2"):
        talk("what is it?\n", "--topic", topic, "--owner", "camille")
    third, fourth = map(str, map(texts, talk.server.requests[2:]))
    assert ("RED" in third, "BLUE" in third) == (True, False)
    assert ("RED" in fourth, "BLUE" in fourth) == (False, True)


def test_an_owner_cannot_go_to_anothers_message_by_its_id(only_openai: Talking):
    talk = only_openai()
    talk("mine\n", "--topic", "T-1", "--owner", "camille")
    said = talk("/branch 1\n", "--topic", "T-9", "--owner", "robin")
    assert "has no message 1" in said.err


def test_without_a_topic_each_run_is_a_conversation_that_its_id_opens(only_openai: Talking):
    talk = only_openai()
    talk("first\n")
    talk("second\n")
    said = talk("third\n", 1)
    assert texts(talk.server.requests[1]) == [("user", "second")]
    assert [text for role, text in texts(talk.server.requests[2]) if role == "user"] == [
        "first",
        "third",
    ]
    assert "it goes on after message 2 (assistant)" in said.err


def test_the_model_that_answered_last_goes_on_where_none_is_named(talking: Talking):
    talk = talking()
    talk("hi\n", "--topic", "T-1")
    talk.model = ""
    assert talk("again\n", "--topic", "T-1").code == 0
    assert talk.server.requests[1].body["model"] == "m1"


def test_a_system_prompt_may_be_in_a_file(only_openai: Talking, tmp_path: Path):
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("Be brief.\nBe kind.\n", encoding="utf-8")
    talk = only_openai()
    talk("hi\n", "--topic", "T-1", "--system", f"@{prompt}")
    assert system_of(talk.server.requests[0]) == "Be brief.\nBe kind."
    missing = talk("hi\n", "--system", "@nowhere.txt")
    assert (missing.code, missing.err) == (
        1,
        "sessiontree: nowhere.txt: No such file or directory\n",
    )


@pytest.mark.parametrize("again", [["--topic", "T-1"], [1]])
def test_another_system_prompt_is_in_force_from_there_on(only_openai: Talking, again: list[object]):
    talk = only_openai()
    talk("hi\n", "--topic", "T-1", "--system", "Be brief.")
    for prompt in ("Be long.", "Be long."):
        talk("again\n", *again, "--system", prompt)
    assert system_of(talk.server.requests[-1]) == "Be long."
    roles = [role for role, _ in talk.path()]
    assert roles.count("system") == 2


# ---- odd lines -----------------------------------------------------------------------------


def test_empty_lines_are_passed_over_and_the_last_needs_no_end(talking: Talking):
    talk = talking(["a", "b"])
    said = talk("\n   \nhi\r\n\n\nend", "--topic", "T-1")
    assert (said.code, said.out) == (0, "a\nb\n")
    assert [text for role, text in talk.path() if role == "user"] == ["hi", "end"]


def test_no_line_at_all_asks_nothing(talking: Talking):
    talk = talking()
    said = talk("", "--topic", "T-1")
    assert (said.code, said.out, said.err) == (0, "", "")
    assert talk.server.requests == []


def test_a_line_of_a_megabyte_is_sent_and_kept_whole(talking: Talking):
    talk = talking(["long"])
    line = "0123456789abcdef" * 65_536
    said = talk.apart(f"{line}\n", "--topic", "T-1")
    assert (said.code, said.out) == (0, "long\n")
    assert texts(talk.server.requests[0]) == [("user", line)]
    assert talk.path()[0] == ("user", line)


def test_bytes_that_are_no_text_are_told_and_do_no_harm(talking: Talking):
    talk = talking(["a", "b", "c"])
    said = talk.apart(b"caf\xe9 \x80\xff\nnul \x00 and \x1b[2J\nend\n", "--topic", "T-1")
    assert (said.code, said.out) == (0, "a\nb\nc\n")
    assert "the line is not UTF-8" in said.notes[0]
    prompts = [text for role, text in talk.path() if role == "user"]
    assert prompts == ["caf\ufffd \ufffd\ufffd", "nul \x00 and \x1b[2J", "end"]


def test_what_a_model_says_does_not_steer_the_terminal(talking: Talking):
    talk = talking([{"text": "a\x1b]0;owned\x07\r\nb\rc\u202e", "piece": 1}])
    said = talk("hi\n", "--topic", "T-1")
    assert "\x1b" not in said.out
    assert said.out.splitlines()[0].startswith("a␛]0;owned")
    assert said.out.splitlines()[1] == "b␍c<U+202E>"
    assert talk.path()[-1][1] == "a\x1b]0;owned\x07\r\nb\rc\u202e"


def test_a_reader_that_has_seen_enough_is_no_error(only_openai: Talking):
    talk = only_openai([{"text": "word " * 40_000, "piece": 4_000}])
    process = talk.start("--topic", "T-1")
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.write(b"hi\n")
    process.stdout.read(10)
    process.stdout.close()
    process.stdin.close()
    assert b"Traceback" not in process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 0
