"""Pictures of the graph."""

from __future__ import annotations

from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from ork.compile.drawing import draw_mermaid, draw_svg, draw_text
from ork.model.workflow import Command, CompiledWorkflow, Const, TaskSpec


def workflow(links: dict[str, list[str]]) -> CompiledWorkflow:
    action = Command((Const("x"),))
    return CompiledWorkflow(
        "w", tuple(TaskSpec(name, "process", action, tuple(above)) for name, above in links.items())
    )


@st.composite
def acyclic(draw: st.DrawFn) -> dict[str, list[str]]:
    names = [f"t{index}" for index in range(draw(st.integers(1, 14)))]
    return {
        name: draw(st.lists(st.sampled_from(names[:index]), unique=True, max_size=4)) if index else []
        for index, name in enumerate(names)
    }


def test_a_diamond_is_drawn_with_a_branch_and_a_join() -> None:
    assert draw_text(workflow({"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]})) == [
        "● a",
        "├─╮",
        "● │ b",
        "│ │",
        "│ ● c",
        "├─╯",
        "● d",
    ]


def test_independent_tasks_are_not_connected() -> None:
    assert draw_text(workflow({"a": [], "b": []})) == ["● a", "● b"]


def test_lines_to_other_tasks_are_crossed() -> None:
    links = {"a": [], "b": [], "c": ["a", "b"], "x": [], "y": ["x", "c"], "z": ["a", "y", "b"]}
    assert "╰─│─┤" in draw_text(workflow(links))


@given(acyclic())
def test_every_task_is_drawn_once_and_below_what_it_depends_on(links: dict[str, list[str]]) -> None:
    lines = draw_text(workflow(links))
    order = [line.split()[-1] for line in lines if "●" in line]
    assert sorted(order) == sorted(links)
    assert all(order.index(above) < order.index(name) for name in links for above in links[name])


def test_a_graph_too_large_for_a_picture_is_listed() -> None:
    links = {"a": [], **{f"t{index}": ["a"] for index in range(1000)}}
    lines = draw_text(workflow(links))
    assert lines[:2] == ["a", "t0 ← a"]
    assert len(lines) == 1001


def test_mermaid_has_a_node_for_every_task_and_an_arrow_for_every_dependency() -> None:
    assert draw_mermaid(workflow({"a": [], "end": ["a"]})) == ('flowchart LR\n  t0["a"]\n  t1["end"]\n  t0 --> t1\n')


@given(acyclic())
def test_the_svg_is_well_formed_and_complete(links: dict[str, list[str]]) -> None:
    root = ElementTree.fromstring(draw_svg(workflow(links)))
    space = "{http://www.w3.org/2000/svg}"
    assert {node.text for node in root.iter(f"{space}text")} == set(links)
    assert len(list(root.iter(f"{space}path"))) == sum(map(len, links.values()))
    assert not list(root.iter(f"{space}script"))
