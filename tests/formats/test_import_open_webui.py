"""Open WebUI's export: its tree, its output items, and the details in its texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chats import FIXTURES, Chat, chats, only

from sessiontree.core.message import calls_of, results_of, text_of


def given() -> dict[str, Any]:
    return json.loads((FIXTURES / "open_webui.json").read_text())[0]


def tides() -> Chat:
    return only([given()], "open_webui")


def answer(content: str, **more: Any) -> Chat:
    messages = {"a": {"id": "a", "role": "assistant", "content": content, **more}}
    return only({"id": "c", "history": {"messages": messages}}, "open_webui")


def test_the_tree_follows_parents_and_children_after_the_system_prompt():
    assert tides().paths == ["system a b", "system a c d"]
    assert tides().head == "d"
    assert text_of(tides().decoded("system").parts) == "Be short."


def test_the_chat_keeps_all_its_fields_but_the_messages():
    opening = tides().document.opening
    assert (opening.topic, opening.title) == ("chat-1", "Tides")
    assert opening.created_at == 1_744_577_557_000_000
    assert opening.meta["archived"] is False
    assert opening.meta["chat"]["history"] == {"currentId": "d"}
    assert opening.meta["chat"]["models"] == ["m"]


def test_the_bare_inside_of_a_chat_is_read_too():
    bare = only(given()["chat"], "open_webui")
    assert (bare.paths, bare.head) == (tides().paths, "d")
    assert bare.document.opening.created_at == 1_744_577_557_127_000


def test_reasoning_and_calls_are_read_out_of_the_text():
    role, parts = tides().decoded("b")
    assert (role, parts[0]["type"], parts[0]["content"]) == (
        "assistant",
        "reasoning",
        "First.\nSecond.",
    )
    assert text_of(parts) == "Let me look.\n\nAt noon."
    ((call,), (result,)) = calls_of(parts), results_of(parts)
    assert (call.id, call.name, call.arguments) == ("call_7", "tides", {"port": "Whitby"})
    assert (result.id, result.response) == ("call_7", "High at noon")


def test_the_output_is_read_instead_of_the_text_where_there_is_one():
    role, parts = tides().decoded("c")
    assert (role, text_of(parts)) == ("assistant", "High water.")
    assert [call.name for call in calls_of(parts)] == ["tides"]
    assert len(results_of(parts)) == 1
    assert any(part["type"] == "reasoning" for part in parts)


def test_pictures_are_read_and_files_named():
    parts = tides().decoded("a").parts
    assert [part["type"] for part in parts] == ["text", "blob", "file"]


def test_a_message_is_stored_as_it_is_with_its_time_model_and_usage():
    found = tides()
    for name, native in given()["chat"]["history"]["messages"].items():
        assert found.native(name) == native
    entry = found.skeleton.entries[found.skeleton.ids["b"]]
    message = found.skeleton.reader.message(found.skeleton.source.text(entry), entry)
    assert (message.model, message.usage) == ("m", {"prompt_tokens": 3, "completion_tokens": 4})
    assert message.created_at == 1_744_577_558_000_000


@pytest.mark.parametrize(
    "text",
    [
        '<details type="reasoning">',
        '<details type="reasoning"></details>',
        '<details type="tool_calls" done="true" name="f" arguments="{" result="&quot;">x</details>',
        '</details><details type="other">x</details>',
        '<details type="reasoning">' * 50,
        "",
    ],
)
def test_details_that_are_broken_are_text(text: str):
    answer(text)


def test_many_details_without_an_end_take_no_time():
    parts = answer('<details type="reasoning">' * 40_000).decoded("a").parts
    assert [part["type"] for part in parts] == ["text"]


def test_a_message_without_a_role_or_content_is_kept_as_a_mark():
    messages = {
        "a": {"id": "a", "role": "user", "content": "Hi"},
        "b": {"id": "b", "parentId": "a", "childrenIds": []},
    }
    found = only({"id": "c", "history": {"messages": messages, "currentId": "b"}}, "open_webui")
    assert (found.paths, found.role("b")) == (["a b"], "mark")
    assert "it is no message that open_webui writes" in found.repairs[0]


def test_a_chat_that_has_only_a_list_is_a_chain():
    messages = [
        {"id": "a", "role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Ho"},
    ]
    found = only({"id": "c", "messages": messages}, "open_webui")
    assert found.paths == ["a line 2"]


def test_what_is_no_chat_is_told():
    found, told = chats([{"id": "x"}, 5, given()], "open_webui")
    assert (len(found), len(told)) == (1, 2)


def test_a_real_export_imports_whole(corpus: Path):
    found = only((corpus / "open-webui" / "export.json").read_bytes(), "open_webui")
    assert (len(found.plan.order), len(found.paths), found.repairs) == (2, 1, [])
    assert found.head == "a9436447-add3-4bd8-a25f-6ce54b73903c"
