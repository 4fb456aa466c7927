"""Writes the session that `sessiontree demo` imports: made up, in Claude Code's format.

    python tools/demo_session.py > sessiontree/cli/demo_session.jsonl

The same text each time; a test holds the shipped file equal to it. It has what real ones
have: dozens of turns, parallel tool calls whose results hang beside the next call, two
prompts that were edited and run again, a call that was interrupted, long outputs.
"""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta

SESSION = str(uuid.uuid5(uuid.NAMESPACE_URL, "sessiontree/demo"))
START = datetime(2026, 9, 14, 8, 30, tzinfo=UTC)
MODEL = "claude-opus-4-8"

# (prompt, steps, answer); a step is a list of parallel calls (tool, input, output).
TURNS = [
    (
        "The parcel page shows 'delivered' for parcels that are still in the van. Find out why.",
        [
            [("Grep", {"pattern": "delivered"}, "parcels/status.py:41\nparcels/status.py:58\nweb/page.py:112")],
            [
                ("Read", {"file_path": "parcels/status.py"}, "@status"),
                ("Read", {"file_path": "web/page.py"}, "@page"),
                ("Bash", {"command": "git log --oneline -5 parcels/status.py"},
                 "9f21c07 Treat a missing scan as the last one\n1c0be55 Read scans from the new feed\n77ad120 Add status"),
            ],
        ],
        "`status_of` takes the last scan in the list, but the new feed sends scans newest first. So the "
        "*oldest planned* event wins, and that is the delivery that the depot plans in the morning.",
    ),
    (
        "Write a test that shows it before you touch anything.",
        [
            [("Write", {"file_path": "tests/test_status.py", "content": "def test_newest_scan_wins(): ..."},
              "File created: tests/test_status.py")],
            [("Bash", {"command": "pytest -q tests/test_status.py"}, "@failing")],
        ],
        "The test fails as it should: it gets `delivered`, and expects `in the van`.",
    ),
    (
        "Good. Fix it.",
        [
            [("Edit", {"file_path": "parcels/status.py", "old_string": "scans[-1]",
                       "new_string": "max(scans, key=when)"}, "1 replacement in parcels/status.py")],
            [("Bash", {"command": "pytest -q"}, "214 passed in 3.91s")],
        ],
        "`status_of` now takes the scan with the newest time, whatever the order of the feed. All 214 tests pass.",
    ),
    ("How many parcels were shown wrongly last week?",
     [[("Bash", {"command": "python -m parcels.audit --since 7d"}, "@audit")]],
     "1,184 of 93,410 parcels were shown as delivered too early, for 5 hours and 12 minutes at the median."),
    ("Which depots?",
     [[("Bash", {"command": "python -m parcels.audit --since 7d --by depot"}, "@depots")]],
     "Nearly all in Lyon and Ghent: they moved to the new feed first. The other depots move next month."),
    ("Draft a note for the support team.", [],
     "Between 7 and 14 September some parcels from Lyon and Ghent were shown as delivered while they were "
     "still in the van. This is mended. Nothing was lost; if a customer asks, look at the last scan."),
    ("Shorter, and without the dates.", [],
     "Some parcels from Lyon and Ghent were shown as delivered too early. This is mended; nothing was lost."),
    ("Now the page itself: 4 seconds until it shows. Why?",
     [[("Bash", {"command": "python -m web.profile /parcel/LK-266415"}, "@profile"),
       ("Read", {"file_path": "web/page.py"}, "@page")]],
     "It asks the database once per scan: 38 queries for one parcel. One query with a join takes 12 ms."),
    ("Do it.",
     [[("Edit", {"file_path": "web/page.py", "old_string": "for scan in", "new_string": "rows = join("},
        "1 replacement in web/page.py")],
      [("Bash", {"command": "pytest -q"}, "1 failed, 213 passed in 4.02s\nFAILED tests/test_page.py::test_no_scans")],
      [("Edit", {"file_path": "web/page.py", "old_string": "join(", "new_string": "left_join("},
        "1 replacement in web/page.py")],
      [("Bash", {"command": "pytest -q"}, "214 passed in 3.77s")]],
     "One query now, 11 ms. A parcel without scans fell out of the join at first; the left join keeps it."),
    ("Can the map be left out on phones?",
     [[("Grep", {"pattern": "map"}, "web/page.py:77\nweb/map.js:1"), ("Glob", {"pattern": "web/*.css"}, "web/page.css")]],
     "Yes: the map is a block of its own. A media query in page.css hides it, and the script then loads nothing."),
    ("Do that, below 600 px.",
     [[("Edit", {"file_path": "web/page.css", "old_string": ".map {", "new_string": "@media (max-width: 600px) {"},
        "1 replacement in web/page.css")]],
     "Done. On a phone the page is 41 kB instead of 612 kB."),
    ("What does the feed say about time zones?",
     [[("Bash", {"command": "head -c 9000 feed/sample.json"}, "@feed")]],
     "Times bear an offset, but Ghent sends local times without one. They are read as UTC, two hours off in summer."),
]  # fmt: skip

MORE = [
    (
        "Is it worth mending now?",
        "Yes: it makes 'out for delivery' appear before the parcel reaches the van.",
    ),
    (
        "Which place would you mend it in?",
        "In the reader of the feed, so that everything behind it sees true times.",
    ),
    (
        "Show me the line.",
        "`when = parse(event['at'])` in feed/reader.py, line 88: it should know the depot.",
    ),
    (
        "Where are the depots' zones kept?",
        "In depots.toml, key `zone`. Ghent has `Europe/Brussels`.",
    ),
    (
        "Write it.",
        "Done: `when = parse(event['at'], zone=depot.zone)`, and a test with a Ghent event in July.",
    ),
    ("And in winter?", "The zone knows: one hour then. The test has a January event too."),
    (
        "What about the night the clocks change?",
        "An hour happens twice; the feed's sequence number decides.",
    ),
    (
        "Good. Anything else you saw?",
        "Labels are printed from the same reader, so they were two hours off as well.",
    ),
    (
        "Tell the depot.",
        "Here is a message: 'Labels printed since June in Ghent show a time two hours early.'",
    ),
    (
        "Make a list of what we changed.",
        "status_of, the page's query, the map on phones, the time zones, 4 tests.",
    ),
    ("Put it in the changelog.", "Added under 'Unreleased', one line each."),
    ("Push it to the branch `scans`.", "Pushed: 5 commits."),
]

EDITED = [
    (2, "Good. Fix it, but keep the order of the feed: sort where it is read.",
     "The reader sorts the scans by time now, and `status_of` stays as it was. All 214 tests pass."),
    (6, "Shorter, and friendlier.",
     "Oops: some parcels from Lyon and Ghent said 'delivered' a little early. All is well again!"),
]  # fmt: skip

LONG = {
    "@status": "\n".join(
        f"{n:>4}\tdef status_{n}(scans): return newest(scans).state  # states of depot {n}" for n in range(1, 160)
    ),
    "@page": "\n".join(f"{n:>4}\t    <li class='scan' data-n='{n}'>{{{{ scan.at }}}}</li>" for n in range(1, 120)),
    "@failing": "F\n" + "\n".join(f"  tests/test_status.py:{n}: in test_newest_scan_wins" for n in range(20, 60))
    + "\nE   AssertionError: assert 'delivered' == 'in the van'\n1 failed in 0.31s",
    "@audit": "\n".join(f"LK-{266000 + 7 * n}  shown early by {n % 9 + 1} h {n * 13 % 60:02} min" for n in range(400)),
    "@depots": "\n".join(f"{depot:<10} {count:>5}" for depot, count in
                         [("Lyon", 702), ("Ghent", 455), ("Turin", 14), ("Basel", 9), ("Metz", 4)]),
    "@profile": "\n".join(f"{n:>3} ms  SELECT * FROM scan WHERE id = {9000 + n}" for n in range(80, 118)),
    "@feed": json.dumps([{"at": f"2026-07-{n % 28 + 1:02}T0{n % 9}:15:00", "depot": "Ghent", "state": "sorted",
                          "parcel": f"LK-{n}"} for n in range(90)], indent=1),
}  # fmt: skip


class Session:
    """Collects the rows of one session file."""

    def __init__(self) -> None:
        self.rows: list[dict[str, object]] = []
        self.tip: str | None = None
        self.minute = 0

    def row(
        self, kind: str, message: dict[str, object], parent: str | None, **extra: object
    ) -> str:
        name = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{SESSION}/{len(self.rows)}"))
        at = START + timedelta(seconds=41 * len(self.rows))
        self.rows.append(
            {
                "parentUuid": parent,
                "isSidechain": False,
                "userType": "external",
                "cwd": "/home/camille/parcels",
                "sessionId": SESSION,
                "version": "2.1.200",
                "gitBranch": "scans",
                "type": kind,
                "message": message,
                "uuid": name,
                "timestamp": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                **extra,
            }
        )
        self.tip = name
        return name

    def prompt(self, text: str, parent: str | None) -> str:
        return self.row("user", {"role": "user", "content": text}, parent)

    def says(self, block: dict[str, object], api_id: str, parent: str | None, words: int) -> str:
        usage = {"input_tokens": 900 + 31 * len(self.rows), "output_tokens": words}
        message = {
            "id": api_id,
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": [block],
            "stop_reason": None,
            "usage": usage,
        }
        return self.row("assistant", message, parent, requestId=f"req_{api_id[4:]}")

    def answer(self, text: str, parent: str | None) -> str:
        return self.says(
            {"type": "text", "text": text}, f"msg_{len(self.rows):04}", parent, len(text) // 4
        )

    def step(self, calls: list[tuple[str, dict[str, str], str]], parent: str | None) -> str:
        """Parallel calls, a row each; the result of each hangs below its own call."""
        api_id = f"msg_{len(self.rows):04}"
        asked: list[tuple[str, str, str]] = []
        for tool, arguments, output in calls:
            call = f"toolu_{len(self.rows):04}"
            parent = self.says(
                {"type": "tool_use", "id": call, "name": tool, "input": arguments},
                api_id,
                parent,
                40,
            )
            asked.append((parent, call, LONG.get(output, output)))
        for below, call, output in asked:
            block = {"type": "tool_result", "tool_use_id": call, "content": output}
            message: dict[str, object] = {"role": "user", "content": [block]}
            self.row("user", message, below, toolUseResult={"stdout": output})
        assert self.tip is not None
        return self.tip


def build() -> list[dict[str, object]]:
    """The rows of the whole session."""
    session = Session()
    session.rows.append(
        {"type": "summary", "summary": "Parcels shown as delivered too early", "leafUuid": ""}
    )
    before_prompt: dict[int, str | None] = {}
    tip: str | None = None
    for number, (prompt, steps, answer) in enumerate(TURNS):
        before_prompt[number] = tip
        for at, edited, other_answer in EDITED:
            if at == number:
                session.answer(other_answer, session.prompt(edited, tip))
        tip = session.prompt(prompt, tip)
        for calls in steps:
            tip = session.step(calls, tip)
        tip = session.answer(answer, tip)
    for prompt, answer in MORE:
        tip = session.answer(answer, session.prompt(prompt, tip))
    tip = session.prompt("Deploy it to the staging machine.", tip)
    call = {
        "type": "tool_use",
        "id": "toolu_last",
        "name": "Bash",
        "input": {"command": "make deploy STAGE=staging"},
    }
    session.says(call, "msg_last", tip, 30)  # the program was closed here: no result ever came
    session.rows[0]["leafUuid"] = session.tip
    return session.rows


if __name__ == "__main__":
    for entry in build():
        print(json.dumps(entry, ensure_ascii=False, separators=(",", ":")))
