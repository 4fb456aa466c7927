"""Cache: what people hold. Looks up, keeps, and makes each request once at a time."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from sessiontree.core import usage as usages
from sessiontree.core.caching import Entry, Packed, Totals, key_of, pack, refusal, unpack
from sessiontree.core.prices import Prices
from sessiontree.errors import BadArgument, FormatError, shown

T = TypeVar("T")

SECOND = 1_000_000
"""Microseconds."""
NANO = 1_000_000_000

Call = Callable[[Any], Awaitable[Any]]
"""Makes the request; what it returns is kept."""
Load = Callable[[Any], Any]
"""Makes an answer of a caller's type from what was kept."""


class Backend(Protocol):
    """Where entries are. Times to live and ages are in microseconds, sizes in bytes."""

    @property
    def name(self) -> str: ...
    async def get(self, key: str, ttl: int | None) -> Entry | None: ...
    async def put(
        self, key: str, entry: Entry, ttl: int | None, most: int, conversation: str | None
    ) -> None: ...
    async def drop(self, key: str) -> int: ...
    async def drop_conversation(self, conversation: str) -> int: ...
    async def drop_older(self, age: int) -> int: ...
    async def trim(self, most: int) -> int: ...
    async def clear(self) -> int: ...
    async def totals(self) -> Totals: ...


@dataclass(frozen=True, slots=True)
class Hit:
    """An answer from the cache. ``usage`` is what its request was reported to use (nothing
    was used now), ``stored_at`` in microseconds since 1970, ``hits`` counts this one."""

    response: Any
    usage: dict[str, Any] | None
    model: str | None
    stored_at: int
    hits: int


@dataclass(frozen=True, slots=True)
class Stats:
    """What a cache holds and has saved since it was made, by everybody who uses it.

    ``dollars`` are those of the hits whose price is known; ``unpriced`` counts the others.
    """

    hits: int
    misses: int
    entries: int
    bytes: int
    input_tokens: int
    output_tokens: int
    dollars: Decimal
    unpriced: int

    @property
    def hit_rate(self) -> float:
        """From 0 to 1."""
        asked = self.hits + self.misses
        return self.hits / asked if asked else 0.0


@dataclass(frozen=True, slots=True)
class Rules:
    """How a cache is used; see ``open_cache``."""

    ttl: int | None
    max_bytes: int
    scope: str
    safe_tools: Collection[str]
    pause: float


class Cache:
    """A response cache; made by ``open_cache``.

    ``failures`` counts what could not be read or kept, ``last_failure`` is the newest
    reason: nothing is raised for it where a request would suffer. ``refused`` counts requests
    that are not cached unless asked, ``shared`` those that waited for another one's answer.
    """

    def __init__(self, backend: Backend, rules: Rules) -> None:
        self._backend = backend
        self._rules = rules
        self._prices = Prices()
        self._flights: dict[str, asyncio.Future[Packed | _Landed]] = {}
        self._rests_until = 0.0
        self.failures = 0
        self.refused = 0
        self.shared = 0
        self.last_failure: Exception | None = None

    # ---- one request -------------------------------------------------------------

    async def through(
        self,
        request: Mapping[str, Any],
        call: Call,
        *,
        conversation: int | str | None = None,
        force: bool = False,
        fresh: bool = False,
        load: Load | None = None,
    ) -> Any:
        """The answer to a request: the kept one, or that of ``await call(request)``, which is
        then kept. Of several who ask the same at once, one makes the request.

        The answer is what JSON makes of it (dictionaries and lists, for an SDK's objects
        too), the same whether it was kept or not; ``load`` makes an object of a kept one, and
        what ``call`` returns is then returned as it is.

        ``force``: also where the request is not cached unless asked (see ``refuses``).
        ``fresh``: make the request in any case, and keep the new answer.

        Raises what ``call`` raises, and nothing of the cache's own.
        """
        key = self._key(request, force)
        if key is None or fresh:
            answer = await call(request)
            packed = self._packed(answer)
            if key is not None and packed is not None:
                await self._keep(key, request, packed, None, conversation)
            return _given(answer, packed, load)
        while True:
            flight = self._flights.get(key)
            if flight is None:
                return await self._lead(key, request, call, conversation, load)
            landed = await asyncio.shield(flight)
            if isinstance(landed, Packed):
                self.shared += 1
                found = self._loaded(landed, load)
                return await call(request) if found is None else found.value
            if landed is _ALONE:
                return await call(request)

    async def _lead(
        self,
        key: str,
        request: Mapping[str, Any],
        call: Call,
        conversation: int | str | None,
        load: Load | None,
    ) -> Any:
        flight: asyncio.Future[Packed | _Landed] = asyncio.get_running_loop().create_future()
        self._flights[key] = flight
        try:
            hit = await self._tried(lambda: self._read(key))
            found = None if hit is None else self._loaded(hit[0], load)
            if hit is not None and found is not None:
                flight.set_result(hit[0])
                return found.value
            answer = await call(request)
            packed = self._packed(answer)
            flight.set_result(packed or _ALONE)
            if packed is not None:
                await self._keep(key, request, packed, None, conversation)
            return _given(answer, packed, load)
        except BaseException as error:
            _land(flight, error)
            raise
        finally:
            del self._flights[key]

    async def get(self, request: Mapping[str, Any], *, force: bool = False) -> Hit | None:
        """The kept answer, which then lives for another ``ttl``; None where there is none, or
        where the cache cannot tell."""
        key = self._key(request, force)
        if key is None:
            return None
        found = await self._tried(lambda: self._read(key))
        return None if found is None else found[1]

    async def put(
        self,
        request: Mapping[str, Any],
        response: Any,
        *,
        usage: Mapping[str, Any] | None = None,
        conversation: int | str | None = None,
        force: bool = False,
    ) -> bool:
        """Keep an answer: JSON, text, bytes, or an object of an SDK. True when it is kept.

        ``usage``: what the provider reported; without it, what the response itself says.
        """
        key = self._key(request, force)
        packed = None if key is None else self._packed(response)
        if key is None or packed is None:
            return False
        return await self._keep(key, request, packed, usage, conversation)

    def refuses(self, request: Mapping[str, Any]) -> str | None:
        """Why a request is not cached unless ``force`` is given; None when it is."""
        return refusal(request, self._rules.safe_tools)

    # ---- the whole cache ---------------------------------------------------------

    async def invalidate(
        self,
        *,
        request: Mapping[str, Any] | None = None,
        conversation: int | str | None = None,
        older_than: float | None = None,
    ) -> int:
        """Let go of one request's answer, of what was stored for a conversation, or of what
        was stored more than ``older_than`` seconds ago. How many went.

        StoreError: the cache is down. It then still holds them.
        """
        if sum(each is not None for each in (request, conversation, older_than)) != 1:
            raise BadArgument(
                "invalidate takes one of request, conversation and older_than",
                hint="clear() lets go of all",
            )
        if request is not None:
            return await self._backend.drop(key_of(request, self._rules.scope))
        if conversation is not None:
            return await self._backend.drop_conversation(self._name(conversation))
        return await self._backend.drop_older(microseconds(older_than, "older_than") or 0)

    async def trim(self, max_bytes: int) -> int:
        """Let go of what was unused for longest until at most ``max_bytes`` are left. How
        many went."""
        return await self._backend.trim(size(max_bytes))

    async def clear(self) -> int:
        """Let go of every entry; what was saved so far stays counted. How many went."""
        return await self._backend.clear()

    async def stats(self) -> Stats:
        """What there is, and what was saved. StoreError: the cache is down."""
        found = await self._backend.totals()
        return Stats(
            found.hits,
            found.misses,
            found.entries,
            found.bytes,
            found.sent,
            found.output,
            Decimal(found.nanodollars) / NANO,
            found.unpriced,
        )

    # ---- inside ------------------------------------------------------------------

    def _key(self, request: Mapping[str, Any], force: bool) -> str | None:
        """The key; None when the request is not to be cached, or has none."""
        try:
            if not force and refusal(request, self._rules.safe_tools) is not None:
                self.refused += 1
                return None
            return key_of(request, self._rules.scope)
        except Exception as error:  # whatever it is: the request goes on without a cache
            self._note(error)
            return None

    def _packed(self, answer: Any) -> Packed | None:
        try:
            return pack(answer)
        except FormatError as error:
            self._note(error)
            return None

    async def _read(self, key: str) -> tuple[Packed, Hit] | None:
        """What is kept, also as people see it. FormatError when it is damaged."""
        entry = await self._backend.get(key, self._rules.ttl)
        if entry is None:
            return None
        usage = unpack(Packed("json", entry.usage.encode())) if entry.usage else None
        response = unpack(entry.packed)
        return entry.packed, Hit(response, usage, entry.model, entry.stored_at, entry.hits)

    def _loaded(self, packed: Packed, load: Load | None) -> _Value | None:
        """What ``load`` makes of an answer; None when it cannot (it was kept by another
        version of an SDK, say): the request is then made."""
        try:
            return _Value(unpack(packed) if load is None else load(unpack(packed)))
        except Exception as error:
            self._note(error)
            return None

    async def _keep(
        self,
        key: str,
        request: Mapping[str, Any],
        packed: Packed,
        usage: Mapping[str, Any] | None,
        conversation: int | str | None,
    ) -> bool:
        async def keep() -> bool:
            entry = await self._entry(request, packed, usage)
            if entry.size > self._rules.max_bytes:
                return False
            whose = None if conversation is None else self._name(conversation)
            rules = self._rules
            await self._backend.put(key, entry, rules.ttl, rules.max_bytes, whose)
            return True

        return bool(await self._tried(keep))

    async def _entry(
        self, request: Mapping[str, Any], packed: Packed, usage: Mapping[str, Any] | None
    ) -> Entry:
        answer = unpack(packed) if packed.kind == "json" else None
        said = usage if usage is not None else _usage_of(answer)
        model = _text(answer, "model") or _text(request, "model")
        used = usages.read(said) or usages.Usage()
        money = used.cost
        if money is None and said is not None and self._prices.any:
            now = time.time_ns() // 1_000  # the package is loaded aside, once: half a second
            money = await asyncio.to_thread(self._prices.cost, model, used, now)
        text = pack(said).body.decode() if said is not None else None
        nano = None if money is None else int(money * NANO)
        return Entry(packed, model, text, used.sent, used.output, nano)

    def _name(self, conversation: int | str) -> str:
        """Conversations of another scope have other names."""
        if isinstance(conversation, bool) or not isinstance(cast(object, conversation), int | str):
            raise BadArgument(f"conversation is {shown(conversation)}", hint="give its id")
        return json.dumps([self._rules.scope, str(conversation)])

    async def _tried(self, work: Callable[[], Awaitable[T]]) -> T | None:
        """What comes of it, or None when the cache cannot; it is then left alone for a while,
        so that a server that does not answer does not slow down every request."""
        if time.monotonic() < self._rests_until:
            return None
        try:
            return await work()
        except Exception as error:  # whatever it is: the request goes on without a cache
            self._note(error)
            if not isinstance(error, FormatError | BadArgument):
                self._rests_until = time.monotonic() + self._rules.pause
            return None

    def _note(self, error: Exception) -> None:
        self.failures += 1
        self.last_failure = error


# --- Flights ------------------------------------------------------------------------------


class _Value(NamedTuple):
    """An answer, which may be None itself."""

    value: Any


class _Landed:
    """How a flight ended that brought nothing to share."""


_GIVEN_UP, _ALONE = _Landed(), _Landed()
"""Whoever led was cancelled: another leads. The answer cannot be shared: each asks alone."""


def _land(flight: asyncio.Future[Packed | _Landed], error: BaseException) -> None:
    """Those who wait get the same error: they asked the same. A cancellation is its own."""
    if flight.done():
        return
    if isinstance(error, Exception):
        flight.set_exception(error)
        flight.exception()  # seen, also when nobody waits
    else:
        flight.set_result(_GIVEN_UP)


def _given(answer: Any, packed: Packed | None, load: Load | None) -> Any:
    """The answer of a call, in the shape that it will have from the cache."""
    return answer if packed is None or load is not None else unpack(packed)


# --- What a response says -----------------------------------------------------------------


def _usage_of(answer: Any) -> Mapping[str, Any] | None:
    if not isinstance(answer, Mapping):
        return None
    body = cast("Mapping[str, Any]", answer)
    for name in ("usage", "usageMetadata", "usage_metadata"):
        if isinstance(body.get(name), Mapping):
            return body[name]
    return None


def _text(holder: Any, name: str) -> str | None:
    value = cast("Mapping[str, Any]", holder).get(name) if isinstance(holder, Mapping) else None
    return value if isinstance(value, str) else None


# --- Arguments ----------------------------------------------------------------------------


def microseconds(value: object, what: str) -> int | None:
    """Seconds given by a caller. BadArgument for what is no length of time."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e11:
        raise BadArgument(f"{what} is {shown(value)}", hint="give seconds, or None for no end")
    return int(value * SECOND)


def size(value: object) -> int:
    """Bytes given by a caller. BadArgument."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**62:
        raise BadArgument(f"max_bytes is {shown(value)}", hint="give a number of bytes")
    return value
