"""Runs as OpenTelemetry traces: sent by the real SDK to a receiver on this machine, and read as a collector reads them."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.loopback import Loopback, loopback

pytest.importorskip("opentelemetry.sdk", reason="the OpenTelemetry SDK is not installed: no traces are tried")

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]

FLOW = """\
name: shop
tasks:
  fetch: {command: [sh, -c, 'echo "\\"$TRACEPARENT\\""']}
  flaky: {command: [sh, -c, 'test "$ORK_ATTEMPT" = 2'], retries: 1, retry_delay: 0, depends_on: [fetch]}
  each: {command: "true", parallel: 2, depends_on: [fetch]}
"""


def spans(site: Loopback) -> list[Any]:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    found = []
    for asked in site.asked:
        assert (asked.method, asked.path) == ("POST", "/v1/traces")
        for resource in ExportTraceServiceRequest.FromString(asked.body).resource_spans:
            names = {each.key: each.value.string_value for each in resource.resource.attributes}
            assert names["service.name"] == "ork"
            found += [span for scope in resource.scope_spans for span in scope.spans]
    return found


def said(span: Any) -> dict[str, Any]:
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


def run_with_traces(folder: Path, ork_cli: OrkCli, site: Loopback, **env: str) -> dict[str, Any]:
    site.answers.setdefault("/v1/traces", (200, b""))
    (folder / "workflow.yaml").write_text(FLOW)
    done = ork_cli("run", "--json", cwd=folder, env={"OTEL_EXPORTER_OTLP_ENDPOINT": site.url, **env})
    assert done.stdout, done.stderr
    run: dict[str, Any] = json.loads(done.stdout)
    return run


def test_a_run_is_a_trace_with_a_span_for_each_attempt(tmp_path: Path, ork_cli: OrkCli) -> None:
    with loopback() as site:
        run = run_with_traces(tmp_path, ork_cli, site)
        found = spans(site)
    (root,) = [span for span in found if not span.parent_span_id]
    below = [span for span in found if span.parent_span_id]
    assert (root.name, said(root)["ork.run"], said(root)["ork.status"]) == ("shop", run["id"], "success")
    assert {(span.trace_id, span.parent_span_id) for span in below} == {(root.trace_id, root.span_id)}
    told = sorted((span.name, said(span)["ork.attempt"], said(span)["ork.status"]) for span in below)
    assert told == [
        ("each[0]", 1, "success"),
        ("each[1]", 1, "success"),
        ("fetch", 1, "success"),
        ("flaky", 1, "failed"),
        ("flaky", 2, "success"),
    ]
    assert all(root.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano for span in below)
    assert all(span.end_time_unix_nano <= root.end_time_unix_nano for span in below)
    (failed,) = [span for span in below if span.status.code == 2]
    assert (failed.name, failed.status.message, said(failed)["ork.exit_code"]) == ("flaky", "exit code 1", 1)
    assert [event.name for event in failed.events] == ["started"]


def test_a_task_is_told_of_the_span_it_is(tmp_path: Path, ork_cli: OrkCli) -> None:
    with loopback() as site:
        run = run_with_traces(tmp_path, ork_cli, site)
        (fetch,) = [span for span in spans(site) if span.name == "fetch"]
    given = next(task["output"] for task in run["tasks"] if task["name"] == "fetch")
    assert given == f"00-{fetch.trace_id.hex()}-{fetch.span_id.hex()}-01"


def test_ticks_send_what_they_saw_end_before_they_leave(tmp_path: Path, ork_cli: OrkCli) -> None:
    (tmp_path / "ork.yaml").write_text("traces: true\n")
    (tmp_path / "workflow.yaml").write_text('name: one\ntasks:\n  a: {command: "true"}\n')
    with loopback() as site:
        site.answers["/v1/traces"] = (200, b"")
        env = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{site.url}/v1/traces"}
        ork_cli("deploy", "workflow.yaml", cwd=tmp_path)
        run = ork_cli("trigger", "one", cwd=tmp_path).stdout.strip()
        while json.loads(ork_cli("show", run, "--json", cwd=tmp_path).stdout)["status"] != "success":
            assert ork_cli("tick", cwd=tmp_path, env=env).returncode == 0
        attempt, whole = sorted(spans(site), key=lambda span: str(span.name))
    # Another process began it: nothing but the ids of run and attempt leads from one span to the other.
    assert (attempt.name, whole.name) == ("a", "one")
    assert (attempt.trace_id, attempt.parent_span_id) == (whole.trace_id, whole.span_id)


def test_a_trace_that_is_not_sampled_is_not_sent_and_its_tasks_know(tmp_path: Path, ork_cli: OrkCli) -> None:
    with loopback() as site:
        run = run_with_traces(tmp_path, ork_cli, site, OTEL_TRACES_SAMPLER="always_off")
        assert site.asked == []
    assert next(task["output"] for task in run["tasks"] if task["name"] == "fetch").endswith("-00")


@pytest.mark.parametrize("refusal", [{"ORK_TRACES": "off"}, {"OTEL_SDK_DISABLED": "true"}])
def test_who_says_no_gets_no_traces(tmp_path: Path, ork_cli: OrkCli, refusal: dict[str, str]) -> None:
    with loopback() as site:
        run = run_with_traces(tmp_path, ork_cli, site, **refusal)
        assert (run["status"], site.asked) == ("success", [])


def test_a_collector_that_is_down_costs_spans_and_nothing_else(tmp_path: Path, ork_cli: OrkCli) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        (tmp_path / "workflow.yaml").write_text(FLOW)
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{nobody.getsockname()[1]}"}
        done = ork_cli("run", cwd=tmp_path, env=env)
    assert (done.returncode, "success" in done.stdout + done.stderr) == (0, True)
    assert "Traceback" not in done.stderr
    assert "opentelemetry" not in done.stderr


def test_traces_that_were_asked_for_without_their_packages_are_an_error_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "workflow.yaml").write_text('name: one\ntasks:\n  a: {command: "true"}\n')
    blocked = "import sys; sys.modules['opentelemetry'] = None\nfrom ork.cli.main import main\nmain()"

    def run(**env: str) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-c", blocked, "run"]
        return subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True)

    asked = run(ORK_TRACES="on")
    assert asked.returncode == 2
    assert "ork-orchestrator[traces]" in asked.stderr
    assert run(OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9").returncode == 0
