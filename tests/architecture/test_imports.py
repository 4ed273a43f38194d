"""Who may know whom, and what a start may cost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

# What `ork --help` has no use for and would have to wait for.
HEAVY = {"yaml", "sqlite3", "asyncio", "cronsim", "pydantic", "zoneinfo", "concurrent.futures", "subprocess", "httpx2"}
ROOMS_OF_THE_WORKER = ("ork.worker", "ork.sdk", "ork.objects", "ork.model", "ork.errors", "ork.system")

LIST_MODULES = "import json, sys; print('\\n' + json.dumps(sorted(sys.modules)))"
LIST_AFTER_HELP = f"""
import sys
sys.argv = ["ork", "--help"]
try:
    from ork.cli.main import main
    main()
except SystemExit:
    pass
{LIST_MODULES}
"""
LIST_AFTER_BUCKETS = f"""
from ork.objects.opening import open_objects
for url in ("gs://bucket/prefix?endpoint=http://127.0.0.1:1", "s3://bucket/prefix", "az://container?account=name"):
    open_objects(url)
{LIST_MODULES}
"""
LIST_AFTER_WORKER = f"""
import ork.worker.main
{LIST_MODULES}
"""


def modules_after(code: str, env: dict[str, str]) -> set[str]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_import_contracts_are_kept(tree: Path, plain_environment: dict[str, str]) -> None:
    pytest.importorskip("importlinter", reason="import-linter is not installed: contracts not checked")
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([program, "--no-cache"], cwd=tree, env=plain_environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_help_loads_nothing_heavy(plain_environment: dict[str, str]) -> None:
    loaded = modules_after(LIST_AFTER_HELP, plain_environment)
    assert "ork.cli.main" in loaded
    assert not loaded & HEAVY
    rooms = {name for name in loaded if name.startswith(("ork.definition", "ork.state", "ork.scheduler", "ork.app"))}
    assert rooms == set()


OF_EXTRAS = (
    "google", "grpc", "obstore", "lightkube", "asyncpg", "ork.state.firestore", "ork.state.postgres", "ork.executors.cloud_run",
    "ork.objects.buckets.with_obstore",
)  # fmt: skip


def test_a_run_on_the_default_store_loads_nothing_of_a_cloud(tmp_path: Path, plain_environment: dict[str, str]) -> None:
    (tmp_path / "workflow.yaml").write_text('name: one\ntasks:\n  only: {command: "true"}\n')
    run = f"import os, sys\nos.chdir({str(tmp_path)!r})\nsys.argv = ['ork', 'run', 'workflow.yaml']\n"
    loaded = modules_after(
        f"{run}try:\n    from ork.cli.main import main\n    main()\nexcept SystemExit:\n    pass\n{LIST_MODULES}",
        plain_environment,
    )
    assert "ork.state.sqlite" in loaded
    assert {name for name in loaded if name.startswith(OF_EXTRAS)} == set()


def test_a_bucket_of_a_worker_needs_the_standard_library_only(plain_environment: dict[str, str]) -> None:
    before = modules_after(LIST_MODULES, plain_environment)
    loaded = modules_after(LIST_AFTER_BUCKETS, plain_environment) - before
    assert {name for name in loaded if not is_standard(name) and not is_of_the_worker(name)} == set()
    assert not loaded & {"asyncio", "http.client", "ssl", "logging", "subprocess", "xml.etree.ElementTree"}


def test_the_worker_loads_the_standard_library_and_its_own_rooms_only(plain_environment: dict[str, str]) -> None:
    before = modules_after(LIST_MODULES, plain_environment)
    loaded = modules_after(LIST_AFTER_WORKER, plain_environment) - before
    foreign = {name for name in loaded if not is_standard(name) and not is_of_the_worker(name)}
    assert foreign == set()
    assert not loaded & {"asyncio", "dataclasses", "inspect", "logging", "sqlite3", "subprocess"}


def test_importing_ork_loads_no_room(plain_environment: dict[str, str]) -> None:
    loaded = modules_after(f"import ork\n{LIST_MODULES}", plain_environment)
    assert {name for name in loaded if name.startswith("ork.")} == set()


def is_standard(name: str) -> bool:
    return name.partition(".")[0] in sys.stdlib_module_names


def is_of_the_worker(name: str) -> bool:
    return name == "ork" or any(name == room or name.startswith(room + ".") for room in ROOMS_OF_THE_WORKER)


def test_only_the_api_and_its_command_know_the_web_ui_and_load_it_late(
    tree: Path, plain_environment: dict[str, str]
) -> None:
    allowed = (
        "src/ork/ui/",
        "src/ork/api/routes/ui.py",
        "src/ork/cli/commands/ui.py",
        "src/ork/cli/commands/ui_export.py",
        "src/ork/cli/commands/report.py",  # the export of one run
        "src/ork/bench/scenarios/ui.py",  # which measures it
    )
    for file in sorted((tree / "src/ork").rglob("*.py")):
        name = file.relative_to(tree).as_posix()
        assert name.startswith(allowed) or "ork.ui" not in file.read_text(), name
    loaded = modules_after(f"import ork.api.app\n{LIST_MODULES}", plain_environment)
    assert not [name for name in loaded if name.startswith("ork.ui")]
