"""`ui: {publish: …}` in ork.yaml: pages that stay current where only ticks run, and never get in the way."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.serving import serving

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def project(tmp_path: Path, ork_cli: OrkCli) -> Path:
    (tmp_path / "flow.yaml").write_text("name: flow\ntasks: {only: {command: 'true'}}\n")
    configure(tmp_path, "public/ork", "every: 5s")
    assert ork_cli("deploy", "flow.yaml", cwd=tmp_path).returncode == 0
    return tmp_path


def configure(project: Path, to: str, *more: str) -> None:
    (project / "ork.yaml").write_text(f"ui: {{publish: {{{', '.join([f'to: {to}', *more])}}}}}\n")


def said(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def published(project: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((project / "public" / "ork" / "data" / "manifest.json").read_text())
    return found


def test_ticks_alone_keep_the_pages_current(ork_cli: OrkCli, project: Path) -> None:
    assert said(ork_cli("status", "--json", cwd=project))["published"]["at"] is None
    said(ork_cli("tick", cwd=project))
    assert not (project / "public").exists()  # nothing has ended
    ork_cli("trigger", "flow", cwd=project)
    assert said(ork_cli("tick", "--stay", cwd=project))["finished"] == 1
    first = published(project)
    assert len(first["runs"]) == 1
    assert first["format"] == 1
    ork_cli("trigger", "flow", cwd=project)
    second = said(ork_cli("tick", "--stay", cwd=project))
    assert second["finished"] == 1
    if published(project) == first:  # too early: it says when to come again, and then needs no run that ends
        assert second["next_wake"] is not None
        assert said(ork_cli("status", "--json", cwd=project))["published"]["is_current"] is False
        until = time.monotonic() + 60
        while published(project) == first and time.monotonic() < until:
            time.sleep(0.5)
            said(ork_cli("tick", cwd=project))
    assert len(published(project)["runs"]) == 2
    status = said(ork_cli("status", "--json", cwd=project))["published"]
    assert (status["to"], status["is_current"], status["problem"]) == ("public/ork", True, None)
    assert "public/ork: " in ork_cli("status", cwd=project).stdout


def test_a_failure_is_shown_and_neither_fails_nor_repeats_the_pass(ork_cli: OrkCli, project: Path) -> None:
    (project / "taken").mkdir()
    (project / "taken" / "precious.txt").write_text("mine")
    configure(project, "taken")
    ork_cli("trigger", "flow", cwd=project)
    done = said(ork_cli("tick", "--stay", cwd=project))
    assert done["finished"] == 1
    status = said(ork_cli("status", "--json", cwd=project))["published"]
    assert (status["failures"], "is not empty" in status["problem"]) == (1, True)
    said(ork_cli("tick", cwd=project))  # not again at once
    assert said(ork_cli("status", "--json", cwd=project))["published"]["failures"] == 1
    assert "is not empty" in ork_cli("doctor", cwd=project).stdout
    assert os.listdir(project / "taken") == ["precious.txt"]


@pytest.mark.slow
def test_a_server_publishes_when_runs_end(project: Path, plain_environment: dict[str, str]) -> None:
    with serving(project, plain_environment) as server:
        assert server.ask("POST", "/workflows/flow/runs", {})[0] in (200, 201)
        until = time.monotonic() + 120
        while not (project / "public" / "ork" / "index.html").exists() and time.monotonic() < until:
            time.sleep(0.2)
        assert published(project)["format"] in (0, 1)
