"""Fixtures of tests on a real API server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kubernetes.cluster import Cluster, cluster_or_skip
from tests.kubernetes.proxy import FaultProxy


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """One for each test process."""
    return cluster_or_skip()


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    with cluster.namespace() as name:
        yield name


@pytest.fixture
def proxy(cluster: Cluster) -> Iterator[FaultProxy]:
    """Between a client (`proxy.kubeconfig`, `proxy.url`) and the API server."""
    proxy = FaultProxy(cluster)
    yield proxy
    proxy.close()
