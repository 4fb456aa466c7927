"""What a provider, or a connection, or the lack of a key refuses: told in one line, and what
was asked is kept."""

from __future__ import annotations

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from tests.cli.chat.conftest import Talking
from tests.cli.chat.talking import Said


def only_problem(said: Said) -> str:
    problems = [note for note in said.notes if note.startswith("sessiontree: ")]
    assert len(problems) == 1, said.err
    return problems[0].removeprefix("sessiontree: ")


@pytest.mark.parametrize(
    ("status", "openai", "anthropic"),
    [
        (401, "Incorrect API key provided.", "invalid x-api-key"),
        (429, "Rate limit reached for requests.", "This request would exceed"),
        (500, "The server had an error", "Internal server error"),
    ],
)
def test_a_refusal_is_told_in_the_providers_words(
    talking: Talking, status: int, openai: str, anthropic: str
):
    talk = talking([{"error": status, "retry_after": 0.01, "always": True, "when": "^hi"}, "ok"])
    said = talk("hi\nthen\n", "--topic", "T-1")
    words = openai if talk.provider == "openai" else anthropic
    assert only_problem(said).startswith(f"{status}: {words}")
    assert (said.code, said.out) == (1, "ok\n")
    assert talk.path() == [("user", "hi"), ("user", "then"), ("assistant", "ok")]


def test_what_passes_is_tried_again_by_the_sdk(talking: Talking):
    talk = talking([{"error": 500, "retry_after": 0.01}, {"error": 429, "retry_after": 0.01}, "ok"])
    said = talk("hi\n", "--topic", "T-1")
    assert (said.code, said.out) == (0, "ok\n")
    assert [request.status for request in talk.server.requests] == [500, 429, 200]


def test_a_wrong_key_names_the_variable_that_holds_it(talking: Talking):
    talk = talking(api_key="right")
    problem = only_problem(talk("hi\n"))
    assert problem.endswith(f"(look at the key in {talk.provider.upper()}_API_KEY)")
    talk.more = {"OPENAI_API_KEY": "right", "ANTHROPIC_API_KEY": "right"}
    assert talk("hi\n").code == 0


def test_no_key_is_told_before_a_conversation_is_begun(talking: Talking):
    talk = talking()
    talk.more = {"OPENAI_API_KEY": "", "ANTHROPIC_API_KEY": " "}
    said = talk("hi\n", "--topic", "T-1")
    assert only_problem(said) == (
        f"there is no key for {talk.provider} (set {talk.provider.upper()}_API_KEY; "
        "a server that asks for none takes any)"
    )
    assert talk.server.requests == []
    talk.more = {}
    assert talk("/tree\n", "--topic", "T-1").out == "no messages\n"


def test_an_unknown_model_is_told(talking: Talking):
    words = "The model `m1` does not exist or you do not have access to it."
    talk = talking([{"error": 404, "message": words}])
    problem = only_problem(talk("hi\n"))
    assert problem == f"404: {words} (look at --model and --base-url)"


def test_no_model_at_all_is_told(only_openai: Talking):
    talk = only_openai()
    talk.model = ""
    assert only_problem(talk("hi\n", "--topic", "T-1")).startswith(
        "no model is named (give --model"
    )


def test_an_address_where_nobody_answers_is_told(talking: Talking):
    talk = talking()
    args = talk.command("--topic", "T-1")
    talk.server.__exit__(None, None, None)
    try:
        problem = only_problem(talk("hi\n", "--topic", "T-1"))
    finally:
        talk.server = type(talk.server)()  # for the fixture's end
        talk.server.__enter__()
    url = args[args.index("--base-url") + 1]
    assert problem.startswith(f"{url.removesuffix('/v1')}")
    assert "cannot be reached" in problem
    assert talk.path() == [("user", "hi")]


def test_an_address_that_is_none_is_told(talking: Talking):
    talk = talking()
    problem = only_problem(talk("hi\n", "--base-url", "localhost"))
    assert problem == "'localhost' is no address (--base-url http://… or https://…)"


def test_an_address_of_another_kind_is_told(only_openai: Talking):
    talk = only_openai()
    problem = only_problem(talk("hi\n", "--base-url", f"{talk.server.url}/nothing"))
    assert problem == "404: Not found: /nothing/chat/completions (look at --model and --base-url)"


class _Odd(BaseHTTPRequestHandler):
    """Answers every request with 200 and what its server holds."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        body = self.server.body  # pyright: ignore
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""


ODD = {
    "a page": b"<html><body>It works!</body></html>",
    "nothing": b"",
    "no JSON": b"event: message_start\ndata: {oops\n\n",
    "a list": b"event: message_start\ndata: [1, 2]\n\n",
    "no fields": b'event: message_delta\ndata: {"type": "message_delta", "choices": [7]}\n\n',
    "no such block": b'event: content_block_delta\ndata: {"type": "content_block_delta", '
    b'"index": 4, "delta": {"type": "citations_delta"}, '
    b'"choices": [{"delta": {"tool_calls": [{"index": {}}]}}]}\n\n',
    "no bytes of text": b"event: message_start\ndata: \xff\xfe\n\n",
}


@pytest.mark.parametrize("body", ODD.values(), ids=ODD)
def test_a_server_that_speaks_something_else_is_told_of(talking: Talking, body: bytes):
    talk = talking()
    with ThreadingHTTPServer(("127.0.0.1", 0), _Odd) as server:
        server.body = body  # pyright: ignore
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        try:
            said = talk("hi\n", "--base-url", url, "--topic", "T-1")
        finally:
            server.shutdown()
    problem = only_problem(said)
    assert "cannot be read: " in problem or problem.startswith("the answer broke off")
    assert (said.code, said.out) == (1, "")
    assert talk.path() == [("user", "hi")]


@pytest.mark.parametrize("step", [{"drop": True}, {"error": 500}])
def test_an_answer_that_breaks_off_is_shown_and_not_kept(talking: Talking, step: dict[str, object]):
    talk = talking([{"text": "half of it and no more", "piece": 4, "after": 5, **step}, "ok"])
    said = talk("hi\n/retry\n", "--topic", "T-1")
    first, second = said.answers
    assert first
    assert "half of it and no more".startswith(first)
    assert second == "ok"
    assert only_problem(said).endswith("(/retry asks again)")
    assert talk.path() == [("user", "hi"), ("assistant", "ok")]


def test_a_stream_that_ends_without_saying_so_is_no_answer(talking: Talking):
    talk = talking([{"text": "all of it but the end", "after": 4, "error": 200, "message": ""}])
    talk.server.script.take("")  # the script's own way to break off is not quiet enough
    talk.server.script.add([{"text": "one two three four", "piece": 4, "after": 5, "drop": True}])
    said = talk("hi\n", "--topic", "T-1")
    assert only_problem(said) == "the answer broke off before its end (/retry asks again)"
    assert talk.path() == [("user", "hi")]


def test_an_answer_cut_at_its_limit_is_kept_and_told(talking: Talking):
    talk = talking([{"text": "so far", "stop": "length"}, {"text": "", "stop": "refusal"}])
    said = talk("hi\nmore\n", "--topic", "T-1", "--max-tokens", 5)
    assert "(the answer was cut off at its limit; --max-tokens raises it)" in said.notes
    assert "(the model refused to go on)" in said.notes
    assert said.code == 0
    assert talk.path()[1] == ("assistant", "so far")
    assert talk.server.requests[0].body["max_tokens"] == 5
    assert talk("again\n", "--topic", "T-1").code == 0


def test_an_sdk_that_is_not_installed_names_the_extra(
    talking: Talking, monkeypatch: pytest.MonkeyPatch
):
    talk = talking()
    monkeypatch.setitem(sys.modules, talk.provider, None)
    problem = only_problem(talk("hi\n"))
    assert problem == (
        f"the package {talk.provider!r} is not installed (pip install 'sessiontree[chat]')"
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--summarize"], "--summarize does not say when"),
        (["--summarize", "--stateless", "--max-messages", 4], "--stateless leaves nothing"),
        ([1, "--topic", "T-1"], "a conversation is named twice"),
        ([1, "--owner", "robin"], "a conversation is named twice"),
        ([99], "there is no conversation '99'"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    only_openai: Talking, given: list[object], words: str
):
    said = only_openai()("hi\n", *given)
    assert only_problem(said).startswith(words)
    assert said.code == 1
