"""Snapshots: 12,000 characters of old turns as pages, in pure Python.

    python benchmarks/snapshot.py [--quick] [--unifont FILE]

A figure is everything from the text to PNG files and exact words, in milliseconds of the
processor (by the wall beside it, which on a busy machine is more); the text is another one
in each round, so that nothing is taken from what was kept. Beside it: bytes of the pages,
and estimated tokens of pages (with all that is told beside them) and of the same text.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from measure import (
    Bench,
    Broken,
    Clock,
    Figure,
    Machine,
    at_most,
    expect,
    milliseconds,
    number,
    table,
)

from sessiontree.core.reclaim import glyphs, pages, readers, snapshot
from sessiontree.core.reclaim.snapshot import Options, Snapshot

CHARACTERS = 12_000

READERS = (
    ("anthropic", "claude-opus-4-8"),
    ("anthropic", "claude-sonnet-4-6"),
    ("openai_responses", "gpt-6.2"),
    ("gemini", "gemini-3-pro"),
)
ENGLISH = """
the order of this parcel was sent to a warehouse in Lyon and we wait for its return
def read(self, path): return [line.strip() for line in open(path)] # where the file is
error: expected 3 columns, found 2 at line 118; retry with --force or see docs/format.md
customer asked whether refunds above 250.00 EUR need approval by two people (LK-266415)
"""
VIETNAMESE = """
đơn hàng của khách đã được gửi đến kho ở Hà Nội và chúng tôi đang chờ hoàn trả
khách hỏi liệu khoản hoàn tiền trên 250.000 đồng có cần hai người phê duyệt hay không
lỗi: cần 3 cột, chỉ thấy 2 ở dòng 118; thử lại với --force hoặc xem docs/format.md
"""
CHINESE = "客户订单已经发送到上海仓库我们正在等待退货超过二百元的款项需要两个人批准吗请查看文件"


async def run(bench: Bench) -> AsyncIterator[Figure]:
    """The subject, for shipped glyphs."""
    rounds = bench.rounds(41)
    for name, words in (("English", ENGLISH), ("JSON", ""), ("Vietnamese", VIETNAMESE)):
        for target, model in READERS:
            yield _figure(name, Options(target, model), words, rounds)


def with_unifont(file: Path, rounds: int) -> Iterator[Figure]:
    """Chinese, and what reading the font takes."""
    with Clock() as clock, file.open() as lines:
        font = glyphs.load_hex(lines)
    yield Figure(f"reading {file.name}, once", (1000 * clock.seconds,), None, "ms")
    for target, model in READERS:
        yield _figure("Chinese, Unifont", Options(target, model, font=font), CHINESE, rounds)


def _figure(name: str, options: Options, words: str, rounds: int) -> Figure:
    chance = random.Random(name)
    glyphs.shipped()
    times: list[float] = []
    wall: list[float] = []
    one = snapshot.of_text(_text(chance, name, words), options)
    for _ in range(rounds):
        text = _text(chance, name, words)
        with Clock() as clock:
            start = time.thread_time()
            found = snapshot.of_text(text, options)
            times.append(1000 * (time.thread_time() - start))
        wall.append(clock.seconds)
        _check(found, text, options)
    sizes = ", ".join(f"{page.width}x{page.height}" for page in one.pages) or "no page"
    size = sum(len(page.png) for page in one.pages)
    return Figure(
        f"{name}, {CHARACTERS:,} characters for {options.model}",
        tuple(times),
        at_most(20, 20),
        "ms",
        ours=f"best {number(min(times))} ms, by the wall {milliseconds(wall)}; {sizes}; "
        f"{size / 1000:.0f} kB",
        plain=f"{one.tokens:,} tokens, text {one.text_tokens:,}" if one.pages else one.reason,
    )


def _text(chance: random.Random, name: str, words: str) -> str:
    """Text of turns, no two alike, so many characters as are drawn."""
    if name == "JSON":
        pieces = iter(lambda: _json(chance), None)
    elif name.startswith("Chinese"):
        pieces = iter(lambda: "".join(chance.choices(words, k=20)) + "\uff0c\n", None)
    else:
        pieces = iter(lambda: " ".join(chance.choices(words.split(), k=14)) + "\n", None)
    text = ""
    while len(text) < CHARACTERS:
        text += f"¶user: {next(pieces)}" if len(text) % 1000 < 80 else next(pieces)
    return text[: CHARACTERS - 1] + "\n"


def _json(chance: random.Random) -> str:
    order = f"LK-{chance.randrange(10**6)}"
    return f'{{"order":"{order}","price":{chance.randrange(10**5) / 100},"items":[{{"n":1}}]}}\n'


def _check(found: Snapshot, text: str, options: Options) -> None:
    """Everything is on the pages or beside them, and was drawn for this text."""
    if not found.pages:
        expect(found.reason.startswith("pages would cost"), True, found.reason)
        return
    shown = "".join(page.text for page in found.pages)
    expect(found.missing, {}, "characters without a glyph")
    expect(found.left_out, 0, "characters left out")
    expect(pages.drawn(text).replace("█", "\n").startswith(shown), True, "the text is shown")
    geometry = readers.geometry_of(options.model, options.target)
    expect(max(page.height for page in found.pages) <= geometry.height, True, "pages fit")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few rounds")
    parser.add_argument("--unifont", type=Path, metavar="FILE", help="unifont.hex, for Chinese")
    wish = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine.here(Path(folder), wish.quick)
        bench = Bench(Path(folder), wish.quick)
        figures = asyncio.run(_all(bench, wish.unifont))
    print(table(figures))
    print(f"\n{machine}")


async def _all(bench: Bench, unifont: Path | None) -> list[Figure]:
    figures = [figure async for figure in run(bench)]
    return figures + (list(with_unifont(unifont, bench.rounds(41))) if unifont else [])


if __name__ == "__main__":
    try:
        main()
    except Broken as error:
        sys.exit(f"benchmark broken: {error}")
