"""The names of design §4, where they are promised, and how cheap it is to have them."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import sessiontree
from sessiontree import errors

PROMISED = (
    "open_store", "Store", "Conversation", "Turn", "Message", "Checkpoint", "Resume", "Tree",
    "Budget", "Window", "violations", "HEAD", "ToolCall", "ToolResult", "Problem", "Move",
    "ConversationInfo", "Reclaimed", "Violation", "Import", "import_file", "export", "ModelTools",
)  # fmt: skip

METHODS = {
    "Store": "conversation open conversations delete for_owner check",
    "Conversation": "id owner topic title head forked_from turn append path iter_path message "
    "children siblings leaves tree branch fork edit retry checkpoint checkpoints rewind undo redo "
    "history resume window reclaim",
    "Turn": "add answer interrupt checkpoint head open_calls pending",
    "ModelTools": "schemas handles call",
    "Message": "id parent_id conversation_id role format native parts text tool_calls tool_results "
    "depth open_calls is_boundary tokens usage model key meta created_at raw",
    "Checkpoint": "label message_id note created_at",
    "Resume": "path checkpoints interrupted draft window outside",
    "Tree": "head nodes children siblings leaves",
    "Node": "id parent_id role preview depth tokens created_at labels children",
    "ToolCall": "id name arguments",
}

ERRORS = (
    "SessionTreeError", "ConversationNotFound", "MessageNotFound", "CheckpointNotFound",
    "HeadMoved", "NotABoundary", "OrphanToolResult", "UnsettledTurn", "NothingToRetry",
    "FormatError", "StoreBusy", "StoreCorrupt", "BudgetTooSmall",
)  # fmt: skip


def test_all_is_sorted_and_each_name_in_it_is_there() -> None:
    assert len(set(sessiontree.__all__)) == len(sessiontree.__all__)
    assert all(hasattr(sessiontree, name) for name in sessiontree.__all__)


@pytest.mark.parametrize("name", PROMISED)
def test_a_promised_name_is_public(name: str) -> None:
    assert name in sessiontree.__all__


@pytest.mark.parametrize("name", sorted(METHODS))
def test_a_public_class_has_what_the_design_says(name: str) -> None:
    face = getattr(sessiontree, name)
    known = set(dir(face)) | set(getattr(face, "__annotations__", ()))
    known |= set(getattr(face, "__dataclass_fields__", ()))
    assert set(METHODS[name].split()) <= known


@pytest.mark.parametrize("name", ERRORS)
def test_a_promised_error_is_public(name: str) -> None:
    assert name in sessiontree.__all__
    assert issubclass(getattr(sessiontree, name), sessiontree.SessionTreeError)


def test_errors_are_also_what_python_calls_them() -> None:
    for name in ("ConversationNotFound", "MessageNotFound", "CheckpointNotFound"):
        assert issubclass(getattr(sessiontree, name), LookupError)
    assert issubclass(sessiontree.FormatError, ValueError)
    assert issubclass(sessiontree.BadArgument, ValueError)


def test_every_error_is_in_the_drawing_and_public() -> None:
    drawn = errors.__doc__ or ""
    for name, found in inspect.getmembers(errors, inspect.isclass):
        if issubclass(found, sessiontree.SessionTreeError):
            assert f" {name}" in drawn, name
            assert name in sessiontree.__all__, name


def test_every_public_name_says_what_it_is() -> None:
    for name in sessiontree.__all__:
        found = getattr(sessiontree, name)
        if inspect.isclass(found) or inspect.isfunction(found):
            assert inspect.getdoc(found), name


@pytest.mark.parametrize("name", ["Store", "Conversation", "Turn"])
def test_every_method_of_a_handle_says_what_it_does(name: str) -> None:
    for method, found in inspect.getmembers(getattr(sessiontree, name), inspect.isfunction):
        if not method.startswith("_"):
            assert inspect.getdoc(found), method


def test_an_error_says_what_happened_and_apart_from_it_what_to_do() -> None:
    error = sessiontree.MessageNotFound(7, 3)
    assert error.what == "conversation 3 has no message 7"
    assert error.hint
    assert str(error) == f"{error.what} ({error.hint})"
    assert str(sessiontree.SessionTreeError("it broke")) == "it broke"


def test_errors_show_any_value_shortly() -> None:
    assert len(str(sessiontree.MessageNotFound("x" * 10_000, 3))) < 300
    assert "a value of type int" in str(sessiontree.MessageNotFound(10**5_000, 3))
    assert "\\ud800" in str(sessiontree.CheckpointNotFound("\ud800", 3, ["\ud800"]))


def test_an_error_names_some_of_many_labels() -> None:
    labels = [f"label {number}" for number in range(100_000)]
    error = sessiontree.CheckpointNotFound("no", 3, labels)
    assert error.labels == tuple(labels)
    assert "'label 99999', and 99,980 older ones" in error.hint
    assert len(str(error)) < 1_000


def test_importing_sessiontree_loads_nothing_that_is_not_needed_yet() -> None:
    code = "import sys, sessiontree; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert loaded.isdisjoint({"anyio", "sqlmodel", "sqlalchemy", "pydantic", "typer", "rich"})
