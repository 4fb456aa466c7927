"""Tools that a model may call itself: set a checkpoint, and go back to one.

Their definitions in the shape of each provider, and what a call of one asks for and is told.
What is asked for happens where the step of the call ends, when every call beside it has its
result too: the note in the result's meta says what.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, cast

from sessiontree.core.message import META, NewMessage, ToolCall
from sessiontree.errors import WindowError, shown

Json = dict[str, Any]

CHECKPOINT, REWIND = "checkpoint", "rewind"

_LABEL = "A short name for the place, as in `before-the-refund`."

_ABOUT = {
    CHECKPOINT: (
        "Mark this point of the conversation under a label, before you explore what may lead "
        "nowhere or fill your context: reading many files, trying a fix. `rewind` brings you "
        "back here. The conversation alone is marked: files, and what your tools did, are not.",
        {"label": _LABEL},
    ),
    REWIND: (
        "Go back to a checkpoint. What was said after it leaves your context, except your "
        "report, with which you go on from there. Nothing outside of the conversation is "
        "undone: files, requests and the like stay as your tools left them, so report those "
        "too.",
        {
            "label": "The label that `checkpoint` was given.",
            "report": (
                "All that you must still know: what you tried, found and changed, with names, "
                "paths, numbers and errors word for word."
            ),
        },
    ),
}
"""Tool → what the model reads about it, and about each of its arguments; all are wanted."""

NAMES = tuple(_ABOUT)


# --- Definitions ----------------------------------------------------------------------------


def definitions(provider: str) -> list[Json]:
    """The tools as entries of the list that the provider's call takes; for ``gemini`` that is
    ``functionDeclarations``, for ``bedrock`` ``toolConfig.tools``. WindowError for a provider
    that has no shape here."""
    shape = _SHAPES.get(provider)
    if shape is None:
        raise WindowError(
            f"tools have no shape for {shown(provider)}", hint=f"the targets: {', '.join(_SHAPES)}"
        )
    return [shape(name, about, _schema(wanted)) for name, (about, wanted) in _ABOUT.items()]


def _schema(wanted: Mapping[str, str]) -> Json:
    properties = {name: {"type": "string", "description": said} for name, said in wanted.items()}
    return {
        "type": "object",
        "properties": properties,
        "required": list(wanted),
        "additionalProperties": False,
    }


def _anthropic(name: str, about: str, schema: Json) -> Json:
    return {"name": name, "description": about, "input_schema": schema}


def _openai_responses(name: str, about: str, schema: Json) -> Json:
    return {"type": "function", "name": name, "description": about, "parameters": schema}


def _openai_chat(name: str, about: str, schema: Json) -> Json:
    function = {"name": name, "description": about, "parameters": schema}
    return {"type": "function", "function": function}


def _gemini(name: str, about: str, schema: Json) -> Json:
    """Its schemas are a part of OpenAPI's, which knows no ``additionalProperties``."""
    known = {key: value for key, value in schema.items() if key != "additionalProperties"}
    return {"name": name, "description": about, "parameters": known}


def _bedrock(name: str, about: str, schema: Json) -> Json:
    return {"toolSpec": {"name": name, "description": about, "inputSchema": {"json": schema}}}


_SHAPES = {
    "anthropic": _anthropic,
    "openai_chat": _openai_chat,
    "openai_responses": _openai_responses,
    "gemini": _gemini,
    "bedrock": _bedrock,
}


# --- Calls ----------------------------------------------------------------------------------


class Known(NamedTuple):
    """What there is when a call is answered. ``labels`` are the checkpoints, with those that
    the step of the call will set; ``going`` is where its end goes back to already."""

    labels: Collection[str]
    going: str | None


class Reply(NamedTuple):
    """The result of a call: the words for the model, and the note for the end of its step."""

    text: str
    is_error: bool = False
    note: Json | None = None

    @property
    def rewinds(self) -> str | None:
        """The label that the conversation goes back to when the step is whole."""
        return self.note["label"] if self.note and self.note["kind"] == REWIND else None


def reply_to(call: ToolCall, known: Known) -> Reply:
    """What a call of one of the tools is told; whatever its arguments are."""
    given = _arguments(call)
    if given is None:
        return _refused(f"the arguments of {call.name} are no JSON object")
    for name in _ABOUT[call.name][1]:
        why = _why_not(given.get(name))
        if why:
            return _refused(f"the {name} {why}")
    label: str = given["label"]
    if call.name == CHECKPOINT:
        return _set(label, known)
    return _go_back(label, given["report"], known)


def _arguments(call: ToolCall) -> Mapping[str, Any] | None:
    given = call.arguments
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            return None
    return cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else None


def _why_not(given: object) -> str:
    """Why the store cannot hold it, or nobody could read it; empty when it is well."""
    if given is None:
        return "is missing"
    if not isinstance(given, str):
        return "is not a string"
    if not given.strip():
        return "is empty"
    if "\0" in given or not _is_unicode(given):
        return "has characters in it that cannot be stored"
    return ""


def _is_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _set(label: str, known: Known) -> Reply:
    if label in known.labels:
        return _refused(
            f"there is a checkpoint {shown(label)} already, and it stays where it is; choose "
            f"another label. {_listed(known)}"
        )
    said = f"The checkpoint {shown(label)} is set at the end of this step."
    return Reply(said, note={"kind": CHECKPOINT, "label": label})


def _go_back(label: str, report: str, known: Known) -> Reply:
    if known.going is not None:
        return _refused(f"this step goes back to {shown(known.going)} already")
    if label not in known.labels:
        return _refused(f"there is no checkpoint {shown(label)}. {_listed(known)}")
    said = (
        f"Going back to the checkpoint {shown(label)} with your report, as soon as every call "
        "of this message has its result."
    )
    return Reply(said, note={"kind": REWIND, "label": label, "digest": digest_of(label, report)})


def _refused(why: str) -> Reply:
    return Reply(f"Nothing was done: {why}", is_error=True)


def _listed(known: Known) -> str:
    if not known.labels:
        return "There are no checkpoints yet; `checkpoint` sets one."
    return f"The checkpoints: {', '.join(map(shown, known.labels))}."


def digest_of(label: str, report: str) -> str:
    """What the model reads where it has come back to: its call is not before it any more."""
    return (
        f"(You went back to the checkpoint {shown(label)} by `rewind`. What came after it has "
        f"left your context; this is your report of it.)\n\n{report}"
    )


# --- The end of a step ------------------------------------------------------------------------


def notes_of(step: Sequence[NewMessage], kind: str) -> list[Json]:
    """The notes of a kind in the results of a step, in order."""
    notes = [(message.meta or {}).get(META) for message in step]
    ours = [cast(Json, note) for note in notes if isinstance(note, dict)]
    return [note for note in ours if note.get("kind") == kind]
