from __future__ import annotations

import pytest

from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.model.record import replaced
from ork.model.task import Attempt, AttemptStatus, Failure, FailureKind, TaskStatus
from ork.model.workflow import RetryOn
from ork.status.attempt_text import earlier_attempts_text, failure_notes
from tests.unit.status.sample_runs import START, at, done, failed, spec

EXIT = Failure(FailureKind.EXIT, "exit code 1")
LOST = Failure(FailureKind.LOST, "its process is gone")
TIMEOUT = Failure(FailureKind.TIMEOUT, "timed out after 5s")


def attempt(number: int, failure: Failure | None, status: AttemptStatus = AttemptStatus.FAILED) -> Attempt:
    key = AttemptKey(RunId("7f3kaaaaaaaa"), TaskKey("a"), number)
    return Attempt(key, status, "process", "x", "t", START, failure=failure)


def test_a_success_after_a_failed_try_tells_both() -> None:
    task = replaced(done("a"), attempt=2)
    tries = [attempt(1, EXIT), attempt(2, None, AttemptStatus.SUCCESS)]
    assert earlier_attempts_text(task, tries) == "2 attempts: exit code 1, then success"


def test_a_lost_try_is_told_with_its_reason() -> None:
    task = replaced(done("a"), attempt=2)
    assert earlier_attempts_text(task, [attempt(1, LOST, AttemptStatus.LOST)]) == "attempt 1 lost: its process is gone"


def test_equal_ends_in_a_row_are_counted() -> None:
    task = failed("a", TIMEOUT, attempt=4)
    tries = [attempt(1, EXIT), attempt(2, EXIT), attempt(3, LOST, AttemptStatus.LOST), attempt(4, TIMEOUT)]
    said = "4 attempts: exit code 1 (2 times), lost (its process is gone), then timed out after 5s"
    assert earlier_attempts_text(task, tries) == said


def test_what_ended_the_same_each_time_is_said_once() -> None:
    tries = [attempt(number, EXIT) for number in (1, 2, 3)]
    assert earlier_attempts_text(failed("a", EXIT, attempt=3), tries) == "3 attempts, all with the same end"


def test_a_first_try_and_earlier_successes_are_not_worth_a_line() -> None:
    assert earlier_attempts_text(done("a"), [attempt(1, None, AttemptStatus.SUCCESS)]) is None
    assert earlier_attempts_text(replaced(done("a"), attempt=2), [attempt(1, None, AttemptStatus.SUCCESS)]) is None


def test_tries_that_were_left_unused_are_explained() -> None:
    task = failed("a", TIMEOUT)
    assert failure_notes(spec("a", retries=2), task) == "not retried: `retry_on` has no timeout"
    assert failure_notes(spec("a", retries=2, retry_on=frozenset(RetryOn)), task) is None
    assert failure_notes(spec("a"), task) is None
    useless = failed("a", replaced(EXIT, detail={"retry": False}))
    assert failure_notes(spec("a", retries=2), useless) == "not retried: the task asked not to be retried"


@pytest.mark.parametrize(("end", "said"), [(5.2, None), (15.0, "stopping it took 10.0s of grace time")])
def test_a_stop_that_took_long_is_told(end: float, said: str | None) -> None:
    task = replaced(failed("a", TIMEOUT), started_at=at(0), finished_at=at(end))
    told = failure_notes(spec("a", timeout=5.0), task)
    assert told == said if said is None or told is None else told.startswith(said)


def test_only_failed_tasks_have_an_end_to_explain() -> None:
    assert failure_notes(spec("a", retries=2), replaced(failed("a", TIMEOUT), status=TaskStatus.PENDING)) is None
