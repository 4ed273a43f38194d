"""What attempts of a project cost: the sizes of its worker configs, with the prices of the places they run in.

Prices are list prices, and operations are figures that tests counted: everything made of them is an estimate.
"""

from __future__ import annotations

from ork.compile.placement import Placement
from ork.compile.workers import broken_config, config_for
from ork.definition.project import Project
from ork.model.cloud_run import CLOUD_RUN, is_on_cloud_run, size_for
from ork.model.infra import Resources, Where, resources_of
from ork.model.kubernetes import is_on_kubernetes
from ork.model.platforms import is_on_platform
from ork.model.prices import BY_THE_SECOND, AttemptPrice, OperationCounts, OperationPrice, Prices
from ork.model.workflow import CloudRunJob, SubWorkflow, TaskSpec

GIB = float(1 << 30)
CONTAINER = "container"
FIRESTORE, GCS, S3 = "firestore", "gcs", "s3"
_OBJECTS = {"gs": GCS, "s3": S3, "az": "azure"}

# Counted on the emulator: chains of 1, 3 and 10 tasks with `ork run`, and a fan-out of 1,000 (docs/firestore.md).
STATE = {
    "read": OperationCounts(per_run=50, per_task=2.4, per_instance=0.3),
    "write": OperationCounts(per_run=8, per_task=2, per_instance=0.6),
    "delete": OperationCounts(per_run=2),
}
# Counted by tests/cloud/test_round_trips.py and test_box_samples.py (docs/buckets.md, docs/cloud-run.md).
OBJECTS_HERE = {
    "class_a": OperationCounts(per_task=3, per_instance=3, per_minute=12),
    "class_b": OperationCounts(per_minute=7),
}
OBJECTS_ELSEWHERE = {
    "class_a": OperationCounts(per_task=4, per_instance=4, per_minute=12),
    "class_b": OperationCounts(per_task=14, per_instance=14, per_minute=7),
}
# Not counted, but as ADR 19 describes it: the call of a worker that has ended, and the tick that it causes. A tick is a wake that
# is created and delivered, and four calls of the queue (list, guard, due, delete). Instances share ticks.
WAKES = {
    "cloudrun.request": OperationCounts(per_run=1, per_task=2, per_instance=1),
    "cloudtasks.operation": OperationCounts(per_run=5, per_task=6, per_instance=0.1),
}


class Pricing:
    """Prices of a project's attempts. `store` and `objects` are URLs, of which only the scheme matters."""

    def __init__(self, project: Project, prices: Prices, store: str, objects: str, *, is_woken: bool = False) -> None:
        self.prices = prices
        self._project = project
        self._placement = Placement(project)
        self._state = FIRESTORE if store.startswith(f"{FIRESTORE}:") else None
        self._objects = _OBJECTS.get(objects.partition(":")[0])
        self._is_woken = is_woken

    def of(self, spec: TaskSpec | None, executor: str) -> AttemptPrice:
        """What an attempt of the task costs that this executor started."""
        if spec is None:
            return AttemptPrice("?", why_unknown="its task is not in the version of the workflow")
        return self._with_operations(spec, self._machine(spec, executor))

    def per_run(self) -> tuple[OperationPrice, ...]:
        """Operations of each run, whatever its tasks."""
        counted = self._operations(OBJECTS_HERE, WAKES if self._is_woken else {})
        return tuple(each for each in counted if each.counts.per_run)

    # ── machines ─────────────────────────────────────────────────────────────────────────────────

    def _machine(self, spec: TaskSpec, executor: str) -> AttemptPrice:
        if isinstance(spec.action, SubWorkflow):
            return AttemptPrice("workflow", 0.0, 0.0, 0.0)  # a run of its own, with a cost of its own
        if isinstance(spec.action, CloudRunJob):
            return AttemptPrice(CLOUD_RUN, why_unknown=f"the size of the Job {spec.action.job} is not known to Ork")
        if is_on_cloud_run(executor):
            return self._cloud_run(spec, executor)
        where = Where.DOCKER if executor == CONTAINER else Where.LOCAL
        if is_on_kubernetes(executor):
            where = Where.KUBERNETES
        why = broken_config(spec, self._project.broken_workers)
        config = config_for(spec, self._project.workers or {}) if why is None else None
        return self._priced(where, resources_of(spec.resources, config), why)

    def _cloud_run(self, spec: TaskSpec, executor: str) -> AttemptPrice:
        config = self._placement.config(spec)
        if config is None:
            why = "workers.yaml has no config for Cloud Run any more that it could have used"
            return AttemptPrice(CLOUD_RUN, why_unknown=why)
        asked = resources_of(spec.resources, config)
        cpu, memory = size_for(asked.cpu, asked.memory)
        place = self._placement.place(config)
        region = executor.rpartition("/")[2] if ":" in executor else place.region if place is not None else None
        price = self._priced(Where.CLOUDRUN, Resources(float(cpu), memory), None, region)
        if config.gpu is None or price.usd_per_second is None:
            return price
        gpu = self.prices.usd(f"{CLOUD_RUN}.gpu.{config.gpu}_second", region)
        if gpu is None:
            return AttemptPrice(CLOUD_RUN, float(cpu), memory / GIB, why_unknown=f"there is no price of {config.gpu}")
        return AttemptPrice(CLOUD_RUN, price.vcpus, price.gib, price.usd_per_second + gpu, price.billed)

    def _priced(self, where: Where, size: Resources, why: str | None, region: str | None = None) -> AttemptPrice:
        """A machine of this size. An amount that is not known matters only if it has a price."""
        gib = None if size.memory is None else size.memory / GIB
        units = {"second": 1.0, "vcpu_second": size.cpu, "gib_second": gib}
        prices = {unit: self.prices.usd(f"{where}.{unit}", region) for unit in units}
        if all(price is None for price in prices.values()):
            return AttemptPrice(where, size.cpu, gib, why_unknown=why or f"there is no price of {where}")
        usd = 0.0
        for unit, amount in units.items():
            price = prices[unit]
            if price and amount is None:
                missing = "cpu" if unit == "vcpu_second" else "memory"
                return AttemptPrice(where, size.cpu, gib, why_unknown=why or f"no worker config says its `{missing}`")
            usd += (price or 0.0) * (amount or 0.0)
        return AttemptPrice(where, size.cpu, gib, usd, self.prices.billing.get(where, BY_THE_SECOND))

    # ── operations ───────────────────────────────────────────────────────────────────────────────

    def _with_operations(self, spec: TaskSpec, price: AttemptPrice) -> AttemptPrice:
        if isinstance(spec.action, SubWorkflow):
            found = self._operations({}, {})
        else:
            counts = OBJECTS_ELSEWHERE if is_on_platform(price.where) else OBJECTS_HERE
            found = self._operations(counts, WAKES if self._is_woken and price.where == CLOUD_RUN else {})
        return AttemptPrice(
            price.where, price.vcpus, price.gib, price.usd_per_second, price.billed, found, price.why_unknown
        )

    def _operations(
        self, of_objects: dict[str, OperationCounts], wakes: dict[str, OperationCounts]
    ) -> tuple[OperationPrice, ...]:
        counted = dict(wakes)
        if self._state is not None:
            counted |= {f"{self._state}.{kind}": counts for kind, counts in STATE.items()}
        if self._objects is not None:
            counted |= {f"{self._objects}.{kind}": counts for kind, counts in of_objects.items()}
        return tuple(OperationPrice(name, counts, self.prices.usd(name)) for name, counts in counted.items())
