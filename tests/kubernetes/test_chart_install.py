"""The chart on a real API server, with real containers: installed, used, upgraded under load, rolled back, gone without a trace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.buckets import new_bucket
from tests.kubernetes.chart import Document
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.release import Load, Release
from tests.postgres import free_port, server_or_skip

pytestmark = pytest.mark.kubernetes


def sample(image: str) -> str:
    """Two tasks, each in a pod of its own; the second gets what the first has written."""
    extract = {
        "image": image,
        "command": ["sh", "-c", "echo '[20, 22]' > /out/rows.json"],
        "output": {"from_file": "/out/rows.json"},
    }
    load = {
        "image": image,
        "command": ["sh", "-c", "cat /in/rows.json; echo; cat /in/rows.json > /out/sum.json"],
        "inputs": {"rows": {"ref": "extract.output"}},
        "input": {"to_file": "/in/rows.json"},
        "output": {"from_file": "/out/sum.json"},
    }
    return yaml.safe_dump({"name": "sample", "tasks": {"extract": extract, "load": load}})


def common(cluster: Cluster) -> Document:
    repository, _, tag = cluster.images.control_plane.partition(":")
    return {"image": {"repository": repository, "tag": tag, "pullPolicy": "Never"}}


@pytest.fixture
def home(cluster: Cluster) -> Iterator[str]:
    with cluster.namespace("ork", pod_security="restricted") as name:
        yield name


def deploy(release: Release, text: str) -> None:
    release.ask("POST", "/workflows", text)


def test_trial_in_one_pod_runs_the_sample_and_leaves_no_trace(cluster: Cluster, home: str) -> None:
    """API and tasks reach each other by the address of this machine: the test cluster routes no Services."""
    port = free_port()
    values = {
        **common(cluster),
        "embedded": True,
        "internalUrl": f"http://127.0.0.1:{port}",
        "api": {"port": port},
    }
    release = Release(cluster, home, values)
    release.install()
    release.test()
    deploy(release, sample(cluster.images.busybox))
    run = release.ended(release.run("sample"))
    assert run["status"] == "success", release.explained()
    assert release.left() != []
    release.uninstall()
    release.until("nothing is left", lambda: release.left() == [])


@pytest.mark.soak
def test_upgrade_under_load_rollback_and_ticks(cluster: Cluster, home: str) -> None:
    server = server_or_skip()
    database = server.new_database()
    secrets = f"/api/v1/namespaces/{home}/secrets"
    cluster.request("POST", secrets, {"metadata": {"name": "ork-store"}, "stringData": {"store": server.url(database)}})
    values: dict[str, Any] = {
        **common(cluster),
        "store": {"existingSecret": "ork-store"},
        "objects": {"url": new_bucket("gs")},  # whose stand-in asks for no identity
        "api": {"listen": "$(POD_IP)"},
    }
    release = Release(cluster, home, values)
    release.install()
    deploy(release, sample(cluster.images.busybox))
    first = release.ended(release.run("sample"))
    assert first["status"] == "success", release.explained()
    with Load(release, "sample", every=5) as load:
        release.upgrade(podAnnotations={"upgrade": "1"})
        release.rollback()
    assert load.problems == []
    assert len(load.runs) > 3
    for run in load.runs:
        ended = release.ended(run)
        assert ended["status"] == "success", ended
    release.upgrade(scheduler={"mode": "tick"})
    release.until("schedulers are gone", lambda: not release.pods("scheduler"))
    by_ticks = release.ended(release.run("sample"))
    assert by_ticks["status"] == "success", release.explained()
    release.uninstall()
    release.until("nothing is left", lambda: release.left() == [])
    server.drop_database(database)
