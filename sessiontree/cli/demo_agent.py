"""A small agent against a scripted model, for `sessiontree demo` to start and to kill.

    python -m sessiontree.cli.demo_agent STORE TOPIC PROMPT [--slow-bank]

It is what a harness does with sessiontree: take up what was interrupted, add each message
to a turn as it comes, and let the store decide when a step is whole.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import Any

import sessiontree

OWNER = "demo"
SYSTEM = "You help the parcel service's customers. Refund only what was paid."
Message = dict[str, Any]


def model(history: list[sessiontree.Message]) -> Message:
    """The scripted model: calls two tools for a prompt, then answers from their results."""
    last = history[-1]
    if last.role == "user":
        return _calls(last)
    failed = any(
        result.is_error or "Interrupted" in str(result.response) for result in _answers(history)
    )
    if failed:
        return {
            "role": "assistant",
            "content": "The refund was cut off and may have been paid. I will not pay it twice: "
            "please look at the bank's list first.",
        }
    return {"role": "assistant", "content": f"Done: {last.text or last.preview.lstrip('→ ')}."}


def _answers(history: list[sessiontree.Message]) -> list[sessiontree.ToolResult]:
    """The results of the newest step."""
    found: list[sessiontree.ToolResult] = []
    for message in reversed(history):
        if message.role != "tool":
            break
        found.extend(message.tool_results)
    return found


def _calls(prompt: sessiontree.Message) -> Message:
    order = next(
        (word.strip("?.,") for word in prompt.text.split() if word.startswith("LK-")), "LK-0"
    )
    wanted = {"look_up_order": {"order": order}, "refund": {"order": order, "euros": 42}}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": f"call_{place}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for place, (name, arguments) in enumerate(wanted.items())
        ],
    }


async def run_tool(call: sessiontree.ToolCall, slow_bank: bool) -> str:
    """Do what the model asked for."""
    print(f"  agent: {call.name}({json.dumps(call.arguments)})", flush=True)
    if call.name == "refund":
        await asyncio.sleep(60 if slow_bank else 0.05)
        return f"42 euros were paid back for {call.arguments['order']}"
    return "paid 42 euros on 3 September, lost on the way"


async def answer(chat: sessiontree.Conversation, turn: sessiontree.Turn, slow_bank: bool) -> None:
    """Ask the model and run its tools until it has nothing left to call."""
    while True:
        reply = await turn.add(model(await chat.path()))
        if not turn.open_calls:
            print(f"  agent: {reply.text}", flush=True)
            return
        for call in turn.open_calls:
            result = await run_tool(call, slow_bank)
            await turn.add({"role": "tool", "tool_call_id": call.id, "content": result})


async def main(store_file: str, topic: str, prompt: str, slow_bank: bool) -> None:
    async with sessiontree.open_store(store_file) as store:
        chat = await store.conversation(topic, owner=OWNER, system=SYSTEM)
        found = await chat.resume()
        async with chat.turn(resume=found) as turn:
            if found.interrupted:
                print(f"  agent: resumed at message {chat.head}; result unknown of", end=" ")
                print(", ".join(f"{c.name}({json.dumps(c.arguments)})" for c in found.interrupted))
                await turn.interrupt()
            else:
                await turn.add({"role": "user", "content": prompt})
            await answer(chat, turn, slow_bank)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("store")
    parser.add_argument("topic")
    parser.add_argument("prompt")
    parser.add_argument("--slow-bank", action="store_true")
    given = parser.parse_args()
    asyncio.run(main(given.store, given.topic, given.prompt, given.slow_bank))
