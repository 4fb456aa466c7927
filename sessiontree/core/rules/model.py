"""What the rules work on: a request opened into blocks, and the rules' own shape.

A request is a list of entries. An entry is one message of the provider, opened into
blocks: a text, a call, a result, a piece of thinking, an image. Entries and blocks are
never changed; a repair puts another in the place of one. An entry that nothing was done
to still has its ``native`` message, which is sent as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, get_args

from sessiontree.core.images import Picture

Json = dict[str, Any]
Kind = Literal[
    "text", "call", "result", "thinking", "image", "media", "server_call", "server_result", "other"
]
Sender = Literal["user", "assistant", "system"]
ONE_KIND: dict[Kind, frozenset[str]] = {kind: frozenset({kind}) for kind in get_args(Kind)}
"""What an entry holds that has one block only: most have."""


@dataclass(slots=True, eq=False)
class Block:
    """One block of a message. ``native`` is shared with the stored message: not to be
    changed, nor is the block (a frozen class would take three times as long to make).
    ``id`` pairs a call with its result; ``given`` is False where there is none."""

    kind: Kind
    native: Json
    id: str = ""
    name: str = ""

    @property
    def given(self) -> bool:
        return self.id != ""


@dataclass(slots=True, eq=False)
class Entry:
    """One message of the provider.

    ``native`` is None once a repair has changed it. ``shell`` are its fields beside the
    blocks. ``sources`` are the messages of the path that it stands for: none for what the
    window adds. ``position`` is the depth of the first of them. ``is_stale`` marks
    thinking that is bound to a prefix which is no longer sent as it was. ``tokens`` is
    -1 until somebody counts.
    """

    sender: Sender
    blocks: tuple[Block, ...]
    native: Json | None
    shell: Json
    sources: tuple[int, ...] = ()
    position: int = 0
    is_stale: bool = False
    is_carried: bool = False
    """True when it was made from a message of another format."""
    tokens: int = -1
    kinds: frozenset[str] = frozenset()
    has_empty_text: bool | None = None
    """Whether one of its texts is blank, once that was looked for."""

    def __post_init__(self) -> None:
        blocks = self.blocks
        if len(blocks) == 1:
            self.kinds = ONE_KIND[blocks[0].kind]
        else:
            self.kinds = frozenset([block.kind for block in blocks])

    @property
    def calls(self) -> list[Block]:
        return [b for b in self.blocks if b.kind == "call"] if "call" in self.kinds else []

    @property
    def results(self) -> list[Block]:
        return [b for b in self.blocks if b.kind == "result"] if "result" in self.kinds else []

    def having(self, blocks: Sequence[Block]) -> Entry:
        """The same entry with other blocks."""
        return Entry(
            self.sender,
            tuple(blocks),
            None,
            self.shell,
            self.sources,
            self.position,
            self.is_stale,
            self.is_carried,
        )

    def as_stale(self) -> Entry:
        """The same entry, its thinking bound to what is no longer sent."""
        if self.is_stale or "thinking" not in self.kinds:
            return self
        stale = self.having(self.blocks)
        stale.native, stale.tokens, stale.is_stale = self.native, self.tokens, True
        return stale


class Shape(Protocol):
    """How one provider writes a message, as far as the rules need to know."""

    name: str
    codes: dict[str, str]
    """The rule that each of the pairing's repairs goes by: unanswered, orphan, order,
    split, unique, form, empty, first, image."""
    unique_in: Literal["request", "message"]
    """Where a call id may be used only once."""
    holders: frozenset[str]
    """The kinds of block that are images, or may hold some inside."""
    results_stand_alone: bool
    """Whether a message of results may hold nothing else."""

    def open(self, native: Json) -> Entry: ...
    def close(self, entry: Entry) -> Json:
        """The message of an entry that was changed."""
        ...

    def text(self, text: str, sender: Sender) -> Block: ...
    def message(self, sender: Sender, blocks: Sequence[Block]) -> Entry: ...
    def answers(self, results: Sequence[Block]) -> list[Entry]: ...
    def interrupted(self, call: Block, text: str) -> Block | None:
        """A result that says there is none; None for a call that text cannot answer."""
        ...

    def with_id(self, block: Block, new: str) -> Block: ...
    def legal_id(self, old: str) -> str:
        """``old`` itself when the provider takes it."""
        ...

    def inner(self, block: Block) -> list[Json] | None:
        """The list of blocks inside a result (or, where it is flat, a message)."""
        ...

    def with_inner(self, block: Block, inner: list[Json] | str) -> Block: ...
    def picture(self, native: Json) -> Picture | None: ...
    def text_inside(self, text: str, sender: Sender) -> Json:
        """A text block as it stands inside another block."""
        ...

    def texts(self, block: Block) -> list[str]:
        """What of a block is counted as text, images apart."""
        ...


@dataclass(slots=True, frozen=True)
class Facts:
    """What the messages do not tell of a request; None is not known."""

    system: Any = None
    """The system prompt in the provider's shape."""
    model: str | None = None
    thinking: bool | None = None
    """Whether the model is asked to think."""
    tools: bool | None = None
    """Whether definitions of tools are sent."""
    binds_thinking: bool = True
    """Whether the model binds thinking to what comes before it (rule A10)."""


class Fault(NamedTuple):
    """What a rule's check finds. ``at`` is the index of the message, ``part`` of the block."""

    at: int
    what: str
    part: int | None = None
    ids: tuple[str, ...] = ()


@dataclass(slots=True, frozen=True)
class Step:
    """Something that a window did to make the request fit, or be valid.

    ``rule`` is the rule's id, or one of ``cut``, ``summary``, ``elide``, ``images``,
    ``thinking``, ``pinned``, ``left_out``. ``messages`` are the ids it touched.
    """

    rule: str
    what: str
    messages: tuple[int, ...] = ()
    data: Json = field(default_factory=dict[str, Any])

    def __str__(self) -> str:
        return f"{self.rule}: {self.what}"


class Request:
    """A request while it is checked and mended."""

    __slots__ = ("_entries", "_holding", "_kinds", "facts", "found", "shape", "steps")

    def __init__(self, shape: Shape, entries: list[Entry], facts: Facts | None = None) -> None:
        self.shape = shape
        self.facts = facts or Facts()
        self.steps: list[Step] = []
        self._entries = entries
        self._kinds: frozenset[str] | None = None
        self._holding: dict[str, list[tuple[int, Entry]]] = {}
        self.found: dict[str, Any] = {}
        """What was looked for in these entries, and is not to be looked for again: the images,
        which result answers which call."""

    @property
    def entries(self) -> list[Entry]:
        return self._entries

    @entries.setter
    def entries(self, entries: list[Entry]) -> None:
        self._entries = entries
        self._kinds = None
        self._holding, self.found = {}, {}

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of block that it holds, so that most rules need not look further."""
        if self._kinds is None:
            self._kinds = frozenset[str]().union(*[entry.kinds for entry in self._entries])
        return self._kinds

    def holding(self, kind: Kind) -> list[tuple[int, Entry]]:
        """(index, entry) of the entries that hold a block of a kind."""
        found = self._holding.get(kind)
        if found is None:
            entries = enumerate(self._entries) if kind in self.kinds else ()
            found = [(at, entry) for at, entry in entries if kind in entry.kinds]
            self._holding[kind] = found
        return found

    def note(self, rule: str, what: str, *entries: Entry, **data: Any) -> None:
        sources = tuple(sorted({i for entry in entries for i in entry.sources}))
        self.steps.append(Step(rule, what, sources, data))


Check = Callable[[Request], Iterator[Fault]]
Repair = Callable[[Request], None]


class Rule(NamedTuple):
    """One rule of a provider. ``error`` is the provider's own text where it is known,
    ``why`` says the rule in plain words. Without ``repair`` a window can only report it."""

    id: str
    error: str
    why: str
    check: Check
    repair: Repair | None = None
    is_eager: bool = False
    """Whether the repair runs even where the check finds nothing now, so that what is
    mended today is not unmended when the conversation has gone on."""


@dataclass(slots=True, frozen=True)
class Violation:
    """What a provider would refuse. ``at`` is the index of the message (-1: the request as
    a whole), ``part`` that of the block in it."""

    rule: str
    provider: str
    at: int
    what: str
    why: str
    error: str
    part: int | None = None
    ids: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = f"message {self.at}" if self.at >= 0 else "the request"
        return f"{self.provider} {self.rule}, {where}: {self.what}"
