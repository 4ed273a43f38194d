"""Crontabs: each line is a workflow that runs the same command at the same times."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ork.importers.crontab import CrontabOptions, import_crontab, name_of, script_of, split_percent, unlocked
from ork.importers.project import Level
from ork.importers.write import workflow_text, write_project


def only(text: str, **options: Any) -> dict[str, Any]:
    """The workflow of a crontab with one line, as its YAML."""
    project = import_crontab(text, "crontab", CrontabOptions(**options))
    (workflow,) = project.workflows
    return dict(yaml.safe_load(workflow_text(workflow)))


@pytest.mark.parametrize(
    ("line", "schedule"),
    [
        ("*/5 * * * * job", "*/5 * * * *"),
        ("30 2 * * 1-5 job", "30 2 * * 1-5"),
        ("0 3 * * sun job", "0 3 * * sun"),
        ("@daily job", "@daily"),
        ("@HOURLY job", "@HOURLY"),
        ("-0 1 * * * job", "0 1 * * *"),
        ("10~20 4 * * * job", "15 4 * * *"),
        ("CRON_TZ=Europe/Prague\n0 1 * * * job", {"cron": "0 1 * * *", "timezone": "Europe/Prague"}),
    ],
)
def test_schedules(line: str, schedule: Any) -> None:
    assert only(line)["schedule"] == schedule


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("/usr/local/bin/rotate.sh --keep 7", "rotate"),
        ("cd /srv/etl && python3 etl.py --day x", "etl"),
        ("/usr/bin/python3 -m reports.daily", "reports_daily"),
        ("flock -n /tmp/l /opt/sync.sh >> /var/log/s.log 2>&1", "sync"),
        ("timeout 10m nice -n 10 backup --all", "backup"),
        ("FOO=1 BAR=2 run-it", "run-it"),
        ("bash -c 'sync; sleep 1'", "sync"),
        ("python3 -c 'import x; x.y()'", "python3"),
        ("true", "true"),
        ("'", "job"),
    ],
)
def test_names_come_from_the_program_that_does_the_work(command: str, name: str) -> None:
    assert name_of(command) == name


@pytest.mark.parametrize(
    ("command", "left", "lock"),
    [
        ("flock -n /tmp/a.lock job --x", "job --x", "/tmp/a.lock"),
        ("/usr/bin/flock -w 10 /tmp/a.lock -c 'job; other'", "job; other", "/tmp/a.lock"),
        ("flock --nonblock /tmp/a.lock job", "job", "/tmp/a.lock"),
        ("flock -n 9 || exit", "flock -n 9 || exit", None),
        ("other /tmp/flock", "other /tmp/flock", None),
    ],
)
def test_locks(command: str, left: str, lock: str | None) -> None:
    assert unlocked(command) == (left, lock)


def test_a_lock_of_several_lines_is_a_pool() -> None:
    project = import_crontab("0 * * * * flock /tmp/db.lock a\n5 * * * * flock /tmp/db.lock b\n", "crontab")
    assert project.pools == {"db": 1}
    assert [each.tasks["run"].keys["pool"] for each in project.workflows] == ["db", "db"]
    assert [each.keys["max_active_runs"] for each in project.workflows] == [1, 1]


def test_environment_lines_hold_for_the_lines_below() -> None:
    project = import_crontab('A = "x y"\n0 * * * * one\nA=z\nSHELL=/bin/bash\n0 * * * * two\n', "crontab")
    first, second = (each.tasks["run"].keys for each in project.workflows)
    assert (first["env"], first["command"][0]) == ({"A": "x y"}, "/bin/sh")
    assert (second["env"], second["command"][0]) == ({"A": "z"}, "/bin/bash")


def test_mailto_is_an_alert_target_and_an_empty_one_is_none() -> None:
    project = import_crontab("MAILTO=ops@example.org\n0 * * * * one\nMAILTO=\n0 * * * * two\n", "crontab")
    assert project.alerts["ops"]["mail"]["to"] == ["ops@example.org"]
    assert [each.keys.get("alerts") for each in project.workflows] == [["ops"], None]


def test_system_crontabs_have_a_user() -> None:
    project = import_crontab("0 * * * * root job --x\n", "/etc/crontab")
    task = project.workflows[0].tasks["run"]
    assert task.keys["command"][2].endswith("\njob --x")
    assert "ran as user `root`" in task.notes[0].text


def test_what_cannot_be_kept_is_reported_with_its_line() -> None:
    project = import_crontab("# hello\nnonsense\n@reboot start\n@fortnightly job\n", "tab")
    found = [(note.level, str(note.place)) for note in project.all_notes()]
    assert found == [(Level.PERSON, "tab:2"), (Level.PERSON, "tab:4"), (Level.PERSON, "tab:3")]
    assert "schedule" not in project.workflows[0].keys or project.workflows[0].keys["schedule"] is None


def test_a_percent_sign_ends_the_command() -> None:
    assert split_percent(r"mail -s 50\% x%Hello%%there") == ("mail -s 50% x", "Hello\n\nthere")
    script = script_of("cat", "Hello\nEND\nthere")
    assert (
        subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout == "Hello\nEND\nthere\n"
    )


WORD = st.text("abcxyz019/._-$%'\" {}&|;<>\t\\é", min_size=1, max_size=30)


@settings(max_examples=60, deadline=None)
@given(
    minute=st.one_of(st.integers(0, 59).map(str), st.sampled_from(["*", "*/7", "1-5", "0,30"])),
    hour=st.one_of(st.integers(0, 23).map(str), st.just("*")),
    command=WORD.map(str.strip).filter(lambda text: bool(text) and "\\" not in text),
)
def test_times_and_commands_survive(minute: str, hour: str, command: str, tmp_path_factory: Any) -> None:
    """What is written to the YAML file and read back is what cron would have run."""
    escaped = command.replace("%", "\\%")
    project = import_crontab(f"{minute} {hour} * * * {escaped}\n", "crontab", CrontabOptions(has_user=False))
    (workflow,) = project.workflows
    folder = tmp_path_factory.mktemp("out") / "p"
    write_project(project, str(folder))
    read = yaml.safe_load((folder / f"{workflow.name}.yaml").read_text())
    word = read["tasks"]["run"]["command"][2]
    text = word["const"] if isinstance(word, dict) else word
    assert read["schedule"] == f"{minute} {hour} * * *"
    expected = unlocked(command)[0]
    assert text in (expected, f'cd "$HOME" || exit 1\n{expected}')


def test_a_workflow_never_takes_the_name_of_a_settings_file(tmp_path: Path) -> None:
    project = import_crontab("0 * * * * ork\n0 * * * * ork\n", "crontab")
    assert [each.name for each in project.workflows] == ["ork_2", "ork_3"]
    assert "ork.yaml" in write_project(project, str(tmp_path / "out"))
