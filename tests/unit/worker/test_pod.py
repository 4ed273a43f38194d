"""What Ork's image does in a pod beside an image without Ork: `ork-worker bring`, `begin` and `upload`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ork.executors.executor import LaunchOrder
from ork.objects.references import value_reference
from ork.worker.pod import LOST_GATE
from ork.worker.supervise.stand_in import StandIn
from tests.integration.workshop import Workshop

ORK_WORKER = [sys.executable, "-c", "from ork.worker.main import main; main()"]


class Pod:
    """The folders that the containers of one pod share."""

    def __init__(self, shop: Workshop, order: LaunchOrder, folder: Path, name: str = "pod-1") -> None:
        self.files, self.output = folder / name / "files", folder / name / "output"
        self.files.mkdir(parents=True)
        self.output.mkdir()
        self.environment = {
            **os.environ, "ORK_OBJECTS": shop.objects.url, "ORK_ATTEMPT_ID": str(order.attempt.key), "ORK_TOKEN": order.token,
            "ORK_POD": name,
        }  # fmt: skip

    def begin(self) -> int:
        return subprocess.run([*ORK_WORKER, "begin", str(self.files)], env=self.environment, timeout=60).returncode

    def upload(self, name: str = "out.json") -> subprocess.Popen[bytes]:
        """Returns when it listens."""
        path = str(self.output / name)
        process = subprocess.Popen([*ORK_WORKER, "upload", str(self.files), path], env=self.environment)
        end = time.monotonic() + 60
        while not (self.files / "listening").exists():
            assert time.monotonic() < end
            time.sleep(0.02)
        return process


def order_of(shop: Workshop, **spec: Any) -> LaunchOrder:
    files = {"argv": [], "to_file": "/data/in.json", "from_file": "/data/out.json"}
    return shop.order(shop.attempt(), kind="container", **{**files, **spec})


def ended(process: subprocess.Popen[bytes]) -> int:
    process.send_signal(signal.SIGTERM)
    return process.wait(60)


def test_the_worker_is_brought_with_all_that_it_imports(tmp_path: Path) -> None:
    subprocess.run([*ORK_WORKER, "bring", str(tmp_path)], check=True)
    words = ["-S", "-E", str(tmp_path / "ork/worker/bootstrap.py"), f"file:{tmp_path}/none", "run/task/0/1"]
    environment = {"PATH": os.environ["PATH"], "ORK_TOKEN": "00"}
    done = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True, cwd="/")
    assert (done.returncode, "there is no spec of run/task/0/1" in done.stderr) == (3, True), done.stderr


def test_one_pod_begins_and_gets_the_input_and_its_output_is_stored(tmp_path: Path) -> None:
    shop = Workshop(tmp_path)
    order = order_of(shop, inputs={"a": {"value": 7}})
    first, second = Pod(shop, order, tmp_path), Pod(shop, order, tmp_path, "pod-2")
    uploads = [first.upload(), second.upload()]
    assert (first.begin(), second.begin()) == (0, LOST_GATE)
    assert (first.files / "input").read_text() == '{"a":7}'
    (first.output / "out.json").write_text('{"b": 8}')
    (second.output / "out.json").write_text('"of a pod that did not begin"')
    assert [ended(process) for process in uploads] == [0, 0]
    documents = StandIn(shop.objects, order.attempt)
    assert (documents.gate() or {})["pod"] == "pod-1"
    status = documents.status() or {}
    assert (status["state"], status["left"]) == ("running", {"output": {"inline": '{"b":8}'}})


@pytest.mark.parametrize(
    ("left", "words"),
    [
        (None, "it left no output: there is no file /data/out.json"),
        ("not JSON", "/data/out.json cannot be used as output"),
        ("link", "/data/out.json cannot be read as output"),
    ],
)
def test_an_output_that_cannot_be_used_is_explained(left: str | None, words: str, tmp_path: Path) -> None:
    shop = Workshop(tmp_path)
    order = order_of(shop, to_file=None)
    pod = Pod(shop, order, tmp_path)
    upload = pod.upload()
    assert pod.begin() == 0
    if left == "link":  # to a file of the container that uploads
        (pod.output / "out.json").symlink_to("/proc/self/environ")
    elif left is not None:
        (pod.output / "out.json").write_text(left)
    assert ended(upload) == 0
    assert words in (StandIn(shop.objects, order.attempt).status() or {})["left"]["problem"]


def test_files_of_arguments_variables_and_input_are_written_and_a_file_is_stored(tmp_path: Path) -> None:
    shop = Workshop(tmp_path)
    sink = shop.objects.open_value("run/make/0/1", "0")
    sink.write(b"one\ntwo\n")
    size, digest = sink.finish()
    text = {
        "object": value_reference("run/make/0/1", "0"), "codec": "file", "type": "ork.File", "media_type": "text/plain",
        "size": size, "sha256": digest, "name": "lines.txt",
    }  # fmt: skip
    order = order_of(
        shop,
        to_file="/input/in.json",
        from_file="/data/out.txt",
        argv=["-c", {"as_file": {"value": {"$ork": text}, "has_values": True}, "name": "make"}],
        env={"ROWS": {"as_file": {"value": [1, 2]}, "name": "rows"}},
        inputs={"again": {"as_file": {"value": "x"}, "name": "again"}},
    )
    pod = Pod(shop, order, tmp_path)
    upload = pod.upload("out.txt")
    assert pod.begin() == 0
    assert (pod.files / "input").read_text() == '{"again":"/input/again.json"}'
    found = {path.name: path.read_text() for path in (pod.files / "inputs").iterdir()}
    assert found == {"make.txt": "one\ntwo\n", "rows.json": "[1,2]", "again.json": '"x"', "in.json": ""}
    documents = StandIn(shop.objects, order.attempt)
    assert documents.words(documents.spec() or {}, {}) == ["-c", "/input/make.txt"]
    (pod.output / "out.txt").write_text("left")
    assert ended(upload) == 0
    output = json.loads((documents.status() or {})["left"]["output"]["inline"])["$ork"]
    assert (output["codec"], output["name"], output["media_type"]) == ("file", "out.txt", "text/plain")
    assert shop.objects.read_value(output["object"], 0, 100) == b"left"


def test_a_link_or_a_fifo_is_not_stored_as_a_file(tmp_path: Path) -> None:
    for kind in ("link", "fifo"):
        folder = tmp_path / kind
        folder.mkdir()
        shop = Workshop(folder)
        order = order_of(shop, to_file=None, from_file="/data/out.txt")
        pod = Pod(shop, order, folder)
        upload = pod.upload("out.txt")
        assert pod.begin() == 0
        if kind == "link":
            (pod.output / "out.txt").symlink_to("/proc/self/environ")
        else:
            os.mkfifo(pod.output / "out.txt")
        assert ended(upload) == 0
        left = (StandIn(shop.objects, order.attempt).status() or {})["left"]
        assert "/data/out.txt cannot be read as output" in left["problem"]


def test_an_input_that_cannot_be_made_fails_the_attempt_and_the_program_does_not_start(tmp_path: Path) -> None:
    shop = Workshop(tmp_path)
    order = order_of(shop, from_file=None, inputs={"a": {"object": "runs/none/x.output.json", "path": []}})
    assert Pod(shop, order, tmp_path).begin() not in (0, LOST_GATE)
    status = StandIn(shop.objects, order.attempt).status() or {}
    assert (status["state"], status["failure"]["kind"]) == ("failed", "input")
