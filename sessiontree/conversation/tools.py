"""Checkpoint and rewind as tools of the model itself, for any harness."""

# The decision and the result must be one, under the turn's own lock; this is its floor too.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sessiontree.conversation.handle import Conversation
from sessiontree.conversation.turn import Turn
from sessiontree.core import model_tools
from sessiontree.core.message import Message, ToolCall
from sessiontree.errors import BadArgument, shown


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a call of one of the tools was told.

    ``message`` is the result as the turn has it; its id is 0 while other calls are open.
    ``rewinds`` is the label that the conversation goes back to when the step is whole, else
    None: the path is another one then, and a request that was built before it is stale.
    """

    message: Message
    text: str
    is_error: bool
    rewinds: str | None


class ModelTools:
    """``checkpoint(label)`` and ``rewind(label, report)`` for the model of a conversation.

        tools = sessiontree.ModelTools(chat)
        request = window.request() | {"tools": [*mine, *tools.schemas("anthropic")]}
        reply = await turn.add(answer)
        for call in reply.tool_calls:
            if tools.handles(call.name):
                await tools.call(call, turn)
            else:
                await turn.answer(call, await run(call))
        window = await chat.window(turn=turn)    # of the path as it is now

    Both take effect where the step of the call ends, in the transaction that saves it: the
    label is set on that boundary; or the head goes back to the label, with the report as a
    digest, and what is left stays a branch. Until then the intention is kept in the draft, so
    that a turn which goes on after a crash still does it.
    """

    def __init__(self, chat: Conversation) -> None:
        self._chat = chat

    def schemas(self, provider: str) -> list[dict[str, Any]]:
        """The definitions of the tools, as entries of the list that the provider's call takes:
        ``tools``; in gemini's ``functionDeclarations``, in bedrock's ``toolConfig.tools``.

        WindowError names the providers that there are.
        """
        return model_tools.definitions(provider)

    def handles(self, name: str) -> bool:
        """True for the names of these tools."""
        return name in model_tools.NAMES

    async def call(self, call: ToolCall, turn: Turn) -> ToolAnswer:
        """Answer an open call of ``turn`` to one of the tools; its result is added.

        A label that does not exist, one that is taken and arguments that are none are told to
        the model, in a result that is an error; nothing is raised for them. BadArgument: a call
        of another tool, a turn of another conversation. OrphanToolResult: the call is not open.
        Else as ``turn.add``.
        """
        if not self.handles(call.name):
            raise BadArgument(
                f"{shown(call.name)} is none of these tools", hint="ask handles(name) first"
            )
        if turn._anchor.id != self._chat.id:
            raise BadArgument(
                f"the turn is of conversation {turn._anchor.id}, the tools are of {self._chat.id}"
            )
        message, reply = await turn._reply(call, lambda known: model_tools.reply_to(call, known))
        return ToolAnswer(message, reply.text, reply.is_error, reply.rewinds)
