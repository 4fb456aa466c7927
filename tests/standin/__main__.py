"""``python -m tests.standin``: the server as a process of its own, until it is stopped."""

from __future__ import annotations

import argparse
import signal
import threading
from pathlib import Path

from tests.standin import StandIn, load


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.standin", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--script", type=Path, help="a JSON file with a list of steps")
    parser.add_argument("--context", type=int, help="the most tokens of a request")
    parser.add_argument("--bytes", type=int, help="the most bytes of a request")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds between two chunks")
    parser.add_argument("--scale", type=float, default=1.0, help="times our estimate of tokens")
    return parser.parse_args()


def main() -> None:
    given = _arguments()
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: stopped.set())
    script = load(given.script) if given.script else ()
    with StandIn(
        script,
        port=given.port,
        context_limit=given.context,
        bytes_limit=given.bytes,
        delay=given.delay,
        scale=given.scale,
    ) as server:
        print(server.url, flush=True)
        stopped.wait()


main()
