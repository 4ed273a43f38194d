"""Ork on the Firestore emulator, behind a proxy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.firestore import HOST


def ork(url: str, folder: Path, *words: str, fails: bool = False) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "ork", *words],
        env={**os.environ, "ORK_STORE": url}, cwd=folder, capture_output=True, text=True, timeout=180,
    )  # fmt: skip
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout + done.stderr


def store_on(url: str, **options: Any) -> Any:
    from ork.state.firestore import FirestoreStore

    return FirestoreStore(url, emulator=os.environ[HOST], **options)
