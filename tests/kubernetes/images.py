"""The image of Ork's control plane, made of what is installed on this machine."""

from __future__ import annotations

import importlib.metadata
import io
import re
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

from tests.docker import Daemon, libraries, python_files

_SITE = f"usr/local/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
_EXTRAS = ("server", "postgres", "cloud")
_PROGRAM = b"#!/usr/local/bin/python3\nimport sys\nfrom %s import main\nsys.exit(main())\n"
_PROGRAMS = {"ork": b"ork.cli.main", "ork-worker": b"ork.worker.main", "ork-parse": b"ork.locations.parse"}
_USERS = b"root:x:0:0::/:/bin/sh\nork:x:10001:10001:Ork:/srv/flows:/bin/sh\nork-tasks:x:10002:10002::/tmp:/bin/sh\n"
_AUTHORITIES = "etc/ssl/certs/ca-certificates.crt"
_ORK = 10001


def control_plane_image(daemon: Daemon, name: str) -> str:
    """Ork with the extras of a control plane, its users and its folders, as deploy/Dockerfile makes it.

    Files keep their times, so that the bytecode beside them is valid in the image, too.
    """
    made = io.BytesIO(python_files())
    with tarfile.open(fileobj=made, mode="a") as archive:
        for program, module in _PROGRAMS.items():
            _add(archive, f"usr/local/bin/{program}", _PROGRAM % module, 0o755)
        _add(archive, "etc/passwd", _USERS)
        _add(archive, "etc/group", b"root:x:0:\nork:x:10001:\nork-tasks:x:10002:\n")
        for folder in ("srv", "srv/flows", "srv/flows/.ork", "var", "var/lib", "var/lib/ork", "var/lib/ork/objects"):
            _add_folder(archive, folder)
        wanted = {f"{_SITE}/{path}": place for place, path in _sources()}
        native = [place for place in wanted.values() if ".so" in place.suffixes]
        wanted[_AUTHORITIES] = Path("/", _AUTHORITIES)
        wanted |= {str(library).lstrip("/"): library.resolve() for library in libraries(*native)}
        for path in wanted.keys() - set(archive.getnames()):  # the base has some of the libraries
            archive.add(wanted[path], path, recursive=False)
    changes = ["ENV PATH=/usr/local/bin:/bin", "ENV ORK_LOG_FORMAT=json", f"USER {_ORK}:{_ORK}", "WORKDIR /srv/flows"]
    return daemon.load(name, made.getvalue(), *changes, 'ENTRYPOINT ["ork"]', 'CMD ["serve"]')


def _sources() -> Iterator[tuple[Path, str]]:
    """The files of Ork and of all that it needs, each with its path in site-packages."""
    ork = Path(importlib.import_module("ork").__file__ or "").parent
    for place in ork.rglob("*"):
        if place.is_file():
            yield place, f"ork/{place.relative_to(ork)}"
    for distribution in _needed():
        for path in distribution.files or []:
            place = Path(str(path.locate()))
            if ".." not in path.parts and place.is_file():
                yield place, str(path)


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


def _add(archive: tarfile.TarFile, path: str, content: bytes, mode: int = 0o644) -> None:
    member = tarfile.TarInfo(path)
    member.size, member.mode = len(content), mode
    archive.addfile(member, io.BytesIO(content))


def _add_folder(archive: tarfile.TarFile, path: str) -> None:
    member = tarfile.TarInfo(path)
    member.type, member.mode = tarfile.DIRTYPE, 0o755
    if "ork" in path or "flows" in path:
        member.uid = member.gid = _ORK
    archive.addfile(member)
