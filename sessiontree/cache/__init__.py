"""A cache of model answers: the whole request as it was built, hashed, → the response.

    async with open_cache("answers.db", ttl=3600) as cache:        # or "redis://localhost"
        answer = await cache.through(request, ask, conversation=chat.id)

``request`` is what the provider's call takes, as JSON: ``{"model": …, "temperature": 0,
**window.request()}``. ``ask(request)`` is awaited when there is no answer yet. A cache that
is down, full, busy or damaged never breaks a request: the request is then made as if there
were none.
"""

from sessiontree.cache.handle import Cache, Hit, Stats
from sessiontree.cache.opening import open_cache
from sessiontree.core.caching import key_of, refusal

__all__ = ["Cache", "Hit", "Stats", "key_of", "open_cache", "refusal"]
