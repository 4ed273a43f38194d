"""Where tasks run: worker configs, `default_where`, and what cannot run on Cloud Run."""

from __future__ import annotations

from typing import Any

import pytest

from ork.compile.load import load_workflow
from ork.compile.placement import Placement
from ork.definition.project_file import load_project
from ork.definition.workers_file import load_workers
from ork.model.infra import Where
from ork.model.record import replaced
from ork.model.workflow import CloudRunJob

HERE = "gcp: {project: acme, region: europe-west1}\n"
CLOUD = "default_where: cloudrun\n" + HERE
S3 = "objects: s3://bucket/ork?region=eu-central-1\n"
IMAGE = "default: {image: 'etl:1'}\n"


def project_of(text: str, workers: str) -> Any:
    project, problems = load_project(text.encode())
    configs, mistakes = load_workers(workers.encode())
    assert problems == mistakes == ()
    return replaced(project, workers=configs, found_secrets=frozenset({"PLAIN"}))


def loaded(tasks: str, project: Any, head: str = "") -> Any:
    files = {"a.py": b"def main(): ..."}
    text = f"name: flow\n{head}tasks:\n  t: {tasks}\n"
    return load_workflow(text.encode(), "flow.yaml", read=files.get, project=project)


def placed(tasks: str, project: Any) -> Any:
    workflow = loaded(tasks, project).require()
    return Placement(project).workflow(workflow).tasks[0]


def test_without_a_word_about_cloud_run_nothing_changes() -> None:
    project = project_of(HERE, "default: {cpu: 1}\n")
    workflow = loaded("{file: a.py}", project).require()
    assert not Placement(project).uses(Where.CLOUDRUN)
    assert Placement(project).workflow(workflow) is workflow


@pytest.mark.parametrize(
    ("settings", "workers", "task", "executor", "image"),
    [
        (CLOUD, IMAGE, "{file: a.py}", "cloudrun", "etl:1"),
        (CLOUD, IMAGE, "{image: busybox}", "cloudrun", "busybox"),
        (HERE, "default: {where: cloudrun, image: 'etl:1'}\n", "{file: a.py}", "cloudrun", "etl:1"),
        (HERE, "default: {cpu: 1}\nbig: {where: cloudrun, image: 'etl:1'}\n", "{file: a.py}", "python", None),
        (HERE, "big: {where: cloudrun, image: 'etl:1'}\n", "{file: a.py, worker: big}", "cloudrun", "etl:1"),
        (CLOUD, IMAGE + "here: {where: local}\n", "{file: a.py, worker: here}", "python", None),
        (CLOUD, "default: {image: 'etl:1', region: us-east1}\n", "{file: a.py}", "cloudrun:acme/us-east1", "etl:1"),
        (CLOUD, "default: {where: docker}\n", "{image: busybox}", "container", "busybox"),
        (CLOUD, IMAGE, "{workflow: other}", "workflow", None),
        (CLOUD, IMAGE, "{approval: sure?}", "approval", None),
    ],
)  # fmt: skip
def test_the_worker_config_or_the_default_chooses(
    settings: str, workers: str, task: str, executor: str, image: str | None
) -> None:
    spec = placed(task, project_of(settings, workers))
    assert (spec.executor, spec.image) == (executor, image)


@pytest.mark.parametrize(
    ("settings", "workers", "task", "words"),
    [
        (CLOUD, "default: {cpu: 1}\n", "{file: a.py}", "no image"),
        ("default_where: cloudrun\n", IMAGE, "{file: a.py}", "project and a region"),
        (CLOUD, "default: {image: x, cpu: 3}\n", "{file: a.py}", "not 3"),
        (CLOUD, IMAGE, "{file: a.py, environment: {requirements: [x]}}", "part of the image"),
        (CLOUD, IMAGE, "{image: x, input: {to_file: /a.json}}", "in a folder"),
        (CLOUD + S3, IMAGE, "{image: x, input: {to_file: /in/a.json}}", "cannot mount the object store s3://bucket"),
        (CLOUD + "objects: az://c\n", IMAGE, "{image: x, output: {from_file: /out/a}}", "for its file /out/a"),
        (CLOUD, IMAGE, "{image: x, output: {from_file: /out/a.csv}}", "the output /out/a.csv must be JSON"),
        (CLOUD, IMAGE, "{image: x, command: [{ref: run.id, as: file}]}", "gets no files"),
        (CLOUD, IMAGE, "{file: a.py, env: {A: {secret: PLAIN}}}", "would be visible"),
        (CLOUD, IMAGE, "{file: a.py, env: {A: {ref: params.key}}}", "is sensitive"),
        ("max_workers: 3\n", "", "{executor: cloudrun, job: nightly}", "project and a region"),
    ],
)
def test_what_cannot_run_there_is_refused(settings: str, workers: str, task: str, words: str) -> None:
    head = "params: {key: {type: str, sensitive: true}}\n"
    problems = loaded(task, project_of(settings, workers), head).problems
    assert [problem.code for problem in problems] == ["ORK613"]
    assert words in problems[0].message


@pytest.mark.parametrize(
    ("settings", "task"),
    [
        (CLOUD + "objects: gs://bucket\n", "{image: x, input: {to_file: /in/a.json}}"),
        (CLOUD, "{image: x, input: {to_file: /in/a.json}}"),  # the object store is not known here
        (CLOUD + S3, "{image: x}"),
        (CLOUD + S3, "{file: a.py}"),
        (S3, "{image: x, input: {to_file: /in/a.json}}"),
    ],
)
def test_files_of_images_need_a_bucket_only_on_cloud_run(settings: str, task: str) -> None:
    assert loaded(task, project_of(settings, IMAGE)).problems == ()


def test_a_task_without_an_image_is_told_both_places_that_can_name_one() -> None:
    (problem,) = loaded("{file: a.py}", project_of(CLOUD, "")).problems
    assert "`image` in the worker config" in str(problem.hint)
    assert "image of a code location" in str(problem.hint)


def test_a_secret_in_secret_manager_is_accepted() -> None:
    project = project_of(CLOUD + "secrets: {KEY: {from: gcp}}\n", IMAGE)
    assert loaded("{file: a.py, env: {A: {secret: KEY}}}", project).problems == ()


def test_a_job_that_exists_is_named_with_its_executor() -> None:
    project = project_of(HERE, "")
    (spec,) = loaded("{executor: cloudrun, job: nightly, args: [--day, '1']}", project).require().tasks
    assert spec.executor == "cloudrun"
    assert isinstance(spec.action, CloudRunJob)
    assert spec.action.job == "nightly"
    for wrong in ("{job: nightly}", "{executor: cloudrun, command: x}", "{executor: cloudrun, job: Nightly!}"):
        assert loaded(wrong, project).problems


# ── Kubernetes ───────────────────────────────────────────────────────────────────────────────────

CLUSTER = "default_where: kubernetes\nobjects: s3://bucket/ork?region=eu-central-1\n"
ELSEWHERE = "other: {where: kubernetes, image: 'etl:1', namespace: team-b, context: prod}\n"


@pytest.mark.parametrize(
    ("settings", "workers", "task", "executor", "image"),
    [
        (CLUSTER, IMAGE, "{file: a.py}", "kubernetes", "etl:1"),
        (CLUSTER, IMAGE, "{image: busybox}", "kubernetes", "busybox"),
        (CLUSTER, IMAGE + ELSEWHERE, "{file: a.py, worker: other}", "kubernetes:prod/team-b", "etl:1"),
        (CLUSTER + "kubernetes: {namespace: a}\n", IMAGE, "{file: a.py}", "kubernetes", "etl:1"),
        (CLUSTER, IMAGE + "here: {where: local}\n", "{file: a.py, worker: here}", "python", None),
        (S3 + HERE, "x: {where: kubernetes, image: 'etl:1'}\n", "{file: a.py, worker: x}", "kubernetes", "etl:1"),
    ],
)
def test_a_worker_config_brings_a_task_to_kubernetes(
    settings: str, workers: str, task: str, executor: str, image: str | None
) -> None:
    found = placed(task, project_of(settings, workers))
    assert (found.executor, found.image) == (executor, image)


@pytest.mark.parametrize(
    ("settings", "workers", "task", "words"),
    [
        (CLUSTER, "", "{file: a.py}", "there is no image with the task's code"),
        ("default_where: kubernetes\nobjects: journal:.ork/objects\n", IMAGE, "{file: a.py}", "cannot reach the object store"),
        (CLUSTER, IMAGE, "{image: x, output: {from_file: /out.json}}", "/out.json must be in a folder"),
        (CLUSTER, IMAGE, "{image: x, env: {A: {ref: run.id, as: file}}, output: {from_file: /input/x}}", "/input has the files"),
        (CLUSTER, IMAGE, "{file: a.py, environment: {requirements: [x]}}", "must be part of the image on Kubernetes"),
        (CLUSTER, IMAGE, "{file: a.py, env: {A: {secret: PLAIN}}}", "would be visible on Kubernetes"),
        (
            CLUSTER + "secrets: {KEY: {from: env}}\n", IMAGE, "{file: a.py, env: {A: {secret: KEY}}}",
            "secret `KEY` would be visible on Kubernetes",
        ),
    ],
)  # fmt: skip
def test_what_cannot_run_on_kubernetes_is_refused_with_a_hint(
    settings: str, workers: str, task: str, words: str
) -> None:
    found = loaded(task, project_of(settings, workers))
    (problem,) = found.problems
    assert problem.code == "ORK613"
    assert words in problem.message
    assert problem.hint


def test_a_secret_of_kubernetes_may_be_used_there_and_files_may_be_in_any_folder() -> None:
    project = project_of(CLUSTER + "secrets: {KEY: {from: kubernetes, secret: login, key: token}}\n", IMAGE)
    for task in (
        "{image: x, env: {A: {secret: KEY}}, input: {to_file: /in.json}, output: {from_file: /data/out.json}}",
        "{image: x, command: [cat, {ref: run.id, as: file}], output: {from_file: /data/out.csv}}",
        "{image: x, output: {from_file: /input/out.json}}",
    ):
        assert loaded(task, project).problems == ()
