"""The object store's contract, sentence by sentence, for every store in object_stores.py."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ork.errors import DocumentError, ObjectsError
from ork.objects.local import LocalObjects
from ork.objects.opening import open_objects, root_of_url
from ork.objects.store import ObjectStore
from tests.conformance.object_stores import Open

STATUS, GATE = "runs/a/task.0.1.status.json", "runs/a/task.0.1.gate.json"


@pytest.fixture
def objects(opened: Open) -> ObjectStore:
    return opened()


def test_what_was_put_is_there_whole(objects: ObjectStore) -> None:
    objects.put(STATUS, b"first" * 1000)
    assert objects.get(STATUS) == b"first" * 1000
    objects.put(STATUS, b"second")
    assert objects.get(STATUS) == b"second"


@pytest.mark.parametrize("key", ["runs/a/b", STATUS])
def test_none_is_there_until_it_is_put(objects: ObjectStore, key: str) -> None:
    assert objects.get(key) is None
    assert objects.size(key) is None
    assert objects.read(key) == b""
    objects.put(key, b"")
    assert objects.get(key) == b""
    assert objects.size(key) == 0


@pytest.mark.parametrize("data", [b"two\nlines", b"\n", b"x" * 1_000_000, b'{"v":1}', bytes(range(256))])
def test_any_bytes_can_be_put_and_replaced(objects: ObjectStore, data: bytes) -> None:
    for before in (b"before", data):
        objects.put(STATUS, before)
        objects.put(STATUS, data)
        assert objects.get(STATUS) == data
    assert objects.put_if_absent(GATE, data)
    assert objects.get(GATE) == data
    assert not objects.put_if_absent(GATE, data)


def test_a_key_below_an_object_is_not_there(objects: ObjectStore) -> None:
    objects.put("a", b"x")
    assert objects.get("a/b") is None
    assert objects.size("a/b") is None


def test_put_if_absent_is_true_for_exactly_one(objects: ObjectStore) -> None:
    answers: list[bool] = []
    barrier = threading.Barrier(8)

    def try_it(number: int) -> None:
        barrier.wait()
        if objects.put_if_absent(GATE, b"%d" % number):
            answers.append(True)
            winners.append(number)

    winners: list[int] = []
    threads = [threading.Thread(target=try_it, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [True]
    assert objects.get(GATE) == b"%d" % winners[0]
    assert not objects.put_if_absent(GATE, b"later")


@pytest.mark.parametrize("key", ["k", STATUS])
def test_a_reader_never_sees_a_part(objects: ObjectStore, key: str) -> None:
    texts = [bytes([letter]) * 200_000 for letter in b"ab"]
    objects.put(key, texts[0])
    done = threading.Event()
    seen: set[bytes | None] = set()

    def read() -> None:
        while not done.is_set():
            seen.add(objects.get(key))

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(100):
        objects.put(key, texts[number % 2])
    done.set()
    reader.join()
    assert seen <= set(texts)


@pytest.mark.parametrize("key", ["k", STATUS])
def test_an_object_larger_than_the_limit_is_refused(objects: ObjectStore, key: str) -> None:
    objects.put(key, b"12345")
    assert objects.get(key, limit=5) == b"12345"
    with pytest.raises(DocumentError):
        objects.get(key, limit=4)


@pytest.mark.parametrize("key", ["log", STATUS])
def test_parts_can_be_read(objects: ObjectStore, key: str) -> None:
    objects.put(key, b"0123456789")
    assert objects.read(key, 3) == b"3456789"
    assert objects.read(key, 3, 2) == b"34"
    assert objects.read(key, 8, 100) == b"89"
    assert objects.read(key, 100) == b""


def test_keys_below_a_prefix_are_listed_in_order(objects: ObjectStore) -> None:
    for key in ("runs/b/1", "runs/a/2", "runs/a/1", "runs/ab/1", "other"):
        objects.put(key, b"")
    assert objects.list("runs/a") == ["runs/a/1", "runs/a/2"]
    assert objects.list("runs/") == ["runs/a/1", "runs/a/2", "runs/ab/1", "runs/b/1"]
    assert objects.list("") == ["other", "runs/a/1", "runs/a/2", "runs/ab/1", "runs/b/1"]
    assert objects.list("nothing") == []


def test_documents_are_listed_with_the_rest(objects: ObjectStore) -> None:
    objects.put(STATUS, b"1")
    objects.put(STATUS, b"2")
    objects.put_if_absent(GATE, b"1")
    objects.put("runs/b/x.0.1.spec.json", b"1")
    assert objects.list("runs/a") == [GATE, STATUS]
    assert objects.list("") == [GATE, STATUS, "runs/b/x.0.1.spec.json"]


def test_nothing_is_left_below_a_deleted_prefix(objects: ObjectStore) -> None:
    for key in ("runs/a/1", STATUS, "runs/a/b/c", "runs/ab/1"):
        objects.put(key, b"")
    objects.delete("runs/a")
    assert objects.list("") == ["runs/ab/1"]
    objects.delete("runs/a")
    assert objects.get(STATUS) is None
    for key in ("runs/a/1", STATUS):
        objects.put(key, b"again")
        assert objects.get(key) == b"again"


@pytest.mark.parametrize(
    "key", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "a/.", "a\0b", "a/", ".tmp-x", "a/.ork-x"]
)
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
    [("file:/a/b", "/a/b"), ("file:///a/b", "/a/b"), ("file:a b/%20", "a b/%20"), ("journal:/a/b", "/a/b")],
)
def test_a_local_url_names_its_folder_as_written(url: str, root: str) -> None:
    assert root_of_url(url) == root


def test_other_urls_are_refused() -> None:
    with pytest.raises(ObjectsError):
        root_of_url("s3://bucket")


def test_the_url_leads_back_to_the_same_store(tmp_path: Path) -> None:
    for store in (LocalObjects(str(tmp_path / "a")), open_objects(f"journal:{tmp_path}/b")):
        for key in ("k", STATUS):
            store.put(key, b"v")
            assert open_objects(store.url).get(key) == b"v"
