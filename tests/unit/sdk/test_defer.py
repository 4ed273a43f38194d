"""Jobs that tasks hand over to: what one may say, and how an answer is compared."""

from __future__ import annotations

from typing import Any

import pytest

import ork
from ork.sdk.defer import NOTHING, checked_job, follow, is_met

ANSWER = {"state": "running", "jobs": [{"id": 7, "done": 0.5}], "note": None}


@pytest.mark.parametrize(
    ("condition", "met"),
    [
        ({"path": "state", "equals": "running"}, True),
        ({"path": "state", "not_equals": "running"}, False),
        ({"path": "state", "in": ["queued", "running"]}, True),
        ({"path": "jobs[0].done", "ge": 0.5, "lt": 1}, True),
        ({"path": "jobs[0].done", "gt": 0.5}, False),
        ({"path": "jobs[0].done", "le": 0.4}, False),
        ({"path": "state", "gt": 5}, False),
        ({"path": "jobs[1]", "exists": False}, True),
        ({"path": "note", "exists": True}, True),
        ({"path": "missing", "not_equals": 1}, False),
    ],
)
def test_a_condition_holds_only_if_every_comparison_does(condition: dict[str, Any], met: bool) -> None:
    assert is_met(condition, ANSWER) is met


def test_a_path_leads_through_fields_and_indexes_or_nowhere() -> None:
    assert follow(ANSWER, "jobs[0].id") == 7
    assert follow(ANSWER, "") is ANSWER
    assert follow([[1, 2]], "[0][1]") == 2
    assert follow(ANSWER, "jobs.id") is NOTHING


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ({}, "`http`"),
        ({"http": "http://x/", "call": "a:b"}, "`http`"),
        ({"http": "file:///etc/passwd"}, "not an http or https URL"),
        ({"http": "http://x/\r\nHost: y"}, "not an http or https URL"),
        ({"http": "http://x/", "every": 0.001}, "`every`"),
        ({"http": "http://x/", "every": True}, "`every`"),
        ({"http": "http://x/", "done": {"path": "state"}}, "`done` is a condition"),
        ({"http": "http://x/", "done": {"path": "state", "is": 1}}, "unknown comparison `is`"),
        ({"http": "http://x/", "cancel": "http://x/"}, "`cancel` is a map"),
        ({"http": "http://x/", "cancel": {"url": "x"}}, "not an http"),
        ({"call": "module.function"}, "`module:function`"),
        ({"call": "a:b", "cancel": "b"}, "`cancel`"),
        ({"call": "a:b", "args": [1]}, "`args`"),
        ({"call": "a:b", "done": {}}, "no key `done`"),
    ],
)
def test_an_invalid_job_is_rejected(job: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        checked_job(job)


def test_jobs_made_by_the_makers_are_whole_and_stay_what_they_are() -> None:
    job = ork.http_job("http://x/", done={"path": "s", "equals": 1})
    assert job == {"http": "http://x/", "method": "GET", "every": 10.0, "done": {"path": "s", "equals": 1}}
    assert checked_job(job) == job
    assert ork.defer(job, ork.call_job("a.b:c", {"x": 1})).jobs[1] == {"call": "a.b:c", "args": {"x": 1}, "every": 10.0}


def test_there_must_be_a_job() -> None:
    with pytest.raises(ValueError, match="nothing to wait for"):
        ork.defer()
