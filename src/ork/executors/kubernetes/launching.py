"""Creates the Jobs of attempts and launch groups. A Job's name is a function of the attempt, so that a start can be repeated."""

from __future__ import annotations

from typing import Any

from ork.errors import EngineError, ObjectsError
from ork.executors.docker.container_documents import ContainerDocuments
from ork.executors.executor import GroupOrder, LaunchOrder
from ork.executors.kubernetes import making
from ork.executors.kubernetes.api import EXISTS, ClusterApi, JobSeen
from ork.executors.kubernetes.units import Unit
from ork.executors.secret_references import variables_and_references
from ork.objects.attempt_documents import AttemptDocuments
from ork.objects.group_members import members_text


class Launching:
    """`installation` labels the Jobs. `ork_image` has Ork in it; None if the project names none."""

    def __init__(self, api: ClusterApi, objects: AttemptDocuments, installation: str, ork_image: str | None) -> None:
        self._api = api
        self._objects = objects
        self.installation = installation
        self._ork_image = ork_image

    def job_of(self, attempt: str) -> str:
        return making.job_name(attempt, self.installation)

    async def start(self, unit: Unit, order: LaunchOrder, documents: ContainerDocuments) -> None:
        """There is a Job of the attempt. EngineError: there is none, in the platform's words."""
        spec = unit.spec = await _spec(documents)
        manifest = making.attempt_job(
            spec,
            self.installation,
            objects_url=self._objects.url,
            token=order.token,
            ork_image=self._ork_image,
            program=await _program(documents, spec) if making.is_plain(spec) else None,
        )
        await self._create(unit, manifest, spec["attempt"])

    async def start_group(self, unit: Unit, group: GroupOrder, documents: ContainerDocuments) -> None:
        """There is a Job of the group that is not over. As long as there is one, no second one is created."""
        spec = unit.spec = await _spec(documents)
        generation = 0
        if not all(order.is_new for order in group.orders):
            known = await self.jobs_of_group(group.id)
            alive = [job for job in known if not job.is_over]
            if any(job.is_deleting for job in alive):
                raise _being_deleted()
            if alive:
                unit.begin(alive[0].name, alive[0].attempts, alive[0])
                return
            generation = 1 + max((int(job.name.rpartition("-")[2]) for job in known), default=-1)
        manifest = making.group_job(
            group,
            spec,
            self.installation,
            generation,
            objects_url=self._objects.url,
            ork_image=self._ork_image,
        )
        await self._create(unit, manifest, members_text([str(order.attempt.key) for order in group.orders]))

    async def jobs_of_group(self, group: str) -> list[JobSeen]:
        """The Jobs of a launch group, of all generations."""
        return await self._api.jobs({making.GROUP_LABEL: making.group_label(group, self.installation)})

    async def _create(self, unit: Unit, manifest: dict[str, Any], attempts: str) -> None:
        name = manifest["metadata"]["name"]
        if await self._api.create_job(manifest):
            unit.begin(name, attempts)
            return
        there = await self._api.job(name)
        if there is None or there.is_deleting:
            raise _being_deleted()
        unit.begin(name, there.attempts, there)


async def _spec(documents: ContainerDocuments) -> dict[str, Any]:
    spec = await documents.calls.call(documents.spec)
    if spec is None:
        raise ObjectsError("its spec is not in the object store")
    return spec


async def _program(documents: ContainerDocuments, spec: dict[str, Any]) -> making.Program:
    words = await documents.calls.call(documents.words, spec, {})  # a secret cannot be an argument
    references = spec["container"]["kubernetes"]["secrets"]
    return making.Program(words, *await variables_and_references(documents, spec, references))


def _being_deleted() -> EngineError:
    return EngineError("Kubernetes: a Job of this name is being deleted", status=EXISTS)
