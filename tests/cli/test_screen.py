"""What reaches a terminal: nothing that it would obey, and JSON that every reader takes."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stdout

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessiontree.cli import screen
from sessiontree.cli.screen import (
    Styled,
    as_json,
    clean,
    cut,
    long_document,
    long_list,
    out,
    row,
    table,
)

OBEYED = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Terminal()


@given(st.text(st.characters(), max_size=40))
def test_no_text_carries_a_control_character_to_the_terminal(text: str):
    assert not OBEYED.search(clean(text))
    assert not OBEYED.search(clean(text, keep_lines=True).replace("\n", "").replace("\t", ""))


@given(st.text(st.characters(categories=["L", "N", "P", "Zs", "So"]), max_size=40))
def test_ordinary_text_of_every_script_stays_as_it_is(text: str):
    assert clean(text) == text


def test_escape_sequences_are_shown_and_not_sent():
    assert clean("\x1b]0;owned\x07 \x9b2J") == "␛]0;owned␇ <U+009B>2J"


def test_line_ends_stay_where_lines_are_kept_and_a_lone_carriage_return_does_not():
    assert clean("a\r\nb\tc\rd", keep_lines=True) == "a\nb\tc␍d"


def test_a_line_that_is_no_terminals_has_no_colour_and_is_not_cut(
    capsys: pytest.CaptureFixture[str],
):
    row(["1 "], Styled("x" * 500, "user"), [Styled("  ← head", "bold")])
    assert capsys.readouterr().out == "1 " + "x" * 500 + "  ← head\n"


def test_on_a_terminal_the_text_of_a_row_is_cut_to_its_width(terminal: Terminal):
    with redirect_stdout(terminal):
        row(["1 "], Styled("x" * 500, ""), [Styled("  ← head", "bold")])
    plain = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue())
    assert plain == "1 " + "x" * 19 + "…  ← head\n"
    assert len(plain.rstrip("\n")) == 30


def test_the_only_escapes_on_a_terminal_are_colours_of_our_own(terminal: Terminal):
    with redirect_stdout(terminal):
        out("\x1b[31mred", Styled("\x1b[2J", "user"))
    assert terminal.getvalue() == "␛[31mred\x1b[36m␛[2J\x1b[0m\n"


def test_no_color_is_heeded(terminal: Terminal, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NO_COLOR", "1")
    with redirect_stdout(terminal):
        out(Styled("plain", "user"))
    assert terminal.getvalue() == "plain\n"


def test_wide_characters_count_twice():
    assert cut("日本語のテキスト", 9) == "日本語の…"
    assert cut("日本語", 6) == "日本語"


def test_a_table_aligns_wide_and_narrow_values(capsys: pytest.CaptureFixture[str]):
    table(("id", "name", "title"), [("1", "日本", "a"), ("22", "x\x1b", "b")])
    assert capsys.readouterr().out == "id  name  title\n1   日本  a\n22  x␛    b\n"


def test_a_long_document_is_one_json_document(capsys: pytest.CaptureFixture[str]):
    with long_document({"head": 1}, "nodes") as item:
        for i in range(3):
            item({"id": i})
    assert json.loads(capsys.readouterr().out) == {
        "head": 1,
        "nodes": [{"id": i} for i in range(3)],
    }
    with long_list():
        pass
    assert json.loads(capsys.readouterr().out) == []


def test_a_long_document_that_breaks_off_is_not_closed(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(OSError, match="gone"), long_list() as item:  # noqa: PT012
        item(1)
        raise OSError("gone")
    with pytest.raises(json.JSONDecodeError):
        json.loads(capsys.readouterr().out)


def test_json_is_ascii_whatever_the_text():
    value = {"text": "\x1b[2J \x9b ⚠ \ud800 \u202e"}
    assert as_json(value).isascii()
    assert as_json(value).isprintable()
    assert json.loads(as_json(value)) == value


def test_numbers_that_no_float_holds_stay_numbers():
    value = {"Infinity": [float("inf"), -float("inf")], "text": 'NaN "Infinity"'}
    assert as_json(value) == (r'{"Infinity": [1e999, -1e999], "text": "NaN \"Infinity\""}')


def test_every_style_that_is_used_is_known():
    for style in ("bold", "dim", "label", "system", "user", "assistant", "tool", "mark"):
        assert style in screen._STYLES
