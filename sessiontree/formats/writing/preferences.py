"""Which of several answers is the better one, for training: ``dpo`` and ``kto``.

    dpo  {"prompt": [message], "chosen": [message], "rejected": [message],
          "signal", "chosen_id", "rejected_id"}
    kto  {"prompt": [message], "completion": [message], "label": bool, "signal", "id"}

Messages are OpenAI chat messages, as TRL reads them. The answers of one prompt are the
messages of the assistant that follow the same message. Nothing is guessed: an answer is
better only by a signal, the first of these that any of the answers has:

    rank    a number, 0 is the best: in ``meta``, or in the source's own row (Open Assistant)
    rating  a number, or thumbs up and down: in ``meta``, or in the source's row (Open WebUI,
            LibreChat); above zero is good
    label   a checkpoint on the answer whose first word is one of GOOD or BAD
    path    the head's path goes through the answer, and not through the others

Left out are answers that failed, that call tools without ever getting their results, and
that say nothing; and of answers that say the same, all but the first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from sessiontree.core.message import META, Message
from sessiontree.formats import shapes
from sessiontree.formats.writing.lines import as_json
from sessiontree.formats.writing.requests import window_of

GOOD = frozenset({"good", "chosen", "preferred", "better", "best", "accepted", "up"})
BAD = frozenset({"bad", "rejected", "worse", "worst", "refused", "down"})

FAILED = frozenset({"error", "errored", "failed", "aborted", "cancelled", "canceled", "incomplete"})
"""What sources call an answer that did not come to its end."""


class Answer(NamedTuple):
    """One answer to a prompt. ``said`` are its messages: programs may store one in several."""

    said: Sequence[Message]
    labels: Sequence[str]
    on_path: bool


class Judged(NamedTuple):
    """An answer, and how good it is: the more, the better. None where no signal says."""

    answer: Answer
    score: float | None


class Verdict(NamedTuple):
    signal: str
    judged: list[Judged]

    @property
    def is_absolute(self) -> bool:
        """True when a score says good or bad, and not only which is better."""
        return self.signal in ("rating", "label")

    @property
    def best(self) -> float:
        return max((each.score for each in self.judged if each.score is not None), default=0.0)

    @property
    def tells_apart(self) -> bool:
        """True when one answer is better than another."""
        return len({each.score for each in self.judged if each.score is not None}) > 1


def judge(answers: Sequence[Answer]) -> Verdict:
    """How good the answers are, by the first signal that any of them has."""
    found = [answer for answer in answers if not has_failed(answer)]
    signal, scores = _scores(found)
    return Verdict(signal, [Judged(*each) for each in zip(found, scores, strict=True)])


class Told(NamedTuple):
    """An answer as a row has it: chat messages."""

    prompt: list[dict[str, Any]]
    said: list[dict[str, Any]]


def tell(prompt: Sequence[Message], path: Sequence[Message]) -> Told | None:
    """The answer that a path ends with, behind the path of its prompt; None where it says
    nothing, or is not one message behind the same prompt."""
    asked = window_of(prompt, "openai_chat").request()["messages"]
    whole = window_of(path, "openai_chat").request()["messages"]
    behind = whole[len(asked) :]
    said = [message for message in behind if message["role"] != "tool"]  # results to come
    if whole[: len(asked)] != asked or not asked or len(said) != 1 or behind[:1] != said:
        return None
    is_empty = not said[0].get("content") and not said[0].get("tool_calls")
    return None if said[0]["role"] != "assistant" or is_empty else Told(asked, said)


Row = dict[str, Any]


def dpo_rows(verdict: Verdict, told: Mapping[int, Told]) -> Iterator[Row]:
    """Each of the best answers beside each that is worse. ``told``: by the id of an answer's
    first message; what is not in it cannot be said."""
    pairs = [
        (chosen.answer.said[0].id, rejected.answer.said[0].id)
        for chosen in verdict.judged
        for rejected in verdict.judged
        if chosen.score
        == verdict.best
        > (verdict.best if rejected.score is None else rejected.score)
    ]
    for chosen, rejected in pairs:
        if chosen in told and rejected in told and told[chosen].prompt == told[rejected].prompt:
            yield {
                "prompt": told[chosen].prompt,
                "chosen": told[chosen].said,
                "rejected": told[rejected].said,
                "signal": verdict.signal,
                "chosen_id": chosen,
                "rejected_id": rejected,
            }


def kto_rows(verdict: Verdict, told: Mapping[int, Told]) -> Iterator[Row]:
    """Each answer that is good or bad. By rank and path the best is good, the others bad."""
    for answer, score in verdict.judged:
        name = answer.said[0].id
        if name not in told or score is None or (verdict.is_absolute and score == 0):
            continue
        is_good = score > 0 if verdict.is_absolute else score == verdict.best
        yield {
            "prompt": told[name].prompt,
            "completion": told[name].said,
            "label": is_good,
            "signal": verdict.signal,
            "id": name,
        }


def distinct(told: Mapping[int, Told]) -> dict[int, Told]:
    """Of answers that say the same, the first."""
    first: dict[str, int] = {}
    for name, one in told.items():
        words = as_json([[said.get(key) for key in ("content", "tool_calls")] for said in one.said])
        first.setdefault(words, name)
    return {name: told[name] for name in first.values()}


def has_failed(answer: Answer) -> bool:
    """True when the source says that one of its messages did not come to its end."""
    return any(_says_failed(message) for message in answer.said)


def _says_failed(message: Message) -> bool:
    native = message.native
    inner = native.get("message")
    for said in (native, inner if shapes.is_object(inner) else {}):
        reasons = (said.get(key) for key in ("stopReason", "stop_reason", "status"))
        if any(shapes.is_one_of(reason, FAILED) for reason in reasons):
            return True
        if said.get("errorMessage") or said.get("error") or said.get("isApiErrorMessage"):
            return True
    return False


# --- Signals --------------------------------------------------------------------------------

Scores = list[float | None]


def _scores(answers: Sequence[Answer]) -> tuple[str, Scores]:
    for signal, score in (("rank", _rank), ("rating", _rating), ("label", _label)):
        scores: Scores = [score(answer) for answer in answers]
        if any(found is not None for found in scores):
            others = 0.0 if signal == "label" else None
            return signal, [others if found is None else found for found in scores]
    on_path = [answer.on_path for answer in answers]
    return "path", [float(each) if any(on_path) else None for each in on_path]


def _rank(answer: Answer) -> float | None:
    for notes in _notes(answer):
        rank = _number(notes.get("rank"))
        if rank is not None:
            return -rank
    return None


def _rating(answer: Answer) -> float | None:
    for notes in _notes(answer):
        for place in (notes, notes.get("annotation"), notes.get("feedback")):
            rating = place.get("rating") if shapes.is_object(place) else None
            if rating in ("thumbsUp", "thumbsDown"):
                return 1.0 if rating == "thumbsUp" else -1.0
            if _number(rating) is not None:
                return _number(rating)
    return None


def _notes(answer: Answer) -> Iterator[Mapping[str, Any]]:
    """Where a signal may stand: the caller's notes, and the source's row."""
    yield {key: value for key, value in answer.said[0].meta.items() if key != META}
    yield answer.said[0].native


def _number(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and value == value:
        return float(cast(float, value)) if abs(value) < 1e300 else None
    return None


def _label(answer: Answer) -> float | None:
    words = {word[0].lower() for label in answer.labels if (word := re.match(r"[A-Za-z]+", label))}
    good, bad = bool(words & GOOD), bool(words & BAD)
    return None if good == bad else (1.0 if good else -1.0)
