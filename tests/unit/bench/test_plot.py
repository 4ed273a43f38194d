from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

from perf.plot import draw

from ork.bench.measure import one_result

SVG = "{http://www.w3.org/2000/svg}"


def part(scenario: str, size: int, rate: float, milliseconds: float) -> dict[str, Any]:
    latency = {"p50": milliseconds, "p95": None, "p99": None}
    known = {"tasks": size, "size": size, "tasks_per_second": rate, "latency_ms": latency}
    return one_result(scenario, {"what": "a floor"}, (), **known)


def test_each_scenario_is_a_line_with_a_dot_for_each_size_in_both_panels() -> None:
    picture = ElementTree.fromstring(
        draw([part("wide", 1000, 9e3, 0.1), part("wide", 10, 5e3, 0.2), part("deep", 10, 400, 2)])
    )
    lines = picture.findall(f"{SVG}polyline")
    assert len(lines) == 4
    assert len(picture.findall(f"{SVG}circle")) == 2 * 3 + 2
    first = [float(place.split(",")[0]) for place in lines[0].attrib["points"].split()]
    assert first == sorted(first)


def test_everything_is_inside_the_picture() -> None:
    picture = ElementTree.fromstring(draw([part("history", size, 300, 3) for size in (0, 1, 999_999, 1_000_000)]))
    width, height = float(picture.attrib["width"]), float(picture.attrib["height"])
    for dot in picture.findall(f"{SVG}circle"):
        assert 0 < float(dot.attrib["cx"]) < width
        assert 0 < float(dot.attrib["cy"]) < height


def test_names_are_text_and_nothing_measured_is_said() -> None:
    assert "a&lt;b" in draw([part("a<b", 1, 1, 1)])
    assert draw([]).count("nothing was measured") == 2
