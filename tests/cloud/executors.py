"""Executors for the fake Cloud Run, as a scheduler makes them."""

from __future__ import annotations

from typing import Any

from ork.executors.cloud_run.executor import CloudRunExecutor
from ork.executors.cloud_run.making import BucketVolume
from ork.model.cloud_run import Place
from ork.objects.attempt_documents import AttemptDocuments
from tests.cloud.cloud_run import FakeCloudRun


def cloud_run_executor(
    cloud: FakeCloudRun, documents: AttemptDocuments, volume: BucketVolume | None = None, **options: Any
) -> CloudRunExecutor:
    from ork.app.cloud_run import make_executor

    place = Place(cloud.project, cloud.region)
    return make_executor("cloudrun", place, documents, endpoint=cloud.url, volume=volume, **options)
