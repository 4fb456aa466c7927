"""What the providers' errors say of a request's size."""

from __future__ import annotations

import pytest
from paths import path, user, window

from sessiontree.core import recover

TOKENS = [
    ("prompt is too long: 210000 tokens > 200000 maximum", 210_000, 200_000),
    (
        "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease "
        "input length or `max_tokens` and try again",
        188_240,
        178_667,
    ),
    ("ValidationException: Input is too long for requested model.", None, None),
    ("Your input exceeds the context window of this model.", None, None),
    ("{'error': {'code': 'context_length_exceeded', 'message': 'too long'}}", None, None),
    (
        "This model's maximum context length is 128000 tokens. However, your messages resulted in "
        "130,500 tokens. Please reduce the length of the messages.",
        130_500,
        128_000,
    ),
    (
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens "
        "(7000 in the messages, 2000 in the completion). Please reduce the length.",
        7_000,
        6_192,
    ),
    (
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        1_200_000,
        1_048_576,
    ),
    (
        "This model's maximum prompt length is 131072 but the request contains 137000 tokens.",
        137_000,
        131_072,
    ),
    ("Please reduce the length of the messages or completion.", None, None),
    (
        "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
        5_000,
        4_096,
    ),
    ("request_too_large: too many tokens in the request", None, None),
]

BYTES = [
    ("413 Payload Too Large", None, None),
    ("{'type': 'error', 'error': {'type': 'request_too_large'}}", None, None),
    ("Request exceeds the maximum size", None, None),
    ("Request exceeds the maximum allowed number of bytes: 33554432", None, 33_554_432),
    ("Request payload size exceeds the limit: 20971520 bytes.", None, 20_971_520),
    ("request entity too large: 40000000 bytes > 32000000", 40_000_000, 32_000_000),
]

OTHER = [
    "rate limit exceeded: 413000 tokens per minute",
    "Invalid `signature` in `thinking` block",
    "messages: text content blocks must be non-empty",
    "overloaded_error",
    "",
    "max_tokens: 300000 > 64000, which is the maximum allowed number of output tokens",
]


@pytest.mark.parametrize(("text", "actual", "limit"), TOKENS)
def test_too_many_tokens_is_read_with_its_numbers(text, actual, limit):
    assert recover.read(text) == ("tokens", actual, limit)


@pytest.mark.parametrize(("text", "actual", "limit"), BYTES)
def test_too_many_bytes_is_another_thing(text, actual, limit):
    assert recover.read(text) == ("bytes", actual, limit)


@pytest.mark.parametrize("text", OTHER)
def test_an_error_about_something_else_is_not_one_of_size(text):
    assert recover.read(text) is None


def test_exceptions_bodies_and_bytes_are_read_too():
    class APIError(Exception):
        status_code = 413

    class TooLong(Exception):
        body = {"error": {"message": TOKENS[0][0]}}  # noqa: RUF012

    assert recover.read(APIError("no")) == ("bytes", None, None)
    assert recover.read(TooLong("Error code: 400")) == ("tokens", 210_000, 200_000)
    assert recover.read({"error": {"message": TOKENS[0][0]}}).limit == 200_000
    assert recover.read({"status": 413}).kind == "bytes"
    assert recover.read(TOKENS[0][0].encode()).actual == 210_000
    assert recover.read(ValueError("unrelated")) is None


def a_window(words: int):
    return window(path([user("word " * words)], "anthropic"), "anthropic")


def test_our_own_count_is_scaled_to_what_the_provider_counted():
    sent = a_window(1_000)
    actual = sent.tokens * 2
    found = sent.recover(f"prompt is too long: {actual} tokens > {actual // 2} maximum")
    assert (found.over, found.limit) == (actual - actual // 2, actual // 2)
    assert found.budget == int(sent.tokens / 2 * recover.MARGIN)
    assert str(found).endswith(f"plan with {found.budget} tokens")


def test_without_numbers_the_next_window_is_a_fifth_smaller():
    sent = a_window(1_000)
    found = sent.recover("Input is too long for requested model.")
    assert (found.over, found.budget) == (None, int(sent.tokens * 0.8))


def test_with_the_limit_alone_the_smaller_of_both_is_taken():
    sent = a_window(1_000)
    found = sent.recover("maximum context length is 100 tokens")
    assert found.budget == 98


def test_too_many_bytes_are_answered_in_bytes():
    sent = a_window(1_000)
    found = sent.recover("413 Payload Too Large")
    assert (found.kind, found.budget) == ("bytes", int(sent.bytes * 0.8))


def test_an_error_about_something_else_is_no_reason_to_plan_again():
    assert a_window(1).recover("overloaded_error") is None
