"""Exit 0 if this interpreter's environment holds the tree as an editable install with all that an extra asks for."""

from __future__ import annotations

import json
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

from pip._vendor.packaging.requirements import Requirement

TREE = Path(__file__).resolve().parent.parent


def main(extra: str) -> int:
    project = tomllib.loads((TREE / "pyproject.toml").read_text())["project"]
    wanted = list(requirements_of(project, extra))
    return 0 if is_installed_from_here(project) and all(is_met(one) for one in wanted) else 1


def requirements_of(project: dict, extra: str) -> list[Requirement]:
    """What the package and the extra ask for, with extras of the package itself followed."""
    lines = list(project["dependencies"])
    if extra != "run":
        lines += project["optional-dependencies"][extra]
    found = []
    for one in map(Requirement, lines):
        if one.name == project["name"]:
            found += [more for inner in one.extras for more in requirements_of(project, inner)]
        else:
            found.append(one)
    return found


def is_installed_from_here(project: dict) -> bool:
    try:
        installed = distribution(project["name"])
    except PackageNotFoundError:
        return False
    origin = json.loads(installed.read_text("direct_url.json") or "{}")
    scripts = {entry.name: entry.value for entry in installed.entry_points if entry.group == "console_scripts"}
    return origin.get("url") == TREE.as_uri() and scripts == project.get("scripts", {})


def is_met(requirement: Requirement) -> bool:
    try:
        return requirement.specifier.contains(version(requirement.name), prereleases=True)
    except PackageNotFoundError:
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
