"""Compiles a task that is a Rust program: a single file or a cargo project, once per content."""

from __future__ import annotations

import os
import re

from ork.worker.build.builds import Build, digest_of
from ork.worker.build.preparation import PreparationError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ork.worker.build.preparation import Tools

_PROGRAM = "/program"
_LEFT_OUT = frozenset({"target", "node_modules", "__pycache__"})
_MOST_FILES = 20_000
_ENDS = (".rs", "/mod.rs")
# What makes a source file depend on others: modules in separate files, and included texts.
_OTHER_FILES = re.compile(
    rb"""\#\[path\s*=\s*"([^"]+)"\] | \binclude(?:_str|_bytes)?!\s*\(\s*"([^"]+)" | \bmod\s+(\w+)\s*;""", re.X
)


class RustNeed:
    def __init__(self, spec: dict[str, Any]) -> None:
        path = os.path.normpath(os.path.join(spec["root"], spec["path"]))
        self._path = path
        self._is_crate = os.path.isdir(path)
        if not os.path.exists(path + "/Cargo.toml" if self._is_crate else path):
            what = f"{spec['path']} has no Cargo.toml" if self._is_crate else f"there is no file {spec['path']}"
            raise PreparationError(what, is_final=True)
        self._shelf = spec["builds"] + "/rust"
        self.build = Build(self._shelf, digest_of(["rust", *_toolchain(), *self._sources()]))
        self.title = f"{spec['path']} with {'cargo' if self._is_crate else 'rustc'}"
        self._name = spec["path"]

    def settle(self, spec: dict[str, Any]) -> None:
        spec["argv"] = [self.build.folder + _PROGRAM, *spec["argv"]]

    def make(self, tools: Tools, folder: str) -> None:
        os.mkdir(folder, 0o700)
        if self._is_crate:
            self._make_crate(tools, folder)
            return
        rustc = _tool(tools, "rustc")
        argv = [rustc, "--edition", "2021", "-O", "--crate-name", "program", "-o", folder + _PROGRAM, self._path]
        self._run(tools, argv)

    def _make_crate(self, tools: Tools, folder: str) -> None:
        """Compile in the same folder as earlier versions of the project, so that cargo reuses what has not changed."""
        import shutil

        manifest = _manifest(self._path)
        target = Build(self._shelf, "target-" + digest_of([self._path]))
        argv = [_tool(tools, "cargo"), "build", "--release", "--message-format", "json-render-diagnostics"]
        argv += ["--manifest-path", self._path + "/Cargo.toml"]
        if not _has_dependencies(manifest):
            argv.append("--offline")

        try:
            target.make(lambda place: os.makedirs(place, 0o700))
            printed = self._run(tools, argv, {"CARGO_TARGET_DIR": target.folder})
            program = self._program(_programs(printed), manifest)
            shutil.copyfile(program, folder + _PROGRAM)
            os.chmod(folder + _PROGRAM, 0o700)
        finally:
            target.close()

    def _run(self, tools: Tools, argv: list[str], variables: dict[str, str] | None = None) -> str:
        printed, problem = tools.run(argv, variables=variables)
        if problem is not None:
            raise PreparationError(f"cannot build {self._name}: {_reason(problem)}", is_final=True)
        return printed

    def _program(self, programs: dict[str, str], manifest: dict[str, Any]) -> str:
        package = manifest.get("package", {})
        for name in (package.get("default-run"), package.get("name")):
            if name in programs:
                return programs[name]
        if len(programs) == 1:
            return next(iter(programs.values()))
        names = ", ".join(sorted(programs)) or "none"
        hint = "set `default-run` in its Cargo.toml" if programs else "it is a library only"
        raise PreparationError(f"{self._name} has no single program ({names}): {hint}", is_final=True)

    def _sources(self) -> Iterator[str | bytes]:
        files = [self._path]
        if self._is_crate:
            # Without dependencies the lock file does not count, because only cargo writes it.
            left_out = frozenset() if _has_dependencies(_manifest(self._path)) else frozenset({"Cargo.lock"})
            files = [file for folder in _crate_folders(self._path) for file in _files_below(folder, left_out)]
        known = set(files)
        for path in files:  # grows during iteration
            with open(path, "rb") as file:
                content = file.read()
            yield os.path.relpath(path, self._path)
            yield content
            others = _other_files(path, content) if path.endswith(".rs") else []
            files += sorted(set(others) - known)
            known.update(others)


def _tool(tools: Tools, name: str) -> str:
    found = tools.find(name)
    if found is None:
        raise PreparationError(f"there is no `{name}` on PATH: install Rust, https://rustup.rs", is_final=True)
    return found


def _toolchain() -> Iterator[str]:
    """Identifies the compiler without starting it: the file, and the toolchain that rustup last selected and
    installed."""
    import shutil

    rustc = shutil.which("rustc") or ""
    home = os.environ.get("RUSTUP_HOME") or os.path.expanduser("~/.rustup")
    yield os.environ.get("RUSTUP_TOOLCHAIN", "")
    try:
        hashes = [entry.path for entry in os.scandir(home + "/update-hashes")]
    except OSError:
        hashes = []
    for path in (rustc, home + "/settings.toml", *sorted(hashes)):
        try:
            facts = os.stat(path)
        except OSError:
            continue
        yield f"{path} {facts.st_size} {facts.st_mtime_ns}"


def _crate_folders(crate: str) -> list[str]:
    """The project's folder and those of its path dependencies."""
    found = [crate]
    for folder in found:  # grows during iteration
        manifest = _manifest(folder)
        for path in _local_paths(manifest):
            place = os.path.normpath(os.path.join(folder, path))
            inside = any(place == known or place.startswith(known + "/") for known in found)
            if not inside and os.path.isfile(place + "/Cargo.toml"):
                found.append(place)
    return found


def _local_paths(table: dict[str, Any]) -> Iterator[str]:
    for name, value in table.items():
        if not isinstance(value, dict):
            continue
        if name.endswith("dependencies"):
            yield from (each["path"] for each in value.values() if isinstance(each, dict) and "path" in each)
        yield from _local_paths(value)


def _has_dependencies(table: dict[str, Any]) -> bool:
    return any(
        (bool(value) if name.endswith("dependencies") else _has_dependencies(value))
        for name, value in table.items()
        if isinstance(value, dict)
    )


def _manifest(crate: str) -> dict[str, Any]:
    import tomllib

    try:
        with open(crate + "/Cargo.toml", "rb") as file:
            return tomllib.load(file)
    except tomllib.TOMLDecodeError as error:
        raise PreparationError(f"{crate}/Cargo.toml: {error}", is_final=True) from None


def _files_below(folder: str, left_out: frozenset[str]) -> Iterator[str]:
    """Every file below the folder, except hidden files and build output."""
    count = 0
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _LEFT_OUT and not name.startswith("."))
        for name in sorted(files):
            if name.startswith(".") or name in left_out:
                continue
            count += 1
            if count > _MOST_FILES:
                raise PreparationError(f"{folder} has more than {_MOST_FILES:,} files", is_final=True)
            yield f"{place}/{name}"


def _other_files(path: str, content: bytes) -> list[str]:
    """The files that a source file includes, at every path where the compiler may look for them."""
    folder, own = os.path.split(path.removesuffix(".rs"))
    found = []
    for named, built_in, module in _OTHER_FILES.findall(content):
        name = os.fsdecode(named or built_in)
        places = [name] if name else [f"{part}{os.fsdecode(module)}{end}" for part in ("", own + "/") for end in _ENDS]
        candidates = [os.path.normpath(os.path.join(folder, place)) for place in places]
        found += [candidate for candidate in candidates if os.path.isfile(candidate)]
    return found


def _programs(printed: str) -> dict[str, str]:
    """The programs that cargo built, by name, from its JSON messages."""
    import json

    made = {}
    for line in printed.splitlines():
        message = json.loads(line) if line.startswith("{") else {}
        if message.get("reason") == "compiler-artifact" and message.get("executable"):
            made[str(message["target"]["name"])] = str(message["executable"])
    return made


def _reason(printed: str) -> str:
    """The first error and its location."""
    lines = printed.splitlines()
    for number, line in enumerate(lines):
        if line.startswith("error"):
            place = lines[number + 1].strip() if number + 1 < len(lines) else ""
            return f"{line} ({place.removeprefix('--> ')})" if place.startswith("--> ") else line
    return lines[-1].strip() if lines else "the compiler printed nothing"
