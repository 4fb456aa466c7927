"""What tokens cost, and how much a model can read: from the data package genai-prices (the
extra ``prices``), or as the caller says.

The package ships its data; nothing is fetched. It takes 0.3 to 0.6 s to load and is loaded
when the first price is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

from sessiontree.core.usage import Usage
from sessiontree.errors import SessionTreeError, shown

MILLION = 1_000_000

HOW = "pip install 'sessiontree[prices]'"

PROVIDERS: Mapping[str, str] = {
    "anthropic": "anthropic",
    "claude_code": "anthropic",
    "bedrock": "aws",
    "openai_responses": "openai",
    "gemini": "google",
    "gemini_cli": "google",
    "codex": "openai",
}
"""Whose prices hold, by the format of a message. Formats that many providers speak
(``openai_chat``) tell nothing; the name of the model does."""


class Rate(NamedTuple):
    """US dollars per million tokens."""

    input: Decimal
    output: Decimal
    cached: Decimal
    written: Decimal

    def of(self, usage: Usage) -> Decimal:
        spent = (
            usage.input * self.input
            + usage.cached * self.cached
            + usage.written * self.written
            + usage.output * self.output
        )
        return spent / MILLION


class NoPrices(SessionTreeError):
    """Prices were asked for, and the package that holds them is not installed."""

    hint = f"{HOW}, or give prices of your own"


def rate(text: str) -> tuple[str, Rate]:
    """A price as people write it: ``MODEL=INPUT/OUTPUT[/CACHED[/WRITTEN]]``, in dollars per
    million tokens. Cached and written tokens cost what input costs where it is not said."""
    model, equals, numbers = text.rpartition("=")
    try:
        told = [Decimal(each) for each in numbers.split("/")]
    except InvalidOperation:
        told = []
    if not (equals and model and 2 <= len(told) <= 4 and all(map(_is_price, told))):
        raise SessionTreeError(
            f"{shown(text)} is no price", hint="give MODEL=INPUT/OUTPUT, as in my-model=0.5/1.5"
        )
    told += [told[0]] * (4 - len(told))
    return model, Rate(*told)


def _is_price(value: Decimal) -> bool:
    return value.is_finite() and value >= 0


def installed() -> bool:
    """True when the package is there; it is not loaded to find out."""
    return find_spec("genai_prices") is not None


class Prices:
    """Prices of models. ``own`` wins over the package.

    ``loads``: False to leave the package alone, as if it were not installed.
    """

    def __init__(self, own: Mapping[str, Rate] | None = None, *, loads: bool = True) -> None:
        self.own = dict(own or {})
        self._loads = loads and installed()

    @property
    def any(self) -> bool:
        """False when no price of anything is known."""
        return bool(self.own) or self._loads

    def cost(
        self, model: str | None, usage: Usage, at: int, *, format: str | None = None
    ) -> Decimal | None:
        """What a request cost in US dollars; None when the model or its price is unknown.

        ``at``: when, in microseconds since 1970; prices change. ``format``: of the message,
        which may tell the provider. What the report itself tells is the caller's to prefer.
        """
        if model is None:
            return None
        if model in self.own:
            return self.own[model].of(usage)
        found = _find(model, PROVIDERS.get(format or "")) if self._loads else None
        return _price(found, usage, at) if found else None

    def window(self, model: str, *, format: str | None = None) -> int | None:
        """How many tokens the model can read; None where it is not known."""
        found = _find(model, PROVIDERS.get(format or "")) if self._loads else None
        return found[1].context_window if found else None

    def require(self, model: str) -> None:
        """NoPrices, or an error that says the model is unknown."""
        if model in self.own or (self._loads and _find(model, None)):
            return
        if not self._loads:
            raise NoPrices(f"there is no price for {shown(model)}")
        raise SessionTreeError(
            f"the price of {shown(model)} is unknown",
            hint=f"name it as its provider does, or give --price {model}=INPUT/OUTPUT",
        )


@cache
def _find(model: str, provider: str | None) -> tuple[Any, Any] | None:
    """(provider, model) of the package."""
    snapshot = import_module("genai_prices.data_snapshot").get_snapshot()
    for name, of in _readings(model, provider):
        try:
            return snapshot.find_provider_model(name, None, of, None)
        except LookupError:
            continue
    return None


def _readings(model: str, provider: str | None) -> Iterator[tuple[str, str | None]]:
    """What a name may mean, the likeliest first: ``anthropic/claude-…`` is what routers
    write, ``us.anthropic.claude-…`` what Bedrock does."""
    yield model, provider
    if provider is not None:
        yield model, None
    if "/" in model:
        yield model, "openrouter"
        maker, _, rest = model.rpartition("/")
        yield rest, maker
        yield rest, None
    if "." in model:
        yield model, "aws"


def _price(found: tuple[Any, Any], usage: Usage, at: int) -> Decimal | None:
    provider, model = found
    package = import_module("genai_prices")
    counts = package.Usage(
        input_tokens=usage.sent,
        output_tokens=usage.output,
        cache_read_tokens=usage.cached,
        cache_write_tokens=usage.written,
        cache_write_1h_tokens=usage.written_1h,
    )
    try:
        when = datetime.fromtimestamp(at // MILLION, UTC)
        said = model.calc_price(counts, provider, genai_request_timestamp=when)
    except (ValueError, OverflowError, OSError):  # a time beyond calendars, units not sold
        return None
    return said.total_price
