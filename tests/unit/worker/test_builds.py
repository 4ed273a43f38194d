"""A folder is built once for all who need it, is used only when complete, and goes only when nobody uses it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ork.worker.build.builds import UNUSED_SECONDS, Build, digest_of, prune


def later() -> float:
    return time.time() + UNUSED_SECONDS + 60


def building(ledger: Path, then: Callable[[], None] = lambda: None) -> Callable[[str], None]:
    def build(folder: str) -> None:
        os.mkdir(folder)
        with open(ledger, "a") as file:
            file.write("built\n")
        then()

    return build


def made(shelf: Path, digest: str = "one") -> Build:
    build = Build(str(shelf), digest)
    build.make(os.mkdir)
    return build


def test_the_second_who_needs_it_does_not_build_it_again(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    for _ in range(2):
        build = Build(str(tmp_path / "shelf"), "one")
        build.make(building(ledger))
        assert build.is_ready()
        build.close()
    assert ledger.read_text() == "built\n"


def test_of_many_at_once_one_builds_and_the_others_wait(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    children = []
    for _ in range(6):
        pid = os.fork()
        if pid == 0:
            build = Build(str(tmp_path / "shelf"), "one")
            build.make(building(ledger, lambda: time.sleep(0.05)))
            os._exit(0 if build.is_ready() else 1)
        children.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 6
    assert ledger.read_text() == "built\n"


def test_one_that_was_killed_in_the_middle_leaves_nothing_that_counts(tmp_path: Path) -> None:
    pid = os.fork()
    if pid == 0:
        Build(str(tmp_path / "shelf"), "one").make(building(tmp_path / "ledger", lambda: os._exit(9)))
    os.waitpid(pid, 0)
    build = Build(str(tmp_path / "shelf"), "one")
    assert not build.is_ready()
    build.make(building(tmp_path / "ledger"))
    assert build.is_ready()
    assert (tmp_path / "ledger").read_text() == "built\nbuilt\n"


def test_a_build_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        raise RuntimeError

    build = Build(str(tmp_path / "shelf"), "one")
    with pytest.raises(RuntimeError):
        build.make(building(tmp_path / "ledger", fail))
    assert not os.path.exists(build.folder)


def test_what_a_child_built_belongs_to_whoever_opened_it(tmp_path: Path) -> None:
    build = Build(str(tmp_path / "shelf"), "one")
    pid = os.fork()
    if pid == 0:
        build.make(os.mkdir)
        os._exit(0)
    os.waitpid(pid, 0)
    assert prune(str(tmp_path / "shelf"), later()) == []
    assert build.is_ready()


def test_what_is_in_use_or_was_used_lately_is_not_pruned(tmp_path: Path) -> None:
    shelf = tmp_path / "shelf"
    used = made(shelf, "used")
    made(shelf, "lately").close()
    assert prune(str(shelf), time.time()) == []
    assert prune(str(shelf), later()) == [str(shelf / "lately")]
    used.close()
    assert prune(str(shelf), later()) == [str(shelf / "used")]
    assert not (shelf / "used").exists()


def test_use_puts_pruning_off(tmp_path: Path) -> None:
    shelf = tmp_path / "shelf"
    build = made(shelf)
    os.utime(shelf / "one" / ".ork-ready", (1, 1))
    assert build.is_ready()
    build.close()
    assert prune(str(shelf), time.time()) == []


def test_what_was_pruned_is_built_again(tmp_path: Path) -> None:
    shelf = tmp_path / "shelf"
    made(shelf).close()
    prune(str(shelf), later())
    again = Build(str(shelf), "one")
    assert not again.is_ready()
    again.make(os.mkdir)
    assert again.is_ready()


def test_there_is_nothing_to_prune_where_nothing_was_built(tmp_path: Path) -> None:
    assert prune(str(tmp_path / "shelf"), later()) == []


def test_content_has_a_name_of_its_own() -> None:
    assert digest_of(["ab", "c"]) == digest_of([b"ab", b"c"])
    assert len({digest_of(parts) for parts in (["ab", "c"], ["a", "bc"], ["abc"], ["c", "ab"], [])}) == 5
