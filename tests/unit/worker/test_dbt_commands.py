"""Which dbt commands a dbt that stays can perform, and with which interpreter."""

from __future__ import annotations

from pathlib import Path

import pytest

from ork.worker.supervise.dbt_server import options_of_parser, python_of

USUAL = (
    "--no-use-colors --log-level-file none build --select fqn:shop.a --indirect-selection cautious --project-dir shop"
)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (USUAL, "--project-dir shop"),
        (f"{USUAL} --profiles-dir p --target prod", "--project-dir shop --profiles-dir p --target prod"),
        (f"{USUAL} --target-path target/ork/a", "--project-dir shop --target-path target/ork"),
        ("run --project-dir shop --target-path out", "--project-dir shop --target-path out"),
        ("run --select a", None),  # the project is where dbt looks for it
        ("deps --project-dir shop", None),
        ("run --project-dir shop --vars {a:1}", None),
        ("run --project-dir shop --select a b", None),
        ("run test --project-dir shop", None),
    ],
)
def test_only_commands_whose_parse_is_known_are_performed_by_it(words: str, expected: str | None) -> None:
    assert options_of_parser(words.split()) == (expected and expected.split())


@pytest.mark.parametrize(("version", "is_usable"), [("3.11", True), ("3.14", True), ("3.10", False), ("2.7", False)])
def test_the_interpreter_is_the_one_that_dbt_is_installed_for(tmp_path: Path, version: str, is_usable: bool) -> None:
    program, python = tmp_path / "bin/dbt", tmp_path / f"bin/python{version}"
    package = tmp_path / f"lib/python{version}/site-packages/dbt/cli"
    package.mkdir(parents=True)
    program.parent.mkdir()
    for file in (program, python):
        file.touch(0o755)
    assert python_of(str(program)) is None
    (package / "main.py").touch()
    assert python_of(str(program)) == (str(python) if is_usable else None)
    link = tmp_path / "elsewhere"
    link.symlink_to(program)
    assert python_of(str(link)) == (str(python) if is_usable else None)
