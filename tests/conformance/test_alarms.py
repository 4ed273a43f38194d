"""The contract of timer services, and of the alarm on top of them, on every implementation."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from ork.alarms.alarm import GUARD_SECONDS, Alarm
from ork.alarms.cloud_tasks import CloudTasks
from ork.alarms.systemd import SystemdTimers
from ork.alarms.timers import TimerService
from ork.errors import AlarmError
from ork.model.alarm import AlarmConfig, AlarmKind
from tests.cloud.cloud_tasks import FakeCloudTasks

BEGIN = datetime(2026, 3, 28, 12, 0, 0, 400_000, tzinfo=UTC)
ACCOUNT = "ork-wake@acme.iam.gserviceaccount.com"


class Scene:
    """A timer service whose time the test sets, and the calls that it made."""

    def __init__(self) -> None:
        self.now = BEGIN
        self.called: list[str] = []
        self.requests: Callable[[], int] = lambda: 0
        self.call_due: Callable[[], None] = lambda: None
        self.timers: TimerService

    def alarm(self) -> Alarm:
        """The alarm as another process opens it."""
        return Alarm(self.timers, AlarmConfig(), lambda: self.now)

    def wait(self, seconds: float) -> list[str]:
        """The calls that are made until then."""
        end, before = self.now + timedelta(seconds=seconds), len(self.called)
        while (at := min((t.at for t in self.timers.pending()), default=None)) is not None and at <= end:
            self.now = max(self.now, at)
            self.call_due()
        self.now = end
        return self.called[before:]


@pytest.fixture(params=["cloud_tasks", pytest.param("systemd", marks=pytest.mark.slow)])
def scene(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    with ExitStack() as stack:
        made = Scene()
        if request.param == "cloud_tasks":
            _with_cloud_tasks(made, stack)
        else:
            _with_systemd(made, tmp_path, monkeypatch)
        yield made


def _with_cloud_tasks(scene: Scene, stack: ExitStack) -> None:
    def send(method: str, url: str, headers: dict[str, str], body: bytes, seconds: float) -> int:
        assert (method, url, body) == ("POST", "https://ork.example/api/v1/tick", b"")
        assert headers["Authorization"].startswith("Bearer ey")
        scene.called.append(headers["X-CloudTasks-TaskName"])
        return 200

    fake = FakeCloudTasks(lambda: scene.now, send)
    stack.callback(fake.close)
    config = AlarmConfig(AlarmKind.CLOUD_TASKS, fake.queue, "https://ork.example", ACCOUNT, fake.url)
    scene.timers = CloudTasks(config, sleep=lambda _seconds: None)
    stack.callback(scene.timers.close)
    scene.requests = lambda: sum(fake.calls.values())

    def call_due() -> None:
        with fake.changed:
            fake.deliver_due()
            assert fake.changed.wait_for(lambda: not fake.is_delivering, 60)

    scene.call_due = call_due
    scene.fake = fake  # type: ignore[attr-defined]


def _with_systemd(scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of systemd's names that keep units in files, and refuse what systemd refuses."""
    units = tmp_path / "units"
    units.mkdir()
    programs = Path(__file__).parents[1] / "cloud" / "systemd"
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("systemd-run", "systemctl"):
        program = folder / name
        program.write_text(f"#!{sys.executable} -SI\n" + (programs / f"{name}.py").read_text())
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_SYSTEMD", str(units))
    scene.timers = SystemdTimers(str(tmp_path), {"ORK_STORE_FILE": "/run/url"}, lambda: scene.now)
    scene.requests = lambda: len((units / "log").read_text().splitlines()) if (units / "log").exists() else 0

    def call_due() -> None:
        for timer in scene.timers.pending():
            if timer.at <= scene.now:
                (unit,) = units.glob(f"*{timer.name}.timer")
                unit.unlink()
                scene.called.append(timer.name)

    scene.call_due = call_due


# ── timer services ───────────────────────────────────────────────────────────────────────────────


def test_a_timer_is_called_once_at_its_time(scene: Scene) -> None:
    assert scene.timers.create("a-wake-1-0", scene.now + timedelta(seconds=30))
    assert scene.wait(29) == []
    assert scene.wait(2) == ["a-wake-1-0"]
    assert scene.wait(3600) == []


def test_a_time_that_has_passed_is_called_at_once(scene: Scene) -> None:
    assert scene.timers.create("a-wake-1-0", scene.now - timedelta(hours=1))
    assert scene.wait(0.1) == ["a-wake-1-0"]


def test_a_name_that_is_in_use_changes_nothing(scene: Scene) -> None:
    at = scene.now + timedelta(seconds=30)
    assert scene.timers.create("a-wake-1-0", at)
    assert not scene.timers.create("a-wake-1-0", at + timedelta(hours=1))
    (timer,) = scene.timers.pending()
    assert (timer.name, timer.is_called) == ("a-wake-1-0", False)
    assert abs((timer.at - at).total_seconds()) < 1
    assert abs((timer.created_at - BEGIN).total_seconds()) < 1


def test_a_deleted_timer_is_not_called_and_deleting_it_again_is_no_error(scene: Scene) -> None:
    scene.timers.create("a-wake-1-0", scene.now + timedelta(seconds=30))
    scene.timers.create("a-wake-2-0", scene.now + timedelta(seconds=40))
    for _ in range(2):
        scene.timers.delete("a-wake-1-0")
    assert [timer.name for timer in scene.timers.pending()] == ["a-wake-2-0"]
    assert scene.wait(60) == ["a-wake-2-0"]
    scene.timers.delete("a-wake-2-0")


def test_pending_timers_come_earliest_first(scene: Scene) -> None:
    for seconds in (50, 10, 30):
        scene.timers.create(f"a-wake-{seconds}-0", scene.now + timedelta(seconds=seconds))
    assert [timer.name for timer in scene.timers.pending()] == ["a-wake-10-0", "a-wake-30-0", "a-wake-50-0"]


def test_a_service_that_works_passes_its_check(scene: Scene) -> None:
    scene.timers.check()
    assert scene.timers.describes


# ── the alarm ────────────────────────────────────────────────────────────────────────────────────


def test_a_wake_is_called_within_two_seconds(scene: Scene) -> None:
    scene.alarm().set()
    assert scene.alarm().next() is not None
    assert len(scene.wait(2)) == 1


def test_wakes_of_one_second_share_a_call_and_cost_nothing_in_the_process_that_set_them(scene: Scene) -> None:
    one, other = scene.alarm(), scene.alarm()
    one.set()
    before = scene.requests()
    for _ in range(1000):
        one.set()
    assert scene.requests() == before
    other.set()
    assert scene.requests() <= before + 2
    assert len(scene.wait(5)) == 1


def test_a_wake_after_the_call_of_the_same_second_has_begun_is_not_lost(scene: Scene) -> None:
    at = scene.alarm().set().at
    assert len(scene.wait((at - scene.now).total_seconds())) == 1
    # The clock of this process is behind: its wake falls into the second whose call has been made.
    scene.now = at - timedelta(milliseconds=600)
    scene.alarm().set()
    scene.now = at
    assert len(scene.wait(2)) == 1


def test_a_later_time_does_not_replace_an_earlier_one(scene: Scene) -> None:
    alarm = scene.alarm()
    alarm.set(scene.now + timedelta(seconds=30))
    alarm.set(scene.now + timedelta(hours=2))
    assert len(scene.wait(60)) == 1
    assert len(scene.wait(7200)) == 1


def test_a_cancelled_alarm_can_be_set_again_for_the_same_second(scene: Scene) -> None:
    alarm, at = scene.alarm(), scene.now + timedelta(seconds=30)
    alarm.cancel(alarm.set(at))
    assert scene.wait(0.1) == []
    scene.alarm().set(at)
    assert len(scene.wait(60)) == 1


def test_a_time_beyond_what_the_service_allows_is_brought_forward(scene: Scene) -> None:
    scene.alarm().set(scene.now + timedelta(days=4000))
    found = scene.alarm().next()
    assert found is not None
    assert timedelta(0) < scene.timers.longest - (found - scene.now) < timedelta(hours=2)


# ── passes ───────────────────────────────────────────────────────────────────────────────────────


def test_a_pass_that_dies_is_called_again_after_a_minute(scene: Scene) -> None:
    scene.alarm().begin_pass()
    assert scene.wait(GUARD_SECONDS - 1) == []
    assert len(scene.wait(3)) == 1


def test_a_pass_that_ends_leaves_one_call_at_the_next_due_time(scene: Scene) -> None:
    due = BEGIN.replace(microsecond=0) + timedelta(hours=1)
    for _ in range(3):  # the third finds what the second set
        scene.alarm().begin_pass().finish(due)
        scene.now += timedelta(seconds=1)
    assert scene.alarm().next() == due
    assert scene.wait(3590) == []
    assert len(scene.wait(20)) == 1
    assert scene.wait(7200) == []


def test_a_pass_with_nothing_due_leaves_nothing(scene: Scene) -> None:
    scene.alarm().begin_pass().finish(scene.now + timedelta(minutes=10))
    scene.now += timedelta(seconds=1)
    scene.alarm().begin_pass().finish(None)
    assert scene.wait(7200) == []


def test_a_pass_replaces_what_an_earlier_one_set_but_no_wake(scene: Scene) -> None:
    scene.alarm().begin_pass().finish(scene.now + timedelta(seconds=20))
    scene.now += timedelta(seconds=1)
    guarded = scene.alarm().begin_pass()
    scene.alarm().set()
    guarded.finish(scene.now + timedelta(hours=1))
    assert len(scene.wait(100)) == 1
    assert len(scene.wait(3600)) == 1


def test_a_pass_keeps_what_another_sets_meanwhile(scene: Scene) -> None:
    slow = scene.alarm().begin_pass()
    scene.now += timedelta(seconds=1)
    scene.alarm().begin_pass().finish(scene.now + timedelta(seconds=20))
    slow.finish(scene.now + timedelta(hours=1))
    assert len(scene.wait(30)) == 1


def test_a_time_that_a_slower_pass_is_about_to_remove_is_set_anew(scene: Scene) -> None:
    due = scene.now + timedelta(seconds=20)
    scene.alarm().begin_pass().finish(due)
    scene.now += timedelta(seconds=1)
    slow = scene.alarm().begin_pass()  # has noted the timer, and reads the store
    scene.now += timedelta(seconds=1)
    scene.alarm().begin_pass().finish(due)  # knows of something new that is due then
    slow.finish(scene.now + timedelta(hours=1))
    assert len(scene.wait(30)) == 1


def test_a_time_that_is_set_while_a_pass_begins_is_not_used_again_by_others(scene: Scene) -> None:
    """A pass must list before it sets its guard: else a timer that is set in between is younger than the guard, so that others
    rely on it, and yet the pass has it on its list and removes it."""
    due, other = scene.now + timedelta(seconds=20), scene.alarm().begin_pass()

    class Interrupted:
        """The service as the pass sees it: the other pass ends between the first two calls."""

        def __init__(self) -> None:
            self.calls = 0

        def __getattr__(self, name: str) -> object:
            if name in ("create", "pending"):
                self.calls += 1
                if self.calls == 2:
                    scene.now += timedelta(seconds=1)
                    other.finish(due)
                    scene.now += timedelta(seconds=1)
            return getattr(scene.timers, name)

    slow = Alarm(cast(TimerService, Interrupted()), AlarmConfig(), lambda: scene.now).begin_pass()
    scene.now += timedelta(seconds=1)
    scene.alarm().begin_pass().finish(due)  # knows of something new that is due then
    slow.finish(scene.now + timedelta(hours=1))
    assert len(scene.wait(30)) == 1


def test_two_passes_that_end_with_the_same_due_time_leave_one_call(scene: Scene) -> None:
    due = scene.now + timedelta(minutes=10)
    one, other = scene.alarm().begin_pass(), scene.alarm().begin_pass()
    scene.now += timedelta(seconds=1)
    one.finish(due)
    other.finish(due)
    assert len(scene.wait(700)) == 1


def test_a_time_that_was_set_and_replaced_often_costs_no_more_to_set_again(scene: Scene) -> None:
    """A daily schedule, and runs in between: each run's passes replace the timer of the schedule, and the last sets it again."""
    midnight = BEGIN.replace(microsecond=0) + timedelta(hours=12)
    costs = []
    for _ in range(6):
        scene.alarm().begin_pass().finish(scene.now + timedelta(seconds=30))
        scene.now += timedelta(seconds=5)
        before = scene.requests()
        scene.alarm().begin_pass().finish(midnight)
        costs.append(scene.requests() - before)
        scene.now += timedelta(seconds=5)
    assert max(costs[1:]) == min(costs[1:]), costs
    assert scene.alarm().next() == midnight
    assert len(scene.wait(24 * 3600)) == 1


def test_a_pass_that_took_too_long_removes_nothing_of_others(scene: Scene) -> None:
    scene.alarm().begin_pass().finish(scene.now + timedelta(minutes=10))
    slow = scene.alarm().begin_pass()
    scene.now += timedelta(seconds=55)
    slow.finish(scene.now + timedelta(hours=1))
    assert len(scene.wait(700)) == 1


# ── Cloud Tasks alone ────────────────────────────────────────────────────────────────────────────


def _cloud(scene: Scene) -> FakeCloudTasks:
    fake = getattr(scene, "fake", None)
    if fake is None:
        pytest.skip("a local service loses no answers")
    assert isinstance(fake, FakeCloudTasks)
    return fake


def test_lost_answers_and_a_busy_service_lose_no_wake(scene: Scene) -> None:
    fake = _cloud(scene)
    fake.faults.lost_answers = fake.faults.busy = 0.2
    for minute in range(25):
        alarm = scene.alarm()
        for _ in range(20):  # each call tries four times
            try:
                alarm.set()
                alarm.begin_pass().finish(scene.now + timedelta(minutes=30))
                break
            except AlarmError:
                continue
        before, faults = len(scene.called), (fake.faults.lost_answers, fake.faults.busy)
        fake.faults.lost_answers = fake.faults.busy = 0.0
        scene.wait(2)
        assert len(scene.called) > before, f"the wake of minute {minute} is lost"
        fake.faults.lost_answers, fake.faults.busy = faults
        scene.now += timedelta(seconds=60)


def test_a_queue_that_is_paused_or_missing_is_reported(scene: Scene) -> None:
    fake = _cloud(scene)
    fake.paused = True
    with pytest.raises(AlarmError, match="paused"):
        scene.timers.check()
    fake.queue = "projects/acme/locations/eu/queues/other"
    with pytest.raises(AlarmError, match="there is no"):
        scene.alarm().set()


def test_a_service_that_cannot_be_reached_is_reported() -> None:
    config = AlarmConfig(
        AlarmKind.CLOUD_TASKS, "projects/a/locations/b/queues/c", "https://ork.example", ACCOUNT, "http://127.0.0.1:9"
    )
    timers = CloudTasks(config, sleep=lambda _seconds: None)
    with pytest.raises(AlarmError, match="does not answer") as caught:
        timers.create("a-wake-1-0", BEGIN)
    assert caught.value.hint


def test_none_accepts_everything_and_calls_nobody() -> None:
    from ork.alarms.no_timers import NoTimers

    alarm = Alarm(NoTimers(), AlarmConfig(), lambda: BEGIN)
    alarm.set()
    alarm.begin_pass().finish(BEGIN + timedelta(hours=1))
    alarm.timers.check()
    assert alarm.next() is None
