from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ork.executors.executor import LaunchOrder
from ork.executors.local_worker import InterpreterError, interpreter_for
from ork.executors.status_socket import StatusSocket
from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.model.task import Attempt, AttemptStatus


def order(root: Path, interpreter: str | None = None) -> LaunchOrder:
    key = AttemptKey(RunId("r"), TaskKey("t"), 1)
    attempt = Attempt(key, AttemptStatus.DISPATCHED, "python", "name", "", datetime(2026, 1, 1, tzinfo=UTC))
    return LaunchOrder(attempt, "token", str(root), interpreter=interpreter)


def make_environment(root: Path, config: str) -> str:
    python = root / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    (root / ".venv" / "pyvenv.cfg").write_text(config)
    return str(python)


def test_without_a_project_environment_our_own_interpreter_is_used(tmp_path: Path) -> None:
    assert interpreter_for(order(tmp_path), True) == sys.executable


@pytest.mark.parametrize(
    "config", ["version = 3.12.1\n", "home = /x\nversion_info = 3.11.7.final.0\n", "", "version = ?"]
)
def test_the_projects_environment_is_used_where_wanted(tmp_path: Path, config: str) -> None:
    python = make_environment(tmp_path, config)
    assert interpreter_for(order(tmp_path), True) == python
    assert interpreter_for(order(tmp_path), False) == sys.executable
    assert interpreter_for(order(tmp_path, sys.executable), True) == sys.executable


def test_an_environment_that_is_too_old_is_refused(tmp_path: Path) -> None:
    make_environment(tmp_path, "version = 3.9.2\n")
    with pytest.raises(InterpreterError, match=r"has Python 3\.9; tasks need 3\.11 or later"):
        interpreter_for(order(tmp_path), True)


def test_an_interpreter_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InterpreterError, match="/no/python"):
        interpreter_for(order(tmp_path, "/no/python"), True)


def test_a_news_address_is_short_whatever_folder_was_wanted(tmp_path: Path) -> None:
    for folder in (str(tmp_path / "n"), str(tmp_path / ("x" * 120)), None):
        news = StatusSocket(folder)
        address = news.address
        assert address is not None
        assert len(address) < 108
        assert Path(address).is_socket()
        assert Path(address).parent.stat().st_mode & 0o077 == 0
        news.close()
        assert not Path(address).parent.exists()
