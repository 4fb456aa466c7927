"""The one definition of the schema, as SQLModel tables.

``schema.sql`` is generated from here (``python -m sessiontree.store.ddl``) and a test holds
the two equal. What runs is SQL text; these classes are for those who want to query a store
through SQLModel or SQLAlchemy in a session of their own:

    from sqlmodel import Session, create_engine, select
    from sessiontree.store.tables import Message

    with Session(create_engine("sqlite:///sessions.db")) as session:
        session.exec(select(Message).where(Message.role == "user")).all()

Read only: writing around the store breaks its promises.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    Text,
    UniqueConstraint,
    text,
)
from sqlmodel import Field, SQLModel

_AUTOINCREMENT = {"sqlite_autoincrement": True}  # an id is never given twice, even after a prune


def _text(comment: str, *, null: bool = True, default: str | None = None) -> Any:
    server = None if default is None else text(f"'{default}'")
    return Column(Text, nullable=null, server_default=server, comment=comment)


def _integer(comment: str, *, null: bool = True) -> Any:
    return Column(Integer, nullable=null, comment=comment)


def _id(comment: str) -> Any:
    return Column(Integer, primary_key=True, comment=comment)


def _of_conversation(comment: str = "whose it is", *, key: bool = False) -> Any:
    return Column(Integer, nullable=False, primary_key=key, comment=comment)


def _belongs() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["conversation_id"], ["conversation.id"], ondelete="CASCADE")


class Conversation(SQLModel, table=True):
    """A conversation: one tree of messages and one head."""

    __tablename__: ClassVar[Any] = "conversation"
    __table_args__: ClassVar[Any] = (
        UniqueConstraint("owner", "topic"),
        _AUTOINCREMENT,
    )

    id: int | None = Field(default=None, sa_column=_id("given by the database"))
    owner: str = Field(
        default="",
        sa_column=_text(
            "whose conversation it is; a scoped store sees one owner's", null=False, default=""
        ),
    )
    topic: str | None = Field(
        default=None, sa_column=_text("the caller's name for it, unique per owner")
    )
    title: str | None = Field(default=None, sa_column=_text("for people"))
    format: str | None = Field(
        default=None, sa_column=_text("the format of messages whose content does not tell it")
    )
    head_id: int | None = Field(
        default=None,
        sa_column=_integer("the message that the next one follows; a boundary, or null"),
    )
    move_id: int | None = Field(
        default=None, sa_column=_integer("the move that undo takes back; null when there is none")
    )
    forked_from: int | None = Field(
        default=None, sa_column=_integer("the conversation it was forked from")
    )
    forked_at: int | None = Field(
        default=None, sa_column=_integer("the message there that it was forked at")
    )
    meta: str | None = Field(default=None, sa_column=_text("the caller's notes, a JSON object"))
    created_at: int = Field(sa_column=_integer("microseconds since 1970, UTC", null=False))
    updated_at: int = Field(sa_column=_integer("when the head last moved", null=False))


class Blob(SQLModel, table=True):
    """A large message content, once, however many messages hold it."""

    __tablename__: ClassVar[Any] = "blob"

    id: int | None = Field(default=None, sa_column=_id("given by the database"))
    sha256: bytes = Field(
        sa_column=Column(LargeBinary, nullable=False, unique=True, comment="of content; 32 bytes")
    )
    content: bytes = Field(
        sa_column=Column(LargeBinary, nullable=False, comment="the message's JSON text in UTF-8")
    )


class Message(SQLModel, table=True):
    """A message: never changed, never hidden; it records the message that it follows."""

    __tablename__: ClassVar[Any] = "message"
    __table_args__: ClassVar[Any] = (
        _belongs(),
        ForeignKeyConstraint(["blob_id"], ["blob.id"]),
        CheckConstraint("parent_id < id", name="no_cycle"),
        CheckConstraint("(depth = 0) = (parent_id IS NULL)", name="depth_from_root"),
        CheckConstraint("open_calls >= 0", name="no_orphan_result"),
        CheckConstraint(
            "role IN ('system', 'user', 'assistant', 'tool', 'mark')", name="known_role"
        ),
        CheckConstraint("(content IS NULL) <> (blob_id IS NULL)", name="content_once"),
        Index("message_by_parent", "conversation_id", "parent_id"),
        Index(
            "message_by_key",
            "conversation_id",
            "key",
            unique=True,
            sqlite_where=text("key IS NOT NULL"),
            postgresql_where=text("key IS NOT NULL"),
        ),
        Index(
            "message_by_blob",
            "blob_id",
            sqlite_where=text("blob_id IS NOT NULL"),
            postgresql_where=text("blob_id IS NOT NULL"),
        ),
        _AUTOINCREMENT,
    )

    id: int | None = Field(
        default=None, sa_column=_id("given by the database; a child's is larger")
    )
    conversation_id: int = Field(sa_column=_of_conversation())
    parent_id: int | None = Field(
        default=None,
        sa_column=_integer("the message it follows, of the same conversation; null for a root"),
    )
    role: str = Field(
        sa_column=_text("system, user, assistant, tool, or mark (never sent)", null=False)
    )
    format: str = Field(sa_column=_text("names the codec that reads content", null=False))
    depth: int = Field(
        sa_column=_integer("how many messages come before it on its path", null=False)
    )
    open_calls: int = Field(
        sa_column=_integer("tool calls unanswered on its path; 0 makes it a boundary", null=False)
    )
    tokens: int = Field(sa_column=_integer("estimated when it was saved", null=False))
    usage: str | None = Field(default=None, sa_column=_text("what the provider reported, JSON"))
    model: str | None = Field(default=None, sa_column=_text("the model that wrote it"))
    preview: str = Field(sa_column=_text("the first line of its text, shortened", null=False))
    key: str | None = Field(
        default=None, sa_column=_text("the caller's id, unique in the conversation")
    )
    meta: str | None = Field(
        default=None, sa_column=_text("the caller's notes, and ours, a JSON object")
    )
    system_id: int | None = Field(
        default=None, sa_column=_integer("the newest system message on its path, itself included")
    )
    ref_id: int | None = Field(
        default=None, sa_column=_integer("the one other message that a mark or a digest speaks of")
    )
    created_at: int = Field(sa_column=_integer("microseconds since 1970, UTC", null=False))
    blob_id: int | None = Field(
        default=None, sa_column=_integer("where content is, when it is large")
    )
    content: str | None = Field(
        default=None, sa_column=_text("the message as it was given, JSON text to the byte")
    )


class Checkpoint(SQLModel, table=True):
    """A label on a boundary. It goes when its message goes; it is never moved by itself."""

    __tablename__: ClassVar[Any] = "checkpoint"
    __table_args__: ClassVar[Any] = (
        _belongs(),
        ForeignKeyConstraint(["message_id"], ["message.id"], ondelete="CASCADE"),
        Index("checkpoint_by_message", "message_id"),
    )

    conversation_id: int = Field(sa_column=_of_conversation(key=True))
    label: str = Field(
        sa_column=Column(Text, primary_key=True, comment="the caller's name for the place")
    )
    message_id: int = Field(sa_column=_integer("a boundary of the conversation", null=False))
    note: str | None = Field(default=None, sa_column=_text("for people"))
    created_at: int = Field(sa_column=_integer("microseconds since 1970, UTC", null=False))


class Move(SQLModel, table=True):
    """A move of a head. Moves form a tree by prev_id, as in an editor that forgets nothing:
    undo steps to prev_id, redo to the newest move that follows."""

    __tablename__: ClassVar[Any] = "move"
    __table_args__: ClassVar[Any] = (
        _belongs(),
        {"sqlite_with_rowid": False},  # one b-tree, not two: a move is written with every append
    )

    conversation_id: int = Field(sa_column=_of_conversation(key=True))
    id: int = Field(
        sa_column=Column(
            Integer, primary_key=True, comment="counts the conversation's moves, from 1"
        )
    )
    prev_id: int | None = Field(
        default=None, sa_column=_integer("the move that was current before it")
    )
    from_id: int | None = Field(default=None, sa_column=_integer("the head before; null: none"))
    to_id: int | None = Field(default=None, sa_column=_integer("the head after; null: none"))
    cause: str = Field(
        sa_column=_text("append, branch, edit, retry, rewind, import, reclaim", null=False)
    )
    created_at: int = Field(sa_column=_integer("microseconds since 1970, UTC", null=False))


class Draft(SQLModel, table=True):
    """A message of a turn that waits for its tool results: in flight, outside the tree."""

    __tablename__: ClassVar[Any] = "draft"
    __table_args__: ClassVar[Any] = (_belongs(),)

    conversation_id: int = Field(sa_column=_of_conversation(key=True))
    turn: int = Field(
        sa_column=Column(Integer, primary_key=True, comment="a random number for each turn")
    )
    position: int = Field(
        sa_column=Column(Integer, primary_key=True, comment="its place among them, from 0")
    )
    parent_id: int | None = Field(
        default=None, sa_column=_integer("the boundary that the first follows")
    )
    format: str = Field(sa_column=_text("as in message", null=False))
    usage: str | None = Field(default=None, sa_column=_text("as in message"))
    model: str | None = Field(default=None, sa_column=_text("as in message"))
    key: str | None = Field(default=None, sa_column=_text("as in message"))
    meta: str | None = Field(default=None, sa_column=_text("as in message"))
    created_at: int = Field(sa_column=_integer("when it was added", null=False))
    content: str = Field(sa_column=_text("as in message, never in a blob", null=False))


TABLES: tuple[type[SQLModel], ...] = (Conversation, Blob, Message, Checkpoint, Move, Draft)

PARENT_GUARD = """\
CREATE TRIGGER message_parent AFTER INSERT ON message
WHEN NEW.parent_id IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM message
    WHERE id = NEW.parent_id AND conversation_id = NEW.conversation_id AND depth = NEW.depth - 1
)
BEGIN
    SELECT RAISE(ABORT, 'the parent is not one step nearer the root in this conversation');
END"""
"""What a foreign key cannot say (one step nearer the root), for a quarter of what one costs
here: a key of two columns would need a second index, on the hottest table."""
