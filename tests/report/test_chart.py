"""Charts put every point where it belongs."""

import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankshot.report.chart import HEIGHT, MOST_POINTS, WIDTH, chart, thinned, ticks

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)


@given(NUMBERS, NUMBERS)
def test_ticks_enclose_the_values(one, other):
    low, high = min(one, other), max(one, other)
    marks = ticks(low, high)
    assert marks == sorted(set(marks))
    slack = (marks[-1] - marks[0]) * 1e-6
    assert marks[0] <= low + slack
    assert marks[-1] >= high - slack
    assert 2 <= len(marks) <= 8


def test_ticks_are_round():
    assert ticks(0, 600) == [0, 200, 400, 600]
    assert ticks(0.61, 0.93) == [0.6, 0.7, 0.8, 0.9, 1.0]
    assert ticks(5, 5) == [5, 6]


def test_thinned():
    points = [(float(x), float(x % 7)) for x in range(10_000)]
    few = thinned(points)
    assert len(few) <= MOST_POINTS
    assert sum(y for _, y in few) / len(few) == pytest.approx(sum(y for _, y in points) / len(points), rel=1e-3)
    assert thinned(points[:50]) == points[:50]
    assert thinned([]) == []


def test_points_are_where_they_belong():
    drawn = chart("mAP <of> it", {"nothing": [], "rising": [(0, 0), (50, 50), (100, 100)], "level": [(0, 100), (100, 100)]})
    svg = ET.fromstring(re.sub(r"=(\w+)(?=[ />])", r'="\1"', re.search(r"<svg.*</svg>", drawn).group()))
    lines = {each.get("class"): each.get("points") for each in svg.iter("polyline")}
    assert lines.keys() == {"line s1", "line s2"}  # a name without points keeps its colour for itself
    rising = [tuple(map(float, each.split(","))) for each in lines["line s1"].split()]
    level = [tuple(map(float, each.split(","))) for each in lines["line s2"].split()]
    assert rising[0][0] < rising[1][0] < rising[2][0] <= WIDTH
    assert HEIGHT >= rising[0][1] > rising[1][1] > rising[2][1] >= 0  # up is up
    assert rising[1] == pytest.approx([(a + b) / 2 for a, b in zip(rising[0], rising[2], strict=True)], abs=0.1)
    assert level == [(rising[0][0], rising[2][1]), rising[2]]
    assert "mAP &lt;of&gt; it" in drawn
    assert "nothing" not in re.search(r"<div class=legend>.*", drawn).group()


def test_nothing_to_draw():
    assert chart("empty", {"a": []}) == ""
