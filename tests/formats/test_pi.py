"""pi's entries: its own shapes of messages, and the three versions of its files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from planted import Planted

from sessiontree.core.message import META, calls_of, results_of, text_of
from sessiontree.errors import FormatError
from sessiontree.formats import codec, recognise
from sessiontree.formats import read as read_message
from sessiontree.formats.pi import READER

FIXTURES = Path(__file__).parents[1] / "fixtures" / "pi"
CODEC = codec("pi")


def entries(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FIXTURES / name).read_text().splitlines()]


def planted(name: str) -> Planted:
    tree = Planted((FIXTURES / name).read_bytes(), "pi")
    tree.check()
    return tree


def v3(entry_id: str) -> dict[str, Any]:
    return next(entry for entry in entries("v3.jsonl") if entry["id"] == entry_id)


# --- the codec --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry_id", "role", "text"),
    [
        ("00000001", "mark", "model change: anthropic/claude-opus-4-5"),
        ("00000002", "user", "Draw the harbour"),
        ("00000003", "assistant", "Drawing."),
        ("00000004", "tool", ""),
        ("00000006", "mark", "label: first drawing"),
        ("00000007", "user", "Ran `open harbour.png`\n(no output)\nExit code: 1"),
        ("00000008", "mark", "Ran `cat secret`\n```\ns3cret\n```"),
        ("0000000a", "user", "Use a viewer."),
        ("0000000c", "mark", "A harbour was drawn."),
        ("0000000e", "mark", "session info: Harbour drawing"),
        ("0000000f", "mark", ""),
    ],
)
def test_what_each_entry_is_and_says(entry_id: str, role: str, text: str):
    decoded = CODEC.decode(v3(entry_id))
    assert (decoded.role, text_of(decoded.parts)) == (role, text)


def test_a_branch_summary_is_a_message_that_the_model_reads():
    decoded = CODEC.decode(v3("00000009"))
    assert decoded.role == "user"
    assert text_of(decoded.parts).endswith("\n\nOpening the file failed.")


def test_messages_without_their_entry_are_read_too():
    bare = v3("00000004")["message"]
    assert CODEC.decode(bare) == CODEC.decode(v3("00000004"))
    assert recognise(bare) == "pi"
    summary = {"role": "compactionSummary", "summary": "It went well.", "tokensBefore": 1}
    assert CODEC.decode(summary).role == "user"


def test_calls_results_and_images():
    (call,) = calls_of(CODEC.decode(v3("00000003")).parts)
    assert (call.id, call.name, call.arguments) == ("call_1", "draw", {"size": 3})
    (result,) = results_of(CODEC.decode(v3("00000004")).parts)
    assert (result.id, result.name, result.is_error) == ("call_1", "draw", False)
    assert result.response == [{"type": "text", "content": "drawn"}]
    image = CODEC.decode(v3("00000002")).parts[1]
    assert (image["type"], image["mime_type"], image["modality"]) == ("blob", "image/png", "image")


def test_thinking_keeps_its_signature():
    part = CODEC.decode(entries("v1.jsonl")[2]).parts[0]
    assert (part["type"], part["content"], part["thinkingSignature"]) == (
        "reasoning",
        "Short.",
        "c2ln",
    )


@pytest.mark.parametrize("entry_id", ["00000002", "00000003", "00000004"])
def test_what_is_written_again_says_the_same(entry_id: str):
    decoded = CODEC.decode(v3(entry_id))
    (written,) = CODEC.encode(*decoded)
    again = CODEC.decode(written)
    assert again.role == decoded.role
    for before, after in zip(decoded.parts, again.parts, strict=True):
        before.pop("message", None)
        assert {k: v for k, v in after.items() if k != "provider"} == {
            k: v for k, v in before.items() if k != "provider"
        }


def test_results_are_written_one_by_one_and_marks_not_at_all():
    parts = [
        {"type": "tool_call_response", "id": "a", "response": "x"},
        {"type": "tool_call_response", "id": "b", "response": {"y": 1}, "is_error": True},
    ]
    first, second = CODEC.encode("tool", parts)
    assert first["message"]["content"] == [{"type": "text", "text": "x"}]
    assert (second["message"]["toolCallId"], second["message"]["isError"]) == ("b", True)
    assert CODEC.encode("mark", parts) == []


def test_reasoning_of_another_provider_and_sounds_are_not_written():
    parts = [
        {"type": "reasoning", "content": "hm", "provider": "anthropic"},
        {"type": "blob", "mime_type": "audio/wav", "modality": "audio", "content": "AAAA"},
    ]
    (message,) = CODEC.encode("user", parts)
    (block,) = message["message"]["content"]
    assert block["type"] == "text"


def test_entries_are_recognised_and_messages_of_others_are_not():
    for name in ("v1.jsonl", "v2.jsonl", "v3.jsonl"):
        assert {recognise(entry) for entry in entries(name)} == {"pi"}
    assert not CODEC.recognises({"role": "user", "content": "hi"})
    assert not CODEC.recognises({"type": "message", "role": "assistant", "content": []})


@pytest.mark.parametrize("broken", [{"role": "robot"}, {"role": "assistant", "content": 7}, {}])
def test_an_entry_whose_message_is_broken_is_a_mark_and_not_an_error(broken: dict[str, Any]):
    entry = {**v3("00000005"), "message": broken}
    assert CODEC.decode(entry).role == "mark"
    rows = [v3("00000002"), {**entry, "parentId": "00000002"}]
    tree = Planted(rows, "pi")
    tree.check()
    assert tree.paths == ["00000002 00000005"]
    assert "its message is not one that pi writes" in tree.repairs[0]


def test_a_bare_message_that_is_broken_is_an_error():
    with pytest.raises(FormatError, match="toolCallId is missing"):
        CODEC.decode({"role": "toolResult", "content": []})


def test_usage_and_model_are_told():
    message = read_message(json.dumps(v3("00000005")))
    assert (message.format, message.model) == ("pi", "claude-opus-4-5")
    assert message.usage is not None
    assert message.usage["totalTokens"] == 15


# --- the reader -------------------------------------------------------------------------------


def test_version_1_is_the_order_of_the_file():
    tree = planted("v1.jsonl")
    rows = " ".join(f"line {line}" for line in range(1, 8))
    assert tree.paths == [f"{rows} !call_1 line 8 line 9 line 10"]
    assert (tree.head, tree.repairs) == ("line 10", [])
    assert tree.skeleton.topics == ["5e551011-0000-4000-8000-000000000001"]


def test_version_1_names_the_first_kept_entry_by_its_place():
    compaction = planted("v1.jsonl").skeleton.entries[7]
    assert compaction.tells is not None
    assert (compaction.tells.kind, compaction.tells.ref) == ("compaction", 4)


def test_version_2_has_another_name_for_a_message_of_an_extension():
    tree = planted("v2.jsonl")
    assert tree.paths == ["line 1 0000000a 0000000b 0000000c"]
    assert [entry.role for entry in tree.skeleton.entries] == ["mark", "user", "user", "assistant"]


def test_version_3_is_a_tree_with_a_label_and_a_compaction():
    tree = planted("v3.jsonl")
    begin = "line 1 00000001 00000002 00000003 00000004 00000005"
    assert tree.paths == [
        f"{begin} 00000006 00000007 00000008",
        f"{begin} 00000009 0000000a 0000000b 0000000c 0000000d 0000000e 0000000f",
    ]
    assert tree.head == "0000000f"
    ((_, at, label, _, time),) = tree.plan.labels
    assert (tree.name(at), label, time) == ("00000005", "first drawing", 1_767_348_030_000_000)


def test_a_label_that_is_taken_off_is_no_checkpoint_and_a_name_is_given_once():
    def label(name: str, target: str, text: str | None) -> dict[str, Any]:
        return {**v3("00000006"), "id": name, "targetId": target, "label": text}

    rows = [
        *entries("v3.jsonl"),
        label("b1", "00000005", None),
        label("b2", "00000002", "twice"),
        label("b3", "00000005", "twice"),
        label("b4", "nowhere", "lost"),
    ]
    tree = Planted(rows, "pi")
    assert [(tree.name(made.at), made.label) for made in tree.plan.labels] == [
        ("00000002", "twice"),
        ("00000005", "twice (2)"),
    ]
    assert "'nowhere', which is not in the file" in " ".join(tree.repairs)


def test_a_label_on_a_call_is_set_where_its_step_ends():
    rows = [*entries("v3.jsonl"), {**v3("00000006"), "id": "b1", "targetId": "00000003"}]
    tree = Planted(rows, "pi")
    assert {tree.name(made.at) for made in tree.plan.labels} == {"00000005", "00000004"}


def test_the_head_is_on_the_last_entry_whatever_it_is():
    rows = [*entries("v3.jsonl"), {**v3("00000001"), "id": "b1", "parentId": "00000002"}]
    tree = Planted(rows, "pi")
    tree.check()
    assert tree.head == "b1"


def test_a_second_header_is_a_mark_where_it_stands():
    first, *rest = entries("v3.jsonl")
    tree = Planted([first, *rest[:2], {**first, "id": "another"}, *rest[2:]], "pi")
    tree.check()
    assert tree.skeleton.topics == [first["id"]]
    assert tree.links["00000003"] == "line 4"


def test_a_compaction_that_keeps_no_entry_holds_what_stands_for_all_before_it():
    tail = [
        {"role": "user", "content": "and then"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]},
        v3("00000004")["message"],
        "not a message",
    ]
    compaction = {**v3("0000000c"), "retainedTail": tail}
    del compaction["firstKeptEntryId"]
    rows = [compaction if row["id"] == "0000000c" else row for row in entries("v3.jsonl")]
    tree = Planted(rows, "pi")
    tree.check()
    assert _meta(tree, "0000000c") == {
        "kind": "compaction",
        "text": "A harbour was drawn.\n\nuser: and then\n\ntool: drawn",
    }


def test_a_compaction_that_keeps_what_is_not_in_the_file_keeps_nothing_and_says_so():
    rows = [
        {**row, "firstKeptEntryId": "gone"} if row["type"] == "compaction" else row
        for row in entries("v3.jsonl")
    ]
    tree = Planted(rows, "pi")
    assert _meta(tree, "0000000c") == {"kind": "compaction", "text": "A harbour was drawn."}
    assert tree.repairs == ["line 13: it keeps all from 'gone' on, which is not in the file"]
    assert _meta(planted("v3.jsonl"), "0000000c") == {"kind": "compaction"}


def _meta(tree: Planted, name: str) -> object:
    entry = next(entry for entry in tree.skeleton.entries if entry.id == name)
    made = READER.message(tree.skeleton.source.text(entry), entry)
    assert made.meta is not None
    return made.meta[META]


def test_a_real_session_of_version_1_imports_whole(corpus: Path):
    tree = Planted((corpus / "pi" / "before-compaction.jsonl").read_bytes(), "pi")
    tree.check()
    made = tree.skeleton.entries
    assert len(made) == 1003
    assert (sum(len(e.calls) for e in made), sum(len(e.results) for e in made)) == (454, 448)
    assert (len(tree.plan.ours), len(tree.paths), tree.repairs, tree.skips) == (6, 1, [], [])
    kinds = [entry.tells.kind for entry in made if entry.tells is not None]
    assert kinds.count("compaction") == 2


def test_a_made_up_session_of_version_3_imports_whole(corpus: Path):
    tree = Planted((corpus / "pi" / "branch-compaction.jsonl").read_bytes(), "pi")
    tree.check()
    begin = "line 1 u1000001"
    assert sorted(tree.paths) == [
        f"{begin} a2000002 u3000003 a4000004 c5000005 u6000006 a9000009",
        f"{begin} b7000007 u8000008",
    ]
    assert tree.head == "a9000009"


def test_every_file_of_the_corpus_has_a_test(corpus: Path):
    names = {file.name for file in (corpus / "pi").iterdir()}
    assert names == {"before-compaction.jsonl", "branch-compaction.jsonl"}
