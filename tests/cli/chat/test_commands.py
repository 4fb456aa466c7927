"""Every command with a slash: what it prints, and what it does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sessiontree.cli.chat.commands import COMMANDS, parse
from tests.cli.chat.conftest import Talking
from tests.cli.chat.talking import Talk, texts


@pytest.fixture
def talk(only_openai: Talking) -> Talk:
    """A conversation of two prompts and their answers, by a server that echoes."""
    talk = only_openai(["It left on Monday.", "No."])
    talk("Where is my parcel?\nRefund it!\n", "--topic", "T-1")
    return talk


def say(talk: Talk, *lines: str) -> list[str]:
    """What is printed for these lines; the answers among it."""
    said = talk("".join(f"{line}\n" for line in lines), "--topic", "T-1")
    assert said.code == 0, said.err
    return said.answers


def refused(talk: Talk, line: str) -> str:
    said = talk(f"{line}\n", "--topic", "T-1")
    assert (said.code, said.out) == (1, "")
    return said.notes[-1].removeprefix("sessiontree: ")


def test_tree_shows_every_message_and_the_head(talk: Talk):
    assert say(talk, "/tree") == [
        "1 • user      Where is my parcel?",
        "2 • assistant It left on Monday.",
        "3 • user      Refund it!",
        "4 ● assistant No.  ← head",
    ]


def test_branch_goes_to_a_message_and_the_next_prompt_follows_it(talk: Talk):
    shown = say(talk, "/branch 2", "Thank you.", "/branch")
    assert shown[0] == "conversation 1: the head is message 2  It left on Monday."
    assert texts(talk.server.requests[-1]) == [
        ("user", "Where is my parcel?"),
        ("assistant", "It left on Monday."),
        ("user", "Thank you."),
    ]
    assert shown[-3:] == [
        "leaves",
        "  4  assistant No.",
        "  6  assistant 2 user messages; the last one: Thank you.  ← head",
    ]
    assert say(talk, "/branch start", "Hello.")[1] == "1 user message; the last one: Hello."
    assert refused(talk, "/branch 99").startswith("conversation 1 has no message 99")
    assert refused(talk, "/branch there") == "'there' is no id of a message (/tree shows them)"


def test_fork_goes_on_in_a_copy(talk: Talk):
    shown = say(talk, "/fork T-2", "In the copy.")
    assert shown[0] == "conversation 2: the head is message 8  No."
    assert len(talk.messages("T-1")) == 4
    assert talk.path("T-2")[-2] == ("user", "In the copy.")
    assert say(talk, "/fork")[0].startswith("conversation 3: the head is message ")


def test_edit_puts_other_words_beside_a_prompt_and_answers_them(talk: Talk):
    assert say(talk, "/edit last Please refund it.") == [
        "2 user messages; the last one: Please refund it."
    ]
    assert say(talk, "/edit 1 Where is LK-1?") == ["1 user message; the last one: Where is LK-1?"]
    assert len(talk.on("T-1", lambda chat: chat.leaves())) == 3
    assert say(talk, "/edit 2 It left on Tuesday.")[0].startswith("conversation 1: the head is")
    assert refused(talk, "/edit").startswith("what is it to say? (/edit ID TEXT")
    assert refused(talk, "/edit 99 words").startswith("conversation 1 has no message 99")


def test_retry_answers_the_last_prompt_again(talk: Talk):
    assert say(talk, "/retry") == ["2 user messages; the last one: Refund it!"]
    assert len(talk.on("T-1", lambda chat: chat.leaves())) == 2
    assert say(talk, "/branch start") == ["conversation 1: the head is before the first message"]
    assert "nothing" in refused(talk, "/retry") or "no user message" in refused(talk, "/retry")


def test_checkpoint_labels_the_head_and_rewind_goes_back_with_a_digest(talk: Talk):
    assert say(talk, "/checkpoint") == ["no checkpoints"]
    place = "conversation 1: the head is message 4  No."
    assert say(talk, "/checkpoint asked", "More?", "/checkpoint") == [
        place,
        "3 user messages; the last one: More?",
        "  asked  message 4",
    ]
    assert say(talk, "/rewind asked") == [place]
    assert say(talk, "/rewind asked nothing was found", "/checkpoint 'two words'")[1] == (
        "conversation 1: the head is message 7  nothing was found"
    )
    assert say(talk, "/rewind 'two words' it was nothing")[0].endswith("  it was nothing")
    assert "its checkpoints: 'asked'" in refused(talk, "/rewind nowhere")
    assert refused(talk, "/rewind").startswith("which checkpoint?")
    assert refused(talk, "/checkpoint asked").startswith("there is a checkpoint 'asked' already")


def test_undo_and_redo_walk_the_moves_of_the_head(talk: Talk):
    assert say(talk, "/undo", "/undo", "/redo") == [
        "conversation 1: the head is message 3  Refund it!",
        "conversation 1: the head is message 2  It left on Monday.",
        "conversation 1: the head is message 3  Refund it!",
    ]


def test_context_tells_where_the_tokens_are(talk: Talk):
    shown = say(talk, "/context")
    assert re.search(r"user +\d+ +\d+\.\d %", "\n".join(shown))
    assert shown[-1] == "  4 messages are sent"
    said = talk("/context\n", "--topic", "T-1", "--max-messages", 2, "--budget", 500)
    assert said.answers[-2].endswith(" of 500 tokens")
    assert said.answers[-1] == (
        "  2 messages are sent; 2 older messages not sent: --max-messages 2, a budget of 500 tokens"
    )


def test_compact_has_the_model_summarise_with_a_focus(talk: Talk):
    talk.server.script.add(
        [{"text": "Yes, it did. " * 40}, {"when": "^Below", "text": "LK-1 left."}]
    )
    shown = say(talk, "Did it leave?", "Sure?", "/compact the parcel", "/context", "Now?")
    assert re.fullmatch(
        r"a summary stands for old turns: about \d+ tokens, now \d+; /undo takes it back", shown[2]
    )
    asked = texts(talk.server.requests[-2])[0][1]
    assert "Keep above all: the parcel" in asked
    last = texts(talk.server.requests[-1])
    assert last[0][1].endswith("LK-1 left.")
    assert last[1] == ("user", "Sure?")
    said = talk("/undo\n/undo\n/undo\n/context\n", "--topic", "T-1")
    assert said.answers[-1] == "  8 messages are sent"


def test_compact_that_would_save_nothing_is_refused(talk: Talk):
    talk.server.script.add([{"when": "^Below", "text": "It is a long story. " * 50}])
    problem = refused(talk, "/compact")
    assert problem.startswith("the summary is no smaller than what it replaces")
    assert len(talk.messages()) == 4


def test_shake_and_snapshot_tell_why_nothing_was_done(talk: Talk):
    results, images, *both, pages = say(talk, "/shake", "/shake images", "/shake all", "/snapshot")
    assert results.startswith("nothing was done: ")
    assert images == "nothing was done: there are no images before the newest turn"
    assert both == [results, images]
    assert pages == "nothing was done: it is not known whether m1 takes images"
    assert refused(talk, "/shake it") == "'it' cannot be shaken off (tool_output, images or all)"


def test_shake_leaves_a_line_for_old_results(talk: Talk):
    async def work(chat: object) -> None:
        function = {"name": "read", "arguments": "{}"}
        call = {"id": "c1", "type": "function", "function": function}
        await chat.append(  # pyright: ignore
            [
                {"role": "user", "content": "Read it."},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c1", "content": "a long page " * 200},
                {"role": "assistant", "content": "Read."},
            ]
        )

    talk.on("T-1", work)
    shown = say(talk, "/shake", "Now?")
    assert shown[0].startswith("old results of tools are a line each: about ")
    assert "The output of read was elided" in str(talk.server.requests[-1].body)


def test_snapshot_sends_pages_to_a_model_that_sees_them(talking: Talking):
    numbers = " ".join(f"{n * 7919:x}" for n in range(2_500))  # tokens enough by any count
    talk = talking([numbers, "ok", "done"])
    talk.model = "claude-opus-5-5" if talk.provider == "anthropic" else "gpt-5.5"
    talk("one\ntwo\n", "--topic", "T-1")
    said = talk("/snapshot\nthree\n", "--topic", "T-1")
    assert said.code == 0, said.err
    assert said.answers[0].startswith("pages of print stand for old turns: about ")
    assert "image" in str(talk.server.requests[-1].body)
    assert "· pages stand for 2 older messages" in said.figures[0]


def test_cost_tells_what_was_spent(talk: Talk):
    shown = say(talk, "/cost")
    assert re.match(r"whole tree +2 +\d+ +0 +0 +\d+", shown[1])
    talk.server.script.add([{"text": "word " * 200}, {"when": "^Below", "text": "words"}])
    shown = say(talk, "More.", "Now?", "/compact", "/cost")
    assert re.match(r"summaries since the start, .*: in \d+ out \d+", shown[-1])


def test_export_prints_or_writes_a_file(talk: Talk, tmp_path: Path):
    assert "Where is my parcel?" in say(talk, "/export")
    file = tmp_path / "out.jsonl"
    said = talk(f"/export jsonl {file}\n", "--topic", "T-1")
    assert said.notes[-1] == f"exported the whole tree as jsonl to {file}"
    assert "Where is my parcel?" in file.read_text(encoding="utf-8")
    assert refused(talk, "/export nothing").startswith("there is no format 'nothing'")


def test_help_lists_every_command_and_quit_ends(talk: Talk):
    shown = say(talk, "/help", "/quit", "never sent")
    assert [line.split()[0] for line in shown[1:]] == [f"/{name}" for name in COMMANDS]
    assert len(talk.messages()) == 4


@pytest.mark.parametrize(
    ("line", "meant"),
    [("/chekpoint x", "checkpoint"), ("/rew", "rewind"), ("/shak", "shake"), ("/xyzzy", None)],
)
def test_an_unknown_command_is_told_with_the_nearest(talk: Talk, line: str, meant: str | None):
    name = line.split()[0]
    hint = f"do you mean /{meant}? " if meant else ""
    assert refused(talk, line) == (
        f"there is no {name} ({hint}/help lists them; a space before it makes it a prompt)"
    )
    assert len(talk.messages()) == 4


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("/tree", ("tree", "")),
        ("/TREE  ", ("tree", "")),
        ("/edit last  two words ", ("edit", "last  two words")),
        (" /tree", None),
        ("/etc/hosts is a file", None),
        ("/ is a sign", None),
        ("//tree", None),
        ("tree", None),
    ],
)
def test_what_is_a_command_and_what_a_prompt(line: str, found: tuple[str, str] | None):
    assert parse(line) == found


def test_a_space_before_a_command_makes_it_a_prompt(talk: Talk):
    assert say(talk, " /tree") == ["3 user messages; the last one: /tree"]


def test_every_command_is_tried_here():
    source = Path(__file__).read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f'"/{name}' not in source] == []


def test_what_is_refused_is_advised_by_words_with_a_slash(talk: Talk):
    say(talk, "/checkpoint here")
    assert refused(talk, "/checkpoint here").endswith("on message 4 (choose another label)")
    assert refused(talk, "/redo").endswith("(/branch goes anywhere)")
    assert refused(talk, "/branch 99").endswith("; /tree shows those that do)")


def test_an_export_to_a_folder_does_not_end_the_talk(talk: Talk, tmp_path: Path):
    said = talk(f"/export markdown {tmp_path}\nStill there?\n", "--topic", "T-1")
    assert f"sessiontree: {tmp_path} is a folder (name a file in it)" in said.notes
    assert said.answers == ["3 user messages; the last one: Still there?"]
