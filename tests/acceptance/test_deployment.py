"""The files in deploy/: whole, consistent, and every `ork …` in them is a command line this Ork understands."""

from __future__ import annotations

import importlib
import keyword
import re
import shlex
import shutil
import subprocess
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from ork.cli.main import ork

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
COMPOSE = DEPLOY / "compose.yaml"
MANIFESTS = sorted(path for path in (DEPLOY / "kubernetes").rglob("*.yaml") if path.name != "kustomization.yaml")
UNITS = sorted(path for path in (DEPLOY / "systemd").iterdir() if path.suffix in (".service", ".timer"))
SERVICES = ("ork-serve.service", "ork-tick.service")
TASK_USER_DROP_IN = DEPLOY / "systemd/task-user.conf"
TASK_USER_CAPABILITIES = ["SETUID", "SETGID", "CHOWN", "KILL", "DAC_OVERRIDE", "SYS_PTRACE"]
MODELS = {
    "v1": "core_v1",
    "apps/v1": "apps_v1",
    "batch/v1": "batch_v1",
    "policy/v1": "policy_v1",
    "networking.k8s.io/v1": "networking_v1",
    "rbac.authorization.k8s.io/v1": "rbac_v1",
}


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())
    return found


def own_services() -> dict[str, Any]:
    return {name: service for name, service in compose()["services"].items() if service["image"] == "ork"}


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text()))


def containers(node: Any) -> Iterator[dict[str, Any]]:
    """Wherever in a manifest they stand."""
    if isinstance(node, dict):
        for key, child in node.items():
            yield from child if key in ("containers", "initContainers") else containers(child)
    elif isinstance(node, list):
        for child in node:
            yield from containers(child)


def pods(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        if "containers" in node:
            yield node
        for child in node.values():
            yield from pods(child)


def command_lines() -> list[tuple[str, list[str]]]:
    """Each with the file it stands in."""
    found = [("compose.yaml", service["command"]) for service in own_services().values()]
    found += [("compose.yaml", test[2:]) for test in _checks(own_services()) if test[1] == "ork"]
    for path in MANIFESTS:
        for document in documents(path):
            found += [(path.name, each["args"]) for each in containers(document)]
            probes = [each.get("readinessProbe", {}).get("exec") for each in containers(document)]
            found += [(path.name, probe["command"][1:]) for probe in probes if probe]
    for path in UNITS:
        lines = re.findall(r"^Exec\w+=(.*)$", path.read_text(), re.M)
        found += [(path.name, shlex.split(line)[1:]) for line in lines]
    texts = [*DEPLOY.rglob("*.yaml"), *UNITS, *(DEPLOY.parent / "docs").glob("*.md")]
    for path in texts:
        said = re.findall(r"(?:run --rm \w+|-- ork) (token [^#\n]*|db [^#\n]*)", path.read_text())
        found += [(path.name, shlex.split(words)) for words in said]
    for page in (
        DEPLOY.parent / "docs" / name for name in ("team.md", "monitoring.md", "gcp.md", "kubernetes-install.md")
    ):
        for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.M | re.S):
            if language not in ("", "sh"):
                continue
            lines = re.findall(r"(?:^|&& )(?:[A-Z_]+=\S+ )*ork ([^#>|&\n]+)", block, re.M)
            found += [(page.name, shlex.split(line)) for line in lines]
    return found


def _checks(services: dict[str, Any]) -> list[list[str]]:
    return [service["healthcheck"]["test"] for service in services.values() if "test" in service.get("healthcheck", {})]


def understood(words: list[str]) -> None:
    """As the real program reads it, down to the last command; nothing is carried out."""
    command: click.Command = ork
    context = command.make_context("ork", list(words), resilient_parsing=False)
    while isinstance(command, click.Group):
        rest = [*context._protected_args, *context.args]
        if not rest and command.invoke_without_command:
            return
        name, found, rest = command.resolve_command(context, rest)
        assert found is not None, words
        command = found
        context = command.make_context(name, rest, parent=context)


@pytest.mark.parametrize(("file", "words"), command_lines(), ids=lambda value: value if isinstance(value, str) else "")
def test_every_command_line_is_one_this_ork_understands(
    file: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("cert.pem", "key.pem"):  # what must exist before it is named
        (tmp_path / name).touch()
    understood(words)


def test_the_command_lines_of_every_kind_of_file_are_found() -> None:
    files = {file for file, _ in command_lines()}
    assert {"compose.yaml", "tick.yaml", "ork.yaml", "ork-serve.service", "team.md", "kubernetes-install.md"} <= files


def test_a_command_line_that_does_not_exist_would_be_noticed() -> None:
    for wrong in (["serve", "--no-such-thing"], ["db", "migrat"], ["tick", "--log-format", "xml"]):
        with pytest.raises(click.ClickException):
            understood(wrong)


# ── compose ──────────────────────────────────────────────────────────────────────────────────────────


def test_what_services_refer_to_is_there() -> None:
    whole = compose()
    for name, service in whole["services"].items():
        assert set(service.get("secrets", [])) <= set(whole["secrets"]), name
        assert set(service.get("depends_on", {})) <= set(whole["services"]), name
        named = [volume.partition(":")[0] for volume in service["volumes"]]
        assert {each for each in named if re.fullmatch(r"\w+", each)} <= set(whole["volumes"]), name


def test_postgres_two_schedulers_and_an_api_are_served() -> None:
    commands = [service["command"] for service in own_services().values()]
    assert sum("--no-api" in words for words in commands) == 2
    assert sum("--no-scheduler" in words for words in commands) == 1
    assert ["db", "migrate"] in commands
    assert "pg_isready" in compose()["services"]["postgres"]["healthcheck"]["test"]


def test_no_container_has_rights_it_does_not_need_and_no_secret_stands_in_an_environment() -> None:
    for name, service in own_services().items():
        assert service["read_only"], name
        runs_tasks = "--no-api" in service["command"]
        assert (service["user"], service["cap_drop"]) == ("0:0" if runs_tasks else "10001:10001", ["ALL"]), name
        if runs_tasks:
            assert (service["cap_add"], service["environment"]["ORK_TASK_USER"]) == (
                TASK_USER_CAPABILITIES,
                "ork-tasks",
            )
            assert service["entrypoint"][:3] == ["setpriv", "--reuid=ork", "--regid=ork"]
    for service in compose()["services"].values():
        assert not [key for key in service["environment"] if re.search("PASSWORD$|STORE$|TOKEN$", key)]
    published = [port for service in compose()["services"].values() for port in service.get("ports", [])]
    assert all(port.startswith("127.0.0.1:") for port in published)


# ── Kubernetes ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_manifests_use_only_fields_that_exist(path: Path) -> None:
    pytest.importorskip(
        "lightkube.models", reason="lightkube is not installed: manifests are not compared with the API"
    )
    for document in documents(path):
        models = importlib.import_module(f"lightkube.models.{MODELS[document['apiVersion']]}")
        assert list(unknown_fields(getattr(models, document["kind"]), document, document["kind"])) == []


def unknown_fields(model: Any, value: Any, where: str) -> Iterator[str]:
    """As Kubernetes with strict validation would name them."""
    arguments = [each for each in typing.get_args(model) if each is not type(None)]
    if typing.get_origin(model) is list:
        for number, child in enumerate(value):
            yield from unknown_fields(arguments[0], child, f"{where}[{number}]")
    elif typing.get_origin(model) is not None and typing.get_origin(model) is not dict:
        yield from unknown_fields(arguments[0], value, where)
    elif getattr(model, "__module__", "").startswith("lightkube.models"):
        known = typing.get_type_hints(model)
        for key, child in value.items():
            name = f"{key}_" if keyword.iskeyword(key) else key
            if name not in known:
                yield f"{where}.{key}"
            else:
                yield from unknown_fields(known[name], child, f"{where}.{key}")


def test_a_field_that_does_not_exist_would_be_noticed() -> None:
    models = pytest.importorskip("lightkube.models.apps_v1", reason="lightkube is not installed")
    wrong = {"spec": {"template": {"spec": {"containers": [{"name": "x", "imagePullpolicy": "Always"}]}}}}
    assert list(unknown_fields(models.Deployment, wrong, "")) == [".spec.template.spec.containers[0].imagePullpolicy"]


def test_pods_run_as_nobody_on_a_root_they_cannot_write() -> None:
    """Schedulers and ticks make Jobs of tasks: nobody else has a token of the cluster."""
    found = [pod for path in MANIFESTS for document in documents(path) for pod in pods(document)]
    assert len(found) == 4
    for pod in found:
        names = {each["name"] for each in pod["containers"]}
        assert pod["automountServiceAccountToken"] is bool(names & {"scheduler", "tick"})
        assert pod["securityContext"]["runAsNonRoot"]
        mounted = {volume["name"] for volume in pod["volumes"]}
        for each in [*pod.get("initContainers", []), *pod["containers"]]:
            rights = each["securityContext"]
            assert (rights["readOnlyRootFilesystem"], rights["allowPrivilegeEscalation"]) == (True, False)
            assert rights["capabilities"] == {"drop": ["ALL"]}
            assert "runAsUser" not in rights
            assert {mount["name"] for mount in each["volumeMounts"]} <= mounted
            assert not [variable for variable in each["env"] if variable["name"] in ("ORK_STORE", "ORK_TOKEN")]


def test_probes_ask_routes_that_need_no_token_under_a_name_that_is_answered() -> None:
    (api,) = [each for each in containers(documents(DEPLOY / "kubernetes/base/ork.yaml")) if each["name"] == "api"]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = api[probe]["httpGet"]
        assert asked["path"] in ("/healthz", "/readyz")
        assert asked["httpHeaders"] == [{"name": "Host", "value": "localhost"}]


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on this machine: kustomizations are not built")
@pytest.mark.parametrize(
    ("variant", "kinds"),
    [
        ("base", {"Deployment": 2, "Service": 1, "Job": 1, "CronJob": 0, "Secret": 1, "PodDisruptionBudget": 2}),
        ("tick", {"Deployment": 1, "Service": 1, "Job": 1, "CronJob": 1, "Secret": 1, "PodDisruptionBudget": 1}),
    ],
)
def test_both_variants_can_be_built(variant: str, kinds: dict[str, int]) -> None:
    done = subprocess.run(
        ["kubectl", "kustomize", str(DEPLOY / "kubernetes" / variant)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    made = list(yaml.safe_load_all(done.stdout))
    assert {kind: sum(each["kind"] == kind for each in made) for kind in kinds} == kinds
    images = {each["image"] for document in made for each in containers(document)}
    assert len(images) == 1
    assert images != {"ork"}, "the image of your own did not reach every pod"


# ── systemd ──────────────────────────────────────────────────────────────────────────────────────────


NEEDS_ANALYZE = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze on this machine")
# What `systemd-analyze security` says, in tenths of a point. The difference is the capabilities that `task_user` needs.
EXPOSURE, EXPOSURE_WITH_TASK_USER = 25, 31


@NEEDS_ANALYZE
@pytest.mark.parametrize("with_task_user", [False, True], ids=["as it is", "with task-user.conf"])
@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_units_are_what_systemd_understands(tmp_path: Path, unit: Path, with_task_user: bool) -> None:
    """With a program that exists in place of ours, whose path belongs to the machine it is installed on."""
    install_units(tmp_path, with_task_user)
    done = _analyze("verify", "--man=no", str(tmp_path / unit.name))
    assert (done.returncode, done.stderr) == (0, "")


@NEEDS_ANALYZE
@pytest.mark.parametrize("name", SERVICES)
def test_units_are_hardened(tmp_path: Path, name: str) -> None:
    install_units(tmp_path, with_task_user=False)
    assert_exposure_at_most(EXPOSURE, tmp_path / name)


@NEEDS_ANALYZE
@pytest.mark.parametrize("name", SERVICES)
def test_units_with_a_task_user_are_exposed_by_its_capabilities_and_nothing_else(tmp_path: Path, name: str) -> None:
    install_units(tmp_path, with_task_user=True)
    assert_exposure_at_most(EXPOSURE_WITH_TASK_USER, tmp_path / name)


def install_units(folder: Path, with_task_user: bool) -> None:
    """As the comments in the units say, with a program that exists on this machine."""
    for unit in UNITS:
        (folder / unit.name).write_text(unit.read_text().replace("/opt/ork/bin/ork", "/bin/true"))
    for name in SERVICES if with_task_user else ():
        (folder / f"{name}.d").mkdir()
        shutil.copy(TASK_USER_DROP_IN, folder / f"{name}.d")


def assert_exposure_at_most(most: int, unit: Path) -> None:
    done = _analyze("security", "--offline=true", f"--threshold={most}", "--no-pager", str(unit))
    if "unrecognized option" in done.stderr:
        pytest.skip("this systemd cannot judge a unit that is not loaded")
    assert done.returncode == 0, done.stdout


def _analyze(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["systemd-analyze", *words], capture_output=True, text=True, timeout=60)


def settings(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if "=" in line and not line.startswith("#")]


def test_services_have_no_capabilities_unless_a_task_user_is_set_up() -> None:
    for name in SERVICES:
        found = [line for line in settings(DEPLOY / "systemd" / name) if re.search("Capabilit|TASK_USER", line)]
        assert found == ["CapabilityBoundingSet="], name


def test_the_drop_in_for_a_task_user_gives_the_user_and_the_capabilities_it_needs() -> None:
    wanted = " ".join(f"CAP_{each}" for each in TASK_USER_CAPABILITIES)
    assert settings(TASK_USER_DROP_IN) == [
        "Environment=ORK_TASK_USER=ork-tasks",
        f"CapabilityBoundingSet={wanted}",
        f"AmbientCapabilities={wanted}",
    ]


@pytest.mark.parametrize("name", SERVICES)
def test_each_service_says_how_to_install_the_drop_in(name: str) -> None:
    target = f"/etc/systemd/system/{name}.d/{TASK_USER_DROP_IN.name}"
    assert f"install -D -m 0644 {TASK_USER_DROP_IN.name} {target}" in (DEPLOY / "systemd" / name).read_text()


def test_tasks_outlive_the_services_that_started_them() -> None:
    for name in ("ork-serve.service", "ork-tick.service"):
        text = (DEPLOY / "systemd" / name).read_text()
        assert re.search("^KillMode=process$", text, re.M)
        assert not re.search("^PrivateTmp=yes$", text, re.M)
