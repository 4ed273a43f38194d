"""The prices of a project: those of Ork, with those of the file that `prices` in ork.yaml names in their place."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from ork.errors import DefinitionError, UsageError
from ork.model.workflow import Approval, CompiledWorkflow, SubWorkflow
from ork.objects.regular import read_regular
from ork.settings import MAX_FILE_BYTES

if TYPE_CHECKING:
    from ork.compile.pricing import Pricing
    from ork.model.prices import Prices
    from ork.settings import Settings


def prices_of(settings: Settings) -> Prices:
    from ork.definition.prices_file import load_prices, shipped_prices

    name = settings.project.prices if settings.project is not None else None
    if name is None:
        return shipped_prices()
    path = os.path.join(settings.root, name)
    try:
        data = read_regular(path, MAX_FILE_BYTES)
    except OSError as error:
        hint = "`prices` in ork.yaml names it, relative to the project's folder"
        raise UsageError(f"cannot read the price file {path}: {error.strerror or error}", hint=hint) from None
    prices, problems = load_prices(data, name)
    if problems:
        raise DefinitionError(f"{name} has errors", problems)
    return prices


def pricing_of(settings: Settings) -> Pricing:
    """What attempts cost where the project runs them."""
    from ork.compile.pricing import Pricing
    from ork.model.alarm import AlarmKind

    is_woken = settings.alarm is not None and settings.alarm.kind is AlarmKind.CLOUD_TASKS
    project, prices = settings.project_or_default, prices_of(settings)
    return Pricing(project, prices, settings.store, settings.objects, is_woken=is_woken)


def pricing_on_demand(settings: Settings) -> Callable[[], Pricing]:
    """Makes the pricing when it is first needed. Raises at once if the project's own price file is wrong, so that no
    scheduler starts whose budgets have no effect."""
    if settings.project is not None and settings.project.prices is not None:
        prices_of(settings)
    return cache(lambda: pricing_of(settings))


def budget_notes(workflow: CompiledWorkflow, settings: Settings) -> list[str]:
    """Why the budget of a workflow has no effect, or does not count all of its tasks."""
    from ork.compile.placement import Placement

    pricing, placement = pricing_of(settings), Placement(settings.project_or_default)
    specs = [spec for spec in placement.workflow(workflow).tasks if not isinstance(spec.action, Approval | SubWorkflow)]
    prices = {spec.name: pricing.of(spec, spec.executor) for spec in specs}
    unknown = {name: price.why_unknown for name, price in prices.items() if price.usd_per_second is None}
    if not any(price.usd_per_second or any(each.usd for each in price.operations) for price in prices.values()):
        advice = "what it runs has no price; `prices` in ork.yaml can name a file with the prices of your machines"
        return [f"{workflow.name} has a budget that it never exceeds: {advice}"]
    return [f"the budget of {workflow.name} does not count {name}: {why}" for name, why in unknown.items()]
