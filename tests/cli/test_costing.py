"""cost: what people and programs are told, what is drawn, and what is said without prices."""

from __future__ import annotations

import asyncio
import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

import sessiontree
from sessiontree.cli import chart
from sessiontree.cli.chart import Bar
from sessiontree.core import prices

Run = Callable[..., Result]
AsJson = Callable[..., Any]
PRICE = ("--price", "m=1000000/1000000")
"""A dollar for each token."""


async def fill(target: Path) -> dict[str, int]:
    """
    hello ── hi ┬── one
                └── ask ── two ← head
    """
    async with sessiontree.open_store(target, durability="normal") as store:
        chat = await store.conversation("T-1", owner="camille")

        async def turn(prompt: str, answer: str, **facts: Any) -> list[int]:
            async with chat.turn() as turn:
                await turn.add({"role": "user", "content": prompt})
                await turn.add({"role": "assistant", "content": answer}, **facts)
            return [message.id for message in await chat.path(newest=2)]

        hello, hi = await turn("hello", "hi", usage=used(100, 10, cached=40), model="m")
        prompt, one = await turn("one?", "one", usage=used(200, 20), model="other<model>")
        await chat.branch(hi)
        ask, two = await turn("and \x1b[31mtwo?", "two " * 50)
        fork = await chat.fork(topic="T-2")
        return {
            "chat": chat.id, "hello": hello, "hi": hi, "prompt": prompt, "one": one, "ask": ask,
            "two": two, "fork": fork.id,
        }  # fmt: skip


def used(sent: int, output: int, cached: int = 0) -> dict[str, Any]:
    return {
        "prompt_tokens": sent,
        "completion_tokens": output,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


@pytest.fixture
def told(store: Path) -> dict[str, int]:
    return asyncio.run(fill(store))


def test_the_whole_tree_and_the_path_of_the_head_are_told(run: Run, told: dict[str, int]) -> None:
    result = run("cost", "camille/T-1", *PRICE)
    assert result.exit_code == 0, result.output
    lines = {line.split("  ")[0]: line.split() for line in result.stdout.splitlines()}
    assert lines["whole tree"][2] == "3"
    assert lines["active path"][2] == "2"
    assert lines["m"][1:7] == ["1", "60", "40", "0", "10", "110.0000"]
    assert "other<model>" in lines
    assert "~ estimated: nothing was reported for 1 of 3." in result.stdout
    assert "? the price is unknown: other<model>, (not told)" in result.stdout


def test_an_estimate_and_an_unknown_price_are_marked(run: Run, told: dict[str, int]) -> None:
    result = run("cost", told["chat"], *PRICE)
    line = next(line for line in result.stdout.splitlines() if line.startswith("(not told)"))
    assert line.split()[3].startswith("~")
    assert line.split()[7] == "?"


def test_programs_get_every_figure(as_json: AsJson, told: dict[str, int]) -> None:
    found = as_json("cost", told["chat"], *PRICE, "--model", "m")
    assert (found["conversation"], found["head"]) == (told["chat"], told["two"])
    assert found["total"]["requests"] == 3
    assert found["total"]["estimated"] == found["path"]["estimated"] == 1
    estimate = found["turns"][2]
    assert estimate["preview"].endswith("two?")
    assert estimate["input"] >= 110
    assert found["path"]["dollars"] == 110 + estimate["input"] + estimate["output"]
    assert {each["model"]: each["unpriced"] for each in found["models"]} == {
        "m": 0,
        "other<model>": 1,
    }
    assert [(t["message_id"], t["on_path"]) for t in found["turns"]] == [
        (told["hello"], True),
        (told["prompt"], False),
        (told["ask"], True),
    ]
    assert [(b["leaf"], b["since"], b["is_head"]) for b in found["branches"]] == [
        (told["one"], told["hi"], False),
        (told["two"], told["hi"], True),
    ]
    assert found["branches"][0]["own"]["input"] == 200
    assert found["branches"][0]["path"]["cached"] == 40


def test_what_a_fork_brought_along_is_told_apart(
    as_json: AsJson, run: Run, told: dict[str, int]
) -> None:
    found = as_json("cost", told["fork"], *PRICE)
    assert found["inherited"] == found["total"] == found["path"]
    assert "before the fork" in run("cost", told["fork"], *PRICE).stdout
    assert as_json("cost", told["chat"])["inherited"]["requests"] == 0


@pytest.mark.parametrize(("by", "names"), [("turn", ["hello", "one?"]), ("branch", ["one", "two"])])
def test_figures_are_told_by_turn_and_by_branch(
    run: Run, told: dict[str, int], by: str, names: list[str]
) -> None:
    result = run("cost", told["chat"], "--by", by, *PRICE)
    assert result.exit_code == 0
    for name in names:
        assert name in result.stdout
    assert "\x1b" not in result.stdout


def test_bars_are_drawn_into_a_file(run: Run, told: dict[str, int], tmp_path: Path) -> None:
    file = tmp_path / "cost.svg"
    assert run("cost", told["chat"], *PRICE, "--svg", file).exit_code == 0
    root = ElementTree.parse(file).getroot()
    words = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "other<model>" in words
    assert "$110.0000" in words


def test_a_conversation_in_which_no_model_answered_says_so(run: Run, store: Path) -> None:
    async def make() -> None:
        async with sessiontree.open_store(store) as opened:
            await opened.conversation("silent")

    asyncio.run(make())
    assert run("cost", "silent").stdout == "no model has answered in this conversation\n"


def test_without_the_package_tokens_are_told_and_how_to_get_prices(
    run: Run, told: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prices, "installed", lambda: False)
    result = run("cost", told["chat"])
    assert result.exit_code == 0
    assert "60" in result.stdout
    assert "pip install 'sessiontree[prices]'" in result.stderr
    plan = run("cost", "--plan", "--model", "gpt-5.5")
    assert plan.exit_code == 1
    assert "pip install 'sessiontree[prices]'" in plan.stderr
    assert plan.stderr.count("\n") == 1


def test_help_names_every_option(run: Run) -> None:
    result = run("cost", "--help")
    assert result.exit_code == 0
    assert "INPUT/OUTPUT" in result.stdout
    assert "--no-cache" in result.stdout


def test_a_real_session_costs_what_its_program_says(
    run: Run, as_json: AsJson, corpus: Path
) -> None:
    """pi writes what each request cost."""
    file = corpus / "pi/before-compaction.jsonl"
    said = [
        json.loads(line).get("message", {}).get("usage") for line in file.read_text().splitlines()
    ]
    assert run("import", file).exit_code == 0
    found = as_json("cost", 1)["total"]
    reports = [usage for usage in said if usage]
    assert found["requests"] == len(reports) == 484
    assert found["dollars"] == pytest.approx(sum(usage["cost"]["total"] for usage in reports))
    assert found["output"] == sum(usage["output"] for usage in reports)
    assert found["estimated"] == 0


def test_a_real_session_of_repeated_reports_counts_each_request_once(
    run: Run, as_json: AsJson, corpus: Path
) -> None:
    file = corpus / "claude-code/session-fe5e1c67.jsonl"
    largest: dict[str, dict[str, int]] = {}
    for line in file.read_text().splitlines():
        said = json.loads(line)
        if said.get("type") == "assistant":
            usage = said["message"]["usage"]
            before = largest.get(said["requestId"])
            if before is None or usage["output_tokens"] > before["output_tokens"]:
                largest[said["requestId"]] = usage
    assert run("import", file).exit_code == 0
    found = as_json("cost", 1)["total"]
    assert found["requests"] == len(largest) == 170
    for ours, theirs in [
        ("input", "input_tokens"),
        ("cached", "cache_read_input_tokens"),
        ("written", "cache_creation_input_tokens"),
        ("output", "output_tokens"),
    ]:
        assert found[ours] == sum(usage[theirs] for usage in largest.values())


# ---- a month -------------------------------------------------------------------------

SMALL = (
    "--users", 2, "--sessions", 3, "--turns", 3, "--prompt", 10, "--answer", 20, "--calls", 1,
    "--results", 0, "--system", 100, "--no-cache", "--price", "m=1/5",
)  # fmt: skip


def test_a_month_is_users_times_sessions_times_what_each_request_sends(as_json: AsJson) -> None:
    found = as_json("cost", "--plan", "--model", "m", *SMALL)
    (only,) = found["models"]
    assert found["load"]["users"] == 2
    assert only["full"]["requests"] == 2 * 3 * 3
    assert only["full"]["input"] == 6 * (110 + 140 + 170)
    assert only["full"]["dollars"] == pytest.approx(6 * (420 + 5 * 60) / 1e6)
    assert only["ladder"] == only["full"]


def test_models_are_compared_with_and_without_a_ladder(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "plan.svg"
    result = run(
        "cost", "--plan", "--model", "m", "--model", "n", "--price", "m=1/5", "--price", "n=2/9",
        "--no-cache", "--svg", file,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert result.stdout.count("full history") == result.stdout.count("ladder  ") == 2
    assert "m: largest request 299,700 tokens, with a ladder 76,380; saves" in result.stdout
    assert len(list(ElementTree.parse(file).getroot())) > 12


def test_a_month_on_models_that_are_known(as_json: AsJson, run: Run) -> None:
    if not prices.installed():
        pytest.skip("the extra `prices` is not installed")
    found = as_json("cost", "--plan")
    assert len(found["models"]) == 4
    assert all(each["full"]["dollars"] > 0 for each in found["models"])
    small = as_json("cost", "--plan", "--model", "claude-sonnet-4-20250514")["models"][0]
    assert small["window"] == 200_000
    assert 1 < small["full"]["ends"] < 40
    assert small["ladder"]["ends"] is None
    assert (
        "is refused (window 200,000)"
        in run("cost", "--plan", "--model", "claude-sonnet-4-0").stdout
    )


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("1", "--plan"),
        ("99",),
        ("--plan", "--model", "made-up"),
        ("--plan", "--price", "m"),
        ("--plan", "--model", "m", "--price", "m=1/1", "--budget", "10"),
        ("--plan", "--model", "m", "--price", "m=1/1", "--turns", "1000000"),
        ("1", "--model", "a", "--model", "b"),
        ("1", "--svg", "/none/such/file.svg"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(
    run: Run, told: dict[str, int], arguments: tuple[str, ...]
) -> None:
    result = run("cost", *arguments)
    assert result.exit_code == 1
    assert result.stderr.startswith("sessiontree: ")
    assert result.stderr.count("\n") == 1


# ---- bars ----------------------------------------------------------------------------


def test_a_bar_is_as_long_as_its_value() -> None:
    assert chart.bar(1, 1, 10) == "█" * 10
    assert chart.bar(0.5, 1, 10) == "█" * 5
    assert chart.bar(0.55, 1, 10) == "█" * 5 + "▌"
    assert chart.bar(1e-9, 1, 10) == "▏"
    assert chart.bar(0, 1, 10) == chart.bar(0, 0, 10) == chart.bar(1, 0, 10) == ""


def test_a_drawing_holds_whatever_a_label_says() -> None:
    nasty = "</text><script>alert(1)</script>&\x00\x1b[31m\ud800"
    drawn = chart.svg(nasty, [Bar(nasty, 1, nasty), Bar("none", 0, "0", 1)], [nasty])
    root = ElementTree.fromstring(drawn)
    assert not list(root.iter("{http://www.w3.org/2000/svg}script"))
    assert "script" in "".join(root.itertext())
