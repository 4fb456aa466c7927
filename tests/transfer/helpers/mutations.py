"""What can happen to a file: bytes, lines and values that are not as they were. All by chance,
and by the same seed the same."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

GARBAGE = (
    b"\0",
    b"\0" * 700,
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\r",
    b"\r\n",
    b'"',
    b"\\",
    b"{",
    b"[",
)
MORE_GARBAGE = (b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"]" * 9, b"NaN", b"-", b"\n\n", b"1" * 5_000)

RAW = {
    "deep": "[" * 700 + "]" * 700,
    "deeper": '{"content":' * 3_000 + "1" + "}" * 3_000,
    "deepest": "[" * 60_000 + "]" * 60_000,
    "long integer": "9" * 5_000,
    "large integer": "-123456789012345678901234567890",
    "infinite": "1e999",
    "tiny": "-1e-999",
    "not a number": "NaN",
    "lone surrogate": '"\\ud800"',
    "other half": '"a\\udfffb"',
    "pair": '"\\ud83d\\ude00"',
    "nul": '"\\u0000"',
    "key twice": '{"id":"a","id":7}',
}
"""JSON that no encoder would write, or not in this way."""
ODD = (None, True, False, 0, -1, 2**53, 0.5, "", " ", "x", [], {}, [None], {"type": "text"}, [[]])
ROLES = ("user", "assistant", "tool", "system", "mark", "developer", "model", "toolResult")

Step = Callable[[Random, bytes], bytes]


def mutated(random: Random, raw: bytes) -> bytes:
    """A file after one to four accidents."""
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 4))):
        raw = random.choice(STEPS)(random, raw)
    return raw


# --- bytes ------------------------------------------------------------------------------------


def cut(random: Random, raw: bytes) -> bytes:
    at = random.randrange(len(raw) + 1)
    return raw[:at] if random.random() < 0.7 else raw[at:]


def garbage(random: Random, raw: bytes) -> bytes:
    at = random.randrange(len(raw) + 1)
    over = at + random.choice((0, 0, 1, 20))
    return raw[:at] + random.choice(GARBAGE + MORE_GARBAGE) + raw[over:]


def flipped(random: Random, raw: bytes) -> bytes:
    made = bytearray(raw)
    for _ in range(random.randint(1, 6) if made else 0):
        made[random.randrange(len(made))] = random.randrange(256)
    return bytes(made)


def moved(random: Random, raw: bytes) -> bytes:
    """A piece that is lost, there twice, or elsewhere."""
    start, end = sorted(random.randrange(len(raw) + 1) for _ in range(2))
    piece, rest = raw[start:end], raw[:start] + raw[end:]
    at = random.randrange(len(rest) + 1)
    return random.choice((rest, raw[:end] + piece + raw[end:], rest[:at] + piece + rest[at:]))


# --- lines ------------------------------------------------------------------------------------


def lines(random: Random, raw: bytes) -> bytes:
    """Lines that are lost, there twice, elsewhere, or joined; other line ends."""
    rows = raw.splitlines(keepends=True)
    if not rows:
        return raw
    at, other = random.randrange(len(rows)), random.randrange(len(rows))
    how = random.randrange(6)
    if how == 0:
        del rows[at]
    elif how == 1:
        rows.insert(other, rows[at])
    elif how == 2:
        rows[at], rows[other] = rows[other], rows[at]
    elif how == 3:
        random.shuffle(rows)
    elif how == 4:
        rows[at] = rows[at].rstrip(b"\r\n")
    else:
        rows = [row.replace(b"\n", b"\r\n") for row in rows]
    return b"".join(rows)


# --- values -----------------------------------------------------------------------------------


def values(random: Random, raw: bytes) -> bytes:
    """A value somewhere that is another, of another kind, gone, or there twice."""
    rows = raw.splitlines()
    chosen = random.randrange(len(rows)) if rows else 0
    for start, end in ((0, len(rows)), (chosen, chosen + 1)):
        try:
            document = json.loads(b"\n".join(rows[start:end]))
        except (ValueError, RecursionError):
            continue
        changed = _changed(random, document, _names(raw))
        return b"\n".join([*rows[:start], changed, *rows[end:], b""])
    return raw


def _changed(random: Random, document: Any, names: list[str]) -> bytes:
    places = list(_places(document))
    for _ in range(random.choice((1, 1, 2, 5)) if places else 0):
        inside, key = random.choice(places)
        _change(random, inside, key, names)
    try:
        text = json.dumps(document, ensure_ascii=random.random() < 0.5)
    except (ValueError, RecursionError):
        return b""
    for name, literal in RAW.items():
        text = text.replace(f'"<{name}>"', literal)
    return text.encode("utf-8", "surrogatepass")


def _places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of a value: what it is in, and the key or index there."""
    waiting = [document]
    while waiting:
        inside = waiting.pop()
        if isinstance(inside, dict | list):
            keys = list(inside) if isinstance(inside, dict) else range(len(inside))
            for key in keys:
                yield inside, key
                waiting.append(inside[key])


def _change(random: Random, inside: Any, key: Any, names: list[str]) -> None:
    if isinstance(inside, dict) and key not in inside:
        return
    if isinstance(inside, list) and key >= len(inside):
        return
    how = random.randrange(8)
    if how == 0:
        del inside[key]
    elif how == 1 and isinstance(inside, list):
        inside.append(inside[key])
    elif how == 2 and isinstance(inside, dict):
        inside[random.choice(list(inside))] = inside[key]
    elif how < 5 and names:  # ids that are taken, that make circles, or lead nowhere
        inside[key] = random.choice(names)
    elif how == 5:
        inside[key] = f"<{random.choice(list(RAW))}>"
    elif how == 6:
        inside[key] = random.choice(ROLES)
    else:
        inside[key] = random.choice(ODD)


def _names(raw: bytes) -> list[str]:
    """Short strings of the file: among them its ids."""
    found = {piece.decode("ascii", "ignore") for piece in raw.split(b'"')[1:400:2]}
    return sorted(name for name in found if 0 < len(name) < 60)


STEPS: tuple[Step, ...] = (
    cut,
    garbage,
    flipped,
    moved,
    lines,
    lines,
    values,
    values,
    values,
    values,
)


# --- databases --------------------------------------------------------------------------------


def database(path: Path, tables: dict[str, list[dict[str, Any]]]) -> bytes:
    """A database with these rows; objects in them become JSON text."""
    with closing(sqlite3.connect(path)) as made, made:
        for table, rows in tables.items():
            columns = list(dict.fromkeys(key for row in rows for key in row))
            made.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
            for row in rows:
                cells = [_cell(row.get(column)) for column in columns]
                made.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(cells))})", cells)
    return path.read_bytes()


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list) else value
