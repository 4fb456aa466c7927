"""A cache on a Redis or Valkey server: a real one, that goes away in the middle."""

from __future__ import annotations

import asyncio
import builtins
import sys
from typing import Any

import pytest

from sessiontree.cache import open_cache
from sessiontree.cache.server import CONNECTIONS, PREFIX
from sessiontree.core.caching import key_of
from sessiontree.errors import BadArgument, SessionTreeError, StoreError, StoreUnavailable

REQUEST: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def numbered(n: int) -> dict[str, Any]:
    return {"model": "m", "n": n}


async def test_a_server_that_goes_and_comes_back_breaks_no_request(
    own_server: Any, asked: Any
) -> None:
    async with open_cache(own_server.url, pause=0) as cache:
        assert await cache.through(REQUEST, asked) == {"n": 1}
        assert await cache.through(REQUEST, asked) == {"n": 1}
        own_server.stop()
        assert await cache.through(REQUEST, asked) == {"n": 2}
        assert await cache.get(REQUEST) is None
        assert not await cache.put(REQUEST, {})
        assert isinstance(cache.last_failure, StoreUnavailable)
        with pytest.raises(StoreUnavailable, match="does not answer"):
            await cache.stats()
        with pytest.raises(StoreUnavailable):
            await cache.invalidate(conversation=1)
        own_server.start()
        assert await cache.through(REQUEST, asked) == {"n": 3}
        assert await cache.through(REQUEST, asked) == {"n": 3}


async def test_a_server_that_was_never_there_breaks_no_request(own_server: Any, asked: Any) -> None:
    own_server.stop()
    async with open_cache(own_server.url, pause=3600) as cache:
        assert [await cache.through(REQUEST, asked) for _ in range(3)] == [
            {"n": 1},
            {"n": 2},
            {"n": 3},
        ]
        assert cache.failures == 1  # it was left alone then


async def test_a_server_that_goes_while_a_request_is_made_breaks_none(
    own_server: Any, asked: Any
) -> None:
    asked.gate = asyncio.Event()
    async with open_cache(own_server.url, pause=0) as cache:
        waiting = [asyncio.ensure_future(cache.through(REQUEST, asked)) for _ in range(5)]
        await asked.began.wait()
        own_server.stop()
        asked.gate.set()
        assert await asyncio.gather(*waiting) == [{"n": 1}] * 5


async def test_a_server_that_hangs_delays_a_request_by_the_patience_and_no_more(
    asked: Any,
) -> None:
    """It takes connections and never answers."""

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    silent = await asyncio.start_server(hang, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    async with open_cache(f"redis://127.0.0.1:{port}", patience=0.1) as cache:
        async with asyncio.timeout(30):
            assert await cache.through(REQUEST, asked) == {"n": 1}
        assert isinstance(cache.last_failure, StoreUnavailable)
    silent.close()


async def test_a_server_that_has_no_memory_left_breaks_no_request(
    own_server: Any, asked: Any
) -> None:
    own_server.command("CONFIG", "SET", "maxmemory", "1mb")
    async with open_cache(own_server.url, pause=0) as cache:
        assert await cache.through(REQUEST, asked) == {"n": 1}
        assert isinstance(cache.last_failure, StoreError)


async def test_an_answer_expires_by_itself_and_leaves_nothing(server: Any) -> None:
    async with open_cache(server.url, ttl=0.05) as cache:
        await cache.put(REQUEST, {}, conversation=1)
        async with asyncio.timeout(30):
            while (await cache.stats()).entries:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert await cache.get(REQUEST) is None
        stats = await cache.stats()
        assert (stats.entries, stats.bytes, stats.misses) == (0, 0, 1)
    assert server.command("KEYS", "*") == [f"{PREFIX}total".encode()]


async def test_each_use_lets_it_live_longer(server: Any) -> None:
    key = f"{PREFIX}entry:{key_of(REQUEST)}"
    async with open_cache(server.url, ttl=100) as brief, open_cache(server.url, ttl=5000) as long:
        await brief.put(REQUEST, {})
        assert 0 < server.command("PTTL", key) <= 100_000
        await long.get(REQUEST)
        assert 100_000 < server.command("PTTL", key) <= 5_000_000
    async with open_cache(server.url, ttl=None) as cache:
        await cache.get(REQUEST)
        assert server.command("PTTL", key) == -1


async def test_what_the_server_evicts_by_itself_is_a_miss_and_is_no_longer_counted(
    server: Any,
) -> None:
    async with open_cache(server.url) as cache:
        await cache.put(REQUEST, {"n": 1}, conversation=1)
        server.command("DEL", f"{PREFIX}entry:{key_of(REQUEST)}")
        assert await cache.get(REQUEST) is None
        stats = await cache.stats()
        assert (stats.entries, stats.bytes, stats.misses) == (0, 0, 1)
        assert cache.failures == 0


async def test_a_cleared_cache_leaves_its_totals_and_what_others_keep_there(server: Any) -> None:
    server.command("SET", "mine", "1")
    async with open_cache(server.url) as cache:
        for n in range(3):
            await cache.put(numbered(n), {}, conversation=n)
        await cache.clear()
    assert set(server.command("KEYS", "*")) == {b"mine", f"{PREFIX}total".encode()}


async def test_all_keys_are_in_one_slot_of_a_cluster(server: Any) -> None:
    from redis.crc import key_slot

    async with open_cache(server.url) as cache:
        await cache.put(REQUEST, {}, conversation=1)
    keys = server.command("KEYS", "*")
    assert len(keys) > 5
    assert len({key_slot(key) for key in keys}) == 1


async def test_many_who_ask_at_once_share_a_few_connections(own_server: Any) -> None:
    async with open_cache(own_server.url, patience=60) as cache:
        await asyncio.gather(*(cache.put(numbered(n), {"n": n}) for n in range(200)))
        hits = await asyncio.gather(*(cache.get(numbered(n)) for n in range(200)))
        assert [hit.response["n"] for hit in hits if hit] == list(range(200))
        assert cache.failures == 0
        assert len(own_server.command("CLIENT LIST")) <= CONNECTIONS + 1  # and who asks here


async def test_scripts_that_the_server_forgot_are_given_again(server: Any) -> None:
    async with open_cache(server.url) as cache:
        await cache.put(REQUEST, {})
        server.command("SCRIPT", "FLUSH")
        assert await cache.get(REQUEST) is not None


async def test_valkeys_own_urls_and_databases_by_number_work(server: Any) -> None:
    async with open_cache(server.url.replace("redis://", "valkey://") + "/3") as cache:
        assert await cache.put(REQUEST, {})
    async with open_cache(server.url) as cache:
        assert await cache.get(REQUEST) is None
    async with open_cache(server.url + "/3") as cache:
        assert await cache.get(REQUEST) is not None


async def test_an_error_names_the_server_and_never_the_password(own_server: Any) -> None:
    own_server.stop()
    url = own_server.url.replace("redis://", "redis://camille:s3cret@")
    async with open_cache(url) as cache:
        with pytest.raises(StoreUnavailable) as caught:
            await cache.stats()
    assert str(own_server.port) in str(caught.value)
    assert "s3cret" not in str(caught.value)


async def test_a_password_that_is_wrong_breaks_no_request(server: Any, asked: Any) -> None:
    async with open_cache(server.url.replace("redis://", "redis://nobody:wrong@")) as cache:
        assert await cache.through(REQUEST, asked) == {"n": 1}
        assert isinstance(cache.last_failure, StoreError)


@pytest.mark.parametrize(
    "url", ["redis://localhost:none", "rediss://[", "redis://localhost:99999999"]
)
async def test_a_url_that_cannot_be_read_is_refused(url: str) -> None:
    with pytest.raises(BadArgument):
        async with open_cache(url):
            pass


async def test_without_the_package_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "redis"]:
        monkeypatch.delitem(sys.modules, name)
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.split(".")[0] == "redis":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(SessionTreeError, match=r"sessiontree\[redis\]"):
        async with open_cache("redis://localhost"):
            pass
