"""Messages, their parts, and the protocol of the codecs that read them.

A row keeps the message as it was given (``content`` and ``format``). Role and parts are
a view of it, made by the format's codec when somebody looks. Parts are plain
dictionaries in the shape of the OpenTelemetry GenAI message schema:

    {"type": "text", "content": str}
    {"type": "reasoning", "content": str}
    {"type": "tool_call", "id": str, "name": str, "arguments": any}
    {"type": "tool_call_response", "id": str, "response": any}
    {"type": "blob", "mime_type": str, "modality": str, "content": base64 str}
    {"type": "uri", "mime_type": str, "modality": str, "uri": str}
    {"type": "file", "mime_type": str, "modality": str, "file_id": str}

Extra keys ride along: ``signature`` on reasoning, ``is_error`` and ``name`` on a
response, whatever a provider adds. Unknown kinds are kept as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from sessiontree.core import jsontext

Role = Literal["system", "user", "assistant", "tool", "mark"]
ROLES: tuple[Role, ...] = ("system", "user", "assistant", "tool", "mark")

Part = dict[str, Any]
Native = Mapping[str, Any]
"""A message in its own format, as the provider or program wrote it."""

META = "sessiontree"
"""The one key of ``meta`` that is ours: {"kind": "interrupted" | "digest" | …}."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that an assistant made.

    ``arguments`` is the parsed object, or the text as it came where it does not parse.
    ``given`` is False when the provider gave no id and the codec made one from the
    position.
    """

    id: str
    name: str
    arguments: Any
    given: bool = True


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered. ``name`` is known in some formats only."""

    id: str
    response: Any
    name: str | None = None
    is_error: bool = False
    given: bool = True


class Decoded(NamedTuple):
    """What a codec sees in a native message."""

    role: Role
    parts: list[Part]


class Codec(Protocol):
    """One message format, both ways. Pure: values in, values out."""

    name: str

    def recognises(self, native: Native) -> bool:
        """True when ``native`` bears a mark that only this format has."""
        ...

    def decode(self, native: Native) -> Decoded:
        """Role and parts. FormatError when the message is not of this format at all."""
        ...

    def encode(self, role: Role, parts: Sequence[Part]) -> list[dict[str, Any]]:
        """Parts in this format's shape: usually one message, more where the format
        wants them apart (one tool message for each result), none for nothing."""
        ...


class Codecs(Protocol):
    """Finds the codec of a stored format by name."""

    def __call__(self, name: str, /) -> Codec: ...


def text_of(parts: Sequence[Part]) -> str:
    """The plain text of the parts, joined by line ends; reasoning is not text."""
    return "\n".join(
        part["content"]
        for part in parts
        if part.get("type") == "text" and isinstance(part.get("content"), str)
    )


def calls_of(parts: Sequence[Part]) -> tuple[ToolCall, ...]:
    """The tool calls among the parts. A call without id gets ``call_<position>``."""
    found: list[ToolCall] = []
    for part in parts:
        if part.get("type") == "tool_call":
            given = isinstance(part.get("id"), str) and part["id"] != ""
            call_id = part["id"] if given else f"call_{len(found)}"
            found.append(ToolCall(call_id, str(part.get("name", "")), part.get("arguments"), given))
    return tuple(found)


def results_of(parts: Sequence[Part]) -> tuple[ToolResult, ...]:
    """The tool results among the parts, in order."""
    found: list[ToolResult] = []
    for part in parts:
        if part.get("type") == "tool_call_response":
            given = isinstance(part.get("id"), str) and part["id"] != ""
            result_id = part["id"] if given else f"call_{len(found)}"
            name = part.get("name")
            found.append(
                ToolResult(
                    result_id,
                    part.get("response"),
                    name if isinstance(name, str) else None,
                    bool(part.get("is_error")),
                    given,
                )
            )
    return tuple(found)


@dataclass(slots=True)
class NewMessage:
    """A message on its way into the store. ``content`` is its JSON text, kept as it is."""

    content: str
    format: str
    role: Role
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    preview: str = ""
    tokens: int = 0
    usage: Mapping[str, Any] | str | None = None
    """What the provider reported; or its JSON text, which is kept as it is."""
    model: str | None = None
    key: str | None = None
    meta: Mapping[str, Any] | None = None
    created_at: int | None = None
    """Microseconds since 1970, UTC; None means the moment it is saved."""
    ref: int | None = None
    """The one other message, saved before, that a mark or a digest speaks of."""
    open_calls: int = field(default=0, kw_only=True)
    """Calls unanswered once this message is added; set by pairing."""


class MessageRow(NamedTuple):
    """A row of the message table, in the order in which the store selects it."""

    id: int
    conversation_id: int
    parent_id: int | None
    role: Role
    format: str
    depth: int
    open_calls: int
    tokens: int
    usage: str | None
    model: str | None
    preview: str
    key: str | None
    meta: str | None
    system_id: int | None
    ref_id: int | None
    created_at: int
    content: str


new_row: Callable[[type[MessageRow], tuple[Any, ...]], MessageRow] = tuple.__new__  # pyright: ignore
"""``new_row(MessageRow, values)``: as ``MessageRow._make``, without its Python, which took most
of the time of reading a path."""


class Message:
    """A saved message. Never changes; its content is decoded when first looked at."""

    __slots__ = ("_codecs", "_decoded", "_native", "row")

    def __init__(self, row: MessageRow, codecs: Codecs) -> None:
        self.row = row
        self._codecs = codecs
        self._native: dict[str, Any] | None = None
        self._decoded: Decoded | None = None

    @property
    def id(self) -> int:
        """The id that the store gave it; unique in the store."""
        return self.row.id

    @property
    def parent_id(self) -> int | None:
        """The message it follows; None for a root."""
        return self.row.parent_id

    @property
    def conversation_id(self) -> int:
        return self.row.conversation_id

    @property
    def role(self) -> Role:
        return self.row.role

    @property
    def format(self) -> str:
        """The name of the format of ``native``."""
        return self.row.format

    @property
    def raw(self) -> str:
        """The JSON text, byte for byte as it was given."""
        return self.row.content

    @property
    def native(self) -> dict[str, Any]:
        """The message as it was given, parsed. Shared: do not change it."""
        if self._native is None:
            self._native = jsontext.stored(self.row.content, self._where_content)
        return self._native

    @property
    def parts(self) -> list[Part]:
        """The content in neutral parts; see the module's docstring."""
        if self._decoded is None:
            self._decoded = self._codecs(self.row.format).decode(self.native)
        return self._decoded.parts

    @property
    def text(self) -> str:
        return text_of(self.parts)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return calls_of(self.parts)

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        return results_of(self.parts)

    @property
    def preview(self) -> str:
        """The first line of its text, shortened; for lists and trees."""
        return self.row.preview

    @property
    def depth(self) -> int:
        """How many messages come before it on its path."""
        return self.row.depth

    @property
    def open_calls(self) -> int:
        """Tool calls unanswered on its path, this message included."""
        return self.row.open_calls

    @property
    def is_boundary(self) -> bool:
        """True when no call on its path is unanswered."""
        return self.row.open_calls == 0

    @property
    def tokens(self) -> int:
        """An estimate, made when it was saved."""
        return self.row.tokens

    @property
    def usage(self) -> dict[str, Any] | None:
        """What the provider reported, as it reported it."""
        return jsontext.stored(self.row.usage, self._where("usage")) if self.row.usage else None

    @property
    def model(self) -> str | None:
        return self.row.model

    @property
    def key(self) -> str | None:
        """The caller's own id for it."""
        return self.row.key

    @property
    def meta(self) -> dict[str, Any]:
        """The caller's notes, and ours under "sessiontree"."""
        return jsontext.stored(self.row.meta, self._where("meta")) if self.row.meta else {}

    @property
    def ref_id(self) -> int | None:
        """The one other message that a mark or a digest speaks of."""
        return self.row.ref_id

    @property
    def created_at(self) -> int:
        """Microseconds since 1970, UTC."""
        return self.row.created_at

    def _where_content(self) -> str:
        return self._where("content")

    def _where(self, column: str) -> str:
        return f"the {column} of message {self.row.id} in conversation {self.row.conversation_id}"

    def __eq__(self, other: object) -> bool:
        return self.row == other.row if isinstance(other, Message) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.row.conversation_id, self.row.id))

    def __repr__(self) -> str:
        return f"<Message {self.row.id} {self.row.role}: {self.row.preview!r}>"
