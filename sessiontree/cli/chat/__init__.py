"""chat: talk to a model from a terminal or a pipe, with everything said in the store.

    endpoint.py       what every endpoint is: a request in, events out, errors of ours
    through_*.py      one for each SDK
    choosing.py       which endpoint is meant: provider, model, address, key
    loop.py           one line: the prompt saved, the request, the answer saved
    room.py           what is done when a request would be, or was, too large
    spending.py       tokens in and out, as they are told
    commands.py       what begins with a slash
    terminal.py       reading lines, printing
    app.py            opening, resuming, and the loop over lines

This file is all that other commands load: the rest comes with the first ``sessiontree chat``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from sessiontree.cli.opening import StoreName, plain_command

app = typer.Typer()


class Provider(StrEnum):
    """Whose protocol is spoken."""

    openai = "openai"
    anthropic = "anthropic"


@plain_command(app)
def chat(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[CONVERSATION]",
            help="One that exists: its id, or owner/topic.",
            show_default=False,
        ),
    ] = None,
    owner: Annotated[str | None, typer.Option(help="Whose conversation it is.")] = None,
    topic: Annotated[
        str | None, typer.Option(help="Go on with the one of this topic, or begin it.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            envvar="SESSIONTREE_MODEL",
            help="By default the one that answered here last.",
            show_default=False,
        ),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where the provider is; by default its own address, or OPENAI_BASE_URL or "
            "ANTHROPIC_BASE_URL.",
            show_default=False,
        ),
    ] = None,
    provider: Annotated[
        Provider | None,
        typer.Option(help="By default told from the model, the URL or the key that is set."),
    ] = None,
    system: Annotated[
        str | None, typer.Option(metavar="TEXT|@FILE", help="The system prompt.")
    ] = None,
    stateless: Annotated[
        bool, typer.Option("--stateless", help="Each line is a request by itself.")
    ] = False,
    max_messages: Annotated[
        int | None, typer.Option(min=1, help="Send at most so many messages, the newest.")
    ] = None,
    budget: Annotated[int | None, typer.Option(min=1, help="Send at most so many tokens.")] = None,
    summarize: Annotated[
        bool,
        typer.Option("--summarize", help="The model summarises what is no longer sent."),
    ] = False,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Tokens that an answer may have.")
    ] = None,
    tools: Annotated[
        bool,
        typer.Option("--tools", help="Let the model set checkpoints and go back to them."),
    ] = False,
    store: StoreName = None,
) -> None:
    """Talk to a model; all that is said is kept. /help tells what else can be done.

    The key is read from OPENAI_API_KEY or ANTHROPIC_API_KEY. From a pipe, each line is a
    prompt: answers go to stdout, all else to stderr.
    """
    from sessiontree.cli.chat.app import Options, run

    code = run(
        Options(
            name=name,
            owner=owner,
            topic=topic,
            model=model,
            base_url=base_url,
            provider=provider.value if provider else None,
            system=system,
            stateless=stateless,
            max_messages=max_messages,
            budget=budget,
            summarize=summarize,
            max_tokens=max_tokens,
            tools=tools,
            store=store,
        )
    )
    raise typer.Exit(code)
