"""Commands that show what a model would be sent: window, context."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from sessiontree.cli.opening import AsJson, ConversationName, StoreName, command, conversation
from sessiontree.cli.screen import Styled, document, out, out_lines, terminal_width
from sessiontree.core.context import SHARES, shares_of
from sessiontree.core.window import Budget, Window

app = typer.Typer()

Tokens = Annotated[int | None, typer.Option("--budget", help="Tokens that it may cost.")]
Target = Annotated[
    str | None,
    typer.Option(
        help="anthropic, openai_chat, openai_responses, gemini or bedrock; by default what the "
        "conversation is written for.",
        show_default=False,
    ),
]
Model = Annotated[str | None, typer.Option(help="The model's name, to count its tokens.")]

_COLOURS = {
    "system": "system",
    "user": "user",
    "assistant": "assistant",
    "reasoning": "mark",
    "tool calls": "label",
    "tool results": "tool",
}
_MARKS = dict(zip(SHARES, "▓█░▒▚▞◆·", strict=True))


@command(app)
async def window(
    name: ConversationName,
    budget: Tokens = None,
    images: Annotated[int | None, typer.Option(help="The newest so many are sent.")] = None,
    size: Annotated[int | None, typer.Option("--bytes", help="Bytes that it may have.")] = None,
    most: Annotated[
        int | None, typer.Option("--max-messages", help="The newest whole turns of so many.")
    ] = None,
    target: Target = None,
    model: Model = None,
    pin: Annotated[list[int] | None, typer.Option(help="A message that is always sent.")] = None,
    as_json: AsJson = False,
    store: StoreName = None,
) -> None:
    """Show what would be sent to the model, what is left out, and why."""
    async with conversation(name, store) as chat:
        planned = await chat.window(
            Budget(budget, images, size, most), target=target, model=model, pinned=pin or ()
        )
    if as_json:
        document(_shape(planned))
    else:
        _show(planned)


@command(app)
async def context(
    name: ConversationName,
    budget: Tokens = None,
    target: Target = None,
    model: Model = None,
    as_json: AsJson = False,
    store: StoreName = None,
) -> None:
    """Show where the tokens are."""
    async with conversation(name, store) as chat:
        planned = await chat.window(budget, target=target, model=model)
    shares = shares_of(planned, model)
    if as_json:
        document({"target": planned.target, "budget": budget, "tokens": shares})
    else:
        show_shares(shares, budget)


def _shape(planned: Window) -> dict[str, Any]:
    """What --json prints of a window."""
    return {
        "target": planned.target,
        "tokens": planned.tokens,
        "ready": planned.ready,
        "why": planned.why,
        "complete": planned.complete,
        "sent": list(planned.ids),
        "dropped": {"count": planned.dropped.count, "newest": planned.dropped.newest},
        "steps": [
            {"rule": step.rule, "what": step.what, "messages": list(step.messages)}
            for step in planned.steps
        ],
        "request": planned.request(),
    }


def _show(planned: Window) -> None:
    if planned.system is not None:
        out(Styled("system", "system"))
        out_lines(_text(planned.system), "  ")
    for message in planned.messages:
        role = str(message.get("role", message.get("type", "")))
        out(Styled(role, role if role in ("user", "assistant", "tool") else "bold"))
        body = {key: value for key, value in message.items() if key not in ("role", "type")}
        out_lines(_text(body.get("content", body)), "  ")
    out(Styled("─" * 40, "dim"))
    sent = f"{planned.tokens} tokens, {len(planned.ids)} message(s) sent to {planned.target}"
    out(f"{sent}, {planned.dropped.count or 'none'} left out")
    for step in planned.steps:
        out(Styled("  · ", "dim"), str(step))
    if not planned.ready:
        out(Styled("  not a request yet: ", "dim"), planned.why)


def _text(value: Any) -> str:
    from json import dumps

    return value if isinstance(value, str) else dumps(value, ensure_ascii=False, indent=1)


def show_shares(shares: dict[str, int], budget: int | None) -> None:
    """Where the tokens are, as a bar and in figures."""
    total = sum(shares.values())
    whole = max(total, budget or 0, 1)
    width = min(terminal_width() or 80, 100) - 4
    bar = [
        Styled(_MARKS[s] * round(n * width / whole), _COLOURS.get(s, "")) for s, n in shares.items()
    ]
    out("  ", *bar)
    for share, count in shares.items():
        if count:
            mark = Styled(_MARKS[share], _COLOURS.get(share, ""))
            out("  ", mark, f" {share:<13}{count:>9,}  {count * 100 / whole:5.1f} %")
    of = f" of {budget:,}" if budget is not None else ""
    out(f"  {'total':<15}{total:>9,}{of} tokens")
