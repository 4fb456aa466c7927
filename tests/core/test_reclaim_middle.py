"""Snapshot and extract as reclaims: what stands for old turns without a call of a model."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from paths import TARGETS, assistant, path, user, violations, window

from sessiontree import formats
from sessiontree.core.reclaim import Proposal, Refused, Sight, draw, middle

MODELS = {
    "anthropic": "claude-opus-4-8",
    "openai_chat": "gpt-6.2",
    "openai_responses": "gpt-6.2",
    "gemini": "gemini-3-pro",
    "bedrock": "anthropic.claude-opus-4-8",
}


def talk(turns=40):
    natives = [user("We decided to use SQLite.")]
    for i in range(turns):
        natives += [assistant(f"answer {i}: " + f"LK-{i} waits in Lyon. " * 60), user(f"and {i}?")]
    return path(natives, "openai_chat")


def sight(messages, target, **options):
    return Sight(messages[::-1], target, formats.codec, **options)


def under(found: Proposal, messages):
    natives = [(m.native, {"format": m.format, "ref_id": m.ref_id}) for m in messages]
    return path([*natives, (found.mark, {"ref_id": found.ref_id})], "openai_chat")


@pytest.mark.parametrize("target", TARGETS)
def test_pages_stand_for_old_turns_in_every_providers_shape(target):
    messages, model = talk(), MODELS[target]
    found = middle.snapshot(sight(messages, target, model=model), keep=1_000)
    assert isinstance(found, Proposal)
    sent = window(under(found, messages), target, model=model, draw=draw)
    assert sent.tokens == found.after < found.before
    assert violations(sent) == []
    assert [step.rule for step in sent.steps if "page(s)" in step.what] == ["snapshot"]
    assert "iVBORw0KGgo" in json.dumps(sent.messages[0])
    assert "the pages that follow" in json.dumps(sent.messages[0])
    assert "Summary of the conversation" not in json.dumps(sent.messages)


@pytest.mark.parametrize("target", TARGETS)
def test_an_extract_stands_for_old_turns_and_says_that_it_is_one(target):
    messages = talk()
    found = middle.extract(sight(messages, target), keep=1_000)
    assert isinstance(found, Proposal)
    sent = window(under(found, messages), target)
    assert sent.tokens == found.after < found.before
    assert violations(sent) == []
    said = json.dumps(sent.messages[0])
    assert "[Extract of " in said
    assert "We decided to use SQLite." in said
    assert "Summary" not in said
    assert "an extract stands for what came before" in [step.what for step in sent.steps]


def test_an_extract_keeps_to_its_room():
    decided = [user(f"We decided to use tool number {i} for part {i}.") for i in range(8)]
    natives = [m for said in decided for m in (said, assistant("yes, " * 40))]
    messages = path([*natives, user("now")], "openai_chat")
    whole = middle.extract(sight(messages, "anthropic"), keep=100)
    small = middle.extract(sight(messages, "anthropic"), keep=100, room=110)
    assert isinstance(whole, Proposal)
    assert isinstance(small, Proposal)
    assert len(whole.mark["decisions"]) > len(small.mark["decisions"]) > 0
    none = middle.extract(sight(messages, "anthropic"), keep=100, room=5)
    assert isinstance(none, Refused)
    assert "more than 5 tokens" in none.why


def test_a_planner_without_a_drawer_sends_the_text_of_a_snapshot():
    messages, model = talk(), MODELS["anthropic"]
    found = middle.snapshot(sight(messages, "anthropic", model=model), keep=1_000)
    assert isinstance(found, Proposal)
    sent = window(under(found, messages), "anthropic", model=model)
    assert "We decided to use SQLite." in json.dumps(sent.messages[0])
    assert violations(sent) == []


def test_what_would_be_no_smaller_as_pages_is_refused():
    short = path([user("a"), assistant("b"), user("c")], "openai_chat")
    found = middle.snapshot(sight(short, "anthropic"), keep=1)
    assert isinstance(found, Refused)
    assert "text" in found.why
    found = middle.snapshot(sight(talk(), "anthropic"), keep=1_000_000)
    assert isinstance(found, Refused)
    assert "all that is sent fits" in found.why


def test_an_unknown_model_is_shown_no_pages_unasked():
    found = middle.snapshot(sight(talk(), "anthropic"), keep=1_000, known=True)
    assert isinstance(found, Refused)
    assert "not known which model" in found.why
    blind = middle.snapshot(sight(talk(), "openai_chat", model="gpt-3.5-turbo"), keep=1_000)
    assert isinstance(blind, Refused)
    assert "takes no images" in blind.why


def test_a_window_without_pages_loads_nothing_that_draws_them():
    program = """
import sys
from sessiontree import formats
from sessiontree.core import planner, reclaim
planner.plan([], "anthropic", formats.codec)
print([name for name in sys.modules if name.endswith(("snapshot", "glyphs", ".extract"))])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
