"""What goes wrong is drawn from the seed, and stops when it is told to."""

from __future__ import annotations

from random import Random

import pytest

from ork.testing.faults import FaultRates, Faults, SimulatedProcess, draw_rates
from ork.testing.kernel import Crashed, Kernel


def test_seeds_differ_in_kind() -> None:
    drawn = [draw_rates(Random(seed), Random(seed)) for seed in range(200)]
    for name in FaultRates.__match_args__:
        assert len({getattr(rates, name) for rates in drawn}) >= 2, f"{name} is the same in every world"
        assert any(getattr(rates, name) == 0 for rates in drawn), f"{name} is never absent"


def test_nothing_goes_wrong_any_more_once_faults_are_healed() -> None:
    kernel = Kernel(0)
    faults = Faults(0, kernel, FaultRates(crash=1.0, outages=1, full_disks=1, partitions=1))
    faults.plan_windows(0.0)
    assert faults.happens(1.0)
    assert faults.store_is_down()
    assert faults.disk_is_full()
    assert faults.machines_are_cut_off()
    faults.heal()
    assert not faults.happens(1.0)
    assert not faults.store_is_down()
    assert not faults.disk_is_full()
    assert not faults.machines_are_cut_off()


def test_a_dead_process_does_no_io_any_more() -> None:
    kernel = Kernel(0)
    process = SimulatedProcess("p", kernel, Faults(0, kernel, FaultRates()))
    with pytest.raises(Crashed):
        process.die()
    with pytest.raises(Crashed):
        process.around_object_io()
