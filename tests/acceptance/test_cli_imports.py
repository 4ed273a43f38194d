"""`ork` starts fast because it imports little: what each command may load."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"yaml", "sqlite3", "asyncio", "ork.definition", "ork.state.sqlite", "ork.settings", "json", "dataclasses"}


def loaded(folder: Path, environment: dict[str, str], *args: str) -> set[str]:
    script = "import sys\nfrom ork.cli.main import run\nrun(sys.argv[1:])\nprint(*sorted(sys.modules), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", script, *args], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return set(done.stderr.split("\n")[-2].split())


@pytest.mark.parametrize("args", [("--help",), ("--version",), ("-h",)])
def test_help_loads_no_command_no_store_and_no_parser(
    tmp_path: Path, plain_environment: dict[str, str], args: tuple[str, ...]
) -> None:
    assert loaded(tmp_path, plain_environment, *args) & HEAVY == set()


@pytest.mark.parametrize("args", [("runs",), ("show", "@last"), ("workflows",), ("why", "@last"), ("status",)])
def test_looking_needs_neither_an_event_loop_nor_yaml(
    tmp_path: Path, plain_environment: dict[str, str], args: tuple[str, ...]
) -> None:
    unused = {"asyncio", "yaml", "ork.scheduler", "ssl", "httpx2", "anyio", "http.client"}
    assert loaded(tmp_path, plain_environment, *args) & unused == set()


def test_running_does_not_load_what_it_does_not_use(tmp_path: Path, plain_environment: dict[str, str]) -> None:
    (tmp_path / "workflow.yaml").write_text("name: x\ntasks:\n  a: {command: 'true'}\n")
    unused = {
        "cronsim",
        "zoneinfo",
        "pydantic",
        "rich",
        "pathlib",
        "tempfile",
        "statistics",
        "difflib",
        "multiprocessing",
        "httpx2",
        "anyio",
        "http.client",
        "urllib.request",
        "obstore",
        "ork.objects.buckets.documents",
        "google",
        "ork.compile.placement",
        "ork.executors.cloud_run",
    }
    assert loaded(tmp_path, plain_environment, "run") & unused == set()
