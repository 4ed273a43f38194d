"""Jobs as requests to Kubernetes, and templates of pods."""

from __future__ import annotations

import re
from typing import Any

import pytest
from lightkube.resources.batch_v1 import Job

from ork.errors import DocumentError
from ork.executors.executor import GroupOrder, LaunchOrder
from ork.executors.kubernetes.making import (
    Program,
    attempt_job,
    group_job,
    group_job_name,
    group_label,
    job_name,
    label_value,
)
from ork.executors.kubernetes.template import merged
from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.model.task import Attempt, AttemptStatus
from ork.objects.group_members import members_of
from tests.unit.executors.kubernetes_subject import pod_document


def spec(**changes: Any) -> dict[str, Any]:
    made = {
        "attempt": "7f3k/load/0/1", "run_id": "7f3k", "task": "load", "kind": "python", "timeout": None,
        "stop_grace_seconds": 10, "argv": [], "inputs": None, "upstream": {}, "env": {}, "to_file": None, "from_file": None, "container": pod_document(),
    }  # fmt: skip
    return {**made, **changes}


def job(made: dict[str, Any], **more: Any) -> dict[str, Any]:
    options = {"objects_url": "s3://docs/ork", "token": "t0ken", "ork_image": "ork:1", "program": Program(), **more}
    manifest = attempt_job(made, "here", **options)
    assert Job.from_dict(manifest).to_dict()["spec"] == manifest["spec"]  # lightkube knows every key of it
    return manifest


def pod(made: dict[str, Any], **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = job(made, **more)["spec"]["template"]["spec"]
    return found


def plain(**changes: Any) -> dict[str, Any]:
    return spec(kind="container", **changes)


def env_of(container: dict[str, Any]) -> dict[str, Any]:
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in container["env"]}


def order(index: int) -> LaunchOrder:
    key = AttemptKey(RunId("7f3k"), TaskKey("each", index), 1)
    from datetime import UTC, datetime

    attempt = Attempt(key, AttemptStatus.DISPATCHED, "kubernetes", "x", "00", datetime.now(UTC))
    return LaunchOrder(attempt, "token", ".")


def test_a_job_is_named_after_its_attempt_and_starts_one_pod_once() -> None:
    made = job(spec())
    assert made["metadata"]["name"] == job_name("7f3k/load/0/1", "here") != job_name("7f3k/load/0/2", "here")
    assert job_name("7f3k/load/0/1", "there") != job_name("7f3k/load/0/1", "here")
    assert re.fullmatch(r"ork-[0-9a-f]{24}", made["metadata"]["name"])
    rules = {name: value for name, value in made["spec"].items() if name != "template"}
    assert rules == {"backoffLimit": 0, "completions": 1, "parallelism": 1, "podReplacementPolicy": "Failed"}
    assert made["spec"]["template"]["spec"]["restartPolicy"] == "Never"
    labels = made["spec"]["template"]["metadata"]["labels"]
    assert labels == {
        "ork.dev/installation": "here", "ork.dev/run": "7f3k", "ork.dev/task": "load", "ork.dev/attempt": "7f3k.load.0.1",
    }  # fmt: skip
    assert made["metadata"]["annotations"] == {"ork.dev/attempts": "7f3k/load/0/1"}


def test_an_image_with_ork_runs_its_worker_and_nothing_beside_it() -> None:
    made = pod(spec())
    (main,) = made["containers"]
    assert (main["command"], "initContainers" in made, "volumes" in made) == (["ork-worker"], False, False)
    env = env_of(main)
    assert (env["ORK_OBJECTS"], env["ORK_ATTEMPT_ID"], env["ORK_TOKEN"]) == ("s3://docs/ork", "7f3k/load/0/1", "t0ken")
    assert env["ORK_POD"] == {"fieldRef": {"fieldPath": "metadata.name"}}


def test_an_image_with_python_gets_the_worker_from_an_init_container_and_cannot_change_it() -> None:
    made = pod(spec(container=pod_document(has_ork=False)))
    (main,), (bring,) = made["containers"], made["initContainers"]
    assert main["command"][:3] == ["python3", "-S", "-E"]
    assert main["command"][-2:] == ["s3://docs/ork", "7f3k/load/0/1"]
    assert main["volumeMounts"] == [{"name": "ork-bring", "mountPath": "/ork-worker", "readOnly": True}]
    assert (bring["image"], bring["command"]) == ("ork:1", ["ork-worker", "bring", "/ork-worker"])
    with pytest.raises(DocumentError, match="no image is known that brings it"):
        pod(spec(container=pod_document(has_ork=False)), ork_image=None)


def test_a_plain_image_gets_its_gate_input_and_upload_from_containers_beside_it() -> None:
    made = pod(plain(to_file="/data/in.json", from_file="/data/out.json"), program=Program(["--x"], {"A": "1"}))
    (main,), (upload, begin) = made["containers"], made["initContainers"]
    assert (main["args"], "command" in main) == (["--x"], False)
    assert env_of(main) == {"A": "1"}  # neither its token nor its object store
    assert main["volumeMounts"] == [
        {"name": "ork-output", "mountPath": "/data"},
        {"name": "ork-files", "mountPath": "/data/in.json", "subPath": "input", "readOnly": True},
    ]
    assert (begin["command"][1], upload["command"][1:]) == ("begin", ["upload", "/ork-files", "/ork-output/out.json"])
    assert (upload["restartPolicy"], "restartPolicy" in begin) == ("Always", False)
    assert env_of(begin)["ORK_TOKEN"] == env_of(upload)["ORK_TOKEN"] == "t0ken"
    assert made["terminationGracePeriodSeconds"] == 600
    without = pod(plain())
    assert [each["name"] for each in without["initContainers"]] == ["ork-begin"]
    assert without["terminationGracePeriodSeconds"] == 10
    with pytest.raises(DocumentError, match="must be in a folder"):
        pod(plain(from_file="/out.json"))


def test_kubernetes_replaces_nothing_in_arguments_and_variables() -> None:
    (main,) = pod(plain(), program=Program(["$(HOME)", "$$"], {"A": "$(PATH)"}))["containers"]
    assert (main["args"], env_of(main)) == (["$$(HOME)", "$$$$"], {"A": "$$(PATH)"})


def test_secrets_are_references_and_never_values() -> None:
    reference = {"secretKeyRef": {"name": "login", "key": "token"}}
    (main,) = pod(spec(container=pod_document(secrets={"ORK_SECRET_KEY": "login/token"})))["containers"]
    assert env_of(main)["ORK_SECRET_KEY"] == reference
    of_program = Program(secrets={"KEY": "login/token"})
    made = pod(plain(container=pod_document(secrets={"ORK_SECRET_KEY": "login/token"})), program=of_program)
    assert env_of(made["containers"][0]) == {"KEY": reference}
    assert env_of(made["initContainers"][0])["ORK_SECRET_KEY"] == reference


def test_files_for_a_plain_image_are_in_one_folder_that_it_cannot_write() -> None:
    files = {"argv": [{"as_file": {"value": 1}, "name": "rows"}], "to_file": "/input/all.json"}
    (main,) = pod(plain(**files), program=Program(["/input/rows.json"]))["containers"]
    assert main["args"] == ["/input/rows.json"]
    assert main["volumeMounts"] == [
        {"name": "ork-files", "mountPath": "/input", "subPath": "inputs", "readOnly": True},
        {"name": "ork-files", "mountPath": "/input/all.json", "subPath": "input", "readOnly": True},
    ]


def test_the_worker_has_access_to_the_object_store_and_the_program_has_not() -> None:
    wanted = {"objects_secret": "bucket-keys", "env": {"AWS_REGION": "eu", "ORK_TOKEN": "forged"}}
    access = [{"prefix": "ORK_STORE_", "secretRef": {"name": "bucket-keys"}}]
    made = pod(plain(from_file="/data/out.json", container=pod_document(**wanted)))
    (main,), (upload, begin) = made["containers"], made["initContainers"]
    assert "envFrom" not in main
    assert upload["envFrom"] == begin["envFrom"] == access
    assert {env_of(each)["AWS_REGION"] for each in (upload, begin)} == {"eu"}
    made = pod(spec(container=pod_document(has_ork=False, **wanted)))
    (main,), (bring,) = made["containers"], made["initContainers"]
    assert (main["envFrom"], env_of(main)["AWS_REGION"], env_of(main)["ORK_TOKEN"]) == (access, "eu", "t0ken")
    assert "envFrom" not in bring


def test_pods_keep_to_the_baseline_and_to_their_user() -> None:
    made = pod(spec())
    assert made["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
    assert made["containers"][0]["securityContext"] == {"allowPrivilegeEscalation": False}
    assert made["automountServiceAccountToken"] is False
    made = pod(plain(from_file="/d/o", container=pod_document(user="1000:2000", read_only=True, service_account="etl")))
    assert (made["automountServiceAccountToken"], made["serviceAccountName"]) == (True, "etl")
    assert made["securityContext"]["fsGroup"] == 2000
    assert made["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False, "runAsUser": 1000, "runAsGroup": 2000, "runAsNonRoot": True,
        "readOnlyRootFilesystem": True,
    }  # fmt: skip
    assert {each["securityContext"]["runAsUser"] for each in made["initContainers"]} == {1000}


def test_sizes_nodes_and_deadlines_are_those_of_the_worker_config() -> None:
    wanted = pod_document(
        cpu=0.5, memory=1 << 30, gpu="2", node_selector={"disk": "ssd"}, tolerations=[{"operator": "Exists"}],
        image_pull_secrets=["registry"], pull="always",
    )  # fmt: skip
    made = pod(spec(container=wanted, timeout=60))
    (main,) = made["containers"]
    assert main["resources"]["limits"] == {"cpu": "500m", "memory": "1073741824", "nvidia.com/gpu": "2"}
    assert main["resources"]["requests"] == {"cpu": "500m", "memory": "1073741824"}
    assert main["imagePullPolicy"] == "Always"
    assert (made["nodeSelector"], made["tolerations"]) == ({"disk": "ssd"}, [{"operator": "Exists"}])
    assert made["imagePullSecrets"] == [{"name": "registry"}]
    assert made["activeDeadlineSeconds"] == 130  # the worker ends its task before
    assert pod(plain(timeout=0.2))["activeDeadlineSeconds"] == 1
    assert "activeDeadlineSeconds" not in pod(spec())


def test_a_group_is_one_indexed_job_that_no_failure_ends() -> None:
    group = GroupOrder("7f3k/each/0/1", 2, "aa", tuple(order(index) for index in range(5)))
    made = group_job(group, spec(), "here", 3, objects_url="s3://docs/ork", ork_image=None)
    label = group_label("7f3k/each/0/1", "here")
    assert made["metadata"]["name"] == group_job_name(label, 3)
    rules = {name: value for name, value in made["spec"].items() if name != "template"}
    assert rules == {
        "completionMode": "Indexed", "completions": 5, "parallelism": 2, "backoffLimitPerIndex": 0,
        "podReplacementPolicy": "Failed",
    }  # fmt: skip
    assert made["metadata"]["labels"]["ork.dev/group"] == label
    env = env_of(made["spec"]["template"]["spec"]["containers"][0])
    assert members_of(env["ORK_ATTEMPTS"]) == [f"7f3k/each/{index}/1" for index in range(5)]
    assert (env["ORK_GROUP"], env["ORK_GROUP_KEY"], "ORK_TOKEN" in env) == ("7f3k/each/0/1", "aa", False)


def test_a_pod_template_is_merged_below_what_ork_sets() -> None:
    template = {
        "metadata": {"annotations": {"a": "b"}, "labels": {"ork.dev/run": "forged", "team": "x"}},
        "spec": {
            "priorityClassName": "low",
            "restartPolicy": "Always",
            "tolerations": [{"key": "a", "operator": "Exists"}],
            "volumes": [{"name": "scratch", "emptyDir": {}}],
            "containers": [
                {
                    "name": "main", "image": "forged", "command": ["forged"],
                    "env": [{"name": "ORK_TOKEN", "value": "forged"}, {"name": "MORE", "value": "1"}],
                    "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
                }
            ],
        },
    }  # fmt: skip
    wanted = pod_document(template=template, tolerations=[{"operator": "Exists"}], labels={"team": "y"})
    made = job(spec(container=wanted))["spec"]["template"]
    assert made["metadata"]["annotations"] == {"a": "b"}
    assert (made["metadata"]["labels"]["ork.dev/run"], made["metadata"]["labels"]["team"]) == ("7f3k", "y")
    inner, (main,) = made["spec"], made["spec"]["containers"]
    assert (inner["priorityClassName"], inner["restartPolicy"]) == ("low", "Never")
    assert inner["tolerations"] == [{"operator": "Exists"}, {"key": "a", "operator": "Exists"}]
    assert (main["image"], main["command"]) == ("image", ["ork-worker"])
    assert (env_of(main)["ORK_TOKEN"], env_of(main)["MORE"]) == ("t0ken", "1")
    assert main["volumeMounts"] == [{"name": "scratch", "mountPath": "/scratch"}]


def test_merging_keeps_both_mounts_of_one_volume_and_the_order_of_our_containers() -> None:
    below = [{"name": "v", "mountPath": "/a"}, {"name": "x"}]
    above = [{"name": "v", "mountPath": "/b"}, {"name": "w"}]
    assert merged(below, above) == [*above, *below]
    assert merged({"a": [1]}, {"a": [2]}) == {"a": [2]}


@pytest.mark.parametrize("text", ["a" * 200, "with space", "-edge-", "ümlaut", "fine.name_1"])
def test_any_text_becomes_the_value_of_a_label(text: str) -> None:
    value = label_value(text)
    assert re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", value)
    assert (value == text) == (text == "fine.name_1")
