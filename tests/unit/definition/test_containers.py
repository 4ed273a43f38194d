"""Tasks in images and the worker configs they run with: what is written, what it means, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from ork.compile.content import from_document, to_document
from ork.compile.load import Loaded, load_workflow
from ork.compile.workers import config_for
from ork.definition.project import Project
from ork.definition.quantities import memory_text
from ork.definition.workers_file import load_workers, read_workers
from ork.model.infra import Mount, Pull, Resources, Where, WorkerConfig
from ork.model.workflow import Const, Container, PythonCall, Ref, TaskSpec
from ork.settings import load_settings

SAMPLES = Path(__file__).parents[2] / "samples"
WORKERS = """
default: {where: docker, memory: 512Mi, cpu: 1}
heavy: {where: docker, cpu: 4, memory: 8Gi, pids: 100, user: "1000", network: none, read_only: true, pull: always,
        volumes: ["/data:/data:ro", "cache:/cache"], env: {TZ: UTC}, timeout: 1h, host: "tcp://engine:2375"}
here: {where: local, timeout: 10m}
cloud: {where: cloudrun, service_account: etl@x, vpc_connector: main}
"""


def load(task: str, workers: str = WORKERS, more: str = "") -> Loaded:
    configs, problems = load_workers(workers.encode())
    assert problems == ()
    text = f"name: w\n{more}tasks:\n  a:\n    {task}\n"
    return load_workflow(
        text.encode(), "w.yaml", read={}.get, project=Project(workers=configs, found_secrets=frozenset())
    )


def spec_of(task: str, more: str = "") -> TaskSpec:
    return load(task, more=more).require().tasks[0]


def test_a_plain_image_needs_no_executor_and_nothing_else() -> None:
    spec = spec_of("image: registry:5000/team/report:1.0")
    assert (spec.executor, spec.image, spec.action) == ("container", "registry:5000/team/report:1.0", Container())


def test_command_input_and_output_of_a_plain_image() -> None:
    spec = spec_of(
        "image: report\n    command: [report, {ref: params.day}]\n    input: {to_file: /in/a.json}\n"
        "    output: {from_file: /out/b.json}",
        more="params: {day: date}\n",
    )
    words = (Const("report"), Ref(("params", "day")))
    assert spec.action == Container(words, "/in/a.json", "/out/b.json")


@pytest.mark.parametrize("task", ["executor: python\n    file: x.py", "file: x.py", "module: x\n    function: f"])
def test_a_function_in_an_image_is_not_looked_for_here(task: str) -> None:
    spec = spec_of(f"image: etl\n    {task}")
    assert spec.executor == "container"
    assert isinstance(spec.action, PythonCall)


def test_what_is_compiled_can_be_read_back() -> None:
    workflow = load(
        "image: etl@sha256:" + "a" * 64 + "\n    command: [x]\n    input: {to_file: /i}\n    output: {from_file: /o}\n"
        "    worker: heavy\n    resources: {cpu: 500m, memory: 64Mi}"
    ).require()
    assert workflow.tasks[0].resources == Resources(0.5, 64 << 20)
    assert from_document(to_document(workflow)) == workflow


def test_a_file_of_worker_configs_says_all_there_is_to_say() -> None:
    configs, _ = load_workers(WORKERS.encode())
    assert configs["heavy"] == WorkerConfig(
        "heavy",
        Where.DOCKER,
        Resources(4.0, 8 << 30),
        timeout=3600.0,
        env=(("TZ", "UTC"),),
        host="tcp://engine:2375",
        network="none",
        user="1000",
        read_only=True,
        pids=100,
        pull=Pull.ALWAYS,
        volumes=(Mount("/data", "/data", True), Mount("cache", "/cache")),
    )


@pytest.mark.parametrize(
    ("text", "code", "line", "column"),
    [
        ("heavy: {where: moon}", "ORK104", 1, 16),
        ("heavy: {where: docker, privileged: true}", "ORK101", 1, 24),
        ("heavy: {where: docker, memory: lots}", "ORK608", 1, 32),
        ("heavy: {where: docker, volumes: [data]}", "ORK608", 1, 34),
        ("heavy: {where: local, volumes: [a:/a]}", "ORK608", 1, 32),
        ("heavy: {capabilities: ['rm -rf']}", "ORK608", 1, 24),
        ("workers: {heavy: {where: moon}}", "ORK104", 1, 26),
        ("workers: {heavy: {cpu: 1}}\nheavy: {cpu: 2}", "ORK101", 2, 1),
        ("workers: [heavy]", "ORK103", 1, 10),
        ("heavy: {where: docker, vpc_connector: x}", "ORK608", 1, 39),
        ("default: hevy\nheavy: {where: docker}", "ORK606", 1, 10),
    ],
)
def test_a_mistake_in_worker_configs_has_its_place(text: str, code: str, line: int, column: int) -> None:
    _, (problem,) = load_workers(text.encode())
    assert (problem.code, problem.line, problem.column) == (code, line, column)


def test_the_sample_of_worker_configs_loads_as_written() -> None:
    configs, problems = load_workers((SAMPLES / "workers.yaml").read_bytes())
    assert problems == ()
    assert sorted(configs) == ["default", "extract", "transform"]
    connector = "projects/x/locations/y/connectors/internal"
    account = "ork-transform@project.iam.gserviceaccount.com"
    assert configs["transform"] == WorkerConfig(
        "transform", None, Resources(2.0, 4 << 30), service_account=account, vpc_connector=connector
    )
    assert configs["default"].resources == configs["extract"].resources == Resources(1.0, 2 << 30)


def test_a_config_may_be_called_workers() -> None:
    configs, problems = load_workers(b"workers: {where: docker, env: {A: b}}\nother: {cpu: 1}")
    assert (sorted(configs), problems) == (["other", "workers"], ())


def test_a_config_without_where_runs_tasks_with_and_without_an_image() -> None:
    configs, _ = load_workers(b"workers: {small: {memory: 64Mi}}\ndefault: small")
    named = [config_for(spec_of(task), configs) for task in ("image: x", "command: x")]
    assert [config and config.resources.memory for config in named] == [64 << 20, 64 << 20]


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("heavy: {where: moon}\nlight: {cpu: 1}", {"heavy"}),
        ("default: heavy\nheavy: {where: moon}", {"heavy", "default"}),
        ("default: hevy\nheavy: {cpu: 1}", {"default"}),
        ("heavy: {cpu: [}", {"*"}),
        ("default: heavy\nheavy: {cpu: [}", {"*", "default"}),
        ("- heavy", {"*"}),
    ],
)
def test_a_mistake_in_one_config_leaves_the_others(text: str, broken: set[str]) -> None:
    assert set(read_workers(text.encode()).broken) == broken


def test_a_task_that_names_a_config_with_a_mistake_is_refused() -> None:
    found = read_workers(b"heavy: {where: moon}")
    project = Project(workers=found.configs, broken_workers=found.broken)
    for task, refused in (("command: x\n    worker: heavy", ["ORK606"]), ("command: x", [])):
        text = f"name: w\ntasks:\n  a:\n    {task}\n"
        loaded = load_workflow(text.encode(), "w.yaml", read={}.get, project=project)
        assert [problem.code for problem in loaded.problems] == refused


def test_the_default_may_be_another_one_by_name() -> None:
    configs, _ = load_workers(b"default: small\nsmall: {where: docker, memory: 64Mi}")
    assert configs["default"].resources.memory == 64 << 20


def test_a_task_runs_with_the_config_it_names_else_with_the_default_if_that_fits() -> None:
    configs, _ = load_workers(WORKERS.encode())
    names = [
        (config := config_for(spec_of(task), configs)) and config.name
        for task in ("image: x\n    worker: heavy", "image: x", "command: x", "command: x\n    worker: here")
    ]
    assert names == ["heavy", "default", None, "here"]


@pytest.mark.parametrize(
    ("task", "code", "said"),
    [
        ("image: x\n    worker: hevy", "ORK606", "no worker config `hevy`"),
        ("command: x\n    worker: heavy", "ORK606", "is for docker"),
        ("image: x\n    worker: here", "ORK606", "is for local"),
        ("image: x\n    worker: cloud", "ORK613", "needs a project and a region"),
        ("image: x\n    resources: {memory: 1Gi}", "ORK607", "asks for 1Gi, more than the 512Mi"),
        ("image: x\n    resources: {cpu: 2}", "ORK607", "asks for 2 processors, more than the 1 of"),
    ],
)
def test_what_a_config_does_not_allow_is_refused(task: str, code: str, said: str) -> None:
    (problem,) = load(task).problems
    assert (problem.code, said in problem.message) == (code, True), problem


def test_input_instead_of_inputs_is_explained() -> None:
    problems = load("command: [cat]\n    input: {n: 1}").problems
    assert any(problem.hint is not None and "`inputs`" in problem.hint for problem in problems)


def test_a_default_worker_holds_for_those_tasks_it_fits() -> None:
    loaded = load("command: x\n  b:\n    image: y", more="defaults: {worker: heavy}\n")
    configs, _ = load_workers(WORKERS.encode())
    assert [config_for(spec, configs) is not None for spec in loaded.require().tasks] == [False, True]


def test_settings_read_the_file_beside_ork_yaml_and_show_its_mistakes(tmp_path: Path) -> None:
    (tmp_path / "workers.yaml").write_text(WORKERS)
    assert sorted(load_settings(folder=str(tmp_path), environ={}).workers) == ["cloud", "default", "heavy", "here"]
    (tmp_path / "workers.yaml").write_text("heavy: {where: moon}\nlight: {cpu: 1}\n")
    settings = load_settings(folder=str(tmp_path), environ={})
    assert list(settings.workers) == ["light"]
    assert settings.project is not None
    assert list(settings.project.broken_workers) == ["heavy"]
    assert [problem.code for problem in settings.project.worker_problems] == ["ORK104"]


def test_memory_is_shown_as_it_was_written() -> None:
    assert [memory_text(size) for size in (64 << 20, 2 << 30, 1000, 6144)] == ["64Mi", "2Gi", "1000", "6Ki"]
