"""Noticing that files change."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ork.locations.watch import Watch


async def told(watch: Watch, act: Callable[[], object]) -> tuple[str, ...]:
    """What `changed` answers once this has been done."""
    waiting = asyncio.create_task(watch.changed())
    await asyncio.sleep(0)
    act()
    return await waiting


@pytest.mark.parametrize(
    "act",
    [
        lambda folder: (folder / "new.yaml").write_text("x"),
        lambda folder: (folder / "a.yaml").write_text("longer"),
        lambda folder: os.utime(folder / "a.yaml", ns=(1, 1)),
        lambda folder: (folder / "a.yaml").unlink(),
        lambda folder: (folder / "a.yaml").rename(folder / "b.yaml"),
        lambda folder: ((folder / "deep/er").mkdir(parents=True), (folder / "deep/er/a.py").write_text("")),
    ],
    ids=["added", "written", "touched", "removed", "renamed", "below"],
)
def test_every_kind_of_change_is_noticed(tmp_path: Path, act: Callable[[Path], object]) -> None:
    (tmp_path / "a.yaml").write_text("x")
    watch = Watch([str(tmp_path)], 0.01)
    assert asyncio.run(told(watch, lambda: act(tmp_path))) == (str(tmp_path),)


def test_a_change_below_a_watched_folder_is_told_of_that_one_alone(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    watch = Watch([str(tmp_path), str(tmp_path / "inner")], 0.01)

    async def scene() -> None:
        assert await told(watch, lambda: (tmp_path / "inner/a").write_text("")) == (str(tmp_path / "inner"),)
        assert await told(watch, lambda: (tmp_path / "b").write_text("")) == (str(tmp_path),)

    asyncio.run(scene())


def test_what_changed_between_two_calls_is_not_missed(tmp_path: Path) -> None:
    watch = Watch([str(tmp_path)], 0.01)
    (tmp_path / "a").write_text("")
    assert asyncio.run(watch.changed()) == (str(tmp_path),)


def test_hidden_folders_are_not_watched(tmp_path: Path) -> None:
    (tmp_path / ".ork").mkdir()
    watch = Watch([str(tmp_path)], 0.01)

    async def scene() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await told(watch, lambda: (tmp_path / ".ork/ork.db").write_text(""))

    asyncio.run(scene())
