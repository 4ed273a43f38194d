"""Prints the part of requirements.lock that some extras need: python3 locked.py PYPROJECT LOCK EXTRA,EXTRA…

pip installs a whole file with hashes or nothing, and the lock has all extras. Which package needs which is in its comments.
Standard library only: it runs in the image's build.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path


def main(project: str, lock: str, extras: str) -> int:
    blocks = read_lock(Path(lock).read_text())
    wanted = wanted_names(
        tomllib.loads(Path(project).read_text())["project"], [each for each in extras.split(",") if each]
    )
    missing = wanted - set(blocks)
    if missing:
        sys.stderr.write(f"{lock} has no {', '.join(sorted(missing))}: write it again with `make lock`\n")
        return 1
    kept = closure(wanted, blocks)
    sys.stdout.write("".join(text for name, (text, _) in blocks.items() if name in kept))
    return 0


def read_lock(text: str) -> dict[str, tuple[str, set[str]]]:
    """Each package's lines, and the names of the packages that need it."""
    blocks = {}
    for block in re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE):
        if "==" in block:
            parents = re.findall(r"^ +# +(?:via +)?([A-Za-z0-9][\w.-]*)", block, flags=re.MULTILINE)
            blocks[_plain(block.partition("==")[0].partition("[")[0])] = (
                block,
                {_plain(each) for each in parents} - {"via"},
            )
    return blocks


def wanted_names(project: dict, extras: list[str]) -> set[str]:
    """What the package and the extras name, with extras of the package itself followed."""
    found, lines = set(), list(project["dependencies"])
    for extra in extras:
        if extra not in project["optional-dependencies"]:
            raise SystemExit(f"there is no extra {extra!r}: there are {', '.join(project['optional-dependencies'])}")
        lines += project["optional-dependencies"][extra]
    for line in lines:
        name, inner = re.fullmatch(r"([A-Za-z0-9._-]+)(?:\[([^\]]*)\])?.*", line).groups()
        if _plain(name) == _plain(project["name"]):
            found |= wanted_names(project, inner.split(","))
        else:
            found.add(_plain(name))
    return found


def closure(names: set[str], blocks: dict[str, tuple[str, set[str]]]) -> set[str]:
    """The packages with these names, and all that they need."""
    kept: set[str] = set()
    new = set(names)
    while new:
        kept |= new
        new = {name for name, (_, parents) in blocks.items() if parents & kept} - kept
    return kept


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
