"""Snapshots: planned, drawn again from their mark, and never dearer than the text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pages_of import decode, drawn_slowly

from sessiontree import formats
from sessiontree.core import rules
from sessiontree.core.message import Part, Role
from sessiontree.core.reclaim import glyphs, readers, snapshot
from sessiontree.core.reclaim.snapshot import Limits, Options, Snapshot
from sessiontree.errors import WindowError

READERS = [
    ("anthropic", "claude-opus-4-8"),
    ("anthropic", "claude-sonnet-4-6"),
    ("anthropic", None),
    ("bedrock", "anthropic.claude-opus-4-8-v1:0"),
    ("openai_chat", "gpt-6.2"),
    ("openai_chat", "gpt-4o"),
    ("openai_responses", "gpt-5"),
    ("openai_responses", "gpt-5-mini"),
    ("gemini", "gemini-3-pro"),
    ("gemini", "gemini-2.5-pro"),
]
draw_anew = snapshot.of_text.__wrapped__


class Said:
    def __init__(self, role: Role, text: str) -> None:
        self.role: Role = role
        self.parts: list[Part] = [{"type": "text", "content": text}]


def talk(turns: int, start: int = 0) -> list[Said]:
    """Turns of about 1,000 characters, no two alike."""
    said: list[Said] = []
    for at in range(start, start + turns):
        said.append(
            Said("user", f"Where is order LK-{26_000 + at}? " + f"It was late, {at}. " * 20)
        )
        said.append(Said("assistant", f"Order {at} is in van {at % 7}, shelf {at % 50}. " * 15))
    return said


def per_character(text: str) -> int:
    """A count by which pages always pay."""
    return len(text)


# --- What comes out -----------------------------------------------------------------------


@pytest.mark.parametrize(("target", "model"), READERS)
def test_old_turns_become_pages_that_cost_less_and_that_the_provider_takes(
    target: str, model: str | None
) -> None:
    found = snapshot.plan(talk(200), target, model=model, count=per_character)
    assert found.pages
    assert found.reason == ""
    assert 0 < found.tokens < found.text_tokens
    assert found.saves == found.text_tokens - found.tokens
    messages = formats.codec(target).encode("user", found.parts)
    assert rules.violations(messages, target, model=model) == []
    assert json.dumps(messages).count(found.pages[0].base64) == 1


@pytest.mark.parametrize(("target", "model"), READERS)
def test_a_page_shows_the_text_that_it_says(target: str, model: str | None) -> None:
    found = snapshot.plan(talk(60), target, model=model, count=per_character)
    geometry = readers.geometry_of(model, target)
    page = found.pages[0]
    text = page.text.replace("\n", "█")
    lines = [list(text[at : at + geometry.columns]) for at in range(0, len(text), geometry.columns)]
    bits = decode(page.png)
    some = len(lines) // 2
    expected = drawn_slowly(lines[some : some + 5], glyphs.shipped(), geometry)
    assert bits[some * geometry.cell_height : (some + 5) * geometry.cell_height] == expected
    assert (page.width, page.height) == (len(bits[0]), len(bits))
    assert found.text.startswith(page.text)


def test_three_more_turns_leave_the_first_pages_as_they_were_to_the_byte() -> None:
    for target, model in READERS:
        before = snapshot.plan(talk(60), target, model=model, count=per_character)
        again = snapshot.plan(talk(63), target, model=model, count=per_character)
        grown = snapshot.plan(
            talk(3, start=60), target, model=model, count=per_character, before=before.text
        )
        assert grown == again
        full = len(before.pages) - 1
        assert full >= 1
        assert [page.png for page in again.pages[:full]] == [p.png for p in before.pages[:full]]
        assert again.parts[: full + 1] == before.parts[: full + 1]
        assert again.text.startswith(before.text)


def test_a_mark_keeps_the_text_and_gives_the_same_pages() -> None:
    found = snapshot.plan(talk(30), "anthropic", model="claude-opus-4-8")
    mark = json.loads(json.dumps(found.mark))
    assert mark == {"role": "mark", "kind": "snapshot", "text": found.text}
    assert formats.codec("mark").encode("mark", formats.codec("mark").decode(mark).parts) == [mark]
    again = draw_anew(mark["text"], Options("anthropic", "claude-opus-4-8"))
    assert again == found
    assert snapshot.of_mark(mark, "anthropic", model="claude-opus-4-8") == found
    assert (
        snapshot.of_mark({"text": 5}, "anthropic").reason == "nothing was said that could be drawn"
    )


def test_exact_words_stand_beside_the_pages() -> None:
    said = [
        *talk(20),
        Said("user", "The file is src/van/route_17.py, commit 9f21c07, 1,234.50 EUR."),
    ]
    found = snapshot.plan(said, "anthropic", model="claude-opus-4-8")
    assert found.pages
    for word in ("src/van/route_17.py", "9f21c07", "1,234.50", "LK-26019"):
        assert word in found.note
    assert len(found.note) < 0.2 * len(found.text)


def test_characters_without_a_glyph_are_told() -> None:
    said = [*talk(20), Said("user", "🚀🚀 \x00")]
    found = snapshot.plan(said, "anthropic", model="claude-opus-4-8")
    assert found.missing == {"🚀": 2, "\x00": 1}
    assert "U+1F680 🚀 (2 times), U+0000 (1 times)" in found.note


def test_a_low_last_page_is_sent_as_text() -> None:
    geometry = readers.geometry_of("gemini-3-pro", "gemini")
    full = "x" * (geometry.columns * geometry.rows - len("¶user: ") - 1)
    found = snapshot.plan(
        [Said("user", full), Said("user", "the end")], "gemini", model="gemini-3-pro"
    )
    assert [page.height for page in found.pages] == [geometry.rows * geometry.cell_height]
    assert found.note.startswith(f"{snapshot.REST}\n¶user: the end\n")


def test_claude_is_not_shown_what_it_thought_but_the_mark_keeps_it() -> None:
    thought = Said("assistant", "")
    thought.parts = [{"type": "reasoning", "content": "secret thought " * 10}]
    said = [thought, *talk(30)]
    claude = snapshot.plan(said, "anthropic", model="claude-opus-4-8")
    gpt = snapshot.plan(said, "openai_chat", model="gpt-6.2")
    assert claude.text == gpt.text
    assert "secret thought" in gpt.pages[0].text
    assert "secret thought" not in "".join(page.text for page in claude.pages) + claude.note


# --- When there are no pages --------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"target": "openai_chat", "model": "gpt-3.5-turbo"}, "gpt-3.5-turbo takes no images"),
        ({"target": "openai_chat", "model": "gpt-4"}, "gpt-4 takes no images"),
        ({"target": "openai_chat", "model": "gpt-4o-mini"}, "thirty times"),
        ({"target": "anthropic", "vision": False}, "the model takes no images"),
        ({"target": "openai_chat", "model": "qwen3"}, "it is not known whether qwen3 takes images"),
        ({"target": "bedrock", "model": "amazon.nova-pro-v1:0"}, "it is not known"),
        ({"target": "gemini", "limits": Limits(pages=0)}, "no image may be sent"),
        ({"target": "gemini", "limits": Limits(images=0)}, "no image may be sent"),
        ({"target": "gemini", "limits": Limits(bytes=1000)}, "not one page fits 1,000 bytes"),
        ({"target": "gemini", "count": lambda text: len(text) // 100}, "pages would cost"),
        (
            {
                "target": "openai_chat",
                "model": "gpt-4.1-mini",
                "count": lambda text: len(text) // 5,
            },
            "the text ",
        ),
    ],
)
def test_where_there_are_no_pages_the_reason_is_clear(options: dict[str, Any], reason: str) -> None:
    found = snapshot.plan(talk(40), **options)
    assert found.pages == ()
    assert reason in found.reason
    assert found.parts == []
    assert found.saves == 0
    assert found.text, "the text is there for whoever wants it"


def test_nothing_said_is_nothing_to_draw() -> None:
    for said in ([], [Said("mark", "x")], [Said("system", "x")], [Said("user", " \n ")]):
        assert snapshot.plan(said, "gemini").reason == "nothing was said that could be drawn"


def test_little_said_is_no_page() -> None:
    assert "less than a page" in snapshot.plan(talk(1), "gemini", model="gemini-3-pro").reason


def test_text_that_would_be_all_boxes_is_refused_until_a_font_is_given() -> None:
    said = [Said("user", "数据库" * 3000)]
    found = snapshot.plan(said, "gemini", model="gemini-3-pro")
    assert found.pages == ()
    assert "have no glyph; give a font" in found.reason
    assert set(found.missing) == set("数据库")
    font = glyphs.load_hex(f"{ord(char):04X}:{'8001' * 16}" for char in "数据库")
    assert snapshot.plan(said, "gemini", model="gemini-3-pro", font=font).pages


def test_a_model_that_is_known_to_see_is_shown_pages() -> None:
    found = snapshot.plan(talk(60), "openai_chat", model="qwen3-vl", vision=True)
    assert 0 < len(found.pages) <= readers.IMAGES_OF_OTHERS


@pytest.mark.parametrize("limits", [{"pages": -1}, {"bytes": True}, {"images": 1.5}])
def test_a_limit_that_is_none_is_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(WindowError, match="is none"):
        Limits(**limits)


def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(WindowError, match="targets"):
        snapshot.plan(talk(3), "anthropics")


# --- Limits -------------------------------------------------------------------------------


def test_the_newest_pages_are_sent_where_not_all_may_be() -> None:
    everything = snapshot.plan(talk(100), "anthropic", count=per_character)
    few = snapshot.plan(talk(100), "anthropic", count=per_character, limits=Limits(pages=3))
    assert few.pages == everything.pages[-3:]
    assert few.left_out == sum(len(page.text) for page in everything.pages[:-3])
    assert f"{few.left_out:,} characters before the first page are not shown" in few.note
    assert few.text_tokens < everything.text_tokens


def test_bytes_are_those_of_the_base64() -> None:
    everything = snapshot.plan(talk(100), "anthropic", count=per_character)
    sizes = [len(page.base64) for page in everything.pages]
    for room, expected in ((sum(sizes[-2:]), 2), (sum(sizes[-2:]) - 1, 1)):
        few = snapshot.plan(talk(100), "anthropic", count=per_character, limits=Limits(bytes=room))
        assert len(few.pages) == expected


@settings(max_examples=40)
@given(
    st.text(st.characters(exclude_categories=()) | st.sampled_from("a1/ \n"), max_size=500),
    st.integers(1, 60),
    st.sampled_from(READERS),
    st.builds(Limits, st.integers(0, 4), st.integers(0, 400_000), st.none() | st.integers(0, 4)),
    st.sampled_from([None, per_character, lambda text: len(text) // 6]),
)
def test_pages_never_cost_more_than_the_text_and_keep_the_limits(
    text: str, times: int, reader: tuple[str, str | None], limits: Limits, count: Any
) -> None:
    said = [Said("user" if at % 2 else "assistant", text + str(at)) for at in range(times)]
    options = Options(*reader, limits, count=count)
    written = snapshot.plan(said, reader[0], model=reader[1], limits=limits, count=count)
    assert written == draw_anew(written.text, options)
    _check(written, limits)


def _check(found: Snapshot, limits: Limits) -> None:
    assert bool(found.pages) != bool(found.reason)
    if found.pages:
        assert found.tokens < found.text_tokens
    assert len(found.pages) <= min(limits.pages, 90 if limits.images is None else limits.images)
    assert sum(len(page.base64) for page in found.pages) <= limits.bytes
    assert sum(len(page.text) for page in found.pages) + found.left_out <= len(found.text) + 1
    json.dumps(found.parts, ensure_ascii=False).encode()


@settings(max_examples=25)
@given(st.lists(st.text(max_size=40), min_size=1, max_size=5), st.integers(1, 2000))
def test_any_text_that_grows_keeps_its_full_pages(texts: list[str], times: int) -> None:
    said = [Said("user", text) for text in texts * (times // len(texts) + 1)]
    before = snapshot.plan(said, "anthropic", count=per_character)
    after = snapshot.plan([*said, Said("user", "more " * 100)], "anthropic", count=per_character)
    full = before.pages[:-1]
    assert [page.png for page in after.pages[: len(full)]] == [page.png for page in full]


# --- Real conversations -------------------------------------------------------------------


def test_real_sessions_become_pages_for_every_reader(corpus: Path) -> None:
    for name in ("session-fe5e1c67", "session-5c0375b4"):
        lines = (corpus / "claude-code" / f"{name}.jsonl").read_text().splitlines()
        natives = [line["message"] for line in map(json.loads, lines) if "message" in line]
        said = [formats.codec("anthropic").decode(native) for native in natives]
        for target, model in READERS:
            found = snapshot.plan(said, target, model=model)
            _check(found, snapshot.NO_LIMITS)
            if "mini" not in str(model):
                assert found.saves > 0
