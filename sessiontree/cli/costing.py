"""cost: what a conversation cost, and what a month of sessions will."""

from __future__ import annotations

import time
from collections.abc import Sequence
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from sessiontree import Conversation
from sessiontree.cli import chart
from sessiontree.cli.chart import Bar
from sessiontree.cli.opening import AsJson, StoreName, command, conversation
from sessiontree.cli.screen import cells, clean, cut, document, out, table, tell
from sessiontree.core import prices
from sessiontree.core.cost import Bill, Ledger, Spend
from sessiontree.core.forecast import Ladder, Load, Month, month
from sessiontree.core.prices import Prices
from sessiontree.core.usage import Usage
from sessiontree.errors import SessionTreeError

app = typer.Typer()

BAR = 24
"""Columns of the longest bar."""
PREVIEW = 40
MODELS = ("claude-opus-5-5", "claude-haiku-5-5", "gpt-5.5", "gemini-2.5-flash")
"""Compared when none is named."""

_PLAN = "With --plan"
_LOAD, _LADDER = Load(), Ladder()


class By(StrEnum):
    """What the figures are told by."""

    model = "model"
    turn = "turn"
    branch = "branch"


def _number(what: str, least: int = 0) -> Any:
    return typer.Option(min=least, help=what, rich_help_panel=_PLAN)


@command(app)
async def cost(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[CONVERSATION]", help="Its id, or owner/topic.", show_default=False
        ),
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="What a month of sessions will cost instead.")
    ] = False,
    by: Annotated[By, typer.Option(help="Tell the figures by this.")] = By.model,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="The model of answers that do not tell theirs; with --plan, one of "
            "those to compare."
        ),
    ] = None,
    price: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODEL=INPUT/OUTPUT",
            help="A price of your own, in dollars per million tokens; /CACHED and /WRITTEN may "
            "follow.",
        ),
    ] = None,
    svg: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the bars into this file.")
    ] = None,
    users: Annotated[int, _number("How many users.", 1)] = _LOAD.users,
    sessions: Annotated[int, _number("Sessions of one user in a month.", 1)] = _LOAD.sessions,
    turns: Annotated[int, _number("Turns of one session.", 1)] = _LOAD.turns,
    prompt: Annotated[int, _number("Tokens that the user says in a turn.")] = _LOAD.prompt,
    answer: Annotated[int, _number("Tokens of each answer.")] = _LOAD.answer,
    calls: Annotated[int, _number("Requests in a turn, with those after tools.", 1)] = _LOAD.calls,
    results: Annotated[int, _number("Tokens that tools return in a turn.")] = _LOAD.results,
    system: Annotated[int, _number("Tokens of the system prompt and the tools.")] = _LOAD.system,
    budget: Annotated[int, _number("The ladder's budget in tokens.", 1)] = _LADDER.budget,
    summary: Annotated[int, _number("Tokens of a summary; 0: cut instead.")] = _LADDER.summary,
    cached: Annotated[
        bool,
        typer.Option(
            "--cache/--no-cache", help="Whether the provider caches.", rich_help_panel=_PLAN
        ),
    ] = True,
    as_json: AsJson = False,
    store: StoreName = None,
) -> None:
    """Say what a conversation cost, or with --plan what a month of sessions will."""
    known = Prices(dict(map(prices.rate, price or ())))
    if plan == (name is not None):
        raise SessionTreeError(
            "cost takes a conversation or --plan", hint="give one of them; `ls` lists the first"
        )
    if name is not None:
        await _spent(name, store, known, by, model, svg, as_json)
        return
    load = Load(users, sessions, turns, prompt, answer, calls, results, system, cached)
    compared = [
        _compared(each, load, Ladder(budget, summary=summary), known) for each in model or MODELS
    ]
    if svg is not None:
        _draw(svg, "US dollars in a month", _plan_bars(compared), ("full history", "ladder"))
    if as_json:
        document(_plan_document(load, compared))
    else:
        _show_plan(load, compared)


# ---- what was spent ----------------------------------------------------------------------


class _Line(NamedTuple):
    """One line of the table: what it is of, and what was spent."""

    name: str
    spend: Spend
    shown: Spend
    """What its bar shows."""


async def _spent(
    name: str,
    store: str | None,
    known: Prices,
    by: By,
    model: list[str] | None,
    svg: Path | None,
    as_json: bool,
) -> None:
    if model is not None and len(model) > 1:
        raise SessionTreeError("a conversation takes one --model", hint="more go with --plan")
    async with conversation(name, store) as chat:
        bill, previews = await _bill(chat, known, model[0] if model else None)
    lines = _lines(bill, by, previews)
    if svg is not None:
        _draw(svg, f"Conversation {chat.id} by {by}", _bars(lines))
    if as_json:
        document({"conversation": chat.id, "head": chat.head} | _document(bill, previews))
    else:
        _show_bill(bill, lines, by)
    _tell_prices(known)


async def show_cost(chat: Conversation, known: Prices, by: By, model: str | None) -> None:
    """What a conversation cost, as a table; ``model``: of answers that do not tell theirs."""
    bill, previews = await _bill(chat, known, model)
    _show_bill(bill, _lines(bill, by, previews), by)
    _tell_prices(known)


def _tell_prices(known: Prices) -> None:
    if not known.any:
        tell(f"sessiontree: prices are not installed, only reported ones are told: {prices.HOW}")


async def _bill(
    chat: Conversation, known: Prices, model: str | None
) -> tuple[Bill, dict[int, str]]:
    """The bill, and the previews of prompts and leaves."""
    ledger = Ledger(model=model)
    previews: dict[int, str] = {}
    async for each in chat.iter_messages():
        ledger.add(each, parent_id=each.parent_id, at=each.created_at)
        if each.role == "user":
            previews[each.id] = each.preview
    previews |= {leaf.id: leaf.preview for leaf in await chat.leaves()}
    forked = chat.info.created_at if chat.forked_from is not None else None

    def price(model: str | None, usage: Usage, at: int, format: str) -> Decimal | None:
        return known.cost(model, usage, at, format=format)

    return ledger.bill(chat.head, price, forked=forked), previews


def _lines(bill: Bill, by: By, previews: dict[int, str]) -> list[_Line]:
    if by is By.model:
        return [_Line(_model(m), spend, spend) for m, spend in bill.models.items()]
    if by is By.turn:
        return [_Line(_turn(t.message_id, previews), t.spend, t.spend) for t in bill.turns]
    return [
        _Line(
            f"{each.leaf}{' (head)' if each.is_head else ''} {previews.get(each.leaf, '')}",
            each.path,
            each.own,
        )
        for each in bill.branches
    ]


def _model(name: str | None) -> str:
    return "(not told)" if name is None else name


def _turn(message_id: int | None, previews: dict[int, str]) -> str:
    return "(no prompt)" if message_id is None else f"{message_id} {previews[message_id]}"


def _show_bill(bill: Bill, lines: Sequence[_Line], by: By) -> None:
    if not bill.total.requests:
        out("no model has answered in this conversation")
        return
    totals = [_Line("whole tree", bill.total, Spend()), _Line("active path", bill.path, Spend())]
    if bill.inherited.requests:
        totals.append(_Line("before the fork", bill.inherited, Spend()))
    largest = max((_drawn(line.shown, bill) for line in lines), default=0)
    rows = [_row(line, bill, 0) for line in totals]
    rows += [_row(line, bill, largest) for line in lines]
    header = (f"by {by}", "requests", "input", "cached", "written", "output", "dollars", "")
    rows = _aligned([header, *rows])
    table(rows[0], rows[1:])
    _notes(bill, by)


def _notes(bill: Bill, by: By) -> None:
    total = bill.total
    if by is By.branch:
        out("A branch's figures are of its whole path, its bar of what it shares with no other.")
    if total.estimated:
        out(f"~ estimated: nothing was reported for {total.estimated:,} of {total.requests:,}.")
    if total.unpriced:
        names = [_model(m) for m, spend in bill.models.items() if spend.unpriced]
        out(f"? the price is unknown: {', '.join(names)}. `cost --price` takes one.")


def _row(line: _Line, bill: Bill, largest: float) -> tuple[str, ...]:
    spend = line.spend
    about = "~" if spend.estimated else ""
    return (
        cut(clean(line.name), PREVIEW),
        f"{spend.requests:,}",
        f"{about}{spend.input:,}",
        f"{spend.cached:,}",
        f"{spend.written:,}",
        f"{about}{spend.output:,}",
        _dollars(spend),
        chart.bar(_drawn(line.shown, bill), largest, BAR),
    )


def _dollars(spend: Spend) -> str:
    if spend.unpriced == spend.requests:
        return "?" if spend.requests else "0"
    about = "~" if spend.estimated else ""
    return f"{about}{spend.money:,.4f}{' + ?' if spend.unpriced else ''}"


def _drawn(spend: Spend, bill: Bill) -> float:
    """Money; tokens where no price at all is known."""
    return float(spend.money) if bill.total.money else float(spend.tokens)


def _bars(lines: Sequence[_Line]) -> list[Bar]:
    has_money = any(line.shown.money for line in lines)
    return [
        Bar(line.name, float(line.shown.money), f"${_dollars(line.shown)}")
        if has_money
        else Bar(line.name, line.shown.tokens, f"{line.shown.tokens:,} tokens")
        for line in lines
    ]


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Numbers to the right: all columns but the first and the last."""
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    return [
        (row[0], *(v.rjust(w) for v, w in zip(row[1:-1], widths[1:-1], strict=True)), row[-1])
        for row in rows
    ]


def _draw(file: Path, title: str, bars: Sequence[Bar], legend: Sequence[str] = ()) -> None:
    file.write_text(chart.svg(title, bars, legend), encoding="utf-8")


def _document(bill: Bill, previews: dict[int, str]) -> dict[str, Any]:
    return {
        "total": _spend(bill.total),
        "path": _spend(bill.path),
        "inherited": _spend(bill.inherited),
        "models": [
            {"model": name} | _spend(spend) | {"path": _spend(bill.models_on_path.get(name))}
            for name, spend in bill.models.items()
        ],
        "turns": [
            {"message_id": each.message_id, "preview": previews.get(each.message_id or 0)}
            | {"on_path": each.is_on_path}
            | _spend(each.spend)
            for each in bill.turns
        ],
        "branches": [
            {"leaf": each.leaf, "since": each.since, "is_head": each.is_head}
            | {"preview": previews[each.leaf], "own": _spend(each.own), "path": _spend(each.path)}
            for each in bill.branches
        ],
    }


def _spend(spend: Spend | None) -> dict[str, Any]:
    found = spend or Spend()
    return {
        "requests": found.requests,
        "estimated": found.estimated,
        "unpriced": found.unpriced,
        "input": found.input,
        "cached": found.cached,
        "written": found.written,
        "output": found.output,
        "dollars": _rounded(found.money),
    }


def _rounded(money: Decimal) -> float:
    return float(round(money, 9))


# ---- what a month will cost --------------------------------------------------------------


class _Compared(NamedTuple):
    """A model's month, without and with a ladder."""

    model: str
    window: int | None
    budget: int
    full: Month
    ladder: Month


def _compared(model: str, load: Load, ladder: Ladder, known: Prices) -> _Compared:
    known.require(model)
    window, at = known.window(model), time.time_ns() // 1_000

    def price(usage: Usage) -> Decimal:
        return known.cost(model, usage, at) or Decimal(0)

    if window is not None:
        ladder = ladder._replace(budget=min(ladder.budget, window))
    full = month(load, price, window=window)
    return _Compared(
        model, window, ladder.budget, full, month(load, price, ladder=ladder, window=window)
    )


def _show_plan(load: Load, compared: Sequence[_Compared]) -> None:
    out(
        f"{load.users:,} users, {load.sessions:,} sessions each in a month, "
        f"{load.turns:,} turns of {load.calls:,} request(s)"
    )
    largest = max(float(max(each.full.money, each.ladder.money)) for each in compared)
    header = ("model", "", "Mtok sent", "Mtok cached", "Mtok out", "dollars", "")
    rows = [_plan_row(each, which, largest) for each in compared for which in ("full", "ladder")]
    rows = _aligned([header, *rows])
    table(rows[0], rows[1:])
    for each in compared:
        out(f"{each.model}: {_verdict(each, load)}")


def _plan_row(each: _Compared, which: str, largest: float) -> tuple[str, ...]:
    found: Month = getattr(each, which)
    return (
        each.model if which == "full" else "",
        "full history" if which == "full" else "ladder",
        _millions(found.input + found.written + found.cached),
        _millions(found.cached),
        _millions(found.output),
        f"{found.money:,.2f}",
        chart.bar(float(found.money), largest, BAR),
    )


def _millions(tokens: int) -> str:
    return f"{tokens / 1_000_000:,.1f}"


def _verdict(each: _Compared, load: Load) -> str:
    """What the ladder does for a model, in one line."""
    told = [f"largest request {each.full.largest:,} tokens, with a ladder {each.ladder.largest:,}"]
    if each.full.ends is not None:
        told.append(
            f"without one, turn {each.full.ends} of {load.turns} is refused "
            f"(window {each.window:,})"
        )
    elif each.full.money:
        saved = 1 - each.ladder.money / each.full.money
        told.append(
            f"{'saves' if saved >= 0 else 'costs'} {abs(saved):.0%}" if saved else "the same"
        )
    if each.ladder.ends is not None:
        told.append(f"with one, turn {each.ladder.ends} is too large by itself")
    return "; ".join(told)


def _plan_bars(compared: Sequence[_Compared]) -> list[Bar]:
    return [
        Bar(f"{each.model}{suffix}", float(found.money), f"${found.money:,.2f}", series)
        for each in compared
        for series, (suffix, found) in enumerate([("", each.full), (" + ladder", each.ladder)])
    ]


def _plan_document(load: Load, compared: Sequence[_Compared]) -> dict[str, Any]:
    return {
        "load": load._asdict(),
        "models": [
            {
                "model": each.model,
                "window": each.window,
                "budget": each.budget,
                "full": _month(each.full),
                "ladder": _month(each.ladder),
            }
            for each in compared
        ],
    }


def _month(found: Month) -> dict[str, Any]:
    return {
        "requests": found.requests,
        "input": found.input,
        "cached": found.cached,
        "written": found.written,
        "output": found.output,
        "dollars": _rounded(found.money),
        "reclaims": found.reclaims,
        "largest": found.largest,
        "ends": found.ends,
    }
