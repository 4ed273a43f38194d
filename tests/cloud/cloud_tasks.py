"""A fake Cloud Tasks: queues and HTTP tasks of its REST API, version 2, as Google's client uses them; and Cloud Scheduler's calls.

It is strict about names, fields, times and duplicates, delivers at least once, and repeats failed calls with a growing pause.
Time is a clock that the test owns: nothing is delivered until `deliver_due` is called. `faults` holds what a real service
cannot be made to do.
"""

from __future__ import annotations

import json
import random
import re
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from google.cloud import tasks_v2
from google.protobuf import json_format

from tests.cloud.identity import Signer

_QUEUE = r"projects/[^/]+/locations/[^/]+/queues/[^/:]+"
_ROUTES = [
    (method, re.compile(rf"/v2/(?P<queue>{_QUEUE})" + path), verb)
    for method, path, verb in (
        ("POST", r"/tasks", "tasks.create"),
        ("GET", r"/tasks", "tasks.list"),
        ("GET", r"/tasks/(?P<task>[^/:]+)", "tasks.get"),
        ("DELETE", r"/tasks/(?P<task>[^/:]+)", "tasks.delete"),
        ("GET", r"", "queues.get"),
    )
]
_TASK_ID = re.compile(r"[A-Za-z0-9_-]{1,500}")
LONGEST = timedelta(days=30)
NAMES_KEPT = timedelta(hours=1)  # how long the name of a task that is gone cannot be used
SHORTEST_DEADLINE, LONGEST_DEADLINE = timedelta(seconds=15), timedelta(minutes=30)
FIRST_BACKOFF, LONGEST_BACKOFF = 0.1, 3600.0
MAX_DOUBLINGS = 16

Send = Callable[[str, str, dict[str, str], bytes, float], int]
"""Calls a URL with a method, headers, a body and a time limit. Returns the status; 0 if there was no answer."""


@dataclass
class Faults:
    lost_answers: float = 0.0  # the share of API calls that are carried out and not answered
    busy: float = 0.0  # the share of API calls that are refused with 429 or 503
    twice: float = 0.0  # the share of deliveries that are made a second time, at the same moment
    late_seconds: float = 0.0  # each call is made up to so much after its time, so calls overtake each other
    repeated: float = 0.0  # the share of calls that are made again, up to `late_seconds` after they succeeded
    random: random.Random = field(default_factory=lambda: random.Random(7))

    def happens(self, share: float) -> bool:
        return self.random.random() < share

    def delay(self) -> timedelta:
        return timedelta(seconds=self.random.uniform(0.0, self.late_seconds) if self.late_seconds else 0.0)


@dataclass
class Delivery:
    """One call that was made: its task (or job of Cloud Scheduler), when it began and ended, and the status."""

    task: str
    began: datetime
    ended: datetime | None = None
    status: int | None = None


class QuietServer(ThreadingHTTPServer):
    """A server whose clients may be killed at any moment."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


class RefusedError(Exception):
    def __init__(self, code: int, status: str, message: str) -> None:
        super().__init__(message)
        self.code, self.status = code, status


class FakeCloudTasks:
    """`url` is the endpoint for a client, and `keys_url` where its callees find the keys of its tokens."""

    def __init__(
        self, now: Callable[[], datetime], send: Send, *, queue: str = "projects/acme/locations/eu/queues/ork"
    ) -> None:
        self.queue = queue
        self.faults = Faults()
        self.signer = Signer()
        self.paused = False
        self.denied: set[str] = set()  # permissions that the caller lacks
        self.calls: Counter[str] = Counter()
        self.deliveries: list[Delivery] = []
        self.jobs: dict[str, tuple[timedelta, datetime, tasks_v2.HttpRequest]] = {}  # of Cloud Scheduler
        self.changed = threading.Condition()
        self._now = now
        self._send = send
        self._tasks: dict[str, tasks_v2.Task] = {}
        self._gone: dict[str, datetime] = {}  # names that cannot be used until then
        self._late: dict[str, tuple[datetime, datetime]] = {}  # by task, the time it was set for and when it is called
        self._repeats: list[tuple[datetime, str, tasks_v2.Task]] = []  # calls that are made again, and when
        self._flying: Counter[str] = Counter()
        self._threads: list[threading.Thread] = []
        self._server = QuietServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.keys_url = f"{self.url}/keys"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        for thread in self._threads:
            thread.join(60)

    # ── deliveries ───────────────────────────────────────────────────────────────────────────────

    def add_job(self, name: str, every: timedelta, first: datetime, url: str, account: str, audience: str) -> None:
        """A job of Cloud Scheduler: it calls the URL regularly, and does not repeat a call that failed."""
        token = tasks_v2.OidcToken(service_account_email=account, audience=audience)
        request = tasks_v2.HttpRequest(http_method="POST", url=url, oidc_token=token)
        self.jobs[name] = (every, first, request)

    def names(self) -> list[str]:
        with self.changed:
            return sorted(name.rpartition("/")[2] for name in self._tasks)

    def next_at(self) -> datetime | None:
        """When the next call is due; None if nothing is planned."""
        with self.changed:
            waiting = [task for name, task in self._tasks.items() if not self._flying[name] and not self.paused]
            repeats = [at for at, _, _ in self._repeats]
            jobs = [first for _, first, _ in self.jobs.values()]
            return min([*map(self._call_time, waiting), *repeats, *jobs], default=None)

    @property
    def is_delivering(self) -> bool:
        with self.changed:
            return any(self._flying.values())

    def deliver_due(self) -> int:
        """Begins all calls that are due. Returns how many."""
        with self.changed:
            now = self._now()
            due = [
                name for name, task in self._tasks.items() if not self._flying[name] and self._call_time(task) <= now
            ]
            for name in () if self.paused else due:
                for _ in range(2 if self.faults.happens(self.faults.twice) else 1):
                    self._begin(name, self._call_task)
            for each in [each for each in self._repeats if each[0] <= now]:
                self._repeats.remove(each)
                _, name, task = each
                self._begin(name, partial(self._repeat_task, task))
                due.append(name)
            for name, (every, at, request) in list(self.jobs.items()):
                if at <= now:
                    self.jobs[name] = (every, at + every, request)
                    self._begin(name, self._call_job)
                    due.append(name)
            return len(due)

    def _call_time(self, task: tasks_v2.Task) -> datetime:
        """When the service calls: at the task's time, or later by a delay that is drawn once for each time."""
        at, (drawn_for, when) = _time(task), self._late.get(task.name, (None, None))
        if drawn_for != at or when is None:
            when = at + self.faults.delay()
            self._late[task.name] = at, when
        return when

    def _begin(self, name: str, call: Callable[[str], None]) -> None:
        self._flying[name] += 1
        thread = threading.Thread(target=call, args=(name,), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _call_job(self, name: str) -> None:
        self._request(name, self.jobs[name][2], 300.0)
        with self.changed:
            self._flying[name] -= 1
            self.changed.notify_all()

    def _call_task(self, name: str) -> None:
        with self.changed:
            task = self._tasks.get(name)
            if task is not None:
                task.dispatch_count += 1
        if task is not None:
            status = self._request(name, task.http_request, task.dispatch_deadline.total_seconds() or 600.0)
        with self.changed:
            self._flying[name] -= 1
            if task is not None and self._tasks.get(name) is task:
                self._settle(name, task, status)
            self.changed.notify_all()

    def _repeat_task(self, task: tasks_v2.Task, name: str) -> None:
        """Makes a call once more that has succeeded: the service promises at least one delivery, not exactly one."""
        self._request(name, task.http_request, task.dispatch_deadline.total_seconds() or 600.0)
        with self.changed:
            self._flying[name] -= 1
            self.changed.notify_all()

    def _settle(self, name: str, task: tasks_v2.Task, status: int) -> None:
        task.response_count += 1
        if 200 <= status < 300:
            self._remove(name)
            if self.faults.happens(self.faults.repeated):
                self._repeats.append((self._now() + self.faults.delay(), name, task))
            return
        task.last_attempt.response_status.code = 2
        task.last_attempt.response_status.message = f"HTTP status code {status}"
        pause = min(FIRST_BACKOFF * 2 ** min(task.response_count - 1, MAX_DOUBLINGS), LONGEST_BACKOFF)
        task.schedule_time = self._now() + timedelta(seconds=pause)

    def _request(self, name: str, request: tasks_v2.HttpRequest, seconds: float) -> int:
        headers = dict(request.headers)
        if request.oidc_token.service_account_email:
            oidc = request.oidc_token
            audience = oidc.audience or request.url
            headers["Authorization"] = f"Bearer {self.signer.token(audience, oidc.service_account_email, self._now())}"
        headers["X-CloudTasks-TaskName"] = name.rpartition("/")[2]
        made = Delivery(name.rpartition("/")[2], self._now())
        with self.changed:
            self.deliveries.append(made)
        method = tasks_v2.HttpMethod(request.http_method).name
        made.status = self._send(method, request.url, headers, request.body, seconds)
        made.ended = self._now()
        return made.status

    # ── the API ──────────────────────────────────────────────────────────────────────────────────

    def answer(self, method: str, path: str, query: dict[str, str], body: bytes) -> tuple[int, Any]:
        if path == "/keys":
            return 200, {self.signer.id: self.signer.certificate()}
        for wanted, pattern, verb in _ROUTES:
            found = pattern.fullmatch(path)
            if found is not None and wanted == method:
                return self._answer(verb, found.groupdict(), query, body)
        return 404, _error(404, "NOT_FOUND", f"no method for {method} {path}")

    def _answer(self, verb: str, names: dict[str, str], query: dict[str, str], body: bytes) -> tuple[int, Any]:
        with self.changed:
            self.calls[verb] += 1
            if self.faults.happens(self.faults.busy):
                code = self.faults.random.choice((429, 503))
                return code, _error(code, "RESOURCE_EXHAUSTED" if code == 429 else "UNAVAILABLE", "try again later")
            try:
                if names["queue"] != self.queue:
                    raise RefusedError(404, "NOT_FOUND", "Requested entity was not found.")
                self._check_permission(verb)
                answer = getattr(self, "_" + verb.replace(".", "_"))(names, query, body)
            except RefusedError as error:
                return error.code, _error(error.code, error.status, str(error))
            finally:
                self.changed.notify_all()
            return (0, None) if self.faults.happens(self.faults.lost_answers) else (200, answer)

    def _check_permission(self, verb: str) -> None:
        """A task that carries a token of an account can be created only by those who may act as that account."""
        needed = {f"cloudtasks.{verb}", *({"iam.serviceAccounts.actAs"} if verb == "tasks.create" else ())}
        for permission in sorted(needed & self.denied):
            message = f'The principal (user or service account) lacks IAM permission "{permission}" for the resource "{self.queue}" (or the resource may not exist).'
            raise RefusedError(403, "PERMISSION_DENIED", message)

    def _tasks_create(self, names: dict[str, str], query: dict[str, str], body: bytes) -> Any:
        try:
            request = json_format.Parse(body, tasks_v2.CreateTaskRequest.pb(tasks_v2.CreateTaskRequest()))
        except json_format.ParseError as error:
            raise RefusedError(400, "INVALID_ARGUMENT", f"Invalid JSON payload received. {error}") from error
        task = tasks_v2.Task(request.task)
        now = self._now()
        self._check(task, now)
        if task.name in self._tasks or self._gone.get(task.name, now) > now:
            raise RefusedError(
                409, "ALREADY_EXISTS", "The task cannot be created because a task with this name existed too recently."
            )
        if not task.schedule_time or task.schedule_time < now:
            task.schedule_time = now
        task.create_time = now
        self._tasks[task.name] = task
        return _json(task)

    def _check(self, task: tasks_v2.Task, now: datetime) -> None:
        def refuse(message: str) -> None:
            raise RefusedError(400, "INVALID_ARGUMENT", message)

        parent, _, id = task.name.partition("/tasks/")
        if parent != self.queue or not _TASK_ID.fullmatch(id):
            refuse(f"Task name must be formatted: {self.queue}/tasks/<TASK_ID>")
        if task.create_time or task.dispatch_count or task.response_count:
            refuse("output only fields are set")
        request = task.http_request
        if not re.fullmatch(r"https?://[^\s/]+/\S*", request.url):
            refuse("HttpRequest.url is required and must begin with http:// or https://")
        if request.body and tasks_v2.HttpMethod(request.http_method).name not in ("POST", "PUT", "PATCH"):
            refuse("a body is allowed only with POST, PUT and PATCH")
        if request.oidc_token and "@" not in request.oidc_token.service_account_email:
            refuse("service_account_email is not an e-mail address")
        if task.schedule_time and task.schedule_time > now + LONGEST:
            refuse("The schedule time is too far in the future; at most 30 days are allowed.")
        if task.dispatch_deadline and not SHORTEST_DEADLINE <= task.dispatch_deadline <= LONGEST_DEADLINE:
            refuse("The dispatch deadline must be between 15 seconds and 30 minutes.")

    def _tasks_list(self, names: dict[str, str], query: dict[str, str], body: bytes) -> Any:
        size = int(query.get("pageSize", "1000"))
        if not 0 < size <= 1000:
            raise RefusedError(400, "INVALID_ARGUMENT", "page_size must be at most 1000")
        start = int(query.get("pageToken", "0"))
        found = [task for _, task in sorted(self._tasks.items())]
        more = {"nextPageToken": str(start + size)} if len(found) > start + size else {}
        return {"tasks": [_json(task) for task in found[start : start + size]], **more}

    def _tasks_get(self, names: dict[str, str], query: dict[str, str], body: bytes) -> Any:
        return _json(self._found(names["task"]))

    def _tasks_delete(self, names: dict[str, str], query: dict[str, str], body: bytes) -> Any:
        self._remove(self._found(names["task"]).name)
        return {}

    def _queues_get(self, names: dict[str, str], query: dict[str, str], body: bytes) -> Any:
        state = tasks_v2.Queue.State.PAUSED if self.paused else tasks_v2.Queue.State.RUNNING
        return {"name": self.queue, "state": int(state)}

    def _found(self, id: str) -> tasks_v2.Task:
        task = self._tasks.get(f"{self.queue}/tasks/{id}")
        if task is None:
            raise RefusedError(
                404, "NOT_FOUND", "The task no longer exists, though a task with this name existed recently."
            )
        return task

    def _remove(self, name: str) -> None:
        del self._tasks[name]
        self._gone[name] = self._now() + NAMES_KEPT


def _time(task: tasks_v2.Task) -> datetime:
    found: datetime = task.schedule_time
    return found


def _json(task: tasks_v2.Task) -> Any:
    shown = tasks_v2.Task.pb(task)
    return json.loads(json_format.MessageToJson(shown, use_integers_for_enums=True))


def _error(code: int, status: str, message: str) -> Any:
    return {"error": {"code": code, "status": status, "message": message}}


def _handler(service: FakeCloudTasks) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # one packet for each answer

        def _answer(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
            status, value = service.answer(self.command, parts.path, query, body)
            if status == 0:  # the answer is lost
                self.close_connection = True
                return
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_DELETE = _answer  # noqa: N815 - the names of http.server

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
