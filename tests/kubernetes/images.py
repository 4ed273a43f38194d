"""The image of Ork's control plane, made of what is installed on this machine."""

from __future__ import annotations

import importlib.metadata
import re
import sys
from pathlib import Path

from tests.docker import Daemon, libraries, python_image

_SITE = f"usr/local/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
_EXTRAS = ("server", "postgres", "cloud")
_PROGRAM = b"#!/usr/local/bin/python3\nimport sys\nfrom %s import main\nsys.exit(main())\n"
_PROGRAMS = {"ork": b"ork.cli.main", "ork-worker": b"ork.worker.main", "ork-parse": b"ork.locations.parse"}


def control_plane_image(daemon: Daemon, name: str) -> str:
    """Ork with the extras of a control plane, its users and its folders, as deploy/Dockerfile makes it."""
    files = {f"usr/local/bin/{program}": _PROGRAM % module for program, module in _PROGRAMS.items()}
    for distribution in _needed():
        files |= _files(distribution)
    native = [Path(str(path.locate())) for each in _needed() for path in each.files or [] if ".so" in path.suffixes]
    shared = [library for library in libraries(*native) if not library.name.startswith("ld-")]  # the base has a loader
    files |= {str(library).lstrip("/"): library.read_bytes() for library in shared}
    ork = Path(importlib.import_module("ork").__file__ or "").parent
    files |= {
        f"{_SITE}/ork/{path.relative_to(ork)}": path.read_bytes()
        for path in ork.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    files["etc/passwd"] = (
        b"root:x:0:0::/:/bin/sh\nork:x:10001:10001:Ork:/srv/flows:/bin/sh\nork-tasks:x:10002:10002::/tmp:/bin/sh\n"
    )
    files["etc/group"] = b"root:x:0:\nork:x:10001:\nork-tasks:x:10002:\n"
    return python_image(
        daemon, name, files,
        "RUN busybox chmod 755 " + " ".join(f"/usr/local/bin/{program}" for program in _PROGRAMS)
        + " && busybox mkdir -p /srv/flows/.ork /var/lib/ork/objects && busybox chown -R 10001:10001 /srv/flows /var/lib/ork",
        "ENV ORK_LOG_FORMAT=json",
        "USER 10001:10001",
        "WORKDIR /srv/flows",
        'ENTRYPOINT ["ork"]',
        'CMD ["serve"]',
    )  # fmt: skip


def _needed() -> list[importlib.metadata.Distribution]:
    """What Ork needs with these extras, and what that needs."""
    found: dict[str, importlib.metadata.Distribution] = {}
    waiting = [*_requirements("ork-orchestrator", _EXTRAS), "lightkube"]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        try:
            found[name] = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # for other systems
        waiting += _requirements(name)
    return list(found.values())


def _requirements(name: str, extras: tuple[str, ...] = ()) -> list[str]:
    found = []
    for line in importlib.metadata.requires(name) or []:
        requirement, _, marker = line.partition(";")
        wanted = re.search(r"extra == ['\"]([\w-]+)['\"]", marker)
        if wanted is None or wanted[1] in extras:
            match = re.match(r"[\w.-]+", requirement.strip())
            assert match is not None
            found.append(match[0].lower().replace("_", "-"))
    return found


def _files(distribution: importlib.metadata.Distribution) -> dict[str, bytes]:
    found = {}
    for path in distribution.files or []:
        place = Path(str(path.locate()))
        if ".." not in path.parts and "__pycache__" not in path.parts and place.is_file():
            found[f"{_SITE}/{path}"] = place.read_bytes()
    return found
