"""A Git repository with a project, for tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_IDENTITY = {"GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@t", "GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@t"}


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=folder, env={**os.environ, **_IDENTITY}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def write(folder: Path, **texts: str) -> None:
    """`write(folder, lib__util="…")` writes lib/util.py."""
    for name, text in texts.items():
        path = folder / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def commit(folder: Path) -> str:
    """Commits everything and returns the commit."""
    if not (folder / ".git").exists():
        git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "a change")
    return git(folder, "rev-parse", "HEAD")
