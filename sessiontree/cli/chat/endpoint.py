"""What every endpoint is: a request in, pieces of an answer out, errors of ours."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Literal, NamedTuple, Protocol, cast

from sessiontree.errors import SessionTreeError

Json = dict[str, Any]
Stop = Literal["end", "calls", "length", "refusal"]


class Text(NamedTuple):
    """A piece of what the model says."""

    text: str


class Thought(NamedTuple):
    """A piece of what it thinks before that."""

    text: str


class Answer(NamedTuple):
    """The last event: the whole answer. ``message`` is in the provider's own shape, ``usage``
    what it reported; None where it did not."""

    message: Json
    usage: Json | None
    model: str | None
    stop: Stop


Event = Text | Thought | Answer


class Endpoint(Protocol):
    """A model behind an API.

    ``target`` is the shape of its requests, as windows know it.
    """

    target: str
    model: str

    def stream(
        self, request: Mapping[str, Any], tools: Sequence[Json]
    ) -> AsyncGenerator[Event, None]:
        """Ask, and give the answer as it comes; an ``Answer`` ends it, or ``EndpointError``
        does. ``request`` is a window's, ``tools`` are definitions in the target's shape."""
        ...

    async def close(self) -> None: ...


class EndpointError(SessionTreeError):
    """The provider refused a request, or did not answer it to the end.

    ``cause`` is the SDK's error, or None. ``status`` is the HTTP status of a refusal.
    """

    def __init__(
        self,
        what: str,
        *,
        hint: str = "",
        status: int | None = None,
        cause: Exception | None = None,
    ) -> None:
        super().__init__(what, hint=hint)
        self.status = status
        self.cause = cause


def broke_off(cause: Exception | None = None) -> EndpointError:
    """The error of an answer that ended before its end."""
    return EndpointError(
        "the answer broke off before its end", hint="/retry asks again", cause=cause
    )


def sdk(name: str) -> Any:
    """The module of an SDK; an error names the extra that brings it."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise SessionTreeError(
            f"the package {name!r} is not installed", hint="pip install 'sessiontree[chat]'"
        ) from None


def is_of_transport(error: Exception) -> bool:
    """Errors of the SDKs' HTTP library, which they let through in the middle of a stream."""
    return type(error).__module__.partition(".")[0] in ("httpx", "httpx2", "httpcore", "httpcore2")


@contextmanager
def our_errors(sdk: Any, kind: type[Exception], key: str, url: str) -> Generator[None]:
    """Turn what an SDK raises into ``EndpointError``. ``kind``: the root of its own errors;
    ``key``: the variable that holds the key; ``url``: who was asked."""
    try:
        yield
    except EndpointError:
        raise
    except sdk.APIConnectionError as error:
        raise unreachable(error, url) from error
    except kind as error:
        raise refused(error, key) from error
    except UNREADABLE as error:
        raise unreadable(error, url) from error
    except Exception as error:
        if not is_of_transport(error):
            raise
        raise broke_off(error) from error


_HINTS = {
    401: "look at the key in {key}",
    403: "look at the key in {key}, and what it may do",
    404: "look at --model and --base-url",
    413: "say less, or start with a smaller --budget",
    429: "wait a while, then /retry",
}


def refused(error: Any, key: str) -> EndpointError:
    """Our error for one of an SDK's: the provider's words in one line, and what to do.

    ``key`` is the variable that holds the key.
    """
    status = getattr(error, "status_code", None)
    if status == 200:  # it was refused in the middle of a stream
        status = None
    words = " ".join(_words_of(error).split())
    if status is None:
        return EndpointError(words, hint="/retry asks again", cause=error)
    hint = _HINTS.get(status, "the fault is the provider's; /retry asks again")
    hint = hint.format(key=key) if status in _HINTS or status >= 500 else ""
    return EndpointError(f"{status}: {words}", hint=hint, status=status, cause=error)


UNREADABLE = (ValueError, LookupError, TypeError, AttributeError)
"""What an SDK, or we, stumble over in an answer of another form than the protocol's."""


def unreadable(error: Exception, url: str) -> EndpointError:
    """Our error for an answer that is none of this protocol."""
    what = " ".join(str(error).split()) or type(error).__name__
    return EndpointError(
        f"what {url} answers cannot be read: {what}",
        hint="look at --base-url and --provider",
        cause=error,
    )


def unreachable(error: Exception, url: str) -> EndpointError:
    """Our error for a connection that could not be made, or was lost."""
    return EndpointError(
        f"{url} cannot be reached: {_reason(error)}", hint="look at --base-url", cause=error
    )


def _reason(error: BaseException) -> str:
    """The words of the first cause, which tells more than "Connection error."."""
    while error.__cause__ is not None:
        error = error.__cause__
    return " ".join(str(error).split()) or type(error).__name__


def _words_of(error: Any) -> str:
    """What the body of an error says; else the error itself, without its markup."""
    body = getattr(error, "body", None)
    while isinstance(body, Mapping):
        said = cast("Mapping[str, Any]", body)
        if isinstance(said.get("message"), str) and said["message"]:
            return said["message"]
        body = said.get("error") or said.get("detail")
    if isinstance(body, str) and body and not body.lstrip().startswith("<"):
        return body[:500]
    return str(getattr(error, "message", "") or error)[:500]


def joined(pieces: Sequence[str]) -> str:
    """The pieces of a text as one; a character that was parted between two is whole again."""
    text = "".join(pieces)
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
