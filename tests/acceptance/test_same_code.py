"""Code is part of the version: `ork plan`, `show` and `runs diff` say what has changed since, and `rerun --same-code` runs it again."""

from __future__ import annotations

import json

import pytest

from tests.acceptance.conftest import Place
from tests.unit.source_code.repository import commit, write

FLOW = """
name: flow
tasks:
  say: {file: tasks.py, function: say}
"""
TASKS = "import lib\n\ndef say():\n    return lib.WORD\n"


def output_of(place: Place, run: str) -> str:
    (task,) = json.loads(place.ork("show", run, "--json"))["tasks"]
    return str(task["output"])


def test_a_run_can_be_repeated_with_its_code(place: Place) -> None:
    (place.folder / ".gitignore").write_text("held.yaml\n")
    (place.folder / "flow.yaml").write_text(FLOW)
    write(place.folder, tasks=TASKS, lib="WORD = 'first'\n")
    here = commit(place.folder)
    first = json.loads(place.ork("run", "flow.yaml", "--json"))["id"]
    assert f"commit {here[:12]}" in place.ork("show", first)
    assert place.ork("plan", "flow.yaml").startswith("flow  unchanged")

    write(place.folder, lib="WORD = 'second'\n", more="")
    assert "changed since: lib.py, +more.py" in place.ork("show", first)
    report = json.loads(place.ork("show", first, "--json"))["code"]
    assert (report["is_changed"], report["code"]["commit"], report["difference"]["changed"]) == (True, here, ["lib.py"])
    planned = place.ork("plan", "flow.yaml")
    assert "flow  changed" in planned
    assert f"commit {here[:12]}" in planned
    assert "\n  ~ code: lib.py, +more.py\n" in planned

    second = json.loads(place.ork("run", "flow.yaml", "--json"))["id"]
    assert "lib.py, +more.py" in place.ork("runs", "diff", first, second)
    assert output_of(place, place.ork("rerun", first, "--json").split('"id": "')[1][:12]) == "second"

    current = place.ork("workflows", "--json")
    third = json.loads(place.ork("rerun", first, "--same-code", "--json").split("\n", 1)[1])
    assert [task["output"] for task in third["tasks"]] == ["first"]
    assert third["parent"] == first
    assert json.loads(place.ork("workflows", "--json"))["workflows"][0]["version"] in current
    assert "changed since" not in place.ork("show", third["id"])

    (checkout,) = (place.folder / ".ork/code").iterdir()
    assert "Nothing to remove" in place.ork("prune")
    assert f"removed .ork/code/{checkout.name}" in place.ork("prune", "--days", "0")
    assert not checkout.exists()

    write(place.folder, lib="WORD = 'third'\n")
    words = place.ork("rerun", second, "--same-code", code=2)
    assert f"no commit has this code: {here[:12]} differs from it in lib.py, more.py" in words
    assert "exclude each other" in place.ork("rerun", first, "--same-code", "--latest", code=2)


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_it_works_through_a_server(place: Place) -> None:
    (place.folder / ".gitignore").write_text("held.yaml\n")
    (place.folder / "flow.yaml").write_text(FLOW)
    write(place.folder, tasks=TASKS, lib="WORD = 'first'\n")
    here = commit(place.folder)
    served = place.serve()
    place.environment |= served.remote
    first = json.loads(place.ork("run", "flow.yaml", "--json"))["id"]
    write(place.folder, lib="WORD = 'second'\n")
    shown = place.ork("show", first)
    assert f"commit {here[:12]}" in shown
    assert "changed since: lib.py" in shown
    second = json.loads(place.ork("run", "flow.yaml", "--json"))["id"]
    assert "lib.py" in place.ork("runs", "diff", first, second)
    third = json.loads(place.ork("rerun", first, "--same-code", "--json").split("\n", 1)[1])
    assert [task["output"] for task in third["tasks"]] == ["first"]
    write(place.folder, lib="WORD = 'third'\n")
    assert "no commit has this code" in place.ork("rerun", second, "--same-code", code=2)
