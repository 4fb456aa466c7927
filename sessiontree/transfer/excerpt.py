"""What of a conversation is exported: its active path or its whole tree, without secrets
where that is wished. Whoever writes a format reads from here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from sessiontree.conversation.handle import Conversation
from sessiontree.core.message import Message
from sessiontree.core.records import Checkpoint, ConversationInfo, Move
from sessiontree.core.tree import Node, SkeletonRow, Tree
from sessiontree.formats.redact import Redactor
from sessiontree.formats.writing.detail import Detail, is_role_shown
from sessiontree.transfer.order import Order, Straight
from sessiontree.transfer.outline import Outline


class Excerpt:
    """The part of a conversation that is exported, as it was when this was made."""

    def __init__(
        self,
        chat: Conversation,
        *,
        whole_tree: bool,
        detail: Detail = "full",
        redactor: Redactor | None = None,
        watched: Callable[[], None] | None = None,
    ) -> None:
        self._chat = chat
        self._redactor = redactor
        self._watched = watched
        self.whole_tree = whole_tree
        self.detail: Detail = detail

    @property
    def what(self) -> str:
        """In a word: "tree" or "path"."""
        return "tree" if self.whole_tree else "path"

    @property
    def head(self) -> int | None:
        return self._chat.head

    @property
    def info(self) -> ConversationInfo:
        """What is known of the conversation."""
        info = self._chat.info
        if self._redactor is None:
            return info
        told = {name: self._text(getattr(info, name)) for name in ("owner", "topic", "title")}
        return info._replace(**told, meta=self._redactor.value(info.meta))

    def _text(self, text: str | None) -> str | None:
        return text if text is None or self._redactor is None else self._redactor.text(text)

    def clean(self, message: Message) -> Message:
        """The message without secrets, where that is wished. Whoever watches is told of it."""
        if self._watched is not None:
            self._watched()
        return self._redacted(message)

    def _redacted(self, message: Message) -> Message:
        return message if self._redactor is None else self._redactor.message(message)

    async def checkpoints(self) -> list[Checkpoint]:
        found = await self._chat.checkpoints()
        if self._redactor is None:
            return found
        return [
            each._replace(label=self._redactor.text(each.label), note=self._text(each.note))
            for each in found
        ]

    async def moves(self) -> list[Move]:
        """Every move of the head, oldest first."""
        return await self._chat.history()

    async def labels(self) -> dict[int, list[str]]:
        """Message id → the labels set on it."""
        labels: dict[int, list[str]] = {}
        for checkpoint in await self.checkpoints():
            labels.setdefault(checkpoint.message_id, []).append(checkpoint.label)
        return labels

    async def messages(self) -> AsyncIterator[Message]:
        """In id order; a path from its root."""
        chat = self._chat
        async for message in chat.iter_messages() if self.whole_tree else chat.iter_path():
            yield self.clean(message)

    async def path(self, leaf: int | None) -> list[Message]:
        """The messages from the root to ``leaf``; of None, none."""
        if leaf is None:
            return []
        return [self.clean(message) for message in await self._chat.path(leaf)]

    async def message(self, message_id: int) -> Message:
        return self.clean(await self._chat.message(message_id))

    # --- The tree ---------------------------------------------------------------------------

    async def order(self) -> Order | Straight:
        """The order in which ``in_order`` reads; of what is there now."""
        chat = self._chat
        if not self.whole_tree:
            return Straight(0 if chat.head is None else (await chat.message(chat.head)).depth + 1)
        order = Order()
        async for message in chat.iter_messages():
            order.add(message.id, message.parent_id)
        order.see_head(chat.head)
        return order

    async def outline(self) -> Outline:
        """The order of the messages, and where those that the level of detail shows stand."""
        chat, outline = self._chat, Outline()
        async for message in chat.iter_messages() if self.whole_tree else chat.iter_path():
            is_shown = is_role_shown(message.role, self.detail)
            outline.add(message.id, message.parent_id, is_shown)
        outline.see_head(chat.head)
        return outline

    async def in_order(self, order: Order | Straight) -> AsyncIterator[Message]:
        """Depth first, the path of the head first; in memory that hardly grows."""
        if isinstance(order, Straight):
            async for message in self.messages():
                yield message
            return
        async for message in self._runs(order):
            yield self.clean(message)

    async def in_order_again(self, order: Order) -> AsyncIterator[Message]:
        """The same for who has read them once: whoever watches is not told a second time."""
        async for message in self._runs(order):
            yield self._redacted(message)

    async def _runs(self, order: Order) -> AsyncIterator[Message]:
        for last, count in order.runs():
            for message in await self._chat.path(last, newest=count):
                yield message

    async def full_tree(self) -> Tree:
        """The skeleton of the whole tree, whatever is exported; its previews as they are."""
        return await self._chat.tree()

    async def tree(self) -> Tree:
        """The skeleton of what is exported: of a path, a tree without branches."""
        tree = await self._chat.tree()
        if self.whole_tree and self._redactor is None:
            return tree
        nodes = tree.nodes if self.whole_tree else tree.path()
        previews = await self._previews()
        rows = [_row(node, previews.get(node.id, node.preview)) for node in nodes]
        labels = await self.labels()
        return Tree.build(rows, tree.head, labels, conversation_id=tree.conversation_id)

    async def _previews(self) -> dict[int, str]:
        """Previews without secrets. They are made anew from the messages, as a preview may
        show a part of a secret that is not known by that part."""
        if self._redactor is None:
            return {}
        return {message.id: message.preview async for message in self.messages()}


def _row(node: Node, preview: str) -> SkeletonRow:
    return (
        node.id,
        node.parent_id,
        node.role,
        preview,
        node.depth,
        node.open_calls,
        node.tokens,
        node.created_at,
    )
