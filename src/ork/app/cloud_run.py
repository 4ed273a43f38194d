"""Creates the executors for Cloud Run from the settings."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ork.errors import OrkError
from ork.executors.attempt_rows import unknown_attempt
from ork.executors.cloud_run.executor import CloudRunExecutor
from ork.executors.cloud_run.launching import Launching
from ork.executors.cloud_run.making import BucketVolume
from ork.model.digest import sha256
from ork.worker.supervise.stand_in import StandIn

if TYPE_CHECKING:
    from ork.model.cloud_run import Place
    from ork.model.infra import WorkerConfig
    from ork.model.task import Attempt
    from ork.objects.attempt_documents import AttemptDocuments
    from ork.settings import Settings

GS = "gs://"
ENDPOINT_VARIABLE = "ORK_CLOUD_RUN_ENDPOINT"
_CHECK_SECONDS = 30.0
_NO_JOB = "ork-permissions"
_DIGEST_SECONDS = 60.0  # how long a tag is taken to mean the same image


async def _as_written(image: str) -> str:
    return image


def executor_for(
    name: str,
    place: Place,
    settings: Settings,
    objects: AttemptDocuments,
    attempt_of: Callable[[str], Awaitable[Attempt | None]],
    *,
    waits: bool = False,
) -> CloudRunExecutor:
    return make_executor(
        name,
        place,
        objects,
        endpoint=settings.environ.get(ENDPOINT_VARIABLE) or None,
        volume=bucket_volume(objects.url),
        workers_call=settings.wake_url is not None,
        waits=waits,
        resolve_image=Digests(settings.docker_config).resolve,
        attempt_of=attempt_of,
    )


async def check_permissions(config: WorkerConfig, settings: Settings) -> dict[str, Any]:
    """What our identity lacks to run the config's tasks on Cloud Run: address, `ok` and message. Starts nothing."""
    from ork.app.platforms import placement_of
    from ork.compile.placement import NO_PLACE
    from ork.executors.cloud_run.api import CloudRunApi

    place = placement_of(settings).place(config)
    if place is None:
        return {"address": None, "ok": False, "message": f"{NO_PLACE[0]}: {NO_PLACE[1]}"}
    api = CloudRunApi(place, settings.environ.get(ENDPOINT_VARIABLE) or None)
    try:
        async with asyncio.timeout(_CHECK_SECONDS):
            missing = await api.missing_permissions()
            if not missing:
                await api.job(_NO_JOB)  # shows whether the project and the region exist, and the API is enabled
    except OrkError as error:
        advice = f" ({error.hint})" if error.hint else ""
        return {"address": str(place), "ok": False, "message": error.message + advice}
    except TimeoutError:
        return {"address": str(place), "ok": False, "message": f"no answer within {_CHECK_SECONDS:g} s"}
    finally:
        api.close()
    words = (
        f"missing permissions: {', '.join(missing)} (grant roles/run.developer)" if missing else "permissions complete"
    )
    return {"address": str(place), "ok": not missing, "message": words}


class Digests:
    """Replaces the tags of images by digests, so that a Job never runs another image than the one its name stands for."""

    def __init__(self, config_dir: str) -> None:
        self._config_dir = config_dir
        self._known: dict[str, tuple[float, str]] = {}

    async def resolve(self, image: str) -> str:
        """The image by its digest; as it is written if its registry cannot be asked. Then Cloud Run resolves the tag."""
        registry = image.partition("/")[0]
        if "@" in image or "/" not in image or not any(mark in registry for mark in ".:"):
            return image
        known = self._known.get(image)
        if known is not None and time.monotonic() - known[0] < _DIGEST_SECONDS:
            return known[1]
        found = await self._asked(image)
        self._known[image] = time.monotonic(), found
        return found

    async def _asked(self, image: str) -> str:
        from ork.executors.docker.credentials import credentials_for
        from ork.executors.docker.names import read_image_name
        from ork.locations.registry import RegistryError, ask_digest

        name = read_image_name(image)
        try:
            credentials = await asyncio.to_thread(credentials_for, name.registry, self._config_dir)
            return name.at(await ask_digest(name, credentials))
        except RegistryError:
            return image


def make_executor(
    name: str,
    place: Place,
    objects: AttemptDocuments,
    *,
    endpoint: str | None = None,
    volume: BucketVolume | None = None,
    workers_call: bool = False,
    waits: bool = False,
    resolve_image: Callable[[str], Awaitable[str]] = _as_written,
    attempt_of: Callable[[str], Awaitable[Attempt | None]] = unknown_attempt,
) -> CloudRunExecutor:
    """The executor of one place. UsageError if the extra `gcp` is not installed."""
    from ork.executors.cloud_run.api import CloudRunApi

    api = CloudRunApi(place, endpoint)
    installation = sha256(objects.url.encode()).hexdigest()[:16]
    launching = Launching(api, objects, installation, volume, resolve_image)
    return CloudRunExecutor(
        name,
        api,
        launching,
        partial(StandIn, objects),
        objects,
        installation,
        workers_call=workers_call,
        waits=waits,
        attempt_of=attempt_of,
    )


def bucket_volume(objects_url: str) -> BucketVolume | None:
    """The bucket that Cloud Run can mount; None if the object store is not one of Google's."""
    if not objects_url.startswith(GS):
        return None
    bucket, _, prefix = objects_url[len(GS) :].partition("?")[0].partition("/")
    return BucketVolume(bucket, f"{prefix.strip('/')}/" if prefix.strip("/") else "")
