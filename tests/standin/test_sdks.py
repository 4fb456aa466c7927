"""The official SDKs talk to the stand-in as to the provider."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.standin import StandIn

anthropic = pytest.importorskip("anthropic")
openai = pytest.importorskip("openai")

WORDS = "Order LK-266415 is “in transit”: 到着予定 🚚, and so on and on."
CALLS: list[Any] = [
    {"name": "find", "arguments": {"order": "LK-266415", "note": '日本 "quoted"'}},
    {"name": "find", "arguments": {}, "id": "call_0"},
]
TOOLS: list[Any] = [{"name": "find", "input_schema": {"type": "object", "properties": {}}}]
ASKED: list[Any] = [{"role": "user", "content": "Where is it?"}]


@pytest.fixture
def server() -> Iterator[StandIn]:
    with StandIn() as running:
        yield running


@pytest.fixture
def claude(server: StandIn) -> Iterator[Any]:
    with anthropic.Anthropic(base_url=server.url, api_key="any", max_retries=0) as client:
        yield client


@pytest.fixture
def gpt(server: StandIn) -> Iterator[Any]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0) as client:
        yield client


# --- Anthropic --------------------------------------------------------------------------------


def test_anthropic_reads_a_whole_answer_with_calls_and_thinking(
    server: StandIn, claude: Any
) -> None:
    server.script.add([{"thinking": "Hm.", "text": WORDS, "calls": CALLS}])
    answer = claude.messages.create(model="m", max_tokens=99, messages=ASKED, tools=TOOLS)
    assert [block.type for block in answer.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert answer.content[1].text == WORDS
    assert answer.content[2].input == CALLS[0]["arguments"]
    assert (answer.content[3].id, answer.stop_reason) == ("call_0", "tool_use")
    assert answer.usage.input_tokens == server.requests[0].tokens > 0
    assert answer.usage.output_tokens > 10


def test_anthropic_puts_a_stream_together_to_the_same_message(server: StandIn, claude: Any) -> None:
    step = {"thinking": "Hm, 日本.", "text": WORDS, "calls": CALLS, "piece": 3}
    server.script.add([step, step])
    wish: dict[str, Any] = {"model": "m", "max_tokens": 99, "messages": ASKED, "tools": TOOLS}
    whole = claude.messages.create(**wish).model_dump(exclude={"id"})
    with claude.messages.stream(**wish) as stream:
        heard = "".join(stream.text_stream)
        final = stream.get_final_message().model_dump(exclude={"id"})
    assert heard == WORDS
    for block in whole["content"] + final["content"]:
        block.pop("id", None)
        block.pop("parsed_output", None)
    assert final["content"] == whole["content"]
    assert (final["stop_reason"], final["usage"]) == (whole["stop_reason"], whole["usage"])


def test_anthropic_counts_tokens_as_a_request_then_costs(server: StandIn, claude: Any) -> None:
    counted = claude.messages.count_tokens(model="m", messages=ASKED, system="Be brief.")
    claude.messages.create(model="m", max_tokens=9, messages=ASKED, system="Be brief.")
    assert counted.input_tokens == server.requests[1].tokens
    assert server.left == []


def test_anthropic_raises_its_own_errors(server: StandIn, claude: Any) -> None:
    server.script.add([{"error": 429}, {"error": 529}, {"text": WORDS, "error": 529, "after": 5}])
    wish: dict[str, Any] = {"model": "m", "max_tokens": 99, "messages": ASKED}
    with pytest.raises(anthropic.RateLimitError):
        claude.messages.create(**wish)
    with pytest.raises(anthropic.APIStatusError, match="Overloaded") as found:
        claude.messages.create(**wish)
    assert found.value.status_code == 529
    with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
        list(claude.messages.create(**wish, stream=True))
    empty = [{"role": "user", "content": [{"type": "text", "text": ""}]}]
    with pytest.raises(anthropic.BadRequestError, match="text content blocks must be non-empty"):
        claude.messages.create(**{**wish, "messages": empty})


def test_anthropic_tries_again_after_an_overload_and_a_drop(server: StandIn) -> None:
    server.script.add([{"error": 529, "retry_after": 0}, {"drop": True}, "at last"])
    with anthropic.Anthropic(base_url=server.url, api_key="any", max_retries=3) as client:
        answer = client.messages.create(model="m", max_tokens=9, messages=ASKED)
    assert answer.content[0].text == "at last"
    assert [each.status for each in server.requests] == [529, 0, 200]


def test_anthropic_tells_a_stream_that_broke_off(server: StandIn, claude: Any) -> None:
    server.script.add([{"text": WORDS, "drop": True, "after": 5}])
    with pytest.raises(Exception, match=r"(?i)connection|peer|incomplete"):
        list(claude.messages.create(model="m", max_tokens=9, messages=ASKED, stream=True))


# --- OpenAI ---------------------------------------------------------------------------------


def test_openai_reads_a_whole_answer_with_calls(server: StandIn, gpt: Any) -> None:
    server.script.add([{"text": WORDS, "calls": CALLS}])
    answer = gpt.chat.completions.create(model="m", messages=ASKED)
    said = answer.choices[0].message
    assert said.content == WORDS
    assert json.loads(said.tool_calls[0].function.arguments) == CALLS[0]["arguments"]
    assert said.tool_calls[1].id == "call_0"
    assert answer.choices[0].finish_reason == "tool_calls"
    assert answer.usage.prompt_tokens == server.requests[0].tokens > 0


def test_openai_puts_a_stream_together_to_the_same_message(server: StandIn, gpt: Any) -> None:
    server.script.add([{"text": WORDS, "calls": CALLS, "piece": 3}])
    with gpt.chat.completions.stream(
        model="m", messages=ASKED, stream_options={"include_usage": True}
    ) as stream:
        for _ in stream:
            pass
        final = stream.get_final_completion()
    said = final.choices[0].message
    assert said.content == WORDS
    assert [call.function.name for call in said.tool_calls] == ["find", "find"]
    assert json.loads(said.tool_calls[0].function.arguments) == CALLS[0]["arguments"]
    assert final.usage.prompt_tokens == server.requests[0].tokens
    assert final.choices[0].finish_reason == "tool_calls"


def test_openai_gets_the_usage_of_a_stream_only_when_it_asks(server: StandIn, gpt: Any) -> None:
    wish: dict[str, Any] = {"model": "m", "messages": ASKED, "stream": True}
    plain = list(gpt.chat.completions.create(**wish))
    counted = list(gpt.chat.completions.create(**wish, stream_options={"include_usage": True}))
    assert [chunk.usage for chunk in plain if chunk.usage] == []
    assert counted[-1].choices == []
    assert counted[-1].usage.total_tokens > 0
    assert server.requests[1].whole


def test_openai_raises_its_own_errors(server: StandIn, gpt: Any) -> None:
    server.script.add([{"error": 429}, {"error": 500}, {"text": WORDS, "error": 500, "after": 3}])
    wish: dict[str, Any] = {"model": "m", "messages": ASKED}
    with pytest.raises(openai.RateLimitError):
        gpt.chat.completions.create(**wish)
    with pytest.raises(openai.InternalServerError):
        gpt.chat.completions.create(**wish)
    with pytest.raises(openai.APIError, match="The server had an error"):
        list(gpt.chat.completions.create(**wish, stream=True))
    server.context_limit = 5
    with pytest.raises(openai.BadRequestError, match="maximum context length is 5") as found:
        gpt.chat.completions.create(**wish)
    assert found.value.code == "context_length_exceeded"


def test_openai_tells_a_stream_that_broke_off(server: StandIn, gpt: Any) -> None:
    server.script.add([{"text": WORDS, "drop": True, "after": 3}])
    with pytest.raises(Exception, match=r"(?i)connection|peer|incomplete"):
        list(gpt.chat.completions.create(model="m", messages=ASKED, stream=True))


# --- Both -----------------------------------------------------------------------------------


def test_both_list_the_models(claude: Any, gpt: Any) -> None:
    assert [model.id for model in claude.models.list()] == ["stand-in"]
    assert [model.id for model in gpt.models.list()] == ["stand-in"]


def test_a_stop_that_the_script_names_is_told_in_each_ones_words(
    server: StandIn, claude: Any, gpt: Any
) -> None:
    server.script.add([{"text": "so lo", "stop": "length"}] * 2)
    cut = claude.messages.create(model="m", max_tokens=9, messages=ASKED)
    assert cut.stop_reason == "max_tokens"
    answer = gpt.chat.completions.create(model="m", messages=ASKED)
    assert answer.choices[0].finish_reason == "length"
