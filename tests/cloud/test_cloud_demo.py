"""`make cloud-demo` shows what it promises."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cloud.virtual_clock import library
from tests.firestore import emulator_or_skip

pytestmark = pytest.mark.slow


def test_the_demo_keeps_its_promises(tree: Path) -> None:
    emulator_or_skip()
    library()
    done = subprocess.run(
        [sys.executable, "-m", "tests.cloud.demo"], cwd=tree, capture_output=True, text=True, timeout=1200
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("✓") == 9
    assert "stand-in" in done.stdout
