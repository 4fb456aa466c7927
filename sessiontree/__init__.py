"""A persistent, branching session tree for LLM agents.

Nothing a session has said is ever lost, and everything that is sent to a model is valid.

    async with sessiontree.open_store("sessions.db") as store:
        chat = await store.conversation("T-80005", owner="camille")
        async with chat.turn() as turn:
            await turn.add({"role": "user", "content": "Where is order LK-266415?"})
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sessiontree.conversation.handle import HEAD, Conversation
from sessiontree.conversation.resume import Resume
from sessiontree.conversation.store import Store, open_store
from sessiontree.conversation.turn import Turn
from sessiontree.core.message import Message, NewMessage, Part, ToolCall, ToolResult
from sessiontree.core.records import (
    Checkpoint,
    ConversationInfo,
    Graft,
    Mended,
    Move,
    Problem,
    Repair,
)
from sessiontree.core.tree import Node, Tree
from sessiontree.errors import (
    BadArgument,
    BudgetTooSmall,
    CheckpointExists,
    CheckpointNotFound,
    ConversationExists,
    ConversationNotFound,
    FormatError,
    HeadMoved,
    MessageNotFound,
    NotABoundary,
    NotAStore,
    NotFound,
    NothingToRetry,
    NothingToUndo,
    OrphanToolResult,
    OwnerMismatch,
    ReclaimRefused,
    SessionTreeError,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreTooNew,
    StoreUnavailable,
    TreeError,
    UnsettledTurn,
    WindowError,
)

if TYPE_CHECKING:
    from sessiontree.conversation.tools import ModelTools
    from sessiontree.conversation.windows import Reclaimed
    from sessiontree.core.rules import Violation, violations
    from sessiontree.core.window import Budget, Window
    from sessiontree.transfer import Import, Redactor, export, import_file

__version__ = "0.1.0"

__all__ = [
    "HEAD",
    "BadArgument",
    "Budget",
    "BudgetTooSmall",
    "Checkpoint",
    "CheckpointExists",
    "CheckpointNotFound",
    "Conversation",
    "ConversationExists",
    "ConversationInfo",
    "ConversationNotFound",
    "FormatError",
    "Graft",
    "HeadMoved",
    "Import",
    "Mended",
    "Message",
    "MessageNotFound",
    "ModelTools",
    "Move",
    "NewMessage",
    "Node",
    "NotABoundary",
    "NotAStore",
    "NotFound",
    "NothingToRetry",
    "NothingToUndo",
    "OrphanToolResult",
    "OwnerMismatch",
    "Part",
    "Problem",
    "ReclaimRefused",
    "Reclaimed",
    "Redactor",
    "Repair",
    "Resume",
    "SessionTreeError",
    "Store",
    "StoreBusy",
    "StoreClosed",
    "StoreCorrupt",
    "StoreError",
    "StoreFull",
    "StoreReadOnly",
    "StoreTooNew",
    "StoreUnavailable",
    "ToolCall",
    "ToolResult",
    "Tree",
    "TreeError",
    "Turn",
    "UnsettledTurn",
    "Violation",
    "Window",
    "WindowError",
    "export",
    "import_file",
    "open_store",
    "violations",
]

_WHEN_ASKED = {
    "Budget": "sessiontree.core.window",
    "Import": "sessiontree.transfer",
    "ModelTools": "sessiontree.conversation.tools",
    "Reclaimed": "sessiontree.conversation.windows",
    "Redactor": "sessiontree.transfer",
    "Violation": "sessiontree.core.rules",
    "Window": "sessiontree.core.window",
    "export": "sessiontree.transfer",
    "import_file": "sessiontree.transfer",
    "violations": "sessiontree.core.rules",
}
"""Names that are loaded when somebody asks for them: half of the time of all imports, and
most programs that look at a store need none of them."""


def __getattr__(name: str) -> Any:
    if name not in _WHEN_ASKED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_WHEN_ASKED[name]), name)
