"""The code of versions and runs, as the API shows and takes it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ork.api.deploy import COMPILED
from ork.compile.content import make_version, to_document
from ork.errors import RefusedError
from ork.model.access import Role
from ork.model.code import Code
from ork.model.ids import RunId
from ork.model.record import replaced
from ork.model.run import NewRun, Run
from ork.model.workflow import Version
from ork.source_code.read import CodeReader
from tests.unit.api.conftest import NOW, Bench, create_app, workflow

ROW = {"hash": "0a" * 32, "count": 1, "commit": "1b" * 20, "dirty": False, "files": {"tasks.py": "2c" * 6}}
HEADERS = {"Content-Type": COMPILED}


async def test_the_code_of_a_deployed_version_is_the_clients(bench: Bench) -> None:
    document = to_document(workflow().workflow)
    async with await bench.client() as client:
        given: list[dict[str, Any]] = [{**document, "code": ROW}, {**document, "code": None}, document]
        made = [await client.post("/api/v1/workflows", content=json.dumps(each), headers=HEADERS) for each in given]
        ids = [answer.json()["workflows"][0]["version"] for answer in made]
        assert (ids[0] != ids[1], ids[1] == ids[2]) == (True, True)
        assert (await client.get(f"/api/v1/versions/{ids[0]}")).json()["code"] == ROW
        assert (await client.get(f"/api/v1/versions/{ids[1]}")).json()["code"] is None
        compared = (await client.get(f"/api/v1/versions/{ids[1]}/diff/{ids[0]}")).json()
        assert (compared["code"]["a"], compared["code"]["b"]["hash"]) == (None, ROW["hash"])
        wrong = json.dumps({**document, "code": {**ROW, "hash": "x"}})
        assert (await client.post("/api/v1/workflows", content=wrong, headers=HEADERS)).status_code == 400


async def test_a_file_that_is_posted_gets_the_code_of_its_folder(bench: Bench) -> None:
    project = bench.folder / "project"
    project.mkdir()
    (project / "tasks.py").write_text("def main(): ...\n")
    text = "name: posted\ntasks:\n  a: {file: tasks.py}\n"
    async with await bench.client() as client:
        made = await client.post(f"/api/v1/workflows?root={project}", content=text)
        version = (await client.get(f"/api/v1/versions/{made.json()['workflows'][0]['version']}")).json()
    assert list(version["code"]["files"]) == ["tasks.py"]


async def deployed_run(bench: Bench) -> tuple[Run, Version]:
    (bench.folder / "tasks.py").write_text("first")
    version = CodeReader().version(workflow().workflow, str(bench.folder), "flow.yaml")
    await bench.store.save_version(version, origin=None, now=NOW)
    (run,) = await bench.store.create_runs([NewRun(RunId("00000000000a"), "flow", version.id, {"n": 1})], NOW)
    return run, version


async def test_a_run_says_what_has_changed_since(bench: Bench) -> None:
    run, version = await deployed_run(bench)
    assert version.code is not None
    async with await bench.client(Role.VIEWER) as client:
        same = (await client.get(f"/api/v1/runs/{run.id}/code")).json()
        assert (same["is_changed"], same["difference"], same["code"]["hash"]) == (False, None, version.code.hash)
        (bench.folder / "tasks.py").write_text("second")
        changed = (await client.get(f"/api/v1/runs/{run.id}/code")).json()
        assert (changed["is_changed"], changed["difference"]["changed"]) == (True, ["tasks.py"])
        assert (await client.get("/api/v1/runs/zzzz/code")).status_code == 404
        assert (await client.post(f"/api/v1/runs/{run.id}/same-code")).status_code == 403


async def test_the_same_code_is_prepared_for_a_new_run_or_refused_with_the_reason(bench: Bench) -> None:
    run, version = await deployed_run(bench)
    moved = make_version(version.workflow, "/checkout", version.source, version.code)

    async def prepared(of: Run) -> Version:
        if of.id != run.id:
            raise RefusedError("no commit has this code")
        await bench.store.add_version(moved, NOW)
        return moved

    app = create_app(replaced(bench.api, same_code=prepared))
    other = Bench(bench.folder, bench.store, bench.objects, bench.api, app, bench.texts)
    await bench.store.create_runs([NewRun(RunId("00000000000b"), "flow", version.id, {"n": 1})], NOW)
    async with await other.client(Role.OPERATOR) as client:
        answer = await client.post(f"/api/v1/runs/{run.id}/same-code")
        assert (answer.status_code, answer.json()) == (200, {"version": moved.id})
        body = {"version": moved.id, "parent": run.id}
        made = await client.post("/api/v1/workflows/flow/runs", json=body)
        assert (made.status_code, made.json()["version"]) == (201, moved.id)
        refused = await client.post("/api/v1/runs/00000000000b/same-code")
        assert (refused.status_code, refused.json()["detail"]) == (409, "no commit has this code")
    actions = [entry.action for entry in await bench.store.list_audit()]
    assert actions.count("version.check-out") == 1


@pytest.mark.parametrize("code", [None, Code("0a" * 32, 0)])
def test_a_version_without_code_keeps_the_id_it_had(code: Code | None) -> None:
    plain = workflow()
    made = make_version(plain.workflow, plain.root, plain.source, code)
    assert (made.id == plain.id) == (code is None)
