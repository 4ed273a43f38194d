from __future__ import annotations

from pathlib import Path

import pytest

from ork.errors import DefinitionError, UsageError
from ork.settings import find_root, load_settings, read_env_file


def test_without_anything_the_project_is_this_folder(tmp_path: Path) -> None:
    settings = load_settings(folder=str(tmp_path), environ={})
    assert settings.root == str(tmp_path)
    assert settings.store == f"sqlite:{tmp_path}/.ork/ork.db"
    assert settings.objects == f"journal:{tmp_path}/.ork/objects"
    assert (settings.lease_seconds, settings.renew_seconds, settings.stale_seconds) == (55, 27.5, 60)
    assert settings.max_workers >= 8
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("marker", ["ork.yaml", "workers.yaml", "locations.yaml", ".ork/"])
def test_the_project_is_the_nearest_folder_upwards_that_looks_like_one(tmp_path: Path, marker: str) -> None:
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    if marker.endswith("/"):
        (tmp_path / marker).mkdir()
    else:
        (tmp_path / marker).write_text("")
    assert find_root(str(below)) == str(tmp_path)


def test_a_folder_that_everybody_may_write_to_is_nobodys_project(tmp_path: Path) -> None:
    below = tmp_path / "shared" / "mine"
    below.mkdir(parents=True)
    (below.parent / ".ork").mkdir()
    below.parent.chmod(0o777)
    assert find_root(str(below)) == str(below)
    assert find_root(str(below.parent)) == str(below.parent)


def test_the_store_and_the_token_may_stand_in_files(tmp_path: Path) -> None:
    folder, secret = str(tmp_path), tmp_path / "store"
    secret.write_text("postgresql://ork:pw@db/ork\n")
    given = {"ORK_STORE_FILE": str(secret), "ORK_TOKEN_FILE": str(secret)}
    settings = load_settings(folder=folder, environ=given)
    assert (settings.store, settings.token) == ("postgresql://ork:pw@db/ork", "postgresql://ork:pw@db/ork")
    assert load_settings(folder=folder, environ={**given, "ORK_STORE": "sqlite:x.db"}).store == "sqlite:x.db"
    with pytest.raises(UsageError, match="ORK_STORE_FILE: cannot read /nowhere: No such file"):
        load_settings(folder=folder, environ={"ORK_STORE_FILE": "/nowhere"})


def test_traces_are_wished_for_by_variable_then_file(tmp_path: Path) -> None:
    folder = str(tmp_path)
    assert load_settings(folder=folder, environ={}).traces is None
    (tmp_path / "ork.yaml").write_text("traces: true\n")
    assert load_settings(folder=folder, environ={}).traces is True
    assert load_settings(folder=folder, environ={"ORK_TRACES": "off"}).disables_traces
    with pytest.raises(UsageError, match="ORK_TRACES=maybe"):
        load_settings(folder=folder, environ={"ORK_TRACES": "maybe"})


def test_flag_beats_environment_beats_file_beats_default(tmp_path: Path) -> None:
    (tmp_path / "ork.yaml").write_text("store: sqlite:file.db\nmax_workers: 3\n")
    folder = str(tmp_path)
    assert load_settings(folder=folder, environ={}).store == "sqlite:file.db"
    assert load_settings(folder=folder, environ={"ORK_STORE": "sqlite:env.db"}).store == "sqlite:env.db"
    assert (
        load_settings(folder=folder, environ={"ORK_STORE": "sqlite:env.db"}, store="sqlite:flag.db").store
        == "sqlite:flag.db"
    )
    assert load_settings(folder=folder, environ={}).max_workers == 3
    assert load_settings(folder=folder, environ={"ORK_MAX_WORKERS": "5"}).max_workers == 5


def test_the_project_file_sets_folders_pools_and_durability(tmp_path: Path) -> None:
    (tmp_path / "ork.yaml").write_text("script_dir: scripts\npools: {api: 4}\ndurability: full\n")
    settings = load_settings(folder=str(tmp_path), environ={})
    assert settings.script_dir == str(tmp_path / "scripts")
    assert dict(settings.pools) == {"api": 4}
    assert settings.durability == "full"


def test_mistakes_in_the_project_file_are_definition_errors(tmp_path: Path) -> None:
    (tmp_path / "ork.yaml").write_text("stroe: x\n")
    with pytest.raises(DefinitionError) as caught:
        load_settings(folder=str(tmp_path), environ={})
    assert caught.value.problems


def test_intervals_can_be_shortened_from_the_environment(tmp_path: Path) -> None:
    settings = load_settings(folder=str(tmp_path), environ={"ORK_LEASE_SECONDS": "4", "ORK_STALE_SECONDS": "2.5"})
    assert (settings.lease_seconds, settings.renew_seconds, settings.stale_seconds) == (4, 2, 2.5)


@pytest.mark.parametrize("value", ["x", "-1", "0", "nan", "inf"])
def test_a_wrong_number_is_named_with_its_variable(tmp_path: Path, value: str) -> None:
    with pytest.raises(UsageError, match="ORK_LEASE_SECONDS"):
        load_settings(folder=str(tmp_path), environ={"ORK_LEASE_SECONDS": value})


def test_an_unknown_durability_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="ORK_DURABILITY"):
        load_settings(folder=str(tmp_path), environ={"ORK_DURABILITY": "some"})


def test_secrets_come_from_the_environment_then_the_env_file_then_files(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=from file\nB=from file\n")
    (tmp_path / ".ork/secrets").mkdir(parents=True)
    for name in "ABC":
        (tmp_path / ".ork/secrets" / name).write_text("from secret\n")
    settings = load_settings(folder=str(tmp_path), environ={"A": "from environment"})
    assert [settings.secrets.value(name, "flow") for name in ("A", "B", "C")] == [
        "from environment",
        "from file",
        "from secret",
    ]


def test_a_secret_cannot_name_a_file_elsewhere(tmp_path: Path) -> None:
    (tmp_path / ".ork").mkdir()
    (tmp_path / "outside").write_text("x")
    assert load_settings(folder=str(tmp_path), environ={}).secrets.own_value("../../outside") is None


def test_env_files_know_export_quotes_and_comments(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("# no\nexport A=1\nB='x # y'\nC=\"q\"\nD=z # why\nnonsense\n=x\nE=a=b\n")
    pairs = read_env_file(str(file))
    assert {name: pairs[name] for name in "ABCDE"} == {"A": "1", "B": "x # y", "C": "q", "D": "z", "E": "a=b"}


def test_secrets_do_not_show_when_settings_are_printed(tmp_path: Path) -> None:
    assert "hunter2" not in repr(load_settings(folder=str(tmp_path), environ={"PASSWORD": "hunter2"}))
