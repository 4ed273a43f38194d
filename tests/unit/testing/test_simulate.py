"""What `ork sim` answers."""

from __future__ import annotations

from ork.testing.simulate import replay, simulate, simulate_command
from ork.testing.world import PARTS
from tests.simulation.mutants.hunt import applied, hunt
from tests.simulation.mutants.mutant_list import MUTANTS

MUTANT = next(mutant for mutant in MUTANTS if mutant.name == "one-retry-more")


def test_the_answer_has_the_promised_shape() -> None:
    lines: list[str] = []
    answer = simulate_command(None, None, 3, lines.append)
    assert answer["seeds"] == 3
    assert answer["violations"] == []
    assert len(answer["trace_hash"]) == 64
    assert lines[-1].startswith("3 seeds (")
    assert lines[-1].endswith(" with exceeded budgets), no promise broken")
    assert set(answer["played"]) == set(PARTS)


def test_one_seed_is_told_in_full() -> None:
    lines: list[str] = []
    answer = simulate_command(4, None, None, lines.append)
    assert answer["seeds"] == 1
    assert any(" created " in line for line in lines)


def test_as_many_seeds_as_fit_into_the_time() -> None:
    assert simulate_command(None, 0.5, None, lambda _line: None)["seeds"] >= 1
    assert simulate_command(None, 0.0, None, lambda _line: None)["seeds"] == 0


def test_a_seed_that_fails_is_named_with_the_command_that_replays_it() -> None:
    seed = hunt(MUTANT, range(100)).seed
    assert seed is not None
    lines: list[str] = []
    with applied(MUTANT):
        report = simulate([seed], lines.append)
    assert f"ork sim --seed {seed}" in "\n".join(lines)
    assert report.to_json()["violations"][0] == {
        "seed": seed,
        "invariant": report.violations[0][1].invariant,
        "detail": report.violations[0][1].detail,
    }


def test_a_replay_ends_with_what_was_found() -> None:
    seed = hunt(MUTANT, range(100)).seed
    assert seed is not None
    lines: list[str] = []
    with applied(MUTANT):
        report = replay(seed, lines.append)
    assert report.violations
    assert "promised:" in lines[-1]
