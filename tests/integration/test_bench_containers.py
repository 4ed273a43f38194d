"""`ork bench containers` on a real engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from ork.bench.ground import Ground
from ork.bench.scale import QUICK
from ork.bench.scenarios.containers import containers
from tests.docker import busybox, daemon_or_skip


@pytest.mark.slow
def test_containers_are_measured_beside_the_engine_alone_and_none_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = daemon_or_skip()
    busybox(daemon)
    monkeypatch.setenv("DOCKER_HOST", daemon.url)
    (result,) = containers(QUICK, Ground(tmp_path))
    assert (result["scenario"], result["tasks"], result["target"]) == ("containers", 2, "≤ 200 ms each")
    assert result["own_ms"] == pytest.approx((result["seconds"] - result["floor"]["seconds"]) * 1000 / 2, abs=0.2)
    names = daemon.docker("ps", "-a", "--format", "{{.Names}}").split()
    assert [name for name in names if name.startswith("ork-bench")] == []
