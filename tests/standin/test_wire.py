"""The stand-in over plain HTTP: what is refused, in which words, and what is remembered."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from sessiontree.core import recover
from tests.standin import StandIn, Step, load

ROOT = Path(__file__).resolve().parents[2]
PATHS = {"anthropic": "/v1/messages", "openai_chat": "/v1/chat/completions"}
BOTH = pytest.mark.parametrize("provider", sorted(PATHS))
Json = dict[str, Any]


def ask(url: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any, Any]:
    """(status, headers, body) of one request; the body as text when it is no JSON."""
    host = url.removeprefix("http://")
    connection = http.client.HTTPConnection(host, timeout=30)
    try:
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("GET" if body is None else "POST", path, data, names)
        response = connection.getresponse()
        text = response.read().decode()
        is_json = response.headers.get_content_type() == "application/json"
        return response.status, response.headers, json.loads(text) if is_json else text
    finally:
        connection.close()


def say(server: StandIn, provider: str, *messages: Json, **more: Any) -> tuple[int, Any]:
    body = {"model": "m", "max_tokens": 100, "messages": list(messages), **more}
    if provider == "openai_chat" and "max_tokens" not in more:
        del body["max_tokens"]
    status, _, answer = ask(server.url, PATHS[provider], body)
    return status, answer


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def said(answer: Any, provider: str) -> str:
    if provider == "anthropic":
        return "".join(block.get("text", "") for block in answer["content"])
    return answer["choices"][0]["message"]["content"]


def refused(answer: Any) -> str:
    return answer["error"]["message"]


# --- Answers --------------------------------------------------------------------------------


@BOTH
def test_without_a_script_it_tells_how_many_user_messages_it_got_and_the_last(
    provider: str,
) -> None:
    with StandIn() as server:
        answer = {"role": "assistant", "content": "Hi."}
        status, body = say(server, provider, user("one"), answer, user("two"))
    assert status == 200
    assert said(body, provider) == "2 user messages; the last one: two"


@BOTH
def test_steps_answer_in_order_and_one_with_a_pattern_only_what_it_matches(provider: str) -> None:
    script = ["first", {"when": "(?i)summar", "text": "in short"}, "second"]
    with StandIn(script) as server:
        asked = ("a", "Summarise this.", "b", "Summarise this.")
        heard = [said(say(server, provider, user(text))[1], provider) for text in asked]
        assert server.left == []
    assert heard == ["first", "in short", "second", "1 user message; the last one: Summarise this."]


@BOTH
def test_a_step_that_stays_answers_every_request_that_it_matches(provider: str) -> None:
    with StandIn([{"when": "^more", "always": True, "text": "again"}, "else"]) as server:
        heard = [
            said(say(server, provider, user(text))[1], provider) for text in ("more", "x", "more")
        ]
        assert server.left == []
    assert heard == ["again", "else", "again"]


def test_many_requests_at_once_take_each_step_once() -> None:
    with StandIn([f"step {at}" for at in range(24)]) as server:
        heard: list[str] = []
        threads = [
            threading.Thread(
                target=lambda: heard.append(
                    said(say(server, "anthropic", user("go"))[1], "anthropic")
                )
            )
            for _ in range(24)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({each.number for each in server.requests}) == 24
    assert sorted(heard) == sorted(f"step {at}" for at in range(24))


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (7, "a text or an object"),
        ({"txt": "x"}, "no txt"),
        ({"stop": "sudden"}, "stop is 'sudden'"),
        ({"piece": 0}, "piece is 0"),
        ({"calls": [{"id": "c"}]}, "without a name"),
    ],
)
def test_a_step_that_is_none_is_refused_when_the_script_is_read(given: object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        StandIn([given])


# --- Refusals -------------------------------------------------------------------------------


def test_a_call_without_its_result_is_refused_in_anthropics_words() -> None:
    call: Json = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}
    with StandIn() as server:
        calls: Json = {"role": "assistant", "content": [call]}
        status, body = say(server, "anthropic", user("go"), calls, user("on"))
        assert server.requests[0].broken == ["A1"]
    assert (status, body["type"], body["error"]["type"]) == (400, "error", "invalid_request_error")
    assert refused(body) == (
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: "
        "toolu_1. Each `tool_use` block must have a corresponding `tool_result` block in the next "
        "message."
    )


def test_a_result_without_its_call_is_refused_in_anthropics_words() -> None:
    result = {"type": "tool_result", "tool_use_id": "toolu_9", "content": "x"}
    with StandIn() as server:
        status, body = say(server, "anthropic", {"role": "user", "content": [result]})
    assert status == 400
    assert refused(body).startswith(
        "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_9."
    )


def test_a_call_without_its_result_is_refused_in_openais_words() -> None:
    call: Json = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    with StandIn() as server:
        calls: Json = {"role": "assistant", "content": None, "tool_calls": [call]}
        status, body = say(server, "openai_chat", user("go"), calls, user("on"))
    assert status == 400
    assert body["error"]["type"] == "invalid_request_error"
    assert refused(body) == (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to "
        "each 'tool_call_id'. The following tool_call_ids did not have response messages: c1"
    )


@BOTH
def test_more_tokens_than_the_limit_are_refused_with_both_figures(provider: str) -> None:
    with StandIn(context_limit=50) as server:
        status, body = say(server, provider, user("word " * 200))
        room = say(server, provider, user("Hi."), max_tokens=60)
        assert say(server, provider, user("Hi."), max_tokens=10)[0] == 200
        counted = server.requests[2].tokens
    excess = recover.read(refused(body))
    assert status == 400
    assert excess is not None
    assert (excess.kind, excess.limit) == ("tokens", 50)
    assert excess.actual is not None
    assert excess.actual > 250
    with_room = recover.read(refused(room[1]))
    assert with_room is not None
    assert (room[0], with_room.actual, with_room.limit) == (400, counted, -10)
    if provider == "openai_chat":
        assert body["error"]["code"] == "context_length_exceeded"


@BOTH
def test_more_bytes_than_the_limit_are_refused_before_anything_is_read(provider: str) -> None:
    with StandIn(bytes_limit=300) as server:
        status, body = say(server, provider, user("x" * 300))
        assert server.requests[0].body is None
        assert say(server, provider, user("x"))[0] == 200
    found = recover.read(body)
    assert status == 413
    assert found is not None
    assert found.kind == "bytes"


def test_a_scale_counts_as_another_tokenizer_would() -> None:
    counts: list[int] = []
    for scale in (1.0, 2.5):
        with StandIn(scale=scale) as server:
            say(server, "anthropic", user("word " * 100))
            counts.append(server.requests[0].tokens)
    assert counts[1] == pytest.approx(2.5 * counts[0], abs=1)


@BOTH
@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"{", "JSON"),
        (b"[]", "JSON"),
        ({"messages": [{"role": "user", "content": "x"}]}, "model"),
        ({"model": "m", "max_tokens": 1, "messages": []}, "at least one"),
        ({"model": "m", "max_tokens": 1, "messages": ["x"]}, "object"),
        ({"model": "m", "max_tokens": 1, "messages": [{"role": "wizard"}]}, "role"),
    ],
)
def test_a_request_that_is_none_is_refused_with_a_reason(
    provider: str, body: Any, why: str
) -> None:
    with StandIn() as server:
        status, _, answer = ask(server.url, PATHS[provider], body)
    assert status == 400
    assert why in refused(answer)


def test_anthropic_wants_max_tokens_and_no_system_message() -> None:
    with StandIn() as server:
        body = {"model": "m", "messages": [user("x")]}
        assert refused(ask(server.url, PATHS["anthropic"], body)[2]) == "max_tokens: Field required"
        system = {"role": "system", "content": "Be brief."}
        status, answer = say(server, "anthropic", system, user("x"))
    assert status == 400
    assert refused(answer).startswith('messages: Unexpected role "system".')


@BOTH
def test_an_error_of_the_script_comes_in_the_providers_shape(provider: str) -> None:
    script = [{"error": 429, "retry_after": 3}, {"error": 500}, {"error": 529, "message": "Busy"}]
    with StandIn(script) as server:
        body = {"model": "m", "max_tokens": 9, "messages": [user("x")]}
        answers = [ask(server.url, PATHS[provider], body) for _ in script]
        assert [each.status for each in server.requests] == [429, 500, 529]
    assert [status for status, _, _ in answers] == [429, 500, 529]
    assert answers[0][1]["retry-after"] == "3"
    assert refused(answers[2][2]) == "Busy"
    if provider == "anthropic":
        kinds = [answer["error"]["type"] for _, _, answer in answers]
        assert kinds == ["rate_limit_error", "api_error", "overloaded_error"]


def test_with_a_key_only_who_bears_it_is_answered() -> None:
    with StandIn(api_key="k") as server:
        body = {"model": "m", "max_tokens": 9, "messages": [user("x")]}
        assert ask(server.url, PATHS["anthropic"], body)[0] == 401
        assert ask(server.url, PATHS["anthropic"], body, x_api_key="k")[0] == 200
        assert ask(server.url, PATHS["openai_chat"], body, authorization="Bearer k")[0] == 200


def test_a_path_that_is_none_is_not_found() -> None:
    with StandIn() as server:
        assert ask(server.url, "/v1/other", {})[0] == 404
        assert ask(server.url, "/v1/other")[0] == 404


# --- Connections ----------------------------------------------------------------------------


@BOTH
def test_a_dropped_connection_ends_without_a_word(provider: str) -> None:
    with StandIn([{"drop": True}, "well"]) as server:
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            say(server, provider, user("x"))
        assert (server.requests[0].status, server.requests[0].whole) == (0, False)
        assert say(server, provider, user("x"))[0] == 200


@BOTH
def test_a_stream_that_is_dropped_breaks_off_in_its_middle(provider: str) -> None:
    with StandIn([{"text": "a long answer " * 9, "drop": True, "after": 4}]) as server:
        with pytest.raises(http.client.IncompleteRead) as broken:
            say(server, provider, user("x"), stream=True)
        assert (server.requests[0].status, server.requests[0].whole) == (200, False)
    assert broken.value.partial.count(b"data: ") == 4


def test_stopping_the_server_does_not_wait_for_an_answer_that_is_slow() -> None:
    with StandIn([{"text": "slow", "wait": 600}]) as server:
        caller = threading.Thread(target=lambda: say(server, "anthropic", user("x")))
        caller.start()
        while not server.requests:
            time.sleep(0.001)
    caller.join(timeout=60)
    assert not caller.is_alive()


# --- What is remembered, and the process ------------------------------------------------------


def test_every_request_is_remembered_with_its_headers_body_and_tokens() -> None:
    with StandIn() as server:
        body = {"model": "m", "max_tokens": 9, "messages": [user("hello")], "system": "s" * 400}
        ask(server.url, PATHS["anthropic"], body, x_api_key="k", anthropic_version="2023-06-01")
        ask(server.url, f"{PATHS['anthropic']}/count_tokens", {**body, "tools": [{"name": "t"}]})
        first, second = server.requests
    assert (first.body, first.headers["x-api-key"], first.status) == (body, "k", 200)
    assert first.size == len(json.dumps(body))
    assert first.whole
    assert second.tokens > first.tokens > 100


def test_a_process_of_its_own_prints_its_address_and_follows_a_script(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps(["one", {"text": "two", "calls": [{"name": "f"}]}]))
    assert load(script) == [Step("one"), Step("two", calls=[{"name": "f"}])]
    command = [sys.executable, "-m", "tests.standin", "--script", str(script), "--context", "30"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            body = {"model": "m", "max_tokens": 9, "messages": [user("x")]}
            answers = [ask(url, PATHS["anthropic"], body)[2] for _ in range(2)]
            large = {**body, "messages": [user("word " * 90)]}
            assert ask(url, PATHS["anthropic"], large)[0] == 400
            shown = ask(url, "/standin/requests")[2]
        finally:
            os.kill(process.pid, signal.SIGTERM)
    assert process.returncode == 0
    assert [answer["stop_reason"] for answer in answers] == ["end_turn", "tool_use"]
    assert [each["status"] for each in shown] == [200, 200, 400]
    assert shown[0]["body"] == body
