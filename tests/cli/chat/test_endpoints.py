"""What becomes of what an SDK gives: answers as the provider has them, and which one is asked."""

from __future__ import annotations

import re

import pytest

from sessiontree.cli.chat.choosing import Wanted, endpoint, provider_of
from sessiontree.cli.chat.endpoint import joined
from sessiontree.cli.chat.spending import Spending
from sessiontree.cli.chat.through_anthropic import ThroughAnthropic
from sessiontree.cli.chat.through_anthropic import _Gathered as FromAnthropic
from sessiontree.cli.chat.through_openai import _Gathered as FromOpenAI
from sessiontree.errors import SessionTreeError
from tests.cli.chat.conftest import Talking
from tests.cli.chat.talking import system_of, texts


def test_thinking_is_kept_with_its_signature_and_sent_back(talking: Talking):
    talk = talking([{"text": "Yes.", "thinking": "Is it?"}])
    said = talk("hi\nand?\n", "--topic", "T-1")
    assert said.answers[0] == "Yes."
    saved = talk.messages()[1].native
    sent = talk.server.requests[1].body["messages"][1]
    if talk.provider == "anthropic":
        thinking = {
            "type": "thinking",
            "thinking": "Is it?",
            "signature": saved["content"][0]["signature"],
        }
        assert len(thinking["signature"]) == 64
        assert saved["content"] == [thinking, {"text": "Yes.", "type": "text"}]
    else:
        assert saved == {"role": "assistant", "content": "Yes.", "reasoning_content": "Is it?"}
    assert sent == saved


def test_what_the_provider_reported_is_kept_and_told(talking: Talking):
    talk = talking(["ok"])
    cached = (
        {"cache_read_input_tokens": 4_000, "input_tokens": 100, "output_tokens": 7}
        if talk.provider == "anthropic"
        else {
            "prompt_tokens_details": {"cached_tokens": 4_000},
            "prompt_tokens": 4_100,
            "completion_tokens": 7,
        }
    )
    talk.server.script.add([{"text": "two", "usage": cached}])
    said = talk("one\ntwo\n", "--topic", "T-1")
    assert said.figures[1] == "in 100 cached 4,000 out 7"
    usage = talk.messages()[-1].usage
    assert usage is not None
    assert {name: usage[name] for name in cached} == cached
    assert talk.messages()[-1].model == "m1"


def test_what_is_not_reported_is_estimated_and_marked(only_openai: Talking):
    talk = only_openai(
        [{"text": "four words are said", "usage": {"prompt_tokens": 0, "completion_tokens": 0}}]
    )
    said = talk("hi\n", "--topic", "T-1")
    assert re.fullmatch(r"in ~\d+ out ~\d+", said.figures[0])


def test_figures_of_several_requests_are_one_sum():
    spending = Spending()
    spending.add({"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 1}, 0, 0)
    assert str(spending) == "in 10 cached 5 out 1"
    spending.add(None, 1_000, 2)
    assert str(spending) == "in ~1,010 cached 5 out ~3"


def test_the_models_own_tools_set_and_go_back_to_checkpoints(talking: Talking):
    talk = talking(
        [
            {"text": "Marking.", "calls": [{"name": "checkpoint", "arguments": {"label": "x"}}]},
            "Marked.",
            {"calls": [{"name": "rewind", "arguments": {"label": "x", "report": "a dead end"}}]},
            "Back.",
        ]
    )
    said = talk("mark\nexplore\n", "--topic", "T-1", "--tools")
    assert (said.code, said.out) == (0, "Marking.\nMarked.\nBack.\n")
    assert "(the model sets a checkpoint: 'x')" in said.notes
    assert "(the model goes back to 'x', with a report)" in said.notes
    last = texts(talk.server.requests[-1])
    assert "a dead end" in last[-1][1]
    assert "explore" not in str(last)
    names = [t.get("name") or t["function"]["name"] for t in talk.server.requests[0].body["tools"]]
    assert names == ["checkpoint", "rewind"]
    assert talk.path()[-1] == ("assistant", "Back.")


def test_a_tool_that_is_not_there_is_told_to_the_model(talking: Talking):
    talk = talking([{"calls": [{"name": "rm", "arguments": {}}]}, "Sorry."])
    said = talk("hi\n", "--topic", "T-1")
    assert (said.code, said.out) == (0, "Sorry.\n")
    assert "(the model called 'rm', which is not there)" in said.notes
    assert "There is no tool 'rm' here." in str(talk.server.requests[1].body)
    assert "tools" not in talk.server.requests[0].body


def test_a_model_that_calls_without_end_is_stopped(only_openai: Talking):
    step = {"calls": [{"name": "rm", "arguments": {}}], "always": True, "when": "^hi"}
    talk = only_openai([step, "ok"])
    said = talk("hi\nthen\n", "--topic", "T-1")
    assert "sessiontree: the model called tools 20 times (say how to go on)" in said.notes
    assert said.out == "ok\n"


def test_arguments_that_are_no_json_do_no_harm(talking: Talking):
    talk = talking([{"calls": [{"name": "checkpoint", "arguments": '{"label": '}]}, "Sorry."])
    said = talk("hi\n", "--topic", "T-1", "--tools")
    assert (said.code, said.out) == (0, "Sorry.\n"), said.err
    assert "(the model called checkpoint, which was refused: " in said.err


def test_a_server_that_knows_no_stream_options_is_asked_without(only_openai: Talking):
    words = "Unrecognized request argument supplied: stream_options"
    talk = only_openai([{"error": 400, "message": words}, "ok", "then"])
    said = talk("hi\nmore\n", "--topic", "T-1")
    assert said.out == "ok\nthen\n"
    assert "stream_options" in talk.server.requests[0].body
    assert all("stream_options" not in request.body for request in talk.server.requests[1:])
    assert all("~" in figure for figure in said.figures)


def test_calls_of_a_server_that_sends_no_indexes_are_told_apart():
    gathered = FromOpenAI()
    for call in (
        {"id": "a", "function": {"name": "f", "arguments": '{"x":'}},
        {"function": {"arguments": "1}"}},
        {"id": "b", "function": {"name": "g", "arguments": "{}"}},
    ):
        gathered.take({"choices": [{"delta": {"tool_calls": [call]}}]})
    gathered.take({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})
    calls = gathered.answer().message["tool_calls"]
    assert [(c["id"], c["function"]["arguments"]) for c in calls] == [("a", '{"x":1}'), ("b", "{}")]


def test_a_citation_is_kept_with_its_text():
    gathered = FromAnthropic()
    for event in (
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "text", "text": "", "citations": None},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": "It is."},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "citations_delta", "citation": {"cited_text": "is"}},
        },
        {"type": "message_stop"},
    ):
        gathered.take(event)
    assert gathered.answer().message["content"] == [
        {"type": "text", "text": "It is.", "citations": [{"cited_text": "is"}]}
    ]


def test_a_character_that_was_parted_is_whole_again():
    assert joined(["a\ud83d", "\ude00b"]) == "a😀b"
    assert joined(["\ud83d", "x"]) == "\ud83dx"


KEYS = {"OPENAI_API_KEY": "x", "ANTHROPIC_API_KEY": "y"}


@pytest.mark.parametrize(
    ("wanted", "environment", "provider"),
    [
        (Wanted(provider="anthropic", model="gpt-5.5"), KEYS, "anthropic"),
        (Wanted(model="claude-opus-5-5"), KEYS, "anthropic"),
        (Wanted(model="gpt-5.5"), KEYS, "openai"),
        (
            Wanted(model="anthropic/claude-opus-5-5", base_url="https://router.example/v1"),
            KEYS,
            "openai",
        ),
        (Wanted(model="llama", base_url="http://127.0.0.1:11434/v1"), KEYS, "openai"),
        (Wanted(model="x", base_url="https://api.anthropic.com"), KEYS, "anthropic"),
        (Wanted(model="claude-opus-5-5", base_url="https://api.openai.com/v1"), KEYS, "openai"),
        (Wanted(last_model="x", last_format="anthropic"), KEYS, "anthropic"),
        (Wanted(model="x"), {"ANTHROPIC_API_KEY": "y"}, "anthropic"),
        (Wanted(model="x"), KEYS | {"OPENAI_BASE_URL": "http://127.0.0.1/v1"}, "openai"),
    ],
)
def test_whose_protocol_is_spoken(wanted: Wanted, environment: dict[str, str], provider: str):
    assert provider_of(wanted, environment) == provider


@pytest.mark.parametrize(
    ("environment", "words"),
    [(KEYS, "give --provider"), ({}, "set OPENAI_API_KEY or ANTHROPIC_API_KEY")],
)
def test_where_it_cannot_be_told_an_option_or_a_variable_is_named(
    environment: dict[str, str], words: str
):
    with pytest.raises(SessionTreeError, match=words):
        endpoint(Wanted(model="x"), environment)


def test_an_address_for_either_may_end_in_v1(talking: Talking):
    talk = talking(["ok"])
    assert talk("hi\n", "--base-url", f"{talk.server.url}/v1/").out == "ok\n"


@pytest.mark.parametrize(
    ("url", "goes_on", "writes"),
    [
        (None, True, True),
        (None, False, False),
        ("https://api.anthropic.com/v1", True, True),
        ("http://127.0.0.1:1", True, False),
    ],
)
def test_the_provider_is_told_to_cache_where_that_will_be_read(
    url: str | None, goes_on: bool, writes: bool
):
    asked = Wanted("anthropic", "claude-opus-5-5", url, goes_on=goes_on)
    made = endpoint(asked, KEYS)
    assert isinstance(made, ThroughAnthropic)
    assert ("cache_control" in made.options) is writes


def test_a_conversation_goes_on_by_another_protocol(talking: Talking):
    call = {"name": "checkpoint", "arguments": {"label": "x"}}
    talk = talking([{"thinking": "Hm.", "calls": [call]}, "Marked.", "Here."])
    talk("mark\n", "--topic", "T-1", "--tools", "--system", "Be brief.")
    talk.provider = "anthropic" if talk.provider == "openai" else "openai"
    said = talk("still there?\n", "--topic", "T-1", "--tools")
    assert (said.code, said.out) == (0, "Here.\n"), said.err
    request = talk.server.requests[-1]
    assert request.provider == talk.target
    assert system_of(request) == "Be brief."
    assert texts(request)[-1] == ("user", "still there?")
