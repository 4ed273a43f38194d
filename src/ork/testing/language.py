"""Adds random language features to plain workflows: fan-out, conditions, rates, approvals, and so on."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from ork.model.record import Record, replaced
from ork.model.workflow import (
    Approval,
    CompiledWorkflow,
    Condition,
    Const,
    Op,
    Param,
    Rate,
    Ref,
    RunIf,
    SubWorkflow,
    TaskSpec,
)

PARAMS = ("number", "list", "width")


class Features(Record):
    """Probabilities per task. Without any of them, workflows consist of plain tasks only."""

    fan_out: float = 0.0
    conditions: float = 0.0
    rates: float = 0.0
    approvals: float = 0.0
    cache: float = 0.0
    deferral: float = 0.0
    children: float = 0.0
    is_plain: bool = False


PLAIN = Features(is_plain=True)


def draw_features(random: Random) -> Features:
    """Each feature is independently absent, rare or frequent, so some worlds have only one."""

    def chance(frequent: float) -> float:
        return random.choice((0.0, frequent / 3, frequent))

    return Features(
        fan_out=chance(0.6), conditions=chance(0.5), rates=chance(0.4), approvals=chance(0.3), cache=chance(0.8),
        deferral=chance(0.5),
    )  # fmt: skip


def draw_children(random: Random) -> float:
    """Drawn separately, so that worlds without sub-workflows do not change."""
    return random.choice((0.0, 0.0, 0.15, 0.4))


def draw_params(random: Random) -> dict[str, Any]:
    """Few different values, so that runs are often equal and use each other's cached results."""
    return {"number": random.randint(0, 1), "list": ["a", "b"][: random.randint(1, 2)], "width": random.choice((1, 2))}


def draw_pool_rates(random: Random, features: Features, pool: str) -> dict[str, Rate]:
    return {f"pool:{pool}": _draw_rate(random)} if random.random() < features.rates else {}


def enrich(workflow: CompiledWorkflow, random: Random, features: Features) -> CompiledWorkflow:
    """The same graph with more language features."""
    tasks: dict[str, TaskSpec] = {}
    for spec in workflow.tasks:
        tasks[spec.name] = _enrich_task(spec, tasks, random, features)
    return replaced(workflow, tasks=tuple(tasks.values()))


def _enrich_task(spec: TaskSpec, above: Mapping[str, TaskSpec], random: Random, features: Features) -> TaskSpec:
    if random.random() < features.conditions:
        spec = replaced(spec, when=tuple(_draw_condition(spec, above, random) for _ in range(random.choice((1, 1, 2)))))
    if random.random() < features.approvals / 2:
        timeout = random.choice((None, random.uniform(20, 150)))
        plain = TaskSpec(spec.name, "approval", Approval("go on?"), depends_on=spec.depends_on, timeout=timeout)
        return replaced(plain, run_if=spec.run_if, when=spec.when)
    if random.random() < features.fan_out:
        spec = _fan_out(spec, above, random)
    if random.random() < features.rates:
        spec = replaced(spec, rate=_draw_rate(random))
    if random.random() < features.cache:
        spec = replaced(spec, cache=random.choice((60.0, 10_000.0)))
    return spec


def with_children(workflow: CompiledWorkflow, child: str, random: Random, chance: float) -> CompiledWorkflow:
    """Replace some of its tasks by runs of another workflow."""
    return replaced(workflow, tasks=tuple(_perhaps_a_run(spec, child, random, chance) for spec in workflow.tasks))


def as_child(workflow: CompiledWorkflow) -> CompiledWorkflow:
    """The workflow without required params."""
    defaults = {"number": 1, "list": ["a"], "width": 2}
    params = tuple(Param(name, required=False, default=defaults[name]) for name in PARAMS)
    return replaced(workflow, params=params)


def _perhaps_a_run(spec: TaskSpec, child: str, random: Random, chance: float) -> TaskSpec:
    if isinstance(spec.action, Approval) or random.random() >= chance:
        return spec
    return replaced(spec, executor="workflow", action=SubWorkflow(child), cache=None, pool=None)


def _draw_rate(random: Random) -> Rate:
    return Rate(random.randint(1, 3), random.uniform(5, 60))


def _draw_condition(spec: TaskSpec, above: Mapping[str, TaskSpec], random: Random) -> Condition:
    if not spec.depends_on or random.random() < 0.3:
        return Condition(Ref(("params", "number")), Op.EQUALS, random.choice((0, 1)))
    upper = above[random.choice(spec.depends_on)]
    if isinstance(upper.action, Approval):
        return Condition(Ref(("tasks", upper.name, "output", "approved")), Op.EQUALS, True)
    path: tuple[str | int, ...] = ("tasks", upper.name, "output")
    if upper.fans_out:
        path = (*path, 0) if upper.parallel is None or upper.foreach is None else (*path, 0, 0)
    if random.random() < 0.2:
        return Condition(Ref((*path, random.choice(("n", "ghost")))), Op.EXISTS, random.random() < 0.5)
    op, value = random.choice(
        ((Op.EQUALS, 1), (Op.NOT_EQUALS, 1), (Op.LT, 3), (Op.LE, 1), (Op.GT, 0), (Op.GE, 1), (Op.IN, [1, 2, 3]))
    )
    return Condition(Ref((*path, "n")), op, value)


def _fan_out(spec: TaskSpec, above: Mapping[str, TaskSpec], random: Random) -> TaskSpec:
    kind = random.choice(("foreach", "foreach", "upstream", "upstream", "parallel", "both"))
    sources = [name for name in spec.depends_on if not isinstance(above[name].action, Approval)]
    foreach: Const | Ref | None = None
    parallel: int | Ref | None = None
    if kind == "upstream" and sources and spec.run_if in (RunIf.ALL_SUCCESS, RunIf.ALL_DONE):
        source = above[random.choice(sources)]
        rest = () if source.fans_out else ("list",)
        foreach = Ref(("tasks", source.name, "output", *rest))
    elif kind != "parallel":
        foreach = random.choice(
            (Const([{"x": n} for n in range(random.choice((0, 1, 2, 3, 5)))]), Ref(("params", "list")))
        )
    if kind in ("parallel", "both"):
        parallel = random.choice((1, 2, 3 if foreach is None else 2, Ref(("params", "width"))))
    return replaced(spec, foreach=foreach, parallel=parallel, concurrency=random.choice((None, None, 1, 2)))
