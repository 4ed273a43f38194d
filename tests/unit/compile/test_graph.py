"""Circles are found and orders made in linear time, however deep the graph."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ork.compile.graph import find_cycle, in_topological_order

Links = dict[str, tuple[str, ...]]


@st.composite
def graphs(draw: st.DrawFn) -> Links:
    names = [f"t{index}" for index in range(draw(st.integers(1, 12)))]
    return {name: tuple(draw(st.lists(st.sampled_from(names), unique=True, max_size=4))) for name in names}


@given(graphs())
def test_a_graph_has_either_a_topological_order_or_a_cycle(links: Links) -> None:
    order = in_topological_order(links)
    cycle = find_cycle(links)
    assert (len(order) == len(links)) == (cycle is None)
    place = {name: index for index, name in enumerate(order)}
    assert all(place[above] < place[name] for name in order for above in links[name])


@given(graphs())
def test_each_step_of_a_cycle_is_a_dependency(links: Links) -> None:
    cycle = find_cycle(links)
    if cycle is not None:
        following = [*cycle[1:], cycle[0]]
        assert all(before in links[after] for before, after in zip(cycle, following, strict=True))
        assert len(set(cycle)) == len(cycle)


@pytest.mark.slow
def test_a_chain_of_a_hundred_thousand_tasks_does_not_recurse() -> None:
    links: Links = {f"t{index}": (f"t{index - 1}",) if index else () for index in range(100_000)}
    assert in_topological_order(links) == list(links)
    assert find_cycle(links) is None
    links["t0"] = ("t99999",)
    assert len(find_cycle(links) or []) == 100_000
