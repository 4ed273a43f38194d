"""Builds a release into `dist`: sdist, wheel, SBOM, image and checksums. Everything is built twice, and must be the same.

`make release` calls it. The time of all files is that of the last commit, or SOURCE_DATE_EPOCH. The image needs Docker and a
base that it can pull: --base python:3.12-slim@sha256:…; --no-image leaves it out.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
from collections.abc import Sequence
from pathlib import Path

TREE = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((TREE / "pyproject.toml").read_text())["project"]
BASE = "python:3.12-slim"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    environ = {**os.environ, "SOURCE_DATE_EPOCH": epoch()}
    with tempfile.TemporaryDirectory(prefix="ork-release-") as folder:
        first, second = Path(folder, "first"), Path(folder, "second")
        python = build_tools(Path(folder, "tools"))
        for place in (first, second):
            build_packages(python, place, environ)
            build_sbom(place, environ)
        different = [
            path.name for path in sorted(first.iterdir()) if path.read_bytes() != (second / path.name).read_bytes()
        ]
        if different:
            raise SystemExit(f"not reproducible: {', '.join(different)} differ between two builds")
        made = sorted(first.iterdir())
        for path in made:
            (out / path.name).write_bytes(path.read_bytes())
    if not options.no_image:
        (out / "image.json").write_text(json.dumps(image(options, environ), indent=1) + "\n")
    sums = [f"{_digest(path)}  {path.name}\n" for path in sorted(out.iterdir()) if path.name != "SHA256SUMS"]
    (out / "SHA256SUMS").write_text("".join(sums))
    print("".join(sums), end="")
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--out", type=Path, default=TREE / "dist")
    parser.add_argument("--no-image", action="store_true", help="build no image")
    parser.add_argument("--base", default=BASE, help="the image to build on, best by its digest")
    parser.add_argument("--tag", default=f"ork:{PROJECT['version']}")
    parser.add_argument("--build-arg", action="append", default=[], help="of `docker build`, may be repeated")
    return parser.parse_args(arguments)


def epoch() -> str:
    """Seconds since 1970 of the last commit, unless SOURCE_DATE_EPOCH says something else."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    return given or subprocess.check_output(["git", "log", "-1", "--format=%ct"], cwd=TREE, text=True).strip()


def build_tools(folder: Path) -> Path:
    """An interpreter with the build backend, in the versions and with the hashes of the lock."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--require-hashes"]
    subprocess.run([*install, "-r", TREE / "deploy/build.lock"], check=True)
    return python


def build_packages(python: Path, folder: Path, environ: dict[str, str]) -> None:
    command = [python, "-m", "hatchling", "build", "-d", folder]
    subprocess.run(command, cwd=TREE, env=environ, check=True, stdout=subprocess.DEVNULL)


def build_sbom(folder: Path, environ: dict[str, str]) -> None:
    """What an image may contain, as CycloneDX: the packages of the lock with their hashes."""
    target = folder / f"{PROJECT['name'].replace('-', '_')}-{PROJECT['version']}.cdx.json"
    words = ["requirements", "--output-reproducible", "--of", "JSON", "--pyproject", "pyproject.toml", "-o", target]
    command = [sys.executable, "-m", "cyclonedx_py", *words, "deploy/requirements.lock"]
    subprocess.run(command, cwd=TREE, env=environ, check=True)


def image(options: argparse.Namespace, environ: dict[str, str]) -> dict[str, str]:
    """Builds the image twice and returns its name, base and the digest of its files."""
    digests = []
    for _ in range(2):
        given = [f"PYTHON={options.base}", f"SOURCE_DATE_EPOCH={environ['SOURCE_DATE_EPOCH']}", *options.build_arg]
        words = [word for each in given for word in ("--build-arg", each)]
        command = ["docker", "build", "-q", "--no-cache", "--network", "host", *words, "-f", "deploy/Dockerfile"]
        subprocess.run([*command, "-t", options.tag, "."], cwd=TREE, env=environ, check=True, stdout=subprocess.DEVNULL)
        digests.append(files_digest(options.tag))
    if digests[0] != digests[1]:
        raise SystemExit(f"not reproducible: the files of {options.tag} differ between two builds")
    return {"image": options.tag, "base": options.base, "files": f"sha256:{digests[0]}"}


def files_digest(name: str) -> str:
    """One digest of all files of an image below /opt/ork: names, modes, owners, times and contents."""
    container = subprocess.check_output(["docker", "create", name], text=True).strip()
    whole = hashlib.sha256()
    try:
        copying = subprocess.Popen(["docker", "cp", f"{container}:/opt/ork", "-"], stdout=subprocess.PIPE)
        with copying, tarfile.open(fileobj=copying.stdout, mode="r|") as archive:
            lines = [_line(archive, entry) for entry in archive]
        for line in sorted(lines):
            whole.update(line.encode())
    finally:
        subprocess.run(["docker", "rm", "-f", container], check=True, stdout=subprocess.DEVNULL)
    return whole.hexdigest()


def _line(archive: tarfile.TarFile, entry: tarfile.TarInfo) -> str:
    content = archive.extractfile(entry) if entry.isfile() else None
    found = hashlib.sha256(content.read()).hexdigest() if content else entry.linkname
    return f"{entry.name} {entry.mode:o} {entry.uid}:{entry.gid} {entry.mtime} {found}\n"


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
