"""A state store behind a server: the methods that the command line uses.

Calls block, because the command line does one thing at a time. Methods that only schedulers need raise an error.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NoReturn

from ork.api.client.connection import parsed
from ork.compile.content import from_document, to_document
from ork.errors import DefinitionError, NotFoundError, RefusedError, UsageError
from ork.model.access import AuditEntry, Role, Token
from ork.model.code import code_json, code_of_json
from ork.model.ids import AttemptKey, RunId, SchedulerId, TaskKey, VersionId
from ork.model.installation import Control, Mode
from ork.model.location import LocationEntry
from ork.model.notice import Notice, NoticeKind
from ork.model.quarantine import ItemKind, Quarantined
from ork.model.record import replaced
from ork.model.run import CommandKind, NewRun, Run, RunCommand, RunStatus, SchedulerEntry
from ork.model.task import Attempt
from ork.model.workflow import Version, VersionEntry, WorkflowEntry
from ork.state.paging import shortest_prefix
from ork.state.records import (
    ALL_TASKS,
    Accepted,
    LimitUse,
    RunFilter,
    RunPage,
    RunUpdate,
    ScheduleEntry,
    TaskFilter,
    TooLate,
    UnsentAlert,
)
from ork.status.locations import read_location
from ork.status.wire import read_attempt, read_moment, read_run, read_task, read_time, read_workflow

if TYPE_CHECKING:
    from ork.api.client.connection import Server
    from ork.api.client.waiting import EventStream
    from ork.status.code_report import CodeReport
    from ork.status.cost import CostReport
    from ork.status.explain import WhyAnswer
    from ork.status.ids import RunTarget
    from ork.status.run_search import FoundRuns, RunSearch

_COMPILED = "application/vnd.ork.workflow+json"
_ALIVE_SECONDS = 1.0
_CREATED = 201
_MAX_MATCHES = 100  # more ids than ever share a prefix
_PAGE = 1000
_TIMES_AT_ONCE = 50


class RemoteStore:
    def __init__(self, server: Server) -> None:
        self._server = server
        self._versions: dict[VersionId, Version] = {}
        self._events: EventStream | None = None

    def __getattr__(self, verb: str) -> NoReturn:
        if verb.startswith("_"):
            raise AttributeError(verb)
        raise UsageError(f"`{verb}` does not work through a server", hint="run it without --server, next to the store")

    # ── definitions ──────────────────────────────────────────────────────────────────────────────

    async def save_version(
        self,
        version: Version,
        *,
        origin: str | None,
        now: datetime,  # noqa: ARG002 (by the server's clock)
        next_fire: datetime | None = None,  # noqa: ARG002
    ) -> bool:
        data = json.dumps({**to_document(version.workflow), "code": code_json(version.code)}).encode()
        query = {"root": version.root, "source": version.source or origin}
        response = self._server.call("POST", ("workflows",), query, data, {"Content-Type": _COMPILED})
        deployed = parsed(response)["workflows"][0]
        if deployed["version"] != version.id:
            raise DefinitionError(
                "the server compiles this workflow differently", hint="does it run the same Ork version?"
            )
        return bool(deployed["new"])

    async def set_enabled(self, workflow: str, enabled: bool, *, next_fire: datetime | None = None) -> bool:  # noqa: ARG002
        data = json.dumps({"enabled": enabled}).encode()
        return self._found("PATCH", ("workflows", workflow), data)

    async def delete_workflow(self, workflow: str) -> bool:
        return self._found("DELETE", ("workflows", workflow))

    async def get_version(self, version: VersionId) -> Version | None:
        if version not in self._versions:
            row = self._get("versions", version)
            if row is None:
                return None
            definition, code = from_document(row["definition"]), code_of_json(row.get("code"))
            made = Version(VersionId(row["id"]), definition, row["root"], row["source"], code)
            self._versions[version] = made
        return self._versions[version]

    async def list_versions(self, workflow: str, limit: int = 20) -> tuple[VersionEntry, ...]:
        found = self._get("workflows", workflow, "versions", limit=min(limit, _PAGE)) or {"versions": []}
        rows = found["versions"]
        return tuple(VersionEntry(VersionId(row["id"]), read_time(row["saved_at"]), row["source"]) for row in rows)

    async def get_workflow(self, name: str) -> WorkflowEntry | None:
        row = self._get("workflows", name)
        return None if row is None else read_workflow(row)

    async def list_workflows(self) -> tuple[WorkflowEntry, ...]:
        return tuple(read_workflow(row) for page in self._pages("workflows") for row in page["workflows"])

    # ── runs and commands ────────────────────────────────────────────────────────────────────────

    async def create_runs(self, runs: Sequence[NewRun], now: datetime) -> tuple[Run, ...]:
        return tuple(self._create(new, now) for new in runs)

    def _create(self, new: NewRun, now: datetime) -> Run:
        body = {"params": new.params, "priority": new.priority, "fresh": new.fresh, "parent": new.parent}
        headers = {"Content-Type": "application/json"}
        if new.scheduled_for is not None:
            body |= {"version": new.version, "scheduled_for": new.scheduled_for.isoformat()}  # its time is its key
        elif new.key is not None:
            headers["Idempotency-Key"] = new.key  # names the same run also after another deploy
        else:
            body["version"] = new.version
            # The id is unique to this run: as a key it keeps a repeated call from creating another one.
            headers["Idempotency-Key"] = f"id-{new.id}"
        path = ("workflows", new.workflow, "runs")
        response = self._server.call("POST", path, {}, json.dumps(body).encode(), headers)
        run = read_run(parsed(response))
        return replaced(run, created_at=now) if response.status_code == _CREATED else run

    async def submit_command(self, command: RunCommand, now: datetime) -> Accepted | TooLate | None:  # noqa: ARG002
        body = {"task": command.task, "comment": command.comment, "everything": command.everything}
        try:
            response = self._server.post("runs", command.run, command.kind.value, body=body)
        except NotFoundError:
            return None
        except RefusedError as error:
            row = getattr(error, "run", None)
            if row is None:
                raise
            return TooLate(read_run(row))
        return Accepted(read_run(response["run"]), str(response["command"]))

    async def pending_commands(self, run: RunId) -> tuple[RunCommand, ...]:
        rows = self._server.get("runs", run, "commands")["commands"]
        return tuple(
            RunCommand(run, CommandKind(row["kind"]), row["by"], row["task"], id=str(row["id"])) for row in rows
        )

    # ── reading ──────────────────────────────────────────────────────────────────────────────────

    async def get_run(self, run: RunId) -> Run | None:
        found = self._get("runs", run, "tasks", limit=1)
        return read_run(found["run"]) if found else None

    async def find_runs(self, prefix: str, limit: int = 10) -> tuple[RunId, ...]:
        return tuple(RunId(id) for id in self._server.get("run-ids", prefix=prefix[:12], limit=limit)["ids"])

    async def shorten_ids(self, runs: Collection[RunId], least: int) -> Mapping[RunId, str]:
        alike = {run: await self.find_runs(run[:least], _MAX_MATCHES) for run in runs}
        return {run: shortest_prefix(run, [id for id in alike[run] if id != run], least) for run in runs}

    async def list_runs(self, query: RunFilter) -> RunPage:
        page = self._server.get("runs", **_run_query(query))
        return RunPage(tuple(read_run(row) for row in page["runs"]), page["cursor"])

    async def find_scheduled(self, workflow: str, times: Sequence[datetime]) -> Mapping[datetime, Run]:
        found: dict[datetime, Run] = {}
        for start in range(0, len(times), _TIMES_AT_ONCE):
            some = [time.isoformat() for time in times[start : start + _TIMES_AT_ONCE]]
            runs = map(read_run, self._server.get("runs", workflow=workflow, scheduled_for=some)["runs"])
            found |= {run.scheduled_for: run for run in runs if run.scheduled_for is not None}
        return found

    async def last_runs(self, workflows: Sequence[str]) -> Mapping[str, Run]:
        pages = [await self.list_runs(RunFilter(workflow=name, limit=1)) for name in workflows]
        return {run.workflow: run for page in pages for run in page.runs}

    async def count_unfinished(self) -> Mapping[RunStatus, int]:
        counts = self._server.get("status")["unfinished"]
        return {RunStatus(status): number for status, number in counts.items()}

    async def run_updates(self, run: RunId, since: str | None = None, only: TaskFilter = ALL_TASKS) -> RunUpdate | None:
        """Of `only`, the name and the statuses count; all tasks that have them are returned."""
        statuses = sorted(only.statuses) or None
        pages = list(self._pages("runs", run, "tasks", since=since, name=only.name, status=statuses))
        if not pages:
            return None
        tasks = tuple(read_task(run, row) for page in pages for row in page["tasks"])
        # Changes while the pages are read come after the first page's mark, so they are read again.
        return RunUpdate(read_run(pages[0]["run"]), tasks, str(pages[0]["mark"]))

    async def list_attempts(self, run: RunId, task: TaskKey | None = None) -> tuple[Attempt, ...]:
        key = task or TaskKey(None)  # type: ignore[arg-type]
        pages = self._pages("runs", run, "attempts", task=key.name, index=key.index)
        return tuple(read_attempt(run, row) for page in pages for row in page["attempts"])

    async def get_starter(self, run: RunId) -> str | None:  # noqa: ARG002
        """Always None: servers do not return it, because they check themselves who may approve."""
        return None

    async def get_key(self, run: RunId) -> str | None:  # noqa: ARG002
        """Always None: servers do not return it."""
        return None

    async def get_owner(self, run: RunId) -> SchedulerId | None:
        found = self._get("runs", run, "tasks", limit=1)
        return SchedulerId(found["owner"]) if found and found["owner"] else None

    async def list_controls(self) -> tuple[Control, ...]:
        try:
            rows = self._server.get("controls")["controls"]
        except NotFoundError:
            return ()  # an older server
        return tuple(
            Control(row["target"], Mode(row["mode"]), row["by"], read_moment(row["at"]), row["reason"]) for row in rows
        )

    async def set_control(self, control: Control) -> None:
        data = json.dumps({"mode": control.mode, "reason": control.reason}).encode()
        headers = {"Content-Type": "application/json"}
        self._server.call("PUT", ("controls", control.target), {}, data, headers)

    async def clear_control(self, target: str) -> bool:
        return self._found("DELETE", ("controls", target))

    async def list_schedulers(self) -> tuple[SchedulerEntry, ...]:
        """The schedulers that are not dead according to the server, which can check more of them than this process."""
        rows = self._server.get("schedulers")["schedulers"]
        return tuple(
            SchedulerEntry(
                SchedulerId(row["id"]),
                f"{self._server.url}/{row['identity']}",  # never taken for a process of this machine
                row["kind"],
                read_moment(row["started_at"]),
                max(row["lease_seconds_left"], _ALIVE_SECONDS) if row["alive"] else row["lease_seconds_left"],
                row["runs"],
                tuple(row.get("notes", ())),
            )
            for row in rows
            if row["alive"] or row.get("liveness") == "unverified"
        )

    async def limit_use(self) -> tuple[LimitUse, ...]:
        return tuple(
            LimitUse(row["name"], row["slots"], row["used"], tuple(_holder(each) for each in row["holders"]))
            for row in self._server.get("limits")["limits"]
        )

    async def unsent_alerts(self, limit: int) -> tuple[UnsentAlert, ...]:
        rows = self._server.get("status").get("unsent_alerts", [])[:limit]  # missing on older servers
        return tuple(UnsentAlert(_notice(row), row["error"], read_time(row["retry_at"])) for row in rows)

    async def list_quarantined(self, limit: int = 100) -> tuple[Quarantined, ...]:
        rows = (self._get("quarantine") or {"quarantined": []})["quarantined"]  # an older server has none
        known = [row for row in rows if row["kind"] in set(ItemKind)][:limit]
        return tuple(
            Quarantined(ItemKind(row["kind"]), row["id"], row["reason"], read_time(row["since"])) for row in known
        )

    async def list_schedules(self) -> tuple[ScheduleEntry, ...]:
        workflows = {entry.name: entry for entry in await self.list_workflows()}
        return tuple(
            ScheduleEntry(
                row["workflow"], VersionId(row["version"]), schedule, row["enabled"], read_time(row["next_fire"])
            )
            for page in self._pages("schedules")
            for row in page["schedules"]
            if (entry := workflows.get(row["workflow"])) is not None and (schedule := entry.schedule) is not None
        )

    async def list_locations(self) -> tuple[LocationEntry, ...]:
        return tuple(read_location(row) for page in self._pages("locations") for row in page["locations"])

    async def ask_refresh(self, location: str, now: datetime) -> bool:  # noqa: ARG002 (by the server's clock)
        return self._found("POST", ("locations", location, "refresh"))

    # ── tokens and audit ─────────────────────────────────────────────────────────────────────────

    async def add_token(self, token: Token) -> None:
        body = {"name": token.name, "role": token.role.value, "digest": token.digest, **_expiry(token)}
        self._server.post("tokens", body=body)

    async def list_tokens(self) -> tuple[Token, ...]:
        return tuple(
            Token(
                row["id"],
                row["name"],
                Role(row["role"]),
                "",
                read_moment(row["created_at"]),
                read_time(row["revoked_at"]),
                read_time(row.get("expires_at")),
                read_time(row.get("last_used_at")),
            )
            for page in self._pages("tokens")
            for row in page["tokens"]
        )

    async def revoke_token(self, id: str, now: datetime) -> bool:  # noqa: ARG002
        return self._found("DELETE", ("tokens", id))

    async def rotate_token(self, id: str, successor: Token, until: datetime, now: datetime) -> bool:  # noqa: ARG002
        body = {"digest": successor.digest, "until": until.isoformat(), **_expiry(successor)}
        return self._found("POST", ("tokens", id, "rotate"), json.dumps(body).encode())

    async def list_audit(self, limit: int = 50, before: str | None = None) -> tuple[AuditEntry, ...]:
        rows = self._server.get("audit", limit=limit, cursor=before)["entries"]
        return tuple(
            AuditEntry(
                read_moment(row["at"]), row["by"], row["action"], row["subject"],
                json.dumps(row["detail"]) if row["detail"] is not None else None, str(row["id"]),
                row.get("token"), row.get("address"),
            )
            for row in rows
        )  # fmt: skip

    # ── waiting ──────────────────────────────────────────────────────────────────────────────────

    async def wait_for_change(self, timeout: float | None) -> bool:
        if self._events is None:
            from ork.api.client.waiting import EventStream

            self._events = EventStream(self._server)
        return await self._events.wait(timeout)

    async def close(self) -> None:
        if self._events is not None:
            await self._events.close()
        self._server.close()

    def _pages(self, *path: object, **query: Any) -> Iterator[Any]:
        """All pages; none if the path does not exist."""
        page = self._get(*path, limit=_PAGE, **query)
        while page is not None:
            yield page
            cursor = page["cursor"]
            page = self._get(*path, limit=_PAGE, cursor=cursor, **query) if cursor is not None else None

    def _get(self, *path: object, **query: Any) -> Any | None:
        """The response; None if the path does not exist."""
        try:
            return self._server.get(*path, **query)
        except NotFoundError:
            return None

    def _found(self, method: str, path: tuple[object, ...], data: bytes | None = None) -> bool:
        headers = {"Content-Type": "application/json"} if data is not None else {}
        try:
            self._server.call(method, path, {}, data, headers)
        except NotFoundError:
            return False
        return True


def fetch_explanation(server: Server, target: RunTarget) -> WhyAnswer:
    from ork.status.explain import WhyAnswer
    from ork.status.reasons import Reason, ReasonCode, read_reason

    task = None if target.task is None else str(TaskKey(target.task, target.instance))
    found = server.get("runs", target.run, "why", task=task)
    if "items" in found:
        return WhyAnswer(found["subject"], [read_reason(row) for row in found["items"]])
    return WhyAnswer(found["subject"], [Reason(ReasonCode.UNKNOWN, text) for text in found["why"]])  # an older server


def fetch_runs(server: Server, search: RunSearch) -> FoundRuns:
    from ork.status.run_search import FoundRuns

    more = {
        "trigger": search.trigger and search.trigger.value,
        "q": search.text,
        "param": search.param and ":".join(search.param),
        "sort": search.sort and search.sort.value,
    }
    page = server.get("runs", **_run_query(search.where), **more)
    return FoundRuns(tuple(map(read_run, page["runs"])), page["cursor"], page.get("partial", False))


def _run_query(query: RunFilter) -> dict[str, Any]:
    return {
        "workflow": query.workflow,
        "status": sorted(status.value for status in query.statuses) or None,
        "limit": min(query.limit, _PAGE),
        "cursor": query.cursor,
        "created_after": query.created_after and query.created_after.isoformat(),
        "created_before": query.created_before and query.created_before.isoformat(),
    }


def fetch_code_report(server: Server, run: RunId) -> CodeReport:
    from ork.model.json_fields import from_json
    from ork.status.code_report import CodeReport

    return from_json(CodeReport, server.get("runs", run, "code"))


def fetch_same_code(server: Server, run: RunId) -> VersionId:
    """Has the server prepare a version with the code of this run."""
    return VersionId(server.post("runs", run, "same-code")["version"])


def fetch_cost(server: Server, run: RunId) -> CostReport:
    from ork.model.json_fields import from_json
    from ork.status.cost import CostReport

    return from_json(CostReport, server.get("runs", run, "cost"))


def _expiry(token: Token) -> dict[str, str]:
    """The expiry, omitted if there is none, because older servers do not know the field."""
    return {} if token.expires_at is None else {"expires_at": token.expires_at.isoformat()}


def _notice(row: dict[str, Any]) -> Notice:
    run, task = row["run"] and RunId(row["run"]), row["task"] and TaskKey(row["task"], row["index"])
    raised_at = read_moment(row["raised_at"])
    return Notice(str(row["id"]), NoticeKind(row["kind"]), row["workflow"], raised_at, run, task, tries=row["tries"])


def _holder(row: dict[str, Any]) -> AttemptKey:
    return AttemptKey(RunId(row["run"]), TaskKey(row["task"], row["index"]), row["attempt"])
