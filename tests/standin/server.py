"""The HTTP server: requests in, checked, recorded, answered by the script."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from socketserver import TCPServer
from types import TracebackType
from typing import Any, cast

from tests.standin import anthropic, openai_chat, refusals
from tests.standin.answer import Event, answer_of
from tests.standin.counting import said_by_user
from tests.standin.refusals import Refusal
from tests.standin.script import Json, Script, Step

PROVIDERS: dict[str, Any] = {
    "/v1/chat/completions": openai_chat,
    "/v1/messages": anthropic,
    "/v1/messages/count_tokens": anthropic,
}
SHOWN = "/standin/requests"
"""Where a process of its own shows what it was asked."""


@dataclass(slots=True)
class Recorded:
    """One request. ``status`` is 0 until it is answered, and where the connection was dropped
    before; ``whole`` tells that the answer was sent to its end. ``tokens`` are 0 for a request
    that was refused before they were counted; ``broken`` are the rules that it broke."""

    number: int
    path: str
    provider: str
    headers: dict[str, str]
    size: int
    body: Any = None
    tokens: int = 0
    status: int = 0
    refused: str = ""
    broken: list[str] = field(default_factory=list[str])
    whole: bool = False


class StandIn:
    """The server, for ``with``: it answers while the block runs, on 127.0.0.1 alone.

    ``context_limit`` in tokens and ``bytes_limit`` are refused as the providers do. ``delay``
    is the seconds between two pieces of a stream where a step says nothing of it. ``scale``
    multiplies our own count of tokens. With an ``api_key``, a request must bear it.
    """

    def __init__(
        self,
        script: Iterable[object] = (),
        *,
        port: int = 0,
        context_limit: int | None = None,
        bytes_limit: int | None = None,
        delay: float = 0.0,
        scale: float = 1.0,
        api_key: str | None = None,
        models: tuple[str, ...] = ("stand-in",),
    ) -> None:
        self.script = Script(script)
        self.context_limit = context_limit
        self.bytes_limit = bytes_limit
        self.delay = delay
        self.scale = scale
        self.api_key = api_key
        self.models = list(models)
        self.stopped = threading.Event()
        self._requests: list[Recorded] = []
        self._lock = threading.Lock()
        self._http = _Server(("127.0.0.1", port), _Handler)
        self._http.owner = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> StandIn:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stopped.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """The base for the ``anthropic`` client; with ``/v1`` behind, for the ``openai`` one."""
        return f"http://127.0.0.1:{self._http.server_port}"

    @property
    def requests(self) -> list[Recorded]:
        """Every request so far, oldest first."""
        with self._lock:
            return list(self._requests)

    @property
    def left(self) -> list[Step]:
        """The steps of the script that no request has taken."""
        return self.script.left

    def record(self, path: str, provider: str, headers: dict[str, str], size: int) -> Recorded:
        with self._lock:
            kept = Recorded(len(self._requests) + 1, path, provider, headers, size)
            self._requests.append(kept)
            return kept


class _Server(ThreadingHTTPServer):
    owner: StandIn
    daemon_threads = True
    request_queue_size = 256  # of 5, a crowd of clients at once finds some refused
    block_on_close = False  # clients keep their connections

    def server_bind(self) -> None:
        """Without the look-up of a name for the address."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "127.0.0.1", self.server_address[1]


class _Drop(Exception):
    """The connection is to end here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 60

    @property
    def owner(self) -> StandIn:
        return cast(_Server, self.server).owner

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed; ``requests`` tells."""

    # ---- what is asked -----------------------------------------------------------

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == SHOWN:
            self._send(200, [asdict(each) for each in self.owner.requests])
        elif path == "/v1/models":
            provider = anthropic if self.headers.get("anthropic-version") else openai_chat
            self._send(200, provider.models(self.owner.models, int(time.time())))
        else:
            self._send(404, Refusal(404, f"Not found: {path}").body("openai_chat", 0))

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = self.path.partition("?")[0]
        provider = PROVIDERS.get(path)
        if provider is None:
            self._send(404, Refusal(404, f"Not found: {path}").body("openai_chat", 0))
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        kept = self.owner.record(path, provider.NAME, headers, len(raw))
        with suppress(_Drop, ConnectionError):
            self._answer(kept, provider, raw)
            return
        self.close_connection = True

    def _answer(self, kept: Recorded, provider: Any, raw: bytes) -> None:
        try:
            body = self._checked(kept, raw)
            if kept.path.endswith("count_tokens"):
                self._reply(kept, 200, {"input_tokens": kept.tokens})
                return
            self._by_script(kept, provider, body)
        except Refusal as refusal:
            self._refuse(kept, refusal)

    def _checked(self, kept: Recorded, raw: bytes) -> Json:
        """The body of a request that the provider would take."""
        owner = self.owner
        given = (kept.headers.get("x-api-key"), kept.headers.get("authorization"))
        if owner.api_key is not None and not {owner.api_key, f"Bearer {owner.api_key}"} & {*given}:
            raise Refusal(401)
        refusals.refuse_bytes(kept.size, owner.bytes_limit)
        with suppress(ValueError):
            kept.body = json.loads(raw)
        to_count = kept.path.endswith("count_tokens")
        body = refusals.refuse_form(kept.body, kept.provider, has_room=not to_count)
        refusals.refuse_violations(body, kept.provider)
        limit = None if to_count else owner.context_limit
        kept.tokens = refusals.refuse_size(body, kept.provider, limit, owner.scale)
        return body

    # ---- what is answered --------------------------------------------------------

    def _by_script(self, kept: Recorded, provider: Any, body: Json) -> None:
        said = said_by_user(body["messages"])
        step = self.owner.script.take(said[-1] if said else "")
        self.owner.stopped.wait(step.wait)
        in_stream = bool(body.get("stream")) and (step.after or not (step.error or step.drop))
        if step.error and not in_stream:
            self._refuse(kept, Refusal(step.error, step.message), step)
            return
        created = int(time.time())
        answer = answer_of(step, kept.number, str(body["model"]), said, kept.tokens, created)
        if in_stream:
            self._stream(kept, step, provider, provider.stream(answer, body))
        elif step.drop:
            raise _Drop
        else:
            self._reply(kept, 200, provider.whole(answer))

    def _stream(self, kept: Recorded, step: Step, provider: Any, events: Iterator[Event]) -> None:
        kept.status = 200
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("cache-control", "no-cache")
        self.send_header("transfer-encoding", "chunked")
        self.send_header("request-id", f"req_{kept.number}")
        self.end_headers()
        delay = self.owner.delay if step.delay is None else step.delay
        most = step.after if step.drop or step.error else None
        for sent, event in enumerate(islice(events, most)):
            if sent and delay:
                self.owner.stopped.wait(delay)
            self._chunk(_as_sse(event))
        if most is not None:
            self._break(kept, step, provider)
            return
        kept.whole = True  # before the last byte: who has read it may look
        self._chunk(b"")

    def _break(self, kept: Recorded, step: Step, provider: Any) -> None:
        """End a stream before its end: with an error in it, or without a word."""
        if not step.error:
            raise _Drop
        refusal = Refusal(step.error, step.message)
        kept.refused = refusal.message or str(step.error)
        self._chunk(_as_sse(provider.failed(refusal.body(kept.provider, kept.number))))
        self._chunk(b"")

    def _refuse(self, kept: Recorded, refusal: Refusal, step: Step | None = None) -> None:
        body = refusal.body(kept.provider, kept.number)
        kept.refused = body["error"]["message"]
        kept.broken = [violation.rule for violation in refusal.violations]
        after = None if step is None else step.retry_after
        headers = {} if after is None else {"retry-after": f"{after:g}"}
        self._reply(kept, refusal.status, body, headers)

    def _reply(
        self, kept: Recorded, status: int, body: Json, headers: dict[str, str] | None = None
    ) -> None:
        kept.status, kept.whole = status, True
        self._send(status, body, {"request-id": f"req_{kept.number}", **(headers or {})})

    def _send(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))


def _as_sse(event: Event) -> bytes:
    name, data = event
    said = data if isinstance(data, str) else json.dumps(data)
    named = f"event: {name}\n" if name else ""
    return f"{named}data: {said}\n\n".encode()
