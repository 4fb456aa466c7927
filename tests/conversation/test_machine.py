"""Any order of operations, against a model in memory, on a file, closed and reopened between
any two of them, also without closing: what is on the disk is what a killed process leaves.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from model import Call, Drafted, Refused, Result, Spec, Tale, pairing, settled
from talk import examples

import sessiontree
from sessiontree import HEAD, Conversation, HeadMoved, Message

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"

# ---- messages ----------------------------------------------------------------------

KEYS = st.none() | st.none() | st.sampled_from(["k0", "k1", "k2", "k3"])
TEXTS = st.sampled_from(["a", "b", "", "\x00\ud800é😀", "long " * 1_000, "other " * 1_000])
CALL_IDS = st.sampled_from(["call_0", "call_1", "toolu", None])
NAMES = st.sampled_from(["f", "g"])


def spec(native: dict[str, Any], as_text: bool, key: str | None, **sides: Any) -> Spec:
    return Spec(native, json.dumps(native, indent=1) if as_text else native, key=key, **sides)


@st.composite
def talks(draw: st.DrawFn) -> Spec:
    role = draw(st.sampled_from(["user", "user", "assistant", "assistant", "system"]))
    return spec({"role": role, "content": draw(TEXTS)}, draw(st.booleans()), draw(KEYS))


@st.composite
def calls(draw: st.DrawFn) -> Spec:
    made = tuple(
        Call(call_id, name, at)
        for at, (call_id, name) in enumerate(
            draw(st.lists(st.tuples(CALL_IDS, NAMES), min_size=1, max_size=3))
        )
    )
    native = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                **({"id": call.id} if call.id else {}),
                "type": "function",
                "function": {"name": call.name, "arguments": f'{{"at": {call.position}}}'},
            }
            for call in made
        ],
    }
    return spec(native, draw(st.booleans()), draw(KEYS), calls=made)


def answer(call_id: str | None, name: str | None, text: str, key: str | None) -> Spec:
    native: dict[str, Any] = {"role": "tool", "content": text}
    if call_id is not None:
        native["tool_call_id"] = call_id
    if name is not None:
        native["name"] = name
    return spec(native, False, key, results=(Result(call_id, name),))


@st.composite
def answers(draw: st.DrawFn) -> Spec:
    """Any result; it may be an orphan."""
    return answer(draw(CALL_IDS), draw(st.none() | NAMES), draw(TEXTS), draw(KEYS))


@st.composite
def steps(draw: st.DrawFn) -> list[Spec]:
    """Calls and their results in any order, with talk between them at times."""
    first = draw(calls())
    whole = [first]
    for call in draw(st.permutations(first.calls)):
        if draw(st.integers(0, 4)) == 0:
            whole.append(draw(talks()))
        name = call.name if call.id is None else None
        whole.append(answer(call.id, name, draw(TEXTS), draw(KEYS)))
    return whole


BATCHES = st.one_of(
    st.lists(talks(), min_size=1, max_size=3),
    st.builds(lambda a, b, c: [*a, *b, *c], st.lists(talks(), max_size=1), steps(), steps()),
    steps(),
    st.lists(st.one_of(talks(), calls(), answers()), min_size=1, max_size=3),
)
PICK = st.integers(0, 1_000)
LABELS = st.sampled_from(["start", "before refund", "x"])


# ---- the machine -------------------------------------------------------------------


@dataclass(eq=False)
class Handle:
    """A handle and what it has seen. ``reported``: drafts that its resume has told of."""

    chat: Conversation
    tale: Tale
    seen: int | None
    reported: set[int] = field(default_factory=set)


@dataclass(eq=False)
class OpenTurn:
    turn: Any
    handle: Handle
    leaf: int | None
    step: list[Spec] = field(default_factory=list)
    labels: list[tuple[str, bool]] = field(default_factory=list)

    @property
    def number(self) -> int:
        return self.turn._number


class StoreMachine(RuleBasedStateMachine):
    @initialize()
    def open(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.folder = Path(tempfile.mkdtemp(prefix="sessiontree-"))
        self.file = self.folder / "0.db"
        self.copies = 0
        self.tales: list[Tale] = []
        self.handles: list[Handle] = []
        self.turns: list[OpenTurn] = []
        self.touched: Tale | None = None
        self._open_store()
        self._add_tale(self.run(self.store.conversation("t0")), Tale("t0"))
        self._add_handle(self.tales[0])

    def teardown(self) -> None:
        """The store is closed also after a failure: its threads would keep pytest from ending."""
        if not hasattr(self, "opened"):
            return
        try:
            for tale in self.tales:
                self._compare(tale)
            self._compare_blobs()
        finally:
            self.run(self.opened.__aexit__(None, None, None))
            self.loop.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(asyncio.wait_for(work, 60))

    def expect(
        self, work: Coroutine[Any, Any, Any], model: Callable[[], Any]
    ) -> tuple[Any, Refused | None]:
        """Run the engine; where the model refuses, the engine must, by the same name."""
        refused = None
        try:
            value = model()
        except Refused as error:
            refused = error
        if refused is None:
            return (self.run(work), value), None
        with pytest.raises(refused.error) as caught:
            self.run(work)
        assert type(caught.value) is refused.error
        return caught.value, refused

    # ---- opening and closing ----

    def _open_store(self) -> None:
        self.opened = sessiontree.open_store(self.file, durability="normal")
        self.store = self.run(self.opened.__aenter__())

    def _add_tale(self, chat: Conversation, tale: Tale) -> Handle:
        tale.id = chat.id
        self.tales.append(tale)
        handle = Handle(chat, tale, tale.head)
        self.handles.append(handle)
        self.touched = tale
        return handle

    def _reopen(self) -> None:
        self._open_store()
        self.turns = []
        self.handles = []
        for tale in self.tales:
            self._add_handle(tale)
            self._compare(tale)
        self._add_handle(self.tales[0])

    def _add_handle(self, tale: Tale) -> None:
        chat = self.run(self.store.open(tale.id))
        self.handles.append(Handle(chat, tale, tale.head))

    @rule()
    def close_and_reopen(self) -> None:
        self.run(self.opened.__aexit__(None, None, None))
        self._reopen()

    @rule()
    def be_killed_and_reopen(self) -> None:
        """The files as they are now, without the courtesy of closing them."""
        self.copies += 1
        copy = self.folder / f"{self.copies}.db"
        for suffix in ("", "-wal"):
            source = Path(f"{self.file}{suffix}")
            if source.exists():
                shutil.copy(source, f"{copy}{suffix}")
        self.run(self.opened.__aexit__(None, None, None))
        self.file = copy
        self._reopen()

    @rule(pick=PICK)
    def second_handle(self, pick: int) -> None:
        tale = self._pick(self.tales, pick)
        if sum(handle.tale is tale for handle in self.handles) < 3:
            self._add_handle(tale)

    @rule(pick=PICK)
    def refresh(self, pick: int) -> None:
        handle = self._handle(pick)
        self.run(handle.chat.refresh())
        handle.seen = handle.tale.head

    def _pick(self, things: list[Any], pick: int) -> Any:
        return things[pick % len(things)]

    def _handle(self, pick: int) -> Handle:
        handle = self._pick(self.handles, pick)
        self.touched = handle.tale
        return handle

    def _place(self, tale: Tale, pick: int, *, none: bool = True) -> int | None:
        """A message of the tale; at times none, one that is not there, or another tale's."""
        elsewhere = [i for other in self.tales if other is not tale for i in other.nodes]
        places: list[int | None] = [*sorted(tale.nodes), 10**9, *elsewhere[:1]]
        places += [*tale.boundaries(), *tale.boundaries()]
        places += [None] if none else []
        return self._pick(places, pick)

    # ---- adding ----

    @rule(pick=PICK, batch=BATCHES, parent=st.none() | PICK)
    def append(self, pick: int, batch: list[Spec], parent: int | None) -> None:
        self._append(self._handle(pick), batch, parent)

    @rule(pick=PICK, which=PICK, more=st.lists(talks(), max_size=2), parent=st.none() | PICK)
    def append_again(self, pick: int, which: int, more: list[Spec], parent: int | None) -> None:
        """What is there under its key, and perhaps more: a harness that tries again."""
        handle = self._handle(pick)
        keyed = [n.spec for n in handle.tale.nodes.values() if n.spec.key and n.spec.given]
        if keyed:
            known = self._pick(keyed, which)
            again = Spec(known.native, known.given, known.calls, known.results, known.key)
            self._append(handle, [again, *more], parent)

    def _append(self, handle: Handle, batch: list[Spec], parent: int | None) -> None:
        tale = handle.tale
        keys = [s.key for s in batch]
        if len({k for k in keys if k}) != len([k for k in keys if k]):
            batch = [Spec(s.native, s.given, s.calls, s.results) for s in batch]
            keys = [None] * len(batch)
        place = HEAD if parent is None else self._place(tale, parent)
        start = handle.seen if place is HEAD else place

        def model() -> Any:
            settled(batch)
            return tale.plan(batch, start)

        work = handle.chat.append([s.given for s in batch], parent=place, keys=keys)
        if self._moves_away(handle, batch, start, model) and place is HEAD:
            self._expect_head_moved(handle, batch, work, handle.seen, model())
            return
        outcome, refused = self.expect(work, model)
        if refused is None:
            saved, (begin, fresh, _) = outcome
            self._saved(handle, batch, saved, begin, fresh, handle.seen)

    def _moves_away(
        self, handle: Handle, batch: list[Spec], start: int | None, model: Callable[[], Any]
    ) -> bool:
        """Whether another writer's head is in the way."""
        try:
            begin, fresh, _ = model()
        except Refused:
            return False
        return bool(fresh) and handle.tale.head not in (start, begin)

    def _expect_head_moved(
        self, handle: Handle, batch: list[Spec], work: Any, seen: int | None, plan: Any
    ) -> None:
        tale, (begin, fresh, _) = handle.tale, plan
        with pytest.raises(HeadMoved) as caught:
            self.run(work)
        error = caught.value
        assert (error.expected, error.actual) == (seen, tale.head)
        tale.grow([m.id for m in error.saved], fresh, begin)
        assert f"ending in {error.saved[-1].id}" in str(error)
        handle.seen = tale.head
        self._let_go(handle, ())

    def _saved(
        self,
        handle: Handle,
        batch: list[Spec],
        saved: list[Message],
        begin: int | None,
        fresh: list[Spec],
        expected: int | None,
        cause: str = "append",
    ) -> None:
        """An append that went through: the tree grew and the head moved, or it was known."""
        tale = handle.tale
        self._grow(tale, batch, saved, begin, fresh)
        if fresh:
            known = {m.id for m, s in zip(saved, batch, strict=True) if s not in fresh}
            tale.move([m.id for m in saved if m.id not in known][-1], cause)
            handle.seen = tale.head
        elif expected == tale.head or tale.nodes[saved[-1].id].open:
            handle.seen = expected
        else:
            handle.seen = saved[-1].id
        self._let_go(handle, ())

    def _grow(
        self, tale: Tale, batch: list[Spec], saved: Any, begin: int | None, fresh: list[Spec]
    ) -> None:
        assert len(saved) == len(batch)
        known = [tale.by_key(s.key) for s in batch]
        new = [m.id for m, old in zip(saved, known, strict=True) if old is None]
        assert all(m.id == old for m, old in zip(saved, known, strict=True) if old is not None)
        tale.grow(new, fresh, begin)
        for message, said in zip(saved, batch, strict=True):
            if said.given is not None:
                self._compare_message(tale, message)

    def _let_go(self, handle: Handle, turns: Any) -> None:
        handle.tale.let_go([*turns, *handle.reported])
        handle.reported.clear()

    # ---- turns ----

    @rule(pick=PICK)
    def begin_turn(self, pick: int) -> None:
        if len(self.turns) < 3:
            handle = self._handle(pick)
            turn = handle.chat.turn()
            self.run(turn.__aenter__())
            self.turns.append(OpenTurn(turn, handle, handle.seen))

    @rule(pick=PICK)
    def resume_turn(self, pick: int) -> None:
        """After a crash: look at what was in flight, and go on with the newest of it."""
        handle = self._handle(pick)
        resume = self._resume(handle)
        dead = self._dead(handle.tale)
        turn = handle.chat.turn(resume=resume)
        self.run(turn.__aenter__())
        if dead:
            drafted = handle.tale.drafts[dead[-1]]
            handle.reported.discard(dead[-1])
            self.turns.append(OpenTurn(turn, handle, drafted.parent, list(drafted.specs)))
        else:
            self.turns.append(OpenTurn(turn, handle, handle.seen))

    @rule(pick=PICK)
    def resume(self, pick: int) -> None:
        self._resume(self._handle(pick))

    def _dead(self, tale: Tale) -> list[int]:
        live = {turn.number for turn in self.turns}
        return [number for number in tale.drafts if number not in live]

    def _resume(self, handle: Handle) -> Any:
        tale = handle.tale
        resume = self.run(handle.chat.resume())
        handle.seen = tale.head
        dead = self._dead(tale)
        handle.reported = set(dead)
        drafts = [tale.drafts[number] for number in dead]
        assert [m.id for m in resume.path] == tale.path(tale.head)
        assert {c.label: c.message_id for c in resume.checkpoints} == tale.labels
        assert [m.native for m in resume.draft] == [s.native for d in drafts for s in d.specs]
        assert all(m.id == 0 for m in resume.draft)
        waiting = [call for d in drafts for call in pairing(d.specs)[1]]
        assert [(c.id, c.name, c.arguments) for c in resume.interrupted] == [
            (call.known_as, call.name, {"at": call.position}) for call in waiting
        ]
        return resume

    @precondition(lambda self: self.turns)
    @rule(pick=PICK, said=st.one_of(talks(), calls(), answers()))
    def turn_add(self, pick: int, said: Spec) -> None:
        self._add(self._turn(pick), said)

    @precondition(lambda self: any(turn.step for turn in self.turns))
    @rule(pick=PICK, text=TEXTS, key=KEYS)
    def turn_answer(self, pick: int, text: str, key: str | None) -> None:
        """A result for a call that is open."""
        turn = self._pick([turn for turn in self.turns if turn.step], pick)
        self.touched = turn.handle.tale
        call = self._pick(pairing(turn.step)[1], pick)
        self._add(turn, answer(call.id, call.name if call.id is None else None, text, key))

    def _turn(self, pick: int) -> OpenTurn:
        turn = self._pick(self.turns, pick)
        self.touched = turn.handle.tale
        return turn

    def _add(self, turn: OpenTurn, said: Spec) -> None:
        tale = turn.handle.tale
        work = turn.turn.add(said.given, key=said.key)
        if any(said.key and s.key == said.key for s in turn.step):
            assert self.run(work).id == 0
            return
        known = tale.by_key(said.key)
        step = [*turn.step, said]
        try:
            waiting = pairing(step)[1]
        except Refused as refused:
            if known is None:
                with pytest.raises(refused.error):
                    self.run(work)
            else:
                assert self.run(work).id == known
                self._pass(turn, known)
            return
        if waiting:
            self._draft(turn, step, known, self.run(work))
        else:
            self._settle(turn, step, work)

    def _pass(self, turn: OpenTurn, known: int) -> None:
        if not turn.step and turn.handle.tale.nodes[known].open == 0:
            turn.leaf = known

    def _draft(self, turn: OpenTurn, step: list[Spec], known: int | None, got: Message) -> None:
        if known is not None:
            assert got.id == known
            return
        assert got.id == 0
        assert got.native == step[-1].native
        turn.step = step
        drafted = turn.handle.tale.drafts.setdefault(turn.number, Drafted(turn.leaf, []))
        drafted.specs.append(step[-1])

    def _settle(self, turn: OpenTurn, step: list[Spec], work: Any) -> None:
        """The step is whole: it is saved, and the labels that waited for its end are set."""
        handle, tale = turn.handle, turn.handle.tale

        def model() -> Any:
            plan = tale.plan(step, turn.leaf)
            if any(label in tale.labels and not replaces for label, replaces in turn.labels):
                raise Refused(sessiontree.CheckpointExists)
            return plan

        expected = turn.leaf
        try:
            begin, fresh, _ = model()
        except Refused as refused:
            with pytest.raises(refused.error):
                self.run(work)
            if refused.error is sessiontree.CheckpointExists:
                taken = next(x for x, replaces in turn.labels if x in tale.labels and not replaces)
                turn.labels = [each for each in turn.labels if each[0] != taken]
            return
        if fresh and tale.head not in (expected, begin):
            self._expect_head_moved_in_turn(turn, step, work, (begin, fresh))
        else:
            self.run(work)
            saved = self._step_of(tale, step, fresh)
            self._saved(handle, step, saved, begin, fresh, expected)
            newest = [m.id for m, s in zip(saved, step, strict=True) if s in fresh or not fresh]
            self._settled(turn, newest[-1])

    def _expect_head_moved_in_turn(
        self, turn: OpenTurn, step: list[Spec], work: Any, plan: Any
    ) -> None:
        handle = turn.handle
        with pytest.raises(HeadMoved) as caught:
            self.run(work)
        error = caught.value
        assert (error.expected, error.actual) == (turn.leaf, handle.tale.head)
        begin, fresh = plan
        handle.tale.grow([m.id for m in error.saved], fresh, begin)
        handle.seen = handle.tale.head
        self._let_go(handle, ())
        self._settled(turn, error.saved[-1].id)

    def _step_of(self, tale: Tale, step: list[Spec], fresh: list[Spec]) -> list[Message]:
        """The messages of a step that was just saved; ``add`` gives the last of them only."""
        known = [tale.by_key(s.key) for s in step]
        new = iter(self._newest(tale, len(fresh)))
        found = [old if old is not None else next(new) for old in known]
        chat = self.run(self.store.open(tale.id))
        return [self.run(chat.message(i)) for i in found]

    def _newest(self, tale: Tale, count: int) -> list[int]:
        with sqlite3.connect(self.file) as db:
            rows = db.execute(
                "SELECT id FROM message WHERE conversation_id = ? ORDER BY id DESC LIMIT ?",
                (tale.id, count),
            ).fetchall()
        db.close()
        return [row[0] for row in rows][::-1]

    def _settled(self, turn: OpenTurn, last: int) -> None:
        tale = turn.handle.tale
        tale.let_go([turn.number])
        for label, _ in turn.labels:
            tale.labels[label] = last
        turn.step, turn.labels = [], []
        self._pass(turn, last)

    @precondition(lambda self: self.turns)
    @rule(pick=PICK, note=st.none() | st.just("stopped"))
    def turn_interrupt(self, pick: int, note: str | None) -> None:
        turn = self._turn(pick)
        tale = turn.handle.tale
        waiting = pairing(turn.step)[1]
        if not waiting:
            assert self.run(turn.turn.interrupt(note)) == []
            return
        closing = [
            Spec({"role": "tool", "content": ""}, None, results=(Result(call.id, call.name),))
            for call in waiting
        ]
        self._settle(turn, [*turn.step, *closing], turn.turn.interrupt(note))
        for said, call in zip(closing, waiting, strict=True):
            node = next((n for n in tale.nodes.values() if n.spec is said), None)
            if node is not None:
                self._closes(turn, node, call)

    def _closes(self, turn: OpenTurn, node: Any, call: Call) -> None:
        """The codec may word it as it likes; it must answer this call, and say that it is ours."""
        message = self.run(self._open(node.id, turn.handle.tale))
        (said,) = message.tool_results
        assert call.id is None or said.id == call.id
        assert message.meta == {"sessiontree": {"kind": "interrupted"}}
        node.spec.native, node.meta = message.native, message.meta

    async def _open(self, at: int, tale: Tale) -> Message:
        return await (await self.store.open(tale.id)).message(at)

    @precondition(lambda self: self.turns)
    @rule(pick=PICK, label=LABELS, replaces=st.booleans())
    def turn_checkpoint(self, pick: int, label: str, replaces: bool) -> None:
        turn = self._turn(pick)
        tale = turn.handle.tale
        work = turn.turn.checkpoint(label, replace=replaces)

        def model() -> None:
            waits = any(each == label for each, _ in turn.labels)
            if turn.step and not replaces and (waits or label in tale.labels):
                raise Refused(sessiontree.CheckpointExists)
            if not turn.step:
                tale.label(label, turn.leaf, replaces)

        _, refused = self.expect(work, model)
        if refused is None and turn.step:
            turn.labels.append((label, replaces))
        elif refused is None:
            self._let_go(turn.handle, [turn.number])

    @precondition(lambda self: self.turns)
    @rule(pick=PICK, raises=st.booleans())
    def end_turn(self, pick: int, raises: bool) -> None:
        turn = self._turn(pick)
        self.turns.remove(turn)
        work = turn.turn.__aexit__(*((ValueError, ValueError(), None) if raises else (None,) * 3))
        if turn.step and not raises:
            with pytest.raises(sessiontree.UnsettledTurn) as caught:
                self.run(work)
            waiting = pairing(turn.step)[1]
            assert [c.id for c in caught.value.calls] == [c.known_as for c in waiting]
        else:
            assert not self.run(work)
        with pytest.raises(sessiontree.TreeError, match="over"):
            self.run(turn.turn.add({"role": "user", "content": "late"}))

    # ---- moving ----

    @rule(pick=PICK, to=PICK)
    def branch(self, pick: int, to: int) -> None:
        handle = self._handle(pick)
        tale = handle.tale
        place = self._place(tale, to)
        before = set(tale.nodes)
        outcome, refused = self.expect(handle.chat.branch(place), lambda: tale.require(place))
        if refused is None:
            assert (outcome[0].id if outcome[0] else None) == place
            tale.move(place, "branch")
            handle.seen = place
        assert set(tale.nodes) == before

    @rule(pick=PICK, back=st.booleans())
    def undo_or_redo(self, pick: int, back: bool) -> None:
        handle = self._handle(pick)
        tale = handle.tale
        work = handle.chat.undo() if back else handle.chat.redo()
        if self._lags(handle, work):
            return
        outcome, refused = self.expect(work, tale.undo if back else tale.redo)
        if refused is None:
            assert (outcome[0].id if outcome[0] else None) == tale.head
            handle.seen = tale.head

    def _lags(self, handle: Handle, work: Any) -> bool:
        """A handle that has not seen the head may not say where it goes from there."""
        if handle.seen == handle.tale.head:
            return False
        with pytest.raises(HeadMoved) as caught:
            self.run(work)
        assert (caught.value.expected, caught.value.actual) == (handle.seen, handle.tale.head)
        assert caught.value.saved == ()
        handle.seen = handle.tale.head
        return True

    @rule(pick=PICK)
    def retry(self, pick: int) -> None:
        handle = self._handle(pick)
        tale = handle.tale
        work = handle.chat.retry()
        if self._lags(handle, work):
            return

        def model() -> None:
            if tale.prompt() is None:
                raise Refused(sessiontree.NothingToRetry)

        outcome, refused = self.expect(work, model)
        if refused is None:
            assert outcome[0].id == tale.prompt()
            tale.move(outcome[0].id, "retry")
            handle.seen = tale.head

    @rule(pick=PICK, at=PICK, said=st.one_of(talks(), calls(), answers()))
    def edit(self, pick: int, at: int, said: Spec) -> None:
        handle = self._handle(pick)
        tale = handle.tale
        place = self._place(tale, at, none=False)

        def model() -> None:
            tale.require(place, boundary=False)
            settled([said])
            tale.require(tale.nodes[place].parent)

        outcome, refused = self.expect(handle.chat.edit(place, said.given), model)
        if refused is None:
            bare = Spec(said.native, said.given, said.calls, said.results)
            parent = tale.nodes[place].parent
            self._saved(handle, [bare], [outcome[0]], parent, [bare], handle.seen, "edit")

    @rule(pick=PICK, label=LABELS, at=st.none() | PICK, replaces=st.booleans())
    def checkpoint(self, pick: int, label: str, at: int | None, replaces: bool) -> None:
        handle = self._handle(pick)
        tale = handle.tale
        place = None if at is None else self._place(tale, at, none=False)
        where = handle.seen if place is None else place
        work = handle.chat.checkpoint(label, at=place, note="why", replace=replaces)
        outcome, refused = self.expect(work, lambda: tale.label(label, where, replaces))
        if refused is None:
            assert outcome[0][:3] == (label, where, "why")

    @rule(pick=PICK, label=LABELS, digest=st.none() | st.just("403 everywhere"))
    def rewind(self, pick: int, label: str, digest: str | None) -> None:
        handle = self._handle(pick)
        tale = handle.tale

        def model() -> None:
            if label not in tale.labels:
                raise Refused(sessiontree.CheckpointNotFound)

        left = tale.head
        outcome, refused = self.expect(handle.chat.rewind(label, digest=digest), model)
        if refused is not None:
            assert outcome.labels == tuple(sorted(outcome.labels, key=outcome.labels.index))
            assert set(outcome.labels) == set(tale.labels)
            return
        head, to = outcome[0], tale.labels[label]
        if digest is None:
            assert head.id == to
        else:
            said = Spec({"role": "user", "content": digest}, None)
            tale.grow([head.id], [said], to, ref=left, meta={"sessiontree": {"kind": "digest"}})
            to = head.id
        tale.move(to, "rewind")
        handle.seen = to

    # ---- conversations ----

    @precondition(lambda self: len(self.tales) < 5)
    @rule(pick=PICK, at=st.none() | PICK)
    def fork(self, pick: int, at: int | None) -> None:
        handle = self._handle(pick)
        tale = handle.tale
        place = None if at is None else self._place(tale, at, none=False)
        where = handle.seen if place is None else place
        outcome, refused = self.expect(handle.chat.fork(place), lambda: tale.require(where))
        if refused is None:
            chat = outcome[0]
            copies = [m.id for m in self.run(chat.path())]
            assert not set(copies) & {i for t in self.tales for i in t.nodes}
            assert chat.forked_from == tale.id
            assert chat.info.forked_at == where
            self._compare(tale)
            self._add_tale(chat, tale.fork(where, copies))

    @precondition(lambda self: len(self.tales) < 5)
    @rule(topic=st.sampled_from(["t0", "t1", None]), prompt=st.sampled_from([None, "p", "q"]))
    def conversation(self, topic: str | None, prompt: str | None) -> None:
        known = next((tale for tale in self.tales if topic and tale.topic == topic), None)
        chat = self.run(self.store.conversation(topic, system=prompt))
        said = Spec({"role": "system", "content": prompt}, None)
        if known is None:
            known = Tale(topic)
            handle = self._add_tale(chat, known)
            new = prompt is not None
        else:
            assert chat.id == known.id
            handle = Handle(chat, known, known.head)
            self.handles = [*[h for h in self.handles if h.tale is not known], handle]
            self.turns = [t for t in self.turns if not self._end_quietly(t, known)]
            newest = known.nodes[known.head].system if known.head is not None else None
            saying = known.nodes[newest].spec.native["content"] if newest is not None else None
            new = prompt is not None and saying != prompt
        if new:
            known.grow([chat.head], [said], known.head)
            known.move(chat.head, "append")
        handle.seen = known.head
        self.touched = known

    def _end_quietly(self, turn: OpenTurn, tale: Tale) -> bool:
        if turn.handle.tale is not tale:
            return False
        self.run(turn.turn.__aexit__(ValueError, ValueError(), None))
        return True

    @precondition(lambda self: len(self.tales) > 1)
    @rule(pick=PICK)
    def delete(self, pick: int) -> None:
        tale = self._pick(self.tales, pick)
        chat = next((h.chat for h in self.handles if h.tale is tale), None)
        self.turns = [t for t in self.turns if not self._end_quietly(t, tale)]
        self.run(self.store.delete(tale.id))
        self.tales.remove(tale)
        self.handles = [h for h in self.handles if h.tale is not tale]
        with pytest.raises(sessiontree.ConversationNotFound):
            self.run(self.store.delete(tale.id))
        if chat is not None:
            with pytest.raises(sessiontree.NotFound):
                self.run(chat.append({"role": "user", "content": "too late"}))
        if not any(h.tale is self.tales[0] for h in self.handles):
            self._add_handle(self.tales[0])
        self.touched = self.tales[0]

    # ---- what must hold ----

    @invariant()
    def the_store_says_what_the_model_says(self) -> None:
        if getattr(self, "touched", None) is not None:
            for handle in self.handles:
                assert handle.chat.head == handle.seen
            self._compare(self.touched)
            problems = self.run(self.store.check())
            assert not problems, problems
            self.touched = None

    def _compare(self, tale: Tale) -> None:
        chat = next((h.chat for h in self.handles if h.tale is tale), None)
        chat = chat or self.run(self.store.open(tale.id))
        self.run(self._compare_tale(chat, tale))

    async def _compare_tale(self, chat: Conversation, tale: Tale) -> None:
        messages = [m async for m in chat.iter_messages()]
        assert [m.id for m in messages] == sorted(tale.nodes)
        for message in messages:
            self._compare_message(tale, message)
        leaves = [m.id for m in await chat.leaves()]
        assert leaves == tale.leaves()
        for leaf in leaves:
            assert [m.id for m in await chat.path(leaf)] == tale.path(leaf)
        tree = await chat.tree()
        assert tree.head == tale.head
        if tale.head is not None:
            path = tale.path(tale.head)
            assert [m.id async for m in chat.iter_path(tale.head)] == path
            assert [m.id for m in await chat.path(tale.head, newest=2)] == path[-2:]
        for at in [None, *sorted(tale.nodes)[-3:]]:
            assert [m.id for m in await chat.children(at)] == tale.children(at)
            assert [n.id for n in tree.children(at)] == tale.children(at)
        for at in sorted(tale.nodes)[-2:]:
            alike = tale.children(tale.nodes[at].parent)
            assert [m.id for m in await chat.siblings(at)] == alike
        assert sorted(n.id for n in tree.nodes) == sorted(tale.nodes)
        assert {c.label: c.message_id for c in await chat.checkpoints()} == tale.labels
        history = await chat.history()
        assert [(m.from_id, m.to_id, m.cause, m.is_current) for m in history] == tale.history()

    def _compare_message(self, tale: Tale, message: Message) -> None:
        node = tale.nodes[message.id]
        assert (message.parent_id, message.depth) == (node.parent, node.depth)
        assert message.open_calls == node.open
        assert message.is_boundary == (node.open == 0)
        assert message.role == node.spec.role
        assert message.native == node.spec.native
        if isinstance(node.spec.given, str):
            assert message.raw == node.spec.given
        assert message.key == node.spec.key
        assert message.ref_id == node.ref
        assert message.row.system_id == node.system
        assert message.meta == node.meta

    def _compare_blobs(self) -> None:
        """Each large content is there once, however many messages hold it, and no other."""
        db = sqlite3.connect(self.file)
        (blobs,) = db.execute("SELECT count(*) FROM blob").fetchone()
        (used,) = db.execute("SELECT count(DISTINCT blob_id) FROM message").fetchone()
        db.close()
        assert blobs == used


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(examples(40), stateful_step_count=60 if LONG else 25)
