"""The command line. ``main`` is the program ``sessiontree``.

    opening.py       which store and which conversation is meant
    reading.py       commands that only look
    moving.py        commands that move the head or add a message
    sending.py       what a model would be sent
    costing.py       what was spent, and what a month will cost
    transferring.py  import, export, formats, delete, demo
    chat/            talking to a model
    show.py          what people read
    wording.py       what errors advise, as commands and options
    shapes.py        what programs read (--json): the documented shapes
    screen.py        the one place where text reaches a terminal, and is made harmless

A command ends with 0 when it did what was asked, with 1 and one line on stderr when it was
refused or something was not found, with 2 when it was not understood.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from sessiontree.cli import chat, costing, moving, reading, sending, transferring
from sessiontree.cli.screen import never_fail, out, tell
from sessiontree.cli.wording import for_shell
from sessiontree.errors import SessionTreeError


class Commands(TyperGroup):
    """The commands, with errors told in one line and exit codes kept."""

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError as error:  # the reader has seen enough
            _give_up_stdout()
            raise typer.Exit(0) from error
        except SessionTreeError as error:
            tell(f"sessiontree: {for_shell(error)}")
            raise typer.Exit(1) from error
        except OSError as error:
            _give_up_stdout()
            about = f"{error.filename}: " if error.filename is not None else ""
            tell(f"sessiontree: {about}{error.strerror or error}")
            raise typer.Exit(1) from error
        return result


app = typer.Typer(
    cls=Commands,
    name="sessiontree",
    help="Sessions of LLM agents as trees that are kept: look at them, walk them, carry them over.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for part in (reading, moving, sending, costing, transferring, chat):
    app.add_typer(part.app)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        out(f"sessiontree {version('sessiontree')}")
        raise typer.Exit


@app.callback()
def begin(
    ctx: typer.Context,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="STORE",
            envvar="SESSIONTREE_STORE",
            help="A file or a database URL; by default a file in the platform's folder for data.",
            show_default=False,
        ),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    # No docstring: it would replace the help above.
    # A --store given after the command wins over this one.
    if store and isinstance(ctx.command, TyperGroup):
        ctx.default_map = {name: {"store": store} for name in ctx.command.commands}


def main() -> None:
    """Run the command that the arguments name, and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        never_fail(stream)
    app()


def _give_up_stdout() -> None:
    """Let what is still buffered go nowhere, or Python would complain when it exits."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
