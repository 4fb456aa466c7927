"""Charts: well-formed, the same each time, and every word and figure in them."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from itertools import pairwise

from chart import Panel, Row, axis, chart, tick_text
from hypothesis import given
from hypothesis import strategies as st

SVG = "{http://www.w3.org/2000/svg}"
values = st.floats(min_value=1e-6, max_value=1e9)
texts = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=40)
rows = st.builds(
    Row,
    texts,
    st.none() | values,
    texts,
    st.sampled_from(["ours", "peer"]),
    mark=st.none() | values,
)


@given(st.lists(rows, min_size=1, max_size=6), st.none() | st.tuples(values, texts))
def test_a_chart_of_anything_is_well_formed_and_stays_inside_its_frame(
    some: list[Row], line: tuple[float, str] | None
) -> None:
    root = ET.fromstring(chart("title", "note <&>", [Panel(some, "ms", line)]))
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    shapes = [*root.iter(f"{SVG}rect"), *root.iter(f"{SVG}line"), *root.iter(f"{SVG}text")]
    for shape in shapes:
        xs = [float(shape.attrib.get(name, 0)) for name in ("x", "x1", "x2")]
        ys = [float(shape.attrib.get(name, 0)) for name in ("y", "y1", "y2")]
        assert all(0 <= x <= width for x in xs)
        assert all(0 <= y <= height for y in ys)
    drawn = [text.text or "" for text in root.iter(f"{SVG}text")]
    for row in some:
        assert row.label in drawn
        assert row.text in drawn


def test_a_larger_value_has_a_longer_bar_and_no_value_has_none() -> None:
    some = [Row(str(v), v, "", "ours") for v in (3.0, 1.0, 7.0)] + [Row("x", None, "why", "peer")]
    root = ET.fromstring(chart("title", "note", [Panel(some, "ms")]))
    bars = [float(bar.attrib["width"]) for bar in root.iter(f"{SVG}rect") if "rx" in bar.attrib]
    _paper, third, first, seventh = bars
    assert first < third < seventh


@given(st.lists(values, min_size=1, max_size=8))
def test_an_axis_holds_all_of_its_values_in_their_order(some: list[float]) -> None:
    scale = axis(some)
    assert scale.low <= min(some)
    assert max(some) <= scale.high * (1 + 1e-9)
    assert len(scale.ticks) >= 2
    assert all(low < high for low, high in pairwise(scale.ticks))
    places = [scale.x(value) for value in sorted(some)]
    assert places == sorted(places)


def test_values_far_apart_get_a_logarithmic_axis_and_close_ones_begin_at_zero() -> None:
    assert axis([1, 1_000]).is_log
    assert not axis([400, 1_000]).is_log
    assert axis([400, 1_000]).ticks[0] == 0
    assert [tick_text(t) for t in axis([20, 15_000]).ticks] == ["10", "100", "1k", "10k", "100k"]


def test_the_same_figures_give_the_same_bytes() -> None:
    panels = [Panel([Row("a", 1.5, "1.5 ms", "ours", low=1, high=2, mark=1.2)], "ms")]
    assert chart("title", "note", panels) == chart("title", "note", panels)
