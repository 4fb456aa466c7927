"""The response cache on a Redis or Valkey server (the extra ``redis``).

Each operation is one script, so that it is done whole, in one round trip, and by the
server's own clock. All keys have one hash tag, so that a cluster keeps them in one slot.

    {sessiontree:cache}:entry:K   hash: an entry; expires by itself
                       :tags:K    set: the conversations it was stored for
                       :of:C      set: the keys that were stored for conversation C
                       :sizes     hash: K → bytes
                       :used, :stored, :expires   sorted sets: K by time, in microseconds
                       :total     hash: hits, misses, bytes, tokens, nanodollars
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from sessiontree.core.caching import Entry, Packed, Totals
from sessiontree.errors import (
    BadArgument,
    SessionTreeError,
    StoreClosed,
    StoreError,
    StoreUnavailable,
)

PREFIX = "{sessiontree:cache}:"

CONNECTIONS = 8
"""A server does one thing at a time; a connection for each request would only take longer."""

_SHARED = """
local p = KEYS[1]
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local function call(name, key, ...) return redis.call(name, p .. key, ...) end
local function forget(k)
  local size = call('HGET', 'sizes', k)
  if not size then return 0 end
  call('HINCRBY', 'total', 'bytes', -size)
  call('HDEL', 'sizes', k)
  for _, by in ipairs({'used', 'stored', 'expires'}) do call('ZREM', by, k) end
  for _, c in ipairs(call('SMEMBERS', 'tags:' .. k)) do call('SREM', 'of:' .. c, k) end
  redis.call('DEL', p .. 'tags:' .. k, p .. 'entry:' .. k)
  return 1
end
local function forget_all(keys)
  local gone = 0
  for _, k in ipairs(keys) do gone = gone + forget(k) end
  return gone
end
local function sweep() return forget_all(call('ZRANGEBYSCORE', 'expires', '-inf', now)) end
local function evict(most)
  local gone = 0
  while tonumber(call('HGET', 'total', 'bytes') or '0') > most do
    local oldest = call('ZRANGE', 'used', 0, 0)
    if #oldest == 0 then break end
    call('ZREM', 'used', oldest[1])
    gone = gone + forget(oldest[1])
  end
  return gone
end
local function live(k, ttl)
  call('ZADD', 'used', now, k)
  if ttl < 0 then
    call('PERSIST', 'entry:' .. k)
    call('ZREM', 'expires', k)
  else
    call('PEXPIRE', 'entry:' .. k, math.max(math.ceil(ttl / 1000), 1))
    call('ZADD', 'expires', now + ttl, k)
  end
end
"""

_GET = """
local k, ttl = ARGV[1], tonumber(ARGV[2])
local due = call('ZSCORE', 'expires', k)
local e = call('HMGET', 'entry:' .. k,
  'kind', 'body', 'model', 'usage', 'sent', 'output', 'nanodollars', 'stored_at')
if not e[2] or (due and tonumber(due) <= now) then
  forget(k)
  call('HINCRBY', 'total', 'misses', 1)
  return false
end
live(k, ttl)
call('HINCRBY', 'total', 'hits', 1)
call('HINCRBY', 'total', 'sent', e[5])
call('HINCRBY', 'total', 'output', e[6])
if e[7] == '' then call('HINCRBY', 'total', 'unpriced', 1)
else call('HINCRBY', 'total', 'nanodollars', e[7]) end
e[9] = call('HINCRBY', 'entry:' .. k, 'hits', 1)
return e
"""

_PUT = """
local k, size, ttl = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
sweep()
call('HINCRBY', 'total', 'bytes', size - (call('HGET', 'sizes', k) or 0))
call('HSET', 'sizes', k, size)
call('HSET', 'entry:' .. k, 'kind', ARGV[6], 'body', ARGV[7], 'model', ARGV[8], 'usage', ARGV[9],
  'sent', ARGV[10], 'output', ARGV[11], 'nanodollars', ARGV[12],
  'stored_at', string.format('%.0f', now))
call('ZADD', 'stored', now, k)
live(k, ttl)
if ARGV[5] ~= '' then
  call('SADD', 'tags:' .. k, ARGV[5])
  call('SADD', 'of:' .. ARGV[5], k)
end
return evict(tonumber(ARGV[4]))
"""

_SCRIPTS = {
    "get": _GET,
    "put": _PUT,
    "drop": "return forget(ARGV[1])",
    "drop_conversation": "return forget_all(call('SMEMBERS', 'of:' .. ARGV[1]))",
    "drop_older": (
        "return forget_all(call('ZRANGEBYSCORE', 'stored', '-inf', '(' .. "
        "string.format('%.0f', now - tonumber(ARGV[1]))))"
    ),
    "trim": "local gone = sweep() return gone + evict(tonumber(ARGV[1]))",
    "clear": "return forget_all(call('HKEYS', 'sizes'))",
    "totals": "sweep() return {call('HGETALL', 'total'), call('HLEN', 'sizes')}",
}


class RedisCache:
    """Entries on a server. Connects when it is first used, and again when it must."""

    def __init__(self, url: str, patience: float) -> None:
        self._client = _client(url, patience)
        self._scripts: dict[str, Any] = {
            name: self._client.register_script(_SHARED + body) for name, body in _SCRIPTS.items()
        }
        self._is_closed = False

    @property
    def name(self) -> str:
        """Where it is; never the password."""
        at: dict[str, Any] = self._client.connection_pool.connection_kwargs
        return str(at.get("path") or f"{at.get('host', 'localhost')}:{at.get('port', 6379)}")

    async def open(self) -> None:
        """Nothing: a server that is down now may be up when it is needed."""

    async def close(self) -> None:
        self._is_closed = True
        await self._client.aclose()

    async def get(self, key: str, ttl: int | None) -> Entry | None:
        found = await self._run("get", key, _life(ttl))
        if found is None:
            return None
        kind, body, model, usage, sent, output, nanodollars, stored_at, hits = found
        return Entry(
            Packed(kind.decode(), body),
            model.decode() or None,
            usage.decode() or None,
            int(sent),
            int(output),
            int(nanodollars) if nanodollars else None,
            int(stored_at),
            int(hits),
        )

    async def put(
        self, key: str, entry: Entry, ttl: int | None, most: int, conversation: str | None
    ) -> None:
        await self._run(
            "put",
            key,
            entry.size,
            _life(ttl),
            most,
            conversation or "",
            entry.packed.kind,
            entry.packed.body,
            entry.model or "",
            entry.usage or "",
            entry.sent,
            entry.output,
            "" if entry.nanodollars is None else entry.nanodollars,
        )

    async def drop(self, key: str) -> int:
        return await self._run("drop", key)

    async def drop_conversation(self, conversation: str) -> int:
        return await self._run("drop_conversation", conversation)

    async def drop_older(self, age: int) -> int:
        return await self._run("drop_older", age)

    async def trim(self, most: int) -> int:
        return await self._run("trim", most)

    async def clear(self) -> int:
        return await self._run("clear")

    async def totals(self) -> Totals:
        counted, entries = await self._run("totals")
        pairs = {name.decode(): int(value) for name, value in _pairs(counted)}
        return Totals(**pairs | {"entries": entries})

    async def _run(self, script: str, *values: str | bytes | int) -> Any:
        with self._named_errors():
            return await self._scripts[script](keys=[PREFIX], args=list(values))

    @contextmanager
    def _named_errors(self) -> Generator[None]:
        from redis.exceptions import ConnectionError, RedisError, TimeoutError

        if self._is_closed:
            raise StoreClosed(f"the cache at {self.name} is closed")
        try:
            yield
        except (ConnectionError, TimeoutError, OSError) as error:
            raise StoreUnavailable(
                f"the cache at {self.name} does not answer: {error}", hint="is the server up?"
            ) from error
        except RedisError as error:
            raise StoreError(f"the cache at {self.name}: {error}") from error


def _client(url: str, patience: float) -> Any:
    try:
        from redis.asyncio import BlockingConnectionPool, Redis
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff
    except ImportError as error:
        raise SessionTreeError(
            "a cache on a server needs the package redis",
            hint="pip install 'sessiontree[redis]', or name a file",
        ) from error
    address = url.replace("valkey", "redis", 1) if url.startswith("valkey") else url
    once_more = Retry(NoBackoff(), 1)  # the pool may hold a connection that the server closed
    try:
        pool = BlockingConnectionPool.from_url(  # pyright: ignore[reportUnknownMemberType]
            address,
            max_connections=CONNECTIONS,
            timeout=patience,
            socket_timeout=patience,
            socket_connect_timeout=patience,
            retry=once_more,
        )
        return Redis.from_pool(pool)
    except ValueError as error:
        raise BadArgument(f"the URL of the cache cannot be read: {error}") from error


def _life(ttl: int | None) -> int:
    return -1 if ttl is None else ttl


def _pairs(flat: Any) -> list[tuple[bytes, bytes]]:
    """A hash, as either version of the protocol gives it."""
    if isinstance(flat, dict):
        return list(flat.items())  # pyright: ignore
    return list(zip(flat[::2], flat[1::2], strict=True))
