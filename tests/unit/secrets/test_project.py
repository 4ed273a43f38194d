"""Which secrets a workflow may have, and where they come from."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from pathlib import Path

import pytest

from ork.errors import DefinitionError, SecretError, SecretNotYetError, UndeclaredSecretError
from ork.secrets import commands
from ork.secrets.project import ProjectSecrets
from ork.settings import load_settings


def project(folder: Path, text: str = "", **environ: str) -> ProjectSecrets:
    (folder / "ork.yaml").write_text(text)
    return load_settings(folder=str(folder), environ={"PATH": "/usr/bin:/bin", **environ}).secrets


def test_the_environment_is_not_a_source_unless_declared(tmp_path: Path) -> None:
    secrets = project(tmp_path, "secrets: {A: {from: env}, B: {from: env, variable: OTHER}}", A="1", OTHER="2", C="3")
    assert [secrets.value(name, "flow") for name in "AB"] == ["1", "2"]
    with pytest.raises(UndeclaredSecretError, match="declares no secret `C`") as refused:
        secrets.value("C", "flow")
    assert "secrets: {C: {from: env}}" in str(refused.value.hint)


def test_names_in_env_file_and_folder_count_as_declared(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=1\nORK_TOKEN=2\n")
    (tmp_path / ".ork/secrets").mkdir(parents=True)
    (tmp_path / ".ork/secrets/B").write_text("2\n")
    secrets = project(tmp_path)
    assert [secrets.value(name, "flow") for name in "AB"] == ["1", "2"]
    assert secrets.found() == {"A", "B"}


@pytest.mark.parametrize("name", ["ORK_TOKEN", "ORK_STORE", "ork_store", "ORK_HOOK_X"])
def test_what_is_orks_own_is_never_given(tmp_path: Path, name: str) -> None:
    (tmp_path / ".env").write_text(f"{name}=x\n")
    with pytest.raises(UndeclaredSecretError, match="reserved for Ork"):
        project(tmp_path, **{name: "y"}).value(name, "flow")


def test_a_secret_may_be_for_some_workflows_only(tmp_path: Path) -> None:
    secrets = project(tmp_path, "secrets: {A: {from: env, workflows: [etl, 'report-*']}}", A="1")
    assert [secrets.value("A", name) for name in ("etl", "report-day")] == ["1", "1"]
    with pytest.raises(UndeclaredSecretError, match="does not give secret `A` to workflow `other`"):
        secrets.value("A", "other")


def test_a_declaration_goes_before_a_name_in_the_env_file(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=1\n")
    with pytest.raises(UndeclaredSecretError):
        project(tmp_path, "secrets: {A: {from: env, workflows: [etl]}}", A="2").value("A", "other")


def test_files_are_read_anew_without_their_last_newline(tmp_path: Path) -> None:
    secrets = project(tmp_path, "secrets: {A: {from: file, path: mounted/a}}")
    with pytest.raises(SecretError, match="cannot be read"):
        secrets.value("A", "flow")
    (tmp_path / "mounted").mkdir()
    (tmp_path / "mounted/a").write_text("x\ny\n")
    assert secrets.value("A", "flow") == "x\ny"


def test_a_command_runs_once_for_a_while_and_without_orks_variables(tmp_path: Path) -> None:
    argv = "[sh, -c, 'echo x >> ran; echo \"v$ORK_TOKEN\"']"
    secrets = project(tmp_path, f"secrets: {{A: {{from: command, argv: {argv}}}}}", ORK_TOKEN="hush")
    assert [secrets.value("A", "flow", waits=True) for _ in range(3)] == ["v"] * 3
    assert (tmp_path / "ran").read_text() == "x\n"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo hush; echo hush >&2; exit 3", "ended with 3"),
        ("echo hush; sleep 30", "did not end within 0.2 s"),
        ("true", "printed nothing"),
        ("head -c 100000 /dev/zero", "more than"),
    ],
)
def test_a_command_that_fails_is_named_and_its_output_is_not(tmp_path: Path, script: str, why: str) -> None:
    text = f"secrets: {{A: {{from: command, argv: [sh, -c, '{script}'], timeout: 0.2}}}}"
    secrets, began = project(tmp_path, text), time.monotonic()
    with pytest.raises(SecretNotYetError) as failed:
        secrets.value("A", "flow", waits=True)
    assert why in failed.value.message
    assert "`sh`" in failed.value.message
    assert "hush" not in failed.value.message
    assert time.monotonic() - began < 20


def test_a_slow_command_holds_up_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ork.secrets.project.READY_SECONDS", 0.05)
    secrets = project(tmp_path, "secrets: {A: {from: command, argv: [sh, -c, 'read x < pipe; echo v']}}")
    os.mkfifo(tmp_path / "pipe")
    asyncio.run(secrets.ready([("A", "flow")]))
    with pytest.raises(SecretNotYetError, match="has not ended yet"):
        secrets.value("A", "flow")
    (tmp_path / "pipe").write_text("go\n")
    assert secrets.value("A", "flow", waits=True) == "v"


def test_the_value_of_a_command_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "CACHE_SECONDS", 0.2)
    secrets = project(tmp_path, "secrets: {A: {from: command, argv: [sh, -c, 'echo x >> ran; wc -l < ran']}}")
    seen = set()
    while len(seen) < 2:
        with contextlib.suppress(SecretNotYetError):  # forgotten just now
            seen.add(secrets.value("A", "flow", waits=True))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("secrets: {A: {from: vault}}", "is not one of env, file, command"),
        ("secrets: {A: {}}", "a secret needs `from`"),
        ("secrets: {A: {from: file}}", "needs `path`"),
        ("secrets: {A: {from: command}}", "needs `argv`"),
        ("secrets: {A: {from: env, path: x}}", "`path` cannot be used"),
        ("secrets: {ORK_X: {from: env}}", "cannot be a secret"),
        ("secrets: {A: {from: env, variable: ORK_STORE}}", "cannot be a secret"),
        ("secrets: {A: {from: env, workflows: x}}", "expected a list of workflows"),
        ("outbound: {allow: 10.0.0.0/8}", "expected a list of addresses"),
        ("outbound: {allow: ['http://x']}", "is not an address"),
        ("alerts_allow_private: true", "was replaced by `outbound`"),
    ],
)
def test_mistakes_in_the_file_are_told(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        project(tmp_path, text)
    assert [problem in str(each) for each in refused.value.problems] == [True]


def test_a_command_that_keeps_failing_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "RETRY_SECONDS", 0.0)
    secrets = project(tmp_path, "secrets: {A: {from: command, argv: [sh, -c, 'echo x >> ran; exit 3']}}")
    with pytest.raises(SecretNotYetError):
        secrets.value("A", "flow", waits=True)
    monkeypatch.setattr(commands, "MAX_FAILING_SECONDS", 0.0)
    monkeypatch.setattr(commands, "_fails_since", lambda before: before and before.fails_since)
    with pytest.raises(SecretError, match="ended with 3") as given_up:
        secrets.value("A", "flow", waits=True)
    assert not isinstance(given_up.value, SecretNotYetError)
    assert (tmp_path / "ran").read_text() == "x\n" * 2
