"""Where lines come from, and where answers go: a terminal, or a pipe.

On a terminal there are prompts, colours and earlier lines (arrow keys). From a pipe each line
is a prompt; stdout has the answers and what commands print, stderr all that is said beside.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from typing import Protocol

from sessiontree.cli.screen import Piece, Styled, clean, out, tell

PROMPT, MORE = "> ", "| "
_HIDDEN = ("\001", "\002")
"""What readline wants around escape sequences, to know how wide the prompt is."""


class Terminal(Protocol):
    """Whoever is talked to."""

    is_interactive: bool

    def read(self) -> str | None:
        """The next line, without its end; None when there are no more."""
        ...

    def remember(self, lines: Iterable[str]) -> None:
        """Lines that were given earlier, oldest first."""
        ...

    def note(self, *pieces: Piece) -> None:
        """Say something beside the answers."""
        ...

    def refuse(self, error: object) -> None:
        """Say in one line what did not work."""
        ...

    def beside(self) -> AbstractContextManager[object]:
        """What is printed meanwhile is said beside the answers."""
        ...

    def piece(self, text: str, style: str = "") -> None:
        """A piece of an answer, as it comes."""
        ...

    def end(self) -> None:
        """The answer has come to its end, or will not."""
        ...


class _Pieces:
    """Prints text that comes in pieces, as harmless as ``screen`` makes it."""

    def __init__(self) -> None:
        self._held = ""
        """A carriage return whose line feed may be in the next piece."""
        self._style = ""
        self._is_open = False

    def piece(self, text: str, style: str = "") -> None:
        text = self._held + text
        self._held = "\r" if text.endswith("\r") else ""
        text = clean(text.removesuffix("\r"), keep_lines=True)
        if not text:
            return
        if style != self._style and self._is_open:
            sys.stdout.write("\n")
        self._style, self._is_open = style, not text.endswith("\n")
        sys.stdout.write(self.styled(text, style))
        sys.stdout.flush()

    def styled(self, text: str, style: str) -> str:
        return text

    def end(self) -> None:
        if self._is_open:
            sys.stdout.write("\n")
        self._held, self._style, self._is_open = "", "", False
        sys.stdout.flush()


class Pipe(_Pieces):
    """Lines from a pipe or a file."""

    is_interactive = False

    def __init__(self, program: str) -> None:
        super().__init__()
        self._program = program

    def read(self) -> str | None:
        line = sys.stdin.buffer.readline() if sys.stdin else b""  # it may be closed
        if not line:
            return None
        text = line.removesuffix(b"\n").removesuffix(b"\r")
        try:
            return text.decode("utf-8")
        except UnicodeDecodeError as error:
            self.note(
                f"the line is not UTF-8: {error.reason}; \N{REPLACEMENT CHARACTER} stands for it"
            )
            return text.decode("utf-8", "replace")

    def remember(self, lines: Iterable[str]) -> None:
        """Nobody asks for earlier lines."""

    def note(self, *pieces: Piece) -> None:
        tell(*pieces)

    def refuse(self, error: object) -> None:
        tell(f"{self._program}: ", str(error))

    def beside(self) -> AbstractContextManager[object]:
        return redirect_stdout(sys.stderr)

    def piece(self, text: str, style: str = "") -> None:
        """What the model thinks is no answer."""
        if not style:
            super().piece(text)


class Screen(_Pieces):
    """A person at a terminal."""

    is_interactive = True

    def __init__(self, names: Iterable[str], colours: bool) -> None:
        super().__init__()
        self._readline = _readline(tuple(names))
        self._prompt = self._coloured_prompt() if colours else PROMPT
        self._has_colours = colours

    def _coloured_prompt(self) -> str:
        start, end = _HIDDEN if self._readline else ("", "")
        return f"{start}\x1b[1;36m{end}{PROMPT}{start}\x1b[0m{end}"

    def read(self) -> str | None:
        while True:
            try:
                return _as_text(self._line())
            except EOFError:
                out()
                return None
            except KeyboardInterrupt:
                out()
                self.note("Ctrl-D or /quit ends it")
            except UnicodeDecodeError as error:
                self.refuse(f"the line is not {error.encoding}: {error.reason}; nothing was sent")

    def _line(self) -> str:
        """A line, and those that it goes on in."""
        text = input(self._prompt)
        while text.endswith("\\"):
            text = f"{text[:-1]}\n{input(MORE)}"
        return text

    def remember(self, lines: Iterable[str]) -> None:
        if self._readline is not None:
            for line in lines:
                self._readline.add_history(line)

    def note(self, *pieces: Piece) -> None:
        out(*(Styled(piece, "dim") if isinstance(piece, str) else piece for piece in pieces))

    def refuse(self, error: object) -> None:
        out(Styled(str(error), "label"))

    def beside(self) -> AbstractContextManager[object]:
        return nullcontext()

    def styled(self, text: str, style: str) -> str:
        return f"\x1b[2m{text}\x1b[0m" if style and self._has_colours else text


def _as_text(line: str) -> str:
    """A line of which bytes that were no text came in as lone surrogates."""
    return line.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


class _Readline(Protocol):
    """The part of the module ``readline`` that is used here."""

    def add_history(self, string: str, /) -> None: ...
    def get_line_buffer(self) -> str: ...
    def parse_and_bind(self, string: str, /) -> None: ...
    def set_completer(
        self, function: Callable[[str, int], str | None] | None = None, /
    ) -> None: ...
    def set_completer_delims(self, string: str, /) -> None: ...


def _readline(names: tuple[str, ...]) -> _Readline | None:
    """Python's readline, where there is one; Tab completes the names of commands."""
    try:
        import readline
    except ImportError:
        return None

    def complete(text: str, state: int) -> str | None:
        is_first = readline.get_line_buffer().lstrip() == text
        found = [name for name in names if is_first and text and name.startswith(text)]
        return found[state] if state < len(found) else None

    is_libedit = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
    readline.set_completer_delims(" ")
    readline.set_completer(complete)
    return readline
