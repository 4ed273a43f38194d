"""All tests here are marked `cloud`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ork.objects.buckets.documents import BucketDocuments
from ork.objects.buckets.opening import open_bucket
from tests.cloud.fake_gcs import FakeGcs

if TYPE_CHECKING:
    from tests.cloud.box import CloudBox


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker("cloud")


@pytest.fixture
def gcs() -> Iterator[FakeGcs]:
    server = FakeGcs()
    yield server
    server.close()


@pytest.fixture
def documents(gcs: FakeGcs) -> BucketDocuments:
    return open_bucket(gcs.url(), forks=True)


@pytest.fixture
def cloud_box(tmp_path: Path, plain_environment: dict[str, str]) -> Iterator[CloudBox]:
    """An installation by wakes alone on Firestore, a bucket and Cloud Run, whose clock begins at `BEGIN`."""
    from tests.cloud.box import BEGIN, CloudBox
    from tests.cloud.virtual_clock import VirtualClock
    from tests.firestore import emulator_or_skip

    clock = VirtualClock(BEGIN, tmp_path.parent / f"{tmp_path.name}.clock")
    emulator = emulator_or_skip()
    with ExitStack() as stack:
        yield CloudBox(tmp_path, plain_environment, clock, emulator, stack)
