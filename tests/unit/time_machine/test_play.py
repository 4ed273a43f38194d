"""What would happen: runs, waits, overlaps and failures of schedules in virtual time."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

import pytest

from ork.errors import UsageError
from ork.model.record import replaced
from ork.model.task import FailureKind
from ork.time_machine.history import PastAttempt, TaskHistory
from ork.time_machine.plan import SimulationPlan
from ork.time_machine.recorder import PlayedRun
from tests.unit.time_machine.projects import START, at, played, project

HOURLY = """
    name: hourly
    schedule: {cron: "0 * * * *"}
    tasks:
      a: {command: x}
      b: {command: x, depends_on: [a]}
"""


def starts(runs: tuple[PlayedRun, ...]) -> list[tuple[str, datetime]]:
    return [(run.row.workflow, _whole(run.dispatched_at)) for run in runs]


def _whole(moment: datetime | None) -> datetime:
    """Steps of the scheduler take a millisecond each."""
    assert moment is not None
    return (moment + timedelta(milliseconds=100)).replace(microsecond=0)


def test_every_time_of_the_range_gets_a_run_and_the_end_gets_none() -> None:
    report = played(project(HOURLY), at(3))
    assert starts(report.runs) == [("hourly", at(hour)) for hour in range(3)]
    assert [run.row.scheduled_for for run in report.runs] == [at(hour) for hour in range(3)]
    (hourly,) = report.schedules
    assert (hourly.runs, hourly.success, hourly.failed, hourly.unfinished, hourly.missed) == (3, 3, 0, 0, 0)
    assert (hourly.late, hourly.queued, hourly.overlapping, hourly.most_at_once) == (0, 0, 0, 1)
    assert report.assumed == ("hourly.a", "hourly.b")
    assert hourly.median_seconds == pytest.approx(120, abs=0.1)


def test_durations_come_from_the_plan_then_from_history_then_from_the_default() -> None:
    history = {
        ("hourly", task): TaskHistory((PastAttempt(1, 10), PastAttempt(1, 20), PastAttempt(1, 90)))
        for task in ("a", "b")
    }
    known = project(HOURLY, history=history)
    assert played(known, at(1)).schedules[0].median_seconds == pytest.approx(42, abs=0.1)
    given = played(known, at(1), durations={"a": 100.0})
    assert given.schedules[0].median_seconds == pytest.approx(122, abs=0.1)
    narrower = played(known, at(1), durations={"a": 100.0, "hourly.a": 5.0})
    assert narrower.schedules[0].median_seconds == pytest.approx(27, abs=0.1)
    assert played(project(HOURLY), at(1), default_seconds=7.0).schedules[0].median_seconds == pytest.approx(14, abs=0.1)


def test_runs_beyond_max_active_runs_are_queued_and_without_it_they_overlap() -> None:
    slow = {"a": 5400.0}
    report = played(project(HOURLY), at(3), durations=slow)
    assert (report.schedules[0].overlapping, report.schedules[0].most_at_once) == (2, 2)
    report = played(project(HOURLY + "    max_active_runs: 1\n"), at(3), durations=slow)
    (hourly,) = report.schedules
    assert (hourly.overlapping, hourly.queued, hourly.late) == (0, 2, 2)
    assert hourly.longest_queued_seconds == pytest.approx(2 * (5460 - 3600), abs=0.1)
    assert [(each.name, each.waited) for each in report.limits if each.waited] == [("max_active_runs of hourly", 2)]
    (moment,) = report.moments
    assert (_whole(moment.start), moment.count, moment.workflows, moment.alike) == (at(2), 1, ("hourly",), 1)


def test_a_backlog_that_grows_is_counted_to_its_last_run() -> None:
    slow = "name: slow\nmax_active_runs: 1\nschedule: {cron: '0 * * * *'}\ntasks:\n  a: {command: x}\n"
    report = played(project(slow), at(0, day=4), default_seconds=36000.0)
    (schedule,) = report.schedules
    # Two days and a week of ten hours each: 21 end, one is active, and the others wait.
    assert (schedule.runs, schedule.success, schedule.unfinished, schedule.queued) == (48, 21, 27, 47)
    assert timedelta(seconds=schedule.longest_queued_seconds) > timedelta(days=7)


def test_a_full_pool_lets_tasks_wait_by_priority_and_is_blamed() -> None:
    def nightly(name: str, priority: int) -> str:
        return f"""
            name: {name}
            schedule: {{cron: "30 2 * * *"}}
            tasks:
              load: {{command: x, pool: db, priority: {priority}}}
        """

    both = project(nightly("low", 1), nightly("top", 5), HOURLY, limits={"pool:db": 1})
    report = played(both, at(0, day=4), durations={"load": 600.0})
    nights = [start for start in starts(report.runs) if start[0] != "hourly"]
    assert nights == [(name, at(2, minute, day=day)) for day in (2, 3) for name, minute in (("top", 30), ("low", 40))]
    pool = next(each for each in report.limits if each.name == "pool:db")
    assert (pool.slots, pool.peak, pool.waited) == (1, 1, 2)
    assert pool.longest_seconds == pytest.approx(600, abs=0.1)
    assert pool.mean == pytest.approx(4 * 600 / (2 * 86400), rel=0.01)
    (moment,) = report.moments
    assert (moment.what, moment.workflows, moment.alike) == ("pool:db", ("low",), 1)


def test_of_two_full_limits_the_narrower_one_is_blamed() -> None:
    pair = """
        name: pair
        schedule: {cron: "0 6 * * *"}
        tasks:
          a: {command: x, pool: db, parallel: 2}
    """
    report = played(project(pair, limits={"*": 1, "pool:db": 1}), at(7))
    assert [(each.name, each.waited) for each in report.limits if each.waited] == [("pool:db", 1)]


def test_waits_for_all_workers_and_for_a_rate_are_told_apart() -> None:
    wide = """
        name: wide
        schedule: {cron: "0 6 * * *"}
        tasks:
          a: {command: x, parallel: 4}
          b: {command: x, depends_on: [a], parallel: 4, rate: 1/30s}
    """
    report = played(project(wide, limits={"*": 2}), at(8), durations={"b": 10.0})
    waited = {each.name: (each.waited, round(each.longest_seconds)) for each in report.limits if each.waited}
    assert waited == {"*": (2, 60), "rate:task:wide.b": (3, 90)}


def test_failures_are_retried_and_end_a_run_as_the_real_machine_decides() -> None:
    flaky = """
        name: flaky
        schedule: {cron: "0 * * * *"}
        tasks:
          a: {command: x, retries: 1, retry_delay: 5m}
          b: {command: x, depends_on: [a]}
    """
    report = played(project(flaky), at(0, day=3), fail_rate=0.3, default_seconds=10.0)
    (schedule,) = report.schedules
    assert schedule.success + schedule.failed == schedule.runs == 24
    assert 0 < schedule.failed < 24
    assert report.attempts > 48 - schedule.failed
    assert not report.limits[0].waited, "a retry that is not due does not wait for a limit"
    assert report == played(project(flaky), at(0, day=3), fail_rate=0.3, default_seconds=10.0)
    assert played(project(flaky), at(0, day=3), fail_rate=1.0).schedules[0].failed == 24
    assert played(project(flaky), at(0, day=3), fail_rate=0.0).schedules[0].failed == 0


def test_with_a_seed_attempts_are_drawn_from_history_failures_included() -> None:
    samples = (*(PastAttempt(0, seconds) for seconds in (10, 20, 30)), PastAttempt(0, 1, FailureKind.EXIT))
    known = project(
        HOURLY, history={("hourly", "a"): TaskHistory(samples), ("hourly", "b"): TaskHistory((PastAttempt(0, 1),))}
    )
    median = played(known, at(0, day=4))
    assert (median.schedules[0].failed, median.schedules[0].longest_seconds) == (0, pytest.approx(21, abs=0.1))
    drawn = played(known, at(0, day=4), seed=1)
    took = Counter(
        round(run.row.finished_at.timestamp() - run.row.started_at.timestamp())
        for run in drawn.runs
        if run.row.finished_at and run.row.started_at
    )
    assert set(took) == {1, 11, 21, 31}
    assert drawn.schedules[0].failed == took[1] > 0
    assert drawn == played(known, at(0, day=4), seed=1)
    assert drawn != played(known, at(0, day=4), seed=2)


def test_a_timeout_ends_an_attempt_that_would_take_longer() -> None:
    slow = """
        name: slow
        schedule: {cron: "0 * * * *"}
        tasks:
          a: {command: x, timeout: 30s}
    """
    (schedule,) = played(project(slow), at(2)).schedules
    assert (schedule.failed, schedule.longest_seconds) == (2, pytest.approx(30, abs=0.1))


def test_a_fan_out_is_as_wide_as_in_history_and_one_instance_wide_without() -> None:
    pages = """
        name: pages
        schedule: {cron: "0 6 * * *"}
        tasks:
          list: {command: x}
          fetch: {command: x, foreach: list.pages}
    """
    history = {("pages", "list"): TaskHistory((PastAttempt(0, 1),), '{"pages": [1, 2, 3, 4, 5]}')}
    assert played(project(pages, history=history), at(7)).attempts == 1 + 5
    report = played(project(pages), at(7))
    assert (report.attempts, report.problems, report.schedules[0].success) == (2, (), 1)


def test_fail_fast_stops_what_runs() -> None:
    both = """
        name: both
        fail_fast: true
        schedule: {cron: "0 6 * * *"}
        tasks:
          slow: {command: x}
          bad: {command: x, timeout: 10s}
    """
    (schedule,) = played(project(both), at(7), durations={"slow": 1000.0}).schedules
    assert (schedule.failed, schedule.longest_seconds) == (1, pytest.approx(10, abs=1))


def test_sub_workflows_run_and_their_parent_waits_without_a_slot() -> None:
    parent = """
        name: parent
        schedule: {cron: "0 6 * * *"}
        tasks:
          child: {workflow: child}
          last: {command: x, depends_on: [child]}
    """
    child = "name: child\ntasks:\n  a: {command: x}\n"
    report = played(project(parent, child, limits={"*": 1}), at(7), default_seconds=100.0)
    assert [(run.row.workflow, str(run.row.status)) for run in report.runs] == [("parent", "success")]
    assert report.schedules[0].longest_seconds == pytest.approx(200, abs=0.1)
    assert report.problems == ()
    failing = played(project(parent, child), at(7), fail_rate=1.0)
    assert failing.schedules[0].failed == 1


def test_approvals_take_as_long_as_people_took_and_deferred_tasks_take_no_slot() -> None:
    asked = """
        name: asked
        schedule: {cron: "0 6 * * *"}
        tasks:
          ok: {approval: {message: Go on?}}
          job: {command: x, depends_on: [ok]}
          other: {command: x, depends_on: [ok]}
    """
    history = {
        ("asked", "ok"): TaskHistory((PastAttempt(0, 1800),)),
        ("asked", "job"): TaskHistory((PastAttempt(0, 3600, waited=True),)),
    }
    report = played(project(asked, history=history, limits={"*": 1}), at(7))
    (schedule,) = report.schedules
    assert (schedule.success, schedule.longest_seconds) == (1, pytest.approx(5400, abs=0.1))
    assert (report.limits[0].peak, report.limits[0].longest_seconds) == (1, 0.0)


def test_a_schedule_that_can_make_no_run_misses_every_time() -> None:
    needs = """
        name: needs
        params: {day: {type: str}}
        schedule: {cron: "0 * * * *"}
        tasks:
          a: {command: x}
    """
    report = played(project(needs, HOURLY), at(3))
    assert [(each.workflow, each.runs, each.missed) for each in report.schedules] == [("needs", 0, 3), ("hourly", 3, 0)]
    assert (report.moments[0].what, report.moments[0].alike) == ("missed", 2)
    assert "day" in (report.moments[0].why or "")


def test_while_no_scheduler_runs_times_are_missed_or_caught_up_and_tasks_go_on() -> None:
    last = HOURLY.replace("hourly", "last").replace('"}', '", catchup: last}')
    down = ((at(1, 1), at(4, 30)),)
    report = played(project(HOURLY, last), at(6), down=down, durations={"b": 7200.0})
    assert [(each.workflow, each.runs, each.missed) for each in report.schedules] == [("hourly", 3, 3), ("last", 4, 2)]
    assert [_whole(run.dispatched_at) for run in report.runs if run.row.workflow == "last"] == [
        at(0),
        at(1),
        at(4, 30),
        at(5),
    ]
    assert report.schedules[1].latest_seconds == pytest.approx(1800, abs=0.1)
    assert sorted((each.what, each.workflows, each.count) for each in report.moments) == [
        ("missed", ("hourly",), 3), ("missed", ("last",), 2),
    ]  # fmt: skip
    first = report.runs[0].row
    assert first.finished_at is not None
    assert _whole(first.finished_at) == at(4, 30), "its task went on meanwhile"


def test_a_failure_that_no_history_explains_is_reported() -> None:
    lost = "name: lost\nschedule: {cron: '0 * * * *'}\ntasks:\n  a: {workflow: gone}\n"
    report = played(project(lost), at(3))
    assert report.schedules[0].failed == 3
    assert report.problems == (("lost.a: there is no workflow `gone`: deploy it with `ork deploy FILE`", 3),)


def test_a_disabled_schedule_does_not_fire_and_jitter_is_no_delay() -> None:
    spread = """
        name: spread
        schedule: {cron: "0 * * * *", jitter: 10m}
        tasks:
          a: {command: x}
    """
    made = project(HOURLY, spread)
    made = replaced(made, schedules=[replaced(made.schedules[0], enabled=False), made.schedules[1]])
    report = played(made, at(3))
    assert [(each.runs, each.late) for each in report.schedules] == [(0, 0), (3, 0)]
    assert report.runs[0].dispatched_at is not None
    assert report.runs[0].dispatched_at > at(0, 0, 1)


def test_the_day_on_which_clocks_go_back() -> None:
    nightly = """
        name: nightly
        schedule: {cron: "30 2 * * *", timezone: Europe/Prague}
        tasks:
          a: {command: x}
    """
    day = timedelta(days=1)
    autumn = datetime(2026, 10, 24, tzinfo=START.tzinfo)
    report = played(project(nightly), autumn + 3 * day)
    # START is in spring: both changes are in the range.
    changes = [(each.kind, each.local.isoformat(), len(each.fires)) for each in report.clock_changes]
    assert changes == [("skipped", "2026-03-29T02:30:00", 1), ("repeated", "2026-10-25T02:30:00", 1)]
    assert report.schedules[0].runs == (autumn + 3 * day - START).days


@pytest.mark.parametrize("end", [START, START - timedelta(days=1), START + timedelta(days=400)])
def test_a_range_that_is_empty_reversed_or_too_long_is_refused(end: datetime) -> None:
    with pytest.raises(UsageError):
        SimulationPlan(START, end).check()
