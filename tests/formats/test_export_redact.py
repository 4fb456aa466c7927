"""Secrets are taken out, words that look like some are left, and what is left is sound."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from written import answering, calling, message, said

from sessiontree import formats
from sessiontree.formats.redact import Redactor

# None of these opens anything: they have the shapes, and letters that count up.
SECRETS = {
    "sk-ant-api03-" + "aB1-" * 20 + "AA": "anthropic key",
    "sk-proj-" + "aB3_" * 20: "api key",
    "sk-" + "a1B2c3d4" * 6: "api key",
    "gsk_" + "a1B2c3d4" * 5: "api key",
    "AIza" + "a1B2C3d" * 5: "google key",
    "ya29." + "a1B2C3d" * 5: "google token",
    "AKIA" + "ABCD1234" * 2: "aws key",
    "ghp_" + "a1B2c3" * 6: "github token",
    "github_pat_" + "11ABCDEF" * 5: "github token",
    "glpat-" + "a1B2c3d4" * 3: "gitlab token",
    "xoxb-1234567890-1234567890123-" + "aBc1" * 6: "slack token",
    "sk_live_" + "a1B2c3d4" * 3: "stripe key",
    "hf_" + "aBcDeFgHiJ" * 3 + "kLmN": "hugging face token",
    "npm_" + "a1B2c3" * 6: "npm token",
    "pypi-AgEIcHlwaS5vcmc" + "a1B2c3d4" * 4: "pypi token",
    "SG." + "a1B2c3d4" * 3 + "." + "a1B2c3d4" * 5: "sendgrid key",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abcDEF123_-abcDEF123": "json web token",
    "-----BEGIN PRIVATE KEY-----\nMIIEpAIBAAKC\n+/=\n-----END PRIVATE KEY-----": "private key",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk": "private key",
}  # fmt: skip

NAMED = [
    ("password: hunter2", "hunter2"),
    ("PASSWORD=correcthorse", "correcthorse"),
    ('password = "correct horse battery"', "correct horse battery"),
    ("DB_PASSWORD='p4ss!'", "p4ss!"),
    ('{"api_key": "abcd1234efgh5678"}', "abcd1234efgh5678"),
    ('{\\"api_key\\": \\"abcd1234efgh5678\\"}', "abcd1234efgh5678"),
    ("export AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", "wJalrXUtnFEMI/K7MDENG"),
    ("client_secret: 'a1b2c3d4e5f6'", "a1b2c3d4e5f6"),
    ("Authorization: Bearer abcdef0123456789abcdef", "abcdef0123456789abcdef"),
    ("authorization: basic dXNlcjpwYXNzd29yZDEyMw==", "dXNlcjpwYXNzd29yZDEyMw=="),
    ("postgres://bob:hunter2secret@db/x", "hunter2secret"),
    ("Set-Cookie: sid=abcdef0123456; Path=/", "sid=abcdef0123456"),
    ("https://hooks.slack.com/services/T000/B000/abcdefghijkl", "abcdefghijkl"),
]

HARMLESS = [
    "max_tokens: 4096 and input_tokens=12345678",
    '{"usage": {"input_tokens": 12345678, "cache_read_tokens": 99}}',
    "password: str = Field(...)",
    "login(user, password=password)",
    "the password: should be long",
    "token = get_token()",
    "secret_name = settings.SECRET_NAME",
    "API_KEY=${API_KEY}",
    'api_key = os.environ["KEY"]',
    "api_key: your-api-key-1234",
    "task-force-one-two-three-four-five-six",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "toolu_01Gbs41yRWc2W5JEW6w87PNA call_abc123DEF456ghi789 msg_01USxtUXmWaa9bAeQETXfNr5",
    "fe5e1c67-53e7-4862-81ae-d0e013e3270b",
    "http://localhost:8080/a@b",
    "basic understanding of bearer instruments",
    "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
]


@pytest.mark.parametrize(("secret", "kind"), SECRETS.items(), ids=lambda each: str(each)[:24])
def test_a_secret_of_a_known_shape_is_replaced_and_counted(secret: str, kind: str):
    redactor = Redactor()
    assert redactor.text(f"look: {secret}") == f"look: [redacted: {kind} 1]"
    assert (redactor.count, dict(redactor.kinds)) == (1, {kind: 1})


@pytest.mark.parametrize(("text", "secret"), NAMED)
def test_a_secret_behind_its_name_is_replaced_and_the_name_stays(text: str, secret: str):
    redactor = Redactor()
    redacted = redactor.text(text)
    assert secret not in redacted
    assert "[redacted: " in redacted
    assert redacted.startswith(text[:5])
    assert redactor.count == 1


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_looks_like_one_stays(text: str):
    redactor = Redactor()
    assert redactor.text(text) == text
    assert redactor.value({"content": text}) == {"content": text}
    assert redactor.count == 0


def test_the_same_secret_has_the_same_name_everywhere():
    redactor = Redactor()
    redacted = redactor.text("password=abcd1 password=efgh2 password=abcd1")
    assert redacted == (
        "password=[redacted: password 1] password=[redacted: password 2] "
        "password=[redacted: password 1]"
    )
    assert redactor.count == 2


@pytest.mark.parametrize(
    ("native", "expected"),
    [
        ({"password": "x y z!"}, {"password": "[redacted: password 1]"}),
        ({"apiKey": "abc12345"}, {"apiKey": "[redacted: key or token 1]"}),
        ({"clientSecret": "abc12345"}, {"clientSecret": "[redacted: key or token 1]"}),
        ({"a": {"GH_TOKEN": "abc12345"}}, {"a": {"GH_TOKEN": "[redacted: key or token 1]"}}),
        ({"token": "Hello"}, {"token": "Hello"}),
        ({"input_tokens": 12345678, "pwd": None}, {"input_tokens": 12345678, "pwd": None}),
        ({"keys": ["a", ["password=abcd1"]]}, {"keys": ["a", ["password=[redacted: password 1]"]]}),
        ({"signature": "EqQBCkgIAR" * 9}, {"signature": "EqQBCkgIAR" * 9}),
    ],
)  # fmt: skip
def test_a_value_is_known_by_its_key(native: dict[str, Any], expected: dict[str, Any]):
    before = json.dumps(native)
    assert Redactor().value(native) == expected
    assert json.dumps(native) == before, "what was given must stay as it was"


def test_a_message_without_secrets_is_the_same_message():
    given = message(calling("c1", command="ls"))
    assert Redactor().message(given) is given


def test_calls_and_results_still_belong_together():
    redactor = Redactor()
    secret = "ghp_" + "a1B2c3" * 6
    call = redactor.message(message(calling("toolu_1", text=f"use {secret}", password="hunter2")))
    result = redactor.message(message(answering("toolu_1", f"got {secret}")))
    assert call.tool_calls[0].id == result.tool_results[0].id == "toolu_1"
    assert call.tool_calls[0].arguments == {"password": "[redacted: password 1]"}
    assert result.tool_results[0].response == "got [redacted: github token 1]"
    assert secret not in call.raw + call.preview + result.raw + result.preview
    assert call.preview == "use [redacted: github token 1]"


def test_notes_and_reports_are_redacted_too_and_numbers_stay():
    given = message(said("1e400 and password=abcd1"), meta='{"note": "token=abc12345x"}')
    redacted = Redactor().message(given)
    assert redacted.meta == {"note": "token=[redacted: key or token 1]"}
    huge = formats.codec  # any codec: content is looked at as JSON only
    row = given.row._replace(content='{"role":"user","content":"password=abcd1","n":1e400}')
    redacted = Redactor().message(type(given)(row, huge))
    assert json.loads(redacted.raw)["n"] == float("inf")
    assert "Infinity" not in redacted.raw


def test_a_secret_that_a_preview_cuts_in_two_is_not_in_it():
    secret = "sk-ant-api03-" + "aB1-" * 40
    given = message(said("x" * 90 + " " + secret))
    assert "sk-ant" in given.preview
    assert "sk-ant" not in Redactor().message(given).preview


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.text(max_size=30) | st.integers() | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(VALUES)
def test_redacting_twice_changes_nothing_more(value: Any):
    once = Redactor().value(value)
    assert Redactor().value(once) == once


def test_deep_values_and_long_texts_are_walked_without_recursion():
    deep: Any = "password=abcd1"
    for _ in range(5_000):
        deep = [deep]
    redacted = Redactor().value(deep)
    while isinstance(redacted, list):
        redacted = redacted[0]
    assert redacted == "password=[redacted: password 1]"
    assert Redactor().text("-----BEGIN PRIVATE KEY-----" * 20_000).count("redacted") == 1


def test_real_sessions_have_no_false_finds(corpus: Path):
    redactor = Redactor()
    for name in ("claude-code/session-fe5e1c67.jsonl", "pi/before-compaction.jsonl"):
        for line in (corpus / name).read_text().split("\n"):
            if line:
                redactor.value(json.loads(line))
    assert dict(redactor.kinds) == {}
