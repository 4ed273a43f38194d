"""Code is part of the version: `ork plan`, `show` and `runs diff` say what has changed since, and `rerun --same-code` runs it again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.acceptance.conftest import Place
from tests.unit.source_code.repository import commit, write

FLOW = """
name: flow
tasks:
  say: {file: tasks.py, function: say}
"""
TASKS = "import lib\n\ndef say():\n    return lib.WORD\n"
REFUSED = 4


@pytest.fixture
def first_commit(place: Place) -> str:
    (place.folder / ".gitignore").write_text("held.yaml\n")
    (place.folder / "flow.yaml").write_text(FLOW)
    write(place.folder, tasks=TASKS, lib="WORD = 'first'\n")
    return commit(place.folder)


def shape_of(place: Place, *words: str) -> Any:
    return json.loads(place.ork(*words, "--json").splitlines()[0])


def outputs(run: Any) -> list[str]:
    return [task["output"] for task in run["tasks"]]


def test_a_run_can_be_repeated_with_its_code(place: Place, first_commit: str) -> None:
    first = shape_of(place, "run", "flow.yaml")["id"]
    assert f"commit {first_commit[:12]}" in place.ork("show", first)
    assert place.ork("plan", "flow.yaml").startswith("flow  unchanged")

    write(place.folder, lib="WORD = 'second'\n", more="")
    assert "changed since: lib.py, +more.py" in place.ork("show", first)
    report = shape_of(place, "show", first)["code"]
    assert (report["is_changed"], report["code"]["commit"]) == (True, first_commit)
    assert report["difference"]["changed"] == ["lib.py"]
    planned = place.ork("plan", "flow.yaml")
    assert planned.startswith("flow  changed")
    assert f"commit {first_commit[:12]}" in planned
    assert "\n  ~ code: lib.py, +more.py\n" in planned

    second = shape_of(place, "run", "flow.yaml")["id"]
    assert "lib.py, +more.py" in place.ork("runs", "diff", first, second)
    assert outputs(shape_of(place, "rerun", first)) == ["second"]  # the code as it is now
    current = shape_of(place, "workflows")["workflows"][0]["version"]
    third = shape_of(place, "rerun", first, "--same-code")
    assert (outputs(third), third["parent"]) == (["first"], first)
    assert shape_of(place, "workflows")["workflows"][0]["version"] == current
    assert "changed since" not in place.ork("show", third["id"])

    (checkout,) = (place.folder / ".ork/code").iterdir()
    assert "Nothing to remove" in place.ork("prune")
    assert f"removed .ork/code/{checkout.name}" in place.ork("prune", "--days", "0")
    assert not checkout.exists()

    write(place.folder, lib="WORD = 'third'\n")
    words = place.ork("rerun", second, "--same-code", code=REFUSED)
    assert f"no commit has this code: {first_commit[:12]} differs from it in lib.py, more.py" in words
    assert "exclude each other" in place.ork("rerun", first, "--same-code", "--latest", code=2)


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_it_works_through_a_server(place: Place, first_commit: str) -> None:
    place.environment |= place.serve().remote
    first = shape_of(place, "run", "flow.yaml")["id"]
    write(place.folder, lib="WORD = 'second'\n")
    shown = place.ork("show", first)
    assert f"commit {first_commit[:12]}" in shown
    assert "changed since: lib.py" in shown
    second = shape_of(place, "run", "flow.yaml")["id"]
    assert "lib.py" in place.ork("runs", "diff", first, second)
    assert outputs(shape_of(place, "rerun", first, "--same-code")) == ["first"]
    write(place.folder, lib="WORD = 'third'\n")
    assert "no commit has this code" in place.ork("rerun", second, "--same-code", code=REFUSED)
