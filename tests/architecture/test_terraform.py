"""deploy/terraform/gcp fits the code: its environment, permissions, indexes, addresses and command lines are those that Ork uses.

What needs Terraform or the Google provider is skipped where they cannot be had, and says so.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import hcl2
import pytest
from tests.acceptance.test_deployment import understood

from ork.model import google_permissions
from ork.settings import load_settings

ROOT = Path(__file__).resolve().parents[2]
MODULE = ROOT / "deploy/terraform/gcp"
INDEXES = ROOT / "src/ork/state/firestore/firestore.indexes.json"
# Which permission each call needs, as the documentation of each service lists it.
CLOUD_RUN_CALLS = {
    "get_job": "run.jobs.get",
    "create_job": "run.jobs.create",
    "delete_job": "run.jobs.delete",
    "list_jobs": "run.jobs.list",
    "run_job": "run.jobs.runWithOverrides",
    "get_execution": "run.executions.get",
    "list_executions": "run.executions.list",
    "cancel_execution": "run.executions.cancel",
    "list_tasks": "run.tasks.list",
    "test_iam_permissions": None,
}
QUEUE_CALLS = {
    "create_task": "cloudtasks.tasks.create",
    "delete_task": "cloudtasks.tasks.delete",
    "list_tasks": "cloudtasks.tasks.list",
    "get_queue": "cloudtasks.queues.get",
}
FIRESTORE_CALLS = {
    "batch_get_documents": {"datastore.entities.get"},
    "run_query": {"datastore.entities.get", "datastore.entities.list"},
    "run_aggregation_query": {"datastore.entities.get", "datastore.entities.list"},
    "commit": {"datastore.entities.create", "datastore.entities.update", "datastore.entities.delete"},
    "listen": {"datastore.entities.get", "datastore.entities.list", "datastore.databases.get"},
}


def text_of_module() -> str:
    return "\n".join(path.read_text() for path in sorted(MODULE.glob("*.tf")))


def blocks(kind: str) -> Iterator[tuple[str, ...]]:
    """The names of all blocks of a kind, as Terraform's own grammar reads them."""
    for path in sorted(MODULE.glob("*.tf")):
        with path.open() as file:
            for block in hcl2.load(file).get(kind, []):
                names = []
                while True:
                    found = [key for key in block if not key.startswith("__")]
                    if len(found) != 1 or not isinstance(block[found[0]], dict) or not found[0].startswith('"'):
                        break
                    names.append(found[0].strip('"'))
                    block = block[found[0]]
                yield tuple(names)


def local(name: str) -> Any:
    for path in sorted(MODULE.glob("*.tf")):
        with path.open() as file:
            for block in hcl2.load(file).get("locals", []):
                if name in block:
                    return block[name]
    raise AssertionError(name)


def environment() -> dict[str, str]:
    """The variables of the service, with values as Terraform would put them."""
    written = dict(re.findall(r'\b(ORK_\w+) = ("[^"]*"|[^,}]+)', local("environment")))
    values = {
        "local.store": "firestore://my-project/ork",
        "local.objects": "gs://my-project-ork/documents",
        "local.url": "https://ork-123.europe-west1.run.app",
        "google_service_account.wake.email": "ork-wake@my-project.iam.gserviceaccount.com",
        "var.project": "my-project",
        "var.region": "europe-west1",
        "local.queue": "ork",
    }
    made = {}
    for name, value in written.items():
        value = values.get(value, value).strip('"')
        made[name] = re.sub(r"\$\{([^}]+)\}", lambda found: values[found[1]], value)
    return made


class Recorder(Mapping[str, str]):
    """An environment that notes what is read of it."""

    def __init__(self, values: dict[str, str]) -> None:
        self._values = values
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.read.add(name)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def test_every_variable_of_the_service_is_one_that_ork_reads(tmp_path: Path) -> None:
    from ork.cli.commands.serve import serve_command

    given = Recorder(environment())
    settings = load_settings(folder=str(tmp_path), environ=given)
    options = {str(option.envvar) for option in serve_command.params if option.envvar}
    assert len(given) >= 8
    assert set(given) <= given.read | options
    assert settings.store == "firestore://my-project/ork"
    assert settings.objects == "gs://my-project-ork/documents"
    assert settings.alarm is not None
    assert settings.alarm.is_on
    assert settings.alarm.service_account.startswith("ork-wake@")
    assert settings.wake_url == f"{settings.alarm.url}/api/v1/wake"


def test_every_variable_that_the_alarm_and_the_wakes_need_is_set() -> None:
    from ork.model.alarm import CLOUD_TASKS_KEYS

    needed = {f"ORK_ALARM_{name.upper()}" for name in CLOUD_TASKS_KEYS}
    assert {"ORK_STORE", "ORK_OBJECTS", "ORK_ALARM", "ORK_WAKE_URL", *needed} <= set(environment())


def test_roles_have_exactly_the_permissions_that_the_code_needs() -> None:
    roles = {name: [each.strip('"') for each in found] for name, found in local("roles").items() if "__" not in name}
    expected = {
        "store": google_permissions.FIRESTORE,
        "documents": google_permissions.BUCKET,
        "program": google_permissions.TASK_PROGRAM,
        "jobs": (*google_permissions.CLOUD_RUN, *google_permissions.LOGS),
        "queue": google_permissions.QUEUE,
        "act_as": google_permissions.ACT_AS,
    }
    assert roles == {name: sorted(permissions) for name, permissions in expected.items()}
    assert google_permissions.TASK_RUNS == google_permissions.BUCKET


def test_every_call_to_cloud_run_has_its_permission() -> None:
    from ork.executors.cloud_run import api

    called = set(re.findall(r"self\._(?:jobs|executions|tasks)\.(\w+)\(", inspect.getsource(api)))
    assert called == set(CLOUD_RUN_CALLS)
    needed = {permission for permission in CLOUD_RUN_CALLS.values() if permission}
    assert needed | {"run.jobs.run"} == set(google_permissions.CLOUD_RUN)


def test_every_call_to_the_queue_has_its_permission() -> None:
    from ork.alarms import cloud_tasks

    called = set(re.findall(r'self\._call\("(\w+)"', inspect.getsource(cloud_tasks)))
    assert called == set(QUEUE_CALLS)
    assert set(QUEUE_CALLS.values()) == set(google_permissions.QUEUE)


def test_every_call_to_firestore_has_its_permissions() -> None:
    sources = [path.read_text() for path in (ROOT / "src/ork/state/firestore").glob("*.py")]
    called = {name for source in sources for name in re.findall(r"self\._client\.(\w+)\(", source)}
    assert called == set(FIRESTORE_CALLS)
    assert set().union(*FIRESTORE_CALLS.values()) == set(google_permissions.FIRESTORE)


def test_predefined_roles_are_few_and_nobody_has_a_key() -> None:
    text = text_of_module()
    assert set(re.findall(r'"(roles/[^"]+)"', text)) == {
        "roles/secretmanager.secretAccessor",
        "roles/pubsub.publisher",
        "roles/iam.serviceAccountOpenIdTokenCreator",
    }
    assert "google_service_account_key" not in text
    assert "allUsers" not in text


def test_the_indexes_are_those_that_ork_ships() -> None:
    path = re.search(r'file\("\$\{path\.module\}/([^"]+)"\)', str(local("indexes")).replace("\\", ""))
    assert path is not None
    assert (MODULE / path[1]).resolve() == INDEXES
    shipped = json.loads(INDEXES.read_text())
    # The module makes ordered fields and fields without an index, and nothing else.
    assert all(set(field) == {"fieldPath", "order"} for index in shipped["indexes"] for field in index["fields"])
    assert all(override["indexes"] == [] for override in shipped["fieldOverrides"])


def test_everything_that_is_named_is_declared_and_every_variable_is_used() -> None:
    text = re.sub(r"(?m)#.*$", "", text_of_module())
    variables = {names[0] for names in blocks("variable")}
    resources = set(blocks("resource"))
    assert len(resources) > 20
    assert set(re.findall(r"\bvar\.(\w+)", text)) == variables
    named = set(re.findall(r"(?<!data\.)\b(google_\w+)\.(\w+)", text))
    assert named <= resources, named - resources


def test_the_example_names_variables_that_exist() -> None:
    example = (MODULE / "terraform.tfvars.example").read_text()
    named = set(re.findall(r"^(?:# )?(\w+) +?= ", example, re.M))
    assert {"project", "region", "image"} <= named <= {names[0] for names in blocks("variable")}


def test_the_command_lines_are_understood_and_fit_the_service() -> None:
    from ork.alarms.cloud_tasks import DISPATCH_SECONDS

    lines = [json.loads(found) for found in re.findall(r'args\s*= (\["[^\]]+\])', text_of_module())]
    assert [words[0] for words in lines] == ["serve", "doctor"]
    for words in lines:
        understood(words)
    assert "--on-request" in lines[0]
    assert f"container_port = {lines[0][lines[0].index('--port') + 1]}" in text_of_module()
    service = (MODULE / "service.tf").read_text()
    assert re.findall(r'timeout\s+= "(\d+)s"', service)[0] == str(DISPATCH_SECONDS)


def test_paths_and_names_are_those_of_the_code() -> None:
    from ork.alarms.cloud_tasks import TICK_PATH
    from ork.executors.cloud_run.making import PREFIX, plain_job_name

    text = text_of_module()
    paths = set(re.findall(r"\}(/api/v1/[\w/]+)", text))
    assert paths == {TICK_PATH, "/api/v1/wake", "/api/v1/events/pubsub"}
    assert plain_job_name("r/t/0/1", "installation").startswith("ork-a-")
    assert 'job_name=~\\"^ork-a-' in text
    assert f'job_name=~\\"^{PREFIX}\\"' in text


# ── with Terraform ───────────────────────────────────────────────────────────────────────────────


def terraform(*words: str, folder: Path = MODULE) -> subprocess.CompletedProcess[str]:
    if shutil.which("terraform") is None:
        pytest.skip("terraform is not installed: the module is not checked by its own tool")
    environ = {**os.environ, "CHECKPOINT_DISABLE": "1", "TF_IN_AUTOMATION": "1"}
    return subprocess.run(
        ["terraform", *words], cwd=folder, env=environ, capture_output=True, text=True, timeout=600, check=False
    )


def test_it_has_terraforms_own_format() -> None:
    done = terraform("fmt", "-check", "-recursive", "-diff")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_it_is_valid_and_its_plans_are_right(tmp_path: Path) -> None:
    """With the Google provider, from the registry or from a mirror that Terraform's own configuration names."""
    folder, indexes = tmp_path / MODULE.relative_to(ROOT), tmp_path / INDEXES.relative_to(ROOT)
    shutil.copytree(MODULE, folder, ignore=shutil.ignore_patterns(".terraform*"))
    indexes.parent.mkdir(parents=True)
    shutil.copy(INDEXES, indexes)
    begun = terraform("init", "-backend=false", "-input=false", "-no-color", folder=folder)
    if begun.returncode != 0:
        pytest.skip(f"the Google provider of Terraform cannot be had here: {begun.stderr.strip()[-300:]}")
    valid = terraform("validate", "-no-color", folder=folder)
    assert valid.returncode == 0, valid.stdout + valid.stderr
    tested = terraform("test", "-no-color", folder=folder)
    assert tested.returncode == 0, tested.stdout + tested.stderr
