"""A stand-in for a provider: a real HTTP server on this machine that speaks to real clients.

    with StandIn(script=["Hello.", {"calls": [{"name": "read", "arguments": {}}]}]) as server:
        client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="any")
        client = anthropic.Anthropic(base_url=server.url, api_key="any")

It refuses what the provider would refuse, in the provider's words, answers by a script
(``script.py`` says what a step may hold), and remembers every request. As a process of its
own: ``python -m tests.standin --script FILE`` prints its address on the first line.

No part of the package: tests and demonstrations use it.
"""

from tests.standin.script import Step, load
from tests.standin.server import Recorded, StandIn

__all__ = ["Recorded", "StandIn", "Step", "load"]
