"""When the pages of the web UI are published again: after changes, not too often, and later after failures."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ork.model.publishing import PublishState, state_of, state_text

NOW = datetime(2026, 11, 18, 10, 0, tzinfo=UTC)
NEW = PublishState("s3://b/ork")


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def test_nothing_is_due_until_something_has_changed() -> None:
    assert NEW.due(60) is None
    assert NEW.is_wanted_at(NOW).due(60) == NOW
    assert NEW.is_wanted_at(NOW).is_wanted_at(later(9)).wanted == NOW


def test_it_is_not_due_more_often_than_it_should() -> None:
    done = NEW.is_wanted_at(NOW).claimed_until(later(300)).ended(later(5), "3 files", None)
    assert (done.due(60), done.said, done.problem) == (None, "3 files", None)
    assert done.is_wanted_at(later(10)).due(60) == later(65)
    assert done.is_wanted_at(later(100)).due(60) == later(100)


def test_what_changes_meanwhile_is_published_afterwards() -> None:
    claimed = NEW.is_wanted_at(NOW).claimed_until(later(300))
    assert claimed.due(60) == later(300)  # if its process has died
    assert claimed.is_wanted_at(later(2)).ended(later(5), "3 files", None).due(60) == later(65)


def test_after_failures_the_pauses_grow_and_the_last_success_is_remembered() -> None:
    state, pauses = NEW.is_wanted_at(NOW).ended(NOW, "3 files", None), []
    for number in range(9):
        state = state.ended(later(number), "", "no such bucket")
        due = state.due(60)
        assert due is not None
        pauses.append((due - later(number)).total_seconds())
    assert pauses == [120, 240, 480, 960, 1920, 3600, 3600, 3600, 3600]
    assert (state.said, state.problem, state.failures) == ("3 files", "no such bucket", 9)
    assert state.ended(NOW, "4 files", None).failures == 0


def test_a_state_is_kept_as_text() -> None:
    for state in (NEW, NEW.is_wanted_at(NOW), NEW.claimed_until(NOW), NEW.ended(NOW, "", "no luck")):
        assert state_of(state_text(state), NEW.to) == state


@pytest.mark.parametrize(
    "text", [None, "", "{", "[]", "1", '{"to": "s3://b/ork"}', '{"to": "elsewhere", "failures": 3}']
)
def test_the_state_of_another_target_or_of_nobody_is_a_new_one(text: str | None) -> None:
    assert state_of(text, NEW.to) == NEW
