from __future__ import annotations

from typing import Any

import pytest

from ork.model.ids import AttemptKey, RunId, SchedulerId, TaskKey
from ork.model.record import replaced
from ork.model.run import CommandKind, RunCommand, RunStatus, SchedulerEntry
from ork.model.task import Attempt, AttemptStatus, Failure, FailureKind, GiveUp, Task, TaskStatus
from ork.model.workflow import Approval, Budget, NotBy, OnExceed, OnUnreachable, Rate, TaskSpec
from ork.state.records import LimitUse
from ork.status import why as answers
from ork.status.reasons import ReasonCode, ReasonRef, sentences
from ork.status.schedulers import NO_SCHEDULER
from ork.status.snapshot import Snapshot
from tests.unit.status.sample_runs import DIVISION, START, at, done, failed, running, skipped, spec, view_of, waiting

SERVED = (SchedulerEntry(SchedulerId("s"), "h/b/1/2/3", "scheduler", START, 50.0),)
SHORT = {RunId("8m2paaaaaaaa"): "8m2p"}
ERROR = Failure(FailureKind.EXCEPTION, "HTTPError: 503\nmore")


def snapshot(tasks: list[Task], now: float = 10.0, specs: Any = None, view: Any = None, **fields: Any) -> Snapshot:
    specs = specs or [spec(task.key.name) for task in tasks]
    known = {"schedulers": SERVED} | {key: fields.pop(key) for key in list(fields) if key in Snapshot.__match_args__}
    return Snapshot(view=view or view_of(specs, tasks, **fields), now=at(now), **known)


def why_run(snap: Snapshot) -> list[str]:
    return sentences(answers.why_run(snap))


def why_task(snap: Snapshot, task: Task) -> list[str]:
    return sentences(answers.why_task(snap, task))


def why_not_started(snap: Snapshot) -> list[str]:
    return sentences(answers.why_not_started(snap))


def why(task: Task, *others: Task, **fields: Any) -> str:
    """The first sentence about the first task."""
    return why_task(snapshot([task, *others], **fields), task)[0]


def test_a_task_waits_for_what_is_above_it() -> None:
    specs = [spec("load", "extract"), spec("extract")]
    assert why(waiting("load"), running("extract"), specs=specs) == "waiting for `extract` (running)"


def test_only_open_upstream_tasks_are_named() -> None:
    specs = [spec("load", "a", "b", "c"), spec("a"), spec("b"), spec("c")]
    sentence = why(waiting("load"), done("a"), running("b"), waiting("c"), specs=specs)
    assert sentence == "waiting for 2 of 3 upstream tasks: `b` (running), `c` (pending)"


def test_instances_are_counted() -> None:
    instances = [running("load", instances=8)]
    instances += [replaced(running("load"), key=TaskKey("load", number)) for number in range(3)]
    instances += [replaced(waiting("load"), key=TaskKey("load", number)) for number in range(3, 8)]
    specs = [spec("report", "load"), spec("load")]
    assert why(waiting("report"), *instances, specs=specs) == "waiting for `load` (3 of 8 instances running)"


def test_a_retry_is_told_with_its_time_and_cause() -> None:
    task = waiting("load", attempt=1, retry_at=at(50), failure=ERROR)
    sentence = why(task, specs=[spec("load", retries=2)])
    moment = at(50).astimezone().strftime("%H:%M:%S")
    assert sentence == f"retry: attempt 2 of 3 at {moment} (in 40s), after HTTPError: 503"


def test_a_lost_attempt_is_called_lost() -> None:
    failure = Failure(FailureKind.LOST, "its worker was silent for 60 s")
    task = waiting("load", attempt=1, retry_at=at(50), failure=failure)
    assert why(task, specs=[spec("load", retries=2)]).endswith("after it was lost: its worker was silent for 60 s")


def test_a_queued_task_names_the_limit_and_who_holds_it() -> None:
    holders = tuple(AttemptKey(RunId("8m2paaaaaaaa"), TaskKey(f"t{number}"), 1) for number in range(4))
    sentence = why(
        waiting("load"),
        specs=[spec("load", pool="api")],
        limits=(LimitUse("pool:api", 4, 4, holders), LimitUse("*", 8, 4)),
        short_ids=SHORT,
    )
    assert sentence == "queued: pool `api` has 4 of 4 slots taken, held by 8m2p/t0, 8m2p/t1, 8m2p/t2 and 1 more"


def test_a_limit_of_others_is_not_blamed() -> None:
    sentence = why(waiting("load"), limits=(LimitUse("pool:api", 4, 4), LimitUse("executor:python", 1, 1)))
    assert sentence == "ready: it starts with the scheduler's next step"


def test_the_global_limit_is_named_by_its_setting() -> None:
    holder = AttemptKey(RunId("8m2paaaaaaaa"), TaskKey("x"), 1)
    sentence = why(waiting("load"), limits=(LimitUse("*", 1, 1, (holder,)),), short_ids=SHORT)
    assert sentence == "queued: the only worker is busy (max_workers), held by 8m2p/x"


def test_a_dispatched_task_has_not_started_yet() -> None:
    task = Task(TaskKey("load"), TaskStatus.DISPATCHED, "python", attempt=1, dispatched_at=at(7))
    sentence = why(task)
    assert sentence == "handed to executor `python` 3s ago, not started yet (given up and retried after 300 s)"


def test_a_running_task_tells_its_heartbeat() -> None:
    sentence = why(running("load"), beats={TaskKey("load"): at(7)}, specs=[spec("load", timeout=600.0)])
    assert sentence == "running for 10.0s, attempt 1 of 1; last heartbeat 3 s ago; stopped after 10m"


def test_a_silent_worker_is_told_with_what_follows() -> None:
    sentence = why(running("load"), now=100, beats={TaskKey("load"): at(59)})
    assert sentence.endswith("worker silent for 41 s, given up at 60 s")


@pytest.mark.parametrize(
    ("reason", "words"),
    [(GiveUp.STALE, "lost"), (GiveUp.VANISHED, "lost"), (GiveUp.TIMEOUT, "too long"), (GiveUp.CANCEL, "cancelled")],
)
def test_an_attempt_that_is_given_up_says_why(reason: GiveUp, words: str) -> None:
    key = AttemptKey(RunId("7f3kaaaaaaaa"), TaskKey("load"), 1)
    attempt = Attempt(key, AttemptStatus.RUNNING, "process", "x", "h", START, closing=reason, closing_since=at(5))
    sentence = why(running("load"), attempts={TaskKey("load"): attempt})
    assert sentence.startswith("being given up since 5s ago")
    assert words in sentence


def test_a_skipped_task_names_the_root_cause() -> None:
    sentence = why(skipped("load", "transform"), failed("transform", DIVISION))
    assert sentence == ("skipped: transform failed; the root cause is `transform`: ZeroDivisionError: division by zero")


def test_final_tasks_say_how_they_ended() -> None:
    assert why(done("load", 5.0)) == "succeeded 5s ago after 5.0s"
    assert why(failed("load", DIVISION)).startswith("failed on attempt 1 of 1: ZeroDivisionError: division by zero")
    gone = Task(TaskKey("load"), TaskStatus.CANCELLED, "process", reason="cancelled by ann")
    assert why(gone) == "cancelled by ann"


def test_a_paused_run_says_who_paused_it_and_how_to_go_on() -> None:
    fields: dict[str, Any] = {"status": RunStatus.PAUSED, "note": "paused by ann"}
    assert why(waiting("load"), **fields) == "ready, but the run is paused (paused by ann): `ork resume 7f3k`"
    assert why_run(snapshot([waiting("load")], **fields))[0] == (
        "paused by ann: nothing new starts until `ork resume 7f3k`"
    )


@pytest.mark.parametrize("status", [RunStatus.PENDING, RunStatus.RUNNING, RunStatus.PAUSED])
def test_an_unfinished_run_without_a_scheduler_says_so(status: RunStatus) -> None:
    assert NO_SCHEDULER in why_run(snapshot([waiting("load")], status=status, schedulers=()))
    assert NO_SCHEDULER in why_task(snapshot([waiting("load")], status=status, schedulers=()), waiting("load"))


def test_a_final_run_does_not_ask_for_a_scheduler() -> None:
    lines = why_run(snapshot([done("load")], status=RunStatus.SUCCESS, schedulers=()))
    assert lines == ["succeeded 10s ago in 0.5s"]


def test_a_pending_run_waits_for_a_scheduler_or_for_other_runs() -> None:
    view = view_of([spec("a")], [], status=RunStatus.PENDING, max_active_runs=1)
    assert why_run(snapshot([], view=view)) == ["waiting for a scheduler to claim it (1 scheduler running)"]
    queued = why_run(snapshot([], view=view, active_runs=(RunId("8m2paaaaaaaa"),), short_ids=SHORT))
    assert queued == ["queued: `hello` has 1 of 1 active runs: 8m2p"]


def test_a_cancelled_run_tells_by_whom() -> None:
    lines = why_run(snapshot([], status=RunStatus.CANCELLED, note="cancelled by ann"))
    assert lines == ["cancelled by ann, 10s ago"]


def test_requests_that_wait_are_told() -> None:
    command = RunCommand(RunId("7f3kaaaaaaaa"), CommandKind.PAUSE, by="ann")
    lines = why_run(snapshot([running("a")], commands=(command,), cancel_requested_at=at(5)))
    assert "`pause` requested by ann waits for the run's owner" in lines
    assert "being cancelled since 5s ago" in lines


def test_what_is_asked_of_a_run_that_has_ended_is_told_with_who_could_do_it() -> None:
    command = RunCommand(RunId("7f3kaaaaaaaa"), CommandKind.RETRY, by="ann", task="a")
    view = view_of([spec("a")], [done("a")], status=RunStatus.SUCCESS)
    lines = why_run(snapshot([], view=view, commands=(command,), schedulers=()))
    assert lines[1:] == ["`retry` of `a` requested by ann waits for a scheduler", NO_SCHEDULER]
    assert len(why_run(snapshot([], view=view, schedulers=()))) == 1


def test_a_task_of_a_run_that_has_not_begun_waits_with_it() -> None:
    view = view_of([spec("a")], [], status=RunStatus.PENDING)
    assert why_not_started(snapshot([], view=view, schedulers=())) == ["its run has not started", NO_SCHEDULER]


def test_a_run_tells_about_its_failed_and_unfinished_tasks_but_not_about_all_of_a_thousand() -> None:
    tasks = [failed("bad", DIVISION), *(waiting(f"t{number}") for number in range(1000))]
    lines = why_run(snapshot(tasks))
    assert lines[1].startswith("  bad: failed on attempt")
    assert lines[-1] == "  … and 991 more tasks"
    assert len(lines) == 12


def test_a_fan_out_says_how_far_it_is_and_what_holds_it_up() -> None:
    rows = [running("load", instances=8)]
    rows += [replaced(running("load"), key=TaskKey("load", number)) for number in range(3)]
    rows += [replaced(waiting("load"), key=TaskKey("load", number)) for number in range(3, 8)]
    specs = [spec("load", parallel=8, concurrency=3)]
    assert why(*rows, specs=specs) == "0 of 8 instances have ended, 3 running, 5 queued: concurrency 3"
    assert why(rows[-1], *rows[:-1], specs=specs) == "queued: concurrency 3"


def test_a_task_with_a_rate_says_so() -> None:
    assert why(waiting("load"), specs=[spec("load", rate=Rate(10, 1))]) == "queued: rate 10/1s"


def test_a_question_is_told_with_what_one_can_answer() -> None:
    specs = [TaskSpec("release", "approval", Approval("Publish?"), timeout=3610)]
    sentence = why(running("release"), specs=specs)
    assert sentence == (
        "waiting for a person for 10.0s: Publish? (fails in 1h): `ork approve 7f3k release` or `ork reject 7f3k release`"
    )


@pytest.mark.parametrize(
    ("starter", "words"),
    [
        ("ada", "; ada started the run and may not approve it (`not_by: starter`)"),
        (None, "; anyone may approve it, because no person is recorded as the run's starter (`not_by: starter`)"),
    ],
)
def test_a_question_says_who_may_not_approve_it(starter: str | None, words: str) -> None:
    specs = [TaskSpec("release", "approval", Approval("Publish?", NotBy.STARTER))]
    assert why(running("release"), specs=specs, starter=starter).endswith(f"`ork reject 7f3k release`{words}")


def test_an_attempt_that_waits_for_external_jobs_names_them() -> None:
    key = AttemptKey(RunId("r"), TaskKey("load"), 1)
    jobs = '[{"http": "https://jobs.example/7"}, {"call": "polls:is_done"}]'
    attempt = Attempt(key, AttemptStatus.RUNNING, "python", "x", "h", at(0), waits_for=jobs)
    sentence = why(running("load"), attempts={TaskKey("load"): attempt})
    assert sentence == "waiting for 2 external jobs for 10.0s: https://jobs.example/7, polls:is_done"


def test_a_cached_or_approved_task_tells_its_reason() -> None:
    task = replaced(done("load"), reason="cached: the same as in run abc")
    assert why(task).endswith("; cached: the same as in run abc")


def test_a_task_that_failed_without_an_attempt_has_no_log_to_look_at() -> None:
    task = replaced(failed("load", ERROR), attempt=0)
    assert why(task) == "failed: HTTPError: 503"


UNREACHABLE = Attempt(
    AttemptKey(RunId("7f3kaaaaaaaa"), TaskKey("load"), 1), AttemptStatus.RUNNING, "process", "local:m1+00:b:1:x", "h", START,
    closing=GiveUp.STALE, closing_since=at(70),
)  # fmt: skip


def why_unreachable(spec_fields: dict[str, Any], attempt: Attempt = UNREACHABLE, **fields: Any) -> str:
    known = {"attempts": {TaskKey("load"): attempt}, "beats": {TaskKey("load"): at(10)}} | fields
    return why(running("load"), specs=[spec("load", **spec_fields)], now=100.0, **known)


def test_a_machine_that_does_not_answer_is_named_with_the_moment_at_which_it_counts_as_lost() -> None:
    over = at(10 + 60 + 45).astimezone().strftime("%H:%M:%S")
    sentence = why_unreachable({})
    assert f"if machine m1 does not answer, it counts as over at {over}" in sentence
    assert "`ork declare-dead 7f3k load`" in sentence


def test_what_is_waited_for_without_end_says_so() -> None:
    assert "it is waited for (on_unreachable: wait)" in why_unreachable({"on_unreachable": OnUnreachable.WAIT})
    container = replaced(UNREACHABLE, external_name="docker:ork.x")
    sentence = why_unreachable({}, container, machines={TaskKey("load"): "engine-host"})
    assert "if machine engine-host does not answer, it is waited for, since nothing else ends it" in sentence


def test_one_that_was_heard_just_now_is_being_stopped() -> None:
    sentence = why_unreachable({}, beats={TaskKey("load"): at(95)})
    assert sentence.endswith("its remaining processes are being stopped")


def test_a_worker_silent_past_the_limit_is_given_up_only_by_a_scheduler() -> None:
    sentence = why(running("load"), now=100, beats={TaskKey("load"): at(29)}, schedulers=())
    assert sentence.endswith(
        "silent for 71 s, longer than the limit of 60 s: it is given up only when a scheduler runs"
    )
    assert "the scheduler gives it up soon" in why(running("load"), now=100, beats={TaskKey("load"): at(29)})


def test_a_moment_that_has_passed_is_not_told_as_one_to_come() -> None:
    late = {"beats": {TaskKey("load"): at(-20)}}
    assert "it counts as over when a scheduler looks at it" in why_unreachable({}, schedulers=(), **late)
    assert "the scheduler ends it soon" in why_unreachable({}, **late)


def test_a_run_that_exceeded_its_budget_and_continues() -> None:
    view = view_of([spec("a")], [running("a")], budget=Budget(5.0))
    lines = why_run(snapshot([], view=view, over_budget_at=at(4)))
    assert "exceeded its budget of $5.00 6s ago (`ork cost 7f3k`)" in lines
    cancelled = view_of([spec("a")], [running("a")], budget=Budget(5.0, OnExceed.CANCEL))
    assert not any("exceeded" in line for line in why_run(snapshot([], view=cancelled, over_budget_at=at(4))))


def test_reasons_name_whom_a_task_waits_for_and_until_when() -> None:
    def reason(task: Task, *others: Task, **fields: Any) -> tuple[Any, ...]:
        found = answers.why_task(snapshot([task, *others], **fields), task)[0]
        return found.code, found.until, found.refs

    specs = [spec("load", "extract"), spec("extract")]
    run = view_of(specs, []).run.id
    upstream = (ReasonRef(run, TaskKey("extract")),)
    assert reason(waiting("load"), running("extract"), specs=specs) == (ReasonCode.UPSTREAM, None, upstream)
    retry = waiting("load", attempt=1, retry_at=at(50), failure=ERROR)
    assert reason(retry, specs=[spec("load", retries=2)]) == (ReasonCode.RETRY, at(50), ())
    other = RunId("8m2paaaaaaaa")
    limit = LimitUse("pool:db", 1, 1, (AttemptKey(other, TaskKey("scan", 3), 1),))
    held = reason(waiting("load"), specs=[spec("load", pool="db")], limits=(limit,), short_ids=SHORT)
    assert held == (ReasonCode.LIMIT, None, (ReasonRef(other, TaskKey("scan", 3)),))
    slow = reason(running("load"), specs=[spec("load", timeout=60.0)])
    assert slow == (ReasonCode.RUNNING, at(60), ())


def test_a_line_about_a_task_names_it() -> None:
    first, line = answers.why_run(snapshot([running("load")]))
    assert (first.code, first.task) == (ReasonCode.RUNNING, None)
    assert (line.task, line.sentence) == (TaskKey("load"), f"  {line.text}")
    assert line.text.startswith("load: running for")
