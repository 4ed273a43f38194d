"""The object store's contract, sentence by sentence, for every store there is."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ork.errors import DocumentError, ObjectsError
from ork.objects.local import LocalObjects, root_of_url
from ork.objects.store import ObjectStore


@pytest.fixture(params=["normal", "full"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    return LocalObjects(str(tmp_path / "objects"), request.param)


def test_what_was_put_is_there_whole(objects: ObjectStore) -> None:
    objects.put("runs/a/status.json", b"first" * 1000)
    assert objects.get("runs/a/status.json") == b"first" * 1000
    objects.put("runs/a/status.json", b"second")
    assert objects.get("runs/a/status.json") == b"second"


def test_none_is_there_until_it_is_put(objects: ObjectStore) -> None:
    assert objects.get("runs/a/b") is None
    assert objects.size("runs/a/b") is None
    assert objects.read("runs/a/b") == b""
    objects.put("runs/a/b", b"")
    assert objects.get("runs/a/b") == b""
    assert objects.size("runs/a/b") == 0


def test_a_key_below_an_object_is_not_there(objects: ObjectStore) -> None:
    objects.put("a", b"x")
    assert objects.get("a/b") is None
    assert objects.size("a/b") is None


def test_put_if_absent_is_true_for_exactly_one(objects: ObjectStore) -> None:
    answers: list[bool] = []
    barrier = threading.Barrier(8)

    def try_it(number: int) -> None:
        barrier.wait()
        if objects.put_if_absent("runs/a/gate.json", b"%d" % number):
            answers.append(True)
            winners.append(number)

    winners: list[int] = []
    threads = [threading.Thread(target=try_it, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [True]
    assert objects.get("runs/a/gate.json") == b"%d" % winners[0]
    assert not objects.put_if_absent("runs/a/gate.json", b"later")


def test_a_reader_never_sees_a_part(objects: ObjectStore) -> None:
    texts = [bytes([letter]) * 200_000 for letter in b"ab"]
    objects.put("k", texts[0])
    done = threading.Event()
    seen: set[bytes | None] = set()

    def read() -> None:
        while not done.is_set():
            seen.add(objects.get("k"))

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(100):
        objects.put("k", texts[number % 2])
    done.set()
    reader.join()
    assert seen <= set(texts)


def test_an_object_larger_than_the_limit_is_refused(objects: ObjectStore) -> None:
    objects.put("k", b"12345")
    assert objects.get("k", limit=5) == b"12345"
    with pytest.raises(DocumentError):
        objects.get("k", limit=4)


def test_parts_can_be_read(objects: ObjectStore) -> None:
    objects.put("log", b"0123456789")
    assert objects.read("log", 3) == b"3456789"
    assert objects.read("log", 3, 2) == b"34"
    assert objects.read("log", 8, 100) == b"89"
    assert objects.read("log", 100) == b""


def test_keys_below_a_prefix_are_listed_in_order(objects: ObjectStore) -> None:
    for key in ("runs/b/1", "runs/a/2", "runs/a/1", "runs/ab/1", "other"):
        objects.put(key, b"")
    assert objects.list("runs/a") == ["runs/a/1", "runs/a/2"]
    assert objects.list("runs/") == ["runs/a/1", "runs/a/2", "runs/ab/1", "runs/b/1"]
    assert objects.list("") == ["other", "runs/a/1", "runs/a/2", "runs/ab/1", "runs/b/1"]
    assert objects.list("nothing") == []


def test_nothing_is_left_below_a_deleted_prefix(objects: ObjectStore) -> None:
    for key in ("runs/a/1", "runs/a/b/c", "runs/ab/1"):
        objects.put(key, b"")
    objects.delete("runs/a")
    assert objects.list("") == ["runs/ab/1"]
    objects.delete("runs/a")
    objects.put("runs/a/1", b"again")
    assert objects.get("runs/a/1") == b"again"


@pytest.mark.parametrize("key", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "a/.", "a\0b", "a/", ".tmp-x"])
def test_keys_that_are_no_relative_paths_are_refused(objects: ObjectStore, key: str) -> None:
    with pytest.raises(ObjectsError):
        objects.put(key, b"")
    with pytest.raises(ObjectsError):
        objects.get(key)


@given(key=st.text(max_size=30))
def test_no_key_leads_outside(key: str) -> None:
    store = LocalObjects("/nowhere/objects")
    try:
        path = store.path(key)
    except ObjectsError:
        return
    assert os.path.normpath(path).startswith("/nowhere/objects/")


def test_no_temporary_file_is_left_or_listed(tmp_path: Path) -> None:
    store = LocalObjects(str(tmp_path))
    store.put("a/k", b"1")
    store.put_if_absent("a/k", b"2")
    store.put_if_absent("a/new", b"3")
    assert sorted(os.listdir(tmp_path / "a")) == ["k", "new"]
    (tmp_path / "a" / ".tmp-dead").write_text("half")
    assert store.list("a") == ["a/k", "a/new"]


def test_a_full_disk_is_told_plainly_and_leaves_nothing_half(tmp_path: Path) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("cannot mount a small tmpfs here: behaviour on a full disk not tested")
    try:
        store = LocalObjects(str(tmp_path))
        store.put("a/k", b"whole")
        for put in (store.put, store.put_if_absent):
            with pytest.raises(ObjectsError, match="the disk is full"):
                put("a/k2", b"x" * 200_000)
        with pytest.raises(ObjectsError, match="the disk is full"):
            store.put("a/k", b"x" * 200_000)
        assert store.get("a/k") == b"whole"
        assert os.listdir(tmp_path / "a") == ["k"]
        store.put("a/k2", b"room again")
    finally:
        subprocess.run(["umount", "-l", str(tmp_path)], check=True)


@pytest.mark.parametrize(
    ("url", "root"),
    [("file:/a/b", "/a/b"), ("file:///a/b", "/a/b"), ("file:a b/%20", "a b/%20")],
)
def test_a_local_url_names_its_folder_as_written(url: str, root: str) -> None:
    assert root_of_url(url) == root


def test_other_urls_are_refused() -> None:
    with pytest.raises(ObjectsError):
        root_of_url("s3://bucket")


def test_the_url_leads_back_to_the_same_store(tmp_path: Path) -> None:
    store = LocalObjects(str(tmp_path))
    store.put("k", b"v")
    assert LocalObjects(root_of_url(store.url)).get("k") == b"v"
