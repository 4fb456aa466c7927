"""A conversation for people: what it shows, and that nothing in it breaks out of its place."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessiontree import formats
from sessiontree.core.message import Message, MessageRow
from sessiontree.core.records import ConversationInfo
from sessiontree.formats import markdown

INFO = ConversationInfo(
    7, "ada", "T-1", 'Ti"des', None, 3, None, None, {}, 1_700_000_000_000_000, 0
)


def message(native: dict[str, Any], format: str = "anthropic", **more: Any) -> Message:
    made = formats.read(native, format=format)
    row = MessageRow(
        3, 7, 2, made.role, format, 1, 0, 4, None, made.model, made.preview, None, None, None, None,
        1_700_000_000_000_000, made.content,
    )  # fmt: skip
    return Message(row._replace(**more), formats.codec)


def assistant(*blocks: dict[str, Any]) -> Message:
    return message({"role": "assistant", "content": list(blocks)})


def fences(text: str) -> list[str]:
    """What stands in the fences of a section, as CommonMark sees them."""
    found: list[str] = []
    lines = iter(text.splitlines())
    for line in lines:
        begin = re.fullmatch(r"(`{3,})(\w*)", line)
        if begin is None:
            continue
        inside: list[str] = []
        for inner in lines:
            if re.fullmatch(rf" {{0,3}}`{{{len(begin[1])},}}\s*", inner):
                break
            inside.append(inner)
        else:
            pytest.fail("a fence is never closed")
        found.append("\n".join(inside))
    return found


def test_the_front_matter_is_yaml_and_says_what_is_shown():
    front = markdown.front(INFO, "the active path, 3 messages")
    assert front == (
        "---\n"
        "conversation: 7\n"
        'owner: "ada"\n'
        'topic: "T-1"\n'
        'title: "Ti\\"des"\n'
        'shows: "the active path, 3 messages"\n'
        "head: 3\n"
        'begun: "2023-11-14 22:13:20 UTC"\n'
        "---\n\n"
        '# Ti"des\n'
    )


def test_what_is_said_is_markdown_as_it_is():
    text = "# Title\n\n- a\n- *b*"
    shown = markdown.section(message({"role": "user", "content": text}))
    assert shown == f"\n## User · 3\n\n*2023-11-14 22:13:20 UTC*\n\n{text}\n"


def test_a_section_says_what_it_follows_its_model_and_its_labels():
    native = {"role": "assistant", "content": "x", "model": "claude"}
    shown = markdown.section(message(native), ["a*b", "head"], follows=True)
    assert "*2023-11-14 22:13:20 UTC · follows 2 · `claude` · ⚑ a\\*b · ⚑ head*" in shown


def test_calls_and_results_are_shown_whole():
    output = "line\n" * 5_000
    call = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "ls ä"}}
    shown = markdown.section(assistant(call))
    assert "**Call** `Bash` `c1`\n\n```json" in shown
    assert json.loads(fences(shown)[0]) == {"command": "ls ä"}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": output, "is_error": True}
    shown = markdown.section(message({"role": "user", "content": [result]}))
    assert "**Error** of `c1`" in shown
    assert fences(shown) == [output.removesuffix("\n")]


def test_a_result_of_several_parts_shows_each():
    blocks = [
        {"type": "text", "text": "one"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
    ]
    result = {"type": "tool_result", "tool_use_id": "c1", "content": blocks}
    shown = markdown.section(message({"role": "user", "content": [result]}))
    assert fences(shown) == ["one"]
    assert "image/png" in shown
    assert "AAAA" not in shown


def test_reasoning_and_marks_are_quoted():
    shown = markdown.section(
        assistant({"type": "thinking", "thinking": "hm\n\nso", "signature": "s"})
    )
    assert "> *Reasoning*\n>\n> hm\n>\n> so" in shown
    row = {"type": "summary", "summary": "# So far", "leafUuid": "x"}
    shown = markdown.section(message(row, "claude_code"))
    assert shown.startswith("\n## Mark · 3\n")
    assert "\n> # So far\n" in shown


def test_a_mark_without_text_is_a_line_and_not_its_data():
    row = {"type": "file-history-snapshot", "messageId": "x", "snapshot": {"a": "b" * 1000}}
    assert len(markdown.section(message(row, "claude_code"))) < 200


def test_a_part_of_an_unknown_kind_is_shown_as_its_data():
    shown = markdown.section(assistant({"type": "server_tool_use", "id": "s", "name": "web"}))
    assert "**server\\_tool\\_use**" in shown
    assert json.loads(fences(shown)[0])["name"] == "web"


@pytest.mark.parametrize(
    "open_text", ["```python\nx = 1", "~~~\nx", "````\n```\n", "   ```js\n``` not an end"]
)
def test_a_fence_that_is_left_open_does_not_swallow_what_follows(open_text: str):
    shown = markdown.section(message({"role": "user", "content": open_text}))
    last = shown.rstrip().splitlines()[-1]
    assert set(last) in ({"`"}, {"~"})
    assert markdown._closed(markdown._closed(open_text)) == markdown._closed(open_text)  # pyright: ignore[reportPrivateUsage]


@given(text=st.text(alphabet="`~ab \n", max_size=60), name=st.text(max_size=20))
def test_nothing_in_a_result_or_a_name_ends_its_place(text: str, name: str):
    call = {"type": "tool_use", "id": name, "name": name, "input": {"text": text}}
    shown = markdown.section(assistant(call))
    (inside,) = fences(shown)
    assert json.loads(inside) == {"text": text}
    title = next(line for line in shown.splitlines() if line.startswith("**Call**"))
    assert title.startswith("**Call** `")
    result = {"type": "tool_result", "tool_use_id": "c", "content": text}
    (inside,) = fences(markdown.section(message({"role": "user", "content": [result]})))
    assert inside == text.removesuffix("\n")


def test_a_branch_says_where_it_goes_on():
    first = message({"role": "user", "content": "x"})
    assert "*Branch 2: goes on after message 2.*" in markdown.branch(2, first, False)
    root = message({"role": "user", "content": "x"}, parent_id=None)
    assert "*Branch 1 (active): goes on from the beginning.*" in markdown.branch(1, root, True)
