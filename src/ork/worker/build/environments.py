"""The Python environment of a task: an existing folder, or one built from requirements, once per content."""

from __future__ import annotations

import os
import sys

from ork.model.script_header import HeaderError, allows, read_script_header
from ork.worker.build.builds import Build, digest_of
from ork.worker.build.local_requirements import content_of
from ork.worker.build.preparation import PreparationError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ork.worker.build.preparation import Tools

_PYTHON = "/bin/python"
_MOST_INCLUDES = 100
_SHOWN_LINES = 5


def environment_need(spec: dict[str, Any]) -> EnvironmentNeed | None:
    """The environment to build; None if it is an existing folder."""
    written = spec["environment"]
    root = spec["root"]
    if "path" in written:
        spec["python"] = _python_at(os.path.join(root, written["path"]))
        return None
    if written.get("script"):
        return _from_script(spec)
    if "requirements_file" in written:
        file = os.path.join(root, written["requirements_file"])
        return EnvironmentNeed(spec, _lines_of(file), ["-r", file])
    return EnvironmentNeed(spec, list(written["requirements"]), None)


class EnvironmentNeed:
    """An environment to build. `source` has the installer's arguments for a requirements file; without it the lines are
    written to one."""

    def __init__(
        self, spec: dict[str, Any], lines: list[str], source: list[str] | None, python: str | None = None
    ) -> None:
        self._lines = lines
        self._source = source
        self._other_python = None if python is None or allows(python, sys.version_info[:3]) else python
        version = f"{sys.implementation.cache_tag} {os.uname().machine} {self._other_python or ''}"
        # pip resolves a path relative to the working folder, uv relative to the requirements file.
        folders = [spec["root"], os.path.dirname(source[-1]) if source else spec["root"]]
        self.build = Build(spec["builds"] + "/environments", digest_of([version, *lines, *content_of(lines, folders)]))
        self.title = f"an environment with {', '.join(lines[:_SHOWN_LINES]) or 'nothing in it'}"
        if len(lines) > _SHOWN_LINES:
            self.title += f" and {len(lines) - _SHOWN_LINES} more"

    def settle(self, spec: dict[str, Any]) -> None:
        spec["python"] = self.build.folder + _PYTHON

    def make(self, tools: Tools, folder: str) -> None:
        uv = tools.find("uv")
        if uv is not None:
            chosen = self._other_python or sys.executable
            _run(tools, [uv, "venv", "--quiet", "--no-project", "--python", chosen, folder])
        elif self._other_python is not None:
            version = ".".join(map(str, sys.version_info[:3]))
            raise PreparationError(
                f"the script needs Python {self._other_python}, this is {version}: install uv, which finds others",
                is_final=True,
            )
        else:
            _run(tools, [sys.executable, "-m", "venv", folder])
        if self._lines:
            self._install(tools, folder, uv)

    def _install(self, tools: Tools, folder: str, uv: str | None) -> None:
        python = folder + _PYTHON
        installer = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
        if uv is not None:
            installer = [uv, "pip", "install", "--python", python]
        _run(tools, [*installer, *(self._source or ["-r", self._written(folder)])])

    def _written(self, folder: str) -> str:
        file = folder + "/requirements.txt"
        with open(file, "w", encoding="utf-8") as opened:
            opened.write("".join(line + "\n" for line in self._lines))
        return file


def _run(tools: Tools, argv: list[str]) -> None:
    printed, problem = tools.run(argv)
    os.write(2, printed.encode())
    if problem is not None:
        raise PreparationError(f"the environment could not be built: {_reason(problem)}")


def _reason(printed: str) -> str:
    """The most informative line: the first that begins with "error:", else the last."""
    lines = [line.strip(" ×\t") for line in printed.splitlines() if line.strip(" ×\t")]
    errors = [line[len("error:") :].strip() for line in lines if line.lower().startswith("error:")]
    return (errors or lines[-1:] or ["the installer printed nothing"])[0]


def _from_script(spec: dict[str, Any]) -> EnvironmentNeed:
    file = os.path.join(spec["root"], spec["file"])
    with open(file, encoding="utf-8", errors="replace") as opened:
        text = opened.read()
    try:
        header = read_script_header(text)
        if header is None:
            raise PreparationError(f"{spec['file']} has no `# /// script` header", is_final=True)
        return EnvironmentNeed(spec, list(header.dependencies), None, header.requires_python)
    except HeaderError as error:
        raise PreparationError(f"{spec['file']}: {error}", is_final=True) from None


def _python_at(folder: str) -> str:
    python = os.path.normpath(folder) + _PYTHON
    if not os.access(python, os.X_OK):
        raise PreparationError(f"there is no virtual environment at {folder}: {python} is missing", is_final=True)
    return python


def _lines_of(file: str) -> list[str]:
    """The requirements of a file, including those of the files that it includes."""
    found: list[str] = []
    waiting = [file]
    seen: set[str] = set()
    while waiting and len(seen) < _MOST_INCLUDES:
        path = os.path.normpath(waiting.pop())
        if path in seen:
            continue
        seen.add(path)
        try:
            with open(path, encoding="utf-8", errors="replace") as opened:
                lines = opened.read().splitlines()
        except OSError as error:
            raise PreparationError(f"cannot read {path}: {error.strerror}", is_final=True) from None
        for line in (line.strip() for line in lines):
            if line and not line.startswith("#"):
                found.append(line)
                waiting += [os.path.join(os.path.dirname(path), name) for name in _included(line)]
    return found


def _included(line: str) -> list[str]:
    for option in ("-r", "--requirement", "-c", "--constraint"):
        if line.startswith(option) and line[len(option) : len(option) + 1] in (" ", "=", "\t"):
            return [line[len(option) + 1 :].strip()]
    return []
