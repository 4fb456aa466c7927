"""Steps that a source has spread out, brought back onto one chain.

A program that calls several tools at once may write its answer as several rows, and hang
each result on the row of its call:

    answer A ── answer B ── result of B ── goes on        A ── B ── result A ── result B ── goes on
       └─ result of A                               ->

On the path of the conversation the result of A would be missing, and a branch would stand
there that nobody made. So the pieces of one answer and the results of its calls are made
one chain. What hung on the inside of such a step, where a call was still open, goes on
after it: unless the step itself goes on elsewhere, for then it is a branch that left there.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from sessiontree.core.message import ToolCall, ToolResult
from sessiontree.core.pairing import OpenCall, is_answer, take
from sessiontree.formats.skeleton import ROOT, Children, Skeleton, ancestors_first
from sessiontree.formats.transcript import Entry


class Known(NamedTuple):
    """Where an entry stands that was stored before. ``parent`` is an index, or ROOT."""

    parent: int
    depth: int
    open_calls: int


class Step(NamedTuple):
    """An answer of the model and the results of its calls, in the order of the file."""

    asking: list[int]
    answering: list[int]
    is_chain: bool


def gather(skeleton: Skeleton, parent: array[int], known: Mapping[int, Known]) -> None:
    """Change ``parent`` so that each step is one chain."""
    children = Children(parent)
    done = bytearray(len(parent))
    for at in ancestors_first(parent):
        entry = skeleton.entries[at]
        if done[at] or entry.role != "assistant" or not (entry.calls or entry.group):
            continue
        if _is_straight(skeleton.entries, children, at):
            continue
        step = _step(skeleton.entries, children, at)
        for member in (*step.asking, *step.answering):
            done[member] = 1
        if len(step.asking) + len(step.answering) > 1:
            _straighten(skeleton, parent, children, step, known)


def _is_straight(entries: Sequence[Entry], children: Children, at: int) -> bool:
    """True for the usual step, which is one chain as it is: an answer in one piece, and one
    row that answers all its calls, if it has any."""
    entry, last = entries[at], at
    if entry.calls:
        last = _answering(entries, children, at)
        if last == ROOT or entries[last].group is not None:
            return False
        if not _answers_all(entry.calls, entries[last].results):
            return False
    return entry.group is None or not any(
        is_same_answer(entries[child], entry) for child in children.of(last)
    )


def _answering(entries: Sequence[Entry], children: Children, at: int) -> int:
    """The one row that can answer the calls of ``at``; ROOT where there is none, or one cannot
    tell by it alone. Notes that hang beside it change nothing, unless the step is a dead end:
    then they are put after it."""
    only = children.only(at)
    if only != ROOT:
        return only if entries[only].role != "mark" else ROOT
    spoken = [child for child in children.of(at) if entries[child].role != "mark"]
    return spoken[0] if len(spoken) == 1 and children.has_any(spoken[0]) else ROOT


def _answers_all(calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> bool:
    if len(calls) == len(results) == 1 and is_answer(calls[0], results[0]):
        return True
    return answers([OpenCall(0, call) for call in calls], results) == []


def answers(waiting: Sequence[OpenCall], results: Sequence[ToolResult]) -> list[OpenCall] | None:
    """What is left open when all ``results`` have answered; None when one cannot."""
    left = list(waiting)
    for result in results:
        if take(left, result) is None:
            return None
    return left


def is_same_answer(entry: Entry, other: Entry) -> bool:
    """True for two pieces of one answer of the model."""
    return (
        entry.group is not None
        and entry.group == other.group
        and entry.role == other.role == "assistant"
    )


def _step(entries: Sequence[Entry], children: Children, top: int) -> Step:
    asking, answering, unsure = [top], list[int](), list[int]()
    waiting = [OpenCall(top, call) for call in entries[top].calls]
    is_chain = True
    fresh = [top]
    while fresh:
        found: list[int] = []
        for at in fresh:
            inside = 0
            for child in children.of(at):
                if is_same_answer(entries[child], entries[top]):
                    asking.append(child)
                    waiting.extend(OpenCall(child, call) for call in entries[child].calls)
                elif (left := _after(waiting, entries[child])) is not None:
                    waiting = left
                    answering.append(child)
                else:
                    unsure.append(child)
                    continue
                inside += 1
                found.append(child)
            is_chain = is_chain and inside < 2
        if not found:
            found, waiting, unsure = _late(entries, unsure, waiting)
            answering.extend(found)
            is_chain = is_chain and not found
        fresh = found
    return Step(asking, sorted(answering), is_chain)


def _after(waiting: Sequence[OpenCall], entry: Entry) -> list[OpenCall] | None:
    """What is left open after an entry that answers; None for one that does not."""
    if not waiting or not entry.results or entry.role == "mark":
        return None
    return answers(waiting, entry.results)


def _late(
    entries: Sequence[Entry], unsure: list[int], waiting: list[OpenCall]
) -> tuple[list[int], list[OpenCall], list[int]]:
    """Results that came before the row of their call was seen."""
    found: list[int] = []
    rest: list[int] = []
    for at in unsure:
        left = _after(waiting, entries[at])
        if left is None:
            rest.append(at)
        else:
            waiting = left
            found.append(at)
    return found, waiting, rest


def _straighten(
    skeleton: Skeleton,
    parent: array[int],
    children: Children,
    step: Step,
    known: Mapping[int, Known],
) -> None:
    chain = [*step.asking, *step.answering]
    stored = sorted((at for at in chain if at in known), key=lambda at: known[at].depth)
    if stored:  # what is stored stays where it is; the rest follows it
        chain = [*stored, *(at for at in chain if at not in known)]
    if not step.is_chain:
        for above, at in pairwise(chain):
            _put(skeleton, parent, at, above, known, "the row before it in its step")
    elif not stored:
        chain = _as_linked(chain, parent)
    _move_what_left_inside(skeleton, parent, children, chain, step, known)


def _as_linked(chain: list[int], parent: array[int]) -> list[int]:
    """A chain from its first to its last, as it is linked."""
    below = {parent[at]: at for at in chain[1:]}
    linked = [chain[0]]
    while linked[-1] in below:
        linked.append(below[linked[-1]])
    return linked


def _move_what_left_inside(
    skeleton: Skeleton,
    parent: array[int],
    children: Children,
    chain: list[int],
    step: Step,
    known: Mapping[int, Known],
) -> None:
    members = set(chain)
    outside = {at: [c for c in children.of(at) if c not in members] for at in chain}
    last = chain[-1]
    is_dead_end = not outside[last]
    waiting: list[OpenCall] = []
    for at in chain[:-1]:
        entry = skeleton.entries[at]
        waiting.extend(OpenCall(at, call) for call in entry.calls)
        waiting = answers(waiting, entry.results) or [] if entry.results else waiting
        if not waiting or not (is_dead_end or (entry.results and not step.is_chain)):
            continue
        for child in outside[at]:
            if not skeleton.entries[child].results:
                _put(skeleton, parent, child, last, known, "the end of the step it left open")


def _put(
    skeleton: Skeleton,
    parent: array[int],
    at: int,
    above: int,
    known: Mapping[int, Known],
    where: str,
) -> None:
    if parent[at] == above or at in known or above == ROOT:
        return
    parent[at] = above
    skeleton.repair(at, f"it is put after {where}, line {skeleton.entries[above].line}")
