"""`ork ui export`: pages with their data for a place where nothing runs. tests/ui/test_snapshot.py opens them in a browser."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import http.server
import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ork.app.installation import open_briefly
from ork.cli.commands.ui_export import export_of
from ork.settings import load_settings
from ork.ui.documents import Choice
from ork.ui.export import export_to
from ork.ui.targets import FolderTarget
from tests.buckets import new_bucket
from tests.serving import serving
from tests.snapshots import island, unpacked

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]

SECRET, SENSITIVE = "correct-horse-battery", "staple-of-the-shop"
WORKFLOW = """
name: flow
params: {token: {type: str, sensitive: true}}
tasks:
  give: {file: tasks.py, function: give, inputs: {key: {secret: KEY}, token: {ref: params.token}}}
  fail: {file: tasks.py, function: fail, depends_on: [give], inputs: {key: {secret: KEY}, token: {ref: params.token}}}
"""
TASKS = """
def give(key, token):
    return {"key": key, "token": token, "rows": 41}

def fail(key, token):
    print("first line")
    print("words\\n" * 60000)
    print("key", key, "token", token)
    print("last words")
    raise ValueError("no luck with " + key + " and " + token)
"""
QUIET = "name: quiet\ntasks: {only: {command: 'true'}}\n"


@pytest.fixture
def project(tmp_path: Path, ork_cli: OrkCli) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "ork.yaml").write_text("secrets: {KEY: {from: env}}\n")
    (folder / "tasks.py").write_text(TASKS)
    (folder / "flow.yaml").write_text(WORKFLOW)
    (folder / "quiet.yaml").write_text(QUIET)
    assert ork_cli("deploy", "flow.yaml", "quiet.yaml", cwd=folder, env={"KEY": SECRET}).returncode == 0
    ork_cli("run", "flow.yaml", "-p", f"token={SENSITIVE}", cwd=folder, env={"KEY": SECRET})
    assert ork_cli("run", "quiet.yaml", cwd=folder).returncode == 0
    return folder


def exported(ork_cli: OrkCli, project: Path, *args: str) -> dict[str, Any]:
    done = ork_cli("ui", "export", *args, "--json", cwd=project, env={"KEY": SECRET})
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_one_file_has_everything_inside_and_runs_only_its_own_scripts(ork_cli: OrkCli, project: Path) -> None:
    said = exported(ork_cli, project, "out.html")
    page = (project / "out.html").read_text()
    assert said == {"target": "out.html", "runs": 2, "bytes": len(page.encode())}
    documents = unpacked(page)
    manifest = json.loads(documents["manifest.json"])
    assert manifest["documents"].keys() == documents.keys() - {"manifest.json"}
    assert re.findall(r'\b(?:src|href)="(?!data:)', page) == []
    (loader,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)
    digests = [
        hashlib.sha256(each).digest() for each in (loader.encode(), island(page, "pages"), island(page, "style"))
    ]
    first, second, style = (f"'sha256-{base64.b64encode(each).decode()}'" for each in digests)
    assert f"script-src {first} {second}; style-src {style};" in policy
    assert "default-src 'none'" in policy
    assert "connect-src" not in policy
    assert "unsafe" not in policy


def test_it_has_the_failure_and_the_end_of_its_log(ork_cli: OrkCli, project: Path) -> None:
    exported(ork_cli, project, "out.html")
    documents = unpacked((project / "out.html").read_text())
    (log,) = (data.decode() for name, data in documents.items() if name.startswith("log/"))
    assert "bytes before this are omitted" in log.partition("\n")[0]
    assert "last words" in log
    assert "first line" not in log
    assert len(log) < 110_000
    (run,) = (json.loads(data) for name, data in documents.items() if name.startswith("run/") and b"no luck" in data)
    assert run["/runs/{run}/tasks/{name}/output name=give"]["size"] > 0
    assert run["/runs/{run}/why task=fail"]
    exported(ork_cli, project, "none.html", "--logs", "none")
    assert not [name for name in unpacked((project / "none.html").read_text()) if name.startswith("log/")]


def test_secrets_and_sensitive_params_are_masked(ork_cli: OrkCli, project: Path) -> None:
    exported(ork_cli, project, "out")
    found = b"".join(files_in(project / "out").values())
    assert b"no luck with" in found
    assert SECRET.encode() not in found
    assert SENSITIVE.encode() not in found


def test_only_what_changed_is_written(ork_cli: OrkCli, project: Path) -> None:
    first = exported(ork_cli, project, "out")
    before = {path: path.stat().st_mtime_ns for path in (project / "out").rglob("*") if path.is_file()}
    assert (first["runs"], first["files"], first["deleted"]) == (2, len(before), 0)
    ork_cli("run", "quiet.yaml", cwd=project)
    second = exported(ork_cli, project, "out")
    manifest = json.loads((project / "out" / "data" / "manifest.json").read_text())
    changed = {path for path, time in before.items() if path.stat().st_mtime_ns != time}
    names = {path.relative_to(project / "out").as_posix() for path in changed}
    assert (second["runs"], second["deleted"]) == (3, 0)
    assert not [name for name in names if name.startswith(("data/run/", "data/log/", "data/version/", "assets/"))]
    assert {name.partition("/")[2] for name in files_in(project / "out") if name.startswith("data/")} == {
        "manifest.json",
        *manifest["documents"],
    }


def test_runs_that_are_no_longer_wanted_are_deleted(ork_cli: OrkCli, project: Path) -> None:
    exported(ork_cli, project, "out")
    assert exported(ork_cli, project, "out", "--runs", "1")["deleted"] >= 2  # a run with its log
    names = files_in(project / "out")
    assert len([name for name in names if name.startswith("data/run/")]) == 1
    assert not [name for name in names if name.startswith("data/log/")]
    assert json.loads(names["data/manifest.json"])["more_runs"]
    assert exported(ork_cli, project, "none", "--since", "1ms")["runs"] == 0


def test_a_run_that_is_retried_is_written_again(ork_cli: OrkCli, project: Path) -> None:
    exported(ork_cli, project, "out")
    before = files_in(project / "out" / "data" / "run")
    run = json.loads(ork_cli("runs", "--workflow", "flow", "--json", cwd=project).stdout)["runs"][0]["id"]
    assert ork_cli("retry", run, cwd=project, env={"KEY": SECRET}).returncode in (0, 1, 5)
    exported(ork_cli, project, "out")
    after = files_in(project / "out" / "data" / "run")
    assert {name for name in before if before[name] != after[name]} == {f"{run}.json"}


def test_the_same_through_a_server(ork_cli: OrkCli, project: Path, plain_environment: dict[str, str]) -> None:
    exported(ork_cli, project, "own")
    with serving(project, plain_environment) as server:
        done = ork_cli("ui", "export", "theirs", "--server", server.url, "--json", cwd=project)
    assert done.returncode == 0, done.stderr
    own, theirs = (
        {name for name in files_in(project / folder) if name.startswith("data/")} for folder in ("own", "theirs")
    )
    assert own == theirs


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("out", "--since", "soon"), 2, "--since soon is not an age"),
        (("ftp://example.com/x",), 2, "cannot export to ftp://example.com/x"),
        (("no/such/folder.html",), 2, "cannot write no/such/folder.html"),
        (("flow.yaml",), 2, "flow.yaml is a file"),
        ((".",), 4, "is not empty and has no snapshot"),
        (("out", "--runs", "0"), 2, "--runs"),
        ((), 2, "Missing argument"),
    ],
)
def test_wrong_input_is_told(ork_cli: OrkCli, project: Path, args: tuple[str, ...], code: int, message: str) -> None:
    before = files_in(project).keys()
    done = ork_cli("ui", "export", *args, cwd=project)
    assert (done.returncode, message in done.stderr) == (code, True), done.stderr
    assert {name for name in files_in(project).keys() - before if not name.startswith(".ork/")} == set()


def test_an_export_that_was_interrupted_can_be_repeated(ork_cli: OrkCli, project: Path) -> None:
    (project / "out" / "data").mkdir(parents=True)
    (project / "out" / "data" / "manifest.json").write_text('{"format": 0}')
    assert exported(ork_cli, project, "out")["runs"] == 2


# ── buckets ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.cloud
def test_a_bucket_that_everybody_can_read_is_refused_unless_that_is_intended(ork_cli: OrkCli, project: Path) -> None:
    url = new_bucket("gs")  # the server asks nobody for credentials
    refused = ork_cli("ui", "export", url, cwd=project, env=dict(os.environ))
    assert (refused.returncode, "everybody can read" in refused.stderr) == (4, True), refused.stderr
    done = ork_cli("ui", "export", url, "--public", "--json", cwd=project, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    again = ork_cli("ui", "export", url, "--public", "--json", cwd=project, env=dict(os.environ))
    assert json.loads(again.stdout)["files"] < json.loads(done.stdout)["files"]


@pytest.fixture
def answers() -> Iterator[tuple[str, list[int]]]:
    """A server that answers every request with the status in the list."""
    statuses = [200]

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert "Authorization" not in self.headers
            self.send_response(statuses[0])
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Writes nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", statuses
    server.shutdown()
    server.server_close()


def test_a_bucket_is_public_if_it_answers_without_credentials(answers: tuple[str, list[int]]) -> None:
    from ork.objects.buckets.address import read_address
    from ork.objects.buckets.documents import BucketDocuments
    from ork.ui.public import is_public

    class Bucket:
        """Remembers what is in it."""

        def __init__(self) -> None:
            self.objects: dict[str, bytes] = {}

        def put(self, key: str, data: bytes, content_type: str = "") -> None:
            self.objects[key] = data

        def delete_many(self, keys: list[str]) -> None:
            for key in keys:
                del self.objects[key]

    url, statuses = answers
    bucket = Bucket()
    address = read_address(f"s3://shop/team?endpoint={url}")
    documents = BucketDocuments(address.url, bucket, address.prefix)  # type: ignore[arg-type]
    assert is_public(documents, address)
    statuses[0] = 403
    assert not is_public(documents, address)
    assert bucket.objects == {}


def test_without_built_pages_it_says_so(ork_cli: OrkCli, project: Path, tmp_path: Path) -> None:
    import ork

    copy = tmp_path / "package" / "ork"
    shutil.copytree(Path(ork.__file__).parent, copy, ignore=shutil.ignore_patterns("static", "__pycache__"))
    for target in ("out.html", "out"):
        done = ork_cli("ui", "export", target, cwd=project, env={"PYTHONPATH": str(copy.parent)})
        assert (done.returncode, "without the web UI" in done.stderr) == (2, True), done.stderr


def test_a_first_export_that_was_interrupted_is_continued(
    ork_cli: OrkCli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a publisher that is stopped at its time limit: what is there is not read again."""
    monkeypatch.chdir(project)
    monkeypatch.setenv("KEY", SECRET)
    target, settings = FolderTarget("out"), load_settings(folder=str(project))
    monkeypatch.setattr("ork.ui.export.PROGRESS_SECONDS", 0.0)

    async def export(stops_at: str | None) -> Any:
        installation = await open_briefly(settings, creates=False)
        write = target.write

        def stopping(name: str, data: bytes) -> None:
            if stops_at is not None and name.startswith(stops_at):
                raise KeyboardInterrupt
            write(name, data)

        try:
            with monkeypatch.context() as patched:
                patched.setattr(target, "write", stopping)
                return await export_to(target, export_of(installation, Choice()))
        finally:
            await installation.close()

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(export("data/workflow"))
    manifest = json.loads((project / "out/data/manifest.json").read_text())
    assert (manifest["format"], len([name for name in manifest["documents"] if name.startswith("run/")])) == (0, 2)
    written = asyncio.run(export(None))
    assert written.unchanged >= 4  # both runs, a log, the list of runs
    assert json.loads((project / "out/data/manifest.json").read_text())["format"] == 1
