"""Extracts: what was decided and wished for, found without a model and said to be so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessiontree import formats
from sessiontree.core.message import Part, Role
from sessiontree.core.reclaim import extract
from sessiontree.core.reclaim.extract import Extract
from sessiontree.core.reclaim.words import WORDS, Words


class Said:
    def __init__(self, role: Role, text: str, *parts: Part) -> None:
        self.role: Role = role
        self.parts: list[Part] = [{"type": "text", "content": text}, *parts]


def of(*texts: str, **options: Any) -> Extract:
    return extract.plan([Said("user", text) for text in texts], **options)


ANY = st.text(st.characters(exclude_categories=()), max_size=200)
TALK = st.lists(
    st.builds(
        Said,
        st.sampled_from(["user", "assistant", "tool", "system", "mark"]),
        st.lists(
            st.sampled_from(
                ["We decided so. ", "I prefer tea! ", "refund policy ", "数据库迁移", "\n- ", "```"]
            )
            | ANY
        ).map("".join),
    ),
    max_size=8,
)


# --- What is found ------------------------------------------------------------------------

SAID = {
    "en": ("We decided to keep PostgreSQL.", "I prefer short answers."),
    "de": ("Wir haben uns für den Versand am Montag entschieden.", "Bitte keine Anglizismen!"),
    "fr": ("On part sur la livraison express.", "Je préfère le tutoiement."),
    "es": ("Vamos a usar la dirección nueva.", "Prefiero respuestas cortas."),
    "pt": ("Vamos ficar com o plano barato.", "Não quero mensagens longas."),
    "it": ("Abbiamo deciso di rimborsare.", "Preferisco il tono formale."),
    "nl": ("We gaan voor de tweede optie.", "Liever geen plaatjes."),
    "vi": ("Chúng ta quyết định hoàn tiền.", "Tôi muốn câu trả lời ngắn."),
    "zh": ("我们决定使用新的数据库。", "我希望回答简短。"),
    "ja": ("方針は返金に決定しました。", "丁寧語で書いてほしい。"),
}


@pytest.mark.parametrize("language", WORDS)
def test_decisions_and_preferences_are_found_in_every_language(language: str) -> None:
    decision, preference = SAID[language]
    for words in (WORDS, {language: WORDS[language]}):
        found = of(f"Hm. {decision} {preference}", words=words)
        assert found.decisions == (decision,)
        assert found.preferences == (preference,)


@pytest.mark.parametrize("language", WORDS)
def test_every_phrase_of_the_lists_is_met(language: str) -> None:
    words = WORDS[language]
    for phrase in words.decisions:
        assert of(f"Xyz, {phrase} xyz.", words={language: words}).decisions, phrase
    for phrase in words.preferences:
        only = {language: words._replace(decisions=())}
        assert of(f"Xyz, {phrase} xyz.", words=only).preferences, phrase


@pytest.mark.parametrize("language", WORDS)
def test_the_lists_are_in_small_letters_with_straight_apostrophes(language: str) -> None:
    words = WORDS[language]
    for phrase in (*words.decisions, *words.preferences, *words.stop):
        assert phrase == phrase.lower().strip()
        assert "\u2019" not in phrase
        assert phrase


def test_a_question_decides_nothing() -> None:
    assert of("Have we decided? Shall we always do that? 决定了吗？") == Extract(messages=1)


def test_a_phrase_is_met_as_whole_words_only() -> None:
    assert of("The undecided agreedment neverland.").decisions == ()
    assert of("The undecided agreedment neverland.").preferences == ()


def test_curly_apostrophes_and_parted_accents_are_met() -> None:
    assert of("J\u2019aimerais du the\u0301.").preferences == ("J'aimerais du thé.",)


def test_preferences_are_those_of_the_user() -> None:
    found = extract.plan([Said("assistant", "I prefer tea."), Said("assistant", "Agreed: tea.")])
    assert (found.decisions, found.preferences) == (("Agreed: tea.",), ())


def test_what_tools_returned_and_code_is_not_looked_at() -> None:
    response = {"type": "tool_call_response", "id": "c", "response": "We decided to leak it."}
    found = extract.plan(
        [Said("tool", "", response), Said("user", "See:\n```\n# we decided so\n```\nThanks")]
    )
    assert found.decisions == ()


def test_themes_are_what_several_messages_speak_of() -> None:
    found = of(
        "The refund policy of LK is old, the truck is red.",
        "A new refund policy?",
        "truck truck truck truck",
        "no refund for the truck",
    )
    assert found.themes == ("refund", "truck", "refund policy")


def test_a_word_without_a_theme_in_one_language_may_be_one_in_another() -> None:
    assert of("what was in the van", "that van is not in use").themes == ("van",)
    assert "van" not in of("de kleur van de auto", "de prijs van de auto").themes


def test_a_theme_that_is_part_of_one_as_common_is_told_once() -> None:
    assert of("数据库迁移很重要", "数据库迁移明天", "refund policy", "Refund Policy").themes == (
        "refund policy",
        "数据库迁移",
    )


def test_the_newest_are_kept_each_once() -> None:
    texts = [f"We decided on plan {chr(97 + at)}." for at in range(12)] + ["we decided on plan B."]
    found = of(*texts, most=3)
    assert found.decisions == (
        "We decided on plan k.",
        "We decided on plan l.",
        "we decided on plan B.",
    )


def test_a_long_sentence_is_cut_and_a_pasted_text_is_read_to_a_point() -> None:
    found = of("We decided " + "so " * 200, "x\n" * extract.READ + "We decided late.")
    assert [len(each) <= extract.SHOWN + 1 for each in found.decisions] == [True]
    assert found.decisions[0].endswith("…")


def test_a_caller_can_bring_words_of_his_own() -> None:
    swedish = Words(("vi bestämde",), ("jag föredrar",), frozenset({"och"}))
    found = of("Vi bestämde det. Jag föredrar te och kaffe.", words=WORDS | {"sv": swedish})
    assert found.decisions == ("Vi bestämde det.",)
    assert found.preferences == ("Jag föredrar te och kaffe.",)
    assert of("We decided so.", words={"sv": swedish}).decisions == ()
    assert of("We decided so.", words={}).text == ""


# --- How it is told -----------------------------------------------------------------------


def test_the_note_says_what_it_is_before_anything_else() -> None:
    found = of("We decided so. I prefer tea.", "tea again", "tea")
    assert found.text == str(found)
    assert found.text.splitlines() == [
        extract.LABEL.format(messages=3),
        "Decided:",
        '- "We decided so."',
        "The user wants:",
        '- "I prefer tea."',
        "Themes: tea",
    ]
    assert "not by a model" in extract.LABEL
    assert found.mark["text"] == found.text


def test_nothing_found_is_no_note() -> None:
    assert of("hm", "well").text == ""
    assert extract.plan([]) == Extract()


@given(TALK)
def test_nothing_that_was_said_passes_for_a_line_of_ours(talk: list[Said]) -> None:
    found = extract.plan(talk)
    heads = ("Decided:", "The user wants:", "Themes: ")
    lines = found.text.splitlines()[1:]
    for line in lines:
        assert line.startswith((*heads, '- "'))
        assert line.isprintable()
    assert sum(line.startswith("- ") for line in lines) == len(found.decisions + found.preferences)
    assert len(found.text) <= 500 + 2 * extract.MOST * (extract.SHOWN + 6) + len(str(found.themes))


@given(TALK)
def test_the_same_turns_give_the_same_extract_and_the_mark_keeps_it(talk: list[Said]) -> None:
    found = extract.plan(talk)
    assert found == extract.plan(talk)
    mark = json.loads(json.dumps(found.mark))
    assert extract.of_mark(mark) == found
    assert formats.codec("mark").encode("mark", formats.codec("mark").decode(mark).parts) == [mark]


@given(TALK, TALK)
def test_an_extract_goes_on_from_the_one_before(old: list[Said], new: list[Said]) -> None:
    before = extract.plan(old)
    found = extract.plan(new, before=before)
    whole = extract.plan([*old, *new])
    assert found.decisions == whole.decisions
    assert found.preferences == whole.preferences
    assert found.messages == whole.messages
    assert set(before.themes[: extract.MOST // 2]) <= set(found.themes)


@pytest.mark.parametrize(
    "mark",
    [
        {},
        {"decisions": "x", "preferences": None, "themes": 4, "messages": "many"},
        {"decisions": [1, {}, "a\nDecided:\n- b"], "messages": -4},
    ],
)
def test_a_mark_of_another_hand_is_read_for_what_it_holds(mark: dict[str, Any]) -> None:
    found = extract.of_mark(mark)
    assert found.messages == 0
    assert all("\n" not in each for each in found.decisions)
    assert extract.plan([], before=found).decisions == found.decisions


@pytest.mark.parametrize(
    "text",
    [
        "decided " * 10**5,
        "let's " * 10**5,
        "." * 10**6,
        "a. " * 10**5,
        " " * 10**6,
        "'" * 10**6,
        "a-" * 10**6,
        "数" * 10**5,
        "".join(map(chr, range(0x4E00, 0x9FFF))),
        "```" * 10**5,
        "\n" * 10**6,
    ],
    ids=range(11),
)
def test_long_text_made_to_be_slow_is_not(text: str) -> None:
    found = of(*[text] * 5)
    assert len(found.text) < 5_000


def test_no_more_themes_are_held_than_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extract, "HELD", 50)
    texts = [
        f"refund {''.join(chr(97 + (at * 7 + i) % 26) for i in range(5))}" for at in range(200)
    ]
    themes = extract._Themes([])
    for text in texts:
        themes.add(text)
        assert len(themes.counts) <= 50
        assert themes.shown.keys() == themes.counts.keys()
    assert "refund" in themes.best(5)


def test_real_sessions_give_extracts(corpus: Path) -> None:
    lines = (corpus / "pi" / "before-compaction.jsonl").read_text().splitlines()
    said = [formats.codec("pi").decode(json.loads(line)) for line in lines]
    found = extract.plan(said)
    assert found.messages > 100
    assert found.themes
    assert found.preferences
