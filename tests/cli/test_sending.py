"""What would be sent, as the command line shows it."""

from __future__ import annotations

import json
from collections.abc import Callable

from typer.testing import Result

from sessiontree.core.context import SHARES

Run = Callable[..., Result]


def test_window_shows_the_request_and_what_is_left_out(run: Run, ids: dict[str, int]) -> None:
    whole = json.loads(run("window", "1", "--target", "anthropic", "--json").stdout)
    assert whole["complete"] is True
    assert [m["role"] for m in whole["request"]["messages"]] == [
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
    ]
    cut = json.loads(run("window", "1", "--target", "anthropic", "--budget", "40", "--json").stdout)
    assert cut["dropped"]["count"] == 4
    assert cut["tokens"] <= 40
    assert "left out" in run("window", "1", "--budget", "40").stdout


def test_a_window_of_so_many_messages_keeps_turns_whole(run: Run, ids: dict[str, int]) -> None:
    asked = ("window", "1", "--target", "anthropic", "--json", "--max-messages")
    sent = {
        most: json.loads(run(*asked, str(most)).stdout)["request"]["messages"] for most in (1, 5)
    }
    assert all(messages[0]["role"] == "user" for messages in sent.values())
    assert len(sent[1]) == 1
    assert 1 < len(sent[5]) <= 5
    assert run(*asked, "0").exit_code == 1


def test_window_names_the_targets_that_exist_when_asked_for_another(
    run: Run, ids: dict[str, int]
) -> None:
    refused = run("window", "1", "--target", "telex")
    assert refused.exit_code == 1
    assert "anthropic" in refused.stderr


def test_a_budget_too_small_says_by_how_much(run: Run, ids: dict[str, int]) -> None:
    refused = run("window", "1", "--budget", "2")
    assert refused.exit_code == 1
    assert "too few" in refused.stderr


def test_context_accounts_for_every_token(run: Run, ids: dict[str, int]) -> None:
    found = json.loads(run("context", "1", "--json").stdout)
    assert set(found["tokens"]) == set(SHARES)
    assert found["tokens"]["tool results"] > 30
    assert "tool results" in run("context", "1", "--budget", "1000").stdout


def test_one_message_is_not_called_several(run: Run, ids: dict[str, int]):
    run("append", "mia/one", "hi", "--new")
    assert ", 1 message(s) sent to openai_chat, none" in run("window", "mia/one").stdout
