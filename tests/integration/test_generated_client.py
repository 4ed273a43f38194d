"""A client generated from the OpenAPI document works against a real server."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.serving import serving

pytestmark = pytest.mark.slow

WORKFLOW = "name: flow\nparams: {n: {type: int, default: 2}}\ntasks: {extract: {command: [sh, -c, 'echo 7']}}\n"

USE = """
import sys, time
from ork_client import AuthenticatedClient
from ork_client.api.installation import status
from ork_client.api.runs import create_run, get_run, list_runs
from ork_client.models import ProblemDetails, RunStatus, TriggerBody, TriggerBodyParams

client = AuthenticatedClient(sys.argv[1], sys.argv[2])
run = create_run.sync("flow", client=client, body=TriggerBody(params=TriggerBodyParams.from_dict({"n": 3})))
assert run.status is RunStatus.PENDING and run.params.to_dict() == {"n": 3}, run
while not (whole := get_run.sync(run.id, client=client)).finished_at:
    time.sleep(0.1)
assert whole.status is RunStatus.SUCCESS
assert (whole.finished_at - whole.created_at).total_seconds() > 0
assert [(task.name, task.output, task.attempts[0].exit_code) for task in whole.tasks] == [("extract", 7, 0)]
assert [each.id for each in list_runs.sync(client=client, status=[RunStatus.SUCCESS]).runs] == [run.id]
assert status.sync(client=client).unfinished.to_dict()["running"] == 0
missing = get_run.sync("zzzz", client=client)
assert isinstance(missing, ProblemDetails) and missing.code == "ORK802", missing
"""


def test_a_generated_client_starts_a_run_and_reads_what_became_of_it(
    tmp_path: Path, plain_environment: dict[str, str], ork_cli: Callable[..., object]
) -> None:
    (tmp_path / "flow.yaml").write_text(WORKFLOW)
    ork_cli("deploy", "flow.yaml", cwd=tmp_path, env=plain_environment)
    with serving(tmp_path, plain_environment) as served:
        (tmp_path / "openapi.json").write_text(json.dumps(served.ask("GET", "/openapi.json")[1]))
        generate = [sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none"]
        generate += ["--path", "openapi.json", "--output-path", "ork_client"]
        made = subprocess.run(generate, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert made.returncode == 0, made.stdout + made.stderr
        assert made.stderr.count("WARNING") == 1, made.stderr  # it cannot send a workflow file as YAML
        use = [sys.executable, "-c", USE, served.url, served.token]
        used = subprocess.run(use, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert used.returncode == 0, used.stdout + used.stderr
