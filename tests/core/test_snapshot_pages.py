"""Pages: every pixel is where it should be, whatever the text."""

from __future__ import annotations

import runpy
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pages_of import decode, drawn_slowly

from sessiontree.core.reclaim import glyphs, pages, readers
from sessiontree.core.reclaim.glyphs import BOX, ROWS, Font
from sessiontree.core.reclaim.pages import LINE_END, Geometry
from sessiontree.errors import FormatError

ATLAS = Path(__file__).resolve().parents[2] / "tools" / "atlas.py"
UNIFONT = Path("/usr/share/unifont/unifont.hex")

ALL_OF_UNICODE = st.text(st.characters(exclude_categories=()), max_size=300)
WIDE = Font(
    {
        "中": "".join(f"{0x8001 + row:04X}" for row in range(ROWS)),
        "한": "FFFF8001" + "8001" * 13 + "FFFF",
        "ß": "AA" * ROWS,  # the shipped glyph goes first
        "ᄀ": "A5" * ROWS,
    }
)
MIXED = st.text(st.sampled_from("aW0 \n\t|中한ß") | st.characters(), max_size=300)
GEOMETRIES = st.builds(
    Geometry, st.integers(8, 16), st.integers(16, 24), st.integers(32, 200), st.integers(24, 120)
)


def slow_lines(text: str, font: Font, columns: int) -> list[list[str]]:
    """The same lines, character by character."""
    lines: list[list[str]] = [[]]
    used = 0
    for char in text:
        size = len(font.glyph(char) or BOX) // ROWS
        if used + size > columns:
            lines.append([])
            used = 0
        lines[-1].append(char)
        used += size
    return lines if text else []


@given(MIXED | ALL_OF_UNICODE, GEOMETRIES, st.sampled_from([glyphs.PLAIN, WIDE]))
def test_a_decoded_page_has_exactly_the_bits_of_its_glyphs(
    text: str, geometry: Geometry, font: Font
) -> None:
    laid = pages.lay(text, font, geometry.columns)
    expected = slow_lines(pages.drawn(text), font, geometry.columns)
    for number, sheet in enumerate(laid.pages(geometry.rows)):
        lines = expected[number * geometry.rows : (number + 1) * geometry.rows]
        png = pages.draw(sheet, laid.glyphs, geometry)
        assert decode(png) == drawn_slowly(lines, laid.glyphs, geometry)
        assert png == pages.draw(sheet, laid.glyphs, geometry)
    assert sum(len(sheet) for sheet in laid.pages(geometry.rows)) == len(expected)


@given(ALL_OF_UNICODE, ALL_OF_UNICODE, st.sampled_from([glyphs.PLAIN, WIDE]))
def test_text_that_grew_has_the_same_full_pages(text: str, more: str, font: Font) -> None:
    geometry = Geometry(11, 16, 88, 32)
    before = pages.lay(text + "\n", font, geometry.columns)
    after = pages.lay(text + "\n" + more, font, geometry.columns)
    full = [sheet for sheet in before.pages(2) if len(sheet) == 2][:-1]
    assert after.pages(2)[: len(full)] == full
    for sheet in full:
        assert pages.draw(sheet, before.glyphs, geometry) == pages.draw(
            sheet, after.glyphs, geometry
        )


@given(ALL_OF_UNICODE, ALL_OF_UNICODE)
def test_what_is_drawn_of_two_texts_is_what_is_drawn_of_each(one: str, other: str) -> None:
    assert pages.drawn(f"{one}\n{other}") == pages.drawn(f"{one}\n") + pages.drawn(other)


@given(ALL_OF_UNICODE)
def test_the_text_of_lines_can_be_sent(text: str) -> None:
    laid = pages.lay(text, WIDE, 7)
    plain = pages.plain(laid.lines)
    plain.encode()
    assert len(plain) == laid.chars


def test_every_character_without_a_glyph_is_told_with_its_count() -> None:
    laid = pages.lay("🚀 go 🚀 中\ud800", glyphs.PLAIN, 40)
    assert laid.missing == {"🚀": 2, "中": 1, "\ud800": 1}
    assert laid.glyphs["🚀"] == BOX
    assert pages.lay("a 中", WIDE, 40).missing == {}


def test_blank_lines_are_one_line_end_and_indentation_stays() -> None:
    text = "def f():\n\n\n    if  x:\t# why\n\t\treturn 1\r\n" + " " * 40 + "deep"
    assert pages.drawn(text) == LINE_END.join(
        ["def f():", "    if x: # why", "    return 1", " " * pages.INDENT + "deep", ""]
    )


def test_a_block_of_the_text_itself_is_no_line_end() -> None:
    assert pages.drawn("50% ██░░") == "50% ▇▇░░" + LINE_END


def test_marks_without_a_look_take_no_room() -> None:
    assert pages.drawn("a\u200bb\u202ec\ufeff\ufe0fd") == "abcd" + LINE_END


def test_letters_and_their_accents_are_drawn_as_one() -> None:
    assert pages.lay("Đơn hàng đã giao", glyphs.PLAIN, 80).missing == {}
    apart = unicodedata.normalize("NFD", "Đơn hàng")
    assert len(apart) > len("Đơn hàng")
    assert pages.drawn(apart) == pages.drawn("Đơn hàng")


def test_a_wide_character_is_not_parted_at_the_edge() -> None:
    laid = pages.lay("aaa中b", WIDE, 4)
    assert [len(line) for line in laid.lines] == [3, 4]
    assert pages.plain(laid.lines) == "aaa中b\n"


@pytest.mark.parametrize(
    "text", [" " * 10**6, "\t" * 10**6, "\n" * 10**6, "中" * 10**5, "a" * 10**6]
)
def test_a_million_of_one_character_is_laid_out(text: str) -> None:
    assert pages.lay(text, WIDE, 142).chars <= len(text) + 1


# --- Glyphs -------------------------------------------------------------------------------


def test_a_zero_has_a_slash_and_is_no_letter() -> None:
    zero, letter = glyphs.PLAIN.glyph("0"), glyphs.PLAIN.glyph("O")
    assert zero is not None
    assert letter is not None
    inner = [bin(row & 0b00111100).count("1") for row in zero[8:12]]
    assert all(inner), "the slash crosses every row inside the zero"
    assert zero != letter


def test_all_letters_and_digits_look_different() -> None:
    seen = {glyphs.PLAIN.glyph(chr(code)) for code in range(0x21, 0x7F)}
    assert len(seen) == 0x7F - 0x21
    assert None not in seen


def test_the_shipped_glyphs_are_small() -> None:
    packed = Path(glyphs.__file__).with_name("atlas.py").stat().st_size
    assert packed < 60_000


def test_vietnamese_has_all_its_letters() -> None:
    letters = "ạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹđơư"
    assert all(glyphs.PLAIN.glyph(char) for char in letters + letters.upper())


def test_the_shipped_glyphs_are_those_of_the_font() -> None:
    tool = runpy.run_path(str(ATLAS)) if ATLAS.exists() else {"SOURCE": ATLAS}
    if not tool["SOURCE"].exists():
        pytest.skip(f"{tool['SOURCE']} is not here: apt-get install xfonts-base")
    found = {chr(char): b"\0\0\0" + rows for char, rows in tool["glyphs"](tool["SOURCE"]).items()}
    assert glyphs.shipped() == found


def test_a_hex_font_is_read_row_by_row() -> None:
    font = glyphs.load_hex(["0041:" + "FF" * 16, "", "4E2D:" + "8001" * 16 + "\n"])
    assert font.glyph("A") == glyphs.PLAIN.glyph("A"), "what ships goes first"
    assert font.glyph("中") == b"\x80" * 16 + b"\x01" * 16
    assert font.glyph("文") is None


@pytest.mark.parametrize(
    "line", ["FF" * 16, "4E2D:FF", "4E2D:" + "F" * 48, "4E2D:" + "G" * 32, "110000:" + "F" * 32]
)
def test_a_line_that_is_no_glyph_is_named(line: str) -> None:
    with pytest.raises(FormatError, match="line 2"):
        glyphs.load_hex(["0041:" + "FF" * 16, line])


def test_chinese_japanese_and_korean_are_drawn_with_unifont() -> None:
    if not UNIFONT.exists():
        pytest.skip(f"{UNIFONT} is not here: apt-get install unifont")
    with UNIFONT.open() as file:
        font = glyphs.load_hex(file)
    text = "我们决定使用数据库。データベースの移行。데이터베이스 이전."
    laid = pages.lay(text, font, readers.CLAUDE.columns)
    assert laid.missing == {}
    page = decode(pages.draw(laid.lines, laid.glyphs, readers.CLAUDE))
    assert page == drawn_slowly([list(pages.drawn(text))], laid.glyphs, readers.CLAUDE)


@settings(max_examples=20)
@given(st.text(st.sampled_from("abc 0O1l\n"), min_size=1, max_size=3000))
def test_no_page_is_larger_than_its_reader_takes(text: str) -> None:
    for geometry in (readers.CLAUDE, readers.CLAUDE_SINCE_4_7, readers.OPENAI, readers.GEMINI):
        laid = pages.lay(text, glyphs.PLAIN, geometry.columns)
        for sheet in laid.pages(geometry.rows):
            page = decode(pages.draw(sheet, laid.glyphs, geometry))
            assert len(page) <= geometry.height
            assert len(page[0]) <= geometry.width
