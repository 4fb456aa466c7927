"""SillyTavern's chats: swipes beside the line they belong to."""

from __future__ import annotations

import json
from typing import Any

import pytest
from chats import FIXTURES, Chat, chats, fixture, only

from sessiontree.core.message import text_of
from sessiontree.formats.sillytavern import moment


def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FIXTURES / "sillytavern.jsonl").read_text().splitlines()]


def lines(given: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in given)


def harbour() -> Chat:
    return fixture("sillytavern")[0][0]


def said(chat: Chat) -> list[str]:
    """Each path as what it says."""
    return [
        " / ".join(text_of(chat.decoded(name).parts) for name in path.split(" "))
        for path in chat.paths
    ]


def test_each_swipe_is_a_message_beside_the_one_chosen():
    begin = "Ahoy! / Where to? / A hidden note"
    assert said(harbour()) == [f"{begin} / South.", f"{begin} / West.", f"{begin} / North."]
    assert text_of(harbour().decoded(str(harbour().head)).parts) == "North."


def test_a_line_is_stored_as_it_is_and_a_swipe_as_the_line_would_be():
    chat, given = harbour(), rows()
    *_, south, _, north = (chat.native(name) for name in chat.links)
    assert north == given[-1]
    assert (south["mes"], south["swipe_id"], south["extra"]) == ("South.", 0, {"model": "m1"})
    assert south["name"] == "Captain"
    assert "swipes" not in south


def test_what_was_imported_keeps_its_name_when_another_swipe_is_chosen():
    given = rows()
    given[-1] |= {"mes": "West.", "swipe_id": 2}
    assert set(only(lines(given), "sillytavern").links) == set(harbour().links)


def test_hidden_lines_are_marks_and_reasoning_is_kept():
    chat = harbour()
    names = list(chat.links)
    assert [chat.role(name) for name in names[:3]] == ["assistant", "user", "mark"]
    assert chat.decoded(names[-1]).parts[0]["content"] == "The wind."


def test_a_bookmark_is_a_label():
    (label,) = harbour().plan.labels
    assert label.label == "Checkpoint #1 - harbour"


def test_the_header_names_the_chat():
    opening = harbour().document.opening
    assert (opening.title, opening.created_at) == ("Captain", 1_786_701_780_000_000)
    assert opening.meta == rows()[0]


def test_a_chat_without_a_header_is_read():
    assert len(only(lines(rows()[1:]), "sillytavern").plan.order) == 6


def test_a_line_that_is_cut_off_is_told_and_the_others_come_in():
    raw = (FIXTURES / "sillytavern.jsonl").read_text()
    (chat,), told = chats(raw[:-40], "sillytavern")
    assert len(chat.plan.order) == 3
    assert "it stops being JSON" in told[0]


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        (1740498420000, 1_740_498_420_000_000),
        ("1740498420000", 1_740_498_420_000_000),
        ("2026-08-14@10h03m", 1_786_701_780_000_000),
        ("2025-2-25 @15h 50m 13s 180ms", 1_740_498_613_000_000),
        ("February 25, 2025 3:46pm", 1_740_498_360_000_000),
        ("2025-02-25T15:51:00Z", 1_740_498_660_000_000),
        ("2025-99-99@10h03m", None),
        ("yesterday", None),
        (None, None),
    ],
)
def test_times_are_read_in_every_way_they_were_written(time: object, expected: int | None):
    assert moment(time) == expected
