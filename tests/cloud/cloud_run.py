"""A fake Cloud Run: the Jobs, executions, tasks and operations of its REST API, version 2, as Google's client uses them.

It is strict about names, fields, sizes and quotas, and starts real processes or containers. `faults` holds what a real
service cannot be made to do: answers lost after execution, late listings, forgotten executions, second starts, cold starts,
errors on request.
"""

from __future__ import annotations

import json
import random
import re
import signal
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from http.server import ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from google.cloud import run_v2
from google.protobuf import json_format

from tests.cloud.answers import as_json, error_body, failure_words, handler, page, utc_now
from tests.cloud.bucket_volumes import Bucket
from tests.cloud.rules import RefusedError, check_job, check_variables
from tests.cloud.runners import Mount, Result, Runner, Running, Wanted

_S = run_v2.Condition.State
_REASON = run_v2.Condition.ExecutionReason
_PARENT = r"/v2/projects/(?P<project>[^/]+)/locations/(?P<region>[^/]+)"
_ROUTES = [
    (method, re.compile(_PARENT + path), verb)
    for method, path, verb in (
        ("POST", r"/jobs", "jobs.create"),
        ("GET", r"/jobs", "jobs.list"),
        ("GET", r"/jobs/(?P<job>[^/:]+)", "jobs.get"),
        ("DELETE", r"/jobs/(?P<job>[^/:]+)", "jobs.delete"),
        ("POST", r"/jobs/(?P<job>[^/:]+):run", "jobs.run"),
        ("POST", r"/jobs/(?P<job>[^/:]+):testIamPermissions", "jobs.testIamPermissions"),
        ("GET", r"/jobs/(?P<job>[^/:]+)/executions", "executions.list"),
        ("GET", r"/jobs/(?P<job>[^/:]+)/executions/(?P<execution>[^/:]+)", "executions.get"),
        ("POST", r"/jobs/(?P<job>[^/:]+)/executions/(?P<execution>[^/:]+):cancel", "executions.cancel"),
        ("GET", r"/jobs/(?P<job>[^/:]+)/executions/(?P<execution>[^/:]+)/tasks", "tasks.list"),
        ("GET", r"/operations/(?P<operation>[^/:]+)", "operations.get"),
    )
]
GRACE_SECONDS = 10.0


@dataclass
class Faults:
    lost_answers: float = 0.0  # the share of calls that are carried out and not answered
    late_listings: float = 0.0  # seconds until an execution is listed
    late_names: float = 0.0  # seconds until an execution is found by its name
    slow_deletes: float = 0.0  # seconds until a Job is deleted, with its executions
    forgets_ended: bool = False  # executions are not found once they have ended
    starts_twice: bool = False  # each task is started a second time, beside the first
    cold_start: float = 0.0  # seconds until a task starts
    errors: list[tuple[str, int, str]] = field(default_factory=list)  # verb, code, message: one for each next call
    random: random.Random = field(default_factory=lambda: random.Random(7))


@dataclass
class _Job:
    message: run_v2.Job
    problem: str | None


@dataclass
class _Execution:
    message: run_v2.Execution
    listed_at: float
    named_at: float
    is_cancelled: bool = False
    running: list[Running] = field(default_factory=list)
    results: dict[int, Result] = field(default_factory=dict)


class FakeCloudRun:
    """`url` is the endpoint for a client. `buckets` are what volumes mount; `secrets` values by name of the secret."""

    def __init__(
        self,
        runner: Runner,
        *,
        project: str = "acme",
        region: str = "europe-west1",
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self.project, self.region = project, region
        self._now = now
        self.faults = Faults()
        self.buckets: dict[str, Bucket] = {}
        self.secrets: dict[str, str] = {}
        self.denied: set[str] = set()  # permissions that the caller lacks
        self.most_running: int | None = None  # quota of executions at once
        self.calls: Counter[str] = Counter()
        self.logs: dict[str, bytes] = {}  # by execution and index
        self._runner = runner
        self._jobs: dict[str, _Job] = {}
        self._executions: dict[str, _Execution] = {}
        self._lock = threading.RLock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        with self._lock:
            left = [running for execution in self._executions.values() for running in execution.running]
        for running in left:
            running.stop(signal.SIGKILL)

    # ── for tests ────────────────────────────────────────────────────────────────────────────────

    @property
    def jobs(self) -> list[str]:
        return [name.rpartition("/")[2] for name in self._jobs]

    @property
    def executions(self) -> list[run_v2.Execution]:
        return [execution.message for execution in self._executions.values()]

    def running(self) -> int:
        with self._lock:
            return sum(not each.message.completion_time for each in self._executions.values())

    def kill_tasks(self) -> None:
        """As if the machines of all running tasks were lost."""
        with self._lock:
            for execution in self._executions.values():
                for running in execution.running:
                    running.stop(signal.SIGKILL)

    # ── answering ────────────────────────────────────────────────────────────────────────────────

    def answer(self, method: str, url: str, body: bytes) -> tuple[int, dict[str, Any]] | None:
        """Code and body of the answer; None if it is lost."""
        parts = urlsplit(url)
        if parts.path == "/v2/entries:list":
            self.calls["entries.list"] += 1
            if "logging.logEntries.list" in self.denied:
                words = "Permission denied for all log views"
                return 403, error_body(403, words, "PERMISSION_DENIED")
            return 200, self._entries(json.loads(body))
        account = re.fullmatch(r"/v1/projects/-/serviceAccounts/([^/:]+):testIamPermissions", parts.path)
        if account is not None:  # of IAM
            self.calls["serviceAccounts.testIamPermissions"] += 1
            held = [each for each in json.loads(body)["permissions"] if each not in self.denied]
            return 200, {"permissions": held} if held else {}
        for wanted, pattern, verb in _ROUTES:  # noqa: B007
            found = pattern.fullmatch(parts.path)
            if method == wanted and found is not None:
                break
        else:
            return 404, error_body(404, f"no such method: {method} {parts.path}", "NOT_FOUND")
        self.calls[verb] += 1
        try:
            self._check(verb, **found.groupdict())
            query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
            given = json.loads(body or b"{}")
            made = getattr(self, "_" + verb.replace(".", "_"))(given, query, **found.groupdict())
        except RefusedError as error:
            return error.code, error_body(error.code, str(error), error.status)
        except json_format.ParseError as error:
            return 400, error_body(400, f"Invalid JSON payload received. {error}", "INVALID_ARGUMENT")
        if self.faults.random.random() < self.faults.lost_answers:
            return None
        return 200, made

    def _entries(self, wanted: dict[str, Any]) -> dict[str, Any]:
        """Cloud Logging: a line of each task of the execution that the filter names is an entry."""
        found = re.search(r'execution_name"="([^"]+)"', wanted["filter"])
        assert found is not None
        logs = [log for name, log in self.logs.items() if f"/{found[1]}/" in name]
        return {"entries": [{"textPayload": line} for log in logs for line in log.decode().splitlines()]}

    def _check(self, verb: str, project: str, region: str, **_names: str) -> None:
        for number, (which, code, message) in enumerate(self.faults.errors):
            if which == verb:
                del self.faults.errors[number]
                raise RefusedError(
                    message, code, {429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE", 409: "ABORTED"}.get(code, "")
                )
        permission = "run." + verb
        if project != self.project or (permission in self.denied and verb != "jobs.testIamPermissions"):
            resource = f"projects/{project}/locations/{region}"
            message = f"Permission '{permission}' denied on resource '{resource}' (or resource may not exist)."
            raise RefusedError(message, 403, "PERMISSION_DENIED")
        if region != self.region:
            raise RefusedError(f"Location {region} is not found or access is unauthorized.", 403, "PERMISSION_DENIED")

    def _jobs_create(self, body: Any, query: dict[str, str], **_: str) -> dict[str, Any]:
        job = json_format.ParseDict(body, run_v2.Job.pb(run_v2.Job()))
        if not {"jobId"} >= set(query) - {"$alt", "validateOnly"}:
            raise RefusedError(f"unknown parameters: {sorted(query)}")
        job_id = query.get("jobId", "")
        check_job(job_id, job)
        made = run_v2.Job.wrap(job)
        made.name, made.uid, made.create_time = self._full(job_id), str(uuid.uuid4()), self._now()
        problem = self._problem(made)
        made.terminal_condition = {
            "type_": "Ready", "state": _S.CONDITION_FAILED if problem else _S.CONDITION_SUCCEEDED, "message": problem or "",
        }  # fmt: skip
        with self._lock:
            if made.name in self._jobs:
                raise RefusedError(f"Job {job_id} already exists", 409, "ALREADY_EXISTS")
            if len(self._jobs) >= 1000:
                raise RefusedError("Quota exceeded: at most 1000 Jobs per region", 429, "RESOURCE_EXHAUSTED")
            self._jobs[made.name] = _Job(made, problem)
        return self._operation(made)

    def _problem(self, job: run_v2.Job) -> str | None:
        """Why the Job never gets ready."""
        task = job.template.template
        image = task.containers[0].image
        if not self._runner.has_image(image):
            return f"Image '{image}' not found."
        for variable in task.containers[0].env:
            secret = variable.value_source.secret_key_ref.secret if variable.value_source else ""
            if secret and secret not in self.secrets:
                return f"Permission denied on secret: {secret} for Revision service account {task.service_account}."
        missing = [each.gcs.bucket for each in task.volumes if each.gcs and each.gcs.bucket not in self.buckets]
        return f"Bucket {missing[0]} not found." if missing else None

    def _jobs_list(self, _body: Any, query: dict[str, str], **_: str) -> dict[str, Any]:
        with self._lock:
            jobs = sorted((job.message for job in self._jobs.values()), key=lambda job: job.name)
        return page("jobs", [as_json(job) for job in jobs], query)

    def _jobs_get(self, _body: Any, _query: dict[str, str], job: str, **_: str) -> dict[str, Any]:
        return as_json(self._job(job).message)

    def _jobs_delete(self, _body: Any, _query: dict[str, str], job: str, **_: str) -> dict[str, Any]:
        found = self._job(job)
        if self.faults.slow_deletes:
            threading.Timer(self.faults.slow_deletes, self._delete, [job]).start()
        else:
            self._delete(job)
        return self._operation(found.message)

    def _delete(self, job: str) -> None:
        with self._lock:
            for execution in self._of_job(job):
                self._cancel(execution)
                del self._executions[execution.message.name]
            self._jobs.pop(self._full(job), None)

    def _jobs_testIamPermissions(self, body: Any, _query: dict[str, str], **_: str) -> dict[str, Any]:
        return {"permissions": [each for each in body["permissions"] if each not in self.denied]}

    def _jobs_run(self, body: Any, _query: dict[str, str], job: str, **_: str) -> dict[str, Any]:
        request = json_format.ParseDict(body, run_v2.RunJobRequest.pb(run_v2.RunJobRequest()))
        overrides = run_v2.RunJobRequest.wrap(request).overrides
        found = self._job(job)
        if found.problem is not None:
            raise RefusedError(f"Job {job} is not ready and cannot be run: {found.problem}", 400, "FAILED_PRECONDITION")
        if self.most_running is not None and self.running() >= self.most_running:
            raise RefusedError(
                "Quota exceeded for total running executions per project per region.", 429, "RESOURCE_EXHAUSTED"
            )
        execution = self._made_execution(found.message, overrides)
        with self._lock:
            self._executions[execution.message.name] = execution
            found.message.latest_created_execution = run_v2.ExecutionReference(
                name=execution.message.name.rpartition("/")[2], create_time=execution.message.create_time
            )
        threading.Thread(target=self._perform, args=(execution,), daemon=True).start()
        return self._operation(execution.message)

    def _made_execution(self, job: run_v2.Job, overrides: Any) -> _Execution:
        template = run_v2.TaskTemplate.deserialize(run_v2.TaskTemplate.serialize(job.template.template))
        container = template.containers[0]
        for override in overrides.container_overrides:
            check_variables(override.env)
            names = {variable.name for variable in override.env}
            container.env = [*(each for each in container.env if each.name not in names), *override.env]
            if override.args:
                container.args = override.args
        if overrides.timeout:
            template.timeout = overrides.timeout
        name = f"{job.name}/executions/{job.name.rpartition('/')[2]}-{uuid.uuid4().hex[:5]}"
        waiting = {
            "type_": "Completed",
            "state": _S.CONDITION_RECONCILING,
            "message": "Waiting for execution to start.",
        }
        started = {"type_": "ResourcesAvailable", "state": _S.CONDITION_PENDING, "message": "Provisioning resources."}
        message = run_v2.Execution(
            name=name, uid=str(uuid.uuid4()), create_time=self._now(), job=job.name, template=template,
            task_count=overrides.task_count or job.template.task_count, parallelism=job.template.parallelism,
            log_uri=f"https://console.example/logs/{name}", conditions=[waiting, started], reconciling=True,
        )  # fmt: skip
        now = time.monotonic()
        return _Execution(message, now + self.faults.late_listings, now + self.faults.late_names)

    def _executions_list(self, _body: Any, query: dict[str, str], job: str, **_: str) -> dict[str, Any]:
        if job != "-":
            self._job(job)
        now = time.monotonic()
        with self._lock:
            of_job = self._executions.values() if job == "-" else self._of_job(job)
            shown = [as_json(each.message) for each in of_job if each.listed_at <= now and not self._is_forgotten(each)]
        return page("executions", list(reversed(shown)), query)

    def _executions_get(self, _body: Any, _query: dict[str, str], execution: str, **_: str) -> dict[str, Any]:
        with self._lock:
            return as_json(self._execution(execution).message)

    def _executions_cancel(self, _body: Any, _query: dict[str, str], execution: str, **_: str) -> dict[str, Any]:
        found = self._execution(execution)
        if found.message.completion_time:
            raise RefusedError("Execution is already completed and cannot be cancelled.", 400, "FAILED_PRECONDITION")
        self._cancel(found)
        return self._operation(found.message)

    def _tasks_list(self, _body: Any, query: dict[str, str], execution: str, **_: str) -> dict[str, Any]:
        found = self._execution(execution)
        tasks = [
            run_v2.Task(
                name=f"{found.message.name}/tasks/{execution}-{index}", index=index,
                last_attempt_result={"exit_code": result.code}, completion_time=self._now(),
            )
            for index, result in sorted(found.results.items())
        ]  # fmt: skip
        return page("tasks", [as_json(task) for task in tasks], query)

    def _operations_get(self, _body: Any, _query: dict[str, str], **_: str) -> dict[str, Any]:
        raise RefusedError("operations are not kept: judge from the execution", 404, "NOT_FOUND")

    # ── executions ───────────────────────────────────────────────────────────────────────────────

    def _perform(self, execution: _Execution) -> None:
        message = execution.message
        time.sleep(self.faults.cold_start)
        slots = threading.Semaphore(message.parallelism or message.task_count)
        threads = [
            threading.Thread(target=self._task, args=(execution, index, slots)) for index in range(message.task_count)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._complete(execution)

    def _task(self, execution: _Execution, index: int, slots: threading.Semaphore) -> None:
        with slots:
            if execution.is_cancelled:
                return
            with self._lock:
                if not execution.message.start_time:
                    execution.message.start_time = self._now()
                execution.message.running_count += 1
            seconds = execution.message.template.timeout.total_seconds()
            copies = 2 if self.faults.starts_twice else 1
            running: list[Running] = []
            try:
                with ExitStack() as mounts:
                    wanted = self._wanted(execution.message, index, mounts)
                    running = [self._runner.start(wanted) for _ in range(copies)]
                    with self._lock:
                        execution.running += running
                    results = [self._ended(each, seconds, execution) for each in running]
            except OSError as error:  # its bucket is away
                results = [Result(1, log=f"mounting a volume failed: {error}".encode())]
            with self._lock:
                execution.running = [each for each in execution.running if each not in running]
                execution.results[index] = max(results, key=lambda result: result.code)
                execution.message.running_count -= 1
                if execution.results[index].code:
                    execution.message.failed_count += 1
                else:
                    execution.message.succeeded_count += 1
                self.logs[f"{execution.message.name}/{index}"] = b"".join(result.log for result in results)

    def _ended(self, running: Running, seconds: float, execution: _Execution) -> Result:
        late = time.monotonic() + seconds
        asked_at: float | None = None
        while True:
            result = running.wait(0.2)
            if result is not None:
                return result._replace(code=-1) if asked_at is not None and not execution.is_cancelled else result
            now = time.monotonic()
            if asked_at is None and (now > late or execution.is_cancelled):
                asked_at = now
                running.stop(signal.SIGTERM)
            if asked_at is not None and now > asked_at + GRACE_SECONDS:
                running.stop(signal.SIGKILL)

    def _wanted(self, execution: run_v2.Execution, index: int, stack: ExitStack) -> Wanted:
        template = execution.template
        container = template.containers[0]
        env = {each.name: self._value(each) for each in container.env}
        env |= {
            "CLOUD_RUN_JOB": execution.job.rpartition("/")[2], "CLOUD_RUN_EXECUTION": execution.name.rpartition("/")[2],
            "CLOUD_RUN_TASK_INDEX": str(index), "CLOUD_RUN_TASK_COUNT": str(execution.task_count),
            "CLOUD_RUN_TASK_ATTEMPT": "0",
        }  # fmt: skip
        volumes = {volume.name: volume for volume in template.volumes}
        mounts = [self._mount(volumes[each.name], each.mount_path, stack) for each in container.volume_mounts]
        memory = container.resources.limits.get("memory")
        return Wanted(container.image, list(container.command), list(container.args), env, memory, mounts)

    def _value(self, variable: run_v2.EnvVar) -> str:
        secret = variable.value_source.secret_key_ref.secret if variable.value_source else ""
        return self.secrets[secret] if secret else variable.value

    def _mount(self, volume: run_v2.Volume, path: str, stack: ExitStack) -> Mount:
        below = [each.removeprefix("only-dir=") for each in volume.gcs.mount_options if each.startswith("only-dir=")]
        bucket, read_only = self.buckets[volume.gcs.bucket], volume.gcs.read_only
        folder = stack.enter_context(bucket.mounted(below[0] if below else "", read_only=read_only))
        return Mount(folder, path, read_only)

    def _complete(self, execution: _Execution) -> None:
        message = execution.message
        failed = {index: result for index, result in execution.results.items() if result.code}
        with self._lock:
            message.completion_time, message.reconciling = self._now(), False
            job = self._jobs.get(message.job)
            if job is not None and message.name.endswith(f"/{job.message.latest_created_execution.name}"):
                job.message.latest_created_execution.completion_time = message.completion_time
            message.failed_count = len(failed)
            message.succeeded_count = len(execution.results) - len(failed)
            state, reason, text = (
                _S.CONDITION_SUCCEEDED,
                _REASON.EXECUTION_REASON_UNDEFINED,
                "Execution completed successfully.",
            )
            if execution.is_cancelled:
                message.cancelled_count = message.task_count - message.succeeded_count
                state, reason, text = _S.CONDITION_FAILED, _REASON.CANCELLED, "Execution has been cancelled."
            elif failed:
                index, result = next(iter(failed.items()))
                state, reason = _S.CONDITION_FAILED, _REASON.NON_ZERO_EXIT_CODE
                text = (
                    f"Task {message.name.rpartition('/')[2]}-task{index} failed with message: {failure_words(result)}"
                )
            message.conditions = [{"type_": "Completed", "state": state, "message": text, "execution_reason": reason}]

    def _cancel(self, execution: _Execution) -> None:
        with self._lock:
            execution.is_cancelled = True

    # ── finding ──────────────────────────────────────────────────────────────────────────────────

    def _full(self, job: str) -> str:
        return f"projects/{self.project}/locations/{self.region}/jobs/{job}"

    def _job(self, job: str) -> _Job:
        found = self._jobs.get(self._full(job))
        if found is None:
            raise RefusedError(
                f"Resource '{job}' of kind 'JOB' in region '{self.region}' does not exist.", 404, "NOT_FOUND"
            )
        return found

    def _of_job(self, job: str) -> list[_Execution]:
        return [each for each in self._executions.values() if each.message.job == self._full(job)]

    def _execution(self, name: str) -> _Execution:
        for full, found in self._executions.items():
            if full.endswith(f"/{name}") and not self._is_forgotten(found) and time.monotonic() >= found.named_at:
                return found
        raise RefusedError(f"Resource '{name}' of kind 'EXECUTION' does not exist.", 404, "NOT_FOUND")

    def _is_forgotten(self, execution: _Execution) -> bool:
        return self.faults.forgets_ended and bool(execution.message.completion_time)

    def _operation(self, about: Any) -> dict[str, Any]:
        metadata = {"@type": f"type.googleapis.com/google.cloud.run.v2.{type(about).__name__}", **as_json(about)}
        return {
            "name": f"projects/{self.project}/locations/{self.region}/operations/{uuid.uuid4()}",
            "metadata": metadata,
        }


@contextmanager
def fake_cloud_run(runner: Runner, **options: Any) -> Iterator[FakeCloudRun]:
    cloud = FakeCloudRun(runner, **options)
    try:
        yield cloud
    finally:
        cloud.close()
