"""Random paths, with everything that happens to conversations, for properties of windows."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from paths import TARGETS, Msg, path, png

from sessiontree import formats

IDS = st.sampled_from(["call_0", "call_1", "a b", "x" * 70, "toolu_1", "é", ""])
TEXTS = st.sampled_from(["", " ", "hello", "word " * 40, "你好世界" * 10, '{"a": 1}'])
NAMES = st.sampled_from(["read", "write", "list"])
OUTPUTS = st.sampled_from(["", "ok", "line\n" * 80, '{"rows": [1, 2, 3]}'])


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "content": words}


@st.composite
def images(draw) -> dict[str, Any]:
    width = draw(st.sampled_from([10, 600, 2500, 9000]))
    data = png(width, 40)
    if draw(st.integers(0, 9)) == 0:
        data = data[:20]
    return {"type": "blob", "mime_type": "image/png", "modality": "image", "content": data}


@st.composite
def user_parts(draw) -> list[dict[str, Any]]:
    parts = [text(draw(TEXTS))]
    if draw(st.integers(0, 3)) == 0:
        parts += draw(st.lists(images(), min_size=1, max_size=3))
    return parts


def thinking(fmt: str, words: str) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "reasoning", "content": words, "provider": fmt}
    if fmt in ("anthropic", "bedrock"):
        part["signature"] = "sig"
    if fmt == "openai_responses":
        part["native"] = {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [],
            "encrypted_content": "e",
        }
    return part


@st.composite
def call_parts(draw, nth: int) -> dict[str, Any]:
    call_id = draw(st.one_of(st.just(f"call_{nth}"), IDS))
    part = {"type": "tool_call", "name": draw(NAMES), "arguments": {"path": "x"}}
    return part | ({"id": call_id} if call_id else {})


def result_of(call: dict[str, Any], output: Any, failed: bool) -> dict[str, Any]:
    part = {"type": "tool_call_response", "response": output, "name": call["name"]}
    part |= {"id": call["id"]} if "id" in call else {}
    return part | ({"is_error": True} if failed else {})


@st.composite
def steps(draw, fmt: str) -> list[tuple[str, list[dict[str, Any]]]]:
    """One call of tools, answered wholly, partly, late, twice or not at all."""
    said = [thinking(fmt, "hm")] if draw(st.booleans()) else []
    said += [text(draw(TEXTS))] if draw(st.booleans()) else []
    calls = [draw(call_parts(i)) for i in range(draw(st.integers(1, 4)))]
    events: list[tuple[str, list[dict[str, Any]]]] = [("assistant", said + calls)]
    output = draw(st.one_of(OUTPUTS, st.builds(lambda i: [text("shown"), i], images())))
    results = [result_of(call, output, draw(st.booleans())) for call in calls]
    fate = draw(st.sampled_from(["all"] * 6 + ["some", "none", "shuffled", "late", "twice"]))
    if fate == "some":
        results = results[: len(results) // 2]
    elif fate == "none":
        results = []
    elif fate == "shuffled":
        results = draw(st.permutations(results))
    elif fate == "late":
        events.append(("user", [text("meanwhile")]))
    elif fate == "twice":
        results = [*results, results[0]]
    if draw(st.booleans()):
        events += [("tool", [result]) for result in results]
    elif results:
        events.append(("tool", list(results)))
    return events


@st.composite
def turns(draw, fmt: str) -> list[tuple[str, list[dict[str, Any]]]]:
    events: list[tuple[str, list[dict[str, Any]]]] = []
    if draw(st.integers(0, 7)):
        events.append(("user", draw(user_parts())))
    for _ in range(draw(st.integers(0, 3))):
        events += draw(steps(fmt))
    if draw(st.integers(0, 3)):
        thought = [thinking(fmt, "so")] if draw(st.booleans()) else []
        events.append(("assistant", [*thought, text(draw(TEXTS))]))
    kind = draw(st.integers(0, 9))
    if kind == 0:
        events.append(("system", [text(f"system {draw(st.integers(0, 9))}")]))
    elif kind == 1:
        orphan = {"type": "tool_call_response", "id": "orphan", "response": "?", "name": "read"}
        events.append(("tool", [orphan]))
    elif kind == 2:
        events.append(("mark", []))
    return events


@st.composite
def random_paths(draw, fmt: str | None = None) -> list[Msg]:
    """A path in one format (or each message in any), with marks."""
    mixed = fmt is None and draw(st.integers(0, 3)) == 0
    own = fmt or draw(st.sampled_from(TARGETS))
    natives: list[Any] = []
    for turn in draw(st.lists(turns(own), min_size=1, max_size=4)):
        for role, parts in turn:
            if role == "mark":
                natives.append(draw(marks(len(natives))))
                continue
            name = draw(st.sampled_from(TARGETS)) if mixed else own
            for native in formats.codec(name).encode(role, parts):
                natives.append((native, {"format": name}))
    return path(natives, own)


@st.composite
def marks(draw, count: int) -> Any:
    kind = draw(st.sampled_from(["elide", "images", "cut", "summary"]))
    ref = draw(st.one_of(st.none(), st.integers(1, count))) if count else None
    native = {"role": "mark", "kind": kind}
    if kind == "summary":
        native["text"] = "what was said before"
    return native, {"ref_id": ref}
