"""One line of a chat: the prompt is saved, the model asked, its answer saved when it is whole."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sessiontree import Conversation, Store, Turn, violations
from sessiontree.cli.chat import room
from sessiontree.cli.chat.endpoint import Answer, Endpoint, EndpointError, Text, Thought
from sessiontree.cli.chat.room import Limits
from sessiontree.cli.chat.spending import Spending
from sessiontree.cli.chat.terminal import Terminal
from sessiontree.conversation.tools import ModelTools
from sessiontree.core.message import ToolCall
from sessiontree.core.tokens import estimate
from sessiontree.core.window import Budget, Window
from sessiontree.errors import SessionTreeError

if TYPE_CHECKING:
    from sessiontree.conversation.windows import Reclaimed, ReclaimKind, Summarise
    from sessiontree.core.reclaim import Ask

RECOVERIES = 4
"""How often a request that was refused as too large is made smaller."""
STEPS = 20
"""How often the model may call tools for one prompt."""


@dataclass(slots=True)
class Session:
    """A conversation, a model and a person."""

    store: Store
    chat: Conversation
    endpoint: Endpoint
    terminal: Terminal
    limits: Limits
    is_stateless: bool = False
    start: int | None = None
    """Where each line begins, when it is a request by itself: a system prompt, or nowhere."""
    has_tools: bool = False
    """Whether the model may set checkpoints and go back to them."""
    summaries: Spending = field(default_factory=Spending)
    """What was spent on summaries, which are in no conversation."""
    failed: bool = False
    """Whether a line was not answered."""

    async def say(self, text: str) -> None:
        """Save a prompt, and answer it."""
        prompt, target = {"role": "user", "content": text}, self.endpoint.target
        if self.is_stateless:
            await self.chat.append(prompt, parent=self.start, format=target)
        else:
            await self.chat.append(prompt, format=target)
        await self.answer()

    async def answer(self) -> None:
        """Ask the model to go on from the head, until it calls no more tools."""
        spending = Spending()
        for _ in range(STEPS):
            await room.make_room(self)
            window, answer = await self._asked()
            spending.add(answer.usage, window.tokens, _estimate(answer))
            goes_on = await self._save(answer)
            if not goes_on:
                await self._tell(window, answer, spending)
                return
        self.terminal.note(str(spending))
        raise SessionTreeError(f"the model called tools {STEPS} times", hint="say how to go on")

    @property
    def tools(self) -> ModelTools:
        """What the model may call."""
        return ModelTools(self.chat)

    async def window(self, budget: Budget | None = None) -> Window:
        """What would be sent now."""
        return await self.chat.window(
            budget or self.limits.for_window,
            target=self.endpoint.target,
            model=self.endpoint.model,
            tools=self.has_tools,
        )

    async def reclaim(
        self,
        kind: ReclaimKind,
        *,
        budget: Budget | int | None = None,
        keep: Budget | int | None = None,
        summarise: Summarise | None = None,
        **options: Any,
    ) -> Reclaimed:
        """``Conversation.reclaim`` for this model."""
        return await self.chat.reclaim(
            kind,
            budget=budget,
            keep=keep,
            summarise=summarise,
            target=self.endpoint.target,
            model=self.endpoint.model,
            **options,
        )

    async def summary(self, asked: Ask) -> str:
        """Have the model write a summary. ``EndpointError`` when it does not; when that is
        because the request is too large, ``limits`` have a smaller budget afterwards."""
        self.terminal.note("(summarising what is no longer sent …)")
        try:
            answer = await self._streamed(asked.window, shows=False)
        except EndpointError as error:
            found = asked.window.recover(error.cause) if error.cause else None
            if found is not None and found.kind == "tokens":
                self.limits.budget = found.as_budget(self.limits.budget)
            raise
        if answer.stop in ("length", "refusal"):
            why = "it grew too long" if answer.stop == "length" else "the model refused"
            raise EndpointError(f"the summary is not whole: {why}")
        spending = Spending()
        for spent in (spending, self.summaries):
            spent.add(answer.usage, asked.window.tokens, _estimate(answer))
        self.terminal.note(room.in_words(asked, spending))
        return text_of(answer)

    async def _asked(self) -> tuple[Window, Answer]:
        """Ask; smaller, when the provider refuses the request as too large."""
        for _ in range(RECOVERIES):
            window = await self.window()
            try:
                return window, await self._streamed(window)
            except EndpointError as error:
                if not await room.recover(self, window, error):
                    raise
        window = await self.window()
        return window, await self._streamed(window)

    async def _streamed(self, window: Window, *, shows: bool = True) -> Answer:
        """Send a window, and show what comes."""
        offered = self.tools.schemas(window.target) if self.has_tools and shows else []
        _require_valid(window, self.endpoint.model, bool(offered))
        try:
            async with aclosing(self.endpoint.stream(window.request(), offered)) as events:
                async for event in events:
                    if isinstance(event, Answer):
                        return event
                    if shows:
                        self._show(event)
        finally:
            if shows:
                self.terminal.end()
        raise EndpointError("the provider answered nothing", hint="/retry asks again")

    def _show(self, event: Text | Thought) -> None:
        self.terminal.piece(event.text, "dim" if isinstance(event, Thought) else "")

    async def _save(self, answer: Answer) -> bool:
        """Save an answer, with the results of what it calls; whether it called something."""
        async with self.chat.turn() as turn:
            await turn.add(
                answer.message,
                format=self.endpoint.target,
                usage=answer.usage,
                model=answer.model or self.endpoint.model,
            )
            calls = turn.open_calls
            for call in calls:
                await self._call(call, turn)
            return bool(calls)

    async def _call(self, call: ToolCall, turn: Turn) -> None:
        """Do what the model asks for; a tool that there is not is told to it."""
        if not self.has_tools or not self.tools.handles(call.name):
            await turn.answer(call, f"There is no tool {call.name!r} here.", is_error=True)
            self.terminal.note(f"(the model called {call.name!r}, which is not there)")
            return
        done = await self.tools.call(call, turn)
        if done.is_error:
            self.terminal.note(f"(the model called {call.name}, which was refused: {done.text})")
        elif done.rewinds is not None:
            self.terminal.note(f"(the model goes back to {done.rewinds!r}, with a report)")
        else:
            self.terminal.note(f"(the model sets a checkpoint: {call.arguments['label']!r})")

    async def _tell(self, window: Window, answer: Answer, spending: Spending) -> None:
        """The figures of a line, and what else there is to know about it."""
        missing = await room.left_out(self, window)
        self.terminal.note(f"{spending}{f' · {missing}' if missing else ''}")
        if answer.stop == "length":
            self.terminal.note("(the answer was cut off at its limit; --max-tokens raises it)")
        if answer.stop == "refusal":
            self.terminal.note("(the model refused to go on)")


async def system_in_force(chat: Conversation) -> str | None:
    """The text of the system prompt at the head."""
    for message in reversed(await chat.path()):
        if message.role == "system":
            return message.text
    return None


async def start_of(chat: Conversation, system: str | None) -> int | None:
    """Where lines begin that are requests by themselves: a system prompt that nothing comes
    before, with the text of ``system`` or of the one in force; None where there is none."""
    text = system if system is not None else await system_in_force(chat)
    if text is None:
        return None
    for root in await chat.children(None):
        if root.role == "system" and root.text == text:
            return root.id
    saved = await chat.append({"role": "system", "content": text}, parent=None)
    return saved[0].id


def text_of(answer: Answer) -> str:
    """What an answer says, without its thoughts."""
    content = answer.message.get("content")
    if isinstance(content, str):
        return content
    return "".join(block["text"] for block in content or () if block.get("type") == "text")


def _estimate(answer: Answer) -> int:
    return estimate(text_of(answer))


def _require_valid(window: Window, model: str, tools: bool) -> None:
    """Nothing is sent that the provider would refuse by its own rules."""
    if not window.ready:
        raise SessionTreeError(f"there is nothing to ask: {window.why}", hint="say something")
    found = violations(
        window.messages, window.target, system=window.system, model=model, tools=tools
    )
    if found:
        raise SessionTreeError(f"not sent, since it would be refused: {found[0].what}")
